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
		return failed[S](&FutureError{Function: "Then", Problem: "the function is nil"})
	}
	d := &result[S]{}
	follows(&d.joined, source(f), do, func() (err error) {
		d.value, err = do(outcome(f))
		return err
	})
	return future(d)
}

// follows makes d follow from the source of a future, or nil: by do, which is called when that is
// settled, and returns the error. If it fails it is the given function that has failed.
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

// OnDone has do called with the outcome of f when that is there, as by Then, and
// returns a future with the same outcome that is ready when do has returned. If do
// panics, that future fails, and the failure is logged.
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

// All returns the future of the results of all the given ones, in their order. It
// waits for each of them, even if some fail; then its error joins theirs, in order
// (see errors.Join), and is nil if there is none. The results of those that did not
// fail are there in any case.
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
	// Each has its own places in the value and errs. The one that counts down to zero has
	// everything before it that was written before the other countings. All counts
	// as well, so that none is through before it has asked them all.
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
	count(nil) // nothing has heard of d yet
	return future(d)
}

// First returns the future of the first of the given ones that succeeds; among
// several that are ready, of the one that comes first in the arguments. If all fail,
// it fails with an error that joins theirs, in order (see errors.Join). The others go
// on: Withdraw them if they are not wanted any more.
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

// race is what First waits for.
type race struct {
	target *joined

	mu            sync.Mutex
	remaining     int // that have not failed
	decided       bool
	errs          []error
	continuations []*engine.Continuation
}

// drop keeps k, to be dropped when the race is over. It reports false if it is.
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

// arrive takes the error of the future i, and reports whether that ends the race. Over is set
// once, under mu, and the caller that is told so has the result to itself, and completes.
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
		k.Drop() // or they would pile up at a future that takes part in many races
	}
	return true
}

// joined is a derivation that follows from others.
type joined struct {
	derivation
	join engine.Join
}

// result is the result of a joined. (It has no methods: they would be compiled for every type.)
type result[R any] struct {
	joined
	value R
}

// future returns the future of d, by value if it is there.
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

// partsOf returns where the outcomes of the futures come from: nil stands for one that was there
// when its future was made.
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

// sources returns what futures wait for.
func sources(parts ...error) []engine.Awaited {
	all := make([]engine.Awaited, len(parts))
	for i, s := range parts {
		if s != nil {
			all[i] = sourceOf(s)
		}
	}
	return all
}

// continuationFailed returns the error of a continuation that panicked with the value, or,
// if that is nil, called runtime.Goexit, and logs it. It was to follow from the source, in
// the turn, or at once if that is nil.
//
// Of a future whose result was there when it was made nothing tells the system; then it
// is slog's default logger that logs, on a goroutine of its own, as a continuation may run
// inside a body.
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
