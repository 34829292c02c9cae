package engine

import (
	"time"

	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// How long a body has run is found out by looking twice, as nothing on the way of a request reads
// the clock: a look notes what runs, and the next look finds the note, unless another run has
// begun meanwhile.
//
// # Why the same run is recognized
//
// Where the scheduler knows of a run, its end and the beginning of the next are steps of the
// scheduler, under mu. So where one request runs at a time, a note that the scheduler keeps until
// the next run begins is about the run that it was made for. Where several run, the note is found
// by the request and its arrival number. A requeue at the same object may keep the arrival, and
// so drops the note.
//
// A run by the fast path is first made known to the scheduler, as an arrival would do: its owner
// then releases the object under mu, and not by a swap. Of the bodies in counters only the
// number is known. But while the word is exclusive no body comes by a counter, so that all that
// are left were there when the note was made. As long as there are any, and a note, setShared
// leaves the word exclusive.

// sighting is a note about a body that runs.
type sighting struct {
	at       time.Duration // when it was first seen, on Now's clock
	arrival  uint64        // of the request
	reported bool          // that it runs for too long
}

// run is a body that runs, as a look finds it.
type run struct {
	mailbox.Running
	frame *Frame // nil for a leaf body
	*sighting
}

// sight returns what runs, and notes it. The caller holds mu.
func (m *Mailbox) sight(now time.Duration) (all []run) {
	m.reveal(now)
	k := m.queues.Load()
	if k == nil {
		return nil
	}
	ops := m.config.Rules.Operations
	saw := m.soleSighting
	if m.config.Parallel != nil {
		saw = m.sightingsByRequest()
	}
	for kr := range k.Running() {
		r := kr.Record.(*Request)
		if kr.State() == mailbox.StateRetained {
			all = append(all, run{mailbox.Running{Operation: ops[kr.Op].Name, Arrival: kr.Arrival(), Transaction: kr.Held(), Held: true}, r.frame, &sighting{reported: true}})
			continue
		}
		s := saw(r, now)
		one := mailbox.Running{Operation: ops[r.Op].Name, Arrival: r.Arrival(), Age: max(now-r.since, 0), For: now - s.at}
		if t := transactionOf(kr); t != nil {
			one.Transaction = t.Named.String()
		}
		all = append(all, run{one, r.frame, s})
	}
	for op, n := range k.Untracked() {
		for range n {
			s := saw(nil, now)
			all = append(all, run{mailbox.Running{Operation: ops[op].Name, Age: now - s.at, For: now - s.at}, nil, s})
		}
	}
	return all
}

// reveal tells the scheduler of the bodies that have come by the fast path and run. The caller
// holds mu.
func (m *Mailbox) reveal(now time.Duration) {
	if m.config.Parallel == nil {
		for {
			w := m.Word.Load()
			if !w.Has(word.Held) || w.Has(word.Engaged) {
				return
			}
			if m.Word.CompareAndSwap(w, w.Engage()) {
				m.scheduler().Begin(w.Operation())
				return
			}
		}
	}
	if w := m.Word.Load(); w.Counting() && m.engage() {
		m.parallel().untrackedSighting = &sighting{at: now} // there was none, as the word was shared
		m.release()                                         // there is nothing to decide: nothing waits
	}
}

// soleSighting returns the note about what runs, where one request runs at a time. It makes the
// note if there is none.
func (m *Mailbox) soleSighting(_ *Request, now time.Duration) *sighting {
	s, _ := m.scheduler().Note.(*sighting)
	if s == nil {
		s = &sighting{at: now}
		m.scheduler().Note = s
	}
	return s
}

// sightingsByRequest returns a function for a parallel object. The function returns the note
// about a request that runs, or, for nil, the note about the bodies in counters; it makes the
// note if there is none.
func (m *Mailbox) sightingsByRequest() func(*Request, time.Duration) *sighting {
	x := m.parallel()
	before := x.sightings
	x.sightings = nil // they may be of requests that run no more
	return func(r *Request, now time.Duration) *sighting {
		if r == nil {
			if x.untrackedSighting == nil {
				x.untrackedSighting = &sighting{at: now}
			}
			return x.untrackedSighting
		}
		s := before[r]
		if s == nil || s.arrival != r.Arrival() {
			s = &sighting{at: now, arrival: r.Arrival()}
		}
		if x.sightings == nil {
			x.sightings = map[*Request]*sighting{}
		}
		x.sightings[r] = s
		return s
	}
}

// dropSighting drops the note about a request whose body has returned and asks for a requeue. The
// caller holds mu.
func (x *parallelState) dropSighting(r *Request) { delete(x.sightings, r) }

// keepsUntracked reports whether the bodies in counters are to stay known to the scheduler, as
// there is a note about them. The caller holds mu.
func (m *Mailbox) keepsUntracked() bool {
	x := m.parallel()
	if x.untrackedSighting == nil {
		return false
	}
	for _, n := range x.untracked {
		if n > 0 {
			return true
		}
	}
	x.untrackedSighting = nil
	return false
}
