package activeobject

import (
	"context"
	"fmt"
	"reflect"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
)

// Requeuing says how a request is requeued; the values can be joined by |.
type Requeuing uint8

const (
	// KeepPlace lets the request keep its place in the order of arrivals at its
	// object, and its age, as if it had waited for the new operation all the time.
	KeepPlace Requeuing = 1 << iota
	// Commit takes the leave to withdraw the request as long as it waits for the new
	// operation: the end of its context, and Withdraw, have no effect then. (In Ada
	// this is a requeue without abort.)
	Commit
)

// Requeue is what a body returns to have its request wait for the operation, of
// the object in which it runs, instead of giving a result:
//
//	func (p *Printer) Print(job Job) (Receipt, error) {
//		if p.paper < job.Pages {
//			return refilled.Requeue(job)
//		}
//		…
//	}
//
// The step that ends the body puts the request behind those that are admitted and wait, and
// before those that arrived while the body ran: if the guard holds, it starts before
// another request is admitted. It never blocks. Caller and context stay the same. If the
// context has ended or ends before the operation starts, or the request fails
// otherwise while it waits, the caller gets a *RequeuedError, which lists the bodies
// that have run. A request that does not wait, as it was made by Try or by Select with
// Otherwise, does not wait here either: it fails so, around a *RefusedError. A body may
// be requeued any number of times.
//
// The compiler refuses a target whose result is of another type. (Requeuing is from
// Ada, where its parameters must be the same, too; ARM 9.5.4.)
func (op *Operation[T, A, R]) Requeue(arg A, how ...Requeuing) (R, error) {
	return requeued(op, nil, arg, how)
}

// RequeueTo is Requeue for another object, of whatever type, at which the request
// arrives like any other. If that has stopped, or its queue is full, the request
// fails with *RequeuedError.
func (op *Operation[T, A, R]) RequeueTo(o *Object[T], arg A, how ...Requeuing) (r R, err error) {
	if o == nil {
		return requeued(op, nil, arg, how)
	}
	return requeued(op, &o.objectHeader, arg, how)
}

func requeued[T, A, R any](op *Operation[T, A, R], o *objectHeader, arg A, how []Requeuing) (r R, err error) {
	q := &requeueTo[T, A, R]{in: invocation[T, A, R]{op: op, arg: arg}}
	q.requeue = requeue{in: &q.in, to: o}
	for _, h := range how {
		q.requeue.how |= h
	}
	return r, &q.requeue
}

// requeueTo is a requeue with what it is for.
type requeueTo[T, A, R any] struct {
	requeue requeue
	in      invocation[T, A, R]
}

// requeue is what a body asks for: an error on its way out of it. The same one may be given to
// several requests, so it is not changed.
type requeue struct {
	in  typed
	to  *objectHeader // nil if it is the object in which the body runs
	how Requeuing
}

// Error implements error. It is seen only by a body that calls another one as a
// function, and where a body has wrapped it.
func (q *requeue) Error() string {
	return fmt.Sprintf("sluice: a requeue to %s, which a body is to return as it is", q.in.info().name)
}

// ends reports whether the context, which is tame, has ended of a request that asks for
// the requeue, and which may be withdrawn.
func (q *requeue) ends(ctx context.Context) bool { return q.how&Commit == 0 && ctx.Err() != nil }

// requeued makes of an error that a body has returned in an object the request's next turn, if it
// is a requeue. Else it returns the request's error.
func (c *request) requeued(err error, at *objectHeader) error {
	q, ok := err.(*requeue)
	if !ok {
		return err
	}
	t, err := c.next(q, at)
	if err == nil {
		err = c.applyRequeue(t, q.how, at)
	}
	switch err.(type) {
	case nil, *BadRequeueError: // the latter of the body that has asked for it
		return err
	}
	return c.pending.Request.Stranded(&at.box, err)
}

// next returns the turn that the requeue is, of the request, whose body has run in an object.
func (c *request) next(q *requeue, at *objectHeader) (t turn, err error) {
	op := q.in.info()
	if err = c.fits(op, at); err != nil {
		return t, err
	}
	t = turn{q.in, op, q.to}
	if t.o == nil {
		t.o = at
		if reflect.TypeOf(at.config.typ.self) != reflect.TypeOf(op.typ.self) {
			// The object has another state, of which that of the operation may be a part.
			if !at.config.typ.extends(op.typ) {
				return t, &BadRequeueError{Object: at.Name(), Operation: op.typ.name, Problem: "it is of another type; use RequeueTo for another object"}
			}
			t.op = at.config.typ.all[op.index]
			t.in = invoke(t.op.prototype, q.in.act(getArgument, nil))
			return t, nil
		}
	}
	if t.op = op.in(t.o); t.op == nil {
		return t, op.foreign(t.o)
	}
	if t.op != op {
		t.in = invoke(t.op.prototype, q.in.act(getArgument, nil))
	}
	return t, nil
}

