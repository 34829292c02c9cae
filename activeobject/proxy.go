package activeobject

import (
	"context"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
)

// Proxy is the client proxy of an operation: the operation at an object, as a caller
// sees it. The caller knows that it takes an A and returns an R, but not the object,
// the type of its state, or where it is. Code that is written against a Proxy can be
// tested without any object: the package objecttest has a Fake.
//
// At returns the proxy of an object of this process, Operation.To and OperationAt that of a PID,
// and ActorAt that of an actor that is no object. The methods are those of Operation, where
// it says what they do and what they fail with.
type Proxy[A, R any] interface {
	// Call waits for the result.
	Call(ctx context.Context, arg A) (R, error)
	// Do is Call for the error alone.
	Do(ctx context.Context, arg A) error
	// Try refuses to wait, with an error that matches ErrRefused. A proxy of a PID cannot: its Try
	// fails with *ArgumentError, and nothing has been sent.
	Try(ctx context.Context, arg A) (R, error)
	// Send returns the future of the result.
	Send(ctx context.Context, arg A) Future[R]
	// Tell hands the request in and forgets it.
	Tell(ctx context.Context, arg A) error
}

// LocalProxy is an operation at an object of this process: a Proxy which also makes tickets and
// cases of Select, which have no place elsewhere. The ready-made objects return one for each
// operation that waits or changes the object. It is a value; to make one and to call by it allocates nothing.
type LocalProxy[A, R any] struct {
	op boundOperation[A, R]
	at any // the *Object
}

// boundOperation is an Operation whatever the type of its state.
type boundOperation[A, R any] interface {
	Name() string
	startAt(ctx context.Context, at any, arg A, how callMode) (R, *request, error)
	caseAt(at any, arg A) *Case[R]
}

// At returns the operation at an object.
//
// (It is no method, as an Operation would then have its proxies compiled whether there are any or
// not.)
func At[T, A, R any](op *Operation[T, A, R], o *Object[T]) LocalProxy[A, R] {
	return LocalProxy[A, R]{(*boundTo[T, A, R])(op), o}
}

// boundTo is an Operation as a boundOperation.
type boundTo[T, A, R any] Operation[T, A, R]

func (b *boundTo[T, A, R]) startAt(ctx context.Context, at any, arg A, how callMode) (R, *request, error) {
	return start((*Operation[T, A, R])(b), ctx, at.(*Object[T]), arg, how, nil)
}

func (b *boundTo[T, A, R]) caseAt(at any, arg A) *Case[R] {
	return (*Operation[T, A, R])(b).Case(at.(*Object[T]), arg)
}

// Name returns the name of the operation.
func (b *boundTo[T, A, R]) Name() string { return b.info.name }

// Call is Operation.Call.
func (b LocalProxy[A, R]) Call(ctx context.Context, arg A) (R, error) {
	r, _, err := b.op.startAt(ctx, b.at, arg, calling)
	return r, err
}

// Do is Operation.Do.
func (b LocalProxy[A, R]) Do(ctx context.Context, arg A) error {
	_, err := b.Call(ctx, arg)
	return err
}

// Try is Operation.Try.
func (b LocalProxy[A, R]) Try(ctx context.Context, arg A) (R, error) {
	r, _, err := b.op.startAt(ctx, b.at, arg, trying)
	return r, err
}

// Send is Operation.Send.
func (b LocalProxy[A, R]) Send(ctx context.Context, arg A) Future[R] {
	return futureOf(b.op.startAt(ctx, b.at, arg, sending))
}

// Begin is Operation.Begin.
func (b LocalProxy[A, R]) Begin(ctx context.Context, arg A) Ticket[R] {
	return ticketOf(b.op.startAt(ctx, b.at, arg, beginning))
}

// Tell is Operation.Tell.
func (b LocalProxy[A, R]) Tell(ctx context.Context, arg A) error {
	_, _, err := b.op.startAt(ctx, b.at, arg, telling)
	return err
}

// Case is Operation.Case.
func (b LocalProxy[A, R]) Case(arg A) *Case[R] { return b.op.caseAt(b.at, arg) }

