package engine

// The fast path of an object that fans out: requests that are compatible with all that run
// come and go by one swap each, as long as nobody waits and nobody wants to know.
//
//	 63                              8        5      4         0
//	┌─────────┬─────────┬─────────┬───────┬──────┬──────┬───────┐
//	│ lane 7  │   ...   │ lane 0  │       │ wide │ slow │ flags │
//	└─────────┴─────────┴─────────┴───────┴──────┴──────┴───────┘
//
// The word of such an object has no tag, and slow is always set, so that no other fast path
// takes it. A lane counts the bodies of one operation that have come this way and run now.
//
// # Narrow and wide
//
// As long as wide is set nobody waits. Wide is cleared and set under mu only, by narrow and
// widen, which move the bodies in the lanes into the scheduler (Begin) and out of it again
// (Abandon).
//
// The scheduler may know of others that run: those that have waited. All of an operation's are
// one more in its lane, their double, which keeps out what conflicts with them. The last of
// them that ends takes it away, under mu.
//
// A body is kept apart from those that it conflicts with: it comes in by a swap of the whole
// word, in which wide is set and the lanes of all those are empty; whoever comes later by
// a lane finds its own one occupied, and whoever comes by the scheduler is considered when
// narrow has told that of it. The swap also orders the completion of one before the start of
// the next: each is an atomic write of the word that the other has read.
//
// A body that ends leaves its lane by a swap, in which wide is set: then nobody has waited for
// its end up to that point. If wide is not set, it has been told to the scheduler, since the last
// narrow, and takes mu to tell that of its end. In between wide may have been set again; it
// looks once more under mu, where that cannot change.
//
// No wake-up is lost: who arrives makes the object narrow before he is considered. A body
// that has left its lane before was not in his way; one that has not finds the word narrow,
// and tells the scheduler, which is asked then.

const (
	wide     uint64 = 1 << 5
	lanes           = 8
	laneBits        = 7
	laneAt          = 8
	crowd           = 1 << (laneBits - 1) // so many in one lane let no more in
)

// lane is the part of an operation in the word. The zero lane is that of one without.
type lane struct {
	at   int    // of the lane's lowest bit
	one  uint64 // the body of one request; 0 if there is no lane
	bars uint64 // keeps the operation out: what it conflicts with, and a crowd of its own
}

// in returns how many there are in the lane.
func (l lane) in(w uint64) int {
	if l.one == 0 {
		return 0
	}
	return int(w >> l.at & (1<<laneBits - 1))
}

// lanes gives lanes to the leaf operations: to those first that are compatible with most
// others. There are none if every start takes a thread that has to be reserved or counted,
// or is to be seen.
func (c *Config) lanes() []lane {
	n := len(c.Rules.Operations)
	all := make([]lane, n)
	if c.Fan.Threads != nil || c.Fan.Limit > 0 || c.NoFastPath || c.Counted || c.Rules.Log != nil {
		return all
	}
	free := func(op int) (compatible int) {
		for other := range n {
			if !c.Rules.Conflicts.Between(op, other) {
				compatible++
			}
		}
		return compatible
	}
	for at := laneAt; at < laneAt+lanes*laneBits; at += laneBits {
		best := -1
		for op := range n {
			if all[op].one == 0 && c.Fan.Leaf(op) && !c.Rules.Conflicts.Narrowed(op) && !c.Rules.Operations[op].Family && (best < 0 || free(op) > free(best)) {
				best = op
			}
		}
		if best < 0 {
			break
		}
		all[best] = lane{at: at, one: 1 << at}
	}
	for op := range n {
		if all[op].one == 0 {
			continue
		}
		all[op].bars = crowd << all[op].at
		for other := range n {
			if all[other].one != 0 && c.Rules.Conflicts.Between(op, other) {
				all[op].bars |= (1<<laneBits - 1) << all[other].at
			}
		}
	}
	return all
}

// Admit lets a leaf body in, on the goroutine of its caller, who runs the body, and then
// calls Depart; or Look, and perhaps Yield. A caller that is inside the object is not let in:
// he is in the middle of a body that takes a context, which has no lane, so that the object is
// not wide as long as that runs.
func (m *Mailbox) Admit(op int) bool {
	l := m.config.wide[op]
	for l.one != 0 {
		w := m.Word.Load()
		if w&wide == 0 || w&l.bars != 0 {
			return false
		}
		if m.Word.CompareAndSwap(w, w+l.one) {
			return true
		}
	}
	return false
}

// Depart lets go of a body that Admit has let in, and reports false if the scheduler has been
// told of it meanwhile; then Look and Yield are left. With mu held, that is final.
func (m *Mailbox) Depart(op int) bool {
	one := m.config.wide[op].one
	for {
		w := m.Word.Load()
		if w&wide == 0 {
			return false
		}
		if m.Word.CompareAndSwap(w, w-one) {
			return true
		}
	}
}

// departed tells the scheduler of the end of a body that it has been told of. The caller holds
// mu.
func (m *Mailbox) departed(l Leaving) {
	m.fanned().unseen[l.Op]--
	if l.Changed {
		m.scheduler().End(l.Op, l.Opens)
	} else {
		m.scheduler().Abandon(l.Op)
	}
}

// narrow is engage for an object that fans out: if nobody decides, the caller, who holds mu,
// is to, and the scheduler has been told of all that runs.
func (m *Mailbox) narrow() (owner bool) {
	for {
		w := m.Word.Load()
		if w&held != 0 {
			return false
		}
		if !m.Word.CompareAndSwap(w, w&(slow|parked|recheck)|held|engaged) {
			continue // somebody has come or gone
		}
		if w&wide == 0 {
			return true
		}
		x := m.fanned()
		for op, l := range m.config.wide {
			n := l.in(w)
			if x.doubles[op] {
				x.doubles[op] = false
				n--
			}
			for range n {
				m.scheduler().Begin(op)
				x.unseen[op]++
			}
		}
		return true
	}
}

// widen returns the word w, with which the owner, who holds mu, is about to give the object
// back; and opens the fast path in it, if nobody waits, all that runs has a lane, and nothing
// is the matter with the object.
func (m *Mailbox) widen(w uint64) uint64 {
	x, k := m.fanned(), m.queues.Load()
	if w&parked != 0 || !m.config.hasLanes || m.closed != nil || m.suspended() != nil || m.observed() || k != nil && k.Waits() || m.crowded() {
		return w
	}
	if k == nil {
		return w | wide // nobody has ever waited
	}
	full := w | wide
	for op, l := range m.config.wide {
		n := x.unseen[op]
		if k.RunsOf(op) > n {
			n++ // the double of the others
		}
		if n >= crowd || n > 0 && l.one == 0 {
			return w
		}
		full += uint64(n) * l.one
	}
	for op := range m.config.wide {
		for ; x.unseen[op] > 0; x.unseen[op]-- {
			k.Abandon(op) // it still runs, but is none of the scheduler's business any more
		}
		x.doubles[op] = k.RunsOf(op) > 0
	}
	return full
}

// single takes the doubles of operations of which nothing runs any more that the scheduler knows
// of, and reports true, if the object is wide and nobody waits: then nobody has been waiting
// for an end, and there is nothing to decide. The caller holds mu.
func (m *Mailbox) single() bool {
	k := m.scheduler()
	if m.Word.Load()&wide == 0 || k.Waits() {
		return false
	}
	x := m.fanned()
	for op := range x.doubles {
		if x.doubles[op] && k.RunsOf(op) == 0 {
			x.doubles[op] = false
			m.Depart(op)
		}
	}
	return true
}
