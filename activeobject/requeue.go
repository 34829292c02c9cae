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
	h := &hop[T, A, R]{op: op, o: o, arg: arg, asked: op, wanted: o}
	for _, w := range how {
		h.Keep = h.Keep || w&KeepPlace != 0
		h.Commit = h.Commit || w&Commit != 0
	}
	return r, h
}

// hop is a request's next turn. It is an error on its way out of the body that asks
// for it, and the request's body afterwards.
type hop[T, A, R any] struct {
	mailbox.Hop
	op  *Operation[T, A, R]
	o   *Object[T]
	ctx context.Context // of a body that takes one
	arg A
	to  sink[R]
	r   *mailbox.Request

	bound  atomic.Bool // it is the turn of a request; another one that is given the same error gets a copy
	asked  *Operation[T, A, R]
	wanted *Object[T] // asked and wanted are what was said, op and o what became of it
}

// hopper is a *hop of whatever types.
type hopper interface {
	error
	// bind makes it the next turn of a request to the object at, whose result goes
	// to a sink.
	bind(to any, at site) (*mailbox.Hop, error)
}

// site is an object of whatever type, in which a body runs.
type site interface {
	Name() string
	// hop returns a hop to an operation that its type inherits from one with another
	// state. The result goes to the sink to or, if nobody has made the operation's
	// handle in the type, so that its result is of any type, to untyped.
	hop(t any, index int, arg any, like *mailbox.Hop, to any, untyped sink[any]) (*mailbox.Hop, error)
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
	return fmt.Sprintf("sluice: a requeue to %s, which a body is to return as it is", h.op.name)
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
		again := &hop[T, A, R]{op: h.asked, o: h.wanted, arg: h.arg}
		again.Keep, again.Commit = h.Keep, h.Commit
		h = again
	}
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
			return at.hop(h.op.typ, h.op.index, h.arg, &h.Hop, to, untyped(h.to))
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
func (o *Object[T]) hop(t any, index int, arg any, like *mailbox.Hop, to any, untyped sink[any]) (*mailbox.Hop, error) {
	if !o.class.typ.extends(t) {
		return nil, &RequeueError{Object: o.Name(), Operation: fmt.Sprint(t), Problem: "it is of another type; use RequeueTo for another object"}
	}
	return o.class.typ.ops[index].self.hop(o, arg, like, to, untyped)
}

// hop implements handle.
func (op *Operation[T, A, R]) hop(o *Object[T], arg any, like *mailbox.Hop, to any, untyped sink[any]) (*mailbox.Hop, error) {
	typed, _ := arg.(A) // which fails for a nil interface only
	h := &hop[T, A, R]{op: op, o: o, arg: typed}
	h.Keep, h.Commit = like.Keep, like.Commit
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

// onward carries on with a request whose body has asked for a hop. The caller has
// the object, in which the body has run, and gives it back.
func (op *Operation[T, A, R]) onward(ctx context.Context, o *Object[T], arg A, h hopper, how manner, p **request[T, A, R]) (r R, err error) {
	now := mailbox.Now()
	c := op.record(ctx, o, arg, how, now, p)
	given := false
	defer func() {
		if !given { // a key function has called runtime.Goexit
			o.box.Yield(mailbox.Leaving{Op: op.index, Changed: op.changed})
		}
	}()
	if err := requeued(h, &c.Request, c, o); err != nil {
		given = true
		o.box.Yield(mailbox.Leaving{Op: op.index, Changed: op.changed, Lend: mailbox.ChainOf(ctx) == nil})
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
	l := mailbox.Leaving{Op: op.index, Changed: op.changed, Lend: mailbox.ChainOf(ctx) == nil, Opens: op.opener(o, arg)}
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
