package activeobject_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// alone runs a test in a process of its own, for its failure would be the end of
// the process, or a bubble that never ends. It reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "SLUICE_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=30s")
	cmd.Env = append(os.Environ(), mark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
	return false
}

// Operations, with their pooled records, are package-level variables, so they are
// used in many bubbles of testing/synctest, one after the other, and outside in
// between. A pooled channel that crossed the wall of a bubble would kill the
// process.
func TestObjectsWorkInsideBubblesAndOutsideInTurn(t *testing.T) {
	if !alone(t) {
		return
	}
	ts, ps := newTanks(), newPlaces()
	// work makes use of everything that keeps records, and leaves nothing behind.
	work := func(t *testing.T, wait func()) {
		for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}} {
			system := actor.NewSystem(actor.Logger(quiet))
			o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, options...))
			var all sync.WaitGroup
			for _, drain := range ts.entries() {
				for range 20 {
					all.Go(func() { // a call that waits takes a record
						_, err := drain.Call(background, o, nil)
						require.NoError(t, err)
					})
				}
				f := drain.Send(background, o, nil)
				all.Go(func() {
					_, err := f.Await(background)
					require.NoError(t, err)
				})
			}
			wait()
			for range 42 {
				ts.fill.Call(background, o, 1)
			}
			all.Wait()
			require.Equal(t, 42, ts.ran(o))

			ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
			_, err := ts.drain.Call(ctx, o, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = ts.drainCtx.Send(ctx, o, nil).Await(background)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()

			other := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, options...))
			cases := []*activeobject.Case[int]{ts.drain.Case(o, nil), ts.drainCtx.Case(other, nil)}
			ctx, cancel = context.WithTimeout(background, 10*time.Millisecond)
			_, err = activeobject.Select(ctx, cases[0], cases[1])
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			all.Go(func() {
				i, err := activeobject.Select(background, cases[0], cases[1])
				require.NoError(t, err)
				require.Equal(t, 1, i)
			})
			wait()
			ts.fill.Call(background, other, 1)
			all.Wait()

			p := activeobject.Must(activeobject.New(system, ps.Type, &place{}, options...))
			_, err = ps.visit.Call(background, p, func(ctx context.Context) error { _, err := ps.touch.Call(ctx, p, nil); return err })
			require.ErrorAs(t, err, new(*activeobject.DeadlockError))

			left := ts.drain.Send(background, o, nil)
			require.NoError(t, system.Close(background))
			_, err = left.Await(background)
			require.ErrorIs(t, err, activeobject.ErrStopped)
		}
	}
	outside := func() {}
	for range 3 {
		work(t, outside)
		synctest.Test(t, func(t *testing.T) { work(t, synctest.Wait) })
		synctest.Test(t, func(t *testing.T) { work(t, synctest.Wait) })
	}
	work(t, outside)
}

func TestBubblesAndTheWorldOutsideAtTheSameTime(t *testing.T) {
	if !alone(t) {
		return
	}
	ts := newTanks()
	busy := func(system *actor.System) {
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, activeobject.NoFastPath()))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					ts.drain.Call(background, o, nil)
				}
			})
			all.Go(func() {
				for range 100 {
					ts.fill.Call(background, o, 1)
				}
			})
		}
		all.Wait()
		system.Close(background)
	}
	var outside sync.WaitGroup
	outside.Go(func() {
		for range 5 {
			busy(actor.NewSystem())
		}
	})
	for range 5 {
		synctest.Test(t, func(*testing.T) { busy(actor.NewSystem()) })
	}
	outside.Wait()
}

func TestASystemInABubbleCanBeAnActorSystemToo(t *testing.T) {
	ts := newTanks()
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem(actor.Logger(quiet))
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, activeobject.Name("tank")))
		f := system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "drain"}, time.Hour)
		synctest.Wait()
		require.Equal(t, 1, ts.drain.Waiting(o))
		ts.fill.Call(background, o, 1)
		answer, err := f.Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 1}, answer)
		require.NoError(t, system.Close(background))
	})
}

func TestACanceledCallReturnsInNoTime(t *testing.T) {
	ts := newTanks()
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}))
		b := newBrake()
		held := calling(background, o, ts.hold, b)
		<-b.entered
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		start := time.Now()
		for _, drain := range ts.entries() {
			done := calling(ctx, o, drain, nil)
			require.ErrorIs(t, (<-done).err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(start), "while a body runs, on and on")
		}
		close(b.let)
		<-held
		require.NoError(t, system.Close(background))
	})
}

func TestADeadlineIsKeptAcrossRequeuesAndSelections(t *testing.T) {
	ds := newDesks("desk")
	for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}} {
		synctest.Test(t, func(t *testing.T) {
			system := actor.NewSystem(actor.Logger(quiet))
			a := activeobject.Must(activeobject.New(system, ds.Type, &desk{open: true}, options...))
			b := activeobject.Must(activeobject.New(system, ds.Type, &desk{}, options...))
			for _, to := range []*activeobject.Object[desk]{nil, b} {
				late := func(*desk) (int, error) { return ds.late.RequeueTo(to, answers(1)) }
				for name, way := range patient(ways(ds.wait, a)) {
					ctx, cancel := context.WithTimeout(background, time.Hour)
					start := time.Now()
					_, err := way(ctx, late)
					require.ErrorIs(t, err, context.DeadlineExceeded, name)
					require.ErrorAs(t, err, new(*activeobject.RequeuedError), name)
					require.Equal(t, time.Hour, time.Since(start), name)
					cancel()
				}
			}
			ctx, cancel := context.WithTimeout(background, time.Minute)
			start := time.Now()
			i, err := activeobject.Select(ctx, ds.late.Case(a, answers(1)), ds.wait.Case(b, answers(2)))
			require.Equal(t, -1, i)
			require.Equal(t, context.DeadlineExceeded, err)
			require.Equal(t, time.Minute, time.Since(start))
			cancel()
			require.NoError(t, system.Close(background))
		})
	}
}
