package activeobject

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

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
// before those that arrived while the body ran: if the guard holds, it starts before
// another request is let in. It never blocks. Caller and context stay the same. If the
// context has ended or ends before the operation starts, or the request fails
// otherwise while it waits, the caller gets a *RequeuedError, which lists the bodies
// that have run. A request that does not wait, as it was made by Try or by Select with
// Otherwise, does not wait here either: it fails so, around a *RefusedError. A body may
// be requeued any number of times.
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
	h := &hop[T, A, R]{errand: errand[T, A, R]{op, o, arg}}
	for _, w := range how {
		h.how |= w
	}
	return r, h
}

// hop is a request's next turn: an error on its way out of the body that asks for it.
// The same one may be given to several requests, so it is not changed.
type hop[T, A, R any] struct {
	errand[T, A, R] // at a nil object if that is the one in which the body runs
	how             Requeuing
}

// hopper is a *hop of whatever types.
type hopper interface {
	error
	// bind makes it the next turn of the request home to the object at.
	bind(home record, at *core) (*mailbox.Hop, error)
	// target returns the object that it is to, or nil, and how.
	target() (*core, Requeuing)
}

// turn is a hopper with a known result.
type turn[R any] interface {
	hopper
	// here runs the turn at once, if it is to the object that the caller has taken,
	// found the word w, and marked with mark, at which nobody waits; and if its
	// guard holds. It returns the mark of the object afterwards, which is 0 if the
	// object has been given back.
	here(at *core, w, mark uint64) (r R, now uint64, ok bool, err error)
	// there makes the turn at another object, hopping or retrying, up to the next such turn.
	there(ctx context.Context, how manner, ran mailbox.Turns) (R, error)
}

// Error implements error. It is seen only by a body that calls another one as a
// function, and by whoever gets an error that a body has wrapped.
func (h *hop[T, A, R]) Error() string { return h.op.common().asked() }

func (t *common) asked() string {
	return fmt.Sprintf("sluice: a requeue to %s, which a body is to return as it is", t.name)
}

// requeued makes of an error that a body has returned the request's next turn, if
// it is a hop. Else it returns the request's error.
func requeued(err error, home record, at *core) error {
	h, ok := err.(hopper)
	if !ok {
		return err
	}
	_, _, r := home.parts()
	m, err := h.bind(home, at)
	switch err.(type) {
	case nil:
		r.Requeue(m)
		return nil
	case *BadRequeueError: // of the body that has asked for it
		return err
	}
	return r.Stranded(&at.box, err)
}

// bind implements hopper.
func (h *hop[T, A, R]) bind(home record, at *core) (*mailbox.Hop, error) {
	place := home.place()
	if _, ok := place.(*R); !ok {
		if err := h.op.common().misfit(place, new(R), at); err != nil {
			return nil, err
		}
	}
	o := h.o
	if o == nil {
		var ok bool
		if o, ok = at.box.Host().(*Object[T]); !ok {
			return h.op.common().inheritedHop(h.arg, at, h.how, home)
		}
	}
	return h.op.turn(o, h.arg, at, h.how, home)
}

// misfit returns an error if a result, to which there is a pointer, does not fit a
// place for one of another type.
func (t *common) misfit(place, result any, at *core) error {
	if _, ok := place.(*any); ok {
		return nil
	}
	return &BadRequeueError{Object: at.Name(), Operation: t.name, Problem: fmt.Sprintf("its result is a %v, not what the caller waits for", reflect.TypeOf(result).Elem())}
}

// inheritedHop is bind for a hop to an operation that the type of the object inherits
// from one with another state. If nobody has made the operation's handle in the type
// its result is of any type, and home knows which.
func (t *common) inheritedHop(arg any, at *core, how Requeuing, home record) (*mailbox.Hop, error) {
	if !at.class.typ.extends(t.species) {
		return nil, &BadRequeueError{Object: at.Name(), Operation: t.species.name, Problem: "it is of another type; use RequeueTo for another object"}
	}
	return at.class.typ.all[t.index].self.hop(at, arg, how, home)
}

// hop implements handle.
func (op *Operation[T, A, R]) hop(at *core, arg any, how Requeuing, home record) (*mailbox.Hop, error) {
	typed, _ := arg.(A) // which fails for a nil interface only
	return op.turn(at.box.Host().(*Object[T]), typed, at, how, home)
}

// turn makes the operation at an object the next turn of a request that comes from
// another one, or from the same.
func (op *Operation[T, A, R]) turn(o *Object[T], arg A, from *core, how Requeuing, home record) (*mailbox.Hop, error) {
	if o.class.typ != op.species {
		own := op.heir(&o.core)
		if own == nil {
			return nil, op.common().foreign(&o.core)
		}
		op = own
	}
	l := &leg[T, A, R]{work: work[T, A, R]{op, o, arg}}
	l.stay.job = &l.work
	return l.stay.board(from, how, home)
}

// leg is a stay with its job, which is allocated with it.
type leg[T, A, R any] struct {
	stay stay
	work work[T, A, R]
}

// stay is what a request is requeued for, and so its body from then on.
type stay struct {
	mailbox.Hop
	job
	home  record
	place any             // for the result
	ctx   context.Context // of a body that takes one
}

