package actor

import proto "github.com/asynkron/protoactor-go/actor"

// Context is protoactor's context of an actor, which is passed to its Receive.
type Context = proto.Context

// PipeTo sends the outcome of f to an actor as a message, when f is ready: what message makes of
// it, or a *Reply if message is nil. So an actor gets the result of a request to an object as it
// gets everything else:
//
//	withdraw.Send(ctx, savings, 100).PipeTo(system, c.Self(), func(left int, err error) any {
//		return paid{left, err}
//	})
//
// It returns f. If message panics, which is logged, nothing is sent.
func (f Future[R]) PipeTo(system *System, to *PID, message func(R, error) any) Future[R] {
	f.OnDone(func(r R, err error) {
		if message == nil {
			system.Tell(to, &Reply{Value: replyValue(r, err), Err: err})
			return
		}
		system.Tell(to, message(r, err))
	})
	return f
}

// Reenter has do called with the outcome of f when f is ready, by the actor that c belongs to, as
// if it handled the present message once more: between two messages, so that do may use the state
// of the actor, and with Sender and Message of c as they are now. Meanwhile the actor handles
// other messages. It must be called while the actor handles a message.
//
//	case *pay:
//		actor.Reenter(c, withdraw.Send(ctx, savings, m.amount), func(left int, err error) {
//			a.paid += m.amount
//			c.Respond(left)
//		})
//
// If the actor has ended by then, do is not called; if it has been restarted, do is called all the
// same, with the variables that it had before. Do is called before messages that wait in the
// mailbox, and even if the actor is suspended. A PipeTo has none of these exceptions.
//
// A future that is never ready keeps what do refers to for ever: give the request a context that
// ends.
//
// It is protoactor's ReenterAfter for the futures of this package.
func Reenter[R any](c Context, f Future[R], do func(R, error)) {
	ready := proto.NewFuture(c.ActorSystem(), -1) // it stays registered until f is ready
	c.ReenterAfter(ready, func(any, error) { do(outcome(f)) })
	f.OnDone(func(R, error) { c.ActorSystem().Root.Send(ready.PID(), readiness{}) })
}

// readiness is the message that completes the protoactor future of a Reenter.
type readiness struct{}
