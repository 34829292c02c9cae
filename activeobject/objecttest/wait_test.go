package objecttest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/mailbox"
)

// threads are the configurations that differ in whose goroutine runs bodies.
var threads = map[string][]activeobject.Option{
	"default":           nil,
	"without fast path": {activeobject.NoFastPath()},
	"pooled":            {activeobject.PooledThreads()},
	"dedicated":         {activeobject.DedicatedThread()},
}

// Tank is a shared object that says when it is busy.
type Tank struct{ level int }

var (
	tanks = activeobject.NewType[Tank]("tank")
	fill  = activeobject.Procedure(tanks, "fill", activeobject.Arg(func(t *Tank, n int) { t.level += n }))
	drain = activeobject.Entry(tanks, "drain", activeobject.Plain(func(t *Tank) { t.level-- })).
		When("wet", func(t *Tank) bool { return t.level > 0 })
	level = activeobject.Function(tanks, "level", activeobject.Result(func(t *Tank) int { return t.level }))
	hold  = activeobject.ProcedureCtx(tanks, "hold", func(_ *Tank, ctx context.Context, c chan None) (None, error) {
		c <- none
		<-c
		return none, nil
	})
)

func newTank(t testing.TB, options ...activeobject.Option) *activeobject.Object[Tank] {
	return activeobject.Must(activeobject.New(objecttest.NewSystem(t), tanks, &Tank{}, options...))
}

func TestARequestThatWaitingReportsHasHadItsGuardEvaluated(t *testing.T) {
	for name, options := range threads {
		t.Run(name, func(t *testing.T) {
			tank := newTank(t, options...)
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() { drain.Call(background, tank, nil) })
				objecttest.Waiting(t, tank, drain, i+1)
				for _, w := range tank.Explain().Waiting {
					require.Equal(t, mailbox.GuardFalse, w.Reason.Cause)
				}
			}
			fill.Call(background, tank, 20)
			all.Wait()
			objecttest.Waiting(t, tank, drain, 0)
			objecttest.Idle(t, tank)
		})
	}
}

func TestARequestBehindABodyWaits(t *testing.T) {
	for name, options := range threads {
		t.Run(name, func(t *testing.T) {
			tank := newTank(t, options...)
			busy := make(chan None)
			hold.Send(background, tank, busy)
			<-busy
			fill.Send(background, tank, 1)
			go fill.Call(background, tank, 1)
			objecttest.Waiting(t, tank, fill, 2)
			busy <- none
			objecttest.Idle(t, tank)
			n, err := level.Call(background, tank, nil)
			require.NoError(t, err)
			require.Equal(t, 2, n)
		})
	}
}

func TestAWithdrawalIsNoticed(t *testing.T) {
	for name, options := range threads {
		t.Run(name, func(t *testing.T) {
			tank := newTank(t, options...)
			ctx, cancel := context.WithCancel(background)
			drain.Send(ctx, tank, nil)
			future := drain.Send(background, tank, nil)
			objecttest.Waiting(t, tank, drain, 2)
			cancel()
			objecttest.Waiting(t, tank, drain, 1)
			require.True(t, future.Withdraw())
			objecttest.Idle(t, tank)
		})
	}
}

