package actor

import (
	"context"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Future is the result of a request that was sent, or a result that Then, All or First derive
// from others. It may be available already, or come later. It is a value; copies of it are the
// same future. The zero Future has the zero result and no error.
type Future[R any] struct {
	_ [0]func() // not to be compared
	// resultAt is a pointer rather than an interface: so a Future[int] is four words, which Go
	// still keeps in registers.
	resultAt *R // where the result will be; nil if it is in the future itself
	result   R
	err      error // if resultAt is not nil, requested or derived: the source of the outcome
}

// requested is the source of a future whose outcome is that of a request.
type requested struct{ pending *Pending }

// Error implements error, and is never called.
func (requested) Error() string { return "sluice: the result is to come" }

// derived is the source of any other future.
type derived struct{ from *derivation }

// Error implements error, and is never called.
func (derived) Error() string { return "sluice: the result is to come" }

// derivation is the source of a future whose outcome is not that of a request itself: it is
// derived from other futures, or set by a Promise.
type derivation struct {
	awaited engine.Awaited
	err     error // of the future, once awaited is settled
}

// sourceOf returns what a future with the source waits for.
func sourceOf(source error) engine.Awaited {
	if s, ok := source.(requested); ok {
		return &s.pending.Request
	}
	return source.(derived).from.awaited
}

// errorOf returns the error of a future with the source. The future must be settled.
func errorOf(source error) error {
	if s, ok := source.(requested); ok {
		return s.pending.Err
	}
	return source.(derived).from.err
}

// Pending is a request whose result is not available yet.
type Pending struct {
	Request engine.Request
	Err     error
	Place   any          // a pointer to the variable for the result
	tickets *ticketState // nil before the first ticket
}

// Settled returns a future whose result is available.
func Settled[R any](result R, err error) Future[R] {
	return Future[R]{result: result, err: err}
}

// Promised returns the future of a pending request.
func Promised[R any](p *Pending) Future[R] {
	return Future[R]{resultAt: p.Place.(*R), err: requested{p}}
}

// Await waits for the result. It may be called any number of times, from any goroutine. If ctx
// ends first, Await returns its error; that ends only this wait, and the request goes on. Await
// fails with *mailbox.DeadlockError if the request waits for an object that the caller is
// inside of. For a future made by First, it does so if all those of its futures that may still
// succeed wait for such an object.
func (f Future[R]) Await(ctx context.Context) (R, error) {
	if f.resultAt == nil {
		return f.result, f.err
	}
	if err := sourceOf(f.err).Await(ctx); err != nil {
		var none R
		return none, err
	}
	return *f.resultAt, errorOf(f.err)
}

// Ready reports whether the result is available.
func (f Future[R]) Ready() bool { return f.resultAt == nil || sourceOf(f.err).Settled() }

// Done returns a channel that is closed when the result is available.
func (f Future[R]) Done() <-chan struct{} {
	if f.resultAt == nil {
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
// Withdraw of a future that was made by Then, All or First withdraws every request behind it
// that still waits, even if other futures depend on it too, and reports whether there was one.
// Requests that run go on. The outcome of the future is derived from its sources as usual:
// Then's function is given context.Canceled, All fails with it when the others have ended, and
// First may still succeed through a request that ran.
func (f Future[R]) Withdraw() bool {
	return f.resultAt != nil && sourceOf(f.err).WithdrawAll(context.Canceled)
}

// SetPriority changes the priority of a request that still waits at an object that is ordered by
// priority. Otherwise it fails with *mailbox.PriorityError and changes nothing.
func (f Future[R]) SetPriority(priority int) error {
	var source error
	if f.resultAt != nil {
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

// outcome returns the result and error of f, which must be ready.
//
//go:noinline
func outcome[R any](f Future[R]) (R, error) {
	if f.resultAt == nil {
		return f.result, f.err
	}
	return *f.resultAt, errorOf(f.err)
}

// source returns the source of f's outcome, or nil if the outcome is in f itself.
func source[R any](f Future[R]) error {
	if f.resultAt == nil {
		return nil
	}
	return f.err
}

// follow has do called when a future with the given source is settled. If it is settled already,
// or source is nil, do is called at once, with a nil turn, and follow returns nil. Else a worker
// calls it in its turn, and follow returns the continuation, which can be dropped.
func follow(source error, do func(*engine.Turn)) *engine.Continuation {
	if source != nil {
		if k := sourceOf(source).Then(do); k != nil {
			return k
		}
	}
	do(nil)
	return nil
}

// Behind returns what the future waits for; nil if its result is there from the start. It is for packages of Sluice.
func Behind[R any](f Future[R]) engine.Awaited {
	if f.resultAt == nil {
		return nil
	}
	return sourceOf(f.err)
}
