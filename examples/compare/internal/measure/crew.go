package measure

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
)

// crew is the goroutines that call.
type crew struct {
	hands   []*hand
	start   chan struct{}
	begun   time.Time     // written before start is closed
	back    chan struct{} // closed when all have returned
	running atomic.Int64
	window  atomic.Int32 // the current one; 0 is the warm-up
	over    atomic.Bool
	log     *trace.Log // nil if nothing is traced
	ctx     context.Context
	cancel  context.CancelFunc
}

// hand is one goroutine of a crew.
type hand struct {
	crew    *crew
	number  int
	caller  object.Caller
	calls   [][]object.Call
	page    *trace.Page
	clock   *workload.Clock
	every   int
	latency *hdrhistogram.Histogram
	marks   marks // nil if there are no windows
	ops     int64 // that had ended when it was over
	problem error
}

// newCrew starts a goroutine for each caller, all of which wait for the start.
func newCrew(s *model.Session, t *Tally, log *trace.Log) *crew {
	c := &crew{start: make(chan struct{}), back: make(chan struct{}), log: log}
	c.running.Store(int64(len(s.Callers)))
	// Not derived from that of main: calls may be canceled only when over is set.
	c.ctx, c.cancel = context.WithCancel(context.Background())
	var ready sync.WaitGroup
	for i, caller := range s.Callers {
		h := &hand{crew: c, number: i, caller: caller, calls: s.Calls, every: Every(t.Workload), latency: newHistogram()}
		c.hands = append(c.hands, h)
		ready.Add(1)
		go func() {
			if log != nil {
				h.page = log.Page(i)
			}
			ready.Done()
			<-c.start
			h.clock = t.Workload.Arrival.Clock(i, t.Callers, c.begun)
			h.work()
			if c.running.Add(-1) == 0 {
				close(c.back)
			}
		}()
	}
	ready.Wait()
	return c
}

// work lets the crew work for some time, until the context ends, the trace is full,
// or all have failed; then it is over. It returns when it began.
func (c *crew) work(ctx context.Context, d time.Duration) time.Time {
	c.begin()
	var full <-chan struct{}
	if c.log != nil {
		full = c.log.Full()
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-full:
	case <-c.back:
	}
	c.over.Store(true)
	return c.begun
}

// begin lets the crew begin.
func (c *crew) begin() {
	c.begun = time.Now()
	close(c.start)
}

// stop calls the goroutines back, and returns how many did not come.
func (c *crew) stop(s *model.Session, patience time.Duration) (missing int64) {
	c.cancel()
	s.Stop()
	select {
	case <-c.back:
		return 0
	case <-time.After(patience):
		return c.running.Load()
	}
}

// work calls until it is over, and takes the time of every how-many-th call. Callers
// begin with different ones, so that all kinds of calls are met.
func (h *hand) work() {
	ctx := h.crew.ctx
	var ops int64
	var window int32
	for left := 1 + h.number%h.every; ; left-- {
		var begun time.Time
		if left == 0 {
			left = h.every
		}
		timed := left == 1
		switch {
		case h.clock != nil:
			var ok bool
			if begun, ok = h.clock.Wait(ctx); !ok {
				h.ops = ops
				return
			}
		case timed:
			begun = time.Now()
		}
		err := h.call(ctx)
		if now := h.crew.window.Load(); now != window {
			// What has just ended did so in the new window.
			if h.marks.note(window, now, ops); window == 0 {
				h.latency.Reset()
			}
			window = now
		}
		if h.crew.over.Load() {
			if err != nil && !model.IsStop(err) {
				h.problem = err
			}
			break
		}
		if err != nil {
			h.problem = err
			break
		}
		ops++
		if timed {
			h.latency.RecordValue(min(int64(time.Since(begun)), h.latency.HighestTrackableValue()))
		}
	}
	h.ops = ops
}

// call makes the caller's next call, and has it entered in the books.
func (h *hand) call(ctx context.Context) error {
	s := h.caller.Next()
	s.Span = h.page.Arrive(h.number, s.Object, s.Op)
	value, err := h.calls[s.Object][s.Op](ctx, s.Request)
	if err != nil {
		return err
	}
	return h.caller.Done(s, value)
}
