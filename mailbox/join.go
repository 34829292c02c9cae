package mailbox

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
)

// Awaited is what can be waited for: a *Request that was posted, or a *Join of
// others.
type Awaited interface {
	Settled() bool
	Done() <-chan struct{}
	Await(ctx context.Context) error
	Then(do func(*Turn)) *Continuation
	WithdrawAll(err error) bool

	// walk visits the requests behind it, and the joins on the way, each of these
	// once: a future may well be used in several others.
	walk(seen map[*Join]bool, visit func(*Request))
	// stuck reports whether it will not end unless one of s.held does, and way says
	// what a body waits for that waits for it, and how it goes on from there. The
	// caller holds graph.
	stuck(s *search) bool
	way(s *search, body string) []Link
}

// Join is a completion that follows from those of others: from all of them, or
// from the first that will do. Whoever makes it sees to that, by continuations;
// the Join knows what it is made of, so that it can be withdrawn, and circles of
// waiting be found through it. Of must be called before it is used, unless Settle is to end it.
type Join struct {
	Completion
	first  bool
	parts  atomic.Pointer[[]part] // until it has ended
	vigils []*vigil               // of bodies that wait; guarded by graph
	of     *Selection             // whose requests the parts are; nil for futures
}

// part is one of the things that a Join is made of.
type part struct {
	Awaited      // nil if it had ended before
	lost    bool // it has ended, and will not do for the first; guarded by graph
}

// Of makes j the completion of all of the parts, or of the first of them. A nil
// part is one that has ended.
func (j *Join) Of(first bool, parts ...Awaited) {
	j.first = first
	all := make([]part, len(parts))
	for i, p := range parts {
		all[i] = part{Awaited: p, lost: first && p == nil}
	}
	j.parts.Store(&all)
}

// Behind says that j, which Settle is to end, will follow from r, which has not been
// handed in yet: so circles are found through it. R, if it is told, cannot be withdrawn
// by those who wait for j, and nobody can use its record again.
func (j *Join) Behind(r *Request) {
	r.sender |= followed
	j.parts.Store(&[]part{{Awaited: r}})
}

// Settle makes the completion of j come, which follows from nothing that Sluice knows
// of, so that nobody has called Of, or from the request that Behind was told of; a
// worker does what follows from it. It only hands over, and may be called by the owner
// of an object. Only the first call has an effect.
func (j *Join) Settle(workers Dispatcher) {
	first, last := j.complete()
	j.parts.Store(nil)
	follow(first, last, workers)
}

// left returns the parts that the completion may still follow from.
func (j *Join) left() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		parts := j.parts.Load()
		if parts == nil {
			return
		}
		for i := range *parts {
			if p := &(*parts)[i]; p.Awaited != nil && !yield(p) {
				return
			}
		}
	}
}

// Await waits until j has ended, or the context has; then the context's error is
// returned. It fails with *DeadlockError if j follows from a request that waits for
// what the caller is inside of; of the first of several, if all that are left do.
func (j *Join) Await(ctx context.Context) error { return j.await(ctx, j) }

// WithdrawAll withdraws all requests behind j that still wait, and completes them
// with err. It reports whether there were any. What j makes of that is another
// matter.
func (j *Join) WithdrawAll(err error) (some bool) {
	j.walk(map[*Join]bool{}, func(r *Request) { some = r.WithdrawAll(err) || some })
	return some
}

// Lose says that the part i of a first-of has ended and will not do. If that was
// what kept others from waiting in a circle, they are told: of all the events that
// close one, this is the only one besides a wait that begins.
func (j *Join) Lose(i int) {
	graph.Lock()
	defer graph.Unlock()
	parts := j.parts.Load()
	if parts == nil {
		return
	}
	(*parts)[i].lost = true
	alarm(j.vigils)
}

// alarm tells those of the waits that have become hopeless. The caller holds graph.
func alarm(vigils []*vigil) {
	for _, v := range slices.Clone(vigils) {
		if err := v.frame.check(v.goal, nil); err != nil {
			v.end()
			v.doomed <- err // there is room: the vigil has ended with this
		}
	}
}

// out reports whether the first-of cannot follow from the part any more: it has
// ended, or is one of a selection that another one has been chosen from.
//
// That is asked of the requests of a selection only, each of which has had its rare since
// before it was handed in. Of another one that belongs to the goroutine of its body, which
// makes one when it asks for a requeue, and knows nothing of graph.
func (j *Join) out(p *part) bool {
	return p.lost || j.of != nil && p.Awaited.(*Request).lost()
}

// vigil is the wait of a body for something that may become hopeless meanwhile.
type vigil struct {
	frame  *Frame
	goal   Awaited
	doomed chan error
	at     []*Join // guarded by graph, as all that follows
	of     []*Request
}

// end lets nobody tell the body any more.
func (v *vigil) end() {
	for _, j := range v.at {
		if i := slices.Index(j.vigils, v); i >= 0 {
			j.vigils = slices.Delete(j.vigils, i, i+1)
		}
	}
	for _, r := range v.of {
		r.unwatched(v)
	}
	v.at, v.of = nil, nil
}

func (r *Request) walk(_ map[*Join]bool, visit func(*Request)) { visit(r) }

func (j *Join) walk(seen map[*Join]bool, visit func(*Request)) {
	if seen[j] {
		return
	}
	seen[j] = true
	for p := range j.left() {
		p.walk(seen, visit)
	}
}

// stuck reports whether the request waits for the chain, or at an object that is
// held up.
func (r *Request) stuck(s *search) bool {
	box := r.box.Load()
	if box == nil || !r.pending() {
		return false
	}
	at := r.site(box)
	_, held := s.held[at]
	return held || s.inside(at)
}

// stuck reports whether one of all parts is stuck, or all of those that may be the
// first. A part that has ended is neither, even while its continuation is on its
// way to say what that means for j.
func (j *Join) stuck(s *search) bool {
	stuck, known := s.joins[j]
	if known {
		return stuck
	}
	if !j.Settled() {
		for p := range j.left() {
			if j.out(p) {
				continue
			}
			if stuck = p.stuck(s); stuck != j.first {
				break // one is enough: that is, or that is not
			}
		}
	}
	s.joins[j] = stuck
	return stuck
}

func (r *Request) way(s *search, body string) []Link {
	links := []Link{{Body: body, For: r.String()}}
	box := r.box.Load()
	at := r.site(box)
	if s.inside(at) {
		s.came(s.frame.within(box))
		return links
	}
	if s.told[at] {
		return links // and how it goes on from there
	}
	s.told[at] = true
	// If there is one of the own chain, the innermost.
	for g := s.frame; g != nil && !g.over.Load(); g = g.parent {
		if slices.Contains(s.held[at], g) {
			s.came(g)
			return append(links, g.holds(box)...)
		}
	}
	for _, f := range s.held[at] {
		if e, stuck := s.hold(f); stuck {
			links = append(append(links, f.holds(box)...), between(f, e.from)...)
			return append(links, e.goal.way(s, e.from.String())...)
		}
	}
	return links
}

func (j *Join) way(s *search, body string) (links []Link) {
	if s.told[j] {
		return nil
	}
	s.told[j] = true
	for p := range j.left() {
		if j.out(p) || !p.stuck(s) {
			continue
		}
		links = append(links, p.way(s, body)...)
		if !j.first { // else all of them are in the circle
			break
		}
	}
	return links
}
