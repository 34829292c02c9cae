package activeobject

import (
	"context"
	"reflect"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// Declaration is what has been declared of an operation, as plain functions over a state that
// belongs to no object: bodies do not exclude each other, nothing waits, and Queues count nothing.
// It is for packages that check declarations, such as conflicttest.
type Declaration[T any] struct {
	Name     string
	Function bool // it is declared to change nothing
	Argument reflect.Type
	Result   reflect.Type
	Guard    guards.Guard[T, any]                        // zero if the operation is always open
	Body     func(*T, context.Context, any) (any, error) // a requeue is an error that it returns, and nothing else

	// What is said of transactions: how the operation is undone, given its argument and result; nil if it
	// has no Undo. The others are the type's: how a state is saved, so that restore gives it back; nil if the
	// type has no Copies; and whether it Commutes.
	Undo     func(state *T, argument, result any)
	Save     func(*T) (restore func())
	Commutes bool
}

// Declarations returns the declarations of a type's operations, in the order of Type.Operations. It
// seals the type as its first object does, and panics likewise. Guards and bodies take an argument
// of the type Argument.
func Declarations[T any](t *Type[T]) []Declaration[T] {
	t.seal()
	all := make([]Declaration[T], len(t.ops))
	for i, op := range t.ops {
		body := func(s *T, ctx context.Context, argument any) (any, error) {
			return applied(op.info.prototype, s, ctx, argument)
		}
		all[i] = Declaration[T]{
			Name: op.info.name, Function: op.info.kind == mailbox.Function, Argument: op.info.argument, Result: op.info.result,
			Guard: erasedGuard(op), Body: body, Commutes: t.commutes,
		}
		if op.info.undoes {
			all[i].Undo = func(s *T, argument, result any) {
				invoke(op.info.prototype, argument).undoes(nil, s, &result).undo()
			}
		}
		if t.copies != nil {
			all[i].Save = func(s *T) func() { return t.copies(s) }
		}
	}
	return all
}
