package actor

import (
	"context"
	"reflect"
	"sync/atomic"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/internal/engine"
)

// Request sends a message to an actor, with a sender to reply to, and returns the
// future of the first reply. It never waits; but an object that is idle may run a
// body that takes no context at once, as it does in Send.
//
// A reply that is a *Reply gives the future its value and error; any other is the
// value itself. The future fails with ctx's error when ctx ends, with ErrClosed
// when the system is closed, and with *DeadLetterError if there is nobody to
// deliver the message to. Whichever comes first counts, and everybody who waits is
// told. Later replies become dead letters.
//
// The message may be in an envelope of protoactor's, and so have a header; the sender there
// is not used.
//
// What has been sent cannot be taken back, so Withdraw has no effect on the future.
// But an object that belongs to the same actor system takes ctx for the context of
// its request, as in Send: if ctx ends while the request waits there it never runs,
// and its priority, deadline and client are those of ctx. Any other actor goes on
// with it.
//
// To Await the future with the context of a body fails with *mailbox.DeadlockError if
// the object waits for the caller, as it does for the future of a Send; provided that
// ctx is that of the body, too. That ends the wait only: the request is served when the
// body has ended, unless ctx has. What a plain actor does on behalf of a body, Sluice
// does not know: if it passes the message on to an object that waits for the body, or
// does not reply before an object has replied that does, the body waits for ctx.
//
// A plain actor that stops while the message is in its mailbox loses it silently,
// which is protoactor's way; the future then waits for ctx. (It would be no help to
// watch the actor: one that has passed a request on may well stop before the reply.)
// The target must be in this process; replies do not find the way back from another.
func (s *System) Request(ctx context.Context, to *PID, message any) Future[any] {
	l := &outgoing{}
	l.envelope.Message = message
	if e, ok := message.(*proto.MessageEnvelope); ok && e != nil {
		l.envelope.Header, l.envelope.Message = e.Header, e.Message
	}
	return s.request(ctx, to, l)
}

// Ask has an object run the operation of the given name, and waits for the result;
// nil is the argument of an operation that takes none. It is Request, with an
// *Invoke, and Await.
//
// Besides their errors and the operation's it fails with *ResultError if the result
// is not an R. *mailbox.DeadlockError ends the wait only: see Request.
func Ask[R any](ctx context.Context, s *System, to *PID, operation string, argument any) (R, error) {
	q := &invocation{Invoke: Invoke{Operation: operation, Argument: argument}}
	q.envelope.Message = &q.Invoke
	value, err := s.request(ctx, to, &q.outgoing).Await(ctx)
	result, ok := value.(R)
	if err == nil && !ok {
		if want := reflect.TypeFor[R](); value != nil || want.Kind() != reflect.Interface {
			err = &ResultError{Target: to, Operation: operation, Want: want.String(), Value: value}
		}
	}
	return result, err
}

// letter is what goes to the target of a request. It is apart from the record of the
// request, which an actor that keeps the sender is not to keep, too; and not used
// again, as nobody says when he has done with a PID.
type outgoing struct {
	envelope proto.MessageEnvelope
	sender   proto.PID
}

// question is the letter of Ask.
type invocation struct {
	outgoing
	Invoke
}

// asked is the record of a request. It is settled by who takes it from the desk,
// which is one; so its result is written once.
type pendingReply struct {
	reply  result[any]
	system *System
	ctx    context.Context
	target *PID
	id     waiterID

	// unwatch ends the watch over ctx. The one who settles does that, if it is there
	// by then; else the one who asks finds the request settled, after having put it
	// there, and does it himself: one of them comes second, and sees the other's write.
	unwatch atomic.Pointer[func() bool]
}

// request sends the letter.
func (s *System) request(ctx context.Context, to *PID, l *outgoing) Future[any] {
	if err := ctx.Err(); err != nil {
		return failed[any](err)
	}
	tame := engine.Tame(ctx) // or else it would be asked by who settles the request
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
		if !sent { // a process has panicked; or a body has ended this goroutine, and then there is a reply
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

// expire fails the request because its context has ended, unless it has a reply.
func (r *pendingReply) expire() {
	if r.system.replies.remove(r.id) {
		engine.Ended(r.ctx, "a message to "+r.target.Id, func(err error) { r.settle(nil, err) })
	}
}

// settle ends the request. It is called by the one who has taken it from the desk,
// perhaps the owner of an object; so it only hands over what follows.
func (r *pendingReply) settle(value any, err error) {
	r.reply.value, r.reply.err = value, err
	r.reply.join.Settle(r.system.Workers())
	if unwatch := r.unwatch.Load(); unwatch != nil {
		(*unwatch)()
	}
}

// hear settles the request by a message.
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

// dismiss implements guest.
func (r *pendingReply) cancel() { r.settle(nil, ErrClosed) }

// sit implements guest.
func (r *pendingReply) assign(p waiterID) { r.id = p }

// host implements guest.
func (r *pendingReply) owner() *System { return r.system }

// deskOf returns the desk at which the sender of a message may be, or nil.
func (s *System) registryFor(sender *PID) *replyRegistry {
	if !IsRequest(sender) || s.ready.Load() == nil {
		return nil
	}
	return s.replies
}

// IsRequest reports whether the sender of a message is that of a request made by
// Request, which may have ended.
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
// of this one's actor system that is not registered any more, or a request made by Request that
// has its reply. Of an actor on another machine nothing is known. It runs none of the actor's
// code and waits for nothing, so that it may be asked with the mu of an object held.
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

// Follows says that the sender of a message waits for the given request, if that is of
// the object that he has sent his message to. So circles of waiting are found through
// messages. (If another actor has passed it on, it may have asked others too.)
func (s *System) Follows(sender, object *PID, request *engine.Request) {
	d := s.registryFor(sender)
	if d == nil || object == nil {
		return
	}
	if r, _ := d.find(sender).(*pendingReply); r != nil && r.target.Id == object.Id && r.target.Address == object.Address {
		r.reply.join.Behind(request)
	}
}

// Answer settles the request of this process that the sender of a message stands for,
// and reports false if it is none that has not ended. It runs nobody's code and waits
// for nobody, so that the owner of an object may call it. If err is not nil there is no
// value.
func (s *System) Answer(sender *PID, value any, err error) bool {
	d := s.registryFor(sender)
	if d == nil {
		return false
	}
	r, _ := d.take(sender, isPendingReply).(*pendingReply)
	if r == nil {
		return false
	}
	if err != nil {
		value = nil
	}
	r.settle(value, err)
	return true
}

// Respond sends the result of a request that came by message to the sender, as a
// *Reply. If err is not nil there is no value. Without a sender it is a dead letter. A
// sender that panics is logged: it may be anything that a message names, and the
// goroutine that has delivered that is not to perish of it.
func (s *System) Respond(sender *PID, value any, err error) {
	if s.Answer(sender, value, err) {
		return
	}
	defer func() { s.contain(recover()) }()
	if err != nil {
		value = nil
	}
	s.Tell(sender, &Reply{Value: value, Err: err})
}
