package mailbox

import (
	"slices"
)

// Bound limits how many requests wait, inside and at the gate. It never turns
// away one that can start at once, nor a Try, which is not among those that are
// counted: it waits for its decision only. The zero Bound sets no limit.
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
	// Wait makes it wait at the door, which has no bound, for room or for the
	// moment when it could start at once; but fails it if it is not Patient.
	Wait
)

// String implements fmt.Stringer.
func (o Overflow) String() string {
	return [...]string{"unbounded", "refuse", "drop oldest", "wait"}[o]
}

// stuck reports whether nothing that waits can start before the next input, now
// that r has come. Else Next has to be asked anyway, and somebody may start and
// leave room for others.
func (k *Scheduler) stuck(r *Request) bool {
	switch {
	case k.closed != nil:
		return false
	case k.settled == k.step-1:
		return k.barsSurely(r) || !k.inner(r) && k.heldOutside(r)
	}
	return k.blocked()
}

// heldOutside reports whether somebody at the gate is in the way of r, whatever predicates
// say.
func (k *Scheduler) heldOutside(r *Request) bool {
	if !k.rules.AllCompatible {
		return k.outsideAfter(nil, r, k.surely) != nil
	}
	return k.reservedFor(r, k.surely) != nil
}

// blocked reports whether everybody who waits conflicts with something that runs.
func (k *Scheduler) blocked() bool {
	if k.threadless.first != nil {
		return false // it may get a thread before the scheduler is asked
	}
	for op := range k.queues {
		switch q := &k.queues[op]; {
		case q.queued()+q.tries == 0:
		case q.scoped && !k.blockedEach(q), !q.scoped && !k.barred(op):
			return false
		}
	}
	return true
}

// queued returns how many requests are inside and at the gate, as far as bounds
// concern them.
func (q *queue) queued() int { return q.length.all() - q.doors - q.tries }

// queued is queue.queued for all operations together.
func (k *Scheduler) queued() int { return k.total - k.tries }

// untried counts n more requests at the gate that no bound concerns, if r is one.
func (k *Scheduler) untried(q *queue, r *Request, n int) {
	if r.Try {
		q.tries += n
		k.tries += n
	}
}

// full returns why one more request than there are would be too many for the
// operation, or nil. It counts those that wait now.
func (k *Scheduler) full(op int) *FullError {
	o := &k.rules.Operations[op]
	if b := o.Bound; b.Overflow != Unbounded && k.queues[op].queued() > b.Max {
		return &FullError{Operation: o.Name, Max: b.Max, Entry: true}
	}
	if b := k.rules.Bound; b.Overflow != Unbounded && k.queued() > b.Max {
		return &FullError{Operation: o.Name, Max: b.Max}
	}
	return nil
}

// overflow brings the queues back within their bounds, and reports whether it had
// to do anything. Those waiting are too many by what came since it was last
// called; the newest are those.
func (k *Scheduler) overflow() (changed bool) {
	if !k.bounded {
		return false
	}
	for op := range k.queues {
		b, q := k.rules.Operations[op].Bound, &k.queues[op]
		for b.Overflow != Unbounded && q.queued() > b.Max {
			changed = true
			k.relieve(b, k.extreme(op, b.Overflow == DropOldest), true)
		}
	}
	for b := k.rules.Bound; b.Overflow != Unbounded && k.queued() > b.Max; {
		var r *Request
		for op := range k.queues {
			other := k.extreme(op, b.Overflow == DropOldest)
			if other != nil && (r == nil || (other.seq < r.seq) == (b.Overflow == DropOldest)) {
				r = other
			}
		}
		changed = true
		k.relieve(b, r, false)
	}
	return changed
}

// turnBack fails those who have been requeued into a full queue and could not start
// so far, the last one first, and reports whether it had to. It is called when
// nothing more can start; until then they are extra.
func (k *Scheduler) turnBack() (changed bool) {
	for n := len(k.extras); n > 0; n = len(k.extras) {
		r := k.extras[n-1]
		q := &k.queues[r.Op]
		k.notExtra(r)
		if full := k.full(r.Op); full != nil {
			changed = true
			k.hasToWait(r)
			q.refused++
			k.fail(r, full)
		}
	}
	return changed
}

func (k *Scheduler) notExtra(r *Request) {
	i := slices.Index(k.extras, r)
	k.extras = slices.Delete(k.extras, i, i+1)
	r.marks &^= extra
}

// extreme returns the oldest or the newest of queued, or nil.
func (k *Scheduler) extreme(op int, oldest bool) *Request {
	a, b := k.queues[op].extreme(oldest), k.extremeThreadless(op, oldest)
	if a == nil || b != nil && (b.seq < a.seq) == oldest {
		return b
	}
	return a
}

// extreme is Scheduler.extreme for those that have a thread.
func (q *queue) extreme(oldest bool) *Request {
	a, b := q.inside.last, q.gate.last
	if oldest {
		a, b = q.inside.first, q.gate.first
	}
	for b != nil && b.Try {
		if oldest {
			b = b.next
		} else {
			b = b.prev
		}
	}
	if a == nil || b != nil && (b.seq < a.seq) == oldest {
		return b
	}
	return a
}

// relieve takes r out of a queue that is too long.
func (k *Scheduler) relieve(b Bound, r *Request, entry bool) {
	q := &k.queues[r.Op]
	k.hasToWait(r)
	if b.Overflow == Wait && r.Patient {
		var known answer
		if l := k.lineAt(q, r.Key); l != nil {
			known = l.answer
		}
		k.take(q, r, 0)
		r.bypassed = 0 // what has passed it inside does not count here
		k.joinDoor(q, r)
		if l := k.lineAt(q, r.Key); l != nil && l.answer.stamp == 0 && known.stamp == k.stamp(r.Op) {
			l.answer = known // it was the last that waited for that inside
			if q.members != nil {
				l.noted()
			}
		}
		return
	}
	q.refused++
	k.fail(r, &FullError{Operation: k.rules.Operations[r.Op].Name, Max: b.Max, Entry: entry, Dropped: b.Overflow == DropOldest})
}

// refill lets requests in from the door as long as there is room for them, in
// order of arrival.
func (k *Scheduler) refill() {
	for k.doors > 0 {
		var r *Request
		for op := range k.queues {
			if head := k.queues[op].door.first; head != nil && (r == nil || head.seq < r.seq) && k.room(op) {
				r = head
			}
		}
		if r == nil {
			return
		}
		q := &k.queues[r.Op]
		k.leaveDoor(q, r)
		k.total++
		k.found = true
		if r.marks.has(bare) {
			r.state = StateThreadless
			k.threadless.insert(r)
			continue
		}
		k.toGate(q, r)
	}
}

// room reports whether one more request of the operation may wait.
func (k *Scheduler) room(op int) bool {
	entry, object := k.rules.Operations[op].Bound, k.rules.Bound
	return (entry.Overflow == Unbounded || k.queues[op].queued() < entry.Max) &&
		(object.Overflow == Unbounded || k.queued() < object.Max)
}
