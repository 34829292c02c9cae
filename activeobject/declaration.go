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
		all[i] = Declaration[T]{op.info.name, op.info.kind == mailbox.Function, op.info.argument, op.info.result, erasedGuard(op), body}
	}
	return all
}
