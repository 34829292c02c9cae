package mailbox

import "github.com/sluice-go/sluice/guards"

// result is what a guard said, and when.
type result struct {
	falsePart string
	stamp     uint64 // see Scheduler.stamp; 0 if there is none
	step      uint64
}

// no returns the stamp of a result that is false, and else 0.
func (a *result) no() uint64 {
	if a.falsePart != "" {
		return a.stamp
	}
	return 0
}

// stamp numbers the times between which no result of the operation's guard can change. Two
// counters that only grow make one.
func (s *Scheduler) stamp(q *queue) uint64 {
	if q.counts {
		return s.version + s.counting
	}
	return s.version
}

// fresh returns the stamp since which a result that was false still stands.
func (s *Scheduler) fresh(q *queue) uint64 {
	if q.kept {
		return q.fresh
	}
	return s.stamp(q)
}

// result returns where the result of the guard is that r waits for, and whether it still
// stands. It must not be changed.
func (s *Scheduler) result(q *queue, r *Request) (a *result, stands bool) {
	if q.family {
		return s.resultOfKey(q, r)
	}
	if a = &r.result; q.shared {
		a = &q.line.result
	}
	return a, a.stamp == s.stamp(q) // which is not 0
}

// resultOfKey is result for a family. A key that nothing waits for has no line.
func (s *Scheduler) resultOfKey(q *queue, r *Request) (a *result, stands bool) {
	if l := q.lineOf(r); l != nil {
		a = &l.result
		return a, a.stamp == s.stamp(q) || a.stamp != 0 && a.falsePart != "" && a.stamp >= s.fresh(q)
	}
	return &r.result, r.result.stamp == s.stamp(q)
}

// closed reports whether the guard of r is known to be false.
func (s *Scheduler) closed(q *queue, r *Request) bool {
	if q.guard == "" {
		return false
	}
	a, stands := s.result(q, r)
	return stands && a.falsePart != ""
}

// holds reports whether the guard of r holds (R2). If it is not known and must not be evaluated,
// it counts as open. If the guard fails, so have those that share it, and it reports false.
func (s *Scheduler) holds(q *queue, r *Request, how knowledge) bool {
	if q.guard == "" {
		return true
	}
	a, stands := s.result(q, r)
	switch {
	case stands:
		return a.falsePart == ""
	case how != evaluate:
		return true
	}
	falsePart, err := s.ask(q, r)
	return falsePart == "" && err == nil
}

// ask evaluates the guard of r. If it fails, so have the admitted requests that share it, and r;
// but a Try is left to the caller.
func (s *Scheduler) ask(q *queue, r *Request) (falsePart string, err error) {
	q.asked++
	if q.shared {
		falsePart, err = s.object.AskState(r.Op)
	} else {
		falsePart, err = s.object.AskRequest(r)
	}
	if err != nil {
		s.guardFailed(q, r, err)
		return "", err
	}
	s.note(q, r, falsePart)
	return falsePart, nil
}

// guardFailed fails the admitted requests that share the guard of r.
func (s *Scheduler) guardFailed(q *queue, r *Request, err error) {
	if l := q.lineOf(r); !q.own && l != nil {
		l.result.stamp = 0 // also if a Try has asked, and one in the entry queue had brought a result
		s.failLine(q, l, err)
	}
	if r.state == StateInside || r.state == StateAtDoor {
		s.fail(r, err)
	}
}

// note records what the guard of r has just said. Nothing is kept of a guard that no request
// waits for: the state may change then without the scheduler.
func (s *Scheduler) note(q *queue, r *Request, falsePart string) {
	var l *line
	a, asked := &r.result, r
	if !q.own {
		if l = q.lineOf(r); l != nil {
			a = &l.result
		}
		if q.shared {
			asked = nil
		}
	}
	s.log(Answered, r.Op, asked, falsePart)
	s.set(q, a, falsePart)
	s.asks++
	switch {
	case l == nil:
		if r.node != nil {
			noteNo(r.node, a.no())
		}
		return
	case r.state != StateInside && !s.watched(q, l):
		a.stamp = 0
	}
	if q.family {
		l.noted()
	}
}

// set makes a what a guard of the operation has just said.
func (s *Scheduler) set(q *queue, a *result, falsePart string) {
	a.stamp, a.step = s.stamp(q), s.step
	if a.falsePart != falsePart { // mostly the same as last time
		a.falsePart = falsePart
	}
}

// watched reports whether a request waits for the guard of a line, admitted or in the overflow
// queue. If not, the fast path may change the state without asking the guard, so that
// what it said is worth nothing.
func (s *Scheduler) watched(q *queue, l *line) bool {
	return q.eldest(l) != nil || q.doors > 0 && (!q.family || l.at[outside].members.root != nil)
}

// unwatched forgets what the guard has said, if no request is left that waits for it,
// in any queue. (Those in the entry queue keep the fast path closed.)
func (q *queue) unwatched() {
	if q.in.first == nil && q.gate.first == nil && q.doors == 0 {
		q.result.stamp = 0
	}
}

// Refuted says that the guard of r, which has just arrived, has been asked and
// is false. Nothing runs that may have changed the state since.
func (s *Scheduler) Refuted(r *Request, falsePart string) {
	q := &s.queues[r.Op]
	switch {
	case q.shared:
		s.log(Answered, r.Op, nil, falsePart)
		s.set(q, &q.result, falsePart)
	case q.own || r.state == StateInside:
		s.note(q, r, falsePart)
	}
}

// Answered says what the guards over the state of some operations, given as
// bits, have answered since the state last changed: they were asked in ascending
// order up to the operation open, whose guard holds; if open is -1 none does. Each
// of them consists of one part; a family among them has one key with waiters.
func (s *Scheduler) Answered(operations uint64, open int) {
	if open >= 0 {
		operations &= 2<<open - 1 // what comes after it has not been asked, whether it still waits or not
	}
	asked := guards.Set{operations & s.admitted.Set[0]}
	for op := 0; op < min(len(s.queues), 64) && s.doors > 0; op++ {
		if operations&(1<<op) != 0 && s.AtDoorOf(op) && !s.queues[op].family {
			asked.Add(op)
		}
	}
	for op := asked.Next(0); op >= 0; op = asked.Next(op + 1) {
		falsePart, q := "", &s.queues[op]
		if op != open {
			falsePart = q.guard
		}
		q.asked++
		if !q.family {
			s.log(Answered, op, nil, falsePart)
			s.set(q, &q.result, falsePart)
			continue
		}
		r := s.Only(op)
		if falsePart != "" {
			falsePart = q.lineOf(r).result.falsePart // as the guard has no other part
		}
		s.note(q, r, falsePart)
	}
}

// AskingFailed says that the evaluation of a guard will not return: that of r, or, if
// r is nil, that of an operation's guard over the state. The requests it guards
// fail with err. It is, with Misjudged, the one method that may be called during
// Next, by an Object, if the goroutine is not to come back to it.
func (s *Scheduler) AskingFailed(op int, r *Request, err error) {
	q := &s.queues[op]
	t := s.trying
	s.trying = nil
	if t != nil && t.Op == op && (r == nil || r == t || q.family && r.Key == t.Key) {
		s.fail(t, err)
	} // else it stays where it is, and is considered again
	switch {
	case r == nil:
		s.failLine(q, &q.line, err)
	case r.state == StateInside && q.family:
		s.failLine(q, q.lineOf(r), err)
	case r.state == StateInside || r.state == StateAtDoor:
		s.fail(r, err)
	}
}
