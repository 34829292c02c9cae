package objecttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// Fake is a client proxy without an object: it answers as the test says, and keeps
// the requests. It may be used from any goroutine.
//
// Each request takes the next answer of those that Return, Fail, Answer and Hold have
// lined up; after these, that of Always. A request for which there is none fails the
// test, and with ErrUnexpected; so does an answer that no request has taken by the end
// of the test. As with an object, a request whose context has ended is none.
type Fake[A, R any] struct {
	name string
	log  *testLog
	t    testing.TB

	mu     sync.Mutex
	script []answer[A, R]
	always func(context.Context, A) (R, error)
	made   []Made[A]
}

// Made is a request that was made to a Fake.
type Made[A any] struct {
	How      string // Call, Try, Send or Tell
	Context  context.Context
	Argument A
}

// answer is what is to become of one request.
type answer[A, R any] struct {
	now   func(context.Context, A) (R, error)
	later *Held[A, R]
}

// ErrUnexpected fails a request for which a Fake has no answer.
var ErrUnexpected = errors.New("objecttest: the fake has no answer")

// NewFake returns a fake that expects no request. The name is for the test's log.
func NewFake[A, R any](t testing.TB, name string) *Fake[A, R] {
	f := &Fake[A, R]{name: name, t: t, log: &testLog{t: t}}
	t.Cleanup(func() {
		f.mu.Lock()
		left := len(f.script)
		f.mu.Unlock()
		if left > 0 {
			f.log.errorf("objecttest: %s: %d answers that no request has taken", name, left)
		}
		f.log.end()
	})
	return f
}

// Return lines up a result. It returns the fake, as the others do.
func (f *Fake[A, R]) Return(result R) *Fake[A, R] {
	return f.Answer(func(context.Context, A) (R, error) { return result, nil })
}

// Fail lines up an error. By Tell it is returned too, as if the request had not been
// taken.
func (f *Fake[A, R]) Fail(err error) *Fake[A, R] {
	return f.Answer(func(context.Context, A) (none R, _ error) { return none, err })
}

// Answer lines up a function that makes the answer, on the goroutine of the caller. It
// should not wait; Hold is for that.
func (f *Fake[A, R]) Answer(do func(context.Context, A) (R, error)) *Fake[A, R] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, answer[A, R]{now: do})
	return f
}

// Always says how requests are answered for which nothing is lined up.
func (f *Fake[A, R]) Always(do func(context.Context, A) (R, error)) *Fake[A, R] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always = do
	return f
}

// Hold lines up a wait: the request waits until the test says what becomes of it. A
// Call blocks meanwhile, the future of a Send is not ready, and a Try is refused. If
// the request's context ends, or its future is withdrawn, it is over as it would be at
// an object.
func (f *Fake[A, R]) Hold() *Held[A, R] {
	h := &Held[A, R]{fake: f, promise: actor.NewPromise[R](), arrived: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, answer[A, R]{later: h})
	return h
}

// Made returns the requests so far, in the order in which they came.
func (f *Fake[A, R]) Made() []Made[A] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

// Arguments returns the arguments of the requests so far, in the order in which they
// came.
func (f *Fake[A, R]) Arguments() []A {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]A, len(f.made))
	for i, m := range f.made {
		all[i] = m.Argument
	}
	return all
}

// Call implements activeobject.Proxy.
func (f *Fake[A, R]) Call(ctx context.Context, arg A) (R, error) {
	a, err := f.take(ctx, "Call", arg)
	switch {
	case err != nil:
		var none R
		return none, err
	case a.later == nil:
		return a.now(ctx, arg)
	}
	defer a.later.heed(ctx)()
	// It ends with the context, but by way of the promise, which ends but once.
	return a.later.promise.Future().Await(context.WithoutCancel(ctx))
}

// Do implements activeobject.Proxy: it is a Call.
func (f *Fake[A, R]) Do(ctx context.Context, arg A) error {
	_, err := f.Call(ctx, arg)
	return err
}

// Try implements activeobject.Proxy.
func (f *Fake[A, R]) Try(ctx context.Context, arg A) (none R, err error) {
	a, err := f.take(ctx, "Try", arg)
	switch {
	case err != nil:
		return none, err
	case a.later == nil:
		return a.now(ctx, arg)
	}
	err = &mailbox.RefusedError{Object: f.name, Operation: "request", Guard: "let go by the test"}
	a.later.promise.Settle(none, err)
	return none, err
}

// Send implements activeobject.Proxy.
func (f *Fake[A, R]) Send(ctx context.Context, arg A) activeobject.Future[R] {
	a, err := f.take(ctx, "Send", arg)
	switch {
	case err != nil:
		var none R
		return actor.Settled(none, err)
	case a.later == nil:
		return actor.Settled(a.now(ctx, arg))
	}
	a.later.endsWith(ctx)
	return a.later.promise.Future()
}

// Tell implements activeobject.Proxy.
func (f *Fake[A, R]) Tell(ctx context.Context, arg A) error {
	a, err := f.take(ctx, "Tell", arg)
	switch {
	case err != nil:
	case a.later == nil:
		_, err = a.now(ctx, arg)
	default:
		a.later.endsWith(ctx)
	}
	return err
}

// take notes a request, and takes the answer for it.
func (f *Fake[A, R]) take(ctx context.Context, how string, arg A) (a answer[A, R], err error) {
	if err := ctx.Err(); err != nil {
		return a, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := Made[A]{How: how, Context: ctx, Argument: arg}
	f.made = append(f.made, m)
	switch {
	case len(f.script) > 0:
		a, f.script = f.script[0], f.script[1:]
	case f.always != nil:
		a.now = f.always
	default:
		f.log.errorf("objecttest: %s: no answer for request no. %d, %s(%v)", f.name, len(f.made), how, arg)
		return a, ErrUnexpected
	}
	if a.later != nil {
		a.later.made = m
		close(a.later.arrived)
	}
	return a, nil
}

// Held is a request to a Fake that waits, or will when it is made.
type Held[A, R any] struct {
	fake    *Fake[A, R]
	promise *actor.Promise[R]
	arrived chan struct{}
	made    Made[A] // once it has arrived
}

// Made waits until the request has been made, and returns it. If that takes too long
// the test fails, as with Idle.
func (h *Held[A, R]) Made() Made[A] {
	h.fake.t.Helper()
	patience := patience(h.fake.t)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-h.arrived:
	case <-timer.C:
		h.fake.t.Fatalf("objecttest: %s: the request that is to be held has not been made after %v", h.fake.name, patience)
	}
	return h.made
}

// Return ends the wait with a result. It reports false if it was over: settled before,
// or given up by its caller, who has an error then. A request that has not been made
// yet will not wait.
func (h *Held[A, R]) Return(result R) bool { return h.promise.Settle(result, nil) }

// Fail is Return with an error.
func (h *Held[A, R]) Fail(err error) bool {
	var none R
	return h.promise.Settle(none, err)
}

// endsWith has the wait end when the context does, unless it has by then.
func (h *Held[A, R]) endsWith(ctx context.Context) {
	stop := h.heed(ctx)
	h.promise.Future().OnDone(func(R, error) { stop() })
}

// heed ends the wait when the context ends.
func (h *Held[A, R]) heed(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { h.Fail(ctx.Err()) })
}
