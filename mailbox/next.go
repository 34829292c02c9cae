package mailbox

import "errors"

// Next returns the next request to start, and counts it as running from now on.
// If the request is not to start but has failed, err says why: its guard
// panicked, it was a Try that would have had to wait, its queue was full, or the
// object is closed. A nil request means that nothing can be done until the next
// input.
func (s *Scheduler) Next() (r *Request, err error) { return s.NextFor(nil) }

// ErrNoThread is returned by NextFor with a request that could start, but goes on
// waiting.
var ErrNoThread = errors.New("no thread")

// NextFor is Next for a caller that cannot run every request: may says which. If
// the next one is not among them, it goes on waiting and is returned with
// ErrNoThread. May is not asked about a Try, whose caller is there.
func (s *Scheduler) NextFor(may func(*Request) bool) (r *Request, err error) {
	for {
		if s.failed.first != nil { // told before anything starts: the object may be held for that
			return s.Failed()
		}
		if s.stopped != nil {
			return s.evict()
		}
		if s.loose.first != nil || len(s.checks)+len(s.retries) > 0 {
			s.tidy()
			s.check()
			if r, err := s.retry(); r != nil {
				return r, err
			}
			if len(s.retries) > 0 && s.failed.first != nil {
				continue
			}
		}
		if !s.unchanged() {
			r = s.pick()
		} else if r = s.lone(); r != nil {
			r = s.admitLone(r)
		}
		if s.failed.first != nil {
			continue
		}
		if r != nil {
			return s.grant(r, may)
		}
		if s.entering.n > 0 {
			r, err, more := s.admit()
			if r != nil {
				return r, err
			}
			if more || s.failed.first != nil {
				continue
			}
		}
		if s.bounded {
			if s.turnBack() || s.overflow() {
				continue
			}
			asks := s.asks
			if r := s.pickOverflow(); r != nil {
				return s.grant(r, may)
			}
			if s.failed.first != nil || s.index != nil && s.asks != asks {
				continue // a line is known to be closed by now, as it shares a guard with one in the overflow queue
			}
		}
		s.quiescent()
		return nil, nil
	}
}

// Failed returns a request that has failed, and why; or nil if there is none. It
// does of Next's work what needs no thread and asks no guard.
func (s *Scheduler) Failed() (r *Request, err error) {
	r = s.failed.first
	if r == nil {
		return nil, nil
	}
	s.failed.remove(r)
	err = r.err
	r.state, r.err = StateDone, nil
	return r, err
}

// evict reports one waiting request of a closed object as failed: the first in order of arrival.
func (s *Scheduler) evict() (*Request, error) {
	r := s.threadless.first
	for op := range s.queues {
		q := &s.queues[op]
		for _, head := range [...]*Request{q.in.first, q.entry.first, q.out.first} {
			if head != nil && (r == nil || head.seq < r.seq) {
				r = head
			}
		}
	}
	if r == nil {
		return nil, nil
	}
	s.log(Failing, r.Op, r, "")
	s.leave(r)
	r.state = StateDone
	return r, s.stopped
}

// grant starts r, which waits, if may allows it.
//
// May is the last that is asked: it may commit the caller to the start, as a selection
// does that is claimed for r. So the guards of those that r bypasses are evaluated before,
// one of which may fail, and after it nothing is evaluated (I2).
func (s *Scheduler) grant(r *Request, may func(*Request) bool) (*Request, error) {
	if s.counted > 0 {
		if s.bypass(r, evaluate); s.failed.first != nil {
			return s.Failed() // and r, which may have failed by that, is considered again
		}
	}
	if may != nil && !may(r) {
		s.rests++
		return r, ErrNoThread
	}
	s.start(r)
	return r, nil
}

// start moves a request from where it waits to the running queue.
func (s *Scheduler) start(r *Request) {
	if s.counted > 0 {
		s.bypass(r, recall)
	}
	s.leave(r)
	s.step++
	s.last = r.Op
	s.log(Started, r.Op, r, "")
	s.queues[r.Op].started++
	r.state = StateRunning
	s.running.push(r)
	if r.Claim != nil && s.index != nil {
		s.enlist(r)
	}
	s.occupy(r)
	s.begin(r.Op)
	if s.bounded && s.allBlocked() {
		s.settled = s.step // nothing else starts before this one has ended, and there may be too many for that
		s.turnBack()
		s.overflow()
	}
}

