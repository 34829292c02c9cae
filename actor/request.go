package actor

import (
	"context"
	"reflect"
	"sync/atomic"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
)

// Request sends a message to an actor, with a sender to reply to, and returns the future of the
// first reply. It never waits; but an idle object may run a body that takes no context at once,
// on the caller's goroutine, as it does in Send.
//
// A reply that is a *Reply gives the future its value and error; any other reply is the value
// itself. The future fails with ctx's error when ctx ends, with ErrClosed when the system is
// closed, and with *DeadLetterError if there is no actor to deliver the message to. The first of
// these counts, and every waiter gets it. Later replies become dead letters.
//
// The message may be in an envelope of protoactor's, with a header; the sender in that envelope
// is not used.
//
// A message that has been sent cannot be withdrawn, so Withdraw has no effect on the future. But
// an object that belongs to the same actor system uses ctx as the context of its request, as in
// Send: if ctx ends while the request waits there, it never runs; and its priority, deadline and
// client are those of ctx. Any other actor handles the message even if ctx has ended.
//
// If a body awaits the future with its context, and made the request with its context, Await
// fails with *mailbox.DeadlockError if the object waits for the caller, as it does for the future
// of a Send. That ends only the wait: the request is served when the body has ended, unless ctx
// has ended. Sluice does not know what a plain actor does on behalf of a body: if it passes the
// message on to an object that waits for the body, or replies only after such an object has
// replied, the body waits until ctx ends.
//
// A plain actor that stops while the message is in its mailbox loses the message without notice,
// as protoactor does; the future then waits until ctx ends. (To watch the actor would not help:
// one that has passed the request on may stop before the reply comes.) The target must be in this
// process; a reply from another process does not reach the future.
func (s *System) Request(ctx context.Context, to *PID, message any) Future[any] {
	l := &outgoing{}
	l.envelope.Message = message
	if e, ok := message.(*proto.MessageEnvelope); ok && e != nil {
		l.envelope.Header, l.envelope.Message = e.Header, e.Message
	}
	return s.request(ctx, to, l)
}

// Ask has an object run the operation of the given name, and waits for the result. For an
// operation without an argument, argument is nil. It is a Request with an *Invoke, followed by
// Await.
//
// Ask fails with the errors of Request, Await and the operation, and with *ResultError if the
// result is not an R. *mailbox.DeadlockError ends only the wait: see Request.
func Ask[R any](ctx context.Context, s *System, to *PID, operation string, argument any) (R, error) {
	q := &invocation{Invoke: Invoke{Operation: operation, Argument: argument}}
	q.envelope.Message = &q.Invoke
	return typed[R](to, operation)(s.request(ctx, to, &q.outgoing).Await(ctx))
}

// ResultOf returns the future of a reply whose value has to be an R. If it is not, the future
// fails with *ResultError, which names the target and the operation.
func ResultOf[R any](reply Future[any], to *PID, operation string) Future[R] {
	return Then(reply, typed[R](to, operation))
}

// typed returns a function that makes the outcome of a request by message one of an R.
func typed[R any](to *PID, operation string) func(value any, err error) (R, error) {
	return func(value any, err error) (R, error) {
		result, ok := value.(R)
		if err == nil && !ok {
			want := reflect.TypeFor[R]()
			if mayBeNil := want.Kind() == reflect.Interface || want == reflect.TypeFor[guards.None](); value != nil || !mayBeNil {
				err = &ResultError{Target: to, Operation: operation, Want: want.String(), Value: value}
			}
		}
		return result, err
	}
}

// outgoing is the message that goes to the target of a request, with its envelope and sender. It
// is separate from the record of the request, so that an actor that keeps the sender does not
// keep the record alive. It is not pooled, as it is unknown when the last user of a PID has
// finished with it.
type outgoing struct {
	envelope proto.MessageEnvelope
	sender   proto.PID
}

// invocation is the outgoing message of Ask.
type invocation struct {
	outgoing
	Invoke
}

// pendingReply is the record of a request that waits for its reply. The goroutine that removes it
// from the reply registry settles it. Only one goroutine can do that, so the result is written
// once.
type pendingReply struct {
	reply  result[any]
	system *System
	ctx    context.Context
	target *PID
	id     waiterID

	// unwatch stops the context.AfterFunc of ctx. settle first settles the request, then loads
	// unwatch and calls it if it is set. request first stores unwatch, then calls it if the
	// request is settled. Both are atomic, so at least one of them sees the other's write, and
	// the AfterFunc is always stopped.
	unwatch atomic.Pointer[func() bool]
}

// request sends the message, and returns the future of its reply.
func (s *System) request(ctx context.Context, to *PID, l *outgoing) Future[any] {
	if err := ctx.Err(); err != nil {
		return failed[any](err)
	}
	tame := engine.Tame(ctx) // else settle, which may run on an owner's goroutine, would run code of ctx
	actors, err := s.open()
	if err != nil {
		return failed[any](err)
	}
	r := &pendingReply{system: s, ctx: ctx, target: to}
	if err := s.replies.register(r); err != nil {
		return failed[any](err)
	}
	if to == nil {
		s.replies.remove(r.id)
		return failed[any](&DeadLetterError{})
	}
	l.sender.Address, l.sender.Id = replyAddress, r.id.id()
	l.envelope.Sender = &l.sender
	sent := false
	defer func() {
		if !sent { // a process has panicked; or a body has ended this goroutine, and then the reply has been delivered
			s.replies.remove(r.id)
		}
	}()
	actors.Root.Send(to, &l.envelope)
	sent = true
	if tame.Done() != nil && !r.reply.join.Settled() {
		unwatch := context.AfterFunc(tame, r.expire)
		r.unwatch.Store(&unwatch)
		if r.reply.join.Settled() {
			unwatch()
		}
	}
	return future(&r.reply)
}

