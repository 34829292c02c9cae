package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// crate is what nothing may keep. (It is too large to share its memory with others.)
type crate struct{ _ [64]byte }

// vault is an object whose requests wait until it is open.
type vault struct {
	open bool
	_    [64]byte
}

type vaults struct {
	*activeobject.Type[vault]
	store, storeCtx, again *activeobject.Operation[vault, *crate, int]
	open                   *activeobject.Operation[vault, bool, None]
}

func newVaults() vaults {
	t := activeobject.NewType[vault]("vault")
	open := func(v *vault) bool { return v.open }
	vs := vaults{
		Type:     t,
		store:    activeobject.Entry(t, "store", func(*vault, *crate) (int, error) { return 7, nil }).When("open", open),
		storeCtx: activeobject.EntryCtx(t, "store-ctx", func(*vault, context.Context, *crate) (int, error) { return 7, nil }).When("open too", open),
		open:     activeobject.Procedure(t, "open", activeobject.Arg(func(v *vault, open bool) { v.open = open })),
	}
	vs.again = activeobject.Entry(t, "again", func(_ *vault, c *crate) (int, error) { return vs.storeCtx.Requeue(c) }).When("open as well", open)
	return vs
}

// A future is kept for its result: not for the argument, the context and the object of the
// request, whatever has become of that.
func TestAFutureKeepsNothingOfItsRequestButTheResult(t *testing.T) {
	type key struct{}
	vs := newVaults()
	errGone := errors.New("the cause")
	everywhere(t, func(t *testing.T, s *scene) {
		var kept []any // all of them, to the end
		gone := map[string]func() bool{}
		for end, finish := range map[string]func(o *activeobject.Object[vault], cancel context.CancelCauseFunc, withdraw func() bool) error{
			"runs": func(o *activeobject.Object[vault], _ context.CancelCauseFunc, _ func() bool) error {
				_, err := vs.open.Call(background, o, true)
				require.NoError(t, err)
				return nil
			},
			"is canceled": func(_ *activeobject.Object[vault], cancel context.CancelCauseFunc, _ func() bool) error {
				cancel(errGone)
				return context.Canceled
			},
			"is withdrawn": func(_ *activeobject.Object[vault], _ context.CancelCauseFunc, withdraw func() bool) error {
				require.True(t, withdraw())
				return context.Canceled
			},
			"fails": func(o *activeobject.Object[vault], _ context.CancelCauseFunc, _ func() bool) error {
				o.Stop()
				return activeobject.ErrStopped
			},
		} {
			for _, op := range []*activeobject.Operation[vault, *crate, int]{vs.store, vs.storeCtx, vs.again} {
				for _, ticket := range []bool{false, true} {
					var f activeobject.Future[int]
					var k activeobject.Ticket[int]
					argument, value, object := func() (weak.Pointer[crate], weak.Pointer[crate], weak.Pointer[activeobject.Object[vault]]) {
						arg, value := &crate{}, &crate{}
						o := newObject(t, s, vs.Type, &vault{})
						ctx, cancel := context.WithCancelCause(context.WithValue(background, key{}, value))
						defer cancel(nil)
						withdraw, await := func() bool { return f.Withdraw() }, func() (int, error) { return f.Await(background) }
						if ticket {
							withdraw, await = func() bool { return k.Withdraw() }, func() (int, error) { return k.Await(background) }
							k = op.Begin(ctx, o, arg)
						} else {
							f = op.Send(ctx, o, arg)
						}
						waiting(t, o, op, 1)
						want := finish(o, cancel, withdraw)
						got := soon(t, s.system, async(await))
						if want == nil {
							require.Equal(t, outcome[int]{result: 7}, got)
						} else {
							require.ErrorIs(t, got.err, want)
						}
						o.Stop()
						return weak.Make(arg), weak.Make(value), weak.Make(o)
					}()
					what := fmt.Sprintf("%s %s, ticket %v", op.Name(), end, ticket)
					gone["the argument is let go: "+what] = func() bool { return argument.Value() == nil }
					gone["the context is let go: "+what] = func() bool { return value.Value() == nil }
					gone["the object is let go: "+what] = func() bool { return object.Value() == nil }

					// What is asked of it later is answered as ever.
					if !ticket {
						require.True(t, f.Ready())
						require.False(t, f.Withdraw())
						require.Error(t, f.SetPriority(1))
						_, err := actor.All(f, op.Send(background, activeobject.Must(activeobject.New(s.system, vs.Type, &vault{open: true})), nil)).Await(background)
						require.Equal(t, end == "runs", err == nil)
					}
					kept = append(kept, f, k)
				}
			}
		}
		for what, gone := range gone {
			for end := time.Now().Add(patience); !gone() && time.Now().Before(end); {
				runtime.GC()
			}
			require.True(t, gone(), what)
		}
		runtime.KeepAlive(kept)
	})
}
