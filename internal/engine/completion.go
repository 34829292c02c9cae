package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/waitgraph"
)

// Completion is the end of something that others wait for. It comes once, and then for good. Some
// wait for it by a channel, which is made when it is first needed; others leave a
// continuation. The zero Completion is yet to come, and costs a word as long as nothing waits.
//
// The word holds nil, then perhaps the waiters, and in the end over. It becomes over by one swap,
// so that only one completer finds what was there before. What the completer wrote until then
// happens before what a goroutine does that loads over from the word. The completer takes the
// waiters' lock only afterwards; so it also happens before what a goroutine does that finds
// waiters.over set. Both may read the result.
type Completion struct {
	word atomic.Pointer[waiters]
}

// waiters are the channel and the continuations that wait for one completion. They register under
// mu: either before the completer comes, which then finds them; or after, and then they find over
// set. So none is missed, and none is told twice.
type waiters struct {
	mu          sync.Mutex
	over        bool
	done        chan struct{}
	first, last *Continuation
}

// over is the value of the word of a completion that has come.
var over = func() *waiters {
	w := &waiters{over: true, done: make(chan struct{})}
	close(w.done)
	return w
}()

// Continuation is what is to be done after a completion.
type Continuation struct {
	do         func(*Turn)
	at         *waiters
	prev, next *Continuation
}

// Settled reports whether the completion has come.
func (c *Completion) Settled() bool { return c.word.Load() == over }

// Done returns a channel that is closed when the completion has come.
func (c *Completion) Done() <-chan struct{} {
	w := c.waiters()
	if w == over {
		return over.done
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return over.done // the completer has closed w.done, if there was one
	case w.done == nil:
		w.done = make(chan struct{})
	}
	return w.done
}

// Then leaves a continuation, to be done once, on a worker, after the completion has come.
// Several are done in the order in which they were left. If the completion has come already Then
// returns nil, and the caller is to carry on itself.
func (c *Completion) Then(do func(*Turn)) *Continuation {
	w := c.waiters()
	if w == over {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil
	}
	k := &Continuation{do: do, at: w, prev: w.last}
	if w.last == nil {
		w.first = k
	} else {
		w.last.next = k
	}
	w.last = k
	return k
}

// Drop makes a completion forget a continuation, unless it has come already. It is called at most
// once.
func (k *Continuation) Drop() {
	w := k.at
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return // the list belongs to a Turn
	}
	if k.prev == nil {
		w.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		w.last = k.prev
	} else {
		k.next.prev = k.prev
	}
}

// waiters returns the waiters, or over.
func (c *Completion) waiters() *waiters {
	w := c.word.Load()
	if w == nil {
		w = new(waiters)
		if !c.word.CompareAndSwap(nil, w) {
			w = c.word.Load() // it never becomes nil again
		}
	}
	return w
}

// complete makes the completion come and closes its channel. It returns the continuations, which
// the caller has to run. Only the first call has an effect.
func (c *Completion) complete() (first, last *Continuation) {
	w := c.word.Swap(over)
	if w == nil || w == over {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.done != nil {
		close(w.done)
	}
	first, last = w.first, w.last
	w.first, w.last = nil, nil
	return first, last
}

// await waits for the completion, which is that of the goal, or the end of the
// context.
func (c *Completion) await(ctx context.Context, goal waitgraph.Goal) (err error) {
	if c.Settled() {
		return nil
	}
	var aborted <-chan error
	if chain := ChainOf(ctx); chain != nil {
		w, err := chain.enter(goal, nil)
		defer w.leave()
		switch {
		case err != nil && c.Settled():
			return nil
		case err != nil:
			return err
		}
		aborted = w.aborted
	}
	defer comesBack(leaves(ctx))
	select {
	case <-c.Done():
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-aborted:
	}
	if c.Settled() {
		return nil
	}
	return err
}

// Turn is a worker's turn at continuations, which it runs one after another. What follows from
// one of them joins the end of the list instead of the stack, however long the chain.
type Turn struct {
	workers     Dispatcher
	first, last *Continuation

	// The request that the turn began with, if any, and where that was.
	of *Request
	at *Mailbox
}

// follow has a worker run the continuations of a completion that has just come. It only
// dispatches, so that the owner of an object may call it.
func follow(first, last *Continuation, workers Dispatcher) {
	if first != nil {
		workers.Dispatch(&Turn{workers: workers, first: first, last: last})
	}
}

// Workers returns the dispatcher on whose worker the turn runs.
func (t *Turn) Workers() Dispatcher { return t.workers }

// Run implements Task.
func (t *Turn) Run() {
	finished := false
	defer func() {
		if !finished { // a continuation has left through runtime.Goexit; the others go on elsewhere
			t.workers.Dispatch(t)
		}
	}()
	for t.first != nil {
		k := t.first
		if t.first = k.next; t.first == nil {
			t.last = nil
		}
		k.do(t)
	}
	finished = true
}

// Complete makes the completion of j come. What follows from it is done later in the turn. A nil
// turn is for a completion that is not known to any other goroutine yet, so that nothing can
// follow.
func (t *Turn) Complete(j *Join) {
	first, last := j.complete()
	j.parts.Store(nil) // so that a long chain of futures does not keep its beginning
	switch {
	case first == nil:
	case t.first == nil:
		t.first, t.last = first, last
	default:
		t.last.next, t.last = first, last
	}
}
