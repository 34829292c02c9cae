package semaphore_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

// invoke sends an object the message that invokes an operation, and returns the reply.
func invoke(t *testing.T, system *actor.System, to *actor.PID, operation string, argument any) (any, error) {
	t.Helper()
	reply, err := system.Actors().Root.RequestFuture(to, &actor.Invoke{Operation: operation, Argument: argument}, patience).Result()
	require.NoError(t, err)
	require.IsType(t, &actor.Reply{}, reply)
	r := reply.(*actor.Reply)
	return r.Value, r.Err
}

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
		for _, argument := range []any{nil, activeobject.None{}, 0, 1, 2, true} {
			_, err := invoke(t, system, s.Object().PID(), step, argument)
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
