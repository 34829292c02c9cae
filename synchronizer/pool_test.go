package synchronizer_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/synchronizer"
)

// A pool whose threads are busy keeps nothing of objects that have waited for one and have
// ended since, in either model.
func TestABusyPoolKeepsNoObjectThatHasEnded(t *testing.T) {
	for name, model := range map[string][]activeobject.Option{"on start": nil, "on arrival": {synchronizer.Monitor()}} {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			pool := newPool(t, s, 1)
			options := append([]activeobject.Option{synchronizer.Workers(pool)}, model...)
			busy := newRoom(t, s, rs, rs.free(), options...)
			here, leave := make(chan None), make(chan None)
			stays := call(rs.a, busy, func(context.Context) error { here <- none; <-leave; return nil })
			soon(t, here)

			// One of each two has a request that waits when it ends.
			const n = 4
			var objects []weak.Pointer[activeobject.Object[room]]
			for i := range n {
				objects = append(objects, func() weak.Pointer[activeobject.Object[room]] {
					o, err := synchronizer.New(s, rs.Type, &room{}, append(options, synchronizer.Conflicts(rs.free()))...)
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(background)
					waits := callWith(ctx, rs.a, o, func(context.Context) error { return nil })
					until(t, "it does not wait", func() bool { return len(o.Explain().Waiting) == 1 })
					if i%2 == 0 {
						o.Stop()
						require.ErrorIs(t, soon(t, waits), activeobject.ErrStopped)
					} else {
						cancel()
						require.ErrorIs(t, soon(t, waits), context.Canceled)
					}
					cancel()
					soon(t, o.Retire())
					return weak.Make(o)
				}())
			}
			for _, object := range objects {
				until(t, "the pool keeps an object", func() bool { runtime.GC(); return object.Value() == nil })
			}
			require.Equal(t, 1, pool.Busy())
			close(leave)
			require.NoError(t, soon(t, stays))
			until(t, "the thread is not given back", func() bool { return pool.Busy() == 0 })

			// Those that come later get the thread as ever.
			late := newRoom(t, s, rs, rs.free(), options...)
			require.NoError(t, soon(t, call(rs.a, late, func(context.Context) error { return nil })))
		})
	}
}
