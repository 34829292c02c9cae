package objecttest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

var _ activeobject.Proxy[int, string] = (*objecttest.Fake[int, string])(nil)

func TestAProxyDoesWhatItsOperationDoes(t *testing.T) {
	tank := newTank(t)
	var filling activeobject.Proxy[int, None] = activeobject.At(fill, tank)
	draining, reading := activeobject.At(drain, tank), activeobject.At(level, tank)
	_, err := draining.Try(background, none)
	require.ErrorIs(t, err, activeobject.ErrRefused)
	_, err = filling.Call(background, 1)
	require.NoError(t, err)
	require.NoError(t, filling.Tell(background, 2))
	_, err = draining.Send(background, none).Await(background)
	require.NoError(t, err)
	n, err := reading.Call(background, none)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestACallByAProxyAllocatesNothing(t *testing.T) {
	tank := newTank(t)
	reading := activeobject.At(level, tank)
	require.Zero(t, testing.AllocsPerRun(1000, func() { reading.Call(background, none) }))
}

func BenchmarkCall(b *testing.B) {
	tank := newTank(b)
	reading := activeobject.At(level, tank)
	b.Run("operation", func(b *testing.B) {
		for b.Loop() {
			level.Call(background, tank, none)
		}
	})
	b.Run("proxy", func(b *testing.B) {
		for b.Loop() {
			reading.Call(background, none)
		}
	})
}

func TestAFakeAnswersInOrderAndKeepsWhatItWasAsked(t *testing.T) {
	full := errors.New("full")
	f := objecttest.NewFake[int, string](t, "fake")
	f.Return("a").Fail(full).Answer(func(_ context.Context, n int) (string, error) { return string(rune('a' + n)), nil }).
		Always(func(context.Context, int) (string, error) { return "z", nil })
	type key struct{}
	ctx := context.WithValue(background, key{}, "here")
	r, err := f.Call(ctx, 1)
	require.Equal(t, "a", r)
	require.NoError(t, err)
	_, err = f.Try(background, 2)
	require.ErrorIs(t, err, full)
	r, _ = f.Send(background, 3).Await(background)
	require.Equal(t, "d", r)
	require.NoError(t, f.Tell(background, 4))
	made := f.Made()
	require.Equal(t, []int{1, 2, 3, 4}, f.Arguments())
	require.Equal(t, "here", made[0].Context.Value(key{}))
	require.Equal(t, []string{"Call", "Try", "Send", "Tell"}, []string{made[0].How, made[1].How, made[2].How, made[3].How})

	ended, cancel := context.WithCancel(background)
	cancel()
	_, err = f.Call(ended, 5)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, f.Made(), 4, "it was no request")
}

func TestAHeldRequestWaitsAsAtAnObject(t *testing.T) {
	f := objecttest.NewFake[int, string](t, "fake")

	h := f.Hold()
	future := f.Send(background, 1)
	require.False(t, future.Ready())
	require.True(t, h.Return("x"))
	require.False(t, h.Return("y"))
	r, err := future.Await(background)
	require.NoError(t, err)
	require.Equal(t, "x", r)

	h = f.Hold()
	future = f.Send(background, 2)
	then := actor.Then(future, func(_ string, err error) (bool, error) { return errors.Is(err, context.Canceled), nil })
	require.True(t, future.Withdraw())
	require.False(t, future.Withdraw())
	require.False(t, h.Return("x"), "it has been withdrawn")
	was, _ := then.Await(background)
	require.True(t, was)

	ctx, cancel := context.WithCancel(background)
	h = f.Hold()
	future = f.Send(ctx, 3)
	cancel()
	_, err = future.Await(background)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, h.Return("x"))

	f.Hold()
	_, err = f.Try(background, 4)
	require.ErrorIs(t, err, activeobject.ErrRefused)

	h = f.Hold()
	returned := make(chan error)
	go func() { _, err := f.Call(background, 5); returned <- err }()
	require.Equal(t, objecttest.Made[int]{How: "Call", Context: background, Argument: 5}, h.Made())
	h.Fail(activeobject.ErrStopped)
	require.ErrorIs(t, <-returned, activeobject.ErrStopped)
}

func TestAnEndedCallHasTheContextsErrorOrTheResultAndBothSidesAgree(t *testing.T) {
	for range 200 {
		f := objecttest.NewFake[int, int](t, "fake")
		h := f.Hold()
		ctx, cancel := context.WithCancel(background)
		go cancel()
		kept := make(chan bool)
		go func() { h.Made(); kept <- h.Return(1) }()
		r, err := f.Call(ctx, 0)
		if err != nil && len(f.Made()) == 0 { // it had ended before
			f.Tell(background, 0)
			<-kept
			continue
		}
		require.Equal(t, <-kept, err == nil)
		require.Equal(t, err == nil, r == 1)
	}
}

func TestAFakeFailsTheTestForWhatIsNotExpected(t *testing.T) {
	inside := played(func(t *play) {
		f := objecttest.NewFake[int, string](t, "clerk")
		if _, err := f.Call(background, 7); err != objecttest.ErrUnexpected {
			t.Errorf("%v", err)
		}
		f.Return("never asked for")
	})
	require.Len(t, inside.failures, 2)
	require.Contains(t, inside.failures[0], "clerk: no answer for request no. 1, Call(7)")
	require.Contains(t, inside.failures[1], "1 answers that no request has taken")
}

func TestAFakeIsSafeForConcurrentUse(t *testing.T) {
	f := objecttest.NewFake[int, int](t, "fake")
	f.Always(func(_ context.Context, n int) (int, error) { return n, nil })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				if n, err := f.Call(background, i); n != i || err != nil {
					t.Errorf("%d, %v", n, err)
				}
				f.Arguments()
			}
		})
	}
	all.Wait()
	require.Len(t, f.Made(), 800)
}

func TestAFakeWorksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := objecttest.NewFake[int, string](t, "fake")
		f.Hold()
		ctx, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		start := time.Now()
		_, err := f.Call(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestAHeldRequestThatWasToldEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := objecttest.NewFake[int, string](t, "fake")
		h := f.Hold()
		ctx, cancel := context.WithCancel(background)
		require.NoError(t, f.Tell(ctx, 1))
		cancel()
		synctest.Wait()
		require.False(t, h.Return("x"), "it has been withdrawn")
	})
}
