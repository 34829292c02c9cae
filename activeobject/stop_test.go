package activeobject_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// requireStopped requires the error of a request to an object that has stopped.
func requireStopped(t *testing.T, object string, err error) {
	t.Helper()
	require.ErrorIs(t, err, activeobject.ErrStopped)
	var stopped *activeobject.StoppedError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, object, stopped.Object)
	require.EqualError(t, err, "sluice: "+object+" has stopped")
}

func TestStopFailsThoseThatWaitWhileABodyStillRuns(t *testing.T) {
	ts := newTanks()
	stops := map[string]func(t *testing.T, s *scene, o *activeobject.Object[dam]) (ended <-chan struct{}){
		"object": func(_ *testing.T, _ *scene, o *activeobject.Object[dam]) <-chan struct{} { return o.Stop() },
		"system": func(t *testing.T, s *scene, _ *activeobject.Object[dam]) <-chan struct{} {
			ended := make(chan struct{})
			go func() {
				if err := s.system.Close(background); err == nil {
					close(ended)
				}
			}()
			return ended
		},
		"actor": func(_ *testing.T, s *scene, o *activeobject.Object[dam]) <-chan struct{} {
			f := s.system.Actors().Root.StopFuture(o.PID())
			ended := make(chan struct{})
			go func() { _ = f.Wait(); close(ended) }()
			return ended
		},
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := newObject(t, s, ts.Type, &dam{})
				// Some are admitted and wait for their guard; they came before the brake.
				var results []<-chan outcome[int]
				for _, drain := range ts.entries() {
					results = append(results, calling(background, o, drain, nil))
					waiting(t, o, drain, 1)
					results = append(results, awaiting(background, drain.Send(background, o, nil)))
					waiting(t, o, drain, 2)
				}
				b := newBrake()
				held := calling(background, o, ts.hold, b)
				soon(t, s.system, b.entered)
				// And some wait in the entry queue for the brake.
				for _, drain := range ts.entries() {
					results = append(results, calling(background, o, drain, nil), trying(background, o, drain, nil))
					waiting(t, o, drain, 4)
					results = append(results, awaiting(background, drain.Send(background, o, nil)))
				}

				ended := stop(t, s, o)
				for _, c := range results {
					requireStopped(t, o.Name(), soon(t, s.system, c).err)
				}
				for _, drain := range ts.entries() {
					require.Zero(t, drain.Waiting(o))
					_, err := drain.Call(background, o, nil)
					requireStopped(t, o.Name(), err)
					_, err = drain.Try(background, o, nil)
					requireStopped(t, o.Name(), err)
					_, err = drain.Send(background, o, nil).Await(background)
					requireStopped(t, o.Name(), err)
					requireStopped(t, o.Name(), drain.Tell(background, o, nil))
				}
				select {
				case <-ended:
					t.Fatal("the end was reported while a body ran")
				default:
				}
				require.True(t, o.Explain().Stopped)
				require.Len(t, o.Explain().Running, 1)
				close(b.let)
				require.NoError(t, soon(t, s.system, held).err, "what runs finishes")
				soon(t, s.system, ended)
				require.Empty(t, o.Explain().Running)
			})
		})
	}
}

func TestAStoppedObjectStaysStopped(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{level: 10}
		o := newObject(t, s, ts.Type, state)
		soon(t, s.system, o.Stop())
		soon(t, s.system, o.Stop())
		for _, drain := range ts.entries() {
			_, err := drain.Call(background, o, nil)
			requireStopped(t, o.Name(), err)
		}
		_, err := ts.runs.Call(background, o, nil)
		requireStopped(t, o.Name(), err)
		require.Empty(t, state.log)
	})
}

func TestABodyMayStopItsOwnObject(t *testing.T) {
	var object atomic.Pointer[activeobject.Object[dam]]
	dams := activeobject.NewType[dam]("dam")
	end := activeobject.Procedure(dams, "end", activeobject.ResultError(func(*dam) (<-chan struct{}, error) { return object.Load().Stop(), nil }))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		object.Store(o)
		got := soon(t, s.system, calling(background, o, end, nil))
		require.NoError(t, got.err)
		soon(t, s.system, got.result)
		_, err := end.Call(background, o, nil)
		requireStopped(t, o.Name(), err)
	})
}

func TestNewFailsOnAClosedSystem(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		require.NoError(t, s.system.Close(background))
		for _, more := range [][]activeobject.Option{nil, {activeobject.Name("late")}} {
			o, err := activeobject.New(s.system, ts.Type, &dam{}, append(more, s.options...)...)
			require.ErrorIs(t, err, actor.ErrClosed)
			require.Nil(t, o)
		}
	})
}

func TestStopRacesWithEverything(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 200 {
			state := &dam{level: 3}
			o := newObject(t, s, ts.Type, state)
			var results []<-chan outcome[int]
			for range 4 {
				for _, drain := range ts.entries() {
					results = append(results, calling(background, o, drain, nil))
				}
			}
			ended := o.Stop()
			ran := 0
			for _, c := range results {
				if err := soon(t, s.system, c).err; err == nil {
					ran++
				} else {
					requireStopped(t, o.Name(), err)
				}
			}
			soon(t, s.system, ended)
			require.Len(t, state.log, ran)
		}
	})
}

func TestCloseEndsWithItsContextAndCanBeResumed(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		over, cancel := context.WithCancel(background)
		cancel()
		for range 2 {
			closed := make(chan error, 1)
			go func() { closed <- s.system.Close(over) }()
			require.ErrorIs(t, within(t, release, closed), context.Canceled, "a body still runs")
		}
		again := make(chan error, 1)
		go func() { again <- s.system.Close(background) }()
		release()
		require.NoError(t, soon(t, s.system, again))
	})
}

func TestCloseWaitsForBodiesOfObjectsThatWereStoppedBefore(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		o.Stop()
		over, cancel := context.WithCancel(background)
		cancel()
		closed := make(chan error, 1)
		go func() { closed <- s.system.Close(over) }()
		require.ErrorIs(t, within(t, release, closed), context.Canceled, "a body still runs")
	})
}

// within is soon for what must come while a body is held; if it does not, the
// body is released so that the test can end.
func within[R any](t *testing.T, release func(), c <-chan R) (r R) {
	t.Helper()
	select {
	case r = <-c:
	case <-after():
		release()
		t.Fatal("this waits for a body")
	}
	return r
}

func TestStoppedErrorTellsItsCause(t *testing.T) {
	cause := errors.New("out of water")
	err := error(&activeobject.StoppedError{Object: "dam-1", Cause: cause})
	require.ErrorIs(t, err, activeobject.ErrStopped)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "sluice: dam-1 has stopped: out of water")
}
