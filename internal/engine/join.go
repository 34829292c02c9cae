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

// Join is a completion that follows from those of others: from all of them, or
// from the first that will do. Its maker sees to that, by continuations;
// the Join knows what it is made of, so that it can be withdrawn, and circles of
// waiting be found through it. Of must be called before it is used, unless Settle is to end it.
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
// by those that wait for j, and its record is not used again.
func (j *Join) Behind(r *Request) {
	r.sender |= followed
	j.parts.Store(&[]part{{Awaited: r}})
}

// Settle makes the completion of j come, which follows from nothing that Sluice knows
// of, so that Of has not been called, or from the request that Behind was told of; a
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

// Lose says that the part i of a first-of has ended and will not do. If that was the way
// out, waiters for j are in a circle now, and are aborted.
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

// out reports whether the first-of cannot follow from the part any more: it has
// ended, or is one of a selection that another one has been chosen from.
//
// That is asked of the requests of a selection only, each of which has had its rare since
// before it was handed in. Of another one that belongs to the goroutine of its body, which
// makes one when it asks for a requeue, and knows nothing of graph.
func (j *Join) out(p *part) bool {
	return p.lost || j.of != nil && p.Awaited.(*Request).lost()
}

// Pending implements waitgraph.Goal. A part that has ended cannot keep j from coming, even
// while its continuation is on its way to say what that means for j.
func (j *Join) Pending() bool { return !j.Settled() }

// Parts implements waitgraph.Join.
func (j *Join) Parts() iter.Seq[waitgraph.Goal] {
	if j.parts.Load() == nil {
		return nil // what it follows from may yet be said, by Behind
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
