package engine

import "github.com/sluice-go/sluice/internal/word"

// The fast path of a parallel object is the shared mode of its word. It is set and left under mu
// only, by setShared and setExclusive. These move the bodies that the counters count out of the
// scheduler (Abandon) and into it (Begin).
//
// The scheduler may know of other bodies that run: those of requests that have waited. All of an
// operation's together are one more in its counter, their placeholder, which keeps out what
// conflicts with them. The last of them that ends takes it away, under mu.
//
// A body that ends leaves its counter by a swap, or tells the scheduler of its end (W5), under
// mu. Meanwhile the word may have become shared again; so it looks once more under mu, where that
// cannot change.

// counters gives counters to leaf operations. There are none if every start takes a thread that
// has to be reserved or counted, or is to be seen.
func (c *Config) counters() []word.Counter {
	n := len(c.Rules.Operations)
	if c.Parallel.Threads != nil || c.Parallel.Limit > 0 || c.NoFastPath || c.Counted || c.Rules.Log != nil {
		return make([]word.Counter, n)
	}
	return word.Counters(n, func(op int) bool {
		return c.Parallel.Leaf(op) && !c.Rules.Conflicts.Narrowed(op) && !c.Rules.Operations[op].Family
	}, c.Rules.Conflicts.Between)
}

// Admit lets a leaf body in, on the goroutine of its caller, which runs the body and then calls
// Depart; or Look, and perhaps Yield. A caller that is inside the object is not let in: the body
// that it is in takes a context, has no counter, and so keeps the object out of shared mode.
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

// Depart lets go of a body that Admit has let in. It reports false if the scheduler has been told
// of the body meanwhile; then Look and Yield are left to do. With mu held, that is final.
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
	m.parallel().untracked[l.Op]--
	if l.Changed {
		m.scheduler().End(l.Op, l.Opens)
	} else {
		m.scheduler().Abandon(l.Op)
	}
}

// setExclusive is engage for a parallel object. If no goroutine decides, the caller, which holds
// mu, becomes the owner, and the scheduler has been told of all that runs.
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
		x := m.parallel()
		for op, c := range m.config.shared {
			n := c.Of(w)
			if x.placeholders[op] {
				x.placeholders[op] = false
				n--
			}
			for range n {
				m.scheduler().Begin(op)
				x.untracked[op]++
			}
		}
		return true
	}
}

// setShared returns the word with which the owner, which holds mu, is about to give the object
// back. It opens the fast path in w, if nothing waits, all that runs has a counter, and the
// object is neither closed, suspended nor observed; and no transaction has called it, of which the counters
// know nothing.
func (m *Mailbox) setShared(w word.Word) word.Word {
	x, k := m.parallel(), m.queues.Load()
	if w.Has(word.Parked) || !m.config.counts || m.closed != nil || m.suspended() != nil || m.observed() || k != nil && (k.Waits() || k.Transacts()) || m.keepsUntracked() {
		return w
	}
	if k == nil {
		return w | word.Shared // nothing has ever waited
	}
	full := w | word.Shared
	for op, c := range m.config.shared {
		n := x.untracked[op]
		if k.RunsOf(op) > n {
			n++ // the placeholder of the others
		}
		if n >= word.Most || n > 0 && !c.Exists() {
			return w
		}
		full += c.Times(n)
	}
	for op := range m.config.shared {
		for ; x.untracked[op] > 0; x.untracked[op]-- {
			k.Abandon(op) // it still runs, but the scheduler need not know of it any more
		}
		x.placeholders[op] = k.RunsOf(op) > 0
	}
	return full
}

// dropPlaceholders takes away the placeholders of operations of which the scheduler knows no
// running body any more. It does so, and reports true, if the word is shared and nothing waits:
// then nothing has been waiting for an end, and there is nothing to decide. The caller holds mu.
func (m *Mailbox) dropPlaceholders() bool {
	k := m.scheduler()
	if !m.Word.Load().Has(word.Shared) || k.Waits() {
		return false
	}
	x := m.parallel()
	for op := range x.placeholders {
		if x.placeholders[op] && k.RunsOf(op) == 0 {
			x.placeholders[op] = false
			m.Depart(op)
		}
	}
	return true
}
