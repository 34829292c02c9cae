package mailbox

import "iter"

// Recorder is told what happens at an object: the events of its log, and, whenever it has settled
// after some, which requests wait, and why. Its functions are called with the object's mutex held,
// so they must be quick, not panic, and not call the object. No two calls for one object overlap.
type Recorder interface {
	// Event is called for each line of the log.
	Event(Event)
	// Waits is called when the object has settled, with the requests that wait, in no particular
	// order. The sequence and what it yields are valid only during the call.
	Waits(all iter.Seq[*RecordedWait])
}

// RecordedWait is a request that waits, and why.
type RecordedWait struct {
	Op      int // the number of the operation
	Arrival uint64
	// Thread says that the request keeps a thread while it waits.
	Thread bool
	Reason Reason
	// For are the arrivals of the requests that it waits for directly: those that run and that
	// it conflicts with; else the one that comes before it.
	For []uint64
}
