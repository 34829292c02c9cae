package mailbox

import (
	"math"
	"math/bits"
	"strconv"
	"time"
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

// Add counts one more duration.
func (h *Histogram) Add(d time.Duration) {
	i := bits.Len64(uint64(max(d, 0) / time.Microsecond))
	for len(*h) <= i {
		*h = append(*h, 0)
	}
	(*h)[i]++
}

// Load is how much there is to do at an object, at one moment.
type Load struct {
	// Running is how many requests run.
	Running int
	// Waiting is how many wait: for their guard, behind what runs, at a full queue,
	// or for a thread.
	Waiting int
	// Deciding says that it has not been decided yet which request starts next, so
	// that some of those that wait may not have to.
	Deciding bool
}

// Idle reports whether nothing runs and nothing waits.
func (l Load) Idle() bool { return l.Running == 0 && l.Waiting == 0 && !l.Deciding }

// Waited reports whether r, which waits or has just been returned by Next, could not
// start at once.
func (s *Scheduler) Waited(r *Request) bool { return r.rests != s.rests }

// counters are what a queue counts.
type counters struct {
	started, waited, withdrawn, refused, asked uint64
	longest                                    int
	overflowing                                int // requests in the overflow queue
	tries                                      int // of those in the entry queue, which no bound counts
}

// Stats returns the counts of an operation, as far as the scheduler has seen the requests.
func (s *Scheduler) Stats(op int) Stats {
	q := &s.queues[op]
	counts := Stats{
		Operation: s.rules.Operations[op].Name, Starts: Count(q.started), Evaluations: Count(q.asked),
		Waits: q.waited, Withdrawals: q.withdrawn, Refusals: q.refused, LongestBypass: NotCounted,
	}
	counted := s.counted > 0
	if counted {
		counts.LongestBypass = Count(q.longest)
	}
	for _, l := range [...]*list{&q.in.list, &q.entry, &q.out.list} {
		for r := l.first; r != nil; r = r.next {
			if s.Waited(r) {
				counts.Waits++
			}
			if counted {
				counts.LongestBypass = max(counts.LongestBypass, Count(s.Bypassed(r)))
			}
		}
	}
	return counts
}
