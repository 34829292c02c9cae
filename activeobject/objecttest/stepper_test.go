package objecttest_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/internal/engine"
)

func TestAStepIsOneBody(t *testing.T) {
	system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
	tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
	require.False(t, stepper.Step())
	waits := drain.Send(background, tank, none)
	for range 3 {
		fill.Tell(background, tank, 1)
	}
	now := func() int { // how many bodies have run; no other goroutine reads it meanwhile
		return int(fill.Stats(tank).Starts + drain.Stats(tank).Starts)
	}
	require.Equal(t, []string{tank.Name()}, stepper.Turns())
	for i := range 4 {
		require.Equal(t, i, now())
		require.True(t, stepper.Step())
	}
	require.Equal(t, 4, now())
	require.True(t, waits.Ready(), "it was inside when its guard was opened, and so next")
	require.False(t, stepper.Step())
	require.Zero(t, stepper.Len(), "there are no turns in which nothing happens")
}

func TestAClosedGuardWantsNoTurn(t *testing.T) {
	system, stepper := objecttest.NewSystem(t, objecttest.AllowWaiting()), objecttest.NewStepper(t)
	tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
	drain.Send(background, tank, none)
	fill.Send(background, tank, 0)
	require.Equal(t, 1, stepper.Run())
	require.Equal(t, 1, drain.Waiting(tank))
}

func TestStepsAreTakenByIndexAndByObject(t *testing.T) {
	system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
	var all [3]*activeobject.Object[Tank]
	var done [3]activeobject.Future[None]
	for i := range all {
		all[i] = activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
		done[i] = fill.Send(background, all[i], 1)
	}
	require.Equal(t, 3, stepper.Len())
	require.False(t, stepper.StepAt(3))
	require.False(t, stepper.StepAt(-1))
	require.True(t, stepper.StepObject(all[1]))
	require.False(t, stepper.StepObject(all[1]))
	require.True(t, done[1].Ready() && !done[0].Ready() && !done[2].Ready())
	require.True(t, stepper.StepAt(1))
	require.True(t, done[2].Ready() && !done[0].Ready())
	require.Equal(t, 1, stepper.Run())
}

func TestABlockedCallerWaitsForItsStep(t *testing.T) {
	system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
	tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
	returned := make(chan error)
	go func() { _, err := fill.Call(background, tank, 1); returned <- err }()
	objecttest.Waiting(t, tank, fill, 1)
	go func() { _, err := level.Call(background, tank, none); returned <- err }()
	objecttest.Waiting(t, tank, level, 1)
	require.Equal(t, 2, stepper.Run())
	require.NoError(t, <-returned)
	require.NoError(t, <-returned)
}

func TestInABubbleABodyMayWaitForAnotherStep(t *testing.T) {
	type caller struct{ tank *activeobject.Object[Tank] }
	callers := activeobject.NewType[caller]("caller")
	ask := activeobject.ProcedureCtx(callers, "ask", func(c *caller, ctx context.Context, n int) (int, error) {
		fill.Call(ctx, c.tank, n)
		return level.Call(ctx, c.tank, none)
	})
	synctest.Test(t, func(t *testing.T) {
		system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
		tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
		a := activeobject.Must(activeobject.New(system, callers, &caller{tank}, activeobject.Dispatcher(stepper)))
		b := activeobject.Must(activeobject.New(system, callers, &caller{tank}, activeobject.Dispatcher(stepper)))
		first, second := ask.Send(background, a, 1), ask.Send(background, b, 10)
		require.True(t, stepper.StepObject(a)) // up to its first call
		require.True(t, stepper.StepObject(b))
		require.True(t, stepper.StepObject(tank)) // a fills
		require.True(t, stepper.StepObject(tank)) // b fills, between the two calls of a
		stepper.Run()
		n, err := first.Await(background)
		require.NoError(t, err)
		require.Equal(t, 11, n)
		n, _ = second.Await(background)
		require.Equal(t, 11, n)
	})
	stuck := playedWithin(time.Second/5, func(t *play) {
		system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
		tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
		a := activeobject.Must(activeobject.New(system, callers, &caller{tank}, activeobject.Dispatcher(stepper)))
		ask.Send(background, a, 1)
		stepper.Run()
	})
	require.Len(t, stuck.failures, 1, "outside, the test fails, and does not hang")
	require.Contains(t, stuck.failures[0], "its body waits")
}

func TestABodyThatLeavesByGoexitEndsItsStep(t *testing.T) {
	leave := activeobject.NewType[struct{}]("leaver")
	exit := activeobject.Procedure(leave, "exit", activeobject.Plain(func(*struct{}) { runtime.Goexit() }))
	stay := activeobject.Procedure(leave, "stay", activeobject.Plain(func(*struct{}) {}))
	system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
	o := activeobject.Must(activeobject.New(system, leave, new(struct{}), activeobject.Dispatcher(stepper)))
	gone, stays := exit.Send(background, o, none), stay.Send(background, o, none)
	stepper.Run()
	_, err := gone.Await(background)
	require.ErrorAs(t, err, new(*activeobject.ExitError))
	_, err = stays.Await(background)
	require.NoError(t, err)
}

func TestTurnsThatAreLeftRunWhenTheTestEnds(t *testing.T) {
	var future activeobject.Future[None]
	inside := played(func(t *play) {
		stepper := objecttest.NewStepper(t) // in whatever order they are made
		system := objecttest.NewSystem(t)
		tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
		future = fill.Send(background, tank, 1)
	})
	require.Empty(t, inside.failures, "the system could be closed")
	<-future.Done()
}

// At the end of a test those that wait have until the last turns are over.
func TestTurnsThatAreLeftMayServeThoseThatWait(t *testing.T) {
	for range 100 {
		var served activeobject.Future[None]
		inside := played(func(t *play) {
			system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
			tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}, activeobject.Dispatcher(stepper)))
			served = drain.Send(background, tank, none)
			stepper.Run()
			fill.Send(background, tank, 1)
		})
		require.Empty(t, inside.failures)
		_, err := served.Await(background)
		require.NoError(t, err)
	}
}

// A body that runs until the system is closed does not hold up the end of a test for
// long, nor hide which requests wait.
func TestABodyThatRunsDoesNotHideTheRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		inside := played(func(t *play) {
			system := objecttest.NewSystem(t)
			tank := activeobject.Must(activeobject.New(system, tanks, &Tank{}))
			other := activeobject.Must(activeobject.New(system, tanks, &Tank{}))
			drain.Send(background, tank, none)
			busy := make(chan None)
			hold.Send(background, other, busy)
			<-busy
			time.AfterFunc(time.Hour, func() { busy <- none })
		})
		require.Len(t, inside.failures, 1)
		require.Contains(t, inside.failures[0], "requests still wait")
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// crowd is a dispatcher of a user's.
type crowd struct{ _ []int } // which cannot be compared

func (c crowd) Dispatch(t engine.Task) { go t.Run() }

func TestObjectsRunOnAnyDispatcher(t *testing.T) {
	tank := newTank(t, activeobject.Dispatcher(crowd{}))
	for range 100 {
		fill.Send(background, tank, 1)
		go drain.Call(background, tank, none)
	}
	for range 100 {
		require.NoError(t, tank.Do(background, func(*Tank) error { return nil }))
	}
	objecttest.Idle(t, tank)

	var option *activeobject.OptionError
	_, err := activeobject.New(objecttest.NewSystem(t), tanks, &Tank{}, activeobject.Dispatcher(nil))
	require.ErrorAs(t, err, &option)
}
