package activeobject

import (
	"context"
	"math/bits"
	"runtime/debug"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Future is the result of a request that was sent: there already, or to come.
type Future[R any] = actor.Future[R]

// Ticket is a Future that is awaited once.
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
// has, and after *RequeuedError and *BadRequeueError some have.
func (op *Operation[T, A, R]) Call(ctx context.Context, o *Object[T], arg A) (r R, err error) {
	// This is perform, written out, for an object that is idle; its price is what
	// a guarded call costs over a mutex. The deferred function captures only what
	// it needs to clean up: every word more costs.
	w := o.box.Word.Load()
	switch {
	case w&^word.Parked == op.info.idle && ctx.Err() == nil && o.box.Word.CompareAndSwap(w, w|op.info.mark):
	case w.Has(word.Shared) && o.config.typ == op.info.alone && ctx.Err() == nil && o.box.Admit(op.info.index):
		w = word.Never
	case op.info.outside(ctx, &o.objectHeader, w):
	default:
		r, _, err = enter(op, ctx, o, arg, calling, nil)
		return r, err
	}
	at := evaluating
	defer func() {
		if at != finished {
			op.info.caught(&o.objectHeader, at, engine.Panicked(recover()), &err)
		}
	}()
	if op.plain != nil {
		if !op.plain(o.state) {
			at = finished // with the object, which wait gives back
			r, _, err = wait(op, ctx, o, arg, op.info.guard, calling, nil)
			return r, err
		}
	} else if op.single != nil {
		if !op.single(o.state, arg) {
			at = finished
			r, _, err = wait(op, ctx, o, arg, op.info.guard, calling, nil)
			return r, err
		}
	} else if op.info.guard != "" {
		if falsePart := op.guarded.Ask(o.state, arg); falsePart != "" {
			at = finished
			r, _, err = wait(op, ctx, o, arg, falsePart, calling, nil)
			return r, err
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	if err != nil {
		if q, ok := err.(*requeue); ok {
			at = finished // with the object, which forward gives back
			r, _, err = forward(op, ctx, o, arg, w, q, calling, nil)
			return r, err
		}
	}
	at = releasing
	watched := watchedNone
	if w.Has(word.Parked) && (op.info.changed || w == word.Never) {
		// Others wait, or run. If they all wait for one guard, it is at hand.
		switch {
		case w == word.Never:
			if o.box.Depart(op.info.index) {
				at = finished
				return r, err
			}
			watched = watchedUnknown
		case o.watch == nil:
			watched = watchedUnknown
		case o.watch(o.state):
			watched = watchedTrue
		default:
			watched = watchedFalse
		}
	}
	if watched > 0 || !o.box.Word.CompareAndSwap(w|op.info.mark, w) {
		release(op, ctx, o, arg, watched, &at)
	}
	at = finished
	return r, err
}

// What is known of the guards that others wait for.
const (
	watchedFalse   = iota - 1 // the only one is false
	watchedNone               // none: nothing has been waiting
	watchedTrue               // the only one holds
	watchedUnknown            // nothing
)

// Do is Call for the error alone: for an operation without a result.
func (op *Operation[T, A, R]) Do(ctx context.Context, o *Object[T], arg A) error {
	_, err := op.Call(ctx, o, arg)
	return err
}

// Try is Call for a caller that does not want to wait: neither for a guard nor behind a
// request that comes first. It may still wait until the object can decide, that
// is for what runs; so it takes a context. If the request would have to wait it
// fails with a *RefusedError, which matches ErrRefused and carries the reason. If its
// body asks for a requeue the same holds for the next turn: the error is then a
// *RequeuedError around that.
func (op *Operation[T, A, R]) Try(ctx context.Context, o *Object[T], arg A) (R, error) {
	r, _, err := start(op, ctx, o, arg, trying, nil)
	return r, err
}

// Send hands in the request and returns the future of its result. If ctx ends
// while the request waits, it leaves the queue, never runs, and the future fails
// with the context's error. A body that cannot start at once, or that may block,
// runs on another goroutine.
func (op *Operation[T, A, R]) Send(ctx context.Context, o *Object[T], arg A) Future[R] {
	return futureOf(start(op, ctx, o, arg, sending, nil))
}

// futureOf returns the future of what start has returned.
func futureOf[R any](r R, c *request, err error) Future[R] {
	if c != nil {
		return actor.Promised[R](&c.pending)
	}
	return actor.Settled(r, err)
}

// Begin is Send for a result that is awaited once: it returns a ticket for it,
// which costs no allocation if ctx cannot end, whether the request has to wait or
// not. (A body that takes a context costs that context.)
func (op *Operation[T, A, R]) Begin(ctx context.Context, o *Object[T], arg A) Ticket[R] {
	return ticketOf(start(op, ctx, o, arg, beginning, nil))
}

// ticketOf returns the ticket of what start has returned.
func ticketOf[R any](r R, c *request, err error) Ticket[R] {
	if c != nil {
		return actor.Ticketed[R](&c.pending)
	}
	return actor.Issued(r, err)
}

// Tell hands in the request and forgets it: its result is not reported, and a later
// failure (a panic of its body or guard, a queue that is full, the object's stop) is
// logged by the system only. An error means that the request was not taken, and has
// not run nor ever will: the context had ended, or the object had stopped
// (ErrStopped) or is of another type (*TypeError); the key function of its family
// failed (*KeyError); or an interceptor's Queue has refused it, with its own error,
// panicked (*PanicError), or returned a context that had ended.
func (op *Operation[T, A, R]) Tell(ctx context.Context, o *Object[T], arg A) error {
	_, _, err := start(op, ctx, o, arg, telling, nil)
	return err
}

// foreign returns the error for an object that does not have the operation.
func (op *operationInfo) foreign(o *objectHeader) error {
	return &TypeError{Object: o.Name(), Type: o.config.typ.name, Operation: op.name, Declared: op.typ.name}
}

// callMode is how a request is made.
type callMode uint8

const (
	calling callMode = iota
	trying
	attempting // trying, for Select
	selecting  // calling, only if the object is free and the guard holds; for Select
	sending
	beginning // sending, for a ticket
	telling
	answering // telling, with a reply; see message.go
)

// tries reports whether the request does not wait.
func (how callMode) tries() bool { return how == trying || how == attempting }

// callState is what there is to say of a request that has come by message, while a goroutine makes
// it.
type callState struct {
	requestMessage
	posted   bool // the request is on its way, or has ended since, and sees to the reply
	returned bool // its body has returned result and err: see keep
	result   any
	err      error
}

// keep keeps what the body of a request that came by message has returned, or that its guard has
// failed. The goroutine that has run it is about to give the object back, and may then run, as a
// helper, a body that ends it; or the guard has ended it. The reply is due all the same.
func (s *callState) keep(result any, err error) { s.returned, s.result, s.err = true, result, err }

// post notes that the request is about to be handed in, or was not taken. The state may be nil.
func (s *callState) post(posted bool) {
	if s != nil {
		s.posted = posted
	}
}

// How far the goroutine has come that has taken an object.
const (
	finished = iota
	evaluating
	running
	releasing
)

// start makes a request of an object that is probably idle. If it returns a request, that is
// on its way; of one that was told it must not be touched, as it may have ended since. The state is
// nil for a request that did not come by message.
//
// (This and the other functions that know the types are no methods, which would be compiled
// twice.)
func start[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, how callMode, s *callState) (R, *request, error) {
	w := o.box.Word.Load()
	if ctx.Err() != nil || w&^word.Parked != op.info.idle || !o.box.Word.CompareAndSwap(w, w|op.info.mark) {
		return enter(op, ctx, o, arg, how, s)
	}
	return perform(op, ctx, o, arg, w, how, s)
}

// enter is the way of every request that does not find the object idle.
//
//go:noinline
func enter[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, how callMode, s *callState) (r R, c *request, err error) {
	if own := op.info.in(&o.objectHeader); own != &op.info && own != nil {
		return start(own.prototype.(*invocation[T, A, R]).op, ctx, o, arg, how, s)
	}
	if op.info.alone == nil && how == calling && s == nil {
		if w, t := op.info.takeFor(ctx, &o.objectHeader); t != nil {
			defer t.Left()
			return performFor(t, op, ctx, o, arg, w)
		}
	}
	var key func() (key any, equal bool)
	if op.info.keyed {
		key = func() (any, bool) { return op.key(arg, false) }
	}
	w, taken, err := op.info.take(ctx, &o.objectHeader, how, key)
	switch {
	case err != nil:
		return r, nil, err
	case taken:
		return perform(op, ctx, o, arg, w, how, s)
	}
	return wait(op, ctx, o, arg, "", how, s)
}

// perform carries out a leaf operation on the calling goroutine, which has taken
// the object, found the word w, and now gives the object back; or, if the guard
// is false, has the request wait.
//
//go:noinline
func perform[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, w word.Word, how callMode, s *callState) (r R, c *request, err error) {
	at := evaluating
	defer func() {
		if at != finished {
			op.info.caught(&o.objectHeader, at, engine.Panicked(recover()), &err)
			if s != nil && at == evaluating {
				s.keep(nil, err)
			}
			o.told(how, &err)
		}
	}()
	if op.info.guard != "" {
		op.info.countEvaluation(&o.objectHeader, w)
		if falsePart := op.evaluate(o.state, arg); falsePart != "" {
			at = finished
			if how == trying {
				return r, nil, op.info.refused(&o.objectHeader, falsePart)
			}
			return wait(op, ctx, o, arg, falsePart, how, s)
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	if err != nil {
		if q, ok := err.(*requeue); ok {
			at = finished
			return forward(op, ctx, o, arg, w, q, how, s)
		}
	}
	at = releasing
	if !op.info.gone(&o.objectHeader, w) {
		if s != nil {
			s.keep(r, err)
		}
		release(op, ctx, o, arg, watchedUnknown, &at)
	}
	at = finished
	if how == telling {
		err = nil
	}
	return r, nil, err
}

// wait makes a request by its record. If falsePart is not empty the calling goroutine has
// taken the object, and found the guard false; the object is given back.
//
//go:noinline
func wait[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, falsePart string, how callMode, s *callState) (r R, c *request, err error) {
	c = requestOf(op, ctx, &o.objectHeader, arg, how, s)
	if c.arrive(ctx, &op.info, falsePart, how, nil, s) {
		return r, c, nil
	}
	r, err = outcome(op, c)
	return r, nil, err
}

// forward carries on with a request whose body, run by the calling goroutine, has
// asked for a requeue. The goroutine has the object, in which it found the word w, and
// it is given back here.
//
//go:noinline
func forward[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, w word.Word, q *requeue, how callMode, s *callState) (r R, c *request, err error) {
	c = requestOf(op, ctx, &o.objectHeader, arg, how, s)
	var ran engine.Turns
	if c.forward(ctx, w, q, how, &ran, s) {
		return r, c, nil
	}
	r, err = outcome(op, c)
	return r, nil, err
}

// release gives the object back when that takes more than a swap. It sets at to
// finished as soon as the object is no longer the caller's to clean up after.
//
//go:noinline
func release[T, A, R any](op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, watched int, at *int) {
	var in typed
	if op.info.opens != nil {
		in = &invocation[T, A, R]{op: op, arg: arg}
	}
	op.info.giveBack(ctx, in, &o.objectHeader, watched, at)
}

// evaluate evaluates the guard, and returns the part of it that is false.
func (op *Operation[T, A, R]) evaluate(state *T, arg A) (falsePart string) {
	switch {
	case op.plain != nil:
		if op.plain(state) {
			return ""
		}
		return op.info.guard
	case op.single != nil:
		if op.single(state, arg) {
			return ""
		}
		return op.info.guard
	}
	return op.guarded.Ask(state, arg)
}

// in returns the operation as that of an object: itself, or, if the object's type inherits it,
// what it is there; or nil.
func (op *operationInfo) in(o *objectHeader) *operationInfo {
	if o.config.typ == op.typ {
		return op
	}
	return op.inheritedBy(o)
}

// take takes the object for a leaf operation that has not found it idle, if it is free soon, and
// returns the word that it has found; or word.Never, if it has been admitted beside others. Key,
// if it is not nil, computes a key: see checkKey.
func (op *operationInfo) take(ctx context.Context, o *objectHeader, how callMode, key func() (any, bool)) (w word.Word, taken bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, op.typ.ended(ctx, err)
	}
	switch {
	case o.config.typ != op.typ:
		return 0, false, op.foreign(o)
	case op.typ.transactional && engine.TransactionOf(ctx) != nil:
		return 0, false, nil
	case how == calling && o.box.Word.Load().Has(word.Shared) && o.box.Admit(op.index):
		return word.Never, true, nil
	case o.config.filters != nil || !op.leafed || op.looks&guards.AtWaiting != 0 || op.needsSlowPath(o, how) || !engine.Tamed(ctx):
		return 0, false, nil
	}
	if key != nil {
		if err := op.checkKey(o, key); err != nil {
			return 0, false, err
		}
	}
	w, taken = o.box.Take(op.mark)
	if !taken {
		return 0, false, nil
	}
	if err := ctx.Err(); err != nil { // it ended while we spun
		op.putBack(o)
		return 0, false, err
	}
	// The word that we swapped says whether anything waits in a line. If nothing did,
	// nothing does: what comes finds the object taken.
	if op.headOfLine && w.Has(word.Recheck) {
		op.putBack(o)
		return 0, false, nil
	}
	return w, true, nil
}

// needsSlowPath reports whether a leaf's request is to keep off the fast path: there may be a line
// to wait in; or the object fans out, and the request is to run on another goroutine.
func (op *operationInfo) needsSlowPath(o *objectHeader, how callMode) bool {
	if o.config.engine.Parallel != nil {
		return how >= sending
	}
	return op.headOfLine && o.box.Word.Load().Has(word.Recheck)
}

// countEvaluation counts, at an object that counts, that the guard is evaluated for a request that has
// taken the object, and found the word w.
func (op *operationInfo) countEvaluation(o *objectHeader, w word.Word) {
	if o.config.engine.Counted && w != word.Never {
		o.box.Count(op.index, false, 1)
	}
}

// gone gives the object back, in which the goroutine found the word w, if nothing has come since, or
// if it was admitted beside others.
func (op *operationInfo) gone(o *objectHeader, w word.Word) bool {
	if w == word.Never {
		return o.box.Depart(op.index)
	}
	return (w == op.idle || w == op.unasked) && o.box.Word.CompareAndSwap(w|op.mark, w)
}

// told makes the error of a request that was told, and has been caught, one for the log.
func (o *objectHeader) told(how callMode, err *error) {
	if how == telling {
		o.unheard(*err)
		*err = nil
	}
}

// refused gives the object back for a request that does not wait for a guard, which is false,
// and returns its error.
func (op *operationInfo) refused(o *objectHeader, falsePart string) error {
	op.putBack(o)
	return &mailbox.RefusedError{Object: o.Name(), Operation: op.name, Guard: falsePart}
}

// putBack gives the object back, in which nothing has happened.
func (op *operationInfo) putBack(o *objectHeader) {
	l := engine.Leaving{Op: op.index}
	if !o.box.Look(&l) {
		o.box.Yield(l)
	}
}

// giveBack is the part of release that need not know the types. In is the invocation that has run,
// if that declares what it opens.
func (op *operationInfo) giveBack(ctx context.Context, in typed, o *objectHeader, watched int, at *int) {
	l := engine.Leaving{Op: op.index, Changed: op.changed, MayHelp: engine.Outside(ctx)}
	if in != nil {
		l.Opens = op.opener(o, in)
	}
	switch watched {
	case watchedTrue: // and the operation changes the state, so that the scheduler is told that it has ended
		l.Asked = o.box.Watched()
		l.Open = bits.TrailingZeros64(l.Asked)
		*at = finished
		o.box.Yield(l)
		return
	case watchedFalse:
		l.Asked, l.Open = o.box.Watched(), -1
	}
	gone := o.box.Look(&l)
	if gone || !op.changed { // or else the scheduler is told that it has ended
		o.box.Count(op.index, true, 0)
	}
	*at = finished
	if !gone {
		o.box.Yield(l)
	}
}

// caught cleans up after a panic or a runtime.Goexit of a goroutine that still
// has the object. Whatever it was, the object goes on, and the goroutine, which
// may be dying, serves no other request.
func (op *operationInfo) caught(o *objectHeader, at int, value any, err *error) {
	switch {
	case at == evaluating:
		*err = op.guardCaught(o, value)
	case at == running && value == nil:
		*err = &mailbox.ExitError{Object: o.Name(), Operation: op.name}
		o.failed(op.name, 0, *err)
	case at == running:
		if !op.changed { // which the scheduler takes for one that has not run
			o.box.Count(op.index, true, 0)
		}
		*err = &mailbox.PanicError{Object: o.Name(), Operation: op.name, Value: value, Stack: debug.Stack()}
		o.failed(op.name, 0, *err)
	}
	o.box.Yield(engine.Leaving{Op: op.index, Changed: op.changed && at != evaluating})
}

// guardCaught returns the error of a guard that panicked with the value, or, if that is nil, called
// runtime.Goexit; and reports it.
func (op *operationInfo) guardCaught(o *objectHeader, value any) error {
	if value == nil {
		value = goexit // for what hears of it otherwise than by a result
	}
	err := o.guardError(op.index, nil, value, debug.Stack())
	o.failed(op.name, 0, err)
	return err
}
