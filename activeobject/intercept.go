package activeobject

import (
	"context"
	"runtime/debug"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Interceptor sees the requests of an object on their way: a filter in a chain, for
// logging, authorisation, tracing. Each of its functions may be nil.
//
//	Queue ──► waiting queue ──► Run ──► body ──► Run ──► Done
//
// It follows the request and not the goroutine: whichever goroutines they are
// called on, all three get the context that Queue has returned. In Run it is that of
// the body, which carries the chain of calls: Run may call other objects with it. Of
// several interceptors the first is the outermost.
//
// A request that is requeued to another object (RequeueTo) arrives there, and so
// passes the Queue of that object's interceptors too; those of the objects that it
// has left have yet to hear of its end. A requeue within the object is no arrival.
//
// If the request came by message, actor.HeaderOf tells the header from the context, such as
// the trace of the sender.
//
// (The chain of filters between a caller and a shared object is from the
// Synchronizer text, which has it from Chain of Responsibility.)
type Interceptor struct {
	// Queue is called before the request arrives: on the caller's goroutine; or, of a
	// request that was not made by Call, Try or Select and comes from another object,
	// on a worker. The request goes on with the context that it returns, which must be
	// derived from the given one; if it returns an error instead, the request never
	// arrives, and fails with that; one that comes from another object, with a
	// *RequeuedError that has it as its cause. Until it returns the request can be
	// withdrawn, but ends only then.
	Queue func(ctx context.Context, r Intercepted) (context.Context, error)
	// Run is called around the body, on the goroutine that runs it, while nothing
	// that conflicts with it can run. It calls body, at most once, and returns its
	// error, or another one; if it does not call it, the body does not run. An error
	// that is a requeue must be returned as it is. Run is called around every body of a
	// request that is requeued, by the object of each.
	Run func(ctx context.Context, r Intercepted, body func() error) error
	// Done is called when the request has ended, wherever it did, with its error: by
	// Call, Try and Select on the caller's goroutine, else on a worker. It is called
	// once for each time that the request passed: the latest first, and of one object
	// the innermost. If its own Queue was not called, or refused the request, it is
	// not called.
	Done func(ctx context.Context, r Intercepted, err error)
}

// Intercepted is a request as an Interceptor sees it.
type Intercepted struct {
	Object    string
	Operation string
	Argument  any
	Client    any // see WithClient
}

// seen returns the request as interceptors see it.
func (op *operationInfo) seen(ctx context.Context, o *objectHeader, in typed) Intercepted {
	return Intercepted{Object: o.Name(), Operation: op.name, Argument: in.act(getArgument, nil), Client: engine.ClientOf(ctx)}
}

// filtered is a request that has passed some interceptors' Queue, at an object.
type filtered struct {
	before  *filtered     // at the objects that it comes from
	filters []Interceptor // those passed
	ctx     context.Context
	request Intercepted
	at      *objectHeader
}

// queue calls Queue of one interceptor after another, until one refuses.
func (f *filtered) queue(all []Interceptor) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = f.failed(engine.Panicked(recover()))
		}
	}()
	for i, one := range all {
		if one.Queue != nil {
			ctx, err := one.Queue(f.ctx, f.request)
			if err != nil {
				returned = true
				return err
			}
			if ctx == nil {
				panic("an interceptor's Queue has returned neither a context nor an error")
			}
			f.ctx = ctx
		}
		f.filters = all[:i+1]
	}
	returned = true
	return nil
}

// done calls Done of the interceptors that have been passed, the latest first. F may be nil.
func (f *filtered) done(err error) {
	for ; f != nil; f = f.before {
		for i := len(f.filters) - 1; i >= 0; i-- {
			if done := f.filters[i].Done; done != nil {
				f.contain(func() { done(f.ctx, f.request, err) })
			}
		}
	}
}

// admit has the request, which comes from another object for a turn, pass the interceptors of
// that one, and returns the context with which it goes on, tamed; nil if it fails.
func (c *request) admit(ctx context.Context, t turn) (tame context.Context, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := engine.Panicked(recover()); v != nil { // of the context: see queue
			tame, err = nil, &mailbox.ContextError{Request: t.o.Name() + "." + t.op.name, Value: v, Stack: debug.Stack()}
		}
	}()
	f := &filtered{before: c.filtered(), ctx: ctx, request: t.op.seen(ctx, t.o, t.in), at: t.o}
	c.with().filtered = f // now, so that interceptors that have been passed hear of a refusal by the next
	err = f.queue(t.o.config.filters)
	if f.ctx.Done() != nil {
		c.pooled = false // the watch over its context may act late
	}
	if err == nil {
		tame = engine.Tame(f.ctx)
	}
	returned = true
	return tame, err
}

// failed returns the error of an interceptor's Queue or Done that panicked with the value, or,
// if that is nil, has called runtime.Goexit; and reports it.
func (f *filtered) failed(value any) (err error) {
	if value == nil {
		err = &mailbox.ExitError{Object: f.request.Object, Operation: f.request.Operation}
	} else {
		err = &mailbox.PanicError{Object: f.request.Object, Operation: f.request.Operation, Value: value, Stack: debug.Stack()}
	}
	f.at.report(f.request.Operation, 0, err)
	return err
}

func (f *filtered) contain(do func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := engine.Panicked(recover()); v != nil {
			f.failed(v)
		}
	}()
	do()
	returned = true
}

// doneTask is filtered.done, on a worker.
type doneTask struct {
	*filtered
	err error
}

// Run implements engine.Task.
func (o doneTask) Run() { o.done(o.err) }

// pass calls Queue of the interceptors of an object to which a request is made.
func (op *operationInfo) pass(ctx context.Context, o *objectHeader, in typed) (_ *filtered, err error) {
	f := &filtered{ctx: ctx, request: op.seen(ctx, o, in), at: o}
	err = &mailbox.ExitError{Object: o.Name(), Operation: op.name} // unless something returns
	passed := false
	defer func() {
		if !passed { // else its record says when it has ended
			f.done(err)
		}
	}()
	if err = f.queue(o.config.filters); err == nil {
		err = f.ctx.Err()
	}
	passed = err == nil
	return f, err
}

// applyAround runs the body of the turn with the interceptors around it, and audited.
func (c *request) applyAround(t turn, ctx context.Context) error {
	body := func() error { return c.apply(t.in, t.o, ctx) }
	if t.o.config.audit != nil && !t.op.changed {
		body = func() error { return c.applyAudited(t, ctx) }
	}
	if t.o.config.filters == nil {
		return body()
	}
	seen := t.op.seen(ctx, t.o, t.in)
	for i := len(t.o.config.filters) - 1; i >= 0; i-- {
		if run := t.o.config.filters[i].Run; run != nil {
			next := body
			body = func() error { return run(ctx, seen, next) }
		}
	}
	return body()
}