// NoThread says that there is no thread for any request before the next input, after NextFor has
// failed with ErrNoThread. So all that wait have to, and the queues are brought back within
// their bounds, as by Next when nothing more can start; and a Try that nothing blocks is
// refused, instead of waiting behind them. It reports whether that changed anything; then
// NextFor is to be asked again.
func (s *Scheduler) NoThread() bool {
	refused := false
	for op := s.entering.Next(0); op >= 0 && s.tries > 0; op = s.entering.Next(op + 1) {
		refused = s.refuseTries(s.queues[op].entry.first, false) || refused
	}
	if !s.bounded {
		return refused
	}
	back := s.turnBack()
	return s.overflow() || back || refused
}

// What need not be looked at.
//
// Most of the time it is known beforehand that no admitted request can start: nothing has happened
// but arrivals since none could. These are the same decisions by fewer steps, where neither
// policies nor bounds, bypasses that are counted, or scopes have a say in them.

// quiescent notes that nothing more can start.
func (s *Scheduler) quiescent() {
	s.rests++
	if s.runs.n == 0 {
		s.older = s.entered // the guards of all that are admitted are false
	}
	s.settled = s.step
	s.rested = s.inputs()
}

// inputs numbers the states of the scheduler between which more has happened than arrivals.
func (s *Scheduler) inputs() uint64 { return s.step - s.arrivals + s.counting }

// unchanged reports whether nothing has happened but arrivals since nothing could start.
func (s *Scheduler) unchanged() bool { return s.rested == s.inputs() && s.simple }

// lone returns the request in the entry queue, if it is the only one and can be admitted.
func (s *Scheduler) lone() *Request {
	if s.entering.n != 1 {
		return nil
	}
	q := &s.queues[s.entering.Next(0)]
	if r := q.entry.first; r.next == nil && !r.Try && !s.barred(q) {
		return r
	}
	return nil
}

// admitLone admits r, before which no other can start, and returns the one that can then.
func (s *Scheduler) admitLone(r *Request) *Request {
	s.letIn(r)
	switch {
	case s.failed.first != nil:
		return nil
	case s.watchful || s.counted > 0 || s.runs.n > 0:
		return s.pick()
	}
	q := &s.queues[r.Op]
	return s.first(q, &q.in, evaluate) // the others are closed
}

// Come is Arrive for a caller that has the object to itself, and asks Next then. If it reports that
// all wait, as before, and r with them, Next would return nil, and need not be asked. FalsePart is
// what the guard of r has said, if that has been evaluated since the state last changed, and is
// false; else it is empty.
//
// Nothing can have started before r. So it can be admitted at once, and its guard evaluated, if
// nothing else has a say in it: see queue.joins and queue.bare.
func (s *Scheduler) Come(r *Request, falsePart string) (waits bool) {
	q, known := &s.queues[r.Op], falsePart != ""
	alone := q.bare && s.simple
	if known {
		alone = q.joins
	}
	if !alone || r.Try || s.rested != s.inputs() || !s.calm() {
		s.Arrive(r)
		if known {
			s.refuted(q, r, falsePart)
		}
		return false
	}
	s.register(r)
	s.enter(r, one|isAdmitted)
	switch {
	case known:
		s.refuted(q, r, falsePart)
	case s.watchful && s.admitted.n > 1:
		if s.pick() != nil {
			return false
		}
	case !s.watchful && q.in.first != r: // the first cannot start, as before
	case s.first(q, &q.in, evaluate) != nil:
		return false
	}
	if s.failed.first != nil {
		return false
	}
	s.quiescent()
	return true
}

// calm reports whether nothing waits in the entry queue, runs, or has failed.
func (s *Scheduler) calm() bool {
	return s.stopped == nil && !s.held && s.entering.n == 0 && s.runs.n == 0 && s.failed.first == nil
}
