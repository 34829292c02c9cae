package mailbox

// Bypasses are counted if the rules say so: see R5.
//
// Requests with a guard of their own are counted one by one. Those in a line share their guard,
// so a start while it was open has bypassed all that had arrived before: the line keeps the
// greatest order numbers that did, and those not below a request's own are its bypasses. (A
// request that is admitted later has a greater number than all that have passed the line; one
// that kept its place counts as if it had been there.)
//
// Where all start that are compatible, one that conflicts with what runs may stay in the entry
// queue as long as others pass it. So it is bypassed there, too: by each start that came to the
// entry queue after it, unless its guard is known to be false; and takes its count along. One
// that is requeued is before all in the entry queue (R3), so its start is no bypass of them. In
// a line, therefore, the one with the least number need not be the one that has been bypassed
// most often: so bypasses are counted one by one there, and the front of a line is the first of
// those that are at the bound.

// bypasses returns how often later arrivals started while r waited and
// its guard was open, as far as that is counted.
func (s *Scheduler) bypasses(r *Request) int {
	n := int(r.bypassed)
	if l := s.queues[r.Op].lineOf(r); l != nil {
		for _, seq := range l.passed {
			if seq >= r.seq {
				n++
			}
		}
	}
	return n
}

// Bypassed returns how often later arrivals have started while the guard of a
// waiting request was open, up to the bound; 0 where nothing is counted. Without a bound
// one that has been requeued to a place in front of others, as it kept its own or a policy
// compares them, may count what started there before.
func (s *Scheduler) Bypassed(r *Request) int {
	switch {
	case s.counted == 0:
	case r.state == StateAdmitted:
		return min(s.bypasses(r), s.counted)
	case r.state == StateEntry:
		return min(int(r.bypassed), s.counted)
	}
	return 0
}

// due reports whether a request whose guard holds has been bypassed as often as
// the rules allow; atBound likewise, of those that are counted one by one.
func (s *Scheduler) due(r *Request) bool {
	return s.bound > 0 && s.bypasses(r) >= s.bound
}

func (s *Scheduler) atBound(r *Request) bool {
	return s.bound > 0 && int(r.bypassed) >= s.bound
}

// bypass visits all that have waited longer than r, which is about to start, and could start as
// well: first to evaluate their guards, one of which may fail, and then to count, which
// evaluates nothing (I2). Those that something running conflicts with could start, unless they are
// known to be closed: a stream of functions must not starve an entry whose guard holds.
func (s *Scheduler) bypass(r *Request, how knowledge) {
	for op := s.admitted.Next(0); op >= 0; op = s.admitted.Next(op + 1) {
		q, failed := &s.queues[op], s.failed.last
		single := q.scoped || q.each
		s.visit(q, func(w *Request) bool {
			old := w
			if !single {
				old = q.eldest(q.lineOf(w))
			}
			if old.seq >= r.seq {
				return !single
			}
			switch {
			case how == evaluate:
				s.judge(q, w, evaluate)
			case s.closed(q, w):
			case single:
				s.overtake(w)
			default:
				s.pass(q, w, r.seq)
			}
			return !q.scoped || s.failed.last == failed
		})
	}
	if how == evaluate || !s.rules.AllCompatible {
		return
	}
	for op := s.entering.Next(0); op >= 0; op = s.entering.Next(op + 1) {
		q := &s.queues[op]
		for w := q.entry.first; w != nil && w.seq < r.came && !q.closedEntering(s); w = w.next {
			s.overtake(w)
		}
	}
}

// overtake counts a bypass of r.
func (s *Scheduler) overtake(r *Request) {
	r.bypassed++
	if int(r.bypassed) != s.bound {
		return
	}
	q := &s.queues[r.Op]
	if r.state == StateEntry {
		q.dueEntering++
	} else {
		q.due++
	}
	s.found = true // it is before others from now on
}

// pass counts a bypass of those in the line of w that arrived up to seq. Only the greatest
// numbers are kept, as many as are counted: of those, as many are not below a request's own
// as have passed it, up to that.
func (s *Scheduler) pass(q *queue, w *Request, seq uint64) {
	l := q.lineOf(w)
	if s.rules.AllCompatible {
		for r := q.in.first; r != nil && r.seq < seq; r = r.next {
			if q.lineOf(r) == l {
				s.overtake(r)
			}
		}
		return
	}
	seq = min(seq, l.latest)
	if len(l.passed) < s.counted {
		l.passed = append(l.passed, seq)
		return
	}
	least := 0
	for i, n := range l.passed {
		if n < l.passed[least] {
			least = i
		}
	}
	l.passed[least] = max(l.passed[least], seq)
}

// frontDue returns the first of a line, by its order number, that is at the bound; or nil.
func (s *Scheduler) frontDue(q *queue, l *line) *Request {
	if q.due == 0 {
		return nil
	}
	for r := q.in.first; r != nil; r = r.next {
		if s.atBound(r) && q.lineOf(r) == l {
			return r
		}
	}
	return nil
}

// cameIn is called when r, which was bypassed in the entry queue, has been admitted.
func (s *Scheduler) cameIn(q *queue, r *Request) {
	if s.atBound(r) {
		q.dueEntering--
		q.due++
	}
}

// left is called when r leaves where it was counted.
func (s *Scheduler) left(q *queue, r *Request) {
	if s.atBound(r) {
		if r.state == StateEntry {
			q.dueEntering--
		} else {
			q.due--
		}
	}
	q.longest = max(q.longest, s.Bypassed(r))
}

// forgetPassed forgets what has passed none that is left of the line.
func (l *line) forgetPassed(eldest *Request) {
	kept := l.passed[:0]
	for _, seq := range l.passed {
		if eldest != nil && seq >= eldest.seq {
			kept = append(kept, seq)
		}
	}
	l.passed = kept
}
