package kernel

// Stats are the counts of one operation since the kernel was made. What runs
// without the kernel's knowledge is not among them.
type Stats struct {
	// Starts counts the requests that ran; one that was requeued counts again.
	Starts uint64
	// Waits counts those that could not start at once, those that wait now
	// included.
	Waits uint64
	// Withdrawals counts those that left their queue without having run, also those
	// that had been chosen to start when their context ended; and Refusals those that were turned away from a queue that was full, or made
	// room there.
	Withdrawals uint64
	Refusals    uint64
	// Evaluations counts how often guards were asked.
	Evaluations uint64
	// LongestBypass is the greatest number of later arrivals that started while a
	// request waited and its guard was open: as far as that is counted.
	LongestBypass int
}

// Waited reports whether r, which waits or has just been returned by Next, could not
// start at once.
func (k *Kernel) Waited(r *Request) bool { return r.rest != k.rests }

// counters are what a queue counts.
type counters struct {
	started, waited, withdrawn, refused, asked uint64
	longest                                    int
	doors                                      int // requests at the door
	tries                                      int // at the gate, that never wait inside
}

// Stats returns the counts of an operation.
func (k *Kernel) Stats(op int) Stats {
	q := &k.queues[op]
	s := Stats{
		Starts: q.started, Waits: q.waited, Withdrawals: q.withdrawn, Refusals: q.refused,
		Evaluations: q.asked, LongestBypass: q.longest,
	}
	for _, l := range [...]*list{&q.inside, &q.gate, &q.door.list} {
		for r := l.first; r != nil; r = r.next {
			if k.Waited(r) {
				s.Waits++
			}
			if k.counts() > 0 {
				s.LongestBypass = max(s.LongestBypass, k.Bypassed(r))
			}
		}
	}
	return s
}
