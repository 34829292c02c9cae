package timeline

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
	"github.com/sluice-go/sluice/mailbox"
)

// Recording is what has happened at the objects that were made with its options, since it was
// made.
type Recording struct {
	begun time.Time

	mu      sync.Mutex
	objects []*object
}

// New begins a recording.
func New() *Recording { return &Recording{begun: time.Now()} }

// Option has an object recorded. It may be given to several objects.
func (r *Recording) Option() activeobject.Option {
	return settings.Recorded[activeobject.Option](func(name string, operations []string) engine.Recorder {
		return r.add(name, operations)
	})
}

// add begins the recording of an object. Objects of one name are told apart by a number.
func (r *Recording) add(name string, operations []string) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := func(name string) bool {
		return slices.ContainsFunc(r.objects, func(o *object) bool { return o.name == name })
	}
	unique := name
	for n := 2; taken(unique); n++ {
		unique = fmt.Sprintf("%s %d", name, n)
	}
	o := &object{begun: r.begun, name: unique, operations: operations, why: map[uint64]int{}}
	r.objects = append(r.objects, o)
	return o
}

// Capacity is how many events of an object are recorded: those of some ten thousand requests.
// What happens later is not, nor when reasons have changed four times as often; the page says so.
const Capacity = 1 << 16

const waitsCapacity = 4 * Capacity

// lookedAtOnce is how many requests that wait are looked at whenever the object has settled: of
// more than these no reasons are recorded, so that recording very many takes no squares of time.
const lookedAtOnce = 256

// object is the recording of one object: its log, and how its requests waited.
type object struct {
	begun      time.Time
	name       string
	operations []string

	// The object's mutex keeps calls apart, but not from a reader.
	mu     sync.Mutex
	events []event
	waits  []wait
	why    map[uint64]int // by the arrival of a request that waits: its latest wait, plus one
	looks  int
	full   bool
}

// event is a line of the log, and when it was written.
type event struct {
	mailbox.Event
	at int64
}

// wait is why a request waits from a time on.
type wait struct {
	at      int64
	after   int // events
	look    int // the latest that has found it so
	arrival uint64
	thread  bool
	reason  mailbox.Reason
	forThem []uint64
}

func (o *object) now() int64 { return int64(time.Since(o.begun)) }

// Event implements engine.Recorder.
func (o *object) Event(e mailbox.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.full, len(o.events) == Capacity:
		o.full = true
		return
	case e.Kind == mailbox.Evaluated: // the reasons say it
		return
	case e.Kind == mailbox.Started, e.Kind == mailbox.Withdrawn, e.Kind == mailbox.Failing:
		delete(o.why, e.Arrival)
	}
	o.events = append(o.events, event{e, o.now()})
}

// Waits implements engine.Recorder.
func (o *object) Waits(all iter.Seq[*engine.RecordedWait]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full {
		return
	}
	o.looks++
	at, looked := o.now(), 0
	for w := range all {
		if looked++; looked > lookedAtOnce {
			o.forget(at)
			return
		}
		if last := o.why[w.Arrival]; last > 0 && o.waits[last-1].same(w) {
			o.waits[last-1].look = o.looks
			continue
		}
		o.waits = append(o.waits, wait{at, len(o.events), o.looks, w.Arrival, w.Thread, w.Reason, slices.Clone(w.For)})
		o.why[w.Arrival] = len(o.waits)
		if o.full = len(o.waits) >= waitsCapacity; o.full {
			return
		}
	}
}

// forget says of requests that were looked at before, and have not been now, that the reason is
// not known any more.
func (o *object) forget(at int64) {
	for arrival, last := range o.why {
		if o.waits[last-1].look != o.looks {
			o.waits = append(o.waits, wait{at: at, after: len(o.events), arrival: arrival})
			delete(o.why, arrival)
		}
	}
}

// same reports whether a request still waits for the same.
func (w *wait) same(now *engine.RecordedWait) bool {
	a, b := &w.reason, &now.Reason
	return a.Cause == b.Cause && a.Guard == b.Guard && a.Behind == b.Behind && w.thread == now.Thread && slices.Equal(w.forThem, now.For)
}
