package mailbox

import (
	"math"
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Stats are the counts of one operation of an object since it was made. Each is whole, or
// says that it is not counted.
type Stats struct {
	Operation string `json:"operation"`
	// Starts counts the requests that ran; one that was requeued counts again. It is
	// NotCounted at an object where requests can start without its scheduler.
	Starts Count `json:"starts"`
	// Waits counts those that could not start at once, those that wait now included.
	Waits uint64 `json:"waits"`
	// Withdrawals counts those that left their queue without having run, also those that had
	// been chosen to start when their context ended; and Refusals those that were turned
	// away from a queue that was full, or made room there.
	Withdrawals uint64 `json:"withdrawals"`
	Refusals    uint64 `json:"refusals"`
	// Evaluations counts how often the guard was evaluated. It is NotCounted where Starts is.
	Evaluations Count `json:"guard_evaluations"`
	// LongestBypass is the greatest number of later arrivals that started while a request
	// waited and its guard was open: up to the bound; NotCounted if none is set.
	LongestBypass Count `json:"longest_bypass"`
	// WaitingTimes is how long requests that could not start at once waited before
	// they started; nil unless the object measures it.
	WaitingTimes Histogram `json:"waiting_times_us,omitempty"`
}

// Count is how often something has happened, or NotCounted.
type Count int64

// NotCounted stands for a figure that an object does not count. It is printed as "not
// counted", and null in JSON.
const NotCounted Count = -1

// String implements fmt.Stringer.
func (c Count) String() string {
	if c == NotCounted {
		return "not counted"
	}
	return strconv.FormatInt(int64(c), 10)
}

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if c == NotCounted {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(b []byte) (err error) {
	n := int64(NotCounted)
	if string(b) != "null" {
		n, err = strconv.ParseInt(string(b), 10, 64)
	}
	*c = Count(n)
	return err
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

// wholly reports whether every start and evaluation is counted: the object counts those of
// requests that find it idle, or these go through the kernel like all others.
func (c *Config) wholly() bool { return c.Counted || c.rest&slow != 0 && !c.hasLanes }

// Stats returns the counts of an operation. It waits for no body.
func (m *Mailbox) Stats(op int) Stats {
	rules := m.config.Rules
	s := Stats{Operation: rules.Operations[op].Name, Starts: NotCounted, Evaluations: NotCounted, LongestBypass: NotCounted}
	m.mu.Lock()
	defer m.mu.Unlock()
	var known kernel.Stats
	if k := m.queues.Load(); k != nil {
		known = k.Stats(op)
	}
	s.Waits, s.Withdrawals, s.Refusals = known.Waits, known.Withdrawals, known.Refusals
	if rules.MaxBypass > 0 || rules.CountBypass > 0 {
		s.LongestBypass = Count(known.LongestBypass)
	}
	x := m.extras.Load()
	if m.config.wholly() {
		s.Starts, s.Evaluations = Count(known.Starts), Count(known.Evaluations)
		if x != nil && x.fast != nil {
			s.Starts += Count(x.fast[op].starts.Load())
			s.Evaluations += Count(x.fast[op].asked.Load())
		}
	}
	if x != nil && x.waits != nil {
		s.WaitingTimes = append(Histogram{}, x.waits[op]...)
	}
	return s
}
