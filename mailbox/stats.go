package mailbox

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Stats are the counts of one operation of an object since it was made.
type Stats struct {
	Operation string `json:"operation"`
	// What the scheduler has counted, and, of an object that counts them, the
	// starts and guard evaluations of requests that found it idle.
	kernel.Stats
	// WaitingTimes is how long requests that could not start at once waited before
	// they started; nil unless the object measures it.
	WaitingTimes Histogram `json:"waiting_times_us,omitempty"`
}

// Histogram counts durations: element i those of at least 2^(i-1) and less than
// 2^i microseconds, element 0 those of less than one.
type Histogram []uint64

// Count returns how many durations there are.
func (h Histogram) Count() (n uint64) {
	for _, c := range h {
		n += c
	}
	return n
}

// Quantile returns a duration below which the share q of all lies, from 0 to 1: the
// upper end of the element that it falls into. Without any it returns 0.
func (h Histogram) Quantile(q float64) time.Duration {
	need := uint64(math.Ceil(q * float64(h.Count())))
	for i, c := range h {
		if c >= need && c > 0 {
			return time.Microsecond << i
		}
		need -= min(c, need)
	}
	return 0
}

// add counts one more duration.
func (h *Histogram) add(d time.Duration) {
	i := bits.Len64(uint64(max(d, 0) / time.Microsecond))
	for len(*h) <= i {
		*h = append(*h, 0)
	}
	(*h)[i]++
}

// extras is what only some objects have: those that count, are watched, suspended or
// observed, or have been. All others find that out by one look.
type extras struct {
	fast  []fastCounts // per operation, if the object counts
	waits []Histogram  // per operation, if it measures; guarded by mu
	timer *time.Timer  // for the next look, if there is a watchdog; guarded by mu

	observers  []*observer // guarded by mu
	suspension *suspension // why nothing starts; guarded by mu
	fanned     *fanned     // of an object that fans out; guarded by mu
}

// special returns the object's extras, which it has from now on. The caller holds mu.
func (m *Mailbox) special() *extras {
	x := m.extras.Load()
	if x == nil {
		x = &extras{}
		m.extras.Store(x)
	}
	return x
}

// fastCounts are the counts of what the kernel does not see.
type fastCounts struct{ starts, asked atomic.Uint64 }

// Count counts, at an object that does, a request that found it idle: whether it
// ran, and how often guards were asked by it.
func (m *Mailbox) Count(op int, ran bool, asked int) {
	x := m.extras.Load()
	if x == nil || x.fast == nil {
		return
	}
	c := &x.fast[op]
	if ran {
		c.starts.Add(1)
	}
	c.asked.Add(uint64(asked))
}

// measure notes that r starts after its wait. The caller holds mu.
func (m *Mailbox) measure(r *Request) {
	m.extras.Load().waits[r.Op].add(Now() - r.since)
}

// Stats returns the counts of an operation. It waits for no body.
func (m *Mailbox) Stats(op int) Stats {
	s := Stats{Operation: m.config.Rules.Operations[op].Name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.queues.Load(); k != nil {
		s.Stats = k.Stats(op)
	}
	if x := m.extras.Load(); x != nil {
		if x.fast != nil {
			s.Starts += x.fast[op].starts.Load()
			s.Evaluations += x.fast[op].asked.Load()
		}
		if x.waits != nil {
			s.WaitingTimes = append(Histogram{}, x.waits[op]...)
		}
	}
	return s
}
