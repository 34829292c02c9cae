package activeobject

import (
	"context"
	"errors"
	"fmt"

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
func (o *Object[T]) Receive(message any, sender *actor.PID) {
	answer := func(value any, err error) {
		_, begun := errors.AsType[*mailbox.RequeuedError](err)
		switch {
		case sender != nil && err != nil:
			o.class.system.Tell(sender, &actor.Reply{Err: err})
		case sender != nil:
			o.class.system.Tell(sender, &actor.Reply{Value: value})
		case (errors.Is(err, ErrStopped) || errors.Is(err, ErrFull)) && !begun:
			o.class.system.DeadLetter(o.PID(), message) // it never ran
		case err != nil:
			o.log(err)
		}
	}
	refuse := func(format string, args ...any) {
		if sender == nil {
			o.class.system.DeadLetter(o.PID(), message)
			return
		}
		answer(nil, &MessageError{Object: o.Name(), Problem: fmt.Sprintf(format, args...)})
	}
	m, ok := message.(*actor.Invoke)
	if !ok || m == nil {
		refuse("a message of type %T is no request: send an *actor.Invoke", message)
		return
	}
	op := o.class.typ.byName[m.Operation]
	if op == nil {
		refuse("type %q has no operation %q", o.class.typ.name, m.Operation)
		return
	}
	ctx := context.Background()
	if sender != nil && (o.class.config.Views || o.class.filters != nil) { // or nobody looks
		ctx = WithClient(ctx, sender)
	}
	if !op.self.answer(ctx, o, m.Argument, answer) {
		refuse("operation %q does not take an argument of type %T", m.Operation, m.Argument)
	}
}

// answer carries out the operation for a message, and reports false if the
// argument is of the wrong type.
func (op *Operation[T, A, R]) answer(ctx context.Context, o *Object[T], argument any, reply func(any, error)) bool {
	arg, ok := op.accept(argument)
	if !ok {
		return false
	}
	p := op.newRequest(false)
	p.reply = func(r R, err error) {
		o.who.Load().replies.Post(o.class.system.Workers(), func() { reply(r, err) })
	}
	var r R
	err := error(&mailbox.ExitError{Object: o.Name(), Operation: op.name}) // unless enter returns
	defer func() {
		if p != nil { // it has ended already, or was not taken
			reply(r, err)
		}
	}()
	r, err = op.enter(ctx, o, arg, answering, &p)
	return true
}
