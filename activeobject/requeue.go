package activeobject

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox"
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
// The step that ends the body puts the request behind those that wait inside, and
// before those that arrived while the body ran; it never blocks. Caller and context
// stay the same. If the context has ended or ends before the operation starts, or
// the request fails otherwise while it waits, the caller gets a *RequeuedError,
// which lists the bodies that have run. A body may be requeued any number of times.
//
// The compiler refuses a target whose result is of another type. (Requeuing is from
// Ada, where its parameters must be the same, too; ARM 9.5.4.)
func (op *Operation[T, A, R]) Requeue(arg A, how ...Requeuing) (R, error) {
	return op.RequeueTo(nil, arg, how...)
}

// RequeueTo is Requeue for another object, of whatever type, at which the request
// arrives like any other. If that has stopped, or its queue is full, the request
// fails with *RequeuedError.
func (op *Operation[T, A, R]) RequeueTo(o *Object[T], arg A, how ...Requeuing) (r R, err error) {
	h := &hop[T, A, R]{asked: op, at: o, arg: arg}
	for _, w := range how {
		h.how |= w
	}
	return r, h
}

// hop is a request's next turn. It is an error on its way out of the body that asks
// for it, and the request's body afterwards.
type hop[T, A, R any] struct {
	asked *Operation[T, A, R]
	at    *Object[T] // nil is the one in which the body ran
	arg   A
	how   Requeuing
	bound atomic.Bool // it is the turn of a request; another one that is given the same error gets a copy
	*stay[T, A, R]
}

// stay is what a hop needs that has to wait.
type stay[T, A, R any] struct {
	mailbox.Hop
	op  *Operation[T, A, R] // that of the object's type
	o   *Object[T]
	ctx context.Context // of a body that takes one
	to  sink[R]
	r   *mailbox.Request
}

// hopper is a *hop of whatever types.
type hopper interface {
	error
	// bind makes it the next turn of a request to the object at, whose result goes
	// to a sink.
	bind(to any, at site) (*mailbox.Hop, error)
	// elsewhere reports whether it is to another object than at.
	elsewhere(at site) bool
}

// turn is a hopper with a known result.
type turn[R any] interface {
	hopper
	// here runs the turn at once, if it is to the object that the caller has taken,
	// found the word w, and marked with mark, at which nobody waits; and if its
	// guard holds. It returns the mark of the object afterwards, which is 0 if the
	// object has been given back.
	here(at site, w, mark uint64) (r R, now uint64, ok bool, err error)
	// there makes the turn at another object, like a call, up to the next turn.
	there(ctx context.Context) (R, error)
}

// site is an object of whatever type, in which a body runs.
type site interface {
	Name() string
	// hop returns a hop to an operation that its type inherits from one with another
	// state. The result goes to the sink to or, if nobody has made the operation's
	// handle in the type, so that its result is of any type, to untyped.
	hop(t any, index int, arg any, how Requeuing, to any, untyped sink[any]) (*mailbox.Hop, error)
}

// sink is where a result goes.
type sink[R any] interface{ Deliver(result R, err error) }

// anySink is a sink for those who do not know the type of the result.
type anySink[R any] struct{ sink[any] }

// Deliver implements sink.
func (s anySink[R]) Deliver(result R, err error) { s.sink.Deliver(result, err) }

// someSink is a sink for the result of an operation that does not know its type,
// which is that of the sink nevertheless.
type someSink[R any] struct{ typed sink[R] }

// Deliver implements sink.
func (s someSink[R]) Deliver(result any, err error) {
	r, _ := result.(R) // which fails for a nil interface only
	s.typed.Deliver(r, err)
}

// Error implements error. It is seen only by a body that calls another one as a
// function, and by whoever gets an error that a body has wrapped.
func (h *hop[T, A, R]) Error() string {
	return fmt.Sprintf("sluice: a requeue to %s, which a body is to return as it is", h.asked.name)
}

// requeued makes of an error that a body has returned the request's next turn, if
// it is a hop, and else returns it.
func requeued(err error, r *mailbox.Request, to any, at site) error {
	h, ok := err.(hopper)
	if !ok {
		return err
	}
	m, err := h.bind(to, at)
	if err == nil {
		r.Requeue(m)
	}
	return err
}

// bind implements hopper.
func (h *hop[T, A, R]) bind(to any, at site) (*mailbox.Hop, error) {
	if !h.bound.CompareAndSwap(false, true) {
		h = &hop[T, A, R]{asked: h.asked, at: h.at, arg: h.arg, how: h.how}
	}
	h.stay = &stay[T, A, R]{op: h.asked, o: h.at}
	h.Keep, h.Commit = h.how&KeepPlace != 0, h.how&Commit != 0
	// A sink that is made of one which was made of another is that one: else they
	// would grow longer with every turn.
	switch to := to.(type) {
	case sink[R]:
		h.to = to
	case someSink[R]:
		h.to = to.typed
	case sink[any]:
		h.to = anySink[R]{to}
	default:
		return nil, &RequeueError{Object: at.Name(), Operation: h.op.name, Problem: fmt.Sprintf("its result is a %T, not what the caller waits for", *new(R))}
	}
	if h.o == nil {
		o, ok := at.(*Object[T])
		if !ok {
			return at.hop(h.op.typ, h.op.index, h.arg, h.how, to, untyped(h.to))
		}
		h.o = o
	}
	if h.o.class.typ != h.op.typ {
		own := h.op.heir(h.o.class.typ)
		if own == nil {
			return nil, h.op.foreign(h.o)
		}
		h.op = own
	}
	return h.aim()
}

