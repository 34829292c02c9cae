package report

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
)

// timeline is a stretch of the run of a model, to be drawn.
type timeline struct {
	Model  string       `json:"model"`
	Family model.Family `json:"family"`
	Nanos  int64        `json:"ns"`    // that it lasts
	Fixed  int          `json:"fixed"` // how many threads there are whatever happens; 0 if that depends
	Own    bool         `json:"own"`   // the threads are the callers'
	Bars   []bar        `json:"bars"`
}

// bar is the way of a request: its caller, operation and lane of threads, and when,
// in nanoseconds from the beginning of the timeline, it arrived, had a thread,
// started and ended; -1 for what was not until the end of the timeline.
type bar [7]int64

// How many requests a timeline should show of a model that is neither fast nor slow,
// and may show of the fastest.
const (
	wanted  = 36
	allowed = 320
)

// timelines returns the timelines of a workload, all as long as each other.
func (w *Workload) timelines() []timeline {
	length := w.length()
	var all []timeline
	for _, t := range w.traces {
		all = append(all, t.timeline(length, w.Objects))
	}
	return all
}

// length returns for how long timelines show what each model does, so that they can
// be compared.
func (w *Workload) length() int64 {
	var rates []float64 // per nanosecond
	for _, t := range w.traces {
		if begin, end := t.bounds(); end > begin {
			rates = append(rates, float64(len(t.spans))/float64(end-begin))
		}
	}
	if len(rates) == 0 {
		return 1
	}
	slices.Sort(rates)
	median, fastest := rates[len(rates)/2], rates[len(rates)-1]
	return max(1, int64(math.Min(wanted/median, allowed/fastest)))
}

// bounds returns when the first request of the trace arrived and the last ended.
func (t traced) bounds() (begin, end int64) {
	for i, s := range t.spans {
		if i == 0 || s.Arrived < begin {
			begin = s.Arrived
		}
		end = max(end, s.Arrived, s.Ended)
	}
	return begin, end
}

// timeline returns a stretch of the trace.
func (t traced) timeline(length int64, objects int) timeline {
	l := timeline{Model: t.model.Name, Family: t.model.Family, Nanos: length, Own: t.model.Rule.Callers, Bars: []bar{}}
	if t.model.Rule.Assignment == trace.Fixed {
		l.Fixed = objects
	}
	from := t.liveliest(length)
	held := trace.Held(t.spans, t.model.Rule)
	var spans []trace.Span
	var holds []int64
	for i, s := range t.spans {
		if s.Arrived < from+length && (s.Started == 0 || s.Ended > from) {
			spans, holds = append(spans, s), append(holds, held[i])
		}
	}
	lanes := trace.Lanes(spans, holds, t.model.Rule)
	for i, s := range spans {
		l.Bars = append(l.Bars, bar{
			int64(s.Caller), int64(s.Op), int64(lanes[i]),
			moment(s.Arrived, from, length), moment(holds[i], from, length),
			moment(s.Started, from, length), moment(s.Ended, from, length),
		})
	}
	return l
}

// liveliest returns the beginning of the stretch in which most callers, and of those
// that are alike the one in which most requests, were served. (Goroutines that
// share a core take turns of many milliseconds, in which bodies that are shorter by
// far are run by one of them.)
func (t traced) liveliest(length int64) int64 {
	begin, end := t.bounds()
	last := (end - begin) / length
	if last < 1 {
		return begin
	}
	type life struct {
		callers  map[int]bool
		requests int
	}
	lives := make([]life, last)
	for _, s := range t.spans {
		i := (s.Started - begin) / length
		if s.Started == 0 || i >= last {
			continue
		}
		if lives[i].callers == nil {
			lives[i].callers = map[int]bool{}
		}
		lives[i].callers[s.Caller] = true
		lives[i].requests++
	}
	best := 0
	for i, l := range lives {
		b := lives[best]
		if len(l.callers) > len(b.callers) || len(l.callers) == len(b.callers) && l.requests >= b.requests {
			best = i
		}
	}
	return begin + int64(best)*length
}

// moment returns a time within a stretch, and its begin for what was before.
func moment(at, from, length int64) int64 {
	if at == 0 || at >= from+length {
		return -1
	}
	return max(0, at-from)
}
