package waitgraph

import "iter"

// Body is a body that runs in an object, and may wait. It is compared by ==, like all of these.
type Body interface {
	// Object returns the object that it runs in.
	Object() Point
	// Elsewhere returns other objects at which it may block events, if it is a transaction.
	Elsewhere() []Point
	// Request returns the event that its caller waits for, if it does: that the body has returned.
	Request() Goal
	// Returned reports whether it has returned, and so blocks nothing.
	Returned() bool
	// String names it in circles.
	String() string
}

// Point is a wait point: events at the same one are blocked by the same bodies. An object is one; and
// if requests of an object are blocked by different bodies, each of them is one, too.
type Point interface {
	// Blockers appends the nodes of the bodies that block it now. Those that have no node, or
	// are known to have returned, can be left out.
	Blockers(nodes []*Node) []*Node
	// Via names what has the body block this point, if it runs in another object; else it is empty.
	Via(Body) string
}

// Goal is what a body waits for: an Event or a Join.
type Goal interface {
	// Pending reports whether it is yet to come, as far as that is known.
	Pending() bool
}

// Event is a goal that comes at an object: the end of a request, or of the object.
type Event interface {
	Goal
	// Object returns the object; it is nil as long as none is known.
	Object() Point
	// Point returns the wait point of an event that is pending: the object, or the event's own.
	Point() Point
	// String names it in circles.
	String() string
}

// Join is a goal that follows from others.
type Join interface {
	Goal
	// Parts returns those that it may still follow from; it is nil as long as they are not known.
	Parts() iter.Seq[Goal]
	// First reports whether the first of the parts will do.
	First() bool
}

// Link is a link of a circle: a body, or what has it block a point, waits for an event.
type Link struct {
	Body, For string
	Waits     *Node // of the body, if that is what waits for the event itself
}

// Events visits the events that the goal follows from, and reports whether that is all of them. Each join
// on the way is visited once, as one may be a part of several others.
func Events(goal Goal, visit func(Event)) (known bool) { return events(goal, nil, visit) }

func events(goal Goal, seen map[Goal]bool, visit func(Event)) (known bool) {
	if e, ok := goal.(Event); ok {
		visit(e)
		return true
	}
	if seen[goal] {
		return true // or it has been said
	}
	if seen == nil {
		seen = map[Goal]bool{}
	}
	seen[goal] = true
	parts := goal.(Join).Parts()
	if parts == nil {
		return !goal.Pending()
	}
	known = true
	for part := range parts {
		known = events(part, seen, visit) && known
	}
	return known
}
