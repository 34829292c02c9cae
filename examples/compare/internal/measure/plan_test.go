package measure

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// crewOf returns a crew of callers whose operations each takes, and then counts as over.
func crewOf(p Plan, callers int, each func(caller int, elapsed time.Duration) time.Duration) *crew {
	c := &crew{start: make(chan struct{}), back: make(chan struct{})}
	c.running.Store(int64(callers))
	for i := range callers {
		h := &hand{crew: c, number: i, marks: newMarks(p)}
		c.hands = append(c.hands, h)
		go func() {
			<-c.start
			var window int32
			for !c.over.Load() {
				time.Sleep(each(i, time.Since(c.begun)))
				if now := c.window.Load(); now != window {
					h.marks.note(window, now, h.ops)
					window = now
				}
				if !c.over.Load() {
					h.ops++
				}
			}
			if c.running.Add(-1) == 0 {
				close(c.back)
			}
		}()
	}
	return c
}

func TestTheWarmUpIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Steady(10 * time.Millisecond)
		warm := false
		c := crewOf(p, 2, func(_ int, elapsed time.Duration) time.Duration {
			if elapsed < p.Warmup {
				return 10 * time.Microsecond // ten times as fast at first
			}
			return 100 * time.Microsecond
		})
		ends := c.windows(t.Context(), p, func() { warm = true })
		<-c.back
		require.True(t, warm)
		require.Len(t, ends, 2+p.Least, "a steady throughput takes no more than the least windows")
		for _, rate := range c.throughputs(ends, true) {
			require.InEpsilon(t, 20_000, rate, .03, "two callers, each 10 000 per second")
		}
	})
}

func TestAnUnsteadyThroughputIsMeasuredLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Steady(10 * time.Millisecond)
		settled := p.Warmup + 7*p.Window
		c := crewOf(p, 1, func(_ int, elapsed time.Duration) time.Duration {
			if elapsed < settled && elapsed/p.Window%2 == 0 {
				return 50 * time.Microsecond
			}
			return 100 * time.Microsecond
		})
		ends := c.windows(t.Context(), p, func() {})
		<-c.back
		require.Greater(t, len(ends), 1+7)
		require.Less(t, len(ends), 1+p.Most)
		require.True(t, steady(c.throughputs(ends, true)))
	})
	synctest.Test(t, func(t *testing.T) {
		p := Steady(10 * time.Millisecond)
		c := crewOf(p, 1, func(_ int, elapsed time.Duration) time.Duration {
			return time.Duration(50+50*(elapsed/p.Window%2)) * time.Microsecond
		})
		ends := c.windows(t.Context(), p, func() {})
		<-c.back
		require.Len(t, ends, 1+p.Most, "what never becomes steady ends all the same")
		require.False(t, steady(c.throughputs(ends, true)), "and is said not to be")
	})
}

// A caller that is in a call for some windows has ended nothing in them.
func TestALongCallEndsInTheWindowInWhichItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Plan{Warmup: 10 * time.Millisecond, Window: 10 * time.Millisecond, Least: 6, Most: 6}
		c := crewOf(p, 1, func(int, time.Duration) time.Duration { return 25 * time.Millisecond })
		ends := c.windows(t.Context(), p, func() {})
		<-c.back
		// Calls end at 25 and 50 ms; the windows at 20, 30, 40, 50, 60 and 70.
		var ended []int
		for _, rate := range c.throughputs(ends, true) {
			ended = append(ended, int(rate/100+.5))
		}
		sum := 0
		for _, n := range ended {
			sum += n
		}
		require.Equal(t, 2, sum, "%v", ended)
		require.Equal(t, 1, ended[1], "%v", ended)
		require.Zero(t, ended[0]+ended[2], "%v", ended)
	})
}

func TestMeasuringEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		c := crewOf(Steady(10*time.Millisecond), 3, func(int, time.Duration) time.Duration { return time.Millisecond })
		ends := c.windows(ctx, Steady(10*time.Millisecond), func() {})
		<-c.back
		require.Len(t, ends, 1, "it was not even warm")
	})
}
