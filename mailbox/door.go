package mailbox

// door holds the requests of one operation that wait for room in a full queue (see
// Wait): for that, or for the moment when one of them could start at once. They are
// considered when nothing else can start, in order of arrival, and stand in the way of
// nothing.
//
// What their guards have answered is remembered as for those inside, so that one
// at the door costs as much: a guard over the state is evaluated once for all that
// wait for it, inside and at the door, and one of a family once per key; one over the
// argument once per request and change of the state. Neither an arrival nor a withdrawal
// looks at those that are known to be closed. Only requests of scoped operations
// are looked at one by one, as they are inside.
type door struct {
	list     // in order of arrival
	bare int // of these have no thread yet, and are not considered

	// If each is asked: the first that has not been since the stamp. Those before it
	// have, and said no.
	unasked *Request
	since   uint64

	lines tree // of a family: those with requests at the door, by the first of these
}

// joinDoor puts r, which waits nowhere, at the door.
func (k *Scheduler) joinDoor(q *queue, r *Request) {
	r.state = StateAtDoor
	q.door.insert(r)
	q.doors++
	k.doors++
	if r.marks.has(bare) {
		q.door.bare++
	} else {
		k.lineUp(q, r)
	}
}

// leaveDoor takes r away from the door.
func (k *Scheduler) leaveDoor(q *queue, r *Request) {
	k.passCursors(r)
	if q.door.unasked == r { // which may have no thread: see knockAt
		q.door.unasked = r.next
	}
	switch {
	case r.marks.has(bare):
		q.door.bare--
	case q.scoped:
	case q.members != nil:
		l := q.members[r.Key]
		l.out.remove(r.node)
		k.placeAtDoor(q, l)
		if l.out.root == nil && l.tree.root == nil {
			k.loosen(q, l)
		}
	}
	q.door.remove(r)
	q.doors--
	k.doors--
}

// lineUp has r, which is at the door and has a thread, considered from now on.
func (k *Scheduler) lineUp(q *queue, r *Request) {
	switch {
	case q.scoped:
	case q.members != nil:
		l := k.lineOf(q, r)
		if r.node == nil {
			r.node = &node{r: r}
		}
		if l.door == nil {
			l.door = &node{line: l}
		}
		r.node.no = 0
		l.out.insert(r.node, arrived) // which does not fail
		k.placeAtDoor(q, l)
	case q.door.unasked == nil || r.seq < q.door.unasked.seq:
		q.door.unasked = r
	}
}

// placeAtDoor puts a line of a family where the first of its requests at the door belongs.
func (k *Scheduler) placeAtDoor(q *queue, l *line) {
	first := l.out.first()
	switch n := l.door; {
	case first != nil && n.placed && n.r == first.r:
		return
	case n.placed:
		q.door.lines.remove(n)
	}
	if l.door.r = nil; first != nil {
		l.door.r, l.door.no = first.r, no(l.answer)
		q.door.lines.insert(l.door, arrived)
	}
}

// arrived is the order of arrival.
func arrived(a, b *Request) (bool, error) { return a.seq < b.seq, nil }

// knock returns the first request at the door that can start at once, though
// there is no room for it to wait; or nil. It is called when nothing else can
// start. One whose guard fails, fails with it; and before a request starts it is
// told which have failed.
func (k *Scheduler) knock() (first *Request) {
	if k.doors == 0 {
		return nil
	}
	for op := range k.queues {
		q := &k.queues[op]
		if q.doors == q.door.bare || !q.scoped && k.barred(op) {
			continue
		}
		r := (*Request)(nil)
		switch {
		case q.scoped:
			r = k.knockEach(q, first)
		default:
			r = k.knockAt(q, op, first)
		}
		switch {
		case k.failed.first != nil:
			return nil
		case r != nil:
			first = r
		}
	}
	return first
}

// knockAt is knock for the requests of one operation that have arrived before the given
// one, if that is not nil. All of them conflict with the same, and the oldest passes the
// fewest: so what comes before that comes before the others.
func (k *Scheduler) knockAt(q *queue, op int, before *Request) *Request {
	r := q.door.first
	for r.marks.has(bare) {
		r = r.next
	}
	if before != nil && r.seq > before.seq || k.behindHead(r) {
		return nil
	}
	k.trying = r
	behind, failed := k.behindOutside(r)
	k.trying = nil // not deferred: after AskingFailed the scheduler belongs to another goroutine
	switch {
	case failed || behind >= 0:
		return nil
	case q.members != nil:
		for fresh := k.fresh(op); ; {
			n := q.door.lines.firstNot(fresh)
			if n == nil || before != nil && n.r.seq > before.seq || k.aheadOutside(n.r) != nil {
				return nil
			}
			if open := k.opensAtDoor(n.r); open || k.failed.first != nil {
				return n.r
			}
		}
	case !q.each:
		if k.opensAtDoor(r) {
			return r
		}
		return nil
	}
	d, stamp := &q.door, k.stamp(op)
	if d.since != stamp {
		d.since, d.unasked = stamp, r
	}
	for ; d.unasked != nil; d.unasked = d.unasked.next {
		r := d.unasked
		switch {
		case r.marks.has(bare), r.answer.stamp == stamp && r.answer.falsePart != "":
			continue
		case before != nil && r.seq > before.seq || k.gated.n > 0 && k.aheadOutside(r) != nil:
			return nil
		}
		if open := k.opensAtDoor(r); open || k.failed.first != nil {
			return r
		}
	}
	return nil
}

// knockEach is knockAt for a scoped operation, whose requests are considered one by one.
func (k *Scheduler) knockEach(q *queue, before *Request) *Request {
	for r := q.door.first; r != nil && (before == nil || r.seq < before.seq); {
		next := r.next
		switch {
		case r.marks.has(bare):
		case !k.mayHold(r) && q.shared:
			return nil // nor do the others
		case !k.mayHold(r) || k.bars(r):
		case k.failed.first == nil && !k.behindHead(r):
			k.trying = r
			behind, failed := k.behindOutside(r)
			k.trying = nil
			if !failed && behind < 0 && k.opensAtDoor(r) {
				return r
			}
		}
		if k.failed.first != nil {
			return nil
		}
		r = next
	}
	return nil
}

// opensAtDoor reports whether the guard of r, which is at the door, holds, asking it if
// that is not known. If it fails, so has r.
func (k *Scheduler) opensAtDoor(r *Request) bool {
	k.trying = r
	falsePart, err := k.askOutside(r)
	k.trying = nil
	if err != nil && r.state == StateAtDoor {
		k.fail(r, err)
	}
	return err == nil && falsePart == ""
}
