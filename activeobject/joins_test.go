package activeobject_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// The search for circles looks at requests that run and may be requeued at that moment. The
// test is for the race detector.
func TestABodyMayAwaitSeveralRequestsThatAreRequeued(t *testing.T) {
	type stage struct{}
	typ := activeobject.NewType[stage]("stage")
	var turn *activeobject.Operation[stage, int, int]
	turn = activeobject.ProcedureCtx(typ, "turn", func(_ *stage, _ context.Context, turns int) (int, error) {
		runtime.Gosched()
		if turns == 0 {
			return 1, nil
		}
		return turn.Requeue(turns - 1)
	})
	outer := activeobject.ProcedureCtx(typ, "outer", func(_ *stage, ctx context.Context, do func(context.Context) (int, error)) (int, error) {
		return do(ctx)
	})
	everywhere(t, func(t *testing.T, s *scene) {
		home, a, b := newObject(t, s, typ, &stage{}), newObject(t, s, typ, &stage{}), newObject(t, s, typ, &stage{})
		for range 50 {
			n, err := outer.Call(background, home, func(ctx context.Context) (int, error) {
				x, y := turn.Send(ctx, a, 2), turn.Send(ctx, b, 2)
				if _, err := actor.First(x, y).Await(ctx); err != nil {
					return 0, err
				}
				both, err := actor.All(x, y).Await(ctx)
				return len(both), err
			})
			require.NoError(t, err)
			require.Equal(t, 2, n)
		}
	})
}
