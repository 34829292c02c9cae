package kernel

// Policy is the order in which waiting requests of different operations are
// considered. Within an operation the order is that of arrival.
type Policy interface {
	// Name says in a few words what comes first.
	Name() string
	// Before reports whether a is considered before b, given the number of the
	// operation that started last, or -1. It must be a strict weak order.
	Before(a, b *Request, last int) bool
}

// Arrival considers requests in the order of their arrival, whatever they ask
// for.
var Arrival Policy = arrival{}

// Rotating takes the operations in turn: the one after that which started last
// is considered first. Within an operation the order is that of arrival.
var Rotating Policy = rotating{}

type arrival struct{}

func (arrival) Name() string                     { return "arrival" }
func (arrival) Before(a, b *Request, _ int) bool { return a.seq < b.seq }

type rotating struct{}

func (rotating) Name() string { return "rotating over the operations" }

func (rotating) Before(a, b *Request, last int) bool {
	if later := a.Op > last; later != (b.Op > last) {
		return later
	}
	return a.Op < b.Op
}
