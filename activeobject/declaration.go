package activeobject

import (
	"context"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Declaration is what has been declared of an operation, as plain functions over a
// state that is no object's: nothing keeps anybody apart, nobody waits, and Queues count
// nobody. It is for those who check declarations, as the package conflicttest does.
type Declaration[T any] struct {
	Name     string
	Function bool                                        // it is declared to change nothing
	NoArg    bool                                        // its argument is a None
	Guard    guards.Guard[T, any]                        // of a Function or a procedure the zero one
	Accepts  func(argument any) bool                     // nil stands for no argument
	Body     func(*T, context.Context, any) (any, error) // a requeue is an error that it returns, and nothing else
}

// Declarations returns those of a type's operations, in the order of Type.Operations. It
// seals the type as its first object does, and panics likewise.
func Declarations[T any](t *Type[T]) []Declaration[T] {
	t.seal()
	all := make([]Declaration[T], len(t.ops))
	for i, op := range t.ops {
		h := op.self.(heritable[T])
		accepts := func(argument any) bool { _, ok := h.acceptAny(argument); return ok }
		all[i] = Declaration[T]{
			Name:     op.name,
			Function: op.kind == kernel.Function,
			NoArg:    accepts(None{}) && !accepts(0), // which an any would accept too
			Guard:    h.guardAny(),
			Accepts:  accepts,
			Body:     h.applyAny,
		}
	}
	return all
}
