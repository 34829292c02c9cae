package mailbox

// Where threads are assigned on arrival, a request may come before there is one for it. It
// waits outside, in the order of arrival over all operations, and is not considered, nor in
// anybody's way, before it has a thread: then it comes to the gate, or, if there was no room
// for it meanwhile, it goes on waiting at the door, where it stood.
//
//	ArriveThreadless ──► threadless ──Man──► gate
//	                        │   ▲
//	               overflow ▼   │ refill
//	                        door ──Man──► door, of those who have a thread
//
// It waits like others: it is counted by bounds, can be withdrawn, and fails when the object
// is closed. A Try does not wait for a thread: see Strand.

// ArriveThreadless is Arrive for a request that has no thread yet. It is followed by Man, in
// the same step if there is one.
func (k *Scheduler) ArriveThreadless(r *Request) {
	q := k.register(r)
	r.state = StateThreadless
	r.marks |= bare
	k.threadless.push(r)
	q.length.Add(one)
	k.untried(q, r, 1)
}

// Threadless returns the request that is to have the next thread: of those that have none
// the one that has arrived first; or nil.
func (k *Scheduler) Threadless() *Request {
	first := k.threadless.first
	if k.doors == 0 {
		return first
	}
	for op := range k.queues {
		if k.queues[op].door.bare == 0 {
			continue
		}
		for r := k.queues[op].door.first; r != nil; r = r.next {
			if r.marks.has(bare) {
				if first == nil || r.seq < first.seq {
					first = r
				}
				break
			}
		}
	}
	return first
}

// Man says that the request, which Threadless has returned, has a thread.
func (k *Scheduler) Man(r *Request) {
	k.step++
	r.marks = r.marks&^bare | manned
	q := &k.queues[r.Op]
	if r.state == StateAtDoor {
		q.door.bare--
		k.lineUp(q, r) // it may start from there now
		return
	}
	k.passCursors(r)
	k.threadless.remove(r)
	if k.barsSurely(r) {
		k.hasToWait(r)
	}
	k.toGate(q, r)
}

// Strand says that nobody gets a thread before the next input: those who do not wait for one
// are refused.
func (k *Scheduler) Strand() {
	if k.tries > 0 {
		k.strand(k.threadless.first, func(*Request) bool { return true })
	}
}

// strand refuses each Try from r on, in its list, of those, as there is no thread for it.
func (k *Scheduler) strand(r *Request, those func(*Request) bool) (some bool) {
	for r != nil {
		next := r.next
		if r.Try && those(r) {
			k.fail(r, &RefusedError{Operation: k.rules.Operations[r.Op].Name})
			some = true
		}
		r = next
	}
	return some
}

// leaveThreadless takes r out of the list.
func (k *Scheduler) leaveThreadless(q *queue, r *Request) {
	k.passCursors(r)
	k.threadless.remove(r)
	k.untried(q, r, -1)
}

// extremeThreadless is extreme for those of the operation that have no thread.
func (k *Scheduler) extremeThreadless(op int, oldest bool) *Request {
	r := k.threadless.last
	if oldest {
		r = k.threadless.first
	}
	for r != nil && (r.Op != op || r.Try) {
		if oldest {
			r = r.next
		} else {
			r = r.prev
		}
	}
	return r
}
