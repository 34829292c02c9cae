package mailbox

// Where threads are assigned on arrival, a request may come before there is one for it (R11). It
// waits in the order of arrival over all operations, and is not considered, nor before
// others, until it has a thread: then it comes to the entry queue, or, if there was no room
// for it meanwhile, it goes on waiting in the overflow queue, where it stood.
//
//	ArriveAwaitingThread ──► awaiting thread ──AssignThread──► entry queue
//	                            │    ▲
//	                   overflow ▼    │ refill
//	                      overflow queue ──AssignThread──► overflow queue, of those that have a thread
//
// It waits like others: it is counted by bounds, can be withdrawn, and fails when the object
// is closed. A Try does not wait for a thread: see NoThreadToAssign.

// ArriveAwaitingThread is Arrive for a request that has no thread yet. If there is one for it,
// AssignThread follows in the same step.
func (s *Scheduler) ArriveAwaitingThread(r *Request) {
	q := s.register(r)
	r.state = StateAwaitingThread
	r.marks |= threadless
	s.threadless.push(r)
	q.length.Add(one)
	s.countTry(q, r, 1)
}

// AwaitingThread returns the request that is to have the next thread: of those that have none
// the one that has arrived first; or nil.
func (s *Scheduler) AwaitingThread() *Request {
	first := s.threadless.first
	for op := 0; op < len(s.queues) && s.overflowing > 0; op++ {
		q := &s.queues[op]
		r := q.out.first
		for q.threadless > 0 && !r.marks.has(threadless) {
			r = r.next
		}
		if q.threadless > 0 && (first == nil || r.seq < first.seq) {
			first = r
		}
	}
	return first
}

// AssignThread says that the request, which AwaitingThread has returned, has a thread.
func (s *Scheduler) AssignThread(r *Request) {
	s.step++
	r.marks = r.marks&^threadless | assigned
	q := &s.queues[r.Op]
	if r.state == StateOverflow {
		q.threadless--
		s.lineUp(q, &q.out, r) // it may start from there now
		return
	}
	s.passCursors(r)
	s.threadless.remove(r)
	if s.blocked(q, r, certain) {
		s.hasToWait(r)
	}
	s.found = true // it is before those that have come later, and have their thread
	s.toEntry(q, r)
}

// NoThreadToAssign says that no request gets a thread before the next input: those that do not
// wait for one are refused.
func (s *Scheduler) NoThreadToAssign() {
	if s.tries > 0 {
		s.refuseTries(s.threadless.first, true)
	}
}
