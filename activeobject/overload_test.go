package activeobject_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// A call passes requests that wait for room as those that wait for their guard: without
// a decision of the scheduler, if the guard is still false.
func TestCallsPassThoseThatWaitForRoomOnTheFastPath(t *testing.T) {
	for _, bound := range []int{0, 1} {
		ss := newLevels()
		system := newSystem(t)
		o := activeobject.Must(activeobject.New(system, ss.Type, new(int), activeobject.Bound(bound, activeobject.Wait)))
		ctx, cancel := context.WithCancel(background)
		var all []<-chan outcome[None]
		for i := range 5 {
			all = append(all, calling(ctx, o, ss.drain, nil))
			waitingAny(t, o, i+1)
		}
		call := func() {
			_, err := ss.touch.Call(background, o, nil)
			require.NoError(t, err)
		}
		call() // what has observed the object is gone
		before := o.Explain().Step
		for range 10 {
			call()
		}
		require.Equal(t, before, o.Explain().Step, "bound %d", bound)

		_, err := ss.fill.Call(background, o, nil)
		require.NoError(t, err)
		require.NoError(t, soon(t, system, all[0]).err, "the first starts when it can")
		cancel()
		for _, c := range all[1:] {
			require.ErrorIs(t, soon(t, system, c).err, context.Canceled)
		}
		require.Empty(t, o.Explain().Waiting)
		call()
	}
}

// Many wait for room, give up, or are admitted, at once: each that is told to have
// drained has, and none is left behind.
func TestNoneThatWaitsForRoomIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		const callers, turns = 16, 20
		ss := newLevels()
		for _, bound := range []int{0, 2} {
			o := newObject(t, s, ss.Type, new(int), activeobject.Bound(bound, activeobject.Wait))
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for n := range turns {
						if i%4 == 3 && n%2 == 0 { // gives up at some time
							ctx, cancel := context.WithCancel(background)
							c := calling(ctx, o, ss.drain, nil)
							cancel()
							if (<-c).err != nil {
								continue
							}
						} else if _, err := ss.drain.Call(background, o, nil); err != nil {
							t.Error(err)
						}
						if _, err := ss.fill.Call(background, o, nil); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range 3 {
				_, err := ss.fill.Call(background, o, nil)
				require.NoError(t, err)
			}
			done := make(chan None, 1)
			go func() { wg.Wait(); done <- nil }()
			soon(t, s.system, done)
			level, err := ss.level.Call(background, o, nil)
			require.NoError(t, err)
			require.Equal(t, 3, level, "bound %d", bound)
			require.Empty(t, o.Explain().Waiting)
		}
	})
}

// levels are filled, drained if there is something, and read.
type levels struct {
	*activeobject.Type[int]
	fill, touch, drain *activeobject.Operation[int, None, None]
	level              *activeobject.Operation[int, None, int]
}

func newLevels() levels {
	typ := activeobject.NewType[int]("level")
	return levels{
		typ,
		activeobject.Procedure(typ, "fill", activeobject.Plain(func(level *int) { *level++ })),
		activeobject.Procedure(typ, "touch", activeobject.Plain(func(*int) {})),
		activeobject.Entry(typ, "drain", activeobject.Plain(func(level *int) { *level-- })).When("filled", func(level *int) bool { return *level > 0 }),
		activeobject.Function(typ, "level", func(level *int, _ None) (int, error) { return *level, nil }),
	}
}

// waitingAny waits until n requests wait at the object, those without room included.
func waitingAny(t *testing.T, o *activeobject.Object[int], n int) {
	t.Helper()
	full := make(chan None)
	defer o.Observe(func(l activeobject.Load) bool {
		if l.Waiting == n && !l.Deciding {
			close(full)
			return true
		}
		return false
	})()
	select {
	case <-full:
	case <-after():
		t.Fatal("they do not wait")
	}
}

// To explain a system takes room for what runs and waits, and next to none for objects
// at which nothing does, also if requests have waited there once.
func TestExplainingIdleObjectsTakesNoRoom(t *testing.T) {
	const objects = 2000
	ls := newLevels()
	system := newSystem(t)
	for i := range objects {
		o := activeobject.Must(activeobject.New(system, ls.Type, new(int)))
		if i%2 == 0 {
			c := calling(background, o, ls.drain, nil)
			waitingAny(t, o, 1)
			_, err := ls.fill.Call(background, o, nil)
			require.NoError(t, err)
			require.NoError(t, soon(t, system, c).err)
		}
	}
	least := uint64(math.MaxUint64) // what else happens only adds to it
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Empty(t, system.Explain())
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	require.LessOrEqual(t, least/objects, uint64(100), "bytes per object")
}
