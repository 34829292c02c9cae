package mailbox

import "time"

// Policy is the order in which waiting requests are considered. Whatever it says,
// a request that has been bypassed as often as the rules allow comes first, and
// ties are broken by arrival. A nil *Policy is Arrival.
type Policy struct {
	// Name says in a few words what comes first.
	Name string
	// Before reports whether a is considered before b, given the number of the
	// operation that started last, or -1. It must be a strict weak order. An error
	// means that it failed (it panicked); the requests it was asked about fail with
	// it: the one that was to be put into its place, or both. If Before is nil the
	// order is that of arrival.
	Before func(a, b *Request, last int) (bool, error)
	// Within says that Before orders the requests of one operation too, by what
	// does not change while they are admitted. Else they are in order of arrival.
	Within bool
	// Fallible says that Before may fail. An explanation does not ask it then.
	Fallible bool
	// Choose, if not nil, picks one of the requests that may start now, which are
	// given in order of arrival, by its index. Its cost is that of looking at all
	// of them. If it fails, or what it returns is no index, all of them fail.
	Choose func(eligible []*Request) (int, error)
}

// Arrival considers requests in the order of their arrival, whatever they ask
// for.
var Arrival = &Policy{Name: "arrival"}

// Rotating takes the operations in turn: the one after that which started last
// is considered first. Within an operation the order is that of arrival.
var Rotating = &Policy{Name: "rotating over the operations", Before: func(a, b *Request, last int) (bool, error) {
	if later := a.Op > last; later != (b.Op > last) {
		return later, nil
	}
	return a.Op < b.Op, nil
}}

// LIFO considers the latest arrival first. One that is requeued has arrived again, unless
// it kept its place.
var LIFO = &Policy{Name: "last come, first served", Within: true, Before: func(a, b *Request, _ int) (bool, error) {
	return a.arrival > b.arrival, nil
}}

// Ranked considers the request with the least Rank first.
var Ranked = &Policy{Name: "rank", Within: true, Before: func(a, b *Request, _ int) (bool, error) {
	return a.Rank < b.Rank, nil
}}

// Candidate is a waiting request as a policy sees it: who asks for what, and with
// what data.
type Candidate struct {
	Operation string
	// Argument is the request's argument.
	Argument any
	// Client is who made the request, as WithClient says; the sender's PID, of a
	// message; nil if nobody has said.
	Client any
	// Priority is that of WithPriority; 0 if none was given.
	Priority int
	// Deadline is that of the request's context; the zero Time if it has none.
	Deadline time.Time
	// Arrival is the request's place in the order of arrivals at its object.
	Arrival uint64
}