// A body at one object calls the next, so that at no moment all of them are idle
// before the last call has ended; each of them is, again and again.
func TestObjectsAreIdleTogether(t *testing.T) {
	type stage struct{ next []*activeobject.Object[Tank] }
	stages := activeobject.NewType[stage]("stage")
	work := activeobject.ProcedureCtx(stages, "work", func(s *stage, ctx context.Context, n int) (None, error) {
		for i := range n {
			if _, err := fill.Call(ctx, s.next[i%len(s.next)], 1); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	for name, options := range threads {
		t.Run(name, func(t *testing.T) {
			system := objecttest.NewSystem(t)
			b := activeobject.Must(activeobject.New(system, tanks, &Tank{}, options...))
			c := activeobject.Must(activeobject.New(system, tanks, &Tank{}, options...))
			a := activeobject.Must(activeobject.New(system, stages, &stage{[]*activeobject.Object[Tank]{b, c}}, options...))
			for range 50 {
				future := work.Send(background, a, 20)
				objecttest.Idle(t, b, a, c)
				require.Empty(t, a.Explain().Running)
				_, err := future.Await(background)
				require.NoError(t, err)
			}
			var levels [2]int
			for i, o := range []*activeobject.Object[Tank]{b, c} {
				levels[i], _ = level.Call(background, o, nil)
			}
			require.Equal(t, [2]int{500, 500}, levels)
		})
	}
}

func TestATestThatWaitsTooLongFailsWithTheExplanation(t *testing.T) {
	inside := playedWithin(time.Second/10, func(t *play) {
		tank := newTank(t)
		drain.Send(background, tank, nil).Withdraw()
		future := drain.Send(background, tank, nil)
		defer future.Withdraw()
		objecttest.Waiting(t, tank, drain, 2)
		t.Errorf("not reached")
	})
	require.Len(t, inside.failures, 1)
	require.Contains(t, inside.failures[0], "2 requests wait for drain")
	require.Contains(t, inside.failures[0], `guard "wet" was false`)

	idle := playedWithin(time.Second/10, func(t *play) {
		tank := newTank(t)
		defer drain.Send(background, tank, nil).Withdraw()
		objecttest.Idle(t, tank, newTank(t))
	})
	require.Len(t, idle.failures, 1)
	require.Contains(t, idle.failures[0], "idle")
	require.Contains(t, idle.failures[0], "tank-")
}

func TestWaitingInABubbleEndsWhenNothingElseCanHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tank := newTank(t)
		time.AfterFunc(time.Hour, func() { drain.Send(background, tank, nil) })
		objecttest.Waiting(t, tank, drain, 1)
		fill.Call(background, tank, 1)
		objecttest.Idle(t, tank)

		failed := played(func(t *play) { objecttest.Waiting(t, tank, drain, 3) })
		require.Len(t, failed.failures, 1)
	})
}

func TestTheWatchdogBarksInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := played(func(p *play) {
			tank := newTank(p, activeobject.Watchdog(time.Hour))
			start := time.Now()
			future := drain.Send(background, tank, nil)
			time.Sleep(time.Hour - 1)
			synctest.Wait()
			require.Empty(t, p.log())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Contains(t, p.log(), "a request waits for long")
			require.Contains(t, p.log(), `guard \"wet\" was false`)
			require.Equal(t, time.Hour, time.Since(start))
			fill.Call(background, tank, 1)
			_, err := future.Await(background)
			require.NoError(t, err)
		})
		require.Empty(t, inside.failures)
	})
}

func TestFuturesInABubbleAwaitWithADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, options := range threads {
			tank := newTank(t, options...)
			start := time.Now()
			future := drain.Send(background, tank, nil)
			ctx, cancel := context.WithTimeout(background, time.Minute)
			_, err := future.Await(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(start))
			time.AfterFunc(time.Minute, func() { fill.Tell(background, tank, 1) })
			_, err = future.Await(background)
			require.NoError(t, err)
			require.Equal(t, 2*time.Minute, time.Since(start))
		}
	})
}

func TestASystemReportsTheRequestsThatStillWaitAtTheEnd(t *testing.T) {
	forgotten := played(func(t *play) {
		tank := newTank(t)
		drain.Send(background, tank, nil)
		objecttest.Waiting(t, tank, drain, 1)
	})
	require.Len(t, forgotten.failures, 1)
	require.Contains(t, forgotten.failures[0], `guard "wet" was false`)

	require.Empty(t, played(func(t *play) {
		drain.Send(background, activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), tanks, &Tank{})), nil)
	}).failures)

	require.Empty(t, played(func(t *play) {
		ctx, cancel := context.WithCancel(background)
		tank := newTank(t)
		drain.Send(ctx, tank, nil)
		go drain.Call(ctx, tank, nil)
		objecttest.Waiting(t, tank, drain, 2)
		cancel() // they will be withdrawn
	}).failures)
}

func TestASystemThatCannotBeClosedFailsTheTest(t *testing.T) {
	busy := make(chan None)
	inside := playedWithin(time.Second/5, func(t *play) {
		hold.Send(background, newTank(t), busy)
		<-busy
	})
	busy <- none
	require.NotEmpty(t, inside.failures)
	require.Contains(t, strings.Join(inside.failures, "\n"), "running  hold")
}

func TestNothingIsLoggedAfterTheTest(t *testing.T) {
	var tank *activeobject.Object[Tank]
	inside := played(func(t *play) {
		tank = newTank(t)
		tank.Type()
	})
	said := inside.log()
	panicking.Tell(background, tank, nil)
	require.Equal(t, said, inside.log())

	inside = played(func(t *play) {
		system := objecttest.NewSystem(t)
		panicking.Tell(background, activeobject.Must(activeobject.New(system, tanks, &Tank{})), nil)
	})
	require.Contains(t, inside.log(), "oh dear")
}

var panicking = activeobject.Procedure(tanks, "panic", activeobject.Plain(func(*Tank) { panic("oh dear") }))