// String returns the names of object and operation.
func (b LocalProxy[A, R]) String() string {
	return b.at.(interface{ Name() string }).Name() + "." + b.op.Name()
}

// To returns the operation's client proxy at a PID: requests go there as messages, and so to
// whatever object has the name when they arrive. If that has no such operation, they fail with
// *MessageError; if it returns something else than an R, with *actor.ResultError; if there is no
// object, with *actor.DeadLetterError.
//
// A request by message has no part in its caller's wait. If ctx ends while the request waits, it
// never runs, as anywhere; but if ctx ends while the body runs, Call returns the context's error
// all the same. Withdraw has no effect on the future of a Send, and Tell does not report whether
// the request was taken; in a transaction it fails with *ArgumentError. See actor.System.Request.
func (op *Operation[T, A, R]) To(system *actor.System, pid *actor.PID) Proxy[A, R] {
	return &remote[A, R]{system, pid, op.info.name}
}

// OperationAt is To for an operation that is known by its name only, such as one of a ready-made
// object.
func OperationAt[A, R any](system *actor.System, pid *actor.PID, operation string) Proxy[A, R] {
	return &remote[A, R]{system, pid, operation}
}

// remote is the client proxy of an operation at a PID, or, without one, of an actor that is no object.
type remote[A, R any] struct {
	system    *actor.System
	pid       *actor.PID
	operation string
}

// message returns what is sent.
func (p *remote[A, R]) message(arg A) any {
	if p.operation == "" {
		return arg
	}
	return &actor.Invoke{Operation: p.operation, Argument: arg}
}

// Call implements Proxy.
func (p *remote[A, R]) Call(ctx context.Context, arg A) (R, error) {
	if p.operation == "" {
		return p.Send(ctx, arg).Await(ctx)
	}
	return actor.Ask[R](ctx, p.system, p.pid, p.operation, arg)
}

// Do implements Proxy.
func (p *remote[A, R]) Do(ctx context.Context, arg A) error {
	_, err := p.Call(ctx, arg)
	return err
}

// Try implements Proxy.
func (p *remote[A, R]) Try(context.Context, A) (none R, err error) { return none, errTryByMessage }

// errTryByMessage is the error of a Try at a PID. A message waits at least in a mailbox, and nothing
// there decides at once.
var errTryByMessage = &ArgumentError{Call: "Try", Argument: "proxy", Problem: "is that of a PID, where every request waits for its turn: use At, or a Call with a deadline"}

// errTellInTransaction is the error of a Tell at a PID in a transaction, which a message without a sender could
// not belong to.
var errTellInTransaction = &ArgumentError{Call: "Tell", Argument: "context", Problem: "is that of a transaction, which a message without a sender cannot belong to: use Send"}

// Send implements Proxy.
func (p *remote[A, R]) Send(ctx context.Context, arg A) Future[R] {
	return actor.ResultOf[R](p.system.Request(ctx, p.pid, p.message(arg)), p.pid, p.operation)
}

// Tell implements Proxy.
func (p *remote[A, R]) Tell(ctx context.Context, arg A) error {
	switch err := ctx.Err(); {
	case err != nil:
		return err
	case p.pid == nil:
		return &actor.DeadLetterError{}
	case engine.TransactionOf(ctx) != nil:
		return errTellInTransaction
	}
	p.system.Tell(p.pid, p.message(arg))
	return nil
}

// String returns the address, and the operation if there is one.
func (p *remote[A, R]) String() string {
	if p.operation == "" {
		return p.pid.String()
	}
	return p.pid.String() + "." + p.operation
}

// ActorAt returns a client proxy of a protoactor actor that is no object: an argument is sent to
// it as the message, and the first reply is the result. A reply that is an *actor.Reply gives the result
// and the error. If the reply is no R, the request fails with *actor.ResultError. All else is
// as for To.
func ActorAt[A, R any](system *actor.System, pid *actor.PID) Proxy[A, R] {
	return &remote[A, R]{system: system, pid: pid}
}
