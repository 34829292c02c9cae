package actor

import (
	"context"

	"github.com/sluice-go/sluice/mailbox"
)

// Future is the result of a request that was sent: there already, or to come.
// It is a value; copies of it are the same future. The zero Future has the zero
// result and no error.
type Future[R any] struct {
	pending *Pending[R]
	result  R
	err     error
}

// Pending is a request whose result is to come.
type Pending[R any] struct {
	mailbox.Request
	Result R
	Err    error
}

// Fail implements mailbox.Body.
func (p *Pending[R]) Fail(err error) { p.Err = err }

// Settled returns a future whose result is there.
func Settled[R any](result R, err error) Future[R] {
	return Future[R]{result: result, err: err}
}

// Promised returns the future of a request that is on its way.
func Promised[R any](p *Pending[R]) Future[R] { return Future[R]{pending: p} }

// Await waits for the result. It may be called any number of times, from any
// goroutine. If ctx ends first its error is returned; that ends this wait only,
// and the request goes its way. Await fails with *mailbox.DeadlockError if the
// request waits for an object that the caller is inside of.
func (f Future[R]) Await(ctx context.Context) (R, error) {
	p := f.pending
	if p == nil {
		return f.result, f.err
	}
	if err := p.Request.Await(ctx); err != nil {
		var none R
		return none, err
	}
	return p.Result, p.Err
}

// Ready reports whether the result is there.
func (f Future[R]) Ready() bool { return f.pending == nil || f.pending.Settled() }

// Done returns a channel that is closed when the result is there.
func (f Future[R]) Done() <-chan struct{} {
	if f.pending == nil {
		return closed
	}
	return f.pending.Request.Done()
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Withdraw takes the request out of its queue if it still waits. Then it reports
// true, the request never runs, and the future fails with context.Canceled. If
// the request runs or has ended, it reports false and changes nothing.
func (f Future[R]) Withdraw() bool {
	return f.pending != nil && f.pending.WithdrawAll(context.Canceled)
}
