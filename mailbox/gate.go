package mailbox

import (
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// admit lets requests in from the gate, in order of arrival, until one may start, or
// opens a guard over waiting counts, or none is left that may enter. So what is
// requeued, before it is the next one's turn, comes before those that are still outside.
// If a policy compares the requests, all are let in. A Try is decided on the spot and
// returned. More reports whether any request entered.
func (k *Scheduler) admit() (r *Request, err error, more bool) {
	for together := -1; ; { // the operation whose requests start by one decision
		r := (*Request)(nil)
		for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
			if k.queues[op].scoped {
				if first := k.firstUnbarred(op, r); first != nil {
					r = first
				} else if k.failed.first != nil {
					return nil, nil, true
				}
				continue
			}
			if head := k.queues[op].gate.first; (r == nil || head.seq < r.seq) && !k.barred(op) {
				r = head
			}
		}
		if r == nil {
			return nil, nil, more
		}
		if r.Try && k.rules.AllCompatible {
			if other := k.firstToEnter(); other != nil {
				r = other // who may come before it: first of all they are considered
			} else if more || k.failed.first != nil {
				return nil, nil, true
			}
		}
		if together >= 0 && (r.Op != together || r.Try) {
			return nil, nil, true
		}
		if r.Try {
			decided, err := k.try(r)
			if !decided {
				return nil, nil, true // it is asked again, when that can be
			}
			return r, err, true
		}
		if !more {
			k.older = k.entered // those that are let in from here on come together
		}
		k.letIn(r)
		more = true
		if k.watchful && k.countsOpened() || k.failed.first != nil {
			return nil, nil, true
		}
		if k.compares || !k.mayHold(r) {
			continue
		}
		if q := &k.queues[r.Op]; q.scoped && q.each { // or else pick would look at all of these again, for each
			if open := k.open(r); k.failed.first != nil {
				return nil, nil, true
			} else if !open {
				continue
			}
		}
		if k.tries > 0 && !k.rules.AllCompatible {
			k.refuseBehind(r)
		} else if k.queues[r.Op].together {
			together = r.Op
			continue
		}
		return nil, nil, true
	}
}

// retry decides a Try that has been requeued, and which nothing that runs conflicts with. It
// returns nil if there is none, or a guard or predicate has failed.
func (k *Scheduler) retry() (*Request, error) {
	for _, r := range k.retries {
		barred := k.bars(r)
		if k.failed.first != nil {
			return nil, nil
		}
		if barred {
			continue
		}
		decided, err := k.try(r)
		if !decided {
			return nil, nil
		}
		return r, err
	}
	return nil, nil
}

// refuseBehind refuses those at the gate that do not wait and conflict with r, which came
// before them, has just been let in, and starts now, if that is so.
func (k *Scheduler) refuseBehind(r *Request) {
	if k.pick() != r || k.failed.first != nil {
		return
	}
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		q := &k.queues[op]
		if q.tries == 0 || !k.rules.Conflicts.Between(op, r.Op) {
			continue
		}
		for t := q.gate.first; t != nil; {
			next := t.next
			if t.Try && t.came > r.came && !k.inner(t) && !k.bars(t) && k.clash(t, r) {
				k.failOnce(t, &RefusedError{Operation: k.rules.Operations[op].Name, Behind: k.rules.Operations[r.Op].Name})
			}
			t = next
		}
	}
}

// letIn lets r in from the gate.
func (k *Scheduler) letIn(r *Request) {
	k.leaveGate(r)
	q := &k.queues[r.Op]
	if l := k.lineOf(q, r); r.seq <= l.latest {
		// Somebody has been requeued in front of it.
		r.seq = k.after(max(k.entered, l.latest))
		k.older = r.seq
		k.found = true
	}
	k.enter(r, indoors)
}

// toGate puts r, which has been outside before or is a Try, in its place at the gate.
func (k *Scheduler) toGate(q *queue, r *Request) {
	r.state = StateAtGate
	if q.gate.insert(r); q.gate.first == q.gate.last {
		k.gated.join(r.Op)
	}
}

func (k *Scheduler) leaveGate(r *Request) {
	k.passCursors(r)
	q := &k.queues[r.Op]
	k.untried(q, r, -1)
	if r.came == 0 {
		k.retries = slices.DeleteFunc(k.retries, func(o *Request) bool { return o == r })
	}
	if q.gate.remove(r); q.gate.first == nil {
		k.gated.leave(r.Op)
	}
}

// countsOpened reports whether a guard over waiting counts holds for somebody.
func (k *Scheduler) countsOpened() bool {
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		switch q := &k.queues[op]; {
		case !q.watchful:
		case q.scoped && k.firstOpenEach(op) != nil, !q.scoped && !k.barred(op) && k.firstOpen(op) != nil:
			return true
		}
	}
	return false
}

// try starts r, which is at the gate, or says why it would have to wait. It is called
// when nothing that runs conflicts with r.
//
// The guards of others are asked for that, before whom it must not start, or whom it
// bypasses. If one of these has failed, r stays where it is, and nothing is decided: as
// in grant, who has failed is told before anybody starts, since the object may be held
// for that.
func (k *Scheduler) try(r *Request) (decided bool, err error) {
	k.trying = r
	if err = k.wouldWait(r); err == nil && k.failed.first == nil {
		k.bypass(r, false)
	}
	k.trying = nil // not deferred: after AskingFailed the scheduler is somebody else's
	switch {
	case r.state == StateFailed:
		return false, nil
	case err != nil:
		k.leave(r)
		r.state = StateDone
	case k.failed.first != nil:
		return false, nil
	default:
		k.bypass(r, true)
		k.leave(r)
		k.start(r)
	}
	return true, err
}

