package activeobject

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// MessageError says that a message to an object's PID was not a request that the
// object understands. Nothing has happened.
type MessageError struct {
	Object  string
	Problem string
}

// Error implements error.
func (e *MessageError) Error() string { return fmt.Sprintf("sluice: %s: %s", e.Object, e.Problem) }

// Receive implements mailbox.Receiver: a message of protoactor to the object. An
// *actor.Invoke becomes a request like any other; its sender, if there is one,
// gets the result, or a typed error, as an *actor.Reply. Messages without a
// sender that cannot be carried out become dead letters.
//
// A request that was made by actor.System.Request in this process has the context
// it was made with, any other the background. If the message has a header, the context
// has it: see actor.HeaderOf.
//
// One whose sender has gone, now or when it is about to start, does not run, as nothing would get
// its result; the message is a dead letter then. Whether a sender on another machine has gone
// cannot be known.
func (o *Object[T]) Receive(message any, header actor.Header, sender *actor.PID) {
	m, ok := message.(*actor.Invoke)
	if !ok || m == nil {
		o.refuse(message, sender, "a message of type %T is no request: send an *actor.Invoke", message)
		return
	}
	op := o.Type().byName[m.Operation]
	if op == nil {
		o.refuse(message, sender, "type %q has no operation %q", o.class.typ.name, m.Operation)
		return
	}
	ctx := context.Background()
	if sender != nil {
		if asker, ok := o.class.system.Asker(sender); ok {
			ctx = asker
		} else if o.class.system.Gone(sender) {
			o.class.system.DeadLetter(o.PID(), message)
			return
		}
		if mailbox.ClientOf(ctx) == nil { // interceptors may ask, and policies, also of an object that it is requeued to
			ctx = WithClient(ctx, sender)
		}
	}
	if header != nil && header.Length() > 0 {
		ctx = actor.WithHeader(ctx, header)
	}
	if !op.self.answer(ctx, &o.core, m, sender) {
		o.refuse(message, sender, "operation %q does not take an argument of type %T", m.Operation, m.Argument)
	}
}

// refuse answers a message that is not understood.
func (o *Object[T]) refuse(message any, sender *actor.PID, format string, args ...any) {
	if sender == nil {
		o.class.system.DeadLetter(o.PID(), message)
		return
	}
	o.class.system.Respond(sender, nil, &MessageError{Object: o.Name(), Problem: fmt.Sprintf(format, args...)})
}

// letter is the message that a request came by.
type letter struct {
	message *actor.Invoke // nil if it did not
	sender  *actor.PID    // nil if nobody expects a reply
}

// answer carries out the operation for a message, and reports false if the
// argument is of the wrong type.
func (op *Operation[T, A, R]) answer(ctx context.Context, at *core, m *actor.Invoke, sender *actor.PID) bool {
	arg, ok := op.accept(m.Argument)
	if !ok {
		return false
	}
	p := passage{history: &history{letter: letter{m, sender}}}
	var result any
	var err error
	returned := false
	defer func() { op.common().answering(at, &p, result, err, returned) }()
	var r R
	r, err = op.start(ctx, at.box.Host().(*Object[T]), arg, answering, &p)
	if sender != nil && p.record == nil {
		result = r
	}
	returned = true
	return true
}

// answering ends answer, whose goroutine is dying if it has not returned.
func (t *common) answering(o *core, p *passage, r any, err error, returned bool) {
	switch {
	case p.record != nil:
		return // it is on its way
	case p.history.over:
		r, err = p.history.result, p.history.err
	case !returned:
		err = &mailbox.ExitError{Object: o.Name(), Operation: t.name}
	}
	if p.history.letter.sender != nil || err != nil {
		o.answered(p.history.letter, r, err)
	}
}

// addressed returns the PID of an object that has had a message, and so has one.
func (o *core) addressed() *actor.PID {
	who := o.who.Load()
	who.mu.Lock()
	defer who.mu.Unlock()
	return who.pid
}

// answered sends the reply to a message, or sees to an error that there is nobody to
// reply to for. It runs the code of who it sends to.
func (o *core) answered(l letter, r any, err error) {
	switch {
	case l.sender != nil && err == nil:
		o.class.system.Respond(l.sender, r, nil)
	case l.sender != nil:
		o.class.system.Respond(l.sender, nil, err)
	case err != nil:
		_, begun := errors.AsType[*mailbox.RequeuedError](err)
		if !begun && (errors.Is(err, ErrStopped) || errors.Is(err, ErrFull)) {
			o.class.system.DeadLetter(o.addressed(), l.message) // it never ran
			return
		}
		o.unanswered(err)
	}
}

// unwanted implements mailbox.Config.Unwanted. A sender that has once been found to have gone
// stays so, also if another one comes to have its name.
func unwanted(r *mailbox.Request) error {
	j, c, _ := r.Home().(record).parts()
	_, o := j.site()
	if atomic.LoadUint32(&c.gone) == 0 {
		if !o.class.system.Gone(c.sender) {
			return nil
		}
		atomic.StoreUint32(&c.gone, 1)
	}
	return &actor.DeadLetterError{Target: c.sender}
}

// lost reports whether the request has been withdrawn since its sender has gone, and no body has
// run for it.
func (c *call) lost() bool { return !c.begun && atomic.LoadUint32(&c.gone) != 0 }

// reply is a request that came by message and has ended, with a reply to be sent.
type reply mailbox.Request

// Run implements mailbox.Task.
func (a *reply) Run() {
	rec := (*mailbox.Request)(a).Home().(record)
	j, c, _ := rec.parts()
	_, o := j.site()
	l, lost := c.letter, c.lost()
	r, err := rec.outcome()
	rec.free()
	if lost {
		o.class.system.DeadLetter(o.addressed(), l.message)
		return
	}
	o.answered(l, r, err)
}

// answer has the reply to a message sent. It is called by who has the object, and so
// gives it himself only to a request of our own, which runs nobody else's code. The
// others are for a worker, one after another.
func (c *call) answer(rec record, o *core, r *mailbox.Request, err error) {
	switch {
	case c.sender == nil && err == nil:
	case c.sender != nil && o.answerAsked(c.sender, rec):
	case actor.IsRequest(c.sender) && (r.Lapsed(err) || c.lost()):
		// It was withdrawn, as its asker has been told that the context has ended, or has
		// a reply from somebody else.
	default:
		o.who.Load().replies.Post(o.class.system, (*reply)(r))
		return
	}
	rec.free()
}

func (o *core) answerAsked(sender *actor.PID, rec record) bool {
	r, err := rec.outcome()
	return o.class.system.Answer(sender, r, err)
}
