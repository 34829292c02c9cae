package activeobject_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// furnace is the shared object of the tests of bodies that run for long.
type furnace struct{}

type furnaces struct {
	*activeobject.Type[furnace]
	burn  *activeobject.Operation[furnace, <-chan None, None]
	watch *activeobject.Operation[furnace, <-chan None, None]
	again *activeobject.Operation[furnace, []<-chan None, None]
}

func newFurnaces() *furnaces {
	t := activeobject.NewType[furnace]("furnace")
	stay := func(_ *furnace, end <-chan None) (None, error) { <-end; return nil, nil }
	f := &furnaces{
		Type:  t,
		burn:  activeobject.Procedure(t, "burn", stay),
		watch: activeobject.Function(t, "watch", stay),
	}
	f.again = activeobject.Procedure(t, "again", func(_ *furnace, ends []<-chan None) (None, error) {
		<-ends[0]
		if len(ends) > 1 {
			return f.again.Requeue(ends[1:], activeobject.KeepPlace)
		}
		return nil, nil
	})
	return f
}

// inBubblesOfAllKinds runs a test for objects of every configuration, in a bubble each.
func inBubblesOfAllKinds(t *testing.T, test func(t *testing.T, s *scene, l *logged)) {
	for name, options := range map[string][]activeobject.Option{
		"default": nil, "without fast path": {activeobject.NoFastPath()}, "pooled": {activeobject.PooledThreads()},
		"dedicated": {activeobject.DedicatedThread()}, "synchronizer": {parallel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &logged{}
				system := actor.NewSystem(actor.Logger(slog.New(l)))
				defer system.Close(background)
				test(t, &scene{name: name, system: system, options: options}, l)
			})
		})
	}
}

// runsFor returns how long the bodies have run at least, as Explain knows.
func runsFor(o interface{ Explain() mailbox.Snapshot }) (all []time.Duration) {
	for _, r := range o.Explain().Running {
		all = append(all, r.For)
	}
	return all
}

func TestABodyThatRunsHasAnAgeFromTheSecondLookOn(t *testing.T) {
	fs := newFurnaces()
	inBubblesOfAllKinds(t, func(t *testing.T, s *scene, _ *logged) {
		o := newObject(t, s, fs.Type, &furnace{})
		for range 3 { // another run is not taken for the same
			end := make(chan None)
			burnt := calling(background, o, fs.burn, (<-chan None)(end))
			synctest.Wait()
			require.Equal(t, []time.Duration{0}, runsFor(o))
			time.Sleep(time.Second)
			waits := calling(background, o, fs.burn, (<-chan None)(end))
			synctest.Wait()
			time.Sleep(time.Second)
			require.Equal(t, []time.Duration{2 * time.Second}, runsFor(o))
			r := o.Explain().Running[0]
			require.Equal(t, 2*time.Second, r.Age)
			require.Contains(t, o.Explain().String(), "running  burn (for at least 2s)\n")
			end <- nil
			synctest.Wait()
			require.Equal(t, []time.Duration{0}, runsFor(o), "the one that waited")
			end <- nil
			<-burnt
			<-waits
			require.Empty(t, o.Explain().Running)
		}
	})
}

func TestATurnThatKeepsItsPlaceIsARunOfItsOwn(t *testing.T) {
	fs := newFurnaces()
	inBubblesOfAllKinds(t, func(t *testing.T, s *scene, _ *logged) {
		o := newObject(t, s, fs.Type, &furnace{})
		first, second := make(chan None), make(chan None)
		done := calling(background, o, fs.again, []<-chan None{first, second})
		synctest.Wait()
		runsFor(o)
		time.Sleep(time.Minute)
		require.Equal(t, []time.Duration{time.Minute}, runsFor(o))
		close(first)
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, runsFor(o))
		close(second)
		<-done
	})
}

func TestFunctionsThatRunBesideEachOtherHaveAges(t *testing.T) {
	fs := newFurnaces()
	inBubblesOfAllKinds(t, func(t *testing.T, s *scene, _ *logged) {
		if !s.parallel() {
			return
		}
		o := newObject(t, s, fs.Type, &furnace{})
		for range 3 {
			ends := make([]chan None, 3)
			watch := func(i int) <-chan outcome[None] {
				ends[i] = make(chan None)
				w := calling(background, o, fs.watch, (<-chan None)(ends[i]))
				synctest.Wait()
				return w
			}
			a, b := watch(0), watch(1)
			require.Equal(t, []time.Duration{0, 0}, runsFor(o))
			time.Sleep(time.Second)
			c := watch(2)
			require.ElementsMatch(t, []time.Duration{time.Second, time.Second, 0}, runsFor(o))
			close(ends[0])
			<-a
			time.Sleep(time.Second)
			require.ElementsMatch(t, []time.Duration{2 * time.Second, time.Second}, runsFor(o))
			close(ends[1])
			close(ends[2])
			<-b
			<-c
			before := o.Explain()
			require.Empty(t, before.Running)
			for range 10 {
				fs.watch.Call(background, o, ends[0])
			}
			require.Equal(t, before, o.Explain(), "the fast path is open again: the scheduler has seen none of these")
		}
	})
}

func TestTheWatchdogReportsABodyThatRunsTooLongOnce(t *testing.T) {
	fs := newFurnaces()
	inBubblesOfAllKinds(t, func(t *testing.T, s *scene, l *logged) {
		o := newObject(t, s, fs.Type, &furnace{}, activeobject.Watchdog(time.Minute), activeobject.Name("oven"))
		for _, op := range []*activeobject.Operation[furnace, <-chan None, None]{fs.burn, fs.watch} {
			run := func(d time.Duration) {
				end := make(chan None)
				done := calling(background, o, op, (<-chan None)(end))
				time.Sleep(d)
				close(end)
				<-done
			}
			l.all = nil
			for range 100 {
				run(59 * time.Second)
			}
			synctest.Wait()
			require.Empty(t, l.all, "many short ones in a row are no long one")
			run(time.Hour)
			synctest.Wait()
			require.Len(t, l.all, 1)
			e := l.all[0]
			require.Equal(t, "sluice: a body runs for long", e.message)
			require.Equal(t, slog.LevelWarn, e.Level)
			require.Equal(t, "oven", e.values["object"])
			require.Equal(t, op.Name(), e.values["operation"])
			require.Contains(t, e.values, "request")
			require.GreaterOrEqual(t, e.values["for"], time.Minute)
			require.Less(t, e.values["for"], 2*time.Minute)
			run(time.Hour)
			synctest.Wait()
			require.Len(t, l.all, 2, "another run is reported, too")
		}
		<-o.Stop()
		time.Sleep(time.Hour)
	})
}

// Under load an inspection loses no request, and a body that has been inspected ends like any other.
func TestLooksAndRunsMeet(t *testing.T) {
	fs := newFurnaces()
	ended := make(chan None)
	close(ended)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, fs.Type, &furnace{})
		var left atomic.Int64
		var callers []<-chan outcome[None]
		for i := range 4 {
			op := fs.burn
			if i%2 == 0 {
				op = fs.watch
			}
			left.Add(1)
			callers = append(callers, async(func() (None, error) {
				defer left.Add(-1)
				for range 2000 {
					if _, err := op.Call(background, o, ended); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}))
		}
		for left.Load() > 0 {
			for _, r := range o.Explain().Running {
				require.GreaterOrEqual(t, r.For, time.Duration(0))
			}
		}
		for _, c := range callers {
			require.NoError(t, soon(t, s.system, c).err)
		}
		require.Empty(t, o.Explain().Running)
	})
}
