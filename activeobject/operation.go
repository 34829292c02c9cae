package activeobject

import (
	"reflect"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// Operation is the handle of a declared operation of objects with state T: it
// takes an A and returns an R. Handles are made by Procedure, Entry, Function
// and their Ctx forms, and for derived types by In; they may be used from any
// goroutine once their type is sealed.
type Operation[T, A, R any] struct {
	operation[T]
	leaf    Body[T, A, R]
	blocks  BodyCtx[T, A, R]
	undo    func(*T, A, R)     // nil if it cannot be undone
	guarded guards.Guard[T, A] // the parts and what is inherited, once the type is sealed
	single  func(*T, A) bool   // the guard, if it is one condition that looks at the argument
	forms[A]

	parts     []guards.Guard[T, A]      // added by Guard
	inherited func() guards.Guard[T, A] // of a derived type's: its base's
}

// forms is what depends on the argument but not on the state. A derived type's
// operation begins with a copy of its base's.
type forms[A any] struct {
	accept func(any) (A, bool)                 // the argument of a message; nil stands for an A
	key    func(arg A, boxed bool) (any, bool) // of a family; see familyOf
	keys   []func(arg A, open func(key any))   // what the operation can open of families
}

// Procedure declares an operation that may change the state and is always open.
// It runs alone. The body must neither block nor call other objects: it may be
// run on any goroutine. ProcedureCtx is for bodies that do.
//
// Like all declarations it panics, with a text that says what to do, if the name
// is taken, the body nil, or the type sealed.
func Procedure[T, A, R any](t *Type[T], name string, body Body[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Procedure, name, body, nil)
}

// Entry declares an operation that may change the state and waits for a guard,
// which When, WhenArg, WhenWaiting, WhenTime or Guard adds. Otherwise it is like Procedure.
func Entry[T, A, R any](t *Type[T], name string, body Body[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Entry, name, body, nil)
}

// Function declares an operation that reads the state and changes nothing. With a
// guard it waits, like an entry: but as it changes nothing, all requests that wait for
// one guard start when that has been evaluated once, at a Synchronizer beside each other. So
// it is how many wait for one event. Otherwise it is like Procedure.
func Function[T, A, R any](t *Type[T], name string, body Body[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Function, name, body, nil)
}

// ProcedureCtx is Procedure with a body that may block or call other objects. It
// runs on its own caller's goroutine, or a dispatcher's, never on another caller's;
// it must hand on the context it receives, which carries the chain of calls.
func ProcedureCtx[T, A, R any](t *Type[T], name string, body BodyCtx[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Procedure, name, nil, body)
}

// EntryCtx is Entry with a body that may block or call other objects, as in
// ProcedureCtx.
func EntryCtx[T, A, R any](t *Type[T], name string, body BodyCtx[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Entry, name, nil, body)
}

// FunctionCtx is Function with a body that may block or call other objects, as
// in ProcedureCtx.
func FunctionCtx[T, A, R any](t *Type[T], name string, body BodyCtx[T, A, R]) *Operation[T, A, R] {
	return declare(t, mailbox.Function, name, nil, body)
}

func declare[T, A, R any](t *Type[T], kind mailbox.Kind, name string, leaf Body[T, A, R], blocks BodyCtx[T, A, R]) *Operation[T, A, R] {
	op := newOperation[T, A, R](t)
	op.leaf, op.blocks = leaf, blocks
	op.info.kind, op.info.name, op.info.changed = kind, name, kind != mailbox.Function
	t.add(&op.operation, leaf != nil || blocks != nil)
	return op
}

func newOperation[T, A, R any](t *Type[T]) *Operation[T, A, R] {
	op := &Operation[T, A, R]{}
	op.typ = t
	op.info.self = &op.operation
	op.info.typ, op.info.argument, op.info.result, op.info.resultPtr = &t.typeInfo, reflect.TypeFor[A](), reflect.TypeFor[R](), reflect.TypeFor[*R]()
	op.info.prototype = &invocation[T, A, R]{op: op}
	return op
}

// When makes an entry or a function wait until the named condition over the state holds. Added
// to another guard, both must hold. It returns the operation.
func (op *Operation[T, A, R]) When(name string, holds func(*T) bool) *Operation[T, A, R] {
	return op.Guard(guards.Over[A](guards.When(name, holds)))
}

// WhenArg makes an entry or a function wait until the named condition over the state and
// the argument of the request holds. Added to another guard, both must hold. It
// returns the operation.
func (op *Operation[T, A, R]) WhenArg(name string, holds func(*T, A) bool) *Operation[T, A, R] {
	return op.Guard(guards.WhenArg(name, holds))
}

// WhenWaiting makes an entry or a function wait until the named condition holds, which
// also looks at how many requests wait at the object, through Queues. Added to another
// guard, both must hold. It returns the operation.
func (op *Operation[T, A, R]) WhenWaiting(name string, holds func(*T) bool) *Operation[T, A, R] {
	return op.Guard(guards.Over[A](guards.WhenWaiting(name, holds)))
}

// WhenTime makes an entry or a function wait until the named condition holds, which also looks
// at the time, through Clock. While a request waits for it, every request to the object goes through
// the scheduler, so that those of the operation start in order of arrival when the time has come. Added to another guard, both must hold. It returns the operation.
func (op *Operation[T, A, R]) WhenTime(name string, holds func(*T) bool) *Operation[T, A, R] {
	return op.Guard(guards.Over[A](guards.WhenTime(name, holds)))
}

// Guard makes an entry or a function wait until the guard holds. Added to another guard, both
// must hold. It returns the operation. An inherited procedure (see In) becomes an
// entry by it. It panics if the operation cannot wait, the guard has no condition,
// the type is sealed, or In has handed on the operation to a derived type.
func (op *Operation[T, A, R]) Guard(g guards.Guard[T, A]) *Operation[T, A, R] {
	op.info.checkGuard(op.inherited != nil, g.IsZero(), g.Looks())
	guardBy(op, g)
	return op
}

// checkGuard panics if the operation, which may be inherited, cannot have a guard.
func (op *operationInfo) checkGuard(inherited, zero bool, looks guards.Looks) {
	switch {
	case op.kind == mailbox.Procedure && !inherited:
		panic(op.where() + " has a guard: procedures do not wait; declare it with Entry")
	case zero:
		panic(op.where() + " gets a guard without a condition: make it with guards.When or guards.WhenArg")
	case op.family && looks&guards.AtArgument != 0:
		panic(op.where() + " is a family with a guard over the argument: its guards look at no more of that than the key; use WhenKey")
	}
}

// guardBy adds a part to the guard of the operation.
func guardBy[T, A, R any](op *Operation[T, A, R], g guards.Guard[T, A]) {
	defer op.info.declaring("a guard")()
	op.parts = append(op.parts, g)
	if op.info.kind == mailbox.Procedure {
		op.info.kind = mailbox.Entry
	}
}

// Name returns the name of the operation.
func (op *Operation[T, A, R]) Name() string { return op.info.name }

// Waiting returns how many requests wait for the operation at the object, those
// included that wait behind a running body and have not been admitted yet.
func (op *Operation[T, A, R]) Waiting(o *Object[T]) int {
	return op.info.waiting(&o.objectHeader)
}

func (op *operationInfo) waiting(o *objectHeader) int {
	if !o.config.typ.extends(op.typ) {
		return 0
	}
	return o.box.Queued(op.index)
}

// known returns what is known of the operation whatever its types.
func (op *Operation[T, A, R]) known() *operationInfo { return &op.info }

// at returns the operation's number in s, if that is its type or inherits it.
func (op *operationInfo) at(s *typeInfo) (int, bool) { return op.index, s.extends(op.typ) }