// board makes s, whose operation and object match, a request's next turn.
func (s *stay) board(from *core, how Requeuing, home record) (_ *mailbox.Hop, err error) {
	t, o := s.job.site()
	s.home, s.place = home, home.place()
	if t.family {
		if s.Key, err = t.keyFor(o, s.job.key); err != nil {
			return nil, err
		}
	}
	if s.Claim, err = t.claim(o, s.job.Argument); err != nil {
		return nil, err
	}
	s.Keep, s.Commit = how&KeepPlace != 0, how&Commit != 0
	s.Box, s.Op, s.Leaf, s.Body = &o.box, t.index, t.lendable(o), s
	s.Board = boarded
	if o.class.filters != nil && o != from {
		s.Admit = func(r *mailbox.Request) (context.Context, error) {
			_, c, _ := home.parts()
			return t.admit(r.Context(), o, c, s.job.Argument())
		}
	}
	return &s.Hop, nil
}

// boarded is called before the request waits for its next turn, which is a stay.
func boarded(body mailbox.Body, r *mailbox.Request, box *mailbox.Mailbox) {
	s := body.(*stay)
	if t, o := s.job.site(); !t.leafed || o.class.filters != nil {
		s.ctx = r.InsideAgain(box)
	}
}

// Run implements mailbox.Body.
func (s *stay) Run() { run(s.job, s.home, s.place, s.ctx) }

// Fail implements mailbox.Body.
func (s *stay) Fail(err error) { s.home.Fail(err) }

// Recycle implements mailbox.Body. It is the request's own body that is recycled.
func (s *stay) Recycle() {}

func (s *stay) todo() job { return s.job }

// onward carries on with a request whose body, run by the calling goroutine, has
// asked for a hop. The caller has the object, in which it found the word w, and
// gives it back here.
//
// As long as nobody waits at the object, a hop to it is made on the spot if its guard
// holds: in the kernel the request would be the only one inside, and those that
// arrive meanwhile are outside. That nobody waits is certain: w says that nobody
// did, and whoever has come since makes the swap fail by which the object is marked
// with the next operation.
//
// Between two turns a request looks at its context, and is left to the kernel if that has
// ended, or is not one that may be asked while the object is held. What was sent makes some
// turns only, as its sender waits for none.
func (op *Operation[T, A, R]) onward(ctx context.Context, o *Object[T], arg A, w uint64, h hopper, how manner, p *passage) (r R, err error) {
	l := op.leaving(ctx, o, arg)
	ran := p.turns() // before the one that l is about
	tame, tamed, turns := ctx, mailbox.Tamed(ctx), 0
	for mark := op.mark; w == op.idle && o.class.filters == nil && tamed; turns++ {
		next, ok := h.(turn[R])
		if !ok || how >= sending && turns == sentTurns || ends(ctx, h) {
			break
		}
		r, mark, ok, err = next.here(&o.core, w, mark)
		if !ok && mark != 0 {
			break
		}
		if _, more := err.(hopper); how == answering && ok && !more {
			p.keep(r, err)
		}
		if h, err = o.ranHere(&l, &ran, w, mark, ok, how, err); h == nil {
			return r, err
		}
	}
	if !tamed {
		tame = o.tame(ctx, l)
	}
	if how < sending && o.travels(tame, h) {
		if next, ok := h.(turn[R]); ok {
			l.Lend = false // it has yet to go on
			o.leave(l)
			ran.Add(&o.box, l.Op)
			switch {
			case how == hopping || how == retrying:
				return r, &departure{next, ran} // travel, which has called this, goes on: no stack grows
			case how.tries():
				return travel(ctx, next, retrying, ran)
			}
			return travel(ctx, next, hopping, ran)
		}
	}
	now := mailbox.Now()
	c := op.record(tame, o, arg, how, now)
	err = op.common().wait(tame, &o.core, c, l, ran, h, how, now, p)
	if how < sending {
		return op.took(c, now)
	}
	return r, err
}

// sentTurns is how many turns in a row a request that was sent makes on the goroutine of
// its sender, after the first.
const sentTurns = 16

// ends reports whether the context, which is tame, has ended of a request that asks for a
// hop, and which may be withdrawn.
func ends(ctx context.Context, h hopper) bool {
	_, how := h.target()
	return how&Commit == 0 && ctx.Err() != nil
}

// tame is mailbox.Tame for a goroutine that has the object, in which its body has run and asked
// for a requeue. If ctx does not return, the object is given back.
func (o *core) tame(ctx context.Context, l mailbox.Leaving) context.Context {
	asked := false
	defer func() {
		if !asked {
			o.leave(l)
		}
	}()
	ctx = mailbox.Tame(ctx)
	asked = true
	return ctx
}