// fits returns an error if the result of an operation is not what the request's caller
// waits for.
func (c *request) fits(op *operationInfo, at *objectHeader) error {
	if reflect.TypeOf(c.pending.Place) == op.resultPtr {
		return nil
	}
	if _, ok := c.pending.Place.(*any); ok {
		return nil
	}
	return &BadRequeueError{Object: at.Name(), Operation: op.name, Problem: fmt.Sprintf("its result is a %v, not what the caller waits for", op.result)}
}

// requeueTarget is a turn that a request is requeued for through the scheduler, and so its body from then
// on.
type requeueTarget struct {
	engine.Hop
	turn turn
	home *request
	ctx  context.Context // of a body that takes one
}

// applyRequeue makes the turn the next one of the request, which comes from an object.
func (c *request) applyRequeue(t turn, how Requeuing, from *objectHeader) (err error) {
	l := &requeueTarget{turn: t, home: c}
	if t.op.family {
		if l.Key, err = t.op.keyFor(t.o, t.in); err != nil {
			return err
		}
	}
	r := &c.pending.Request
	if err = t.op.join(r.Context(), t.o, r); err != nil {
		return err
	}
	if l.Claim, err = t.op.footprint(t.o, t.in, r.Transaction()); err != nil {
		return err
	}
	l.Keep, l.Commit = how&KeepPlace != 0, how&Commit != 0
	l.Box, l.Op, l.Leaf, l.Body = &t.o.box, t.op.index, t.op.helpable(t.o), l
	l.Board = requeueApplied
	if t.o.config.filters != nil && t.o != from {
		l.Admit = func(r *engine.Request) (context.Context, error) { return c.admit(r.Context(), t) }
	}
	c.pending.Request.Requeue(&l.Hop)
	return nil
}

// requeueApplied is called before the request waits for its next turn.
func requeueApplied(body engine.Body, r *engine.Request, box *engine.Mailbox) {
	l := body.(*requeueTarget)
	if t := l.turn; !t.op.leafed || t.o.config.filters != nil {
		l.ctx = r.InsideAgain(box)
	}
}

// Run implements engine.Body.
func (l *requeueTarget) Run() { l.home.run(l.turn.in, l.turn.o, l.ctx) }

// AskGuard implements engine.Body.
func (l *requeueTarget) AskGuard() string { return l.turn.in.evaluate(l.turn.o.box.Host()) }

// Argument implements engine.Body.
func (l *requeueTarget) Argument() any { return l.turn.in.act(getArgument, nil) }

// Fail implements engine.Body.
func (l *requeueTarget) Fail(err error) { l.home.Fail(err) }

// Recycle implements engine.Body. It is the request's own body that is recycled.
func (l *requeueTarget) Recycle() {}

func (l *requeueTarget) current() turn { return l.turn }

// sentTurns is how many turns in a row a request that was sent makes on the goroutine of
// its sender, after the first.
const sentTurns = 16

// forward carries on with the request, whose body, run by the calling goroutine, has
// asked for a requeue. The goroutine has the object, in which it found the word w, and
// gives it back here. A call has ended when forward returns; of others it reports whether the
// request is on its way, or has ended since.
//
// A call goes to another object on its own goroutine, from here.
func (c *request) forward(ctx context.Context, w word.Word, q *requeue, how callMode, ran *engine.Turns, s *callState) (posted bool) {
	in, at := c.in, c.o
	c.begun = true
	for last := c.current(); q != nil; {
		o, turns := last.o, 0
		tame, tamed := ctx, engine.Tamed(ctx)
		if w == last.op.idle && w != word.Never && tamed && o.config.filters == nil {
			if last, q, turns = c.requeueInPlace(ctx, w, q, last, how, ran, s); q == nil {
				break
			}
		}
		l := last.leaving(turns > 0)
		l.For = last.op.claimFor(ctx, o)
		if !tamed {
			tame = o.tame(ctx, l)
		}
		t, err := c.next(q, o)
		if err != nil || !c.forwards(tame, q, t.o, how) {
			l.MayHelp = engine.Outside(tame)
			posted = c.wait(tame, l, ran, q, how, s)
			break
		}
		o.giveBack(l) // without helping, as it has yet to go on
		ran.Add(&o.box, l.Op)
		last, c.in, c.o = t, t.in, t.o
		w, q = c.enter(ctx, t.op, how, ran, s)
	}
	if !posted { // or else the record is not ours any more; and the request has not been forwarded
		c.in, c.o = in, at
	}
	return posted
}

