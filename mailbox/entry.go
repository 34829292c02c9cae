package mailbox

import "slices"

// The entry queue: see R3.

// admit admits requests, in order of arrival, until one may start, or opens a guard over waiting
// counts, or none is left that may enter. So what is requeued before that comes before those that
// are still outside. If a policy compares the requests, all are admitted. A Try is decided on the
// spot and returned. More reports whether any request entered.
func (s *Scheduler) admit() (r *Request, err error, more bool) {
	for together := -1; ; { // the operation whose requests start by one decision
		r := s.entrant(true)
		switch {
		case s.failed.first != nil:
			return nil, nil, true
		case r == nil:
			return nil, nil, more
		}
		if r.Try && s.rules.AllCompatible {
			if other := s.entrant(false); other != nil {
				r = other // it may come before the Try: first of all they are considered
			} else if more || s.failed.first != nil {
				return nil, nil, true
			}
		}
		if together >= 0 && (r.Op != together || r.Try) {
			return nil, nil, true
		}
		if r.Try {
			decided, err := s.try(r)
			if !decided {
				return nil, nil, true // it is considered again, when that can be
			}
			return r, err, true
		}
		if !more {
			s.older = s.entered // those that are admitted from here on come together
		}
		s.letIn(r)
		more = true
		if s.watchful && s.countsOpened() || s.failed.first != nil {
			return nil, nil, true
		}
		q := &s.queues[r.Op]
		if s.compares || s.closed(q, r) {
			continue
		}
		if q.scoped && q.each { // or else pick would look at all of these again, for each
			if open := s.holds(q, r, evaluate); s.failed.first != nil {
				return nil, nil, true
			} else if !open {
				continue
			}
		}
		if s.tries > 0 && !s.rules.AllCompatible {
			s.refuseBehind(r)
		} else if q.together {
			together = r.Op
			continue
		}
		return nil, nil, true
	}
}

// entrant returns the first request in the entry queue that nothing which runs conflicts with, or
// with tries false the first that is no Try; or nil, also if a predicate fails.
func (s *Scheduler) entrant(tries bool) (first *Request) {
	for op := s.entering.Next(0); op >= 0; op = s.entering.Next(op + 1) {
		q := &s.queues[op]
		if !q.scoped && s.barred(q) {
			continue
		}
		for r := q.entry.first; r != nil && (first == nil || r.seq < first.seq); {
			next := r.next // a predicate that fails takes r with it
			if (tries || !r.Try) && (!q.scoped || !s.blocked(q, r, evaluate)) {
				first = r
				break
			}
			if s.failed.first != nil {
				return nil
			}
			r = next
		}
	}
	return first
}

// entersBefore reports whether one in the entry queue that arrived before r, and conflicts with
// it, could be admitted (R4, where all start that are compatible). It evaluates predicates, which
// may fail.
func (s *Scheduler) entersBefore(r *Request) bool {
	row := s.queues[r.Op].near
	for op := s.entering.Next(0); op >= 0; op = s.entering.Next(op + 1) {
		q := &s.queues[op]
		if !row.Has(op) || q.closedEntering(s) || !q.scoped && s.barred(q) {
			continue
		}
		for w := q.entry.first; w != nil && w.seq < r.came; {
			next := w.next
			if !w.Try && !s.blocked(q, w, evaluate) && s.conflict(r, w, evaluate) {
				return true
			}
			w = next
		}
	}
	return false
}

// letIn admits r from the entry queue.
func (s *Scheduler) letIn(r *Request) {
	q := &s.queues[r.Op]
	s.leaveEntry(q, r)
	if l := q.lineOf(r); l != nil && r.seq <= l.latest {
		// Another has been requeued in front of it.
		r.seq = s.after(max(s.entered, l.latest))
		s.older = r.seq
		s.found = true
	}
	s.enter(r, isAdmitted)
}

// toEntry puts r in its place in the entry queue.
func (s *Scheduler) toEntry(q *queue, r *Request) {
	r.state = StateEntry
	if q.entry.insert(r); q.entry.first == q.entry.last {
		s.entering.join(r.Op)
	}
}

// leaveEntry takes r from the entry queue.
func (s *Scheduler) leaveEntry(q *queue, r *Request) {
	s.passCursors(r)
	s.countTry(q, r, -1)
	if r.came == 0 {
		s.retries = slices.DeleteFunc(s.retries, func(o *Request) bool { return o == r })
	}
	if q.entry.remove(r); q.entry.first == nil {
		s.entering.leave(r.Op)
	}
}

