package activeobject

import (
	"context"
	"runtime/debug"
	"slices"

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
// (The chain of filters between a caller and a shared object is from the
// Synchronizer text, which has it from Chain of Responsibility.)
type Interceptor struct {
	// Queue is called on the caller's goroutine before the request arrives. The
	// request goes on with the context that it returns, which must be derived from
	// the given one; if it returns an error instead, the request never arrives, and
	// fails with that.
	Queue func(ctx context.Context, r Intercepted) (context.Context, error)
	// Run is called around the body, on the goroutine that runs it, while nothing
	// that conflicts with it can run. It calls body, at most once, and returns its
	// error, or another one; if it does not call it, the body does not run. An error
	// that is a requeue must be returned as it is. Run is called around every body of a
	// request that is requeued, by the object of each; Queue and Done are called once,
	// by the object that the request was made to.
	Run func(ctx context.Context, r Intercepted, body func() error) error
	// Done is called when the request has ended, with its error: by Call and Try on
	// the caller's goroutine, else on a worker. If its own Queue was not called, or
	// refused the request, it is not called.
	Done func(ctx context.Context, r Intercepted, err error)
}

// Intercepted is a request as an Interceptor sees it.
type Intercepted struct {
	Object    string
	Operation string
	Argument  any
	Client    any // see WithClient
}

// Intercept adds interceptors to an object. Its requests do not take the fast path,
// nor run on the goroutines of other callers. A panic of Queue or Run fails the
// request with a *PanicError; one of Done is logged.
func Intercept(interceptors ...Interceptor) Option {
	return func(s *settings) {
		all := slices.Clone(interceptors) // the caller's may change later
		if s.filters != nil {
			all = slices.Concat(*s.filters, interceptors)
		}
		s.filters = &all
	}
}

// seen returns the request as interceptors see it.
func (op *Operation[T, A, R]) seen(ctx context.Context, o *Object[T], arg A) Intercepted {
	return Intercepted{Object: o.Name(), Operation: op.name, Argument: arg, Client: mailbox.ClientOf(ctx)}
}

// filtered is a request that has passed some interceptors' Queue.
type filtered struct {
	filters []Interceptor // those passed
	ctx     context.Context
	request Intercepted
	log     func(error)
}

// queue calls Queue of one interceptor after another, until one refuses.
func (f *filtered) queue(all []Interceptor) (err error) {
	returned := false
	defer func() {
		if v := recover(); !returned && v != nil {
			err = &mailbox.PanicError{Object: f.request.Object, Operation: f.request.Operation, Value: v, Stack: debug.Stack()}
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

// done calls Done of those that have been passed, the innermost first.
func (f *filtered) done(err error) {
	for i := len(f.filters) - 1; i >= 0; i-- {
		if done := f.filters[i].Done; done != nil {
			f.contain(func() { done(f.ctx, f.request, err) })
		}
	}
}

func (f *filtered) contain(do func()) {
	defer func() {
		if v := recover(); v != nil {
			f.log(&mailbox.PanicError{Object: f.request.Object, Operation: f.request.Operation, Value: v, Stack: debug.Stack()})
		}
	}()
	do()
}

// over is done, on a worker.
type over struct {
	*filtered
	err error
}

// Run implements mailbox.Task.
func (o over) Run() { o.done(o.err) }

// intercepted is enter, of an object with interceptors.
func (op *Operation[T, A, R]) intercepted(ctx context.Context, o *Object[T], arg A, how manner, p **request[T, A, R]) (r R, err error) {
	f := &filtered{ctx: ctx, request: op.seen(ctx, o, arg), log: o.log}
	exit := error(&mailbox.ExitError{Object: o.Name(), Operation: op.name}) // unless something returns
	err = exit
	posted := false
	defer func() {
		if !posted { // else it has not ended before the record's result is there
			f.done(err)
		}
	}()
	if err = f.queue(o.class.filters); err == nil {
		err = f.ctx.Err()
	}
	if err != nil {
		return r, err
	}
	err = exit
	r, err = op.queue(f.ctx, o, arg, "", how, p, f)
	posted = how >= sending && err == nil
	return r, err
}

// body runs the body of a request, with the interceptors around it.
func (op *Operation[T, A, R]) body(o *Object[T], ctx context.Context, req *mailbox.Request, arg A) (r R, err error) {
	if o.class.filters == nil {
		r, err = op.bare(o, ctx, arg)
	} else {
		r, err = op.wrapped(o, ctx, req, arg)
	}
	req.Left() // if it does not return, who catches that says so
	return r, err
}

// wrapped is bare with the interceptors around it.
func (op *Operation[T, A, R]) wrapped(o *Object[T], ctx context.Context, req *mailbox.Request, arg A) (r R, err error) {
	body := func() (err error) {
		r, err = op.bare(o, ctx, arg)
		return err
	}
	at := ctx
	if at == nil {
		at = req.Context()
	}
	seen := op.seen(at, o, arg)
	for i := len(o.class.filters) - 1; i >= 0; i-- {
		if run := o.class.filters[i].Run; run != nil {
			next := body
			body = func() error { return run(at, seen, next) }
		}
	}
	err = body()
	return r, err
}

// bare runs the body of a request.
func (op *Operation[T, A, R]) bare(o *Object[T], ctx context.Context, arg A) (R, error) {
	if op.leaf != nil {
		return op.leaf(o.state, arg)
	}
	return op.blocks(o.state, ctx, arg)
}

// lendable reports whether a body of the operation may run on any goroutine.
func (op *Operation[T, A, R]) lendable(o *Object[T]) bool {
	return op.leaf != nil && !op.own && o.class.filters == nil
}
