package activeobject

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Receive implements actor.Receiver: a message of protoactor to the object. An
// *actor.Invoke becomes a request like any other; its sender, if there is one,
// gets the result, or a typed error, as an *actor.Reply. Messages without a
// sender that cannot be carried out become dead letters.
//
// A request that was made by actor.System.Request in this process has the context
// it was made with, any other has context.Background. If the message has a header, the
// context has it: see actor.HeaderOf.
//
// A request whose sender has gone, now or when it is about to start, does not run, as nothing would
// get its result; the message is a dead letter then. Whether a sender on another machine has gone
// cannot be known.
func (h *host[T]) Receive(message any, header actor.Header, sender *actor.PID) {
	m, ok := message.(*actor.Invoke)
	if !ok || m == nil {
		h.refuse(message, sender, "a message of type %T is no request: send an *actor.Invoke", message)
		return
	}
	op := h.object().Type().byName[m.Operation]
	if op == nil {
		h.refuse(message, sender, "type %q has no operation %q", h.config.typ.name, m.Operation)
		return
	}
	ctx := context.Background()
	if sender != nil {
		if asker, ok := h.config.system.Asker(sender); ok {
			ctx = asker
		} else if h.config.system.Gone(sender) {
			h.config.system.DeadLetter(h.object().PID(), message)
			return
		}
		if engine.ClientOf(ctx) == nil { // for interceptors and policies, also of objects that it is requeued to
			ctx = WithClient(ctx, sender)
		}
	}
	if header != nil && header.Length() > 0 {
		ctx = actor.WithHeader(ctx, header)
	}
	if !op.info.prototype.answer(ctx, &h.objectHeader, requestMessage{m, sender}) {
		h.refuse(message, sender, "operation %q does not take an argument of type %T", m.Operation, m.Argument)
	}
}

// refuse answers a message that is not understood.
func (h *host[T]) refuse(message any, sender *actor.PID, format string, args ...any) {
	if sender == nil {
		h.config.system.DeadLetter(h.object().PID(), message)
		return
	}
	h.config.system.Respond(sender, nil, &MessageError{Object: h.Name(), Problem: fmt.Sprintf(format, args...)})
}

// acceptsNil reports whether nil in a message stands for the argument: for none, or for a nil
// interface.
func (op *operationInfo) acceptsNil() bool {
	return op.argument.Kind() == reflect.Interface || op.argument == reflect.TypeFor[None]()
}

// requestMessage is the message that a request came by.
type requestMessage struct {
	invoke *actor.Invoke // nil if the request came by no message
	sender *actor.PID    // nil if no reply is expected
}

// answered ends invocation.answer. If that has not returned, its goroutine is dying.
func (s *callState) answered(op *operationInfo, o *objectHeader, returned bool) {
	if s.posted {
		return
	}
	if !returned && !s.returned {
		s.err = &mailbox.ExitError{Object: o.Name(), Operation: op.name}
	}
	o.answered(s.requestMessage, s.result, s.err)
}

// addressed returns the PID of an object that has an identity; nil if it has no actor. One that has
// received a message has one.
func (o *objectHeader) addressed() *actor.PID {
	ident := o.identity.Load()
	ident.mu.Lock()
	defer ident.mu.Unlock()
	return ident.pid
}

// answered sends the reply to a message. If the message has no sender, an error is logged, or the
// message becomes a dead letter. It runs foreign code: that of the process it sends to.
func (o *objectHeader) answered(l requestMessage, r any, err error) {
	switch {
	case l.sender != nil && err == nil:
		o.config.system.Respond(l.sender, r, nil)
	case l.sender != nil:
		o.config.system.Respond(l.sender, nil, err)
	case err != nil:
		_, begun := errors.AsType[*mailbox.RequeuedError](err)
		if !begun && (errors.Is(err, ErrStopped) || errors.Is(err, ErrFull)) {
			o.config.system.DeadLetter(o.addressed(), l.invoke) // it never ran
			return
		}
		o.unanswered(err)
	}
}

// unwanted implements engine.Config.Unwanted. A sender that has once been found to have gone
// remains gone, even if another process gets its name later.
func unwanted(r *engine.Request) error {
	c := r.Home().(*request)
	sender := c.message().sender
	if atomic.LoadUint32(&c.gone) == 0 {
		if !c.o.config.system.Gone(sender) {
			return nil
		}
		atomic.StoreUint32(&c.gone, 1)
	}
	return &actor.DeadLetterError{Target: sender}
}

// lost reports whether the request has been withdrawn because its sender has gone, and no body has
// run for it.
func (c *request) lost() bool { return !c.begun && atomic.LoadUint32(&c.gone) != 0 }

// reply is a request that came by message and has ended, with a reply to be sent.
type reply engine.Request

// Run implements engine.Task.
func (a *reply) Run() {
	c := (*engine.Request)(a).Home().(*request)
	o, l, lost := c.o, c.message(), c.lost()
	r, err := c.result(), c.pending.Err
	c.free()
	if lost {
		o.config.system.DeadLetter(o.addressed(), l.invoke)
		return
	}
	o.answered(l, r, err)
}

// answer has the reply to a message sent. The calling goroutine may own the object. So it delivers
// the reply itself only to a request of actor.System, which runs no foreign code. A worker sends
// the other replies, one after another.
func (c *request) answer() {
	o, r, err, sender := c.o, &c.pending.Request, c.pending.Err, c.message().sender
	switch {
	case sender == nil && err == nil:
	case sender != nil && o.config.system.Answer(sender, c.result(), err):
	case actor.IsRequest(sender) && (r.Lapsed(err) || c.lost()):
		// It was withdrawn: its sender has been told that the context has ended, or has a
		// reply from another process.
	default:
		o.identity.Load().replies.Post(o.config.system, (*reply)(r))
		return
	}
	c.free()
}
