package mailbox

import "github.com/sluice-go/sluice/guards"

// answer is what a guard said, and when.
type answer struct {
	falsePart string
	stamp     uint64 // see Scheduler.stamp; 0 if there is none
	step      uint64
}

// no returns the stamp of an answer that is no, and else 0.
func no(a answer) uint64 {
	if a.falsePart != "" {
		return a.stamp
	}
	return 0
}

// stamp numbers the times between which no answer to a guard of the operation can
// change from no to yes or back. Two counters that only grow make one.
func (k *Scheduler) stamp(op int) uint64 {
	if k.watchful && k.queues[op].watchful {
		return k.version + k.counting
	}
	return k.version
}

// fresh returns the stamp since which an answer that was no still stands.
func (k *Scheduler) fresh(op int) uint64 {
	if q := &k.queues[op]; q.kept {
		return q.fresh
	}
	return k.stamp(op)
}

// current reports whether an answer still stands.
func (k *Scheduler) current(op int, a *answer) bool {
	return a.stamp != 0 && (a.stamp == k.stamp(op) || a.falsePart != "" && a.stamp >= k.fresh(op))
}

// note makes a what a guard of the operation has just said.
func (k *Scheduler) note(a *answer, op int, falsePart string) {
	a.stamp, a.step = k.stamp(op), k.step
	if a.falsePart != falsePart { // mostly the same as last time
		a.falsePart = falsePart
	}
}

// lets reports whether the guard holds for r, the first of a line of which there is no more to
// know. It is askLine for that.
func (k *Scheduler) lets(q *queue, r *Request) bool {
	switch {
	case q.guard == "":
		return true
	case !q.shared:
		return k.askRequest(r) && r.answer.falsePart == ""
	}
	if a := &q.answer; a.stamp != k.stamp(r.Op) {
		q.asked++
		falsePart, err := k.object.AskState(r.Op)
		if err != nil {
			a.stamp = 0 // others may be at the gate
			k.failLine(q, &q.line, err)
			return false
		}
		k.log(Answered, r.Op, nil, falsePart)
		k.note(a, r.Op, falsePart)
		k.asks++
	}
	return q.answer.falsePart == ""
}

// askLine returns what the guard says that a line shares, asking it if that is
// not known: for r, which is the first of the line or wants to be. If the guard
// fails, so do all in the line.
func (k *Scheduler) askLine(q *queue, l *line, r *Request) (falsePart string, err error) {
	o := &k.rules.Operations[r.Op]
	if o.HeadOfLine && !o.Family {
		if !k.askRequest(r) {
			return "", r.err
		}
		return r.answer.falsePart, nil
	}
	if k.current(r.Op, &l.answer) {
		return l.answer.falsePart, nil
	}
	q.asked++
	var asked *Request
	if o.Family {
		asked = r
		falsePart, err = k.object.AskRequest(r)
	} else {
		falsePart, err = k.object.AskState(r.Op)
	}
	if err != nil {
		l.answer.stamp = 0 // also if a Try has asked, and someone at the gate had brought an answer
		k.failLine(q, l, err)
		return "", err
	}
	k.log(Answered, r.Op, asked, falsePart)
	k.note(&l.answer, r.Op, falsePart)
	if !k.watched(q, l) { // a Try has asked
		l.answer.stamp = 0
	} else {
		k.asks++
	}
	if q.members != nil {
		l.noted()
	}
	return falsePart, nil
}

// askRequest brings the answer of a guard over r's argument up to date. It
// reports false if the guard failed, and r with it.
func (k *Scheduler) askRequest(r *Request) bool {
	return k.current(r.Op, &r.answer) || k.ask(&k.queues[r.Op], r)
}

// ask is askRequest for an answer that is not up to date.
func (k *Scheduler) ask(q *queue, r *Request) bool {
	q.asked++
	k.asks++
	falsePart, err := k.object.AskRequest(r)
	if err != nil {
		k.fail(r, err)
		return false
	}
	if k.rules.Log != nil {
		k.log(Answered, r.Op, r, falsePart)
	}
	k.note(&r.answer, r.Op, falsePart)
	r.note()
	return true
}

// unknown is the answer of a guard that has not been asked.
var unknown answer

