package activeobject_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// observed returns a channel that is closed when the load is first as wanted.
func observed[T any](o *activeobject.Object[T], wanted func(activeobject.Load) bool) <-chan struct{} {
	done := make(chan struct{})
	o.Observe(func(l activeobject.Load) bool {
		if !wanted(l) {
			return false
		}
		close(done)
		return true
	})
	return done
}

func TestAnObserverIsToldOfArrivalsStartsEndsAndWithdrawals(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		soon(t, s.system, observed(o, func(l activeobject.Load) bool { return l.Running == 1 && l.Waiting == 0 }))
		var futures []activeobject.Future[int]
		for i := range 3 {
			arrived := observed(o, func(l activeobject.Load) bool { return l.Waiting == i+1 })
			futures = append(futures, ts.drain.Send(background, o, nil))
			soon(t, s.system, arrived)
		}
		gone := observed(o, func(l activeobject.Load) bool { return l == activeobject.Load{Running: 1, Waiting: 2} })
		require.True(t, futures[1].Withdraw())
		soon(t, s.system, gone)
		closed := observed(o, func(l activeobject.Load) bool { return l == activeobject.Load{Waiting: 2} })
		release()
		soon(t, s.system, closed)
		idle := observed(o, activeobject.Load.Idle)
		ts.fill.Call(background, o, 2)
		soon(t, s.system, idle)
	})
}

func TestAnObserverThatComesWhileTheFastPathHasTheObjectSeesItsEnd(t *testing.T) {
	typ := activeobject.NewType[dam]("dam")
	block := activeobject.Procedure(typ, "block", func(_ *dam, b *brake) (None, error) {
		close(b.entered)
		<-b.let
		return nil, nil
	})
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &dam{})
		b := newBrake()
		done := calling(background, o, block, b)
		soon(t, s.system, b.entered)
		soon(t, s.system, observed(o, func(l activeobject.Load) bool { return l == activeobject.Load{Running: 1} }))
		idle := observed(o, activeobject.Load.Idle)
		close(b.let)
		soon(t, s.system, idle)
		soon(t, s.system, done)
	})
}

func TestWhatAnObserverIsToldIsTrue(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		const callers, calls = 8, 100
		var told atomic.Int32
		var wrong atomic.Pointer[activeobject.Load]
		stop := o.Observe(func(l activeobject.Load) bool {
			told.Add(1)
			if l.Running > 1 || l.Waiting > 2*callers || l.Running > 0 && l.Deciding && !s.parallel() {
				wrong.Store(&l)
			}
			return false
		})
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range calls {
					ts.drain.Call(background, o, nil)
				}
			})
			all.Go(func() {
				for range calls {
					ts.fill.Call(background, o, 1)
				}
			})
		}
		all.Wait()
		soon(t, s.system, observed(o, activeobject.Load.Idle))
		stop()
		require.Nil(t, wrong.Load())
		require.Greater(t, told.Load(), int32(2*callers*calls), "each start at least, and the ends that left it free")
	})
}

func TestAnObjectHasItsFastPathBackWhenItIsNotObserved(t *testing.T) {
	ts := newTanks()
	system := newSystem(t)
	o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}))
	steps := func() uint64 { return o.Explain().Step } // of the scheduler
	stop := o.Observe(func(activeobject.Load) bool { return false })
	ts.fill.Call(background, o, 1)
	seen := steps()
	require.NotZero(t, seen)
	stop()
	ts.fill.Call(background, o, 1)
	require.Equal(t, seen, steps())
	<-observed(o, activeobject.Load.Idle) // enough at once
	ts.fill.Call(background, o, 1)
	require.Equal(t, seen, steps())
}
