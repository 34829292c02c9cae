package actor

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox"
)

// Then returns the future of what do makes of the outcome of f, its error included.
//
// If f is ready, do is called at once, before Then returns, on the same goroutine: inside
// a body, if a body calls Then, whose object is released only when the body returns. Else
// one of the workers of the system calls it, after the object has been released, so that do
// may call the object again; the continuations of one future run one after the other, in the
// order in which they were added, and one that waits for a later one waits for
// ever. They also run if f fails because its object or system stops.
//
// A do that panics, or leaves through runtime.Goexit on a worker, fails the future
// with a *ContinuationError, which is logged as well. What else is to follow from f is
// not concerned.
func Then[R, S any](f Future[R], do func(R, error) (S, error)) Future[S] {
	if do == nil {
		return failed[S](&FutureError{Function: "Then", Reason: "the function is nil"})
	}
	return then(f, do, do)
}

// then is Then. If it fails it is the given function, which do calls, that has failed.
func then[R, S any](f Future[R], function any, do func(R, error) (S, error)) Future[S] {
	d := &derived[S]{}
	d.Of(false, f.source())
	f.then(func(t *mailbox.Turn) {
		returned := false
		defer func() {
			if !returned {
				d.Err = continuationFailed(t, f.source(), function, mailbox.Panicked(recover()))
			}
			t.Complete(&d.Join)
		}()
		d.Result, d.Err = do(f.outcome())
		returned = true
	})
	return d.future()
}

// OnDone has do called with the outcome of f when that is there, as by Then, and
// returns a future with the same outcome that is ready when do has returned. If do
// panics, that future fails, and the failure is logged.
func (f Future[R]) OnDone(do func(R, error)) Future[R] {
	if do == nil {
		return failed[R](&FutureError{Function: "OnDone", Reason: "the function is nil"})
	}
	return then(f, do, func(r R, err error) (R, error) {
		do(r, err)
		return r, err
	})
}

// All returns the future of the results of all the given ones, in their order. It
// waits for each of them, even if some fail; then its error joins theirs, in order
// (see errors.Join), and is nil if there is none. The results of those that did not
// fail are there in any case.
//
// No futures, or one given twice, are a *FutureError.
func All[R any](futures ...Future[R]) Future[[]R] {
	sources, err := sourcesOf("All", futures)
	if err != nil {
		return failed[[]R](err)
	}
	d := &derived[[]R]{}
	d.Result = make([]R, len(futures))
	d.Of(false, sources...)
	errs := make([]error, len(futures))
	// Each has its own places in Result and errs. Whoever counts down to zero has
	// everything before him that was written before the other countings. All counts
	// as well, so that nobody is through before it has asked them all.
	var left atomic.Int64
	left.Store(int64(len(futures)) + 1)
	count := func(t *mailbox.Turn) {
		if left.Add(-1) == 0 {
			d.Err = errors.Join(errs...)
			t.Complete(&d.Join)
		}
	}
	for i, f := range futures {
		f.then(func(t *mailbox.Turn) {
			d.Result[i], errs[i] = f.outcome()
			count(t)
		})
	}
	count(nil) // nobody has heard of d yet
	return d.future()
}

// First returns the future of the first of the given ones that succeeds; among
// several that are ready, of the one that comes first in the arguments. If all fail,
// it fails with an error that joins theirs, in order (see errors.Join). The others go
// on: Withdraw them if they are not wanted any more.
//
// No futures, or one given twice, are a *FutureError.
func First[R any](futures ...Future[R]) Future[R] {
	sources, err := sourcesOf("First", futures)
	if err != nil {
		return failed[R](err)
	}
	r := &race[R]{errs: make([]error, len(futures)), left: len(futures)}
	r.Of(true, sources...)
	for i, f := range futures {
		k := f.then(func(t *mailbox.Turn) { r.arrive(t, i, f) })
		if !r.drop(k) {
			break
		}
	}
	return r.future()
}

// race is what First waits for.
type race[R any] struct {
	derived[R]

	mu     sync.Mutex
	left   int // that have not failed
	over   bool
	errs   []error
	others []*mailbox.Continuation
}

// drop keeps k, to be dropped when the race is over. It reports false if it is.
func (r *race[R]) drop(k *mailbox.Continuation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case k == nil:
	case r.over:
		k.Drop()
	default:
		r.others = append(r.others, k)
	}
	return !r.over
}

