package semaphore_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

// The steps of an acquire at a barging semaphore make sense only in their order.
func TestTheStepsOfAnAcquireCannotBeInvokedByMessage(t *testing.T) {
	system := objecttest.NewSystem(t)
	s := made(t)(semaphore.NewBarging(system, 2))
	require.NoError(t, s.Acquire(background, 2))
	acquired := make(chan error, 2)
	for n := 1; n <= 2; n++ {
		go func() { acquired <- s.Acquire(background, n) }()
		for s.Waiting() < n {
			runtime.Gosched()
		}
	}
	for _, step := range []string{"take", "wait", "wait for one", "come back"} {
		for _, argument := range []any{nil, nil, 0, 1, 2, true} {
			_, err := patterntest.Invoke(t, system, s.Object().PID(), step, argument)
			require.ErrorAs(t, err, new(*activeobject.MessageError), "%s(%v)", step, argument)
		}
	}
	counts(t, s, 0, 2, 2)
	require.NoError(t, s.Release(2))
	require.NoError(t, <-acquired)
	require.NoError(t, s.Release(1)) // that of one permit was called first
	require.NoError(t, <-acquired)
	counts(t, s, 0, 2, 0)
}

func TestAnOversizedAcquireByMessageFailsAtOnceAsByHandle(t *testing.T) {
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			system := objecttest.NewSystem(t, objecttest.AllowWaiting())
			s := made(t)(build(system, 3, activeobject.Name("slots")))
			fails := func(n int, want error) {
				t.Helper()
				_, err := patterntest.Invoke(t, system, s.Object().PID(), "acquire", n)
				require.Equal(t, want, err)
				require.Equal(t, want, s.Acquire(background, n))
			}
			nonsense := s.Acquire(background, 0)
			require.ErrorAs(t, nonsense, new(*activeobject.ArgumentError))
			fails(0, nonsense)
			fails(4, &semaphore.SizeError{Semaphore: "slots", Permits: 4, Size: 3})
			_, err := patterntest.Invoke(t, system, s.Object().PID(), "acquire", 3)
			require.NoError(t, err)
			waiting := s.Acquires().Send(background, 2)
			byMessage := system.Actors().Root.RequestFuture(s.Object().PID(), &actor.Invoke{Operation: "acquire", Argument: 2}, patience)
			for s.Waiting() < 2 {
				runtime.Gosched()
			}
			fails(0, nonsense)
			fails(4, &semaphore.SizeError{Semaphore: "slots", Permits: 4, Size: 3}) // though others wait before it
			require.NoError(t, s.Resize(2))
			fails(3, &semaphore.SizeError{Semaphore: "slots", Permits: 3, Size: 2})
			require.False(t, waiting.Ready())
			counts(t, s, 0, 3, 2)
			require.NoError(t, s.Release(3))
			require.NoError(t, over(t, waiting))
			counts(t, s, 0, 2, 1)
			require.NoError(t, s.Release(2))
			reply, err := byMessage.Result()
			require.NoError(t, err)
			require.Equal(t, &actor.Reply{Value: nil}, reply)
			counts(t, s, 0, 2, 0)
		})
	}
}

// A request for several permits that arrives behind others waits behind them, whatever way it
// has come by, though some are free.
func TestNoAcquireOfSeveralPassesTheLine(t *testing.T) {
	system := objecttest.NewSystem(t, objecttest.AllowWaiting())
	s := made(t)(semaphore.New(system, 5))
	require.NoError(t, s.Acquire(background, 2))
	first := s.Acquires().Send(background, 5)
	acquired := make(chan error, 1)
	go func() { acquired <- s.Acquire(background, 2) }()
	for s.Waiting() < 2 {
		runtime.Gosched()
	}
	sent := s.Acquires().Send(background, 2)
	byMessage := system.Actors().Root.RequestFuture(s.Object().PID(), &actor.Invoke{Operation: "acquire", Argument: 1}, patience)
	for s.Waiting() < 4 {
		runtime.Gosched()
	}
	require.ErrorIs(t, try(s.Acquires(), 2), activeobject.ErrRefused)
	counts(t, s, 3, 2, 4)
	require.NoError(t, s.Release(2))
	require.NoError(t, over(t, first))
	counts(t, s, 0, 5, 3)
	require.NoError(t, s.Release(5))
	require.NoError(t, <-acquired)
	require.NoError(t, over(t, sent))
	_, err := byMessage.Result()
	require.NoError(t, err)
	counts(t, s, 0, 5, 0)
}
