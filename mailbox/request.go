package mailbox

// State is where a request is on its way.
type State uint8

const (
	// StateFresh requests have not arrived.
	StateFresh State = iota
	// StateOverflow requests wait in the overflow queue for room in a queue that is full.
	StateOverflow
	// StateAwaitingThread requests wait for a thread, before they are considered.
	StateAwaitingThread
	// StateEntry requests wait in the entry queue: they have not been admitted.
	StateEntry
	// StateAdmitted requests have been admitted, and wait in the queue of their operation.
	StateAdmitted
	// StateRunning requests have been returned by Next and have not completed.
	StateRunning
	// StateRetained requests stand for others that have completed, as their transaction retains them.
	StateRetained
	// StateFailed requests wait for Next to report their failure.
	StateFailed
	// StateDone requests have started and ended, or failed, or left.
	StateDone
)

// Request is one call of one operation on its way through a scheduler. It can be
// used again once it is StateDone.
type Request struct {
	// The fields that are read when very many requests wait come first.

	// Record belongs to the user of the scheduler, which does not look at it.
	Record any

	next, prev *Request
	result     result // of a guard over its own argument
	bypassed   int32
	state      State
	marks      marks

	// Try requests are never admitted to wait (R9): once nothing that runs conflicts with
	// them they start, or fail with *RefusedError. So do they when they are requeued.
	Try bool
	// Patient requests wait in the overflow queue if their queue is full and its bound says
	// so; others are refused.
	Patient bool
	// Op is the number of the operation.
	Op    int
	rests uint64 // Scheduler.rests when it arrived: if that has changed, the request has had to wait

	seq     uint64     // its order number: see order.go
	came    uint64     // the order number with which it came to the entry queue; 0 if it has been requeued
	arrival uint64     // see Arrival
	node    *placeNode // made when it is first put into a tree
	err     error      // while StateFailed

	// Key tells the requests of a family apart. It must be comparable.
	Key any
	// Rank is for the policy Ranked.
	Rank int64
	// Claim is needed if the operation is scoped (Rules.Scoped), for each turn a new one.
	Claim *Claim
}

// marks are what is noted of a request, in one byte: with it the fields that are looked at
// when very many wait end with a word.
type marks uint8

const (
	extra      marks = 1 << iota // among Scheduler.extras
	threadless                   // has arrived without a thread, and has got none: StateAwaitingThread, or StateOverflow
	assigned                     // has arrived without, and got one: later arrivals may have been admitted before it
)

func (m marks) has(some marks) bool { return m&some != 0 }

// State returns where the request is.
func (r *Request) State() State { return r.state }

// Ended reports whether the scheduler is done with the request.
func (r *Request) Ended() bool { return r.state == StateDone }

// Waits reports whether the request is in a queue.
func (r *Request) Waits() bool { return r.state >= StateOverflow && r.state <= StateAdmitted }

// Arrival returns the request's place in the order of arrivals at its object,
// counted from 1; it identifies the request there. One that has been requeued
// has arrived again, unless it kept its place.
func (r *Request) Arrival() uint64 { return r.arrival }

// placed reports whether the request is sorted into a tree.
func (r *Request) placed() bool { return r.node != nil && r.node.placed }

// line returns the line of a family that the request is a member of, or nil.
func (r *Request) line() *line {
	if r.node == nil {
		return nil
	}
	return r.node.v.line
}

// Fresh forgets the place that a request had in the order of arrivals, before it
// is used for another call.
func (r *Request) Fresh() { r.arrival, r.seq = 0, 0 }

// list is a doubly linked list through the requests themselves, so that insertion
// and removal cost the same however many wait.
type list struct {
	first, last *Request
}

// end returns the first request or the last, and beyond the one after r, from that end.
func (l *list) end(first bool) *Request {
	if first {
		return l.first
	}
	return l.last
}

func (r *Request) beyond(first bool) *Request {
	if first {
		return r.next
	}
	return r.prev
}

func (l *list) push(r *Request) {
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
}

// insert puts r in its place by order of arrival. It looks from both ends, as a
// request that has kept an old place is near the front.
func (l *list) insert(r *Request) {
	if l.last == nil || l.last.seq < r.seq {
		l.push(r)
	} else {
		l.squeeze(r)
	}
}

// squeeze is insert for a request that is not the last.
func (l *list) squeeze(r *Request) {
	front, back := l.first, l.last // some request comes after r: front and back meet
	for front.seq < r.seq && back.prev != nil && back.prev.seq > r.seq {
		front, back = front.next, back.prev
	}
	at := back // the first request that comes after r
	if front.seq > r.seq {
		at = front
	}
	r.prev, r.next = at.prev, at
	if at.prev == nil {
		l.first = r
	} else {
		at.prev.next = r
	}
	at.prev = r
}

// find returns the request with the arrival number, or nil.
func (l *list) find(arrival uint64) *Request {
	for r := l.first; r != nil; r = r.next {
		if r.arrival == arrival {
			return r
		}
	}
	return nil
}

func (l *list) remove(r *Request) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}
