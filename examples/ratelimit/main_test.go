package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

// limited runs the test in a bubble, with a limiter of 10 in a second and a burst of 3.
func limited(t *testing.T, test func(t *testing.T, l Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, err := New(objecttest.NewSystem(t), 10, time.Second, 3, objecttest.Checked(t))
		require.NoError(t, err)
		test(t, l)
	})
}

// passed makes n requests, one after another, and returns the time that each has passed after.
func passed(t *testing.T, l Limiter, n int) (after []time.Duration) {
	t.Helper()
	start := time.Now()
	for range n {
		require.NoError(t, l.Wait(t.Context()))
		after = append(after, time.Since(start))
	}
	return after
}

func TestABurstPassesAtOnceAndTheRestAtTheRate(t *testing.T) {
	limited(t, func(t *testing.T, l Limiter) {
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{0, 0, 0, 100 * ms, 200 * ms, 300 * ms}, passed(t, l, 6))
	})
}

func TestAPauseFillsTheBurstAndNoMore(t *testing.T) {
	limited(t, func(t *testing.T, l Limiter) {
		passed(t, l, 3)
		time.Sleep(time.Hour) // the bubble's clock: it costs nothing
		assert.Equal(t, []time.Duration{0, 0, 0, 100 * time.Millisecond}, passed(t, l, 4))
	})
}

func TestARequestThatIsCanceledTakesNoToken(t *testing.T) {
	limited(t, func(t *testing.T, l Limiter) {
		passed(t, l, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
		assert.Equal(t, []time.Duration{50 * time.Millisecond}, passed(t, l, 1))
	})
}

func TestRequestsPassInOrderOfArrival(t *testing.T) {
	limited(t, func(t *testing.T, l Limiter) {
		passed(t, l, 3)
		first := take.Send(t.Context(), l.object, nil)
		second := take.Send(t.Context(), l.object, nil)
		_, err := first.Await(t.Context())
		require.NoError(t, err)
		assert.False(t, second.Ready())
		_, err = second.Await(t.Context())
		require.NoError(t, err)
	})
}

func TestAllowDoesNotWait(t *testing.T) {
	limited(t, func(t *testing.T, l Limiter) {
		passed(t, l, 3)
		start := time.Now()
		allowed, err := l.Allow(t.Context())
		require.NoError(t, err)
		assert.False(t, allowed)
		assert.Zero(t, time.Since(start))
	})
}

func TestALimiterThatLetsNothingPassIsRefused(t *testing.T) {
	_, err := New(objecttest.NewSystem(t), 10, time.Second, 0)
	assert.ErrorContains(t, err, "would never pass")
}
