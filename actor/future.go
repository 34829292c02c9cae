package actor

import (
	"context"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Future is the result of a request that was sent, or what was made of it by Then,
// All or First: there already, or to come. It is a value; copies of it are the same
// future. The zero Future has the zero result and no error.
type Future[R any] struct {
	_ [0]func() // not to be compared
	// A pointer and no interface: a Future[int] is four words, which Go still keeps
	// in registers.
	place  *R // of the result; nil if that is in the future itself
	result R
	err    error // if there is a place, requested or derived: where the outcome comes from
}

// requested is the source of a future that is a request's.
type requested struct{ pending *Pending }

// Error implements error, and is never called.
func (requested) Error() string { return "sluice: the result is to come" }

// derived is the source of any other future.
type derived struct{ from *derivation }

// Error implements error, and is never called.
func (derived) Error() string { return "sluice: the result is to come" }

// derivation is how the outcome of a future comes about that is not a request's.
type derivation struct {
	awaited engine.Awaited
	err     error // of the future, once awaited is settled
}

// sourceOf returns what a future waits for.
func sourceOf(source error) engine.Awaited {
	if s, ok := source.(requested); ok {
		return &s.pending.Request
	}
	return source.(derived).from.awaited
}

// errorOf returns the error of a future, which is settled.
func errorOf(source error) error {
	if s, ok := source.(requested); ok {
		return s.pending.Err
	}
	return source.(derived).from.err
}

// Pending is a request whose result is to come.
type Pending struct {
	Request engine.Request
	Err     error
	Place   any    // a pointer to where the result will be
	claim   *claim // of its tickets; nil before the first
}

// Settled returns a future whose result is there.
func Settled[R any](result R, err error) Future[R] {
	return Future[R]{result: result, err: err}
}

// Promised returns the future of a request that is on its way.
func Promised[R any](p *Pending) Future[R] {
	return Future[R]{place: p.Place.(*R), err: requested{p}}
}

// Await waits for the result. It may be called any number of times, from any
// goroutine. If ctx ends first its error is returned; that ends this wait only,
// and the request goes its way. Await fails with *mailbox.DeadlockError if the
// request waits for an object that the caller is inside of; if the future is the
// First of several, if those that may still succeed all do.
func (f Future[R]) Await(ctx context.Context) (R, error) {
	if f.place == nil {
		return f.result, f.err
	}
	if err := sourceOf(f.err).Await(ctx); err != nil {
		var none R
		return none, err
	}
	return *f.place, errorOf(f.err)
}

// Ready reports whether the result is there.
func (f Future[R]) Ready() bool { return f.place == nil || sourceOf(f.err).Settled() }

// Done returns a channel that is closed when the result is there.
func (f Future[R]) Done() <-chan struct{} {
	if f.place == nil {
		return closed
	}
	return sourceOf(f.err).Done()
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
	return f.place != nil && sourceOf(f.err).WithdrawAll(context.Canceled)
}

// SetPriority changes the priority of the request, which still waits at an object
// that is ordered by priority. Otherwise it fails with *mailbox.PriorityError and
// changes nothing.
func (f Future[R]) SetPriority(priority int) error {
	var source error
	if f.place != nil {
		source = f.err
	}
	return setPriority(source, priority)
}

func setPriority(source error, priority int) error {
	if s, ok := source.(requested); !ok || !s.pending.Request.SetPriority(priority) {
		return &mailbox.PriorityError{Problem: "the request does not wait, or its object is not ordered by priority"}
	}
	return nil
}

// outcome returns the result of f, which must be there.
//
//go:noinline
func outcome[R any](f Future[R]) (R, error) {
	if f.place == nil {
		return f.result, f.err
	}
	return *f.place, errorOf(f.err)
}

// source returns where the outcome of f comes from, or nil if it is in f.
func source[R any](f Future[R]) error {
	if f.place == nil {
		return nil
	}
	return f.err
}

// follow has do called when a future with the source, or nil, is settled: at once, with a nil turn,
// or by a worker, in its turn. Then it returns what can be dropped.
func follow(source error, do func(*engine.Turn)) *engine.Continuation {
	if source != nil {
		if k := sourceOf(source).Then(do); k != nil {
			return k
		}
	}
	do(nil)
	return nil
}
