package engine

import "github.com/sluice-go/sluice/internal/word"

// The fast path of an object that fans out is the shared mode of its word. It is set and left under
// mu only, by setShared and setExclusive, which move the bodies that the counters count out of the
// scheduler (Abandon) and into it (Begin).
//
// The scheduler may know of others that run: those that have waited. All of an operation's
// are one more in its counter, their double, which keeps out what conflicts with them. The last
// of them that ends takes it away, under mu.
//
// A body that ends leaves its counter by a swap, or tells the scheduler of its end (W5), under mu.
// Meanwhile the word may have become shared again; so it looks once more under mu, where that
// cannot change.

// counters gives counters to leaf operations. There are none if every start takes a thread that has
// to be reserved or counted, or is to be seen.
func (c *Config) counters() []word.Counter {
	n := len(c.Rules.Operations)
	if c.Fan.Threads != nil || c.Fan.Limit > 0 || c.NoFastPath || c.Counted || c.Rules.Log != nil {
		return make([]word.Counter, n)
	}
	return word.Counters(n, func(op int) bool {
		return c.Fan.Leaf(op) && !c.Rules.Conflicts.Narrowed(op) && !c.Rules.Operations[op].Family
	}, c.Rules.Conflicts.Between)
}

// Admit lets a leaf body in, on the goroutine of its caller, which runs the body and then
// calls Depart; or Look, and perhaps Yield. A caller that is inside the object is not let in:
// its body takes a context, has no counter, and so keeps the object out of shared mode.
func (m *Mailbox) Admit(op int) bool {
	c := m.config.shared[op]
	for {
		w := m.Word.Load()
		next, ok := w.Enter(c)
		if !ok || m.Word.CompareAndSwap(w, next) {
			return ok
		}
	}
}

// Depart lets go of a body that Admit has let in, and reports false if the scheduler has been
// told of it meanwhile; then Look and Yield are left. With mu held, that is final.
func (m *Mailbox) Depart(op int) bool {
	c := m.config.shared[op]
	for {
		w := m.Word.Load()
		next, ok := w.Leave(c)
		if !ok || m.Word.CompareAndSwap(w, next) {
			return ok
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

// setExclusive is engage for an object that fans out: if no goroutine decides, the caller, which
// holds mu, is to, and the scheduler has been told of all that runs.
func (m *Mailbox) setExclusive() (owner bool) {
	for {
		w := m.Word.Load()
		if w.Has(word.Held) {
			return false
		}
		if !m.Word.CompareAndSwap(w, w.Exclusive()) {
			continue // a body has come or gone
		}
		if !w.Has(word.Shared) {
			return true
		}
		x := m.fanned()
		for op, c := range m.config.shared {
			n := c.Of(w)
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

// setShared returns the word w, with which the owner, which holds mu, is about to give the object
// back; and opens the fast path in it, if nothing waits, all that runs has a counter, and the object
// is neither closed, suspended nor observed.
func (m *Mailbox) setShared(w word.Word) word.Word {
	x, k := m.fanned(), m.queues.Load()
	if w.Has(word.Parked) || !m.config.counts || m.closed != nil || m.suspended() != nil || m.observed() || k != nil && k.Waits() || m.crowded() {
		return w
	}
	if k == nil {
		return w | word.Shared // nothing has ever waited
	}
	full := w | word.Shared
	for op, c := range m.config.shared {
		n := x.unseen[op]
		if k.RunsOf(op) > n {
			n++ // the double of the others
		}
		if n >= word.Most || n > 0 && !c.Exists() {
			return w
		}
		full += c.Times(n)
	}
	for op := range m.config.shared {
		for ; x.unseen[op] > 0; x.unseen[op]-- {
			k.Abandon(op) // it still runs, but is none of the scheduler's business any more
		}
		x.doubles[op] = k.RunsOf(op) > 0
	}
	return full
}

// single takes the doubles of operations of which nothing runs any more that the scheduler knows
// of, and reports true, if the word is shared and nothing waits: then nothing has been waiting
// for an end, and there is nothing to decide. The caller holds mu.
func (m *Mailbox) single() bool {
	k := m.scheduler()
	if !m.Word.Load().Has(word.Shared) || k.Waits() {
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