// countsOpened reports whether a guard over waiting counts holds for some request that nothing
// which runs conflicts with.
func (s *Scheduler) countsOpened() (opened bool) {
	for op := s.admitted.Next(0); op >= 0 && !opened; op = s.admitted.Next(op + 1) {
		q := &s.queues[op]
		switch {
		case !q.counts:
		case !q.scoped:
			opened = !s.barred(q) && s.first(q, &q.in, evaluate) != nil
		default:
			failed := s.failed.last
			s.visit(q, func(r *Request) bool {
				opened = s.judge(q, r, evaluate).ready()
				return !opened && s.failed.last == failed
			})
		}
	}
	return opened
}

// retry decides a Try that has been requeued, and which nothing that runs conflicts with. It
// returns nil if there is none, or a guard or predicate has failed.
func (s *Scheduler) retry() (*Request, error) {
	for _, r := range s.retries {
		blocked := s.blocked(&s.queues[r.Op], r, evaluate)
		if s.failed.first != nil {
			return nil, nil
		}
		if blocked {
			continue
		}
		decided, err := s.try(r)
		if !decided {
			return nil, nil
		}
		return r, err
	}
	return nil, nil
}

// try starts r, which is in the entry queue, or says why it would have to wait (R9). It is called
// when nothing that runs conflicts with r.
//
// The guards of others are asked for that, before which it must not start, or which it
// bypasses. If one of these has failed, r stays where it is, and nothing is decided.
func (s *Scheduler) try(r *Request) (decided bool, err error) {
	q, falsePart := &s.queues[r.Op], ""
	s.trying = r
	first, sure := s.firstAhead(r, false)
	if first == nil && sure && r.state != StateFailed && q.guard != "" {
		a := q.resultOf(r)
		if !s.stands(q, r, a) {
			if err = s.ask(q, r, a); q.shared && !s.watched(q, &q.line) {
				a.stamp = 0 // see ask
			}
		}
		falsePart = a.falsePart
	}
	starts := first == nil && err == nil && falsePart == ""
	if starts && s.failed.first == nil && s.counted > 0 {
		s.bypass(r, evaluate)
	}
	s.trying = nil // not deferred (I1)
	switch {
	case r.state == StateFailed, starts && s.failed.first != nil:
		return false, nil
	case starts:
		s.start(r)
		return true, nil
	case err == nil:
		refused := &RefusedError{Operation: s.rules.Operations[r.Op].Name, Guard: falsePart}
		if first != nil {
			refused.Behind = s.rules.Operations[first.Op].Name
		}
		err = refused
	}
	s.leave(r)
	r.state = StateDone
	return true, err
}

// firstAhead returns a request that comes before r, which has not been admitted and which nothing
// that runs conflicts with; or nil, also if one has failed meanwhile, so that nothing is sure. If
// it is known that no admitted one does, only those in the entry queue are looked at.
func (s *Scheduler) firstAhead(r *Request, enteringOnly bool) (first *Request, sure bool) {
	if !enteringOnly {
		sure = s.ahead(r, evaluate, func(w *Request, _ bool) bool { first = w; return false })
	} else if s.entering.n > 0 && !s.nested(r) {
		s.enteringAhead(r, evaluate, func(w *Request) bool { first = w; return false })
	}
	return first, sure
}

// refuseBehind refuses each Try in the entry queue that conflicts with r, which came
// before it, has just been admitted, and starts now, if that is so.
func (s *Scheduler) refuseBehind(r *Request) {
	if s.pick() != r || s.failed.first != nil {
		return
	}
	for op := s.entering.Next(0); op >= 0; op = s.entering.Next(op + 1) {
		q := &s.queues[op]
		if q.tries == 0 || !q.near.Has(r.Op) {
			continue
		}
		for t := q.entry.first; t != nil; {
			next := t.next
			if t.Try && t.came > r.came && !s.nested(t) && !s.blocked(q, t, evaluate) && s.conflict(t, r, evaluate) && t.Waits() {
				s.fail(t, &RefusedError{Operation: s.rules.Operations[op].Name, Behind: s.rules.Operations[r.Op].Name})
			}
			t = next
		}
	}
}

// refuseTries refuses each Try from r on, in its list, as there is no thread for it; unless
// something that runs conflicts with it, and it has a thread.
func (s *Scheduler) refuseTries(r *Request, also bool) (some bool) {
	for r != nil {
		next := r.next
		if r.Try && (also || !s.blocked(&s.queues[r.Op], r, certain)) {
			s.fail(r, &RefusedError{Operation: s.rules.Operations[r.Op].Name})
			some = true
		}
		r = next
	}
	return some
}
