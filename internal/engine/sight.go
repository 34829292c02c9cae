package engine

import (
	"time"

	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// How long a body has run is found out by looking twice, as nothing on the way of a request
// reads the clock: a look notes what runs, and the next one finds the note, unless another run
// has begun meanwhile.
//
// # Why the same run is recognised
//
// A run that the scheduler knows of ends, and another begins, by steps of the scheduler, under mu. So
// where one request runs at a time, a note that the scheduler keeps until the next run begins is
// about the run that it was made for. Where several do, the note is found by the request and its
// arrival; a requeue here, which may keep the arrival, drops it.
//
// A run by the fast path is first made known to the scheduler, as an arrival would: its owner then
// gives the object back under mu, and not by a swap. Of those in counters only the number is
// known; but while the word is exclusive none comes by a counter, so that those that are left were
// all there when the note was made. As long as there are any, and a note, setShared leaves the word
// exclusive.

// sighting is a note about a body that runs.
type sighting struct {
	at       time.Duration // when it was first seen, on Now's clock
	arrival  uint64        // of the request
	reported bool          // to run for too long
}

// run is a body that runs, as a look finds it.
type run struct {
	mailbox.Running
	frame *Frame // nil of a leaf body
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
	saw := m.alone
	if m.config.Fan != nil {
		saw = m.amongOthers()
	}
	for kr := range k.Running() {
		r := kr.Record.(*Request)
		s := saw(r, now)
		all = append(all, run{mailbox.Running{
			Operation: ops[r.Op].Name, Arrival: r.Arrival(), Age: max(now-r.since, 0), For: now - s.at,
		}, r.frame, s})
	}
	for op, n := range k.Unseen() {
		for range n {
			s := saw(nil, now)
			all = append(all, run{mailbox.Running{Operation: ops[op].Name, Age: now - s.at, For: now - s.at}, nil, s})
		}
	}
	return all
}

// reveal makes known to the scheduler what has come by the fast path and runs. The caller holds mu.
func (m *Mailbox) reveal(now time.Duration) {
	if m.config.Fan == nil {
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
		m.fanned().crowd = &sighting{at: now} // there was none, as the word was shared
		m.release()                           // there is nothing to decide: nothing waits
	}
}

// alone returns the note about what runs, where one request does at a time.
func (m *Mailbox) alone(_ *Request, now time.Duration) *sighting {
	s, _ := m.scheduler().Note.(*sighting)
	if s == nil {
		s = &sighting{at: now}
		m.scheduler().Note = s
	}
	return s
}

// amongOthers returns what returns the note about a request that runs at an object that fans out,
// or, for nil, that about those in counters.
func (m *Mailbox) amongOthers() func(*Request, time.Duration) *sighting {
	x := m.fanned()
	before := x.sightings
	x.sightings = nil // of those that run no more
	return func(r *Request, now time.Duration) *sighting {
		if r == nil {
			if x.crowd == nil {
				x.crowd = &sighting{at: now}
			}
			return x.crowd
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

// forget drops the note about a request whose body has returned, and asks for another turn. The
// caller holds mu.
func (x *fanned) forget(r *Request) { delete(x.sightings, r) }

// crowded reports whether the bodies in counters are to stay known to the scheduler: there is a note
// about them. The caller holds mu.
func (m *Mailbox) crowded() bool {
	x := m.fanned()
	if x.crowd == nil {
		return false
	}
	for _, n := range x.unseen {
		if n > 0 {
			return true
		}
	}
	x.crowd = nil
	return false
}