// arrive takes the outcome of the future i. Over is set once, under mu, by whoever
// then has the result to himself, and completes.
func (r *race[R]) arrive(t *mailbox.Turn, i int, f Future[R]) {
	result, err := f.outcome()
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	if err != nil {
		r.errs[i] = err
		r.left--
	}
	r.over = err == nil || r.left == 0
	over, others := r.over, r.others
	if over {
		r.others = nil
	}
	r.mu.Unlock()
	if !over {
		r.Lose(i)
		return
	}
	for _, k := range others {
		k.Drop() // or they would pile up at a future that takes part in many races
	}
	if err == nil {
		r.Result = result
	} else {
		r.Err = errors.Join(r.errs...)
	}
	t.Complete(&r.Join)
}

// derived is a result that follows from others.
type derived[R any] struct {
	mailbox.Join
	source mailbox.Awaited // the Join
	promise[R]
}

// future returns the future of d, by value if it is there.
func (d *derived[R]) future() Future[R] {
	if d.Settled() {
		return Settled(d.Result, d.Err)
	}
	d.source = &d.Join
	return Future[R]{promise: &d.promise, err: brought{&d.source}}
}

func failed[R any](err error) Future[R] {
	var none R
	return Settled(none, err)
}

// sourcesOf returns what the futures wait for.
func sourcesOf[R any](function string, futures []Future[R]) ([]mailbox.Awaited, error) {
	if len(futures) == 0 {
		return nil, &FutureError{Function: function, Reason: "there are no futures"}
	}
	sources := make([]mailbox.Awaited, len(futures))
	places := make(map[*promise[R]]int, len(futures))
	for i, f := range futures {
		if f.promise == nil {
			continue
		}
		if j, twice := places[f.promise]; twice {
			return nil, &FutureError{Function: function, Reason: fmt.Sprintf("futures %d and %d are the same", j, i)}
		}
		places[f.promise] = i
		sources[i] = f.source()
	}
	return sources, nil
}

// FutureError says that a function was given futures that it cannot do anything
// with. Nothing has happened to them.
type FutureError struct {
	Function string // All, First, Then or OnDone
	Reason   string
}

// Error implements error.
func (e *FutureError) Error() string { return "sluice: " + e.Function + ": " + e.Reason }

// ContinuationError fails a future that Then or OnDone made, whose function did not
// return.
type ContinuationError struct {
	Function string // the continuation's name in the program
	Value    any    // what it panicked with; nil if it ended its goroutine by runtime.Goexit
	Stack    []byte
}

// Error implements error.
func (e *ContinuationError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("sluice: continuation %s ended its goroutine (runtime.Goexit)", e.Function)
	}
	return fmt.Sprintf("sluice: continuation %s panicked: %v", e.Function, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *ContinuationError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// continuationFailed returns the error of a continuation that panicked with the value, or,
// if that is nil, called runtime.Goexit, and logs it. It was to follow from the source, in
// the turn, or at once if that is nil.
//
// Of a future whose result was there when it was made nothing tells the system; then it
// is slog's default logger that logs, on a goroutine of its own, as a continuation may run
// inside a body.
func continuationFailed(t *mailbox.Turn, source mailbox.Awaited, function, value any) error {
	err := &ContinuationError{Function: nameOf(function), Value: value, Stack: debug.Stack()}
	attributes := []any{"continuation", err.Function}
	request, _ := source.(*mailbox.Request)
	if request != nil {
		object, operation, arrival := request.Names(t)
		if object != "" {
			attributes = append(attributes, "object", object)
		}
		attributes = append(attributes, "operation", operation, "request", arrival)
	}
	attributes = append(attributes, "stack", string(err.Stack))
	var workers Dispatcher
	switch {
	case t != nil:
		workers = t.Workers()
	case request != nil:
		workers = request.Workers()
	}
	write := func(l *slog.Logger) { l.Error(err.Error(), attributes...) }
	if w, ok := workers.(*Warm); ok && w.system != nil {
		w.system.Log(write)
	} else {
		go func() {
			defer func() { _ = recover() }() // of a handler that panics
			write(slog.Default())
		}()
	}
	return err
}

func nameOf(function any) string {
	if f := runtime.FuncForPC(reflect.ValueOf(function).Pointer()); f != nil {
		return f.Name()
	}
	return "?"
}
