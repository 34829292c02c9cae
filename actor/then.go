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

	"github.com/sluice-go/sluice/internal/engine"
)

// Then returns the future of the result of do, which is called with the outcome of f: its result
// and its error.
//
// If f is ready, do is called at once, before Then returns, on the same goroutine. If a body calls
// Then, do runs inside that body, and the body's object is released only when the body returns.
// If f is not ready, a worker of the system calls do after the object of f has been released, so
// that do may call that object again. The continuations of one future run one after another, in
// the order in which they were added; so one that waits for a later one waits for ever. They also
// run if f fails because its object or system stops.
//
// If do panics, or calls runtime.Goexit on a worker, the future fails with a *ContinuationError,
// which is also logged. The other continuations of f still run.
func Then[R, S any](f Future[R], do func(R, error) (S, error)) Future[S] {
	if do == nil {
		return failed[S](&FutureError{Function: "Then", Problem: "the function is nil"})
	}
	d := &result[S]{}
	follows(&d.joined, source(f), do, func() (err error) {
		d.value, err = do(outcome(f))
		return err
	})
	return future(d)
}

// follows completes d when a future with the given source, or nil, is settled: do is called then,
// and returns the error of d. If do panics or calls runtime.Goexit, the *ContinuationError names
// the given function.
func follows(d *joined, source error, function any, do func() error) {
	d.join.Of(false, sources(source)...)
	follow(source, func(t *engine.Turn) {
		returned := false
		defer func() {
			if !returned {
				d.err = continuationFailed(t, source, function, engine.Panicked(recover()))
			}
			t.Complete(&d.join)
		}()
		d.err = do()
		returned = true
	})
}

// OnDone has do called with the outcome of f when f is ready, as by Then. It returns a future with
// the same outcome, which is ready when do has returned. If do panics, that future fails, and the
// failure is logged.
func (f Future[R]) OnDone(do func(R, error)) Future[R] {
	if do == nil {
		return failed[R](&FutureError{Function: "OnDone", Problem: "the function is nil"})
	}
	from := &joined{}
	follows(from, source(f), do, func() error {
		r, err := outcome(f)
		do(r, err)
		return err
	})
	if from.join.Settled() {
		r, _ := outcome(f)
		return Settled(r, from.err)
	}
	from.awaited = &from.join
	return Future[R]{resultAt: f.resultAt, err: derived{&from.derivation}}
}

// All returns the future of the results of all the given futures, in their order. It waits for
// each of them, even if some fail. Its error joins their errors, in order (see errors.Join), and is
// nil if none has failed. The results of those that did not fail are in the slice in any case.
//
// No futures, or one given twice, are a *FutureError.
func All[R any](futures ...Future[R]) Future[[]R] {
	parts, err := partsOf("All", futures)
	if err != nil {
		return failed[[]R](err)
	}
	d := &result[[]R]{value: make([]R, len(futures))}
	d.join.Of(false, sources(parts...)...)
	errs := make([]error, len(futures))
	// Each continuation writes its own elements of the value and errs. The one that counts down to
	// zero sees all that was written before the other decrements. All itself counts as well, so
	// that the count does not reach zero before all continuations have been added.
	var left atomic.Int64
	left.Store(int64(len(futures)) + 1)
	count := func(t *engine.Turn) {
		if left.Add(-1) == 0 {
			d.err = errors.Join(errs...)
			t.Complete(&d.join)
		}
	}
	for i, f := range futures {
		follow(parts[i], func(t *engine.Turn) {
			d.value[i], errs[i] = outcome(f)
			count(t)
		})
	}
	count(nil) // if this completes d no turn is needed: d has no continuations yet
	return future(d)
}

// First returns the future of the first of the given futures that succeeds. If several are ready,
// it is the first of them in the order of the arguments. If all fail, First's future fails with an
// error that joins theirs, in order (see errors.Join). The other requests go on: Withdraw those
// that are not wanted any more.
//
// No futures, or one given twice, are a *FutureError.
func First[R any](futures ...Future[R]) Future[R] {
	parts, err := partsOf("First", futures)
	if err != nil {
		return failed[R](err)
	}
	d := &result[R]{}
	d.join.Of(true, sources(parts...)...)
	r := &race{target: &d.joined, errs: make([]error, len(futures)), remaining: len(futures)}
	for i, f := range futures {
		k := follow(parts[i], func(t *engine.Turn) {
			value, err := outcome(f)
			if r.record(i, err) {
				d.value, d.err = value, err
				if err != nil {
					var none R
					d.value, d.err = none, errors.Join(r.errs...)
				}
				t.Complete(&d.join)
			}
		})
		if !r.drop(k) {
			break
		}
	}
	return future(d)
}