// aim completes the hop, whose operation and object match.
func (h *hop[T, A, R]) aim() (_ *mailbox.Hop, err error) {
	if h.Key, err = h.op.keyFor(h.o, h.arg); err != nil {
		return nil, err
	}
	h.Box, h.Op, h.Leaf, h.Body = &h.o.box, h.op.index, h.op.lendable(h.o), h
	h.Board = func(r *mailbox.Request, box *mailbox.Mailbox) {
		if h.r = r; h.op.leaf == nil {
			h.ctx = r.Inside(r.Context(), box)
		}
	}
	return &h.Hop, nil
}

// untyped returns a sink of any results for those of a typed one.
func untyped[R any](to sink[R]) sink[any] {
	if a, ok := to.(anySink[R]); ok {
		return a.sink
	}
	return someSink[R]{to}
}

// hop implements site.
func (o *Object[T]) hop(t any, index int, arg any, how Requeuing, to any, untyped sink[any]) (*mailbox.Hop, error) {
	if !o.class.typ.extends(t) {
		return nil, &RequeueError{Object: o.Name(), Operation: fmt.Sprint(t), Problem: "it is of another type; use RequeueTo for another object"}
	}
	return o.class.typ.ops[index].self.hop(o, arg, how, to, untyped)
}

// hop implements handle.
func (op *Operation[T, A, R]) hop(o *Object[T], arg any, how Requeuing, to any, untyped sink[any]) (*mailbox.Hop, error) {
	typed, _ := arg.(A) // which fails for a nil interface only
	h := &hop[T, A, R]{asked: op, at: o, arg: typed, how: how}
	if _, knows := to.(sink[R]); !knows {
		if own, ok := any(untyped).(sink[R]); ok { // R is any
			to = own
		}
	}
	return h.bind(to, o)
}

// Run implements mailbox.Body.
func (h *hop[T, A, R]) Run() {
	returned := false
	defer func() {
		if !returned {
			h.caught(recover())
		}
	}()
	r, err := h.op.body(h.o, h.ctx, h.r, h.arg)
	if err != nil {
		if err = requeued(err, h.r, h.to, h.o); err == nil {
			returned = true
			return // for another turn
		}
	}
	h.to.Deliver(r, err)
	returned = true
}

func (h *hop[T, A, R]) caught(value any) {
	h.r.Left()
	if value == nil {
		h.r.Exit()
		return
	}
	h.Fail(&mailbox.PanicError{Object: h.o.Name(), Operation: h.op.name, Value: value, Stack: debug.Stack()})
}

// Fail implements mailbox.Body.
func (h *hop[T, A, R]) Fail(err error) {
	var none R
	h.to.Deliver(none, err)
}

// AskGuard implements mailbox.Body.
func (h *hop[T, A, R]) AskGuard() string { return h.op.guarded.Ask(h.o.state, h.arg) }

// Argument implements mailbox.Body.
func (h *hop[T, A, R]) Argument() any { return h.arg }

// Recycle implements mailbox.Body. It is the request's own body that is recycled.
func (h *hop[T, A, R]) Recycle() {}

// onward carries on with a request whose body, run by the calling goroutine, has
// asked for a hop. The caller has the object, in which it found the word w, and
// gives it back here.
//
// As long as nobody waits at the object, a hop to it is made on the spot if its guard
// holds: in the kernel the request would be the only one inside, and those that
// arrive meanwhile are outside. That nobody waits is certain: w says that nobody
// did, and whoever has come since makes the swap fail by which the object is marked
// with the next operation.
func (op *Operation[T, A, R]) onward(ctx context.Context, o *Object[T], arg A, w uint64, h hopper, how manner, p **request[T, A, R]) (r R, err error) {
	l := mailbox.Leaving{Op: op.index, Changed: op.changed, Lend: mailbox.ChainOf(ctx) == nil, Opens: op.opener(o, arg)}
	var ran mailbox.Turns // before the one that l is about
	for mark := op.mark; w == op.idle && o.class.filters == nil; {
		next, ok := h.(turn[R])
		if !ok {
			break
		}
		r, mark, ok, err = next.here(o, w, mark)
		if mark == 0 {
			return r, err // it has panicked
		}
		if !ok {
			break
		}
		last := l.Op
		l.Op, l.Changed, l.Opens = mailbox.Marked(mark), true, nil
		if h, ok = err.(hopper); ok {
			ran.Add(&o.box, last)
			continue
		}
		if !o.box.Word.CompareAndSwap(w|mark, w) {
			o.leave(l)
		}
		if how == telling {
			err = nil
		}
		return r, err
	}
	if next, ok := h.(turn[R]); ok && how < sending && h.elsewhere(o) {
		o.leave(l)
		ran.Add(&o.box, l.Op)
		if how == hopping {
			return r, &departure{next, ran} // who travels already goes on: no stack grows
		}
		return op.travel(ctx, o, next, ran)
	}
	return op.wait(ctx, o, arg, l, ran, h, how, p)
}

