package actor

import (
	"sync"

	"github.com/sluice-go/sluice/internal/engine"
)

// Promise is the other end of a Future whose result does not come from an object:
// whoever has it says what the result is. NewPromise makes one.
type Promise[R any] struct {
	end  engine.Promise
	from derivation

	mu      sync.Mutex
	settled bool
	result  R
}

// NewPromise returns a promise that has not been kept.
func NewPromise[R any]() *Promise[R] {
	p := &Promise[R]{}
	p.end.Of(false)
	p.from.awaited = &p.end
	p.end.Withdraw = func(err error) bool {
		var none R
		return p.Settle(none, err)
	}
	return p
}

// Future returns the future of the promise. If it is withdrawn, that settles the
// promise with context.Canceled. (A future that All, First or Then have made of it
// withdraws requests, but no promises.)
func (p *Promise[R]) Future() Future[R] {
	return Future[R]{place: &p.result, err: derived{&p.from}}
}

// Settle says what the result is, once: it reports false, and changes nothing, if
// that has been said, or the future was withdrawn. What follows from the future is
// done on a goroutine of its own.
func (p *Promise[R]) Settle(result R, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled {
		return false
	}
	p.settled = true
	p.result, p.from.err = result, err
	p.end.Settle(goroutines{})
	return true
}

// goroutines is a dispatcher that starts one for each task.
type goroutines struct{}

// Dispatch implements Dispatcher.
func (goroutines) Dispatch(t Task) { go t.Run() }
