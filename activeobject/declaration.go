package activeobject

import (
	"context"
	"reflect"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// Declaration is what has been declared of an operation, as plain functions over a
// state that is no object's: nothing keeps anybody apart, nobody waits, and Queues count
// nobody. It is for those who check declarations, as the package conflicttest does.
type Declaration[T any] struct {
	Name     string
	Function bool // it is declared to change nothing
	Argument reflect.Type
	Result   reflect.Type
	Guard    guards.Guard[T, any]                        // of what is always open the zero one
	Body     func(*T, context.Context, any) (any, error) // a requeue is an error that it returns, and nothing else
}

// Declarations returns those of a type's operations, in the order of Type.Operations. It
// seals the type as its first object does, and panics likewise. Guards and bodies take an
// argument that is an Argument.
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
