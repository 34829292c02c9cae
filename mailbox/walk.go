package mailbox

import (
	"cmp"
	"slices"
)

// candidate is a request that is considered, for its line.
type candidate struct {
	r        *Request
	conflict bool // with what runs: it cannot start, and stands before others
	due      bool // it has been bypassed as often as allowed
	unjudged bool // it is of a scoped operation: judged when it is its turn
}

// pick returns the admitted request that starts next, or nil: the first, in the order of
// consideration, that judge lets start and that passes none before it.
func (s *Scheduler) pick() *Request {
	if s.admitted.n == 0 {
		return nil
	}
	if s.admitted.n == 1 && s.lean { // its first line is the only candidate
		q := &s.queues[s.admitted.Next(0)]
		if s.barred(q) {
			return nil
		}
		r := s.first(q, &q.in, evaluate)
		if r != nil && s.behindEntering(r, evaluate) {
			return nil
		}
		return r
	}
	h := s.heads[:0]
	for op := s.admitted.Next(0); op >= 0; op = s.admitted.Next(op + 1) {
		q, n := &s.queues[op], len(h)
		h = s.candidates(h, q, evaluate, s.bound > 0)
		if s.choosing && len(h) > n && !h[n].unjudged && !h[n].conflict {
			h = s.eligibleBeside(h, q, h[n].r)
		}
	}
	s.heads = h
	if s.failed.first != nil || len(h) == 0 || !s.sort(h) { // what has failed is told first, and evaluated once
		return nil
	}
	asks := s.asks
	r, behind := s.walk(h)
	if r == nil && behind && s.failed.first == nil && len(s.eligible) == 0 && s.asks != asks {
		// A line that may have been open is known to be closed by now, as a guard that it
		// shares has been evaluated for another.
		r, _ = s.walk(h)
	}
	if r == nil && s.failed.first == nil && len(s.eligible) > 0 {
		r = s.choose(s.eligible)
	}
	s.clearScratch(h)
	return r
}

// clearScratch pins no request. It is not deferred: after GuardFailed or PolicyFailed the scheduler
// belongs to another goroutine (I1).
func (s *Scheduler) clearScratch(h []candidate) {
	clear(h)
	clear(s.way)
	clear(s.eligible)
}

// candidates appends the lines of an operation that are considered: the first that is not closed,
// and with dues the others that are due. Of a scoped operation these are all requests that are
// not known to be closed.
func (s *Scheduler) candidates(h []candidate, q *queue, how knowledge, dues bool) []candidate {
	if q.scoped {
		s.visit(q, func(r *Request) bool {
			if s.closed(q, r) {
				return !q.shared // else so are the others
			}
			h = append(h, candidate{r: r, due: s.due(r), unjudged: true})
			return true
		})
		return h
	}
	conflict := s.barred(q)
	if conflict && how == evaluate {
		// A line may be open or not: that cannot be told before what runs has ended, unless
		// it was asked since the state last changed.
		how = recall
	}
	first := s.first(q, &q.in, how)
	if first == nil {
		return h
	}
	h = append(h, candidate{r: first, conflict: conflict, due: s.due(first)})
	if dues && !q.one && (q.family || q.due > 0) {
		failed := s.failed.last
		s.visit(q, func(r *Request) bool {
			// In a line there is no other: none is bypassed more often than the one that has waited
			// longest. But a family has several, and requests with guards of their own may have
			// been open when the first was not.
			if r != first && s.due(r) && s.holds(q, r, how) {
				h = append(h, candidate{r: r, conflict: conflict, due: true})
			}
			return s.failed.last == failed || !q.family || !q.counts // else fewer wait, and no result stands
		})
	}
	return h
}

// eligibleBeside appends all other requests of first's operation that may start now,
// for a policy that wants to see them. Some may be due, and come before those of
// other operations that are: first may have to stay behind one in the entry queue that
// arrived before it, which those that have been requeued since need not.
func (s *Scheduler) eligibleBeside(h []candidate, q *queue, first *Request) []candidate {
	if q.headed {
		return h
	}
	failed := s.failed.last
	for r := q.in.first; r != nil; {
		next, due := r.next, s.due(r)
		// The fronts of lines that are due have been considered above.
		above := r == first || due && (q.each || q.family && r == s.front(q, &q.in, q.lineOf(r)))
		if !above && (q.one || s.holds(q, r, evaluate)) {
			h = append(h, candidate{r: r, due: due})
		}
		if q.family && s.failed.last != failed {
			break // what has failed is told first
		}
		r = next
	}
	return h
}

