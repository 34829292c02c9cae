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

// resultOf returns where the result of the guard is that r waits for. It must not be changed.
func (q *queue) resultOf(r *Request) *result {
	if q.own {
		return &r.result
	}
	return q.sharedResult(r)
}

// sharedResult is resultOf for a guard that requests share. A key that nothing waits for has no line.
func (q *queue) sharedResult(r *Request) *result {
	if l := q.lineOf(r); l != nil {
		return &l.result
	}
	return &r.result
}

// stands reports whether the result a of the guard of r still stands.
func (s *Scheduler) stands(q *queue, r *Request, a *result) bool {
	return a.stamp == s.stamp(q) || q.kept && a.falsePart != "" && a.stamp >= q.fresh && a != &r.result
}

// closed reports whether the guard of r is known to be false.
func (s *Scheduler) closed(q *queue, r *Request) bool {
	if q.guard == "" {
		return false
	}
	a := q.resultOf(r)
	return a.falsePart != "" && s.stands(q, r, a)
}

// holds reports whether the guard of r holds (R2). If it is not known and must not be evaluated,
// it counts as open. If the guard fails, so have those that share it, and it reports false.
func (s *Scheduler) holds(q *queue, r *Request, how knowledge) bool {
	if q.guard == "" {
		return true
	}
	a := q.resultOf(r)
	switch {
	case s.stands(q, r, a):
		return a.falsePart == ""
	case how != evaluate:
		return true
	}
	return s.ask(q, r, a) == nil && a.falsePart == ""
}

// ask evaluates the guard of r, the result of which is a. If it fails, so have the admitted
// requests that share it, and r; but a Try is left to the caller. Nothing is kept of a guard that
// no request waits for: the state may change then without the scheduler.
func (s *Scheduler) ask(q *queue, r *Request, a *result) (err error) {
	q.asked++
	falsePart := ""
	if q.shared {
		falsePart, err = s.object.AskState(r.Op)
	} else {
		falsePart, err = s.object.AskRequest(r)
	}
	if err != nil {
		s.guardFailed(q, r, err)
		return err
	}
	s.asks++
	if s.rules.Log != nil {
		s.logResult(q, r, falsePart)
	}
	if s.set(q, a, falsePart); q.sorted { // as in note, which would be a call for each that waits
		noted(q, r, a)
	}
	return nil
}

// guardFailed fails the admitted requests that share the guard of r.
func (s *Scheduler) guardFailed(q *queue, r *Request, err error) {
	if l := q.lineOf(r); !q.own && l != nil {
		l.result.stamp = 0 // also if a Try has asked, and one in the entry queue had brought a result
		s.failLine(q, l, err)
	}
	if r.state == StateAdmitted || r.state == StateOverflow {
		s.fail(r, err)
	}
}

// note records what the guard of r has just said in a.
func (s *Scheduler) note(q *queue, r *Request, a *result, falsePart string) {
	if s.rules.Log != nil {
		s.logResult(q, r, falsePart)
	}
	s.set(q, a, falsePart)
	if q.sorted {
		noted(q, r, a)
	}
}

func (s *Scheduler) logResult(q *queue, r *Request, falsePart string) {
	if q.shared {
		r = nil
	}
	s.log(Evaluated, q.op, r, falsePart)
}

func (s *Scheduler) set(q *queue, a *result, falsePart string) {
	a.stamp, a.step = s.stamp(q), s.step
	if a.falsePart != falsePart { // mostly the same as last time
		a.falsePart = falsePart
	}
}

// noted tells the trees that r is in, if any, what its guard has said.
func noted(q *queue, r *Request, a *result) {
	switch {
	case q.family:
		if l := q.lineOf(r); l != nil {
			l.noted()
		}
	case q.own && r.node != nil:
		noteNo(r.node, a.no())
	}
}

// watched reports whether a request waits for the guard of a line, admitted or in the overflow
// queue. If not, the fast path may change the state without asking the guard, so that
// what it said is worth nothing.
func (s *Scheduler) watched(q *queue, l *line) bool {
	return q.eldest(l) != nil || q.overflowing > 0 && (!q.family || l.at[inOverflow].members.root != nil)
}

// unwatched forgets what the guard has said, if no request is left that waits for it,
// in any queue. (Those in the entry queue keep the fast path closed.)
func (q *queue) unwatched() {
	if q.in.first == nil && q.entry.first == nil && q.overflowing == 0 {
		q.result.stamp = 0
	}
}

// refuted records that the guard of r, which has just arrived, has been evaluated and is false.
// Nothing runs that may have changed the state since.
func (s *Scheduler) refuted(q *queue, r *Request, falsePart string) {
	switch {
	case q.shared:
		s.log(Evaluated, r.Op, nil, falsePart)
		s.set(q, &q.result, falsePart)
	case q.own || r.state == StateAdmitted:
		s.note(q, r, q.resultOf(r), falsePart)
	}
}

// GuardResults says what the guards over the state of some operations, given as
// bits, have answered since the state last changed: they were asked in ascending
// order up to the operation open, whose guard holds; if open is -1 none does. Each
// of them consists of one part; a family among them has one key with waiters.
func (s *Scheduler) GuardResults(operations uint64, open int) {
	if open >= 0 {
		operations &= 2<<open - 1 // what comes after it has not been asked, whether it still waits or not
	}
	asked := guards.Set{operations & s.admitted.Set[0]}
	for op := 0; op < min(len(s.queues), 64) && s.overflowing > 0; op++ {
		if operations&(1<<op) != 0 && s.OverflowingOf(op) && !s.queues[op].family {
			asked.Add(op)
		}
	}
	for op := asked.Next(0); op >= 0; op = asked.Next(op + 1) {
		q, falsePart := &s.queues[op], ""
		if q.asked++; !q.family {
			if op != open {
				falsePart = q.guard
			}
			s.log(Evaluated, op, nil, falsePart)
			s.set(q, &q.result, falsePart)
			continue
		}
		r := s.Only(op)
		a := q.resultOf(r)
		if op != open {
			falsePart = a.falsePart // as the guard has no other part
		}
		s.note(q, r, a, falsePart)
	}
}

// GuardFailed says that the evaluation of a guard will not return: that of r, or, if
// r is nil, that of an operation's guard over the state. The requests it guards
// fail with err. It is, with PolicyFailed, the one method that may be called during
// Next, by an Object, if the goroutine is not to come back to it.
func (s *Scheduler) GuardFailed(op int, r *Request, err error) {
	q := &s.queues[op]
	t := s.trying
	s.trying = nil
	if t != nil && t.Op == op && (r == nil || r == t || q.family && r.Key == t.Key) {
		s.fail(t, err)
	} // else it stays where it is, and is considered again
	switch {
	case r == nil:
		s.failLine(q, &q.line, err)
	case r.state == StateAdmitted && q.family:
		s.failLine(q, q.lineOf(r), err)
	case r.state == StateAdmitted || r.state == StateOverflow:
		s.fail(r, err)
	}
}
