package activeobject_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// However requests start, on the fast path, by an owner that serves others, beside
// others, or on a dispatcher: a figure is the whole, or says that it is not counted.
func TestStartsAreCountedWhollyOrNotAtAll(t *testing.T) {
	const callers, calls = 8, 100
	ls := newLevels()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, options := range [][]activeobject.Option{nil, {activeobject.Counters()}} {
			o := newObject(t, s, ls.Type, new(int), options...)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range calls {
						ls.fill.Call(background, o, nil)
						ls.level.Call(background, o, nil)
						ls.drain.Call(background, o, nil)
						ls.touch.Send(background, o, nil).Await(background)
					}
				})
			}
			done := make(chan None, 1)
			go func() { all.Wait(); done <- nil }()
			soon(t, s.system, done)
			for _, now := range o.Stats() {
				if options == nil && now.Starts == activeobject.NotCounted {
					require.True(t, s.onCallers(), "without a fast path all are counted")
					require.Equal(t, activeobject.NotCounted, now.Evaluations)
					require.NotContains(t, s.name, "without fast path")
					continue
				}
				require.EqualValues(t, callers*calls, now.Starts, now.Operation)
				if now.Operation == "drain" {
					require.GreaterOrEqual(t, now.Evaluations, now.Starts, "each needs one at least")
				} else {
					require.Zero(t, now.Evaluations, now.Operation)
				}
				require.LessOrEqual(t, now.Waits, uint64(callers*calls))
			}
		}
	})
}

// That requests which find the object idle are not counted is no zero.
func TestAnIdleObjectSaysThatItDoesNotCount(t *testing.T) {
	ls := newLevels()
	o := activeobject.Must(activeobject.New(newSystem(t), ls.Type, new(int)))
	for range 10 {
		ls.fill.Call(background, o, nil)
	}
	now := ls.fill.Stats(o)
	require.Equal(t, activeobject.Stats{
		Operation: "fill", Starts: activeobject.NotCounted, Evaluations: activeobject.NotCounted, LongestBypass: activeobject.NotCounted,
	}, now)
	require.Equal(t, "not counted", now.Starts.String())
	<-o.Stop()
	require.Equal(t, activeobject.NotCounted, ls.fill.Stats(o).Starts, "also when it has ended")
}
