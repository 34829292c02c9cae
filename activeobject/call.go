package activeobject

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Future is the result of a request that was sent: there already, or to come.
type Future[R any] = actor.Future[R]

// Call runs the operation at the object and returns its result. An entry waits
// until its guard holds. If ctx ends while the request waits, it leaves the
// queue, never runs, and Call returns the context's error at once; once it runs,
// Call waits for its result.
//
// Errors other than the body's own: the context's; one that matches ErrStopped;
// *PanicError and *GuardError; *DeadlockError if the object waits for the caller;
// *TypeError. Only after *PanicError and *ExitError has the body run.
func (op *Operation[T, A, R]) Call(ctx context.Context, o *Object[T], arg A) (R, error) {
	if ctx.Err() == nil && o.box.Swap(op.idle, op.held) {
		if r, err, falsePart := op.run(ctx, o, arg); falsePart == "" {
			return r, err
		} else {
			return op.wait(ctx, o, arg, falsePart, false)
		}
	}
	return op.call(ctx, o, arg, false)
}

// Try is Call for who does not want to wait: neither for a guard nor behind a
// request that comes first. It may still wait until the object can decide, that
// is for what runs; so it takes a context. If the request would have to wait it
// fails with a *RefusedError, which matches ErrRefused and carries the reason.
func (op *Operation[T, A, R]) Try(ctx context.Context, o *Object[T], arg A) (R, error) {
	return op.call(ctx, o, arg, true)
}

// Send hands in the request and returns the future of its result. If ctx ends
// while the request waits, it leaves the queue, never runs, and the future fails
// with the context's error. A body that cannot start at once, or that may block,
// runs on another goroutine.
func (op *Operation[T, A, R]) Send(ctx context.Context, o *Object[T], arg A) Future[R] {
	r, _, err, p := op.post(ctx, o, arg, false, nil)
	if p != nil {
		return actor.Promised(&p.Pending)
	}
	return actor.Settled(r, err)
}

// Tell hands in the request and forgets it: its result, or that it has failed,
// is not reported. An error means that the request was not taken, and has not
// run nor ever will: the context had ended, the object stopped (ErrStopped), or it
// is of another type (*TypeError).
func (op *Operation[T, A, R]) Tell(ctx context.Context, o *Object[T], arg A) error {
	_, ran, err, p := op.post(ctx, o, arg, true, nil)
	if ran || p != nil {
		return nil
	}
	return err
}

// TypeError says that an operation was asked of an object of another type.
// Nothing has happened.
type TypeError struct {
	Object    string
	Type      string // of the object
	Operation string
	Declared  string // the type that the operation belongs to
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("sluice: %s is of type %q; operation %q belongs to another type %q", e.Object, e.Type, e.Operation, e.Declared)
}

func (op *Operation[T, A, R]) typeError(o *Object[T]) error {
	return &TypeError{Object: o.Name(), Type: o.typ.name, Operation: op.name, Declared: op.typ.name}
}

// How far run has come.
const (
	asking = iota
	running
	releasing
	finished
)

