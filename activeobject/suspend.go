package activeobject

import (
	"context"
	"fmt"
	"runtime"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Suspends says that the body of the operation may suspend: by SuspendUntil and SuspendFor, which let other requests into the
// object while the body waits. It returns the operation.
//
//	order = activeobject.ProcedureCtx(store, "order", (*Store).Order).Suspends()
//
//	func (s *Store) Order(ctx context.Context, n int) (Receipt, error) {
//		err := activeobject.SuspendUntil(ctx, "restocked", func() bool { return s.stock >= n })
//		if err != nil {
//			return Receipt{}, err
//		}
//		s.stock -= n
//		…
//
// While the body is suspended its request waits in the queue of the object, as one that has been requeued does and kept
// its place, for an operation with the conflicts of its own. In explanations and logs that has the name of the operation
// with "(rest)" after it. It takes no thread, and no bound concerns it.
//
// Such a body runs on a goroutine of its own, also at an object with a DedicatedThread, while the thread of its turn waits: some
// microseconds more for a call. A body that is overridden in a derived type says again whether it suspends.
//
// What a body has done in a transaction before it suspended cannot be undone by an Undo, as others of the same transaction may have
// built upon it: the type needs Copies.
//
// Suspends panics if the body takes no context, the operation has an Undo, or the type is sealed. (Awaiting inside a method, so that others
// run meanwhile, is from the languages Creol and ABS.)
func (op *Operation[T, A, R]) Suspends() *Operation[T, A, R] {
	done := op.info.declaring("Suspends")
	defer done()
	if op.blocks == nil {
		panic(op.info.where() + " cannot suspend, as its body takes no context: declare it with ProcedureCtx, EntryCtx or FunctionCtx")
	}
	if op.undo != nil {
		panic(op.info.where() + suspendsAndUndoes)
	}
	op.info.suspends = true
	return op
}

// suspendsAndUndoes says why there is no Undo of a body that suspends.
const suspendsAndUndoes = " cannot both suspend and have an Undo, as requests of the same transaction that ran while it was suspended may have built upon what it did: give the type Copies"

// SuspendUntil suspends the body that ctx belongs to until the named condition over the state holds. Other
// requests may run at the object meanwhile. If the condition holds already it returns at once.
//
// What the body has read of the state before may be different afterwards. What is certain is that the condition holds: it is
// evaluated while nothing runs that conflicts with the body, which goes on before anything else can change
// that. The condition is a guard: it must neither block nor change anything, and may run on any goroutine. If it panics the
// body does, when it goes on. It must look at the state only, and at variables of the body.
//
// It returns an error if the condition does not hold and the context has ended, or the wait is in a circle
// (*mailbox.DeadlockError); the body goes on with its turn then, as nothing ran beside it. A body that has begun is not
// withdrawn: it is for the body to return the error.
//
// If the object stops or is restarted the body does not go on: its request fails, with a *mailbox.RequeuedError that names
// the body, and SuspendUntil does not return. The deferred functions of the body run then, but outside of the object: so they must
// not touch the state. The end of the object waits for them.
//
// It must be called by the body, on its own goroutine, with its context or one derived from it. (If that does not end when a
// transaction ends to which the body belongs, the transaction waits for the condition.) It fails with
// *SuspendError, and nothing has happened, if the operation does not say that it Suspends.
func SuspendUntil(ctx context.Context, name string, holds func() bool) error {
	switch {
	case name == "":
		return &ArgumentError{Call: "SuspendUntil", Argument: "name", Problem: "is empty: pass the name of the condition, for explanations"}
	case holds == nil:
		return &ArgumentError{Call: "SuspendUntil", Argument: "holds", Problem: "is nil: pass the condition"}
	}
	b, err := suspending(ctx, "SuspendUntil")
	if err != nil {
		return staged(ctx, name, holds, err)
	}
	if holds() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rest := &bodyRest{name: name, holds: holds}
	err = b.suspend(ctx, rest, nil)
	if p, panicked := err.(*conditionPanic); panicked {
		panic(p.value)
	}
	switch {
	case holds():
		return nil
	case err != nil:
		return err
	}
	return ctx.Err()
}

// SuspendFor is Await of the future for a body that suspends meanwhile: other requests may run at the object.
// (Future.Await keeps them out.) If the result is there it returns at once, and else once it is there and nothing runs that
// conflicts with the body.
//
// If the context ends first it returns its error, and if the wait is in a circle *mailbox.DeadlockError; the future's request
// goes on. Everything else is as for SuspendUntil.
func SuspendFor[R any](ctx context.Context, f actor.Future[R]) (r R, err error) {
	b, err := suspending(ctx, "SuspendFor")
	if err != nil {
		if err = staged(ctx, "the result of a future", f.Ready, err); err == nil {
			return f.Await(ctx)
		}
		return r, err
	}
	what := actor.Behind(f)
	if what == nil || what.Settled() {
		return f.Await(ctx)
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	rest := &bodyRest{name: "the result of a future"}
	if r, ok := what.(*engine.Request); ok {
		rest.name = "the result of " + r.String()
	}
	if err = b.suspend(ctx, rest, what); err == nil {
		err = ctx.Err()
	}
	if what.Settled() {
		return f.Await(ctx)
	}
	return r, err
}

// staged suspends a body that runs in a check of declarations, or returns the error.
func staged(ctx context.Context, name string, holds func() bool, err error) error {
	stage := engine.StageOf(ctx)
	switch {
	case stage == nil:
		return err
	case !holds() && !stage(name, holds):
		runtime.Goexit()
	}
	return nil
}

// SuspendError says that a body cannot suspend. Nothing has happened.
type SuspendError struct {
	Call    string
	Body    string // object and operation; empty if the context belongs to no body
	Problem string
}

// Error implements error.
func (e *SuspendError) Error() string {
	if e.Body == "" {
		return fmt.Sprintf("sluice: %s %s", e.Call, e.Problem)
	}
	return fmt.Sprintf("sluice: %s in %s: %s", e.Call, e.Body, e.Problem)
}

// restOperation returns the operation of the rests of op's bodies: with its conflicts, and a guard of each request's own.
func restOperation[T any](t *Type[T], op *operationInfo, index int) *operation[T] {
	if t.rests == nil {
		t.rests = map[int]int{}
	}
	t.rests[op.index] = index
	rest := &operation[T]{typ: t}
	rest.info = operationInfo{
		idle: word.Never, unasked: word.Never, typ: &t.typeInfo, prototype: op.prototype, argument: op.argument, result: op.result,
		index: index, name: op.name + " (rest)", kind: mailbox.Entry, guard: "what its body waits for", looks: guards.AtArgument,
		changed: op.changed, restOf: op.name,
	}
	if !op.changed {
		rest.info.kind = mailbox.Function
	}
	return rest
}

// suspendable is a body that may suspend.
type suspendable struct {
	*engine.Apart
	c    *request
	turn turn
}

// suspending returns the body that ctx belongs to, for a call that is to suspend it.
func suspending(ctx context.Context, call string) (b suspendable, err error) {
	apart, inside := engine.ApartOf(ctx)
	switch {
	case apart != nil:
	case inside:
		return b, &SuspendError{Call: call, Body: engine.ChainOf(ctx).String(), Problem: "it cannot suspend: say that the operation Suspends, and call it on the goroutine of the body"}
	default:
		return b, &SuspendError{Call: call, Problem: "is called with a context that is not that of a body"}
	}
	r := apart.Request()
	return suspendable{Apart: apart, c: r.Home().(*request), turn: r.Body.(interface{ current() turn }).current()}, nil
}

// suspend suspends the body until the guard of the rest holds, what is settled, or ctx has ended. It returns why the body goes on
// otherwise, if that is a circle of waits.
func (b suspendable) suspend(ctx context.Context, rest *bodyRest, what engine.Awaited) error {
	rest.Of(b.Apart)
	rest.turn, rest.home = b.turn, b.c
	r, o := b.Request(), b.turn.o
	rest.Box, rest.Op, rest.Claim, rest.Body = &o.box, o.config.typ.rests[b.turn.op.index], r.Again(), rest
	rest.Keep, rest.Commit = true, true
	stop := context.AfterFunc(engine.Tame(ctx), func() { rest.Wake(nil) })
	defer stop()
	if what != nil {
		if k := what.Then(func(*engine.Turn) { rest.Wake(nil) }); k != nil {
			defer k.Drop()
		} else {
			rest.Wake(nil)
		}
	}
	watched := b.c.watched()
	watched.end()
	goesOn, err := rest.Suspend(what)
	if !goesOn {
		runtime.Goexit()
	}
	watched.begin()
	return err
}

// bodyRest is the rest of a body that has suspended, and so what its request waits for.
type bodyRest struct {
	engine.Rest
	turn  turn
	home  *request
	name  string
	holds func() bool // nil if the body waits for something else than the state
}

// Run implements engine.Body.
func (l *bodyRest) Run() { l.Resume() }

// AskGuard implements engine.Body. A panic of the condition is the body's own, which goes on to panic with it in its turn.
func (l *bodyRest) AskGuard() (falsePart string) {
	if l.Due() || l.holds == nil {
		return l.unless(l.Due())
	}
	evaluated := false
	defer func() {
		if !evaluated {
			if value := engine.Panicked(recover()); value != nil {
				l.Release(&conditionPanic{value})
			}
		}
	}()
	holds := l.holds()
	evaluated = true
	return l.unless(holds)
}

func (l *bodyRest) unless(open bool) (falsePart string) {
	if open {
		return ""
	}
	return l.name
}

// conditionPanic is why a body goes on whose condition has panicked.
type conditionPanic struct{ value any }

// Error implements error.
func (p *conditionPanic) Error() string {
	return fmt.Sprintf("sluice: a condition panicked: %v", p.value)
}

// Argument implements engine.Body.
func (l *bodyRest) Argument() any { return l.turn.in.act(getArgument, nil) }

// Fail implements engine.Body.
func (l *bodyRest) Fail(err error) {
	l.Forsake()
	l.home.doomed(err)
	l.home.Fail(err)
}

// Recycle implements engine.Body. It is the request's own body that is recycled.
func (l *bodyRest) Recycle() {}

func (l *bodyRest) current() turn { return l.turn }
