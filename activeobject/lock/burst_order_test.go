package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// orders are the policies that a burst lock may be given.
var orders = map[string]activeobject.Option{
	"by arrival":    activeobject.ByArrival(),
	"rotating":      activeobject.ByRotation(),
	"latest first":  activeobject.ByLatest(),
	"by priority":   activeobject.ByPriority(),
	"by deadline":   activeobject.ByDeadline(),
	"ordered":       activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Arrival > b.Arrival }),
	"choosing last": activeobject.ByChoice(func(all []*activeobject.Candidate) int { return len(all) - 1 }),
}

func TestABurstPassesWholeUnderEveryPolicy(t *testing.T) {
	const sample = 3
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			b, err := lock.NewBurst(objecttest.NewSystem(t, objecttest.AllowWaiting()), sample, order)
			require.NoError(t, err)
			for range 3 {
				var burst []activeobject.Future[None]
				for i := range sample { // the later a request comes, the sooner it goes
					ctx, cancel := context.WithDeadline(background, time.Now().Add(time.Hour-time.Duration(i)*time.Minute))
					defer cancel()
					burst = append(burst, b.Requests().Send(activeobject.WithPriority(ctx, i), nil))
				}
				for i, f := range burst {
					require.NoError(t, over(t, f), "request %d", i)
				}
				require.Zero(t, b.Waiting())
				require.ErrorIs(t, try(b.Requests(), nil), activeobject.ErrRefused, "the lock is closed behind the burst")
				next := b.Requests().Send(background, nil)
				require.False(t, next.Ready(), "the next burst has not begun")
				require.True(t, next.Withdraw())
			}
		})
	}
}

// Where fewer may wait than a sample, no sample ever waits.
func TestABurstLockHasRoomForItsSample(t *testing.T) {
	const sample = 3
	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
		system := objecttest.NewSystem(t)
		_, err := lock.NewBurst(system, sample, activeobject.Bound(sample-1, overflow))
		var wrong *activeobject.ArgumentError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "options", wrong.Argument)
		require.EqualError(t, err, fmt.Sprintf("sluice: lock.NewBurst: options let no more than %d requests wait, so that a sample of %d never does: leave out Bounded, or give it room for all of them", sample-1, sample))

		b, err := lock.NewBurst(system, sample, activeobject.Bound(sample, overflow))
		require.NoError(t, err)
		var burst []activeobject.Future[None]
		for range sample {
			burst = append(burst, b.Requests().Send(background, nil))
		}
		for _, f := range burst {
			require.NoError(t, over(t, f))
		}
	}
}
