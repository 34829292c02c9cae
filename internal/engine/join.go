package engine

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/waitgraph"
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
	// goal returns it as the graph knows it, even if it is embedded in something.
	goal() waitgraph.Goal
}

// Join is a completion that follows from other completions: from all of them, or from the first
// that is accepted. The code that makes it completes it, by continuations. The Join knows its
// parts, so that it can be withdrawn, and that circles of waits are found through it. Of must be
// called before it is used, unless Settle is to end it.
type Join struct {
	Completion
	first bool
	parts atomic.Pointer[[]part] // until it has ended
	waits waitList               // of bodies that wait, if it is of the first; guarded by graph
	of    *Selection             // whose requests the parts are; nil for futures
}

// part is one of the things that a Join is made of.
type part struct {
	Awaited      // nil if it had ended before
	lost    bool // it has ended, and is not accepted as the first; guarded by graph
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

// Behind says that j, which Settle is to end, will follow from r, which has not been handed in
// yet. So circles are found through r. If r is Told, WithdrawAll of j does not withdraw it, and its
// record is not used again.
func (j *Join) Behind(r *Request) {
	r.sender |= followed
	j.parts.Store(&[]part{{Awaited: r}})
}

// Settle makes the completion of j come. It is for a Join without Of, which follows from nothing
// that Sluice knows of, or from the request of Behind. A worker runs the continuations, so that the
// owner of an object may call it. Only the first call has an effect.
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

// Await waits until j has ended. If the context ends first, it returns the context's error. It
// fails with *DeadlockError if j follows from a request that waits for a body that the caller is
// inside of; if j follows from the first of several, all that are left must wait so.
func (j *Join) Await(ctx context.Context) error { return j.await(ctx, j) }

// WithdrawAll withdraws all requests behind j that still wait, and completes them
// with err. It reports whether there were any. The continuations decide whether j fails, too.
func (j *Join) WithdrawAll(err error) (some bool) {
	j.walk(map[*Join]bool{}, func(r *Request) { some = r.WithdrawAll(err) || some })
	return some
}

// Lose says that the part i of a first-of has ended and is not accepted. If no other
// part can end, waiters for j are in a circle now, and are aborted.
func (j *Join) Lose(i int) {
	graph.Lock()
	defer graph.Unlock()
	parts := j.parts.Load()
	if parts == nil {
		return
	}
	(*parts)[i].lost = true
	notify(j.waits)
}

// out reports whether the first-of cannot follow from the part any more: it has ended, or it
// belongs to a selection in which another request has been chosen.
//
// Lost is called for the requests of a selection only: each of them has had its rare since before
// it was handed in. The rare of any other request belongs to the goroutine that runs its body,
// which makes it for a requeue without holding graph.
func (j *Join) out(p *part) bool {
	return p.lost || j.of != nil && p.Awaited.(*Request).lost()
}

// Pending implements waitgraph.Goal. A part that has ended cannot keep j from coming, even
// while its continuation is on its way to say what that means for j.
func (j *Join) Pending() bool { return !j.Settled() }

// Parts implements waitgraph.Join.
func (j *Join) Parts() iter.Seq[waitgraph.Goal] {
	if j.parts.Load() == nil {
		return nil // Behind may yet say what j follows from
	}
	return func(yield func(waitgraph.Goal) bool) {
		for p := range j.left() {
			if !j.out(p) && !yield(p.goal()) {
				return
			}
		}
	}
}

// First implements waitgraph.Join.
func (j *Join) First() bool { return j.first }

func (j *Join) goal() waitgraph.Goal { return j }

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
