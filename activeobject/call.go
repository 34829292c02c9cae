package activeobject

import (
	"context"
	"fmt"
	"math/bits"
	"runtime/debug"
	"time"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Future is the result of a request that was sent: there already, or to come.
type Future[R any] = actor.Future[R]

// Ticket is a Future for one: its result is handed out once.
type Ticket[R any] = actor.Ticket[R]

// Call runs the operation at the object and returns its result. An entry waits
// until its guard holds. If ctx ends while the request waits, it leaves the
// queue, never runs, and Call returns the context's error at once; once it runs,
// Call waits for its result.
//
// Errors other than the body's own: the context's; one that matches ErrStopped, or,
// of a bounded queue, ErrFull; *GuardError, *PolicyError and *KeyError, of what was
// asked about the request; *DeadlockError if the object waits for the caller;
// *TypeError. After these the body has not run; after *PanicError and *ExitError it
// has, and after *RequeuedError and *RequeueError some have.
func (op *Operation[T, A, R]) Call(ctx context.Context, o *Object[T], arg A) (r R, err error) {
	// This is perform, written out, for an object that is idle; its price is what
	// a guarded call costs over a mutex. The deferred function captures only what
	// it needs to clean up: every word more costs.
	w := o.box.Word.Load()
	if ctx.Err() != nil || w&^mailbox.Parked != op.idle || !o.box.Word.CompareAndSwap(w, w|op.mark) {
		return op.enter(ctx, o, arg, calling, nil)
	}
	at := asking
	defer func() {
		if at != finished {
			op.caught(o, at, recover(), &err)
		}
	}()
	if op.plain != nil {
		if !op.plain(o.state) {
			at = finished // with the object, which queue gives back
			return op.queue(ctx, o, arg, op.guard, calling, nil, nil)
		}
	} else if op.guard != "" {
		if falsePart := op.guarded.Ask(o.state, arg); falsePart != "" {
			at = finished
			return op.queue(ctx, o, arg, falsePart, calling, nil, nil)
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	if err != nil {
		if h, ok := err.(hopper); ok {
			at = finished // with the object, which onward gives back
			return op.onward(ctx, o, arg, w, h, calling, nil)
		}
	}
	at = releasing
	watched := nobody
	if w != op.idle && op.changed {
		// Others wait. If they all wait for one guard, it is at hand.
		switch {
		case o.watch == nil:
			watched = unasked
		case o.watch(o.state):
			watched = open
		default:
			watched = closed
		}
	}
	if watched > 0 || !o.box.Word.CompareAndSwap(w|op.mark, w) {
		op.release(ctx, o, arg, watched, &at)
	}
	at = finished
	return r, err
}

// What is known of the guards that others wait for.
const (
	closed  = iota - 1 // the only one is false
	nobody             // none: nobody has been waiting
	open               // the only one holds
	unasked            // nothing
)

// Try is Call for who does not want to wait: neither for a guard nor behind a
// request that comes first. It may still wait until the object can decide, that
// is for what runs; so it takes a context. If the request would have to wait it
// fails with a *RefusedError, which matches ErrRefused and carries the reason.
func (op *Operation[T, A, R]) Try(ctx context.Context, o *Object[T], arg A) (R, error) {
	return op.enter(ctx, o, arg, trying, nil)
}

// Send hands in the request and returns the future of its result. If ctx ends
// while the request waits, it leaves the queue, never runs, and the future fails
// with the context's error. A body that cannot start at once, or that may block,
// runs on another goroutine.
func (op *Operation[T, A, R]) Send(ctx context.Context, o *Object[T], arg A) Future[R] {
	var p *request[T, A, R]
	r, err := op.start(ctx, o, arg, sending, &p)
	if p != nil {
		return actor.Promised(&p.Pending)
	}
	return actor.Settled(r, err)
}

// Begin is Send for a result that is awaited once: it returns a ticket for it,
// which costs no allocation if ctx cannot end, whether the request has to wait or
// not. (A body that takes a context costs that context.)
func (op *Operation[T, A, R]) Begin(ctx context.Context, o *Object[T], arg A) Ticket[R] {
	var p *request[T, A, R]
	r, err := op.start(ctx, o, arg, beginning, &p)
	if p != nil {
		return actor.Ticketed(&p.Pending)
	}
	return actor.Issued(r, err)
}

// Tell hands in the request and forgets it: its result is not reported, and a
// failure (a panic, or the object's stop) is logged by the system only. An error
// means that the request was not taken, and has not run nor ever will: the context
// had ended, the object stopped (ErrStopped), or it is of another type
// (*TypeError).
func (op *Operation[T, A, R]) Tell(ctx context.Context, o *Object[T], arg A) error {
	_, err := op.start(ctx, o, arg, telling, nil)
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

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("sluice: %s is of type %q; operation %q belongs to another type %q", e.Object, e.Type, e.Operation, e.Declared)
}

// foreign returns the error for an object that does not have the operation.
func (op *Operation[T, A, R]) foreign(o *Object[T]) error {
	return &TypeError{Object: o.Name(), Type: o.class.typ.name, Operation: op.name, Declared: op.typ.name}
}

// manner is how a request is made.
type manner uint8

const (
	calling manner = iota
	trying
	hopping    // calling, for a request that has been requeued from another object; its errors are undone, unless the body has run; see requeue.go
	attempting // trying, for select.go: its errors are undone likewise
	selecting  // calling, only if the object is free and the guard holds; see select.go
	sending
	beginning // sending, for a ticket
	telling
	answering // telling, with a reply; see message.go
)

// undone is the error of an attempt whose body has not run.
type undone struct{ error }

// undone marks the error of a request whose body has not run.
func (how manner) undone(err error) error {
	if (how == attempting || how == hopping) && err != nil {
		return undone{err}
	}
	return err
}

// How far perform has come.
const (
	finished = iota
	asking
	running
	releasing
)

// start is enter, for an object that is probably idle.
func (op *Operation[T, A, R]) start(ctx context.Context, o *Object[T], arg A, how manner, p **request[T, A, R]) (R, error) {
	w := o.box.Word.Load()
	if ctx.Err() != nil || w&^mailbox.Parked != op.idle || !o.box.Word.CompareAndSwap(w, w|op.mark) {
		return op.enter(ctx, o, arg, how, p)
	}
	return op.perform(ctx, o, arg, w, how, p)
}

// enter is the way of every request but the Call that finds the object idle. Of
// a request that was sent or begun and is still on its way the record goes to p; of one
// that is to be answered p holds the record, and nil if that is still on its way.
func (op *Operation[T, A, R]) enter(ctx context.Context, o *Object[T], arg A, how manner, p **request[T, A, R]) (r R, err error) {
	if err := ctx.Err(); err != nil {
		return r, how.undone(err)
	}
	switch {
	case o.class.typ != op.typ:
		if heir := op.heir(o.class.typ); heir != nil {
			return heir.start(ctx, o, arg, how, p)
		}
		return r, op.foreign(o)
	case o.class.filters != nil:
		return op.intercepted(ctx, o, arg, how, p)
	}
	if op.leaf != nil && op.looks&guards.AtWaiting == 0 && !op.headOfLine {
		if err := op.checkKey(o, arg); err != nil {
			return r, err
		}
		if w, ok := o.box.Take(op.mark, how < sending); ok {
			if err := ctx.Err(); err != nil { // it ended while we spun
				op.putBack(o)
				return r, how.undone(err)
			}
			return op.perform(ctx, o, arg, w, how, p)
		}
	}
	return op.queue(ctx, o, arg, "", how, p, nil)
}

// perform carries out a leaf operation on the calling goroutine, which has taken
// the object, found the word w, and now gives the object back; or, if the guard
// is false, queues the request.
func (op *Operation[T, A, R]) perform(ctx context.Context, o *Object[T], arg A, w uint64, how manner, p **request[T, A, R]) (r R, err error) {
	at := asking
	counted := o.class.config.Counted
	defer func() {
		if at != finished {
			op.caught(o, at, recover(), &err)
			if how == telling {
				o.unheard(err)
				err = nil
			}
		}
	}()
	if op.guard != "" {
		if counted {
			o.box.Count(op.index, false, 1)
		}
		if falsePart := op.ask(o, arg); falsePart != "" {
			at = finished
			switch how {
			case selecting:
				op.putBack(o)
				return r, errNotNow
			case trying, attempting:
				op.putBack(o)
				return r, how.undone(mailbox.Named(o.Name(), &kernel.Refused{Operation: op.name, Guard: falsePart}))
			}
			return op.queue(ctx, o, arg, falsePart, how, p, nil)
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	if err != nil {
		if h, ok := err.(hopper); ok {
			at = finished
			return op.onward(ctx, o, arg, w, h, how, p)
		}
	}
	at = releasing
	if w != op.idle || !o.box.Word.CompareAndSwap(w|op.mark, w) {
		op.release(ctx, o, arg, unasked, &at)
	}
	at = finished
	if how == telling {
		err = nil
	}
	return r, err
}

// putBack gives the object back to whom nothing has happened.
func (op *Operation[T, A, R]) putBack(o *Object[T]) {
	l := mailbox.Leaving{Op: op.index}
	if !o.box.Look(&l) {
		o.box.Yield(l)
	}
}

// release gives the object back when that takes more than a swap. It sets at to
// finished as soon as the object is no longer the caller's to clean up after.
func (op *Operation[T, A, R]) release(ctx context.Context, o *Object[T], arg A, watched int, at *int) {
	l := mailbox.Leaving{Op: op.index, Changed: op.changed, Lend: mailbox.ChainOf(ctx) == nil}
	if watched == open || watched == closed {
		l.Asked = o.box.Watched()
		if l.Open = -1; watched == open {
			l.Open = bits.TrailingZeros64(l.Asked)
		}
	}
	if op.opens != nil {
		l.Opens = op.opener(o, arg)
	}
	gone := o.box.Look(&l)
	if gone || !op.changed { // or else the kernel is told that it has ended
		o.box.Count(op.index, true, 0)
	}
	*at = finished
	if !gone {
		o.box.Yield(l)
	}
}

// ask asks the guard, for the goroutine that has taken the object.
func (op *Operation[T, A, R]) ask(o *Object[T], arg A) (falsePart string) {
	if op.plain != nil {
		if op.plain(o.state) {
			return ""
		}
		return op.guard
	}
	return op.guarded.Ask(o.state, arg)
}

// caught cleans up after a panic or a runtime.Goexit in Call or perform, which still
// has the object. Whatever it was, the object goes on, and the goroutine, which
// may be dying, serves nobody.
func (op *Operation[T, A, R]) caught(o *Object[T], at int, value any, err *error) {
	switch {
	case value == nil:
	case at == asking:
		// Whoever else waits for this guard is to fail too: the kernel finds
		// out, as it asks again.
		*err = o.guardError(op.index, value)
	case at == running:
		if !op.changed { // which the kernel takes for one that has not run
			o.box.Count(op.index, true, 0)
		}
		*err = &mailbox.PanicError{Object: o.Name(), Operation: op.name, Value: value, Stack: debug.Stack()}
	}
	o.box.Yield(mailbox.Leaving{Op: op.index, Changed: op.changed})
}

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

	reply    func(R, error) // for a message that expects one
	filtered *filtered      // if it was posted to an object with interceptors
	pooled   bool           // back to its pool when nobody needs it any more
	begun    bool           // its body has begun to run
}

// Run implements mailbox.Body.
func (c *request[T, A, R]) Run() {
	returned := false
	defer func() {
		if !returned {
			c.caught(recover())
		}
	}()
	c.begun = true
	r, err := c.op.body(c.o, c.ctx, &c.Request, c.arg)
	if err != nil {
		if err = requeued(err, &c.Request, c, c.o); err == nil {
			returned = true
			return // for another turn
		}
	}
	c.Deliver(r, err)
	returned = true
}

// Deliver keeps the result.
func (c *request[T, A, R]) Deliver(r R, err error) {
	c.Result, c.Err = r, err
	if f := c.filtered; f != nil {
		c.o.class.system.Workers().Dispatch(over{f, err})
	}
}

// caught cleans up after a body that panicked, or, if there is no value, left
// through runtime.Goexit.
func (c *request[T, A, R]) caught(value any) {
	c.Left()
	if value == nil {
		c.Exit()
		return
	}
	var none R
	c.Deliver(none, &mailbox.PanicError{Object: c.o.Name(), Operation: c.op.name, Value: value, Stack: debug.Stack()})
}

// Recycle implements mailbox.Body: the request was told, and has ended; or its
// ticket has been redeemed.
func (c *request[T, A, R]) Recycle() {
	switch {
	case c.Ticket:
	case c.reply != nil:
		c.reply(c.Result, c.Err)
		return
	default:
		c.o.unheard(c.Err)
	}
	c.free()
}

// free puts the record back into its pool, if it is from one.
func (c *request[T, A, R]) free() {
	pool := &c.op.tells
	switch {
	case !c.pooled:
		return
	case c.Ticket:
		pool = &c.op.records
	}
	c.clear()
	pool.Put(c)
}

// Fail implements mailbox.Body.
func (c *request[T, A, R]) Fail(err error) {
	var none R
	c.Deliver(none, err)
}

// Argument implements mailbox.Body.
func (c *request[T, A, R]) Argument() any { return c.arg }

// AskGuard implements mailbox.Body.
func (c *request[T, A, R]) AskGuard() string { return c.op.guarded.Ask(c.o.state, c.arg) }

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
	c.clear()
	op.records.Put(c)
}

// clear lets go of what belonged to a request that has ended.
func (c *request[T, A, R]) clear() {
	var none A
	var zero R
	c.arg, c.Result, c.Err, c.o, c.ctx, c.Try = none, zero, nil, nil, nil, false
	c.Ticket, c.pooled, c.filtered, c.begun = false, false, nil, false
	c.Op, c.Key = c.op.index, nil // it may have been requeued
	c.Forget()
}

// record returns the record of a request that is made in the given manner.
func (op *Operation[T, A, R]) record(ctx context.Context, o *Object[T], arg A, how manner, now time.Duration, p **request[T, A, R]) (c *request[T, A, R]) {
	switch {
	case how < sending:
		c = op.take(now)
	case how == answering:
		c, *p = *p, nil // made for the message, with its reply
	case how == telling && ctx.Done() == nil:
		// Nobody has a hold on it: no future, and no watch over the context. And
		// it has no channel that a bubble could mind.
		c = op.tells.Get().(*request[T, A, R])
		c.pooled = true
	case how == beginning:
		// The watch over a context may act late, so it must not meet a record in
		// its next life.
		if ctx.Done() == nil {
			c = op.take(now)
			c.pooled = !mailbox.Bubbled(now)
		} else {
			c = op.newRequest(true)
		}
		c.Ticket = true
	default:
		c = op.newRequest(false)
	}
	c.o, c.arg = o, arg
	c.Leaf = op.lendable(o)
	c.Told, c.Try, c.Patient = how >= telling, how == trying || how == attempting, how == calling
	return c
}

// queue is the way through the kernel. If falsePart is not empty the caller has
// taken the object, and found the guard false; the object is given back.
func (op *Operation[T, A, R]) queue(ctx context.Context, o *Object[T], arg A, falsePart string, how manner, p **request[T, A, R], f *filtered) (r R, err error) {
	now := mailbox.Now()
	var key any
	if op.key != nil {
		if key, err = op.keyHeld(o, arg, falsePart != ""); err != nil {
			return r, err
		}
	}
	c := op.record(ctx, o, arg, how, now, p)
	c.Key = key
	op.enterChain(ctx, c)
	if how >= sending {
		c.filtered = f
		if falsePart == "" {
			err = o.box.Post(ctx, &c.Request, now)
		} else {
			o.box.PostHeld(ctx, &c.Request, falsePart, now)
		}
		c.posted(how, err, p)
		return r, err
	}
	returned := false
	defer func() {
		if !returned { // a guard that was asked here has called runtime.Goexit
			c.Forsake()
		}
	}()
	if falsePart == "" {
		o.box.Call(ctx, &c.Request, now)
	} else {
		o.box.CallHeld(ctx, &c.Request, falsePart, now)
	}
	returned = true
	if r, err = c.Result, c.Err; !c.begun {
		err = how.undone(err)
	}
	op.put(c, now)
	return r, err
}

// posted gives the record of a request that has been posted, or with err was not
// taken, to whom it belongs now.
func (c *request[T, A, R]) posted(how manner, err error, p **request[T, A, R]) {
	switch {
	case (how == sending || how == beginning) && err == nil || how == answering && err != nil:
		*p = c
	case err != nil:
		c.free()
	}
}

// enterChain gives a body that takes a context, and interceptors, one that knows
// where it is.
func (op *Operation[T, A, R]) enterChain(ctx context.Context, c *request[T, A, R]) {
	if op.leaf == nil || c.o.class.filters != nil {
		c.ctx = c.Inside(ctx, &c.o.box)
	}
}

// unheard logs that a request failed which nobody waits for. An error that its
// body returned is a result, and forgotten with it.
func (o *Object[T]) unheard(err error) {
	cause := err
	if r, ok := err.(*mailbox.RequeuedError); ok {
		cause = r.Cause
	}
	switch cause.(type) {
	case *mailbox.PanicError, *mailbox.GuardError, *mailbox.ExitError, *mailbox.StoppedError,
		*mailbox.FullError, *mailbox.PolicyError, *mailbox.UndeclaredError, *KeyError, *RequeueError:
		o.log(err)
	}
}

// log reports an error that nobody else is told. It is called by whoever has the
// object, who must not perish of a handler that panics.
func (o *Object[T]) log(err error) {
	defer func() { _ = recover() }()
	o.class.system.Logger().Error(err.Error(), "object", o.Name())
}
