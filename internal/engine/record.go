package engine

import (
	"iter"

	"github.com/sluice-go/sluice/mailbox"
)

// Recorder is told what happens at an object: the events of its log, and, whenever it has settled
// after some, which requests wait, and why. Its functions are called with the object's mutex held,
// so they must be quick, not panic, and not call the object. No two calls for one object overlap.
type Recorder interface {
	// Event is called for each line of the log.
	Event(mailbox.Event)
	// Waits is called when the object has settled, with the requests that wait, in no particular
	// order. The sequence and what it yields are valid only during the call.
	Waits(all iter.Seq[*RecordedWait])
}

// RecordedWait is a request that waits, and why.
type RecordedWait struct {
	Op      int // the number of the operation
	Arrival uint64
	// Thread says that the request keeps a thread while it waits.
	Thread bool
	Reason mailbox.Reason
	// For are the arrivals of the requests that it waits for directly: those that run and that
	// it conflicts with, the first recordedObstacles of them; else the one that comes before it.
	For []uint64
}

// recordedObstacles is how many of the requests that one waits for are recorded: very many may run.
const recordedObstacles = 8

// Record has r told how requests wait. Its events are those of Rules.Log, and the object must
// have no fast path (Config.NoFastPath). It is called before the first request.
func (m *Mailbox) Record(r Recorder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.special().recorder = r
}

// record tells the recorder how requests wait. The caller holds mu.
func (m *Mailbox) record(to Recorder) {
	k := m.queues.Load()
	if k == nil {
		return
	}
	to.Waits(func(yield func(*RecordedWait) bool) {
		if !k.Waits() {
			return
		}
		c := k.Inspect()
		defer c.Close()
		var w RecordedWait
		for more, wanted := true, true; more && wanted; {
			more = c.Next(1, func(kr *mailbox.Request, _ int) {
				r := kr.Record.(*Request)
				w = RecordedWait{Op: r.Op, Arrival: r.Arrival(), Thread: r.thread() != nil, For: w.For[:0]}
				m.because(k, r, &w.Reason)
				for other := range k.Obstacles(kr) {
					if w.For = append(w.For, other.Arrival()); len(w.For) == recordedObstacles {
						break
					}
				}
				wanted = yield(&w)
			})
		}
	})
}