// run carries out a leaf operation on the calling goroutine, which has taken the
// object, and gives the object back; or, if the guard is false, it returns the
// name of the part that is and keeps the object.
func (op *Operation[T, A, R]) run(ctx context.Context, o *Object[T], arg A) (r R, err error, falsePart string) {
	at := asking
	defer func() {
		if at != finished {
			falsePart = op.caught(o, at, recover(), &err)
		}
	}()
	if op.plain != nil {
		if !op.plain(o.state) {
			at = finished
			return r, nil, op.guard
		}
	} else if op.guard != "" {
		if falsePart = op.guarded.Ask(o.state, arg); falsePart != "" {
			at = finished
			return r, nil, falsePart
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	at = releasing
	if !o.box.Swap(op.held, op.idle) {
		o.box.Release(op.index, op.changes, mailbox.ChainOf(ctx) == nil, false)
	}
	at = finished
	return r, err, ""
}

// caught cleans up after a panic or a runtime.Goexit in run. Whatever it was, the
// object goes on, and the goroutine that may be dying serves nobody.
func (op *Operation[T, A, R]) caught(o *Object[T], at int, value any, err *error) (falsePart string) {
	switch at {
	case asking:
		if value == nil {
			o.box.Release(op.index, false, false, true)
			return ""
		}
		// The kernel shall ask again, and fail whoever else is guarded too.
		return unknownPart
	case running:
		*err = &mailbox.PanicError{Object: o.Name(), Operation: op.name, Value: value, Stack: mailbox.Stack()}
	}
	o.box.Release(op.index, op.changes, false, true)
	return ""
}

// unknownPart says that the guard could not be asked: the kernel has to.
const unknownPart = "\x00"

// newRequest makes the record of a request.
func (op *Operation[T, A, R]) newRequest(waits bool) *request[T, A, R] {
	c := &request[T, A, R]{op: op}
	c.Init(c)
	c.Op, c.Leaf = op.index, op.leaf != nil
	if waits {
		c.ForCall()
	}
	return c
}

// request is the record of a request that has to wait, or whose body may.
type request[T, A, R any] struct {
	actor.Pending[R]
	op  *Operation[T, A, R]
	o   *Object[T]
	ctx context.Context // of a body that takes one
	arg A

	reply func(R, error) // for a message that expects one
}

// Run implements mailbox.Body.
func (c *request[T, A, R]) Run() {
	defer func() {
		if v := recover(); v != nil {
			c.Err = &mailbox.PanicError{Object: c.o.Name(), Operation: c.op.name, Value: v, Stack: mailbox.Stack()}
		}
	}()
	if c.op.leaf != nil {
		c.Result, c.Err = c.op.leaf(c.o.state, c.arg)
	} else {
		c.Result, c.Err = c.op.blocks(c.o.state, c.ctx, c.arg)
	}
}

// Recycle implements mailbox.Body: the request was told, and has ended.
func (c *request[T, A, R]) Recycle() {
	if c.reply != nil {
		c.reply(c.Result, c.Err)
	}
}

// Fail implements mailbox.Body.
func (c *request[T, A, R]) Fail(err error) { c.Err = c.o.explained(err) }

func (c *request[T, A, R]) askGuard() string { return c.op.guarded.Ask(c.o.state, c.arg) }

// take returns a record for a call. Records are pooled, but not across the wall
// of a testing/synctest bubble.
func (op *Operation[T, A, R]) take(now time.Duration) *request[T, A, R] {
	if mailbox.Bubbled(now) {
		return op.newRequest(true)
	}
	return op.records.Get().(*request[T, A, R])
}

// put takes back a record after a call. It pins neither argument nor result.
func (op *Operation[T, A, R]) put(c *request[T, A, R], now time.Duration) {
	if mailbox.Bubbled(now) {
		return
	}
	var none A
	var zero R
	c.arg, c.Result, c.Err, c.o, c.ctx, c.Try = none, zero, nil, nil, nil, false
	op.records.Put(c)
}

// call is the way of a Call or a Try that could not take the object at once.
func (op *Operation[T, A, R]) call(ctx context.Context, o *Object[T], arg A, try bool) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if o.typ != op.typ {
		return none, op.typeError(o)
	}
	if op.leaf != nil && o.box.Take(op.index) {
		r, err, falsePart := op.run(ctx, o, arg)
		switch {
		case falsePart == "":
			return r, err
		case try && falsePart != unknownPart:
			o.box.Release(op.index, false, mailbox.ChainOf(ctx) == nil, false)
			return none, o.explained(&kernel.Refused{Operation: op.name, Guard: falsePart})
		}
		return op.wait(ctx, o, arg, falsePart, try)
	}
	return op.wait(ctx, o, arg, "", try)
}

// wait is the way of a Call or a Try through the kernel. If falsePart is not
// empty the caller has taken the object, and found the guard false.
func (op *Operation[T, A, R]) wait(ctx context.Context, o *Object[T], arg A, falsePart string, try bool) (R, error) {
	now := mailbox.Now()
	c := op.take(now)
	c.o, c.arg, c.Try = o, arg, try
	if op.leaf == nil {
		c.ctx = c.Inside(ctx, &o.box)
	}
	switch falsePart {
	case "":
		o.box.Call(ctx, &c.Request, now)
	case unknownPart:
		o.box.CallHeld(ctx, &c.Request, "", now)
	default:
		o.box.CallHeld(ctx, &c.Request, falsePart, now)
	}
	r, err := c.Result, c.Err
	op.put(c, now)
	return r, err
}

// post is the way of a Send or a Tell. It returns the record of a request that
// is on its way, the result of one that ran at once, or why it was not taken.
func (op *Operation[T, A, R]) post(ctx context.Context, o *Object[T], arg A, told bool, reply func(R, error)) (r R, ran bool, err error, p *request[T, A, R]) {
	if err := ctx.Err(); err != nil {
		return r, false, err, nil
	}
	if o.typ != op.typ {
		return r, false, op.typeError(o), nil
	}
	falsePart, took := "", op.leaf != nil && (o.box.Swap(op.idle, op.held) || o.box.Take(op.index))
	if took {
		if r, err, falsePart = op.run(ctx, o, arg); falsePart == "" {
			return r, true, err, nil
		}
	}
	c := op.newRequest(false)
	c.o, c.arg, c.Told, c.reply = o, arg, told, reply
	if op.leaf == nil {
		c.ctx = c.Inside(ctx, &o.box)
	}
	now := mailbox.Now()
	switch {
	case !took:
		err = o.box.Post(ctx, &c.Request, now)
	case falsePart == unknownPart:
		err = o.box.PostHeld(ctx, &c.Request, "", now)
	default:
		err = o.box.PostHeld(ctx, &c.Request, falsePart, now)
	}
	if err != nil {
		return r, false, err, nil
	}
	return r, false, nil, c
}

// explained adds the name of the object to a refusal of the kernel.
func (o *Object[T]) explained(err error) error {
	if r, ok := err.(*kernel.Refused); ok {
		return &mailbox.RefusedError{Object: o.Name(), Reason: *r}
	}
	return err
}
