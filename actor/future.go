package actor

import (
	"context"

	"github.com/sluice-go/sluice/mailbox"
)

// Future is the result of a request that was sent, or what was made of it by Then,
// All or First: there already, or to come. It is a value; copies of it are the same
// future. The zero Future has the zero result and no error.
type Future[R any] struct {
	// A pointer and no interface: a Future[int] is four words, which Go still keeps
	// in registers.
	promise *promise[R] // nil if the result is in the future itself
	result  R
	err     error // if there is a promise: requested or brought, its source
}

// promise is a result that is there once the source of its future is settled. (The
// source is not kept with it, as it would be one more thing to fetch from memory of
// each of very many requests.)
type promise[R any] struct {
	Err    error
	Result R
}

// requested is the source of a future that is a request's.
type requested struct{ request *mailbox.Request }

// Error implements error, and is never called.
func (requested) Error() string { return "sluice: the result is to come" }

// brought is the source of a future that is brought about otherwise.
type brought struct{ about *mailbox.Awaited }

// Error implements error, and is never called.
func (brought) Error() string { return "sluice: the result is to come" }

// Pending is a request whose result is to come.
type Pending[R any] struct {
	Request mailbox.Request // not embedded, as its methods would be compiled for every result
	promise[R]
	claim *claim // of its tickets; nil before the first
}

// Settled returns a future whose result is there.
func Settled[R any](result R, err error) Future[R] {
	return Future[R]{result: result, err: err}
}

// Promised returns the future of a request that is on its way.
func Promised[R any](p *Pending[R]) Future[R] {
	return Future[R]{promise: &p.promise, err: requested{&p.Request}}
}

// Await waits for the result. It may be called any number of times, from any
// goroutine. If ctx ends first its error is returned; that ends this wait only,
// and the request goes its way. Await fails with *mailbox.DeadlockError if the
// request waits for an object that the caller is inside of; if the future is the
// First of several, if those that may still succeed all do.
func (f Future[R]) Await(ctx context.Context) (R, error) {
	p := f.promise
	if p == nil {
		return f.result, f.err
	}
	if err := f.source().Await(ctx); err != nil {
		var none R
		return none, err
	}
	return p.Result, p.Err
}

// Ready reports whether the result is there.
func (f Future[R]) Ready() bool { return f.promise == nil || f.source().Settled() }

// Done returns a channel that is closed when the result is there.
func (f Future[R]) Done() <-chan struct{} {
	if f.promise == nil {
		return closed
	}
	return f.source().Done()
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Withdraw takes the request out of its queue if it still waits. Then it reports
// true, the request never runs, and the future fails with context.Canceled. If
// the request runs or has ended, it reports false and changes nothing.
//
// A future that was made from others by Then, All or First withdraws every request
// behind it that still waits, though others may wait for that too, and reports
// whether there was one. Those that run go on. What becomes of the future follows
// from its sources as ever: Then's function is given context.Canceled, All fails
// with it when the others have ended, and First may still succeed through a request
// that ran.
func (f Future[R]) Withdraw() bool {
	return f.promise != nil && f.source().WithdrawAll(context.Canceled)
}

// source returns what the future waits for, or nil.
func (f Future[R]) source() mailbox.Awaited {
	if f.promise == nil {
		return nil
	}
	if s, ok := f.err.(requested); ok {
		return s.request
	}
	return *f.err.(brought).about
}

// outcome returns the result, which must be there.
func (f Future[R]) outcome() (R, error) {
	if f.promise == nil {
		return f.result, f.err
	}
	return f.promise.Result, f.promise.Err
}

// then has do called when the result is there: at once, with a nil turn, or by a
// worker, in its turn. Then it returns what can be dropped.
func (f Future[R]) then(do func(*mailbox.Turn)) *mailbox.Continuation {
	if f.promise != nil {
		if k := f.source().Then(do); k != nil {
			return k
		}
	}
	do(nil)
	return nil
}

// SetPriority changes the priority of the request, which still waits at an object
// that is ordered by priority. Otherwise it fails with *mailbox.PriorityError and
// changes nothing.
func (f Future[R]) SetPriority(priority int) error {
	r, ok := f.source().(*mailbox.Request)
	if !ok || !r.SetPriority(priority) {
		return &mailbox.PriorityError{Problem: "the request does not wait, or its object is not ordered by priority"}
	}
	return nil
}
