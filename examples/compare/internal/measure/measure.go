// Package measure lets callers use objects for some time, and takes the figures.
package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
	"github.com/sluice-go/sluice/internal/picture"
)

// Tally is what was measured of a workload under a model, in one or more turns.
type Tally struct {
	Workload *workload.Workload
	Model    *model.Model
	Callers  int
	Patience time.Duration // with callers that do not come back

	Ops      int64
	ByCaller []int64
	Windows  []float64 // operations per second in each
	Wall     time.Duration
	CPU      time.Duration
	Mallocs  uint64
	Latency  *hdrhistogram.Histogram // in nanoseconds
	Problem  error                   // the first; nil if all turns were correct
	Panel    *picture.Panel          // of Record
	Threads  trace.Threads           // of Trace
}

// New returns an empty tally.
func New(w *workload.Workload, m *model.Model, callers int, patience time.Duration) *Tally {
	return &Tally{Workload: w, Model: m, Callers: callers, Patience: patience, ByCaller: make([]int64, callers), Latency: newHistogram()}
}

// newHistogram keeps latencies of 1 ns to an hour to 1 %.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour), 2)
}

// Measure lets callers use new objects as planned, or until ctx ends, and adds what it
// saw after the warm-up to the tally. Callers that have not come back some patience after
// the end are left alone, and count as a problem.
func (t *Tally) Measure(ctx context.Context, p Plan) {
	s, err := t.Workload.Subject.Open(t.Model, t.Workload.Setting(t.Callers))
	if err != nil {
		t.fault(err)
		return
	}
	crew := newCrew(s, t, nil)
	for _, h := range crew.hands {
		h.marks = newMarks(p)
	}
	runtime.GC() // what the run before has left shall not be paid for here
	var mallocsBefore uint64
	var cpuBefore time.Duration
	ends := crew.windows(ctx, p, func() {
		mallocsBefore = mallocs()
		cpuBefore, _ = cpuTime()
	})
	// What ends from now on is not counted, so that neither is its time.
	t.Wall += ends[len(ends)-1].Sub(ends[0])
	cpuAfter, _ := cpuTime()
	t.CPU += cpuAfter - cpuBefore
	t.Mallocs += mallocs() - mallocsBefore
	if !t.finish(s, crew) || len(ends) == 1 {
		return
	}
	t.Windows = append(t.Windows, crew.throughputs(ends, true)...)
	for i, h := range crew.hands {
		n := h.ops - h.marks.at(0, h.ops)
		t.Ops += n
		t.ByCaller[i] += n
		if h.marks[0].Load() != unmarked { // else these are of the warm-up
			t.Latency.Merge(h.latency)
		}
	}
}

// Steady reports whether the last windows have had much the same throughput.
func (t *Tally) Steady() bool { return steady(t.Windows) }

// Trace is Measure for the way of each request, and the figures of the threads. It
// ends early when the trace is full. Its times are for looking at: recording them
// takes a microsecond or two of each request, partly within the body.
func (t *Tally) Trace(ctx context.Context, d time.Duration) {
	if log := t.log(ctx, d); log != nil {
		t.Threads = trace.Count(log.Spans(), t.Model.Rule, t.Workload.Objects)
		t.Threads.Goroutines = log.Goroutines()
	}
}

// log lets callers use new objects for some time, and returns the way of each request; nil if
// something went wrong.
func (t *Tally) log(ctx context.Context, d time.Duration) *trace.Log {
	settle()
	log := trace.New(t.Callers)
	s, err := t.Workload.Subject.Open(t.Model, t.Workload.Setting(t.Callers))
	if err != nil {
		t.fault(err)
		return nil
	}
	crew := newCrew(s, t, log)
	log.Begin()
	crew.work(ctx, d)
	if !t.finish(s, crew) {
		return nil
	}
	return log
}

// Record is Measure for a picture of what each request waited for. Of objects that cannot say
// so it shows when they waited and ran.
func (t *Tally) Record(ctx context.Context, d time.Duration) {
	if !t.Model.Explains() {
		if log := t.log(ctx, d); log != nil {
			t.Panel = trace.Panel(log.Spans(), t.Model.Rule, t.Workload.Names())
		}
		return
	}
	recording := timeline.New()
	s, err := t.Workload.Subject.Open(t.Model, t.Workload.Setting(t.Callers), recording.Option())
	if err != nil {
		t.fault(err)
		return
	}
	crew := newCrew(s, t, nil)
	crew.work(ctx, d)
	if t.finish(s, crew) {
		t.Panel = recording.Panel(t.Model.Name)
		if t.Model.Rule.Callers {
			t.Panel.HoldFromArrival()
		}
	}
}

// finish calls the crew back and looks at the books. It is false if somebody is
// still out there, so that nothing may be looked at.
func (t *Tally) finish(s *model.Session, c *crew) bool {
	if missing := c.stop(s, t.Patience); missing > 0 {
		t.fault(fmt.Errorf("%d of %d callers never came back", missing, t.Callers))
		return false
	}
	for _, h := range c.hands {
		t.fault(h.problem)
	}
	t.fault(s.End())
	t.fault(s.Audit())
	return true
}

// fault keeps err if it is the first.
func (t *Tally) fault(err error) {
	if t.Problem == nil {
		t.Problem = err
	}
}

// Fairness returns Jain's index of the operations of the callers: 1 if all have
// ended as many, 1/n if one of n has ended all; 0 if none has.
func (t *Tally) Fairness() float64 {
	var sum, squares float64
	for _, n := range t.ByCaller {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(t.ByCaller)) * squares)
}

// sampled is the interval of the calls whose latency is taken where the clock would
// cost as much as the call.
const sampled = 13

// Every says of every how-many-th call the latency is taken.
func Every(w *workload.Workload) int {
	if w.Short() {
		return sampled
	}
	return 1
}

// mallocs returns how many objects the process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// Cores returns how many cores two goroutines get that do nothing but spin; 0 if
// that is not known.
func Cores(d time.Duration) float64 {
	before, known := cpuTime()
	if !known {
		return 0
	}
	start := time.Now()
	var spinners sync.WaitGroup
	for range 2 {
		spinners.Go(func() {
			for time.Since(start) < d {
				_ = object.Spin(1000)
			}
		})
	}
	spinners.Wait()
	wall := time.Since(start)
	after, _ := cpuTime()
	return float64(after-before) / float64(wall)
}

// settle waits a moment for the goroutines of the run before to end, so that they are
// not taken for some of this one.
func settle() {
	for last, i := -1, 0; i < 20 && runtime.NumGoroutine() != last; i++ {
		last = runtime.NumGoroutine()
		time.Sleep(time.Millisecond)
	}
}
