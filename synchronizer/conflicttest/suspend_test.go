package conflicttest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

// Two bodies that suspend until there is enough; one goes on with what it read before.
var (
	suspending = activeobject.NewType[Vault]("suspending vault")
	fill       = activeobject.Procedure(suspending, "fill", activeobject.Arg((*Vault).Put))
	draw       = activeobject.ProcedureCtx(suspending, "draw", func(v *Vault, ctx context.Context, l int64) (None, error) {
		if err := activeobject.SuspendUntil(ctx, "covered", func() bool { return v.Has(l) }); err != nil {
			return nil, err
		}
		v.Take(l)
		return nil, nil
	}).Suspends()
	stale = activeobject.ProcedureCtx(suspending, "stale", func(v *Vault, ctx context.Context, l int64) (None, error) {
		before := v.x.Load()
		err := activeobject.SuspendUntil(ctx, "covered", func() bool { return v.Has(l) })
		v.x.Store(before)
		return nil, err
	}).Suspends()
)

// Bodies that suspend are checked step by step: the other one runs while they are suspended.
func TestASuspendedBodyIsStepped(t *testing.T) {
	all := []conflicttest.Option{conflicttest.Arguments(fill, amounts), conflicttest.Arguments(draw, amounts), conflicttest.Arguments(stale, amounts)}
	t.Run("one that looks again", func(t *testing.T) {
		conflicttest.Check(t, suspending, suspending.Conflicts().Compatible(fill, fill, draw), vaultStates, all...)
	})
	t.Run("one that does not", func(t *testing.T) {
		said := one(t, played(t, func(t testing.TB) {
			conflicttest.Check(t, suspending, suspending.Conflicts().Compatible(fill, stale), vaultStates, append(all, conflicttest.Commuting())...)
		}))
		require.Contains(t, said, "fill and stale are declared compatible, but do not commute")
	})
}
