package activeobject

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Operation is the handle of a declared operation of objects with state T: it
// takes an A and returns an R. Handles are made by Procedure, Entry, Function
// and their Ctx forms; they may be used from any goroutine once their type is
// sealed.
type Operation[T, A, R any] struct {
	operation[T]
	leaf    func(*T, A) (R, error)
	blocks  func(*T, context.Context, A) (R, error)
	guarded guards.Guard[T, A]

	// What the fast path compares and swaps, and which guard it asks.
	idle, mark uint64
	changed    bool      // the body may change the state
	records    sync.Pool // of *request[T, A, R] for Call and Try
	tells      sync.Pool // and for Tell
}

// Procedure declares an operation that may change the state and is always open.
// It runs alone. The body must neither block nor call other objects: it may be
// run on any goroutine. ProcedureCtx is for bodies that do.
//
// Like all declarations it panics, with a text that says what to do, if the name
// is taken, the body nil, or the type sealed.
func Procedure[T, A, R any](t *Type[T], name string, body func(*T, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Procedure, name, body, nil)
}

// Entry declares an operation that may change the state and waits for a guard,
// which When, WhenArg, WhenWaiting or Guard adds. Otherwise it is like Procedure.
func Entry[T, A, R any](t *Type[T], name string, body func(*T, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Entry, name, body, nil)
}

// Function declares an operation that reads the state and changes nothing.
// Otherwise it is like Procedure.
func Function[T, A, R any](t *Type[T], name string, body func(*T, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Function, name, body, nil)
}

// ProcedureCtx is Procedure with a body that may block or call other objects. It
// runs on its own caller's goroutine, or a dispatcher's, never on a stranger's;
// it must hand on the context it receives, which carries the chain of calls.
func ProcedureCtx[T, A, R any](t *Type[T], name string, body func(*T, context.Context, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Procedure, name, nil, body)
}

// EntryCtx is Entry with a body that may block or call other objects, as in
// ProcedureCtx.
func EntryCtx[T, A, R any](t *Type[T], name string, body func(*T, context.Context, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Entry, name, nil, body)
}

// FunctionCtx is Function with a body that may block or call other objects, as
// in ProcedureCtx.
func FunctionCtx[T, A, R any](t *Type[T], name string, body func(*T, context.Context, A) (R, error)) *Operation[T, A, R] {
	return declare(t, kernel.Function, name, nil, body)
}

func declare[T, A, R any](t *Type[T], kind kernel.Kind, name string, leaf func(*T, A) (R, error), blocks func(*T, context.Context, A) (R, error)) *Operation[T, A, R] {
	op := &Operation[T, A, R]{leaf: leaf, blocks: blocks, changed: kind != kernel.Function}
	op.kind, op.name = kind, name
	op.tell = op.answer
	t.add(&op.operation, leaf != nil || blocks != nil)
	op.idle, op.mark = mailbox.Idle(t.tag), mailbox.Mark(op.index)
	if leaf == nil {
		op.idle = mailbox.Never // no fast path: its bodies are known to the kernel, so that circles of waiting can be followed
	}
	op.records.New = func() any { return op.newRequest(true) }
	op.tells.New = func() any { return op.newRequest(false) }
	return op
}

// When makes an entry wait until the named condition over the state holds. Added
// to another guard, both must hold. It returns the operation.
func (op *Operation[T, A, R]) When(name string, holds func(*T) bool) *Operation[T, A, R] {
	return op.Guard(guards.Over[A](guards.When(name, holds)))
}

// WhenArg makes an entry wait until the named condition over the state and the
// argument of the request holds. Added to another guard, both must hold. It
// returns the operation.
func (op *Operation[T, A, R]) WhenArg(name string, holds func(*T, A) bool) *Operation[T, A, R] {
	return op.Guard(guards.WhenArg(name, holds))
}

// WhenWaiting makes an entry wait until the named condition holds, which also
// looks at how many requests wait at the object, through Queues. Added to another
// guard, both must hold. It returns the operation.
func (op *Operation[T, A, R]) WhenWaiting(name string, holds func(*T) bool) *Operation[T, A, R] {
	return op.Guard(guards.Over[A](guards.WhenWaiting(name, holds)))
}

// Guard makes an entry wait until the guard holds. Added to another guard, both
// must hold. It returns the operation, and panics if that is not an entry, the
// guard has no condition, or the type is sealed.
func (op *Operation[T, A, R]) Guard(g guards.Guard[T, A]) *Operation[T, A, R] {
	t := op.typ
	t.mu.Lock()
	defer t.mu.Unlock()
	where := fmt.Sprintf("activeobject: %s %q of type %q", op.kind, op.name, t.name)
	switch {
	case op.kind != kernel.Entry:
		panic(where + " has a guard: only entries wait; declare it with Entry")
	case t.sealed:
		panic(where + " gets a guard after the first object was made: add it where the entry is declared")
	case g.IsZero():
		panic(where + " gets a guard without a condition: make it with guards.When or guards.WhenArg")
	case !op.guarded.IsZero():
		g = guards.And(op.guarded, g)
	}
	op.guarded = g
	op.guard, op.looks = g.Name(), g.Looks()
	op.plain, op.askState = g.Simple(), nil
	if op.looks&guards.AtWaiting != 0 {
		op.idle = mailbox.Never // no fast path: a request that arrives counts itself
	}
	if op.looks&guards.AtArgument == 0 {
		op.askState = func(s *T) string {
			var none A
			return g.Ask(s, none)
		}
	}
	return op
}

// Name returns the name of the operation.
func (op *Operation[T, A, R]) Name() string { return op.name }

// Waiting returns how many requests wait for the operation at the object, those
// included that stand behind a running body and have not been let in yet.
func (op *Operation[T, A, R]) Waiting(o *Object[T]) int {
	if o.class.typ != op.typ {
		return 0
	}
	return o.box.Queued(op.index)
}

// at returns the operation's number if t is its type.
func (op *operation[T]) at(t any) (int, bool) { return op.index, t == any(op.typ) }

// NoArg adapts a method that takes no argument to the form of a body.
func NoArg[T, R any](body func(*T) (R, error)) func(*T, None) (R, error) {
	return func(s *T, _ None) (R, error) { return body(s) }
}

// Get adapts a method that takes no argument and cannot fail to the form of a
// body.
func Get[T, R any](body func(*T) R) func(*T, None) (R, error) {
	return func(s *T, _ None) (R, error) { return body(s), nil }
}

// Put adapts a method that returns nothing to the form of a body.
func Put[T, A any](body func(*T, A)) func(*T, A) (None, error) {
	return func(s *T, a A) (None, error) { body(s, a); return None{}, nil }
}

// Do adapts a method that takes and returns nothing to the form of a body.
func Do[T any](body func(*T)) func(*T, None) (None, error) {
	return func(s *T, _ None) (None, error) { body(s); return None{}, nil }
}