// ranHere carries on when a turn has been made here, or has panicked. It returns the
// next one; if there is none the object has been given back, and the request has ended
// with the error.
func (o *core) ranHere(l *mailbox.Leaving, ran *mailbox.Turns, w, mark uint64, ok bool, how manner, err error) (hopper, error) {
	if mark == 0 { // it has panicked
		if !ok { // before its body has run
			ran.Add(&o.box, l.Op)
			err = ran.Failed(err)
		}
		if how == telling {
			o.unheard(err)
			err = nil
		}
		return nil, err
	}
	last := l.Op
	l.Op, l.Changed, l.Opens = mailbox.Marked(mark), true, nil
	if h, ok := err.(hopper); ok {
		ran.Add(&o.box, last)
		return h, nil
	}
	if !o.box.Word.CompareAndSwap(w|mark, w) {
		o.leave(*l)
	}
	if how == telling {
		err = nil
	}
	return nil, err
}

// leave gives the object back to whom the fast path is no way.
func (o *core) leave(l mailbox.Leaving) {
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
func (h *hop[T, A, R]) here(at *core, w, mark uint64) (r R, now uint64, ok bool, err error) {
	op, o := h.op, h.o
	if op.idle != w { // or else the object is of the operation's type
		return r, mark, false, nil
	}
	if o == nil {
		o = at.box.Host().(*Object[T])
	}
	if &o.core != at {
		return r, mark, false, nil
	}
	now = mark
	state := asking // and ok says whether the body has been run
	defer func() {
		if state != finished {
			op.common().failedHere(at, state, mark, mailbox.Panicked(recover()), &err)
			now = 0
		}
	}()
	if op.guard != "" && op.ask(o, h.arg) != "" || !o.box.Word.CompareAndSwap(w|mark, w|op.mark) {
		state = finished
		return r, now, false, nil
	}
	now, ok, state = op.mark, true, running
	r, err = op.leaf(o.state, h.arg)
	state = finished
	return r, now, true, err
}

// failedHere is caught, for a turn here that comes after that with the mark.
func (t *common) failedHere(o *core, state int, mark uint64, value any, err *error) {
	if state == running {
		t.caught(o, state, value, err)
		return
	}
	if value != nil {
		*err = o.guardError(t.index, value, debug.Stack())
		o.failed(t.name, 0, *err)
	} else {
		o.failed(t.name, 0, o.guardError(t.index, goexit, debug.Stack()))
	}
	o.box.Yield(mailbox.Leaving{Op: mailbox.Marked(mark), Changed: true}) // the turn before
}

// travel takes a call, hopping or retrying, to other objects, one after another.
func travel[R any](ctx context.Context, next turn[R], how manner, ran mailbox.Turns) (R, error) {
	for {
		r, err := next.there(ctx, how, ran)
		d, ok := err.(*departure)
		if !ok {
			return r, err
		}
		next, ran = d.next.(turn[R]), d.ran
	}
}

// departure is what a turn there ends with whose body asks for another object.
type departure struct {
	next hopper // a turn[R]
	ran  mailbox.Turns
}

// Error implements error, and is never called.
func (*departure) Error() string { return "sluice: a departure" }

// there implements turn.
func (h *hop[T, A, R]) there(ctx context.Context, how manner, ran mailbox.Turns) (R, error) {
	return h.op.start(ctx, h.o, h.arg, how, &passage{history: &history{ran: ran}})
}

// target implements hopper.
func (h *hop[T, A, R]) target() (*core, Requeuing) {
	if h.o == nil {
		return nil, h.how
	}
	return &h.o.core, h.how
}

// travels reports whether there can make the turn: it is to another object,
// without interceptors, and its wait ends if the context does.
func (o *core) travels(ctx context.Context, h hopper) bool {
	to, how := h.target()
	return to != nil && to != o && to.class.filters == nil && (how&Commit == 0 || ctx.Done() == nil)
}

// wait makes a request wait for a hop. The caller has the object, in which the body
// has run, and gives it back here. Of a call, the error is in its record afterwards.
func (t *common) wait(ctx context.Context, o *core, rec record, l mailbox.Leaving, ran mailbox.Turns, h hopper, how manner, now time.Duration, p *passage) error {
	_, c, r := rec.parts()
	t.prepare(o, r, how)
	p.charge(ctx, o, rec, how)
	r.Op = l.Op // the body that ran last
	r.Ran(ran)
	given := false
	defer func() {
		if !given { // a key function has called runtime.Goexit
			o.box.Yield(l)
		}
	}()
	if err := requeued(h, rec, o); err != nil {
		given = true
		o.box.Yield(l)
		if how < sending {
			rec.Fail(err)
			return nil
		}
		p.posted(rec, how, err)
		if how == telling { // it was taken, and has run
			o.unheard(err)
			err = nil
		}
		return err
	}
	given = true
	if how >= sending {
		o.box.PostOn(ctx, r, l, now)
		p.posted(rec, how, nil)
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			t.forsake(o, r, c)
		}
	}()
	o.box.CallOn(ctx, r, l, now)
	returned = true
	return nil
}

// BadRequeueError says that a body asked for a requeue that is not possible. The body
// has run.
type BadRequeueError struct {
	Object    string // in which the body ran
	Operation string // that it asked for
	Problem   string
}

// Error implements error.
func (e *BadRequeueError) Error() string {
	return fmt.Sprintf("sluice: %s: requeue to %s: %s", e.Object, e.Operation, e.Problem)
}
