package mailbox

// Event is a line of a scheduler's log.
type Event struct {
	Kind EventKind
	// Op is the number of the operation; -1 of what is done to the object.
	Op int
	// Arrival is the request's place in the order of arrivals; 0 stands for one
	// that found the object idle, or, of an answer, for everybody who waits for the
	// operation.
	Arrival uint64
	// FalsePart is the part of the guard that is false, of an evaluation; empty if
	// the guard holds.
	FalsePart string
}

// EventKind is what happened.
type EventKind uint8

const (
	// Arrived says: the request came.
	Arrived EventKind = iota
	// Evaluated says: the guard was evaluated.
	Evaluated
	// Started says: the request runs from now on.
	Started
	// Ended says: it runs no more, or was declined.
	Ended
	// Abandoned says: it had not begun, and never will.
	Abandoned
	// Withdrawn says: it left its queue without having run.
	Withdrawn
	// Failing says: it left its queue, and is to fail.
	Failing
	// Reranked says: it was given another rank.
	Reranked
	// Held says: nothing starts until the object is freed.
	Held
	// Freed says: requests may start again.
	Freed
	// Retained says: its transaction retains it, after it has ended.
	Retained
	// Released says: its transaction retains it no more.
	Released
	// Lapsed says: no result of a guard stands any more, as time has passed.
	Lapsed
)

// String implements fmt.Stringer.
func (e EventKind) String() string {
	return [...]string{"arrived", "evaluated", "started", "ended", "abandoned", "withdrawn", "failing", "reranked", "held", "freed", "retained", "released", "lapsed"}[e]
}

func (s *Scheduler) logObject(kind EventKind) { s.log(kind, -1, nil, "") }

func (s *Scheduler) log(kind EventKind, op int, r *Request, falsePart string) {
	if s.rules.Log != nil {
		s.tell(kind, op, r, falsePart)
	}
}

func (s *Scheduler) tell(kind EventKind, op int, r *Request, falsePart string) {
	e := Event{Kind: kind, Op: op, FalsePart: falsePart}
	if r != nil {
		e.Arrival = r.arrival
	}
	s.rules.Log(e)
}
