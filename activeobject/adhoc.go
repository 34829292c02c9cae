package activeobject

import (
	"context"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Every type has three operations that it does not declare, for what is worth no declaration. Their
// argument is the function that they run, and the guard that they wait for. Each is a family whose
// key is the guard, so that all requests that wait for one guard share one evaluation.

// adhoc is the argument of an operation that is not declared.
type adhoc[T any] struct {
	guard guards.Guard[T, None]
	f     func(*T) error
}

// undeclared are the operations that are not declared.
type undeclared[T any] struct {
	do, view, until *Operation[T, adhoc[T], None]
	rests           []*operation[T] // see Suspends
}

func newUndeclared[T any](t *Type[T]) (u undeclared[T]) {
	n := len(t.ops)
	u.do = undeclaredOperation(t, n, mailbox.Entry, "do")
	u.view = undeclaredOperation(t, n+1, mailbox.Function, "view")
	u.until = undeclaredOperation(t, n+2, mailbox.Function, "until")
	u.do.info.own, u.view.info.own = true, true
	for _, op := range t.ops {
		if op.info.suspends {
			u.rests = append(u.rests, restOperation(t, &op.info, n+3+len(u.rests)))
		}
	}
	return u
}

func undeclaredOperation[T any](t *Type[T], index int, kind mailbox.Kind, name string) *Operation[T, adhoc[T], None] {
	op := newOperation[T, adhoc[T], None](t)
	op.info.kind, op.info.name, op.info.changed = kind, name, kind != mailbox.Function
	op.leaf = func(s *T, a adhoc[T]) (None, error) {
		if a.f == nil {
			return nil, nil
		}
		return nil, a.f(s)
	}
	op.parts = []guards.Guard[T, adhoc[T]]{guards.Of("its guard", guards.AtArgument, func(s *T, a adhoc[T]) string { return a.guard.Ask(s, nil) })}
	op.info.family, op.key = true, func(a adhoc[T], _ bool) (any, bool) { return a.guard.ID(), true }
	completeOperation(op, index)
	return op
}

// carried returns the invocation of a request that carries its guard, if it is one.
func carried[T any](body engine.Body) (*invocation[T, adhoc[T], None], bool) {
	c, ok := body.(*request)
	if !ok {
		return nil, false
	}
	in, ok := c.in.(*invocation[T, adhoc[T], None])
	return in, ok
}

// Do runs f at the object as a procedure would be: for a change of the state that
// wants no declared operation. It returns f's error, or that of a Call. F runs on
// the calling goroutine, unless the object has threads of its own; it must neither
// block nor call other objects.
func (o *Object[T]) Do(ctx context.Context, f func(*T) error) error {
	return o.adhoc(ctx, o.Type().hidden.do, "Do", guards.Guard[T, None]{}, f)
}

// DoWhen is Do as an entry: it waits until the guard holds.
func (o *Object[T]) DoWhen(ctx context.Context, g guards.Guard[T, None], f func(*T) error) error {
	if g.IsZero() {
		return &ArgumentError{Call: "DoWhen", Argument: "guard", Problem: "has no condition: make it with guards.When"}
	}
	return o.adhoc(ctx, o.Type().hidden.do, "DoWhen", g, f)
}

// View runs f at the object as a function would be: it may read the state, and must
// not change it. Otherwise it is like Do.
func (o *Object[T]) View(ctx context.Context, f func(*T) error) error {
	return o.adhoc(ctx, o.Type().hidden.view, "View", guards.Guard[T, None]{}, f)
}

// Until waits until the guard holds, and does nothing then; by the time it returns
// the guard may be false again. Any number of goroutines may wait for one guard: it
// is evaluated once for all of them, if it is the same value (or a copy of it). So make
// it once and keep it:
//
//	var empty = guards.When("empty", (*Buffer).Empty)
//	err := buffer.Until(ctx, empty)
//
// The guard must look neither at waiting counts nor at the time. If ctx ends, it may be evaluated
// once more after Until has returned.
func (o *Object[T]) Until(ctx context.Context, g guards.Guard[T, None]) error {
	if g.IsZero() {
		return &ArgumentError{Call: "Until", Argument: "guard", Problem: "has no condition: make it with guards.When"}
	}
	_, err := o.callAdhoc(ctx, o.Type().hidden.until, "Until", adhoc[T]{guard: g})
	return err
}

func (o *Object[T]) adhoc(ctx context.Context, op *Operation[T, adhoc[T], None], call string, g guards.Guard[T, None], f func(*T) error) error {
	if f == nil {
		return &ArgumentError{Call: call, Argument: "f", Problem: "is nil: pass the function to run"}
	}
	_, err := o.callAdhoc(ctx, op, call, adhoc[T]{g, f})
	return err
}

func (o *Object[T]) callAdhoc(ctx context.Context, op *Operation[T, adhoc[T], None], call string, a adhoc[T]) (None, error) {
	switch looks := a.guard.Looks(); {
	case looks&guards.AtWaiting != 0:
		return nil, &ArgumentError{Call: call, Argument: "guard", Problem: "looks at waiting counts: declare an entry with WhenWaiting for it"}
	case looks&guards.AtTime != 0:
		return nil, &ArgumentError{Call: call, Argument: "guard", Problem: "looks at the time: declare an entry or a function with WhenTime for it"}
	}
	return op.Call(ctx, o, a)
}
