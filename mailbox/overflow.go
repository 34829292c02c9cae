package mailbox

import "slices"

// Bound limits how many requests wait, admitted and in the entry queue. It never turns
// away one that can start at once, nor a Try, which waits for its decision only, nor the rest of a body that
// has suspended: these two are not among those that are counted. The zero Bound sets no limit.
type Bound struct {
	Max      int
	Overflow Overflow
}

// Overflow is what happens to a request that would have to wait in a full queue.
type Overflow uint8

const (
	// Unbounded queues are never full.
	Unbounded Overflow = iota
	// Refuse fails the request.
	Refuse
	// DropOldest fails the one that has waited longest.
	DropOldest
	// Wait makes it wait in the overflow queue, which has no bound, for room or for the
	// moment when it could start at once; but fails it if it is not Patient.
	Wait
)

// String implements fmt.Stringer.
func (o Overflow) String() string {
	return [...]string{"unbounded", "refuse", "drop oldest", "wait"}[o]
}

// exceeded reports whether n requests are more than may wait.
func (b Bound) exceeded(n int) bool { return b.Overflow != Unbounded && n > b.Max }

// queued returns how many requests are admitted and in the entry queue, as far as bounds
// concern them.
func (q *queue) queued() int {
	if q.resumes {
		return 0
	}
	return q.length.all() - q.overflowing - q.tries
}

// queued is queue.queued for all operations together.
func (s *Scheduler) queued() int { return s.total - s.tries - s.resumes }

// countTry counts n more requests that no bound concerns, if r is one.
func (s *Scheduler) countTry(q *queue, r *Request, n int) {
	if r.Try {
		q.tries += n
		s.tries += n
	}
}

// full reports whether n more requests would be too many for the operation, by which bound, and
// whether that is the operation's own.
func (s *Scheduler) full(q *queue, n int) (b Bound, entry, full bool) {
	if b = s.rules.Operations[q.op].Bound; b.exceeded(q.queued() + n) {
		return b, true, true
	}
	return s.rules.Bound, false, s.rules.Bound.exceeded(s.queued() + n)
}

// refuse fails r, which is too many.
func (s *Scheduler) refuse(r *Request, b Bound, entry, dropped bool) {
	s.hasToWait(r)
	s.queues[r.Op].refused++
	s.fail(r, &FullError{Operation: s.rules.Operations[r.Op].Name, Max: b.Max, Entry: entry, Dropped: dropped})
}

// stuck reports whether nothing that waits can start before the next input, now
// that r has come. Else Next has to be asked anyway, and some request may start and
// leave room for others.
func (s *Scheduler) stuck(q *queue, r *Request) bool {
	switch {
	case s.stopped != nil:
		return false
	case s.settled == s.step-1:
		return s.blocked(q, r, certain) || !s.nested(r) && s.behindEntering(r, certain)
	}
	return s.allBlocked()
}

// allBlocked reports whether every request that waits conflicts with something that runs,
// whatever predicates say.
func (s *Scheduler) allBlocked() bool {
	if s.threadless.first != nil {
		return false // it may get a thread before the scheduler is asked
	}
	for op := range s.queues {
		q := &s.queues[op]
		switch {
		case q.length.all()-q.overflowing == 0:
		case !q.scoped:
			if !s.barred(q) {
				return false
			}
		default:
			for _, l := range [...]*list{&q.in.list, &q.entry} {
				for r := l.first; r != nil; r = r.next {
					if !s.blocked(q, r, certain) {
						return false
					}
				}
			}
		}
	}
	return true
}

// overflow brings the queues back within their bounds, and reports whether it had
// to do anything. Those waiting are too many by what came since it was last
// called; the newest are those.
func (s *Scheduler) overflow() (changed bool) {
	for op := range s.queues {
		q, b := &s.queues[op], s.rules.Operations[op].Bound
		for ; b.exceeded(q.queued()); changed = true {
			s.relieve(b, s.extreme(s.queues[op:op+1], b.Overflow == DropOldest), true)
		}
	}
	for b := s.rules.Bound; b.exceeded(s.queued()); changed = true {
		s.relieve(b, s.extreme(s.queues, b.Overflow == DropOldest), false)
	}
	return changed
}

// extreme returns the oldest or the newest of queued.
func (s *Scheduler) extreme(queues []queue, oldest bool) (r *Request) {
	consider := func(w *Request) {
		for w != nil && (w.Try || s.queues[w.Op].resumes || w.Op < queues[0].op || w.Op >= queues[0].op+len(queues)) {
			w = w.beyond(oldest)
		}
		if w != nil && (r == nil || w.seq < r.seq == oldest) {
			r = w
		}
	}
	for i := range queues {
		consider(queues[i].in.end(oldest))
		consider(queues[i].entry.end(oldest))
	}
	consider(s.threadless.end(oldest))
	return r
}

