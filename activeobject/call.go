package activeobject

import (
	"context"
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"
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
// has, and after *RequeuedError and *BadRequeueError some have.
func (op *Operation[T, A, R]) Call(ctx context.Context, o *Object[T], arg A) (r R, err error) {
	// This is perform, written out, for an object that is idle; its price is what
	// a guarded call costs over a mutex. The deferred function captures only what
	// it needs to clean up: every word more costs.
	w := o.box.Word.Load()
	if w&^mailbox.Parked != op.idle || ctx.Err() != nil || !o.box.Word.CompareAndSwap(w, w|op.mark) {
		return op.enter(ctx, o, arg, calling, nil)
	}
	at := asking
	defer func() {
		if at != finished {
			op.common().caught(&o.core, at, mailbox.Panicked(recover()), &err)
		}
	}()
	if op.plain != nil {
		if !op.plain(o.state) {
			at = finished // with the object, which queue gives back
			return op.queue(ctx, o, arg, op.guard, calling, nil, nil)
		}
	} else if op.single != nil {
		if !op.single(o.state, arg) {
			at = finished
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
// fails with a *RefusedError, which matches ErrRefused and carries the reason. If its
// body asks for a requeue the same holds for the next turn: the error is then a
// *RequeuedError around that.
func (op *Operation[T, A, R]) Try(ctx context.Context, o *Object[T], arg A) (R, error) {
	return op.start(ctx, o, arg, trying, nil)
}

// Send hands in the request and returns the future of its result. If ctx ends
// while the request waits, it leaves the queue, never runs, and the future fails
// with the context's error. A body that cannot start at once, or that may block,
// runs on another goroutine.
func (op *Operation[T, A, R]) Send(ctx context.Context, o *Object[T], arg A) Future[R] {
	var p passage
	r, err := op.start(ctx, o, arg, sending, &p)
	if p.record != nil {
		return actor.Promised(&p.record.(*request[T, A, R]).pending)
	}
	return actor.Settled(r, err)
}

// Begin is Send for a result that is awaited once: it returns a ticket for it,
// which costs no allocation if ctx cannot end, whether the request has to wait or
// not. (A body that takes a context costs that context.)
func (op *Operation[T, A, R]) Begin(ctx context.Context, o *Object[T], arg A) Ticket[R] {
	var p passage
	r, err := op.start(ctx, o, arg, beginning, &p)
	if p.record != nil {
		return actor.Ticketed(&p.record.(*request[T, A, R]).pending)
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
func (t *common) foreign(o *core) error {
	return &TypeError{Object: o.Name(), Type: o.class.typ.name, Operation: t.name, Declared: t.species.name}
}

// manner is how a request is made.
type manner uint8

const (
	calling manner = iota
	trying
	hopping    // calling, for a request that has been requeued from another object; see requeue.go
	retrying   // trying, likewise
	attempting // trying, for select.go
	selecting  // calling, only if the object is free and the guard holds; see select.go
	sending
	beginning // sending, for a ticket
	telling
	answering // telling, with a reply; see message.go
)

// tries reports whether the request does not wait.
func (m manner) tries() bool { return m == trying || m == retrying || m == attempting }

// passage is what there is to say of a request on its way, besides how it is made,
// its result and its error. It is nil if nobody asks and there is nothing to say.
//
// Each Send clears one, so it is small: what only others need is the history.
type passage struct {
	// record is that of a request that was sent or begun, or came by message, and is
	// still on its way. (If it came by message nobody may touch that: it may have
	// ended since.)
	record record
	// history is that of a request that comes from other objects, or came by message,
	// or is a case of Select; of others it is nil.
	history *history
}

// history is what has gone before a request, and what has become of it.
type history struct {
	letter letter        // the message that it came by
	ran    mailbox.Turns // the bodies that have run, of a request that comes from other objects
	// undone says of a request that has failed that no body has run for it here.
	undone bool
	// over says that its body has returned result and err: see keep.
	over   bool
	result any
	err    error
}

// past returns the history of the request, or nil.
func (p *passage) past() *history {
	if p == nil {
		return nil
	}
	return p.history
}

// turns returns the bodies that have run before.
func (p *passage) turns() (ran mailbox.Turns) {
	if h := p.past(); h != nil {
		ran = h.ran
	}
	return ran
}

// failed returns the error of a request for which no body has run here.
func (p *passage) failed(err error) error {
	h := p.past()
	if h == nil {
		return err
	}
	h.undone = true
	return h.ran.Failed(err)
}

// keep keeps what the body of a request that came by message has returned, or that its
// guard has failed. Whoever has run it is about to give the object back, and, serving
// others, may lend himself to a body that ends his goroutine; or the guard has ended it.
// The reply is due all the same. It is not inlined into what every operation has of its own.
//
//go:noinline
func (p *passage) keep(result any, err error) {
	h := p.history
	h.over, h.result, h.err = true, result, err
}

// How far perform has come.
const (
	finished = iota
	asking
	running
	releasing
)

// start is enter, for an object that is probably idle.
func (op *Operation[T, A, R]) start(ctx context.Context, o *Object[T], arg A, how manner, p *passage) (R, error) {
	w := o.box.Word.Load()
	if ctx.Err() != nil || w&^mailbox.Parked != op.idle || !o.box.Word.CompareAndSwap(w, w|op.mark) {
		return op.enter(ctx, o, arg, how, p)
	}
	return op.perform(ctx, o, arg, w, how, p)
}

// enter is the way of every request but the Call that finds the object idle.
func (op *Operation[T, A, R]) enter(ctx context.Context, o *Object[T], arg A, how manner, p *passage) (r R, err error) {
	if how == calling && p == nil && o.box.Word.Load()&mailbox.Wide != 0 {
		if r, err, in := op.beside(ctx, o, arg); in {
			return r, err
		}
	}
	if o.class.typ != op.species {
		if heir := op.heir(&o.core); heir != nil {
			return heir.start(ctx, o, arg, how, p)
		}
	}
	var key keyer
	if op.keyed {
		key = func(boxed bool) (any, bool) { return op.key(arg, boxed) }
	}
	w, on, err := op.common().door(ctx, &o.core, how, key, p)
	var f *filtered
	switch on {
	case inside:
		return op.perform(ctx, o, arg, w, how, p)
	case filtering:
		if f, err = op.common().pass(ctx, &o.core, arg); err == nil {
			ctx = f.ctx
		}
	}
	if err != nil {
		return r, err
	}
	return op.queue(ctx, o, arg, "", how, p, f)
}

// way is how a request goes on that has not found the object idle.
type way uint8

const (
	outside   way = iota // through the kernel, unless there is an error
	inside               // the object has been taken
	filtering            // past the interceptors
)

// door finds out how a request goes on that has not found the object idle. If it has
// taken the object it returns the word that it has found. Key is nil if no key has to
// be looked at before.
func (t *common) door(ctx context.Context, o *core, how manner, key keyer, p *passage) (w uint64, on way, err error) {
	if err := ctx.Err(); err != nil {
		return 0, outside, p.failed(err)
	}
	switch {
	case o.class.typ != t.species:
		return 0, outside, p.failed(t.foreign(o))
	case o.class.filters != nil:
		return 0, filtering, nil
	}
	if t.leafed && t.looks&guards.AtWaiting == 0 && !t.strays(o, how) && mailbox.Tamed(ctx) {
		if key != nil {
			if err := t.checkKey(o, key); err != nil {
				return 0, outside, p.failed(err)
			}
		}
		if w, ok := o.box.Take(t.mark); ok {
			if err := ctx.Err(); err != nil { // it ended while we spun
				t.putBack(o)
				return 0, outside, p.failed(err)
			}
			// The word that we swapped says whether anybody waits in a line. If nobody did,
			// nobody does: who comes finds the object taken.
			if t.headOfLine && w&mailbox.Recheck != 0 {
				t.putBack(o)
				return 0, outside, nil
			}
			return w, inside, nil
		}
	}
	return 0, outside, nil
}

// strays reports whether a leaf's request is to keep off the fast path: there may be a line
// to wait in; or the object fans out, and the request is to run on another goroutine.
func (t *common) strays(o *core, how manner) bool {
	if o.class.config.Fan != nil {
		return how >= sending
	}
	return t.headOfLine && o.box.Word.Load()&mailbox.Recheck != 0
}

// perform carries out a leaf operation on the calling goroutine, which has taken
// the object, found the word w, and now gives the object back; or, if the guard
// is false, queues the request.
func (op *Operation[T, A, R]) perform(ctx context.Context, o *Object[T], arg A, w uint64, how manner, p *passage) (r R, err error) {
	at := asking
	counted := o.class.config.Counted
	defer func() {
		if at != finished {
			op.common().caught(&o.core, at, mailbox.Panicked(recover()), &err)
			o.performed(at, how, p, &err)
		}
	}()
	if op.guard != "" {
		if counted {
			o.box.Count(op.index, false, 1)
		}
		if falsePart := op.ask(o, arg); falsePart != "" {
			at = finished
			switch how {
			case trying, retrying, attempting, selecting:
				return r, op.common().refused(&o.core, falsePart, how, p)
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
		if how == answering {
			p.keep(r, err)
		}
		op.release(ctx, o, arg, unasked, &at)
	}
	at = finished
	if how == telling {
		err = nil
	}
	return r, err
}

// performed completes the error of a perform that has been caught.
func (o *core) performed(at int, how manner, p *passage, err *error) {
	if at == asking {
		*err = p.failed(*err)
		if how == answering {
			p.keep(nil, *err)
		}
	}
	if how == telling {
		o.unheard(*err)
		*err = nil
	}
}

// refused gives the object back for who does not wait for a guard, which is false,
// and returns his error.
func (t *common) refused(o *core, falsePart string, how manner, p *passage) error {
	t.putBack(o)
	if how == selecting {
		return errNotNow
	}
	return p.failed(mailbox.Named(o.Name(), &kernel.Refused{Operation: t.name, Guard: falsePart}))
}

// putBack gives the object back to whom nothing has happened.
func (t *common) putBack(o *core) {
	l := mailbox.Leaving{Op: t.index}
	if !o.box.Look(&l) {
		o.box.Yield(l)
	}
}

// release gives the object back when that takes more than a swap. It sets at to
// finished as soon as the object is no longer the caller's to clean up after.
func (op *Operation[T, A, R]) release(ctx context.Context, o *Object[T], arg A, watched int, at *int) {
	var opens kernel.Opener
	if op.opens != nil {
		opens = op.opener(o, arg)
	}
	op.common().giveBack(ctx, opens, &o.core, watched, at)
}

func (t *common) giveBack(ctx context.Context, opens kernel.Opener, o *core, watched int, at *int) {
	l := t.left(ctx, opens)
	switch watched {
	case open: // and the operation changes the state, so that the kernel is told that it has ended
		l.Asked = o.box.Watched()
		l.Open = bits.TrailingZeros64(l.Asked)
		*at = finished
		o.box.Yield(l)
		return
	case closed:
		l.Asked, l.Open = o.box.Watched(), -1
	}
	gone := o.box.Look(&l)
	if gone || !t.changed { // or else the kernel is told that it has ended
		o.box.Count(t.index, true, 0)
	}
	*at = finished
	if !gone {
		o.box.Yield(l)
	}
}

// leaving says how a goroutine that has run the body leaves the object.
func (op *Operation[T, A, R]) leaving(ctx context.Context, o *Object[T], arg A) mailbox.Leaving {
	var opens kernel.Opener
	if op.opens != nil {
		opens = op.opener(o, arg)
	}
	return op.common().left(ctx, opens)
}

func (t *common) left(ctx context.Context, opens kernel.Opener) mailbox.Leaving {
	return mailbox.Leaving{Op: t.index, Changed: t.changed, Lend: mailbox.Outside(ctx), Opens: opens}
}

// ask asks the guard, for the goroutine that has taken the object, or about a request.
func (op *Operation[T, A, R]) ask(o *Object[T], arg A) (falsePart string) {
	switch {
	case op.plain != nil:
		if op.plain(o.state) {
			return ""
		}
		return op.guard
	case op.single != nil:
		if op.single(o.state, arg) {
			return ""
		}
		return op.guard
	}
	return op.guarded.Ask(o.state, arg)
}

// caught cleans up after a panic or a runtime.Goexit in Call or perform, which still
// has the object. Whatever it was, the object goes on, and the goroutine, which
// may be dying, serves nobody.
func (t *common) caught(o *core, at int, value any, err *error) {
	switch {
	case at == asking && value == nil:
		*err = o.guardError(t.index, goexit, debug.Stack()) // for who hears of it otherwise than by a result
		o.failed(t.name, 0, *err)
	case at == asking:
		*err = o.guardError(t.index, value, debug.Stack())
		o.failed(t.name, 0, *err)
	case at == running && value == nil:
		o.failed(t.name, 0, &mailbox.ExitError{Object: o.Name(), Operation: t.name})
	case at == running:
		if !t.changed { // which the kernel takes for one that has not run
			o.box.Count(t.index, true, 0)
		}
		*err = &mailbox.PanicError{Object: o.Name(), Operation: t.name, Value: value, Stack: debug.Stack()}
		o.failed(t.name, 0, *err)
	}
	o.box.Yield(mailbox.Leaving{Op: t.index, Changed: t.changed && at != asking})
}

// errand is an operation of an object with its argument: what is to be done for a
// request.
type errand[T, A, R any] struct {
	op  *Operation[T, A, R]
	o   *Object[T]
	arg A
}

// work is an errand as the rest of the package sees it. (The methods are not the
// errand's, as others embed that, and would have them compiled for themselves.)
type work[T, A, R any] errand[T, A, R]

// job is a *work of whatever types.
type job interface {
	// site returns what operation of what object it is.
	site() (*common, *core)
	// AskGuard and Argument are those of mailbox.Body.
	AskGuard() string
	Argument() any
	// key is a keyer.
	key(boxed bool) (key any, equal bool)
	// keysOf tells open what the operation opens of the i-th of its families.
	keysOf(i int, open func(key any))
	// apply runs the body and keeps its result in a place, if that is a *R; if not, it
	// is the result of home, whatever the type.
	apply(ctx context.Context, place any, home record) error
}

func (w *work[T, A, R]) site() (*common, *core) { return w.op.common(), &w.o.core }

// AskGuard implements mailbox.Body.
func (w *work[T, A, R]) AskGuard() string { return w.op.ask(w.o, w.arg) }

// Argument implements mailbox.Body.
func (w *work[T, A, R]) Argument() any { return w.arg }

func (w *work[T, A, R]) key(boxed bool) (key any, equal bool) { return w.op.key(w.arg, boxed) }

func (w *work[T, A, R]) keysOf(i int, open func(key any)) { w.op.keys[i](w.arg, open) }

func (w *work[T, A, R]) apply(ctx context.Context, place any, home record) (err error) {
	var r R
	if w.op.leaf != nil {
		r, err = w.op.leaf(w.o.state, w.arg)
	} else {
		r, err = w.op.blocks(w.o.state, ctx, w.arg)
	}
	if result, ok := place.(*R); ok {
		*result = r
	} else {
		home.keep(r)
	}
	return err
}

// request is the record of a request that has to wait, or whose body may.
type request[T, A, R any] struct {
	// What asking a guard looks at is together, as very many may wait.
	errand[T, A, R]
	// These are not embedded, as their methods would be compiled for every request.
	pending actor.Pending[R]
	call    call
}

// call is what a request is whatever its types, besides a mailbox.Request.
type call struct {
	filtered *filtered // what it has passed of interceptors
	letter             // that it came by
	pooled   bool      // back to its pool when nobody needs it any more
	begun    bool      // its body has begun to run
	gone     uint32    // 1 if its sender has been found to have gone; atomic, as Explain may look
}

// record is a *request of whatever types.
type record interface {
	mailbox.Body
	// parts returns what it consists of.
	parts() (job, *call, *mailbox.Request)
	// place returns a *R for the result.
	place() any
	// keep makes the result, which is of the right type, or nil for a zero one, that of
	// the request.
	keep(result any)
	// end makes the error that of the request, which has ended.
	end(err error)
	// outcome returns result and error.
	outcome() (any, error)
	// free puts the record back into its pool, if it is from one.
	free()
}

func (c *request[T, A, R]) work() *work[T, A, R] { return (*work[T, A, R])(&c.errand) }

func (c *request[T, A, R]) parts() (job, *call, *mailbox.Request) {
	return c.work(), &c.call, &c.pending.Request
}
func (c *request[T, A, R]) place() any            { return &c.pending.Result }
func (c *request[T, A, R]) keep(result any)       { c.pending.Result, _ = result.(R) }
func (c *request[T, A, R]) outcome() (any, error) { return c.pending.Result, c.pending.Err }

// Run implements mailbox.Body.
func (c *request[T, A, R]) Run() {
	c.call.begun = true
	if c.op.leaf == nil || c.o.class.around {
		runOwn(c.work(), c, &c.pending.Result)
		return
	}
	// This is run, written out, for a leaf body with nothing around it: those that wait
	// and those that let them in go through as few lines of code as they can, as the
	// first-level cache of a processor does not hold many.
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			c.op.common().escaped(&c.o.core, &c.pending.Request, c, mailbox.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	result, err := c.op.leaf(c.o.state, c.arg)
	c.pending.Result = result
	if err == nil || !goesOn(&err, c, &c.o.core) {
		c.end(err)
	}
	returned = true
}

// runOwn is run for a request that has not been requeued.
func runOwn(j job, home record, place any) {
	_, _, r := home.parts()
	run(j, home, place, r.BodyContext())
}

// run runs the body of a request, and keeps its result where that belongs; unless it
// asks for another turn.
func run(j job, home record, place any, ctx context.Context) {
	t, o := j.site()
	_, _, r := home.parts()
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			t.escaped(o, r, home, mailbox.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	err := t.body(o, ctx, j, place, home)
	r.Left() // if it does not return, who catches that says so
	if err == nil || !goesOn(&err, home, o) {
		home.end(err)
	}
	returned = true
}

// goesOn reports whether a request, whose body has returned an error, has another
// turn before it. If that cannot be made the error says why.
func goesOn(err *error, home record, o *core) bool {
	*err = requeued(*err, home, o)
	return *err == nil
}

// escaped cleans up after a body that panicked, or, if there is no value, left
// through runtime.Goexit.
func (t *common) escaped(o *core, r *mailbox.Request, home record, value any, stack []byte) {
	r.Left()
	if value == nil {
		o.failed(t.name, r.Arrival(), &mailbox.ExitError{Object: o.Name(), Operation: t.name})
		r.Exit()
		return
	}
	err := &mailbox.PanicError{Object: o.Name(), Operation: t.name, Value: value, Stack: stack}
	o.failed(t.name, r.Arrival(), err)
	home.Fail(err)
}

// AskGuard implements mailbox.Body.
func (c *request[T, A, R]) AskGuard() string { return c.op.ask(c.o, c.arg) }

// Argument implements mailbox.Body.
func (c *request[T, A, R]) Argument() any { return c.arg }

// Fail implements mailbox.Body.
func (c *request[T, A, R]) Fail(err error) {
	if !c.o.class.around && !c.pending.Request.Requeued() {
		c.pending.Err = err // no body has left a result, and nobody else is to be told
		return
	}
	var none R
	c.pending.Result = none
	if a := c.o.class.audit; a != nil {
		a.undeclared(err)
	}
	c.end(err)
}

func (c *request[T, A, R]) end(err error) {
	c.pending.Err = err
	if c.call.filtered != nil {
		c.call.told(&c.o.core, &c.pending.Request, err)
	}
}

// told tells interceptors that the request has ended. Of a call, the caller's
// goroutine does that.
func (c *call) told(o *core, r *mailbox.Request, err error) {
	if !r.Called() {
		o.class.system.Workers().Dispatch(over{c.filtered, err})
	}
}

// Recycle implements mailbox.Body.
func (c *request[T, A, R]) Recycle() { c.call.recycle(c, &c.o.core, &c.pending.Request, c.pending.Err) }

// recycle is for a request that was told, and has ended; or whose ticket has been
// redeemed.
func (c *call) recycle(rec record, o *core, r *mailbox.Request, err error) {
	switch {
	case r.Ticket, !r.Told:
	case c.message != nil:
		c.answer(rec, o, r, err)
		return
	default:
		o.unheard(err)
	}
	rec.free()
}

func (c *request[T, A, R]) free() {
	pool := &c.op.pools.tells
	switch {
	case !c.call.pooled:
		var none A
		c.arg, c.o, c.call.filtered = none, nil, nil
		c.pending.Request.Release()
		return
	case c.pending.Request.Ticket:
		pool = &c.op.pools.records
	}
	c.putBack(pool)
}

// putBack lets go of what belonged to a request that has ended, and puts the record
// into a pool, unless that is nil.
func (c *request[T, A, R]) putBack(pool *sync.Pool) {
	var none A
	var zero R
	c.arg, c.pending.Result, c.pending.Err, c.o = none, zero, nil, nil
	c.call = call{}
	forget(&c.pending.Request, c.op.index)
	if pool != nil {
		pool.Put(c)
	}
}

// forget is the part of it that need not know the types.
func forget(r *mailbox.Request, op int) {
	r.Try, r.Ticket = false, false
	r.Op, r.Key, r.Claim = op, nil, nil // it may have been requeued
	r.Forget()
}

// newRequest makes the record of a request.
func (op *Operation[T, A, R]) newRequest(waits bool) *request[T, A, R] {
	c := new(request[T, A, R])
	c.op = op
	op.common().create(&c.pending.Request, c, waits)
	return c
}

// create is the part of newRequest that need not know the types.
func (t *common) create(r *mailbox.Request, body mailbox.Body, waits bool) {
	r.Init(body)
	r.Op, r.Leaf = t.index, t.leafed
	if waits {
		r.ForCall()
	}
}

// pools are those of an operation's records, all of which are *request[T, A, R].
type pools struct {
	records sync.Pool // for Call and Try
	tells   sync.Pool // and for Tell
}

// source returns the pool that the record of a request is to be taken from which is made
// in the given manner, or nil; and whether it is put back there by free. Records are
// not pooled across the wall of a testing/synctest bubble.
func (p *pools) source(ctx context.Context, how manner, now time.Duration) (pool *sync.Pool, pooled bool) {
	switch {
	case how < sending:
		if mailbox.Bubbled(now) {
			return nil, false
		}
		return &p.records, false // took puts it back
	case ctx.Done() != nil:
		// Its holder, or the watch over its context, may act late, so that they must not
		// meet a record in its next life.
		return nil, false
	case how >= telling:
		// Nobody has a hold on it: no future, and no watch over the context. And it has no
		// channel that a bubble could mind.
		return &p.tells, true
	case how == beginning && !mailbox.Bubbled(now):
		return &p.records, true
	}
	return nil, false
}

// record returns the record of a request that is made in the given manner.
func (op *Operation[T, A, R]) record(ctx context.Context, o *Object[T], arg A, how manner, now time.Duration) (c *request[T, A, R]) {
	pool, pooled := op.pools.source(ctx, how, now)
	if pool != nil {
		c, _ = pool.Get().(*request[T, A, R])
	}
	if c == nil {
		c = op.newRequest(how < sending || how == beginning)
	}
	c.o, c.arg, c.call.pooled = o, arg, pooled
	return c
}

// prepare makes r, which is a new record's, a request that is made in a manner.
func (t *common) prepare(o *core, r *mailbox.Request, how manner) {
	if r.Leaf = t.lendable(o); how == calling {
		r.Told, r.Try, r.Patient = false, false, true // it has no Ticket
	} else {
		t.prepared(r, how)
	}
}

func (t *common) prepared(r *mailbox.Request, how manner) {
	r.Ticket, r.Told = how == beginning, how >= telling
	r.Answers(false) // see charge
	r.Try, r.Patient = how.tries(), false
}

// queue is the way through the kernel. If falsePart is not empty the caller has
// taken the object, and found the guard false; the object is given back.
func (op *Operation[T, A, R]) queue(ctx context.Context, o *Object[T], arg A, falsePart string, how manner, p *passage, f *filtered) (r R, err error) {
	if falsePart != "" && !mailbox.Tamed(ctx) {
		op.common().putBack(&o.core) // before ctx is asked anything
		falsePart = ""
	}
	now := mailbox.Now()
	c := op.record(ctx, o, arg, how, now)
	c.call.filtered = f
	op.common().prepare(&o.core, &c.pending.Request, how)
	if how >= sending {
		return r, op.common().post(ctx, c, falsePart, how, now, p)
	}
	op.common().await(ctx, &o.core, c, &c.call, &c.pending.Request, falsePart, now, p)
	return op.took(c, now)
}

// await hands in the record of a call, and returns when that has ended.
func (t *common) await(ctx context.Context, o *core, rec record, c *call, r *mailbox.Request, falsePart string, now time.Duration, p *passage) {
	if t.family || !t.leafed || o.class.fits {
		if err := t.fit(ctx, o, rec, falsePart != "", p); err != nil {
			return
		}
	}
	if h := p.past(); h != nil {
		r.Ran(h.ran)
	}
	returned := false
	defer func() {
		if !returned { // a guard that was asked here, or an interceptor, has called runtime.Goexit
			t.forsake(o, r, c)
		}
	}()
	if falsePart == "" {
		o.box.Call(ctx, r, now)
	} else {
		o.box.CallHeld(ctx, r, falsePart, now)
	}
	returned = true
	if h := p.past(); h != nil {
		h.undone = !c.begun
	}
}

// post hands in the record of a request that nobody waits for.
func (t *common) post(ctx context.Context, rec record, falsePart string, how manner, now time.Duration, p *passage) (err error) {
	j, c, r := rec.parts()
	_, o := j.site()
	if err = t.fit(ctx, o, rec, falsePart != "", p); err != nil {
		return err
	}
	p.charge(ctx, o, rec, how)
	if falsePart == "" {
		err = o.box.Post(ctx, r, now)
	} else {
		o.box.PostHeld(ctx, r, falsePart, now)
	}
	if err != nil {
		c.filtered.done(err)
	}
	p.posted(rec, how, err)
	return err
}

// fit gives the record of a request what that of a plain one does not need: its key,
// and a context. If there is no key the request has failed.
func (t *common) fit(ctx context.Context, o *core, rec record, held bool, p *passage) (err error) {
	j, c, r := rec.parts()
	if t.family {
		r.Key, err = t.keyHeld(o, j.key, held)
	}
	if o.class.claims && err == nil { // it fans out, so that nobody has taken it
		r.Claim, err = t.claim(o, j.Argument)
	}
	if err != nil {
		c.filtered.done(err)
		c.filtered = nil
		err = p.failed(err)
		rec.Fail(err)
		rec.free()
		return err
	}
	t.enterChain(ctx, o, r)
	return nil
}

// took returns what has come of a call, and puts back its record, which then pins
// neither argument nor result.
func (op *Operation[T, A, R]) took(c *request[T, A, R], now time.Duration) (R, error) {
	r, err := c.pending.Result, c.pending.Err
	if c.call.filtered != nil {
		c.call.filtered.done(err)
	}
	if !mailbox.Bubbled(now) {
		c.putBack(&op.pools.records)
	}
	return r, err
}

// forsake leaves the record of a call to whoever may still have it: the caller's
// goroutine is ending.
func (t *common) forsake(o *core, r *mailbox.Request, c *call) {
	r.Forsake()
	c.filtered.done(&mailbox.ExitError{Object: o.Name(), Operation: t.name})
}

// charge puts the record of a request that came by message in charge of the reply,
// also if this goroutine dies.
func (p *passage) charge(ctx context.Context, o *core, rec record, how manner) {
	if how != answering {
		return
	}
	_, c, r := rec.parts()
	c.letter, p.record = p.history.letter, rec
	r.Answers(c.sender != nil)
	if c.sender != nil && mailbox.ChainOf(ctx) != nil {
		c.pooled = false // there may be an edge to it
		o.class.system.Follows(c.sender, o.addressed(), r)
	}
}

// posted gives the record of a request that has been posted, or with err was not
// taken, to whom it belongs now.
func (p *passage) posted(rec record, how manner, err error) {
	switch {
	case (how == sending || how == beginning) && err == nil:
		p.record = rec
	case err != nil:
		if how == answering {
			p.record = nil
		}
		rec.free()
	}
}

// enterChain gives a body that takes a context, and interceptors, one that knows
// where it is.
func (t *common) enterChain(ctx context.Context, o *core, r *mailbox.Request) {
	if !t.leafed || o.class.filters != nil {
		r.Inside(ctx, &o.box)
	}
}