// expire fails the request with its context's error, unless a reply has been delivered.
func (r *pendingReply) expire() {
	if r.system.replies.remove(r.id) {
		engine.Ended(r.ctx, "a message to "+r.target.Id, func(err error) { r.settle(nil, err) })
	}
}

// settle sets the result of the request. It is called by the goroutine that has removed it from
// the reply registry. That may be the owner of an object, so workers run the continuations.
func (r *pendingReply) settle(value any, err error) {
	r.reply.value, r.reply.err = value, err
	r.reply.join.Settle(r.system.Workers())
	if unwatch := r.unwatch.Load(); unwatch != nil {
		(*unwatch)()
	}
}

// deliver implements waiter: it settles the request by a message.
func (r *pendingReply) deliver(message any) {
	switch m := message.(type) {
	case *Reply:
		if m == nil {
			m = &Reply{}
		}
		r.settle(m.Value, m.Err)
	case *proto.DeadLetterResponse:
		r.settle(nil, &DeadLetterError{Target: r.target})
	default:
		r.settle(message, nil)
	}
}

// cancel implements waiter.
func (r *pendingReply) cancel() { r.settle(nil, ErrClosed) }

// assign implements waiter.
func (r *pendingReply) assign(p waiterID) { r.id = p }

// owner implements waiter.
func (r *pendingReply) owner() *System { return r.system }

// registryFor returns the reply registry in which the sender of a message may be, or nil if the
// sender cannot be in one.
func (s *System) registryFor(sender *PID) *replyRegistry {
	if !IsRequest(sender) || s.ready.Load() == nil {
		return nil
	}
	return s.replies
}

// IsRequest reports whether the sender of a message stands for a request made by Request. That
// may have ended.
func IsRequest(sender *PID) bool { return sender != nil && sender.Address == replyAddress }

// Asker returns the context of the request that the sender of a message stands for,
// if the sender is that of a request of this process that has not ended.
func (s *System) Asker(sender *PID) (context.Context, bool) {
	d := s.registryFor(sender)
	if d == nil {
		return nil, false
	}
	r, _ := d.find(sender).(*pendingReply)
	if r == nil {
		return nil, false
	}
	return r.ctx, true
}

// Gone reports whether an actor, or the sender of a request, is known to have ended: a process
// of this System's actor system that is not registered any more, or a request made by Request
// that is not pending any more. It reports false for an actor on another machine. It runs none of
// the actor's code and waits for nothing, so it may be called with an object's mutex held.
func (s *System) Gone(pid *PID) bool {
	if pid == nil {
		return false
	}
	actors := s.ready.Load()
	if actors == nil {
		return false
	}
	if IsRequest(pid) {
		return s.replies.find(pid) == nil
	}
	if !s.isHere(pid) {
		return false
	}
	_, there := actors.ProcessRegistry.GetLocal(pid.Id)
	return !there
}

// Follows records in the wait-for graph that the sender of a message waits for the given request,
// if that is a request of the object to which the message was sent. So circles of waiting are
// found through messages. (If another actor has passed the message on, nothing is recorded: that
// actor may have asked others, too.)
func (s *System) Follows(sender, object *PID, request *engine.Request) {
	d := s.registryFor(sender)
	if d == nil || object == nil {
		return
	}
	if r, _ := d.find(sender).(*pendingReply); r != nil && r.target.Id == object.Id && r.target.Address == object.Address {
		r.reply.join.Behind(request)
	}
}

// Answer settles the request of this process that the sender of a message stands for. It reports
// false if the sender stands for no such request, or for one that has ended. It runs no code of a
// user and waits for nothing, so the owner of an object may call it. If err is not nil, value is
// ignored.
func (s *System) Answer(sender *PID, value any, err error) bool {
	d := s.registryFor(sender)
	if d == nil {
		return false
	}
	r, _ := d.take(sender, isPendingReply).(*pendingReply)
	if r == nil {
		return false
	}
	r.settle(replyValue(value, err), err)
	return true
}

// replyValue returns what a reply carries of a result: nothing of one that has failed, or that is
// None.
func replyValue(value any, err error) any {
	if _, none := value.(guards.None); none || err != nil {
		return nil
	}
	return value
}

// Respond sends the result of a request that came by message to the sender, as a *Reply. If err is
// not nil, value is ignored. Without a sender the reply is a dead letter. A panic of the process
// that gets the reply is logged: a message can name any process as its sender, and the panic must
// not end the goroutine that delivers the reply.
func (s *System) Respond(sender *PID, value any, err error) {
	if s.Answer(sender, value, err) {
		return
	}
	defer func() { s.contain(recover()) }()
	s.Tell(sender, &Reply{Value: replyValue(value, err), Err: err})
}