// relieve takes r out of a queue that is too long.
func (s *Scheduler) relieve(b Bound, r *Request, entry bool) {
	q := &s.queues[r.Op]
	if b.Overflow != Wait || !r.Patient {
		s.refuse(r, b, entry, b.Overflow == DropOldest)
		return
	}
	s.hasToWait(r)
	var known result
	if l := q.lineOf(r); l != nil {
		known = l.result
	}
	s.take(q, r, 0)
	r.bypassed = 0 // what has passed it before does not count here
	r.state = StateOverflow
	q.out.insert(r)
	q.overflowing++
	s.overflowing++
	if r.marks.has(threadless) {
		q.threadless++
	} else {
		s.lineUp(q, &q.out, r)
	}
	if l := q.lineOf(r); l != nil && l.result.stamp == 0 && known.stamp == s.stamp(q) {
		l.result = known // it was the last admitted that waited for that
		l.noted()
	}
}

// leaveOverflow takes r from the overflow queue.
func (s *Scheduler) leaveOverflow(q *queue, r *Request) {
	s.passCursors(r)
	l := r.line()
	s.lineDown(q, &q.out, r)
	if l != nil {
		s.place(q, &q.out, l)
		s.dissolve(q, l)
	}
	if r.marks.has(threadless) {
		q.threadless--
	}
	q.out.remove(r)
	q.overflowing--
	s.overflowing--
}

// refill lets requests from the overflow queue into the entry queue as long as there is room for
// them, in order of arrival.
func (s *Scheduler) refill() {
	for s.overflowing > 0 {
		var r *Request
		for op := range s.queues {
			q := &s.queues[op]
			if head := q.out.first; head != nil && (r == nil || head.seq < r.seq) {
				if _, _, full := s.full(q, 1); !full {
					r = head
				}
			}
		}
		if r == nil {
			return
		}
		q := &s.queues[r.Op]
		s.leaveOverflow(q, r)
		s.total++
		s.found = true
		if r.marks.has(threadless) {
			r.state = StateAwaitingThread
			s.threadless.insert(r)
		} else {
			s.toEntry(q, r)
		}
	}
}

// turnBack fails those that have been requeued into a full queue and could not start
// so far, the last one first, and reports whether it had to. It is called when
// nothing more can start; until then they are extra.
func (s *Scheduler) turnBack() (changed bool) {
	for n := len(s.extras); n > 0; n = len(s.extras) {
		r := s.extras[n-1]
		s.notExtra(r)
		if b, entry, full := s.full(&s.queues[r.Op], 0); full {
			changed = true
			s.refuse(r, b, entry, false)
		}
	}
	return changed
}

func (s *Scheduler) notExtra(r *Request) {
	i := slices.Index(s.extras, r)
	s.extras = slices.Delete(s.extras, i, i+1)
	r.marks &^= extra
}

// pickOverflow returns the first request in the overflow queue that can start at once, though
// there is no room for it to wait; or nil. It is called when nothing else can start. One whose
// guard fails, fails with it; and before a request starts it is told which have failed.
func (s *Scheduler) pickOverflow() (first *Request) {
	for op := 0; op < len(s.queues) && s.overflowing > 0; op++ {
		q := &s.queues[op]
		if q.overflowing == q.threadless || !q.scoped && (s.barred(q) || q.headed && q.in.first != nil) {
			continue
		}
		alike := false // the first that is considered stands for all, but for the entry queue
		for r := s.nextInOverflow(q, nil); r != nil && (first == nil || r.seq < first.seq); r = s.nextInOverflow(q, r) {
			if q.scoped && s.blocked(q, r, evaluate) {
				if s.failed.first != nil {
					return nil
				}
				continue
			}
			s.trying = r
			before, _ := s.firstAhead(r, alike)
			switch {
			case before != nil || s.failed.first != nil:
			case !q.scoped && first == nil && s.entering.n == 0: // they need not be compared any more
				r = s.first(q, &q.out, evaluate)
				first = r
			case s.holds(q, r, evaluate):
				first = r
			}
			s.trying = nil // not deferred (I1)
			if s.failed.first != nil {
				return nil
			}
			if first == r || !q.scoped && (q.one || before != nil) {
				break // what comes before one of them comes before all that are later
			}
			alike = !q.scoped && r.came != 0
		}
	}
	return first
}

// nextInOverflow returns the first request in the overflow queue, after r, of a line that is not
// known to be closed.
func (s *Scheduler) nextInOverflow(q *queue, r *Request) *Request {
	if !q.scoped {
		return s.first(q, &q.out, recall)
	}
	if r == nil {
		r = q.out.first
	} else {
		r = r.next
	}
	for ; r != nil && (r.marks.has(threadless) || s.closed(q, r)); r = r.next {
		if q.shared && !r.marks.has(threadless) {
			return nil // so are the others
		}
	}
	return r
}