// race is the state of a First: which of its futures have failed, and whether the outcome is decided.
type race struct {
	target *joined

	mu            sync.Mutex
	remaining     int // how many futures have not failed
	decided       bool
	errs          []error
	continuations []*engine.Continuation
}

// drop keeps k, to be dropped when the race is decided; if it is decided already, k is dropped at
// once. It reports false if the race is decided.
func (r *race) drop(k *engine.Continuation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case k == nil:
	case r.decided:
		k.Drop()
	default:
		r.continuations = append(r.continuations, k)
	}
	return !r.decided
}

// record notes the error of the future i, or nil, and reports whether that decides the race.
// decided is set once, under mu. So only one caller gets true: it alone writes the result and
// completes the future.
func (r *race) record(i int, err error) (ended bool) {
	r.mu.Lock()
	if r.decided {
		r.mu.Unlock()
		return false
	}
	if err != nil {
		r.errs[i] = err
		r.remaining--
	}
	r.decided = err == nil || r.remaining == 0
	decided, continuations := r.decided, r.continuations
	if decided {
		r.continuations = nil
	}
	r.mu.Unlock()
	if !decided {
		r.target.join.Lose(i)
		return false
	}
	for _, k := range continuations {
		k.Drop() // else they would accumulate at a future that is given to many Firsts
	}
	return true
}

// joined is a derivation whose outcome follows from other futures.
type joined struct {
	derivation
	join engine.Join
}

// result is a joined with its value. (It has no methods: they would be compiled for every type.)
type result[R any] struct {
	joined
	value R
}

// future returns the future of d. If d is settled, the future holds the result itself.
func future[R any](d *result[R]) Future[R] {
	if d.join.Settled() {
		return Settled(d.value, d.err)
	}
	d.awaited = &d.join
	return Future[R]{resultAt: &d.value, err: derived{&d.derivation}}
}

func failed[R any](err error) Future[R] {
	var none R
	return Settled(none, err)
}

// partsOf returns the sources of the futures; nil for a future that holds its outcome itself. It
// fails with *FutureError if there are no futures, or one is given twice.
func partsOf[R any](function string, futures []Future[R]) ([]error, error) {
	parts := make([]error, len(futures))
	for i, f := range futures {
		parts[i] = source(f)
	}
	return parts, checkParts(function, parts)
}

func checkParts(function string, parts []error) error {
	if len(parts) == 0 {
		return &FutureError{Function: function, Problem: "there are no futures"}
	}
	places := make(map[error]int, len(parts))
	for i, s := range parts {
		if s == nil {
			continue
		}
		if j, twice := places[s]; twice {
			return &FutureError{Function: function, Problem: fmt.Sprintf("futures %d and %d are the same", j, i)}
		}
		places[s] = i
	}
	return nil
}

// sources returns what futures with the given sources wait for; nil for those that wait for nothing.
func sources(parts ...error) []engine.Awaited {
	all := make([]engine.Awaited, len(parts))
	for i, s := range parts {
		if s != nil {
			all[i] = sourceOf(s)
		}
	}
	return all
}

// continuationFailed returns and logs the error of a continuation that panicked with the value, or
// called runtime.Goexit if the value is nil. source is that of the continuation's future. t is the
// turn in which the continuation ran, or nil if it ran at once.
//
// A future that was ready when it was made does not know its system. Then slog's default logger
// logs the error, on a goroutine of its own, since the continuation may run inside a body.
func continuationFailed(t *engine.Turn, source error, function, value any) error {
	err := &ContinuationError{Function: nameOf(function), Value: value, Stack: debug.Stack()}
	attributes := []any{"continuation", err.Function}
	var request *engine.Request
	if s, ok := source.(requested); ok {
		request = &s.pending.Request
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
