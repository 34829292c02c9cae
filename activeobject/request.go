package activeobject

import (
	"context"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// request is the record of a request that has to wait, or whose body may; or which has more
// turns than one. It is compiled once: what is of its types is in the invocation.
type request struct {
	o        *objectHeader // in which it runs
	pending  actor.Pending // with the place of the result
	in       typed         // what runs
	optional *optional     // nil unless the record has needed it, in this life or an earlier one
	pooled   bool          // back to its pool when nothing needs it any more
	told     bool          // that is the one for what is told
	begun    bool          // a body has begun to run for it
	handed   bool          // it has been handed in, or was about to be
	gone     uint32        // 1 if its sender has been found to have gone; atomic, as Explain may look
}

// optional is what few requests have.
type optional struct {
	filtered       *filtered        // what it has passed of interceptors
	watched        *watchedFunction // a function that may suspend and is watched
	requestMessage                  // the message that it came by
}

// record is a request with what is of its types.
type record[T, A, R any] struct {
	// What evaluating a guard looks at is together, as very many may wait.
	in      invocation[T, A, R]
	request request
	result  R
}

// with returns what few requests have, for c to have it, too.
func (c *request) with() *optional {
	if c.optional == nil {
		c.optional = new(optional)
	}
	return c.optional
}

// filtered returns what the request has passed of interceptors, or nil.
func (c *request) filtered() *filtered {
	if c.optional == nil {
		return nil
	}
	return c.optional.filtered
}

// watched returns the function that runs for the request, if it may suspend and is watched; or nil.
func (c *request) watched() *watchedFunction {
	if c.optional == nil {
		return nil
	}
	return c.optional.watched
}

// message returns the message that the request came by.
func (c *request) message() (l requestMessage) {
	if c.optional != nil {
		l = c.optional.requestMessage
	}
	return l
}

// newRequest returns the record of a request, with no argument yet.
func newRequest[T, A, R any](op *Operation[T, A, R]) *request {
	c := new(record[T, A, R])
	c.in.op = op
	c.request.create(&c.in, &c.result)
	return &c.request
}

// create makes c the record of a request for the invocation.
func (c *request) create(in typed, place any) {
	c.in, c.pending.Place = in, place
	c.pending.Request.Init(c)
	c.pending.Request.Op = in.info().index
}

// requestOf returns the record of a request that is made in the given way. The state is nil for a
// request that has not come by message.
func requestOf[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *objectHeader, arg A, how callMode, s *callState) (c *request) {
	pool := &op.info.pools.records
	if how >= sending {
		pool = op.info.source(ctx, how)
	}
	if pool != nil {
		c, _ = pool.Get().(*request)
	}
	if c == nil {
		c = newRequest(op)
	}
	c.o, c.pooled, c.told = o, pool != nil, how >= telling
	c.in.(*invocation[T, A, R]).arg = arg
	if s != nil {
		c.with().requestMessage = s.requestMessage
	}
	return c
}

// outcome returns what has come of the request, which has ended or was not taken, and puts back
// the record, which then pins neither argument nor result.
func outcome[T, A, R any](op *Operation[T, A, R], c *request) (R, error) {
	in, place := c.in.(*invocation[T, A, R]), c.pending.Place.(*R)
	r, err := *place, c.pending.Err
	var argument A
	var result R
	in.arg, *place = argument, result
	c.putBack(&op.info)
	return r, err
}

// pools are those of the records of an operation, all of which are *request. A record that has
// waited in a testing/synctest bubble is not pooled, as its channel must not leave that.
type pools struct {
	records sync.Pool // for Call, Try and Begin
	tells   sync.Pool // for Tell and messages
}

// source returns the pool that the record of a request is to be taken from which is sent
// in the given way, and put back into; or nil.
func (op *operationInfo) source(ctx context.Context, how callMode) *sync.Pool {
	switch {
	case how == sending, !engine.Tamed(ctx), ctx.Done() != nil:
		// Its holder, or the watch over its context, may act late, so that they must not
		// meet a record in its next life. (A context that is not ours may not be asked, as
		// the object may be held.)
		return nil
	case how == beginning:
		return &op.pools.records
	}
	// Nothing has a hold on it: no future, and no watch over the context.
	return &op.pools.tells
}

// free lets go of the argument, and puts the record back into its pool; if it is from none, its
// result and its error stay.
func (c *request) free() {
	place := c.pending.Place
	if !c.pooled {
		place = nil
	}
	c.in.act(letGo, place)
	c.putBack(c.in.info())
}

// putBack is free for a record whose argument and result have been let go of.
func (c *request) putBack(op *operationInfo) {
	if !c.pooled {
		c.o, c.optional = nil, nil
		c.pending.Request.Release()
		return
	}
	pool := &op.pools.records
	if c.told {
		pool = &op.pools.tells
	}
	c.reset(op)
	pool.Put(c)
}

// reset lets go of what belonged to a request that has ended, but the argument and the result.
func (c *request) reset(op *operationInfo) {
	c.pending.Err, c.o = nil, nil
	c.pooled, c.begun, c.gone = false, false, 0
	if c.optional != nil {
		*c.optional = optional{}
	}
	if !c.handed {
		return
	}
	c.handed = false
	r := &c.pending.Request
	r.Try, r.Ticket = false, false
	r.Op, r.Key, r.Claim = op.index, nil, nil // it may have been requeued
	r.Forget()
}

// prepare makes the record, which is new, that of a request for the operation that is made in the
// given way, and about to be handed in.
func (c *request) prepare(op *operationInfo, how callMode, now time.Duration) {
	r := &c.pending.Request
	c.handed = true
	r.Op, r.Leaf = op.index, op.helpable(c.o)
	if r.Patient = how == calling && !c.begun; how != calling { // or else it is not told, no Try, and has no Ticket
		r.Ticket, r.Told, r.Try = how == beginning, how >= telling, how.tries()
	}
	switch {
	case how < sending || how == beginning:
		if r.ForCall(now); engine.Bubbled(now) {
			c.pooled = false
		}
	case how >= telling:
		r.Answers(c.message().sender != nil)
	}
}

// keep makes the result, which is of the right type, or nil for a zero one, that of the
// request.
func (c *request) keep(result any) { put(c.pending.Place, result) }

// put writes a result to the place of one. It is nil for a zero result, or of the right type, which
// may not be known where the operation is that of a derived type.
func put(place, result any) {
	v := reflect.ValueOf(place).Elem()
	if result == nil {
		v.SetZero()
	} else {
		v.Set(reflect.ValueOf(result))
	}
}

// result returns the result of the request.
func (c *request) result() any { return reflect.ValueOf(c.pending.Place).Elem().Interface() }

// Run implements engine.Body.
func (c *request) Run() { c.run(c.in, c.o, c.pending.Request.BodyContext()) }

// turn is a body that runs for a request: an operation of an object.
type turn struct {
	in typed
	op *operationInfo // of in
	o  *objectHeader
}

// current returns the turn that the request is in, if it does not wait for a requeue.
func (c *request) current() turn { return turn{c.in, c.in.info(), c.o} }

// run runs a body of the request, in an object, and keeps its result; unless that asks for a
// requeue, or suspends.
func (c *request) run(in typed, o *objectHeader, ctx context.Context) {
	if in.info().suspends {
		c.pooled = false // what ends a suspension may act late
		c.pending.Request.RunApart(o.config.system.Workers(), func(a *engine.Apart) { c.runOn(a, in, o, ctx) })
		return
	}
	c.runOn(nil, in, o, ctx)
}

// runOn is run on the goroutine of a, or, if that is nil, on the calling one.
func (c *request) runOn(a *engine.Apart, in typed, o *objectHeader, ctx context.Context) {
	c.begun = true
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			c.escaped(a, in.info(), o, engine.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	var err error
	c.saved(in.info(), o)
	if o.config.around {
		err = c.applyAround(turn{in, in.info(), o}, ctx)
	} else {
		err = c.apply(in, o, ctx)
	}
	c.pending.Request.Left() // if it does not return, escaped says so
	if err == nil || !c.goesOn(&err, o) {
		c.end(err)
	}
	returned = true
}

// apply runs the body of an invocation, in an object, and writes its result to the request's.
func (c *request) apply(in typed, o *objectHeader, ctx context.Context) error {
	err := in.apply(o.box.Host(), ctx, c.pending.Place)
	if in.info().alone == nil {
		if _, requeues := err.(*requeue); err == nil || requeues {
			c.done(in, o)
		}
	}
	return err
}

// goesOn reports whether the request, whose body has returned an error, has another
// turn before it. If that cannot be made the error says why.
func (c *request) goesOn(err *error, o *objectHeader) bool {
	*err = c.requeued(*err, o)
	return *err == nil
}

// escaped cleans up after a body that panicked, or, if there is no value, left
// through runtime.Goexit.
func (c *request) escaped(a *engine.Apart, op *operationInfo, o *objectHeader, value any, stack []byte) {
	if a != nil && a.Lost() { // the request has ended, and its record is not ours
		if value != nil {
			o.report(op.name, 0, &mailbox.PanicError{Object: o.Name(), Operation: op.name, Value: value, Stack: stack})
		}
		return
	}
	r := &c.pending.Request
	r.Left()
	if value == nil {
		err := &mailbox.ExitError{Object: o.Name(), Operation: op.name}
		c.doomed(err)
		o.failed(op.name, r.Arrival(), err)
		if a != nil {
			c.Fail(err) // the thread of the turn goes on
		} else {
			r.Exit()
		}
		return
	}
	err := &mailbox.PanicError{Object: o.Name(), Operation: op.name, Value: value, Stack: stack}
	c.doomed(err)
	o.failed(op.name, r.Arrival(), err)
	c.Fail(err)
}

// AskGuard implements engine.Body.
func (c *request) AskGuard() string { return c.in.evaluate(c.o.box.Host()) }

// Argument implements engine.Body.
func (c *request) Argument() any { return c.in.act(getArgument, nil) }

// Fail implements engine.Body.
func (c *request) Fail(err error) {
	if !c.o.config.around && !c.begun {
		c.pending.Err = err // no body has left a result, and no interceptor is to be told
		return
	}
	c.keep(nil)
	if a := c.o.config.audit; a != nil {
		a.undeclared(err)
	}
	c.end(err)
}

// end makes the error that of the request, which has ended.
func (c *request) end(err error) {
	c.pending.Err = err
	if c.optional != nil && c.optional.filtered != nil && !c.pending.Request.Called() { // of a call, the caller's goroutine tells interceptors
		c.o.config.system.Workers().Dispatch(doneTask{c.optional.filtered, err})
	}
}

// Recycle implements engine.Body: the request was told, and has ended; or its ticket has been
// redeemed.
func (c *request) Recycle() {
	switch r := &c.pending.Request; {
	case r.Ticket, !r.Told:
	case c.message().invoke != nil:
		c.answer()
		return
	case c.pending.Err != nil:
		c.o.unheard(c.pending.Err)
	}
	c.free()
}

// arrive makes the request, which is for the operation, at its object, through the interceptors of
// that, and the scheduler. A call has ended when it returns; of others it reports whether the
// request is on its way, or has ended since. If falsePart is not empty the calling goroutine has
// taken the object, and found the guard false; the object is given back. Ran is nil for a request
// that has not been requeued, and the state for one that has not come by message.
func (c *request) arrive(ctx context.Context, op *operationInfo, falsePart string, how callMode, ran *engine.Turns, s *callState) (posted bool) {
	if c.o.config.filters != nil {
		f, err := op.pass(ctx, c.o, c.in)
		if err != nil {
			c.pending.Err = err
			c.begun = true // an interceptor has dealt with it
			return false
		}
		if ctx, c.with().filtered = f.ctx, f; how >= sending && ctx.Done() != nil {
			c.pooled = false // the watch over its context may act late
		}
	}
	now := engine.Now()
	if falsePart != "" && (op.looks&guards.AtTime != 0 || !engine.Tamed(ctx)) {
		// Before ctx is asked anything. And a guard over time is evaluated again, by the scheduler: its time
		// may have come since, and the guards have been evaluated for that already.
		op.putBack(c.o)
		falsePart = ""
	}
	c.prepare(op, how, now)
	if op.family || !op.leafed || c.o.config.fits {
		if err := c.fit(ctx, op, falsePart != ""); err != nil {
			if f := c.filtered(); f != nil {
				f.done(err)
				c.optional.filtered = nil
			}
			c.Fail(failed(ran, err))
			c.leaveTransaction()
			return false
		}
	}
	if how >= sending {
		return c.post(ctx, falsePart, how, now, s)
	}
	r := &c.pending.Request
	if ran != nil {
		r.Ran(*ran)
	}
	returned := false
	defer func() {
		if !returned { // a guard that was evaluated here, or an interceptor, has called runtime.Goexit
			c.forsake()
		}
	}()
	if falsePart == "" {
		c.o.box.Call(ctx, r, now)
	} else {
		c.o.box.CallHeld(ctx, r, falsePart, now)
	}
	returned = true
	c.leaveTransaction()
	if c.optional != nil {
		c.optional.filtered.done(c.pending.Err)
	}
	return false
}

// failed returns the error of a request that fails because of the cause, after the turns, if there
// were any.
func failed(ran *engine.Turns, cause error) error {
	if ran == nil {
		return cause
	}
	return ran.Failed(cause)
}

// post hands in a request that nothing waits for here, and reports whether it was taken.
func (c *request) post(ctx context.Context, falsePart string, how callMode, now time.Duration, s *callState) bool {
	c.charge(ctx, how)
	s.post(true)
	if falsePart != "" {
		c.o.box.PostHeld(ctx, &c.pending.Request, falsePart, now)
		return true
	}
	if err := c.o.box.Post(ctx, &c.pending.Request, now); err != nil {
		s.post(false)
		c.filtered().done(err)
		c.pending.Err = err
		c.leaveTransaction()
		return false
	}
	return true
}

// charge puts the record of a request that came by message in charge of the reply,
// also if this goroutine dies.
func (c *request) charge(ctx context.Context, how callMode) {
	if how != answering {
		return
	}
	if sender := c.message().sender; sender != nil && engine.ChainOf(ctx) != nil {
		c.pooled = false // there may be an edge to it
		c.o.config.system.Follows(sender, c.o.addressed(), &c.pending.Request)
	}
}

// fit gives the request what a plain one does not need: a key, a footprint, and the context of its
// body.
func (c *request) fit(ctx context.Context, op *operationInfo, held bool) error {
	r := &c.pending.Request
	if err := op.join(ctx, c.o, r); err != nil {
		if held {
			op.putBack(c.o)
		}
		return err
	}
	if op.family || c.o.config.footprints {
		found := false
		defer func() {
			if !found && held {
				op.putBack(c.o)
			}
		}()
		var err error
		if op.family {
			if r.Key, err = op.keyFor(c.o, c.in); err != nil {
				return err
			}
		}
		if r.Claim, err = op.footprint(c.o, c.in, r.Transaction()); err != nil {
			return err
		}
		found = true
	}
	c.enterChain(ctx, op)
	return nil
}

// enterChain gives a body that takes a context, and interceptors, one that knows
// where it is.
func (c *request) enterChain(ctx context.Context, op *operationInfo) {
	if !op.leafed || c.o.config.filters != nil {
		c.pending.Request.Inside(ctx, &c.o.box)
	}
}

// forsake leaves the record of a call to what may still have it: the caller's
// goroutine is ending.
func (c *request) forsake() {
	c.pending.Request.Forsake()
	c.pending.Request.LeaveTransaction()
	c.filtered().done(&mailbox.ExitError{Object: c.o.Name(), Operation: c.in.info().name})
}

// helpable reports whether a body of the operation may run on any goroutine.
func (op *operationInfo) helpable(o *objectHeader) bool {
	return op.leafed && !op.own && o.config.filters == nil
}