// walk considers the candidates in their order, and returns the one that starts (R4); or nil, and
// leaves those that are eligible, for a policy that chooses. It reports whether one could start
// but for those before it.
func (s *Scheduler) walk(h []candidate) (start *Request, behindAny bool) {
	all := s.rules.AllCompatible
	clear(s.way)
	s.way = s.way[:0]
	clear(s.passed)
	s.eligible = s.eligible[:0]
	for _, c := range h {
		q := &s.queues[c.r.Op]
		if c.unjudged {
			v := s.judge(q, c.r, evaluate)
			if s.failed.first != nil {
				return nil, false
			}
			if v.closed {
				continue
			}
			c.conflict = v.conflict
		}
		behind := false
		if nested := s.nested(c.r); !c.conflict && !nested {
			behind = s.passes(q, c.r) || s.behindEntering(c.r, evaluate)
			wait := all && !behind && s.entersBefore(c.r)
			if s.failed.first != nil {
				return nil, false
			}
			if wait { // until that is considered, too
				clear(s.eligible)
				s.eligible = s.eligible[:0]
				return nil, behindAny
			}
		}
		if c.due || !all && (c.conflict || !s.choosing) {
			if q.scoped {
				s.way = append(s.way, c.r)
			} else {
				s.passed.Add(c.r.Op)
			}
		}
		behindAny = behindAny || behind
		if c.conflict || behind {
			continue
		}
		if !s.choosing || c.due {
			clear(s.eligible)
			s.eligible = s.eligible[:0]
			return c.r, behindAny
		}
		s.eligible = append(s.eligible, c.r)
	}
	return nil, behindAny
}

// passes reports whether r conflicts with one of those considered before it: of the operations in
// passed, and those in the way.
func (s *Scheduler) passes(q *queue, r *Request) bool {
	if q.row.Meets(s.passed) {
		return true
	}
	for _, w := range s.way {
		if s.conflict(r, w, evaluate) {
			return true
		}
	}
	return false
}

// choose has the policy choose. If it fails, so have all that it was offered.
func (s *Scheduler) choose(eligible []*Request) *Request {
	i, err := s.rules.Policy.Choose(eligible)
	if err == nil && (i < 0 || i >= len(eligible)) {
		err = &ChoiceError{Policy: s.rules.Policy.Name, Index: i, Eligible: len(eligible)}
	}
	if err != nil {
		s.PolicyFailed(err, eligible...)
		return nil
	}
	return eligible[i]
}

// sort orders candidates. If the policy fails, so have the requests that it was asked about, and
// it reports false.
func (s *Scheduler) sort(h []candidate) bool {
	if len(h) < 2 {
		return true
	}
	s.policyFailed, s.comparedLast = nil, [2]*Request{}
	slices.SortFunc(h, s.compare)
	if s.policyFailed == nil {
		return true
	}
	s.PolicyFailed(s.policyFailed, s.comparedLast[:]...)
	s.policyFailed, s.comparedLast = nil, [2]*Request{}
	return false
}

// compare orders candidates (R6): those that have been bypassed often enough first,
// by arrival; then as the policy says; ties by arrival.
func (s *Scheduler) compare(a, b candidate) int {
	if p := s.rules.Policy; p != nil && p.Before != nil && !a.due && !b.due && s.policyFailed == nil {
		first, err := p.Before(a.r, b.r, s.last)
		if err == nil && first {
			return -1
		}
		last := false
		if err == nil {
			last, err = p.Before(b.r, a.r, s.last)
		}
		switch {
		case err != nil:
			s.policyFailed, s.comparedLast = err, [2]*Request{a.r, b.r}
		case last:
			return 1
		}
	}
	switch {
	case a.due == b.due:
		return cmp.Compare(a.r.seq, b.r.seq)
	case a.due:
		return -1
	}
	return 1
}

// guess is compare for an explanation, which asks no policy that may fail:
// one that chooses, or orders by a user's word, is taken to go by arrival.
func (s *Scheduler) guess(a, b candidate) int {
	p := s.rules.Policy
	if p == nil || !p.Fallible || a.due || b.due {
		return s.compare(a, b)
	}
	if p.Within && a.r.Op == b.r.Op && a.r.placed() && b.r.placed() && !s.queues[a.r.Op].family {
		return cmp.Compare(position(a.r.node), position(b.r.node))
	}
	return cmp.Compare(a.r.seq, b.r.seq)
}

// within is the order of consideration of two requests of one operation.
func (s *Scheduler) within(a, b *place) (bool, error) {
	if p := s.rules.Policy; p != nil && p.Within {
		first, err := p.Before(a.r, b.r, -1)
		if first || err != nil {
			return first, err
		}
		if last, err := p.Before(b.r, a.r, -1); last || err != nil {
			return false, err
		}
	}
	return a.r.seq < b.r.seq, nil
}

// arrived is the order of arrival.
func arrived(a, b *place) (bool, error) { return a.r.seq < b.r.seq, nil }
