package model

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// declarations are a declared type as Sluice sees it: once with bodies that are
// leaves, and once with bodies that may block.
type declarations[T any] struct {
	t                *object.Type[T]
	leaves, blocking func() *declaration[T]
}

// declaration is a Sluice type and its operations.
type declaration[T any] struct {
	typ        *activeobject.Type[T]
	operations []*operation[T]
}

type operation[T any] = activeobject.Operation[T, object.Request, int64]

func newDeclarations[T any](t *object.Type[T]) *declarations[T] {
	return &declarations[T]{
		t:        t,
		leaves:   sync.OnceValue(func() *declaration[T] { return declare(t, leaf) }),
		blocking: sync.OnceValue(func() *declaration[T] { return declare(t, blocking) }),
	}
}

// declare declares a type for Sluice.
func declare[T any](t *object.Type[T], as func(*activeobject.Type[T], *object.Operation[T]) *operation[T]) *declaration[T] {
	d := &declaration[T]{typ: activeobject.NewType[T](t.Name)}
	for i := range t.Operations {
		declared := &t.Operations[i]
		op := as(d.typ, declared)
		if declared.Holds != nil {
			op.WhenArg(declared.Guard, declared.Holds)
		}
		d.operations = append(d.operations, op)
	}
	return d
}

func leaf[T any](typ *activeobject.Type[T], op *object.Operation[T]) *operation[T] {
	switch {
	case op.Reads:
		return activeobject.Function(typ, op.Name, op.Run)
	case op.Holds != nil:
		return activeobject.Entry(typ, op.Name, op.Run)
	}
	return activeobject.Procedure(typ, op.Name, op.Run)
}

func blocking[T any](typ *activeobject.Type[T], op *object.Operation[T]) *operation[T] {
	body := func(state *T, _ context.Context, r object.Request) (int64, error) { return op.Run(state, r) }
	switch {
	case op.Reads:
		return activeobject.FunctionCtx(typ, op.Name, body)
	case op.Holds != nil:
		return activeobject.EntryCtx(typ, op.Name, body)
	}
	return activeobject.ProcedureCtx(typ, op.Name, body)
}

// of returns the declaration for a setting.
func (d *declarations[T]) of(s object.Setting) *declaration[T] {
	for _, w := range s.Work {
		if w.Wait > 0 {
			return d.blocking()
		}
	}
	return d.leaves()
}

// openSluice makes Sluice objects: whichever the model, that is a constructor and
// its options.
func openSluice[T any](s *Session, m *Model, setting object.Setting, d *declarations[T], states []*T, more []activeobject.Option) error {
	declared := d.of(setting)
	system := actor.NewSystem(actor.Logger(slog.New(slog.DiscardHandler))) // actors log that they begin
	options, end, err := m.options(system)
	s.hosts = append(s.hosts, sluiceHost{system, end})
	if err != nil {
		return err
	}
	options = slices.Concat(options, more)
	construct := activeobject.New[T]
	if m.how == synchronized {
		construct = synchronizer.New[T]
		system.Actors() // made when worker actors need it first: here, so that no run pays for it
		if d.t.Keyed && setting.Keys > 1 {
			options = append(options, synchronizer.Conflicts(declared.byKey()))
		}
	}
	for _, state := range states {
		o, err := construct(system, declared.typ, state, options...)
		if err != nil {
			return fmt.Errorf("making a %s: %w", d.t.Name, err)
		}
		s.Calls = append(s.Calls, declared.calls(o))
	}
	return nil
}

// byKey returns the conflicts of the declaration, between requests of equal keys only.
func (d *declaration[T]) byKey() guards.Table {
	var keys []guards.KeyOf
	for _, op := range d.operations {
		keys = append(keys, guards.Key(op, func(r object.Request) int { return r.Key }))
	}
	return d.typ.Conflicts().EqualKeys(keys...)
}

// calls returns the operations of an object.
func (d *declaration[T]) calls(o *activeobject.Object[T]) []object.Call {
	var calls []object.Call
	for _, op := range d.operations {
		calls = append(calls, activeobject.At(op, o).Call)
	}
	return calls
}

// sluiceHost is the system in which Sluice objects live, and what ends their threads.
type sluiceHost struct {
	*actor.System
	threads func()
}

// stop implements host: there is nothing to do, since calls watch their context.
func (sluiceHost) stop() {}

// end implements host.
func (h sluiceHost) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := h.Close(ctx)
	if h.threads != nil {
		h.threads()
	}
	return err
}
