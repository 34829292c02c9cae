package actor

import (
	"sync"

	"github.com/sluice-go/sluice/internal/engine"
)

// Promise is the other end of a Future whose result does not come from an object: the program
// sets the result by Settle. NewPromise makes one.
type Promise[R any] struct {
	end  engine.Promise
	from derivation

	mu      sync.Mutex
	settled bool
	result  R
}

// NewPromise returns a promise that is not settled.
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
// promise with context.Canceled. (Withdraw of a future that All, First or Then derive from it
// withdraws requests, but no promises.)
func (p *Promise[R]) Future() Future[R] {
	return Future[R]{resultAt: &p.result, err: derived{&p.from}}
}

// Settle sets the result. It reports false, and changes nothing, if the promise is settled
// already, or its future was withdrawn. The continuations of the future run on a goroutine of
// their own.
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

// goroutines is a dispatcher that starts a goroutine for each task.
type goroutines struct{}

// Dispatch implements Dispatcher.
func (goroutines) Dispatch(t Task) { go t.Run() }
