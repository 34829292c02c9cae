package conflicttest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

// safe is a type of vaults that commutes, with one operation that puts and one that sets.
func safe(put, set func(*Vault, int64, int64)) (*activeobject.Type[Vault], guards.Table, []conflicttest.Option) {
	safes := activeobject.NewType[Vault]("safe").Commutes()
	add := activeobject.Procedure(safes, "put", activeobject.Arg((*Vault).Put)).Undo(func(v *Vault, l int64, _ None) { put(v, l, 0) })
	exchange := activeobject.Procedure(safes, "set", func(v *Vault, l int64) (int64, error) { return v.x.Swap(l), nil }).Undo(set)
	table := safes.Conflicts().Compatible(add, add)
	return safes, table, []conflicttest.Option{conflicttest.Arguments(add, amounts), conflicttest.Arguments(exchange, amounts)}
}

func TestAnUndoHasToBringTheStateBack(t *testing.T) {
	takeBack := func(v *Vault, l, _ int64) { v.Take(l) }
	for _, test := range []struct {
		name     string
		put, set func(*Vault, int64, int64)
		problem  string
	}{
		{"right ones", takeBack, func(v *Vault, _, old int64) { v.x.Store(old) }, ""},
		{"one that forgets", func(*Vault, int64, int64) {}, func(v *Vault, _, old int64) { v.x.Store(old) }, "the Undo of put does not bring back the state"},
		{"one that uses the wrong value", takeBack, func(v *Vault, l, _ int64) { v.x.Store(l) }, "the Undo of set does not bring back the state"},
		{"one that panics", func(*Vault, int64, int64) { panic("broken") }, func(v *Vault, _, old int64) { v.x.Store(old) }, "the Undo of put panicked: broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			failures := played(t, func(t testing.TB) {
				safes, table, options := safe(test.put, test.set)
				conflicttest.Check(t, safes, table, vaultStates, options...)
			}).failures
			if test.problem == "" {
				require.Empty(t, failures)
				return
			}
			require.NotEmpty(t, failures)
			require.Contains(t, failures[0], test.problem)
		})
	}
}

// What another operation has done since, which was let run beside it, must not be undone with it.
func TestAnUndoMustNotErase(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) {
		boxes := activeobject.NewType[Box]("box").Commutes()
		put := activeobject.Procedure(boxes, "put", func(b *Box, l int64) (int64, error) { b.x += l; return b.x - l, nil }).
			Undo(func(b *Box, _, before int64) { b.x = before })
		quiet := activeobject.Procedure(boxes, "quiet", activeobject.Arg(func(b *Box, l int64) { b.x += l })).
			Undo(func(b *Box, l int64, _ None) { b.x -= l })
		states := func(t *rapid.T) func() *Box { return func() *Box { return &Box{} } }
		conflicttest.Check(t, boxes, boxes.Conflicts().Compatible(put, quiet), states,
			conflicttest.Arguments(put, rapid.Just(int64(0))), conflicttest.Arguments(quiet, amounts))
	}))
	require.Contains(t, said, "table of box: put and quiet are declared compatible, but put undone after quiet does not leave quiet alone\n")
	require.Regexp(t, `alone: +quiet\(1\): done; then the state is \.x = 1, `, said)
	require.Regexp(t, `undone: +put\(0\), then quiet\(1\): done, then undone: done; then the state is \.x = 0, `, said)
}

// Box is a state without synchronization.
type Box struct {
	x     int64
	names []string
}

func TestABodyThatIsNotUndoneMustNotChange(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) {
		boxes := activeobject.NewType[Box]("box")
		activeobject.Procedure(boxes, "fail", activeobject.Error(func(b *Box) error { b.x++; return errors.New("no") })).
			Undo(func(b *Box, _, _ None) { b.x-- })
		conflicttest.Check(t, boxes, boxes.Conflicts(), func(*rapid.T) func() *Box { return func() *Box { return &Box{} } })
	}))
	require.Contains(t, said, "type box: fail returns an error, so that it is not undone, and has changed the state\n")
}

func TestACopyMustShareNothingThatIsChanged(t *testing.T) {
	for name, c := range map[string]func(*Box) *Box{
		"shallow": func(b *Box) *Box { c := *b; return &c },
		"deep":    func(b *Box) *Box { return &Box{names: append([]string(nil), b.names...)} },
	} {
		t.Run(name, func(t *testing.T) {
			failures := played(t, func(t testing.TB) {
				boxes := activeobject.NewType[Box]("box").Copies(c)
				activeobject.Procedure(boxes, "rename", activeobject.Plain(func(b *Box) { b.names[0] += "x" }))
				conflicttest.Check(t, boxes, boxes.Conflicts(), func(*rapid.T) func() *Box { return func() *Box { return &Box{names: []string{"a"}} } })
			}).failures
			if name == "deep" {
				require.Empty(t, failures)
				return
			}
			require.Len(t, failures, 1)
			require.Contains(t, failures[0], "the copy of a state is changed by rename, with which it shares something")
		})
	}
}