// wouldWait returns nil if r, which is not inside, could start if it were, and
// else the reason, or the failure of its guard. Nothing that runs conflicts with
// r.
func (k *Scheduler) wouldWait(r *Request) error {
	op := &k.rules.Operations[r.Op]
	behind, failed := k.behindOutside(r)
	switch {
	case failed:
		return nil
	case behind >= 0:
		return &RefusedError{Operation: op.Name, Behind: k.rules.Operations[behind].Name}
	case k.behindHead(r):
		return &RefusedError{Operation: op.Name, Behind: op.Name}
	}
	falsePart, err := k.askOutside(r)
	if err == nil && falsePart != "" {
		err = &RefusedError{Operation: op.Name, Guard: falsePart}
	}
	return err
}

// behindOutside returns the operation of a request that comes before r, which is not
// inside, and conflicts with it; or -1. It reports whether a request has failed
// meanwhile, so that nothing can be said.
func (k *Scheduler) behindOutside(r *Request) (op int, failed bool) {
	if k.inner(r) {
		return -1, false // it passes all that wait
	}
	for other := k.inside.Next(0); other >= 0; other = k.inside.Next(other + 1) {
		if !k.rules.Conflicts.Between(r.Op, other) {
			continue
		}
		first := (*Request)(nil)
		if k.rules.AllCompatible {
			failed := k.failed.last
			if first = k.dueAhead(other, r); k.failed.last != failed {
				return -1, true
			}
		} else if k.queues[other].scoped {
			failed := k.failed.last
			if first = k.aheadEach(other, r); k.failed.last != failed {
				return -1, true
			}
		} else if first = k.notFalse(other); first != nil && !k.barred(other) {
			first = k.firstOpen(other)
		}
		if first != nil && !k.follows(first, r) {
			return other, false
		}
	}
	if other := k.aheadOutside(r); other != nil {
		return other.Op, false
	}
	return -1, r.state == StateFailed
}

// behindHead reports whether r, which is not inside, has to wait for the head of the line
// that it would join.
func (k *Scheduler) behindHead(r *Request) bool {
	o, q := &k.rules.Operations[r.Op], &k.queues[r.Op]
	return o.HeadOfLine && !o.Family && o.Looks&guards.AtArgument != 0 && q.inside.first != nil && !k.inner(r)
}

// askOutside returns what the guard says of r, which is not inside, asking it if that is
// not known. If the guard fails so do those inside that share it, but not r.
func (k *Scheduler) askOutside(r *Request) (falsePart string, err error) {
	o, q := &k.rules.Operations[r.Op], &k.queues[r.Op]
	switch l := k.lineAt(q, r.Key); {
	case o.Guard == "":
		return "", nil
	case o.Family && l != nil || !o.Family && o.Looks&guards.AtArgument == 0:
		return k.askLine(q, l, r)
	case r.answer.stamp == k.stamp(r.Op):
		return r.answer.falsePart, nil
	}
	q.asked++
	if falsePart, err = k.object.AskRequest(r); err == nil {
		k.note(&r.answer, r.Op, falsePart) // it may be at the door, and asked again
	}
	return falsePart, err
}

// follows reports whether w, which waits inside, comes after r, which has been requeued or is
// outside: then it was let in to be compared with others, or r has kept an older place.
func (k *Scheduler) follows(w, r *Request) bool { return r.came == 0 && w.seq > r.seq && !k.due(w) }

// refuseTries refuses those at the gate that could be decided, had anybody a thread.
func (k *Scheduler) refuseTries() (some bool) {
	if k.tries == 0 {
		return false
	}
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		some = k.strand(k.queues[op].gate.first, func(r *Request) bool { return !k.barsSurely(r) }) || some
	}
	return some
}

// aheadOutside returns a request at the gate that r must not pass, or nil.
func (k *Scheduler) aheadOutside(r *Request) *Request {
	if !k.rules.AllCompatible {
		return k.outside(r)
	}
	return k.reservedFor(r, k.clash)
}

// refutedOutside reports whether the guard of those at the gate is known to be false.
func (k *Scheduler) refutedOutside(op int) bool {
	o, a := &k.rules.Operations[op], &k.queues[op].answer
	return !o.Family && o.Looks == guards.AtState && a.falsePart != "" && k.current(op, a)
}

// outside returns a request at the gate that arrived before r and conflicts with
// it, or nil. Those at the gate have not been asked, but a guard over the state
// alone is as false for them as it is for those inside. (One over waiting counts
// may open when they come in.) A request that has been requeued was inside before
// all of them.
func (k *Scheduler) outside(r *Request) *Request { return k.outsideAfter(nil, r, k.clash) }

// outsideAfter is outside for those that come after one that it has returned, if that is not
// nil, and with another way to find out whether two requests conflict.
func (k *Scheduler) outsideAfter(last, r *Request, clash func(r, other *Request) bool) *Request {
	from := 0
	if last != nil {
		from = last.Op
	}
	for op := k.gated.Next(from); op >= 0; op = k.gated.Next(op + 1) {
		head := k.queues[op].gate.first
		if last != nil && op == from {
			if head = last.next; k.index == nil {
				continue // the last one stands for all of its operation
			}
		}
		if head == nil || head.seq >= r.came || !k.rules.Conflicts.Between(r.Op, op) {
			continue
		}
		for k.index != nil && !clash(r, head) { // or else they all conflict with r
			if head = head.next; head == nil || head.seq >= r.came {
				head = nil
				break
			}
		}
		if head == nil {
			continue
		}
		o := &k.rules.Operations[op]
		if a := &k.queues[op].answer; o.Family || o.Looks != guards.AtState || a.falsePart == "" || !k.current(op, a) {
			return head
		}
	}
	return nil
}