// leaving says how a goroutine leaves the object in which it has run the turn, without helping
// others. If it is the last of several, anything can have been opened.
func (t turn) leaving(several bool) engine.Leaving {
	l := engine.Leaving{Op: t.op.index, Changed: several || t.op.changed}
	if t.op.opens != nil && !several {
		l.Opens = t.op.opener(t.o, t.in)
	}
	return l
}

// requeueInPlace makes one turn after another on the spot: as long as nothing waits at the object, which the
// calling goroutine has taken, each is to the same object, and its guard holds. In the scheduler
// the request would be the only one admitted, and those that arrive meanwhile are in the entry queue. That
// nothing waits is certain: w, the word that was found, says that nothing did, and what has come
// since makes the swap fail by which the object is marked with the next operation.
//
// Between two turns a request looks at its context, and is left to the scheduler if that has
// ended. What was sent makes some turns only, as its sender waits for none.
//
// It returns the last turn, how many there were, and the requeue that is left to be made. If there
// is none the object has been given back, and the request has ended.
func (c *request) requeueInPlace(ctx context.Context, w word.Word, q *requeue, last turn, how callMode, ran *engine.Turns, s *callState) (_ turn, left *requeue, turns int) {
	at, o, now := finished, last.o, last
	defer func() {
		if at != finished {
			c.caughtInPlace(now, at, last, engine.Panicked(recover()), how, ran, s)
		}
	}()
	for ; ; turns++ {
		op := q.in.info()
		if how >= sending && turns == sentTurns || op.idle != w || q.to != nil && q.to != o || c.fits(op, o) != nil || q.ends(ctx) {
			return last, q, turns // were idle the same and the object another, it would be of the operation's type
		}
		now, at = turn{q.in, op, o}, evaluating
		if op.guard != "" && q.in.evaluate(o.box.Host()) != "" || !o.box.Word.CompareAndSwap(w|last.op.mark, w|op.mark) {
			at = finished
			return last, q, turns
		}
		at = running
		err := c.apply(q.in, o, nil)
		at = finished
		if err != nil {
			if next, ok := err.(*requeue); ok {
				ran.Add(&o.box, last.op.index)
				last, q = now, next
				continue
			}
		}
		c.ended(err, how, s)
		if !o.box.Word.CompareAndSwap(w|op.mark, w) {
			l := now.leaving(true)
			l.MayHelp = engine.Outside(ctx)
			o.giveBack(l)
		}
		return now, nil, turns
	}
}

// caughtInPlace is caught for requeueInPlace.
func (c *request) caughtInPlace(t turn, at int, last turn, value any, how callMode, ran *engine.Turns, s *callState) {
	var err error
	if at == running {
		t.op.caught(t.o, at, value, &err)
	} else {
		err = t.op.guardCaught(t.o, value)
		ran.Add(&t.o.box, last.op.index)
		err = ran.Failed(err)
		t.o.box.Yield(engine.Leaving{Op: last.op.index, Changed: true})
	}
	c.failed(err, how, s)
}

// tame is engine.Tame for a goroutine that has the object, in which its body has run and asked
// for a requeue. If ctx does not return, the object is given back.
func (o *objectHeader) tame(ctx context.Context, l engine.Leaving) context.Context {
	asked := false
	defer func() {
		if !asked {
			o.giveBack(l)
		}
	}()
	ctx = engine.Tame(ctx)
	asked = true
	return ctx
}

// giveBack gives the object back that a goroutine has taken.
func (o *objectHeader) giveBack(l engine.Leaving) {
	given := false
	defer func() {
		if !given { // a guard that is waited for has panicked or exited: the scheduler evaluates it again
			_ = recover()
			o.box.Yield(l)
		}
	}()
	gone := o.box.Look(&l)
	given = true
	if !gone {
		o.box.Yield(l)
	}
}

// forwards reports whether a call makes the turn that the requeue is, at an object, by itself: it is
// another object, without interceptors, and the wait ends if the context does.
func (c *request) forwards(ctx context.Context, q *requeue, to *objectHeader, how callMode) bool {
	return how < sending && to != c.o && to.config.filters == nil && (q.how&Commit == 0 || ctx.Done() == nil)
}

