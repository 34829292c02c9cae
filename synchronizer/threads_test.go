package synchronizer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// A Try is no way around a limit.
func TestALimitIsForTriesToo(t *testing.T) {
	s := newSystem(t)
	for name, option := range map[string]activeobject.Option{"limit": synchronizer.Limit(1), "hard": synchronizer.HardLimit(1), "pool": synchronizer.Workers(newPool(t, s, 1))} {
		t.Run(name, func(t *testing.T) {
			rs := newRooms()
			o := newRoom(t, s, rs, rs.free(), option)
			here, leave := make(chan None), make(chan None)
			one := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
			soon(t, here)
			ran := make(chan None, 1)
			tried := make(chan error, 1)
			go func() {
				_, err := rs.b.Try(background, o, func(context.Context) error { ran <- none; return nil })
				tried <- err
			}()
			select {
			case <-ran:
				t.Error("two run at once")
			case err := <-tried:
				require.ErrorIs(t, err, activeobject.ErrRefused)
				require.ErrorContains(t, err, "there is no thread for it")
			case <-time.After(patience):
				t.Error("this hangs")
			}
			close(leave)
			require.NoError(t, soon(t, one))
		})
	}
}

// A body that leaves a goroutine behind, which waits with its context, gives its thread
// back once, also if it asks for another turn.
func TestWhatABodyLeavesBehindGivesNoThreadTwice(t *testing.T) {
	s := newSystem(t)
	for _, again := range []bool{false, true} {
		pool := newPool(t, s, 1)
		rs := newRooms()
		far := newRoom(t, s, rs, rs.free())
		typ := activeobject.NewType[room]("leaver")
		var second *activeobject.Operation[room, None, None]
		left := make(chan error, 1)
		first := activeobject.ProcedureCtx(typ, "first", func(_ *room, ctx context.Context, _ None) (None, error) {
			go func() {
				_, err := rs.pass.Call(ctx, far, none)
				left <- err
			}()
			objecttest.Waiting(t, far, rs.pass, 1)
			until(t, "not parked", func() bool { return pool.Busy() == 0 })
			if again {
				return second.Requeue(none)
			}
			return none, nil
		})
		second = activeobject.ProcedureCtx(typ, "second", func(*room, context.Context, None) (None, error) { return none, nil })
		o, err := synchronizer.New(s, typ, &room{}, synchronizer.Workers(pool))
		require.NoError(t, err)
		require.NoError(t, soon(t, call(first, o, none)))
		until(t, "idle", func() bool { return len(running(o)) == 0 })
		require.Zero(t, pool.Busy())
		_, err = rs.set.Call(background, far, true)
		require.NoError(t, err)
		require.NoError(t, soon(t, left))
		require.Zero(t, pool.Busy())
	}
}

// A bound is kept while requests wait for threads.
func TestABoundIsKeptWhileThereIsNoThread(t *testing.T) {
	s := newSystem(t)
	for name, option := range map[string]activeobject.Option{"limit": synchronizer.Limit(1), "pool": synchronizer.Workers(newPool(t, s, 1))} {
		t.Run(name, func(t *testing.T) {
			rs := newRooms()
			o := newRoom(t, s, rs, rs.free(), option, activeobject.Bound(2, activeobject.Refuse))
			here, leave := make(chan None), make(chan None)
			one := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
			soon(t, here)
			refused := make(chan error, 10)
			for range 10 {
				go func() {
					_, err := rs.b.Call(background, o, func(context.Context) error { return nil })
					refused <- err
				}()
			}
			for range 8 {
				require.ErrorIs(t, soon(t, refused), activeobject.ErrFull)
			}
			require.Equal(t, 2, rs.b.Waiting(o))
			close(leave)
			require.NoError(t, soon(t, one))
			require.NoError(t, soon(t, refused))
			require.NoError(t, soon(t, refused))
		})
	}
}

// A request that is about to start is not said to wait, though others run.
func TestWhatIsStillToBeDecidedIsSaidToBe(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		o := newRoom(t, s, rs, rs.free(), options...)
		here, leave := make(chan None), make(chan None)
		one := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
		soon(t, here)
		var wrong atomic.Int32
		stop := o.Observe(func(l activeobject.Load) bool {
			if l.Waiting > 0 && !l.Deciding {
				wrong.Add(1)
			}
			return false
		})
		defer stop()
		require.NoError(t, soon(t, call(rs.b, o, func(context.Context) error { return nil })))
		close(leave)
		require.NoError(t, soon(t, one))
		require.Zero(t, wrong.Load())
	})
}
