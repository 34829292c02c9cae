package measure

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// Plan is how long a tally is measured. What objects and callers do at first is not what they
// do later: caches are cold, queues empty, and the first caller runs alone for a slice of time. So
// there is a warm-up that is not counted, and then windows: at least so many, and one more; and
// then more, up to the most, until the throughput before the last one is steady.
type Plan struct {
	Warmup      time.Duration
	Window      time.Duration
	Least, Most int // windows
}

// Stretch returns the plan of a run of a given length.
func Stretch(d time.Duration) Plan {
	return Plan{Warmup: d / 5, Window: max(1, d/5), Least: 4, Most: 4}
}

// Steady returns the plan of a run that lasts until its figure can be believed, from six
// windows of the given length, two of them to warm up, to fourteen.
func Steady(window time.Duration) Plan {
	return Plan{Warmup: 2 * window, Window: max(1, window), Least: 3, Most: 12}
}

// tolerance is how far the last windows of a steady throughput are apart, in parts of the
// middle one.
const tolerance = .1

// steady reports whether the last of the throughputs are much the same.
func steady(windows []float64) bool {
	const last = 3
	if len(windows) < last {
		return false
	}
	w := slices.Sorted(slices.Values(windows[len(windows)-last:]))
	return w[0] > 0 && w[last-1]-w[0] <= tolerance*w[last/2]
}

// marks are how many operations a caller had ended when each window was over: first the
// warm-up. The caller writes them; others may look meanwhile.
type marks []atomic.Int64

const unmarked = -1

func newMarks(p Plan) marks {
	m := make(marks, p.Most+1)
	for i := range m {
		m[i].Store(unmarked)
	}
	return m
}

// note says that the windows up to the current one are over, and how many operations have
// ended in them.
func (m marks) note(from, current int32, ops int64) {
	for i := from; i < current && int(i) < len(m); i++ {
		m[i].Store(ops)
	}
}

// at returns how many operations had ended with a window. A caller that has not said so is
// in a call since before that; known is how many it had ended then.
func (m marks) at(window int, known int64) int64 {
	if n := m[window].Load(); n != unmarked {
		return n
	}
	return known
}

// windows has the crew work for a plan, until the context ends or all have failed. It returns
// when each window was over, first the warm-up, after which it calls warm.
func (c *crew) windows(ctx context.Context, p Plan, warm func()) (ends []time.Time) {
	c.begin()
	next := time.NewTimer(p.Warmup)
	defer next.Stop()
	for {
		more := false
		select {
		case <-next.C:
			more = true
		case <-ctx.Done():
		case <-c.back:
		}
		ends = append(ends, time.Now())
		if len(ends) == 1 {
			warm()
			ends[0] = time.Now()
		}
		n := len(ends) - 1
		// What has ended in the window that is just over the callers say when they come
		// back from the call that they are in.
		if !more || n >= p.Most || n > p.Least && steady(c.throughputs(ends[:n], false)) {
			c.over.Store(true)
			return ends
		}
		c.window.Add(1)
		next.Reset(p.Window)
	}
}

// throughputs returns how many operations per second have ended in each window after the
// warm-up. Of callers that have not come back from a call some windows are not known yet, but
// all are when the crew is over.
func (c *crew) throughputs(ends []time.Time, over bool) (all []float64) {
	before := make([]int64, len(c.hands))
	for i := range ends {
		var sum int64
		for j, h := range c.hands {
			known := before[j]
			if over {
				known = h.ops
			}
			n := h.marks.at(i, known)
			sum += n - before[j]
			before[j] = n
		}
		if i > 0 {
			all = append(all, float64(sum)/max(ends[i].Sub(ends[i-1]).Seconds(), 1e-9))
		}
	}
	return all
}
