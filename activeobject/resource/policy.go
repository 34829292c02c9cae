package resource

import (
	"time"

	"github.com/sluice-go/sluice/activeobject"
)

// Policy decides which of the clients that wait for a resource gets it. It is one of the
// policies of active objects, with the clients' data in their place. Its functions are
// called with the scheduler locked: they must be quick, and not call it.
type Policy[D any] struct {
	option   activeobject.Option
	priority func(D) int
	lacks    string // what is wrong with it
}

// Client is one that waits, as a policy sees it.
type Client[D any] struct {
	// Client is its name, if activeobject.WithClient has given it one; else nil.
	Client any
	// Data is what it came with.
	Data D
	// Arrival is its place in the order of arrivals.
	Arrival uint64
	// Deadline is that of its context; the zero Time if it has none.
	Deadline time.Time
}

// FIFO is the policy by which the first to come is the first to go.
func FIFO[D any]() *Policy[D] { return &Policy[D]{option: activeobject.ByArrival()} }

// LIFO is the policy by which the last to come is the first to go.
func LIFO[D any]() *Policy[D] { return &Policy[D]{option: activeobject.ByLatest()} }

// ByPriority is the policy by which the greatest priority comes first, and among equals
// the first to come. The priority is asked for once, by the client's goroutine, before it
// waits; for a client that enters by message, by the scheduler.
func ByPriority[D any](priority func(data D) int) *Policy[D] {
	if priority == nil {
		return &Policy[D]{lacks: "is ByPriority of a nil function: pass one that returns the priority of the data"}
	}
	return &Policy[D]{priority: priority, option: ordered(func(a, b *activeobject.Candidate) bool {
		return grantOf[D](a).priority > grantOf[D](b).priority
	})}
}

// Ordered is the policy by which client a comes before client b if before says so, and
// among equals the first to come. Before must be a strict weak order over what does not
// change while they wait. If it panics, the client that is to be placed, or both, fail
// with *activeobject.PolicyError.
func Ordered[D any](before func(a, b Client[D]) bool) *Policy[D] {
	if before == nil {
		return &Policy[D]{lacks: "is Ordered by a nil function: pass one that says which of two clients comes first"}
	}
	return &Policy[D]{option: ordered(func(a, b *activeobject.Candidate) bool {
		return before(clientOf[D](a), clientOf[D](b))
	})}
}

// Choosing is the policy by which the function chooses among all that wait, which come
// in the order of arrival, by returning an index. If it panics, or returns no index, all
// of them fail with *activeobject.PolicyError. It is not asked about a client that finds
// the resource available and no other waiting.
func Choosing[D any](choose func(waiting []Client[D]) int) *Policy[D] {
	if choose == nil {
		return &Policy[D]{lacks: "is Choosing by a nil function: pass one that returns the index of the client that is next"}
	}
	return &Policy[D]{option: activeobject.ByChoice(func(eligible []*activeobject.Candidate) int {
		waiting := make([]Client[D], len(eligible))
		for i, c := range eligible {
			if !enters(c) {
				return i
			}
			waiting[i] = clientOf[D](c)
		}
		return choose(waiting)
	})}
}

// ordered is an order of clients. Requests that are none, by which a grant ends or a client
// that has sent a message begins to wait, go before requests of clients.
func ordered(before func(a, b *activeobject.Candidate) bool) activeobject.Option {
	return activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
		if !enters(a) || !enters(b) {
			return !enters(a) && enters(b)
		}
		return before(a, b)
	})
}

// enters reports whether the request waits for the resource.
func enters(c *activeobject.Candidate) bool {
	return c.Operation == enterByCall || c.Operation == enterByMessage
}

func grantOf[D any](c *activeobject.Candidate) *Grant[D] {
	return c.Argument.(interface{ asked() *Grant[D] }).asked()
}

func clientOf[D any](c *activeobject.Candidate) Client[D] {
	return Client[D]{Client: c.Client, Data: grantOf[D](c).data, Arrival: c.Arrival, Deadline: c.Deadline}
}