// leave gives the object back to whom the fast path is no way.
func (o *Object[T]) leave(l mailbox.Leaving) {
	given := false
	defer func() {
		if !given { // a guard that somebody waits for has panicked or exited: the kernel asks again
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

// here implements turn. Whoever has the object holds the hop, and does not write to
// it: others may have been given the same.
func (h *hop[T, A, R]) here(at site, w, mark uint64) (r R, now uint64, ok bool, err error) {
	o, mine := at.(*Object[T])
	op := h.asked
	if !mine || h.at != nil && h.at != o || op.idle != w {
		return r, mark, false, nil
	}
	now = mark
	state := asking
	defer func() {
		switch state {
		case finished:
			return
		case running:
			op.caught(o, state, recover(), &err)
		default:
			if value := recover(); value != nil {
				err = o.guardError(op.index, value)
			}
			o.box.Yield(mailbox.Leaving{Op: mailbox.Marked(mark), Changed: true}) // the turn before
		}
		now = 0
	}()
	if op.guard != "" && op.ask(o, h.arg) != "" || !o.box.Word.CompareAndSwap(w|mark, w|op.mark) {
		state = finished
		return r, now, false, nil
	}
	now, state = op.mark, running
	r, err = op.leaf(o.state, h.arg)
	state = finished
	return r, now, true, err
}

// travel takes a call to other objects, one after another.
func (op *Operation[T, A, R]) travel(ctx context.Context, o *Object[T], next turn[R], ran mailbox.Turns) (R, error) {
	for {
		r, err := next.there(ctx)
		if d, ok := err.(*departure); ok {
			ran.AddAll(d.ran)
			if next, ok = d.hopper.(turn[R]); ok {
				continue
			}
			return r, &RequeueError{Object: o.Name(), Operation: op.name, Problem: "a later body asked for an operation with another result"}
		}
		if u, ok := err.(undone); ok {
			err = ran.Failed(u.error)
		}
		return r, err
	}
}

// departure is what a turn there ends with whose body asks for another object.
type departure struct {
	hopper
	ran mailbox.Turns // at the object that is left
}

// there implements turn.
func (h *hop[T, A, R]) there(ctx context.Context) (r R, err error) {
	if h.how&Commit != 0 {
		ctx = context.WithoutCancel(ctx)
	}
	if h.at.class.typ != h.asked.typ && h.asked.heir(h.at.class.typ) == nil {
		return r, undone{h.asked.foreign(h.at)}
	}
	return h.asked.start(ctx, h.at, h.arg, hopping, nil)
}

// elsewhere implements hopper.
func (h *hop[T, A, R]) elsewhere(at site) bool { return h.at != nil && site(h.at) != at }

// wait makes a request wait for a hop. The caller has the object, in which the body
// has run, and gives it back here.
func (op *Operation[T, A, R]) wait(ctx context.Context, o *Object[T], arg A, l mailbox.Leaving, ran mailbox.Turns, h hopper, how manner, p **request[T, A, R]) (r R, err error) {
	now := mailbox.Now()
	c := op.record(ctx, o, arg, how, now, p)
	c.Op = l.Op // the body that ran last
	c.Ran(ran)
	given := false
	defer func() {
		if !given { // a key function has called runtime.Goexit
			o.box.Yield(l)
		}
	}()
	if err := requeued(h, &c.Request, c, o); err != nil {
		given = true
		o.box.Yield(l)
		c.posted(how, err, p)
		switch {
		case how < sending:
			op.put(c, now)
		case how == telling: // it was taken, and has run
			o.unheard(err)
			err = nil
		}
		return r, err
	}
	given = true
	if how >= sending {
		o.box.PostOn(ctx, &c.Request, l, now)
		c.posted(how, nil, p)
		return r, nil
	}
	returned := false
	defer func() {
		if !returned {
			c.Forsake()
		}
	}()
	o.box.CallOn(ctx, &c.Request, l, now)
	returned = true
	r, err = c.Result, c.Err
	op.put(c, now)
	return r, err
}

// RequeueError says that a body asked for a requeue that is not possible. The body
// has run.
type RequeueError struct {
	Object    string // in which the body ran
	Operation string // that it asked for
	Problem   string
}

// Error implements error.
func (e *RequeueError) Error() string {
	return fmt.Sprintf("sluice: %s: requeue to %s: %s", e.Object, e.Operation, e.Problem)
}
