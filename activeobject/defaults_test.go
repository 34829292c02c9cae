package activeobject_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/semaphore"
)

// counting is an interceptor that counts the bodies that run.
func counting(n *atomic.Int64) activeobject.Option {
	return activeobject.Interceptors(activeobject.Interceptor{Run: func(_ context.Context, _ activeobject.Intercepted, body func() error) error {
		n.Add(1)
		return body()
	}})
}

func TestInterceptorsOfASystemSeeTheRequestsOfAllItsObjects(t *testing.T) {
	ts := newTanks()
	s := newSystem(t)
	var first, second, own atomic.Int64
	before := activeobject.Must(activeobject.New(s, ts.Type, &dam{}))
	activeobject.Defaults(s, counting(&first))
	activeobject.Defaults(s, counting(&second))
	after := activeobject.Must(activeobject.New(s, ts.Type, &dam{}, counting(&own)))
	permits, err := semaphore.New(s, 1)
	require.NoError(t, err)
	elsewhere := activeobject.Must(activeobject.New(newSystem(t), ts.Type, &dam{}))
	for _, o := range []*activeobject.Object[dam]{before, after, elsewhere} {
		require.NoError(t, ts.fill.Do(background, o, 1))
	}
	require.NoError(t, permits.Acquire(background, 1))
	require.Equal(t, []int64{2, 2, 1}, []int64{first.Load(), second.Load(), own.Load()})
}

func TestDefaultsOfASystemComeAfterThoseOfTheTypeAndBeforeTheOptionsOfAnObject(t *testing.T) {
	ts := newTanks()
	ts.Type.Default(activeobject.Bound(1, activeobject.Refuse))
	s := newSystem(t)
	of := func(options ...activeobject.Option) int {
		n, _, _ := activeobject.Must(activeobject.New(s, ts.Type, &dam{}, options...)).Bound()
		return n
	}
	require.Equal(t, 1, of())
	activeobject.Defaults(s, activeobject.Bound(2, activeobject.Refuse))
	require.Equal(t, 2, of())
	require.Equal(t, 3, of(activeobject.Bound(3, activeobject.Refuse)))
	activeobject.Defaults(s, activeobject.Bound(4, activeobject.Refuse))
	require.Equal(t, 4, of(), "and not what an earlier object had")
	activeobject.Defaults(s, activeobject.ByPriority())
	of()
	_, err := semaphore.New(s, 1)
	require.NoError(t, err, "an object with an order of its own")
	named := newSystem(t)
	activeobject.Defaults(named, activeobject.Name("one"))
	_, err = activeobject.New(named, ts.Type, &dam{})
	require.ErrorContains(t, err, "Name is a default of the system")
	activeobject.Defaults(s, activeobject.Dispatcher(nil))
	_, err = activeobject.New(s, ts.Type, &dam{})
	var wrong *activeobject.OptionError
	require.ErrorAs(t, err, &wrong)
}

func TestTheObjectsOfASystemSayWhatTheyAre(t *testing.T) {
	ts := newTanks()
	s := newSystem(t)
	o := activeobject.Must(activeobject.New(s, ts.Type, &dam{}, activeobject.Name("the tank")))
	drained := ts.drain.Send(background, o, nil)
	waiting(t, o, ts.drain, 1)
	all := slices.Collect(s.Objects())
	require.Len(t, all, 1)
	require.Equal(t, "the tank", all[0].Name())
	require.Equal(t, "tank", all[0].TypeName())
	require.Equal(t, o.PID(), all[0].PID())
	require.Len(t, all[0].Explain().Waiting, 1)
	require.EqualValues(t, 1, all[0].Stats()[0].Waits)
	require.NoError(t, all[0].Close(background))
	require.ErrorIs(t, soon(t, s, awaiting(background, drained)).err, activeobject.ErrStopped)
}

func TestTheNameOfAClosedObjectIsFree(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 20 {
			o := newObject(t, s, ts.Type, &dam{level: 1}, activeobject.Name("again"))
			_, err := ts.drain.Call(background, o, nil)
			require.NoError(t, err)
			require.NoError(t, o.CloseActor(background))
			require.NoError(t, o.CloseActor(background), "once more")
		}
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Name("again"))
		o.Stop()
		require.NoError(t, o.CloseActor(background))
		newObject(t, s, ts.Type, &dam{}, activeobject.Name("again"))
	})
}