// wait makes the request wait for a requeue. The calling goroutine has the object, in which the
// body has run, and gives it back here. Wait reports whether the request is on its way, or has ended
// since.
func (c *request) wait(ctx context.Context, l engine.Leaving, ran *engine.Turns, q *requeue, how callMode, s *callState) (posted bool) {
	o, r, now := c.o, &c.pending.Request, engine.Now()
	c.prepare(c.in.info(), how, now)
	c.charge(ctx, how)
	r.Prepare(ctx, now)
	r.Op = l.Op // the body that ran last
	r.Ran(*ran)
	given := false
	defer func() {
		if !given { // a key function has called runtime.Goexit
			o.box.Yield(l)
		}
	}()
	err := c.requeued(q, o)
	given = true
	switch {
	case err != nil:
		o.box.Yield(l)
		c.Fail(err)
		if how == telling { // it was taken, and has run
			o.unheard(err)
			c.pending.Err = nil
		}
	case how >= sending:
		s.post(true)
		o.box.PostOn(ctx, r, l, now)
		return true
	default:
		returned := false
		defer func() {
			if !returned {
				c.forsake()
			}
		}()
		o.box.CallOn(ctx, r, l, now)
		returned = true
		c.leaveTransaction()
		c.filtered().done(c.pending.Err)
	}
	return false
}

// enter makes the request at its object, to which it has come for the operation. If it returns a
// requeue, that is what its body asks for; and the goroutine has the object, in which it has found
// the word w.
func (c *request) enter(ctx context.Context, op *operationInfo, how callMode, ran *engine.Turns, s *callState) (w word.Word, q *requeue) {
	if ctx.Err() == nil && c.o.config.typ == op.typ {
		w = c.o.box.Word.Load()
		if w&^word.Parked == op.idle && c.o.box.Word.CompareAndSwap(w, w|op.mark) {
			return w, c.perform(ctx, op, w, how, ran, s)
		}
	}
	var key func() (any, bool)
	if op.keyed {
		key = func() (any, bool) { return keyOf(c.in) }
	}
	w, taken, err := op.take(ctx, c.o, how, key)
	switch {
	case err != nil:
		c.refuse(ran.Failed(err))
	case taken:
		return w, c.perform(ctx, op, w, how, ran, s)
	default:
		c.arrive(ctx, op, "", how, ran, s)
	}
	return 0, nil
}

// perform is the function perform for a request that has a record. If the body asks for a
// requeue, it returns that, and does not give the object back.
func (c *request) perform(ctx context.Context, op *operationInfo, w word.Word, how callMode, ran *engine.Turns, s *callState) (q *requeue) {
	at := evaluating
	defer func() {
		if at != finished {
			c.caught(op, at, engine.Panicked(recover()), how, ran, s)
		}
	}()
	if op.guard != "" {
		op.countEvaluation(c.o, w)
		if falsePart := c.AskGuard(); falsePart != "" {
			switch at = finished; {
			case how.tries():
				c.refuse(ran.Failed(op.refused(c.o, falsePart)))
			case how == selecting && !c.begun:
				op.putBack(c.o)
				c.pending.Err = errNotNow
			default:
				c.arrive(ctx, op, falsePart, how, ran, s)
			}
			return nil
		}
	}
	at = running
	c.begun = true
	err := c.apply(c.in, c.o, nil)
	if err != nil {
		if q, ok := err.(*requeue); ok {
			at = finished
			return q
		}
	}
	c.ended(err, how, s)
	if at = releasing; !op.gone(c.o, w) {
		in := c.in
		if op.opens == nil {
			in = nil
		}
		op.giveBack(ctx, in, c.o, watchedUnknown, &at)
	}
	at = finished
	return nil
}

// caught is that of an operation for perform.
func (c *request) caught(op *operationInfo, at int, value any, how callMode, ran *engine.Turns, s *callState) {
	var err error
	op.caught(c.o, at, value, &err)
	switch at {
	case evaluating:
		c.failed(ran.Failed(err), how, s)
	case running:
		c.failed(err, how, s)
	}
}

// ended makes the error that of the request, whose last body the calling goroutine has run.
// Serving others when it gives the object back, it may yet end by a body; a reply is due all the
// same.
func (c *request) ended(err error, how callMode, s *callState) {
	switch how {
	case telling:
		return
	case answering:
		s.keep(c.result(), err)
	}
	c.pending.Err = err
}

// refuse makes the error that of the request, for which no body runs any more.
func (c *request) refuse(err error) {
	if c.begun {
		c.keep(nil) // what a body has returned with a requeue is no result
	}
	c.pending.Err = err
}

// failed is ended for a request whose guard or body has panicked, or called runtime.Goexit.
func (c *request) failed(err error, how callMode, s *callState) {
	c.keep(nil)
	if c.ended(err, how, s); how == telling {
		c.o.unheard(err)
	}
}
