package kernel

// State is where a request is on its way.
type State uint8

const (
	// Fresh requests have not arrived.
	Fresh State = iota
	// AtGate requests wait outside for what conflicts with them to end.
	AtGate
	// Inside requests wait in the queue of their operation.
	Inside
	// Running requests have been returned by Next and have not completed.
	Running
	// Failed requests wait for Next to report their failure.
	Failed
	// Done requests are of no concern to the kernel any more.
	Done
)

// Request is one call of one operation on its way through a kernel. It can be
// used again once it is Done.
type Request struct {
	// Op is the number of the operation.
	Op int
	// Try requests never wait inside: once nothing that runs conflicts with
	// them they start, or fail with *Refused.
	Try bool
	// Record is whatever the user of the kernel wants to find again with the
	// request. The kernel does not look at it.
	Record any

	state      State
	bypassed   int32
	seq        uint64
	next, prev *Request
	answer     answer // of a guard over arguments
	err        error  // while Failed
}

// State returns where the request is.
func (r *Request) State() State { return r.state }

// Ended reports whether the kernel is done with the request.
func (r *Request) Ended() bool { return r.state == Done }

// Arrival returns the request's place in the order of arrivals at its object,
// counted from 1.
func (r *Request) Arrival() uint64 { return r.seq }

// list is a doubly linked list through the requests themselves, so that joining
// and leaving cost the same however many wait.
type list struct {
	first, last *Request
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
