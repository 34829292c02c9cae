package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tally is what was measured of a workload under a model, in one or more turns.
type tally struct {
	model   model
	ops     int64
	wall    time.Duration
	cpu     time.Duration
	mallocs uint64
	latency *hdrhistogram.Histogram // in nanoseconds
	problem error                   // the first; nil if all turns were correct
}

func newTally(m model) *tally { return &tally{model: m, latency: newHistogram()} }

// newHistogram keeps latencies of 1 ns to an hour to 1 %.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour), 2)
}

// measure lets callers use a new object of the workload for some time, or until
// ctx ends, and adds what it saw to the tally. Callers that have not come back some
// patience after the end are left alone, and count as a problem.
func (t *tally) measure(ctx context.Context, w *workload, callers int, d, patience time.Duration) {
	s, err := w.open(t.model, callers)
	if err != nil {
		t.fault(err)
		return
	}
	crew := newCrew(s, w.every)
	runtime.GC() // what the run before has left shall not be paid for here
	mallocsBefore := mallocs()
	cpuBefore, _ := cpuTime()
	begun := time.Now()
	close(crew.start)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-crew.back: // all have failed
	}
	// What ends from now on is not counted, so that neither is its time.
	crew.over.Store(true)
	t.wall += time.Since(begun)
	cpuAfter, _ := cpuTime()
	t.cpu += cpuAfter - cpuBefore
	t.mallocs += mallocs() - mallocsBefore
	if missing := crew.stop(s, patience); missing > 0 {
		t.fault(fmt.Errorf("%d of %d callers never came back", missing, callers))
		return
	}
	for _, h := range crew.hands {
		t.ops += h.ops
		t.latency.Merge(h.latency)
		t.fault(h.problem)
	}
	t.fault(s.end())
	t.fault(s.check())
}

// fault keeps err if it is the first.
func (t *tally) fault(err error) {
	if t.problem == nil {
		t.problem = err
	}
}

// crew is the goroutines that call.
type crew struct {
	hands   []*hand
	start   chan struct{}
	back    chan struct{} // closed when all have returned
	running atomic.Int64
	over    atomic.Bool
	cancel  context.CancelFunc
}

// hand is one goroutine of a crew.
type hand struct {
	caller  caller
	latency *hdrhistogram.Histogram
	ops     int64
	problem error
}

// newCrew starts a goroutine for each caller, all of which wait for the start.
func newCrew(s *session, every int) *crew {
	c := &crew{start: make(chan struct{}), back: make(chan struct{})}
	c.running.Store(int64(len(s.callers)))
	// Not derived from that of main: calls may be cancelled only when over is set.
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	var ready sync.WaitGroup
	for i, caller := range s.callers {
		h := &hand{caller: caller, latency: newHistogram()}
		c.hands = append(c.hands, h)
		ready.Add(1)
		go func() {
			ready.Done()
			<-c.start
			h.work(ctx, &c.over, every, 1+i%every)
			if c.running.Add(-1) == 0 {
				close(c.back)
			}
		}()
	}
	ready.Wait()
	return c
}

// stop calls the goroutines back, and returns how many did not come.
func (c *crew) stop(s *session, patience time.Duration) (missing int64) {
	c.cancel()
	s.stop()
	select {
	case <-c.back:
		return 0
	case <-time.After(patience):
		return c.running.Load()
	}
}

// work calls until it is over, and takes the time of every how-many-th call,
// beginning with the first-th.
func (h *hand) work(ctx context.Context, over *atomic.Bool, every, first int) {
	var ops int64
	var begun time.Time
	for left := first; ; {
		left--
		if left == 0 {
			begun = time.Now()
		}
		if err := h.caller.step(ctx); err != nil {
			if !over.Load() || !isStop(err) {
				h.problem = err
			}
			break
		}
		if over.Load() {
			break
		}
		ops++
		if left == 0 {
			h.latency.RecordValue(min(int64(time.Since(begun)), h.latency.HighestTrackableValue()))
			left = every
		}
	}
	h.ops = ops
}

// mallocs returns how many objects the process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// measureCores returns how many cores two goroutines get that do nothing but
// spin; 0 if that is not known.
func measureCores(d time.Duration) float64 {
	before, known := cpuTime()
	if !known {
		return 0
	}
	start := time.Now()
	var spinners sync.WaitGroup
	for range 2 {
		spinners.Go(func() {
			for time.Since(start) < d {
				spin(1000)
			}
		})
	}
	spinners.Wait()
	wall := time.Since(start)
	after, _ := cpuTime()
	return float64(after-before) / float64(wall)
}