// answerOf returns the answer of the guard that r waits for. It must not be changed.
func (k *Scheduler) answerOf(r *Request) *answer {
	q, o := &k.queues[r.Op], &k.rules.Operations[r.Op]
	switch {
	case o.Family:
		if l := q.members[r.Key]; l != nil {
			return &l.answer
		}
		return &unknown
	case o.Looks&guards.AtArgument != 0:
		return &r.answer
	}
	return &q.answer
}

// mayHold reports whether the guard of r is not known to be false.
func (k *Scheduler) mayHold(r *Request) bool {
	if k.queues[r.Op].guard == "" {
		return true
	}
	a := k.answerOf(r)
	return a.falsePart == "" || !k.current(r.Op, a)
}

// Refuted says that the guard of r, which has just arrived, has been asked and
// is false. Nothing runs that may have changed the state since.
func (k *Scheduler) Refuted(r *Request, falsePart string) {
	q := &k.queues[r.Op]
	if q.shared {
		k.log(Answered, r.Op, nil, falsePart)
		k.note(&q.answer, r.Op, falsePart)
	} else {
		k.refuted(q, r, falsePart)
	}
}

// refuted is Refuted for a guard that looks at the argument.
func (k *Scheduler) refuted(q *queue, r *Request, falsePart string) {
	if q.members == nil {
		k.log(Answered, r.Op, r, falsePart)
		k.note(&r.answer, r.Op, falsePart)
		r.note()
	} else if r.state == StateInside {
		k.log(Answered, r.Op, r, falsePart)
		l := q.members[r.Key]
		k.note(&l.answer, r.Op, falsePart)
		l.noted()
	}
}

// Answered says what the guards over the state of some operations, given as
// bits, have answered since the state last changed: they were asked in ascending
// order up to the operation open, whose guard holds; if open is -1 none does. Each
// of them consists of one part; a family among them has one key with waiters.
func (k *Scheduler) Answered(operations uint64, open int) {
	if open >= 0 {
		operations &= 2<<open - 1 // who comes after it has not been asked, whether it still waits or not
	}
	asked := guards.Set{operations & k.inside.Set[0]}
	for op := 0; op < min(len(k.queues), 64) && k.doors > 0; op++ {
		if operations&(1<<op) != 0 && k.AtDoorOf(op) && k.queues[op].members == nil {
			asked.Add(op)
		}
	}
	for op := asked.Next(0); op >= 0; op = asked.Next(op + 1) {
		falsePart, q := "", &k.queues[op]
		if op != open {
			falsePart = q.guard
		}
		q.asked++
		if q.members != nil {
			k.answeredFor(k.Only(op), falsePart)
		} else {
			k.log(Answered, op, nil, falsePart)
			k.note(&q.answer, op, falsePart)
		}
	}
}

// answeredFor is Answered for a family, at which r waits with others of its key.
func (k *Scheduler) answeredFor(r *Request, falsePart string) {
	l := k.queues[r.Op].members[r.Key]
	if falsePart != "" {
		falsePart = l.answer.falsePart // as the guard has no other part
	}
	k.log(Answered, r.Op, r, falsePart)
	k.note(&l.answer, r.Op, falsePart)
	l.noted()
}

// AskingFailed says that the asking of a guard will not return: that of r, or, if
// r is nil, that of an operation's guard over the state. The requests it guards
// fail with err. It is, with Misjudged, the one method that may be called during
// Next, by an Object, if the goroutine is not to come back to it.
func (k *Scheduler) AskingFailed(op int, r *Request, err error) {
	k.tryingFailed(op, r, err)
	switch q := &k.queues[op]; {
	case r == nil:
		k.failLine(q, &q.line, err)
	case r.state == StateInside && k.rules.Operations[op].Family:
		k.failLine(q, q.members[r.Key], err)
	case r.state == StateInside || r.state == StateAtDoor:
		k.fail(r, err)
	}
}

// tryingFailed fails the request that was being decided, a Try or one at the door, if it
// is guarded by what was asked: the guard of r, or of the operation. If not it stays
// where it is, and is considered again.
func (k *Scheduler) tryingFailed(op int, r *Request, err error) {
	t := k.trying
	k.trying = nil
	if t != nil && t.Op == op && (r == nil || r == t || k.rules.Operations[op].Family && r.Key == t.Key) {
		k.fail(t, err)
	}
}
