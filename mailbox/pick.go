package mailbox

import (
	"cmp"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// candidate is a request that is considered.
type candidate struct {
	r    *Request
	wall bool // may not start now, and stands in the way of what conflicts with it
	due  bool // has been bypassed as often as allowed
	each bool // is considered by itself: whether it is open, or a wall, is to be found out
}

// pick returns the request inside that starts next, or nil.
func (k *Scheduler) pick() *Request {
	switch {
	case k.inside.n == 0:
		return nil
	case k.walks:
		return k.pickEach()
	case k.single && k.inside.n == 1:
		op := k.inside.Next(0)
		if k.barred(op) {
			return nil
		}
		r := k.firstOpen(op)
		if r != nil && k.gated.n > 0 && k.outside(r) != nil {
			return nil
		}
		return r
	}
	return k.pickOne()
}

// pickOne is pick where requests have to be compared.
func (k *Scheduler) pickOne() *Request {
	choosing := k.rules.Policy != nil && k.rules.Policy.Choose != nil
	h := k.heads[:0]
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		h = k.candidates(h, op, choosing)
	}
	k.heads = h
	if k.failed.first != nil { // it will be asked again, and should not be asked twice
		return nil
	}
	r := k.pickOf(h, choosing)
	clear(h) // pin nobody; not deferred, as after Misjudged the scheduler is somebody else's
	return r
}

func (k *Scheduler) pickOf(h []candidate, choosing bool) *Request {
	if !k.sortCandidates(h) {
		return nil
	}
	k.eligible = k.eligible[:0]
	clear(k.passed)
	for _, c := range h {
		behind := k.rules.Conflicts.Row(c.r.Op).Meets(k.passed)
		if c.wall || c.due || !choosing {
			k.passed.Add(c.r.Op)
		}
		if c.wall || behind || k.outside(c.r) != nil {
			continue
		}
		if !choosing || c.due {
			clear(k.eligible)
			return c.r
		}
		k.eligible = append(k.eligible, c.r)
	}
	return k.choose(k.eligible)
}

// candidates appends those of an operation that are considered: the first that is open, or
// may be, and whom the rules put beside it.
func (k *Scheduler) candidates(h []candidate, op int, choosing bool) []candidate {
	first, barred := (*Request)(nil), k.barred(op)
	if barred {
		// It may be open or not: nobody can tell before what runs has ended,
		// unless it was asked since the state last changed.
		first = k.notFalse(op)
	} else {
		first = k.firstOpen(op)
	}
	if first == nil {
		return h
	}
	h = append(h, candidate{r: first, wall: barred, due: k.due(first)})
	if k.rules.MaxBypass > 0 {
		h = k.alsoDue(h, first, !barred)
	}
	if choosing && !barred {
		h = k.alsoOpen(h, first)
	}
	return h
}

// choose has the policy choose.
func (k *Scheduler) choose(eligible []*Request) (r *Request) {
	if len(eligible) == 0 {
		return nil
	}
	i, err := k.rules.Policy.Choose(eligible)
	if err == nil && (i < 0 || i >= len(eligible)) {
		err = &ChoiceError{Policy: k.rules.Policy.Name, Index: i, Eligible: len(eligible)}
	}
	if err != nil {
		k.Misjudged(err, eligible...)
	} else {
		r = eligible[i]
	}
	clear(eligible) // not deferred: see pickOne
	return r
}

// alsoDue appends the requests after first, in its queue, that have been bypassed
// as often as allowed. If it may not ask, it takes those not known to be closed.
// In a line there are none, for nobody is bypassed more often than the one that
// has waited longest, or front has found who is; but a family has several lines,
// and requests with guards of their own may have been open when first was not.
func (k *Scheduler) alsoDue(h []candidate, first *Request, ask bool) []candidate {
	q := &k.queues[first.Op]
	switch {
	case q.each:
		for r, left := q.inside.first, q.due; left > 0; {
			next := r.next
			if k.overtaken(r) {
				left--
				if r != first && (!ask || k.askRequest(r)) && k.mayHold(r) {
					h = append(h, candidate{r: r, wall: !ask, due: true})
				}
			}
			r = next
		}
	case q.members != nil:
		own, failed := q.members[first.Key], k.failed.last
		for n := q.lines.first(); n != nil; {
			l := n.line
			n = n.next()
			if r := k.front(q, l); l != own && k.due(r) && k.lineOpen(q, l, !ask) {
				h = append(h, candidate{r: r, wall: !ask, due: true})
			}
			if k.failed.last != failed && k.rules.Operations[first.Op].Looks&guards.AtWaiting != 0 {
				break // fewer wait now, so that no answer is worth anything
			}
		}
	}
	return h
}

// alsoOpen appends all other requests of first's operation that may start now,
// for a policy that wants to see them. Some may be due, and come before those of
// other operations that are: first may have to stay behind one at the gate that
// arrived before it, which those who have been requeued since need not.
func (k *Scheduler) alsoOpen(h []candidate, first *Request) []candidate {
	q := &k.queues[first.Op]
	for r := q.inside.first; r != nil; {
		next := r.next
		switch o := &k.rules.Operations[first.Op]; {
		case r == first:
		case q.each:
			if !k.overtaken(r) && k.askRequest(r) && r.answer.falsePart == "" {
				h = append(h, candidate{r: r})
			}
		case q.members != nil:
			l, due := q.members[r.Key], k.due(r)
			if due && r == k.front(q, l) {
				break // alsoDue has asked that
			}
			if falsePart, err := k.askLine(q, l, r); err != nil {
				return h // whoever has failed is told first
			} else if falsePart == "" {
				h = append(h, candidate{r: r, due: due})
			}
		case !o.HeadOfLine:
			h = append(h, candidate{r: r, due: k.due(r)})
		}
		r = next
	}
	return h
}

// sortCandidates orders candidates. If the policy fails, so have the requests
// that it was asked about, and it reports false.
func (k *Scheduler) sortCandidates(h []candidate) bool {
	if len(h) < 2 {
		return true
	}
	k.misfits, k.misfit = k.misfits[:0], nil
	slices.SortFunc(h, k.compare)
	if k.misfit == nil {
		return true
	}
	k.Misjudged(k.misfit, k.misfits...)
	clear(k.misfits)
	return false
}

// compare orders candidates: those that have been bypassed often enough first,
// by arrival; then as the policy says; ties by arrival.
func (k *Scheduler) compare(a, b candidate) int {
	switch {
	case a.due && b.due:
		return cmp.Compare(a.r.seq, b.r.seq)
	case a.due:
		return -1
	case b.due:
		return 1
	}
	if p := k.rules.Policy; p != nil && p.Before != nil && k.misfit == nil {
		first, err := p.Before(a.r, b.r, k.last)
		if err == nil && first {
			return -1
		}
		last := false
		if err == nil {
			last, err = p.Before(b.r, a.r, k.last)
		}
		switch {
		case err != nil:
			k.misfit, k.misfits = err, append(k.misfits, a.r, b.r)
		case last:
			return 1
		}
	}
	return cmp.Compare(a.r.seq, b.r.seq)
}
