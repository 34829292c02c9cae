// Package waitgraph finds deadlocks: circles of bodies of which none can go on before another one
// has. It knows bodies, objects and requests by the four interfaces of interfaces.go, and calls
// nothing else of theirs.
//
// # The picture
//
//	      waits for            at               blocked by
//	body ───────────► event ──────► wait point ────────────► bodies
//	 │  │
//	 │  └───────────► join  ──────► its parts, which are events and joins
//	 │                              (it needs all of them, or the first)
//	 └── has called ► bodies
//
//	a body       can go on when all that it waits for can come, and the bodies that it has called
//	             can go on
//	an event     can come when all bodies that block its wait point can go on
//	a join       can come when all its parts can; or, if it is of the first, when one of them can
//
// So this is reachability in an AND/OR graph. Its nodes and arcs are found while it is walked, since
// what blocks a wait point changes with every start and end of a request, of which the graph is
// not told. What is kept is, per body that waits, a Node with its waits and callers, and per object
// how many waits lead there.
//
// # Invariants
//
// G1. Every circle is found when it arises. A circle arises by a wait that is drawn, by an event that
// moves to another object, by a part of a join that is lost, or by new blockers of an object. The
// goroutine that causes one of these calls Circle for the waits concerned, under the hold of the lock
// in which it has drawn a wait, or after the change: so of several changes that close a circle together,
// the last one sees all others. Waits finds them where the blockers of an object have changed.
//
// G2. No circle is found that is none. Circle returns one only if no order in which bodies go on lets
// the goal of the wait come. A first-of with one free part can come, whatever its other parts lead to.
//
// G3. Whenever the lock is free there is no circle (but for those that a change has closed for which Circle
// is about to be called). For a wait that closes one is erased under the same hold.
//
// G4. Therefore a circle leads through the wait that Circle is asked about: out of the chain of its body by
// its goal, and into the chain by another wait, for an event at an object in which the chain
// is. If no wait leads into the chain, or the goal does not lead back to it, there is none.
//
// G5. A wait is counted at each object that has an event which its goal follows from. While a wait
// follows from events that are not known yet, or bodies of other objects block an object (Elsewhere),
// any chain is taken to have a wait that leads into it. So the first half of G4 is never denied wrongly.
//
// G6. The effort is bounded by the cheaper of the two halves of G4. Both are pursued in turn, chunk bodies of the
// chain for each step of the walk, until one says no: a chain that no wait leads into takes no walk,
// and of a deep chain that waits for something free only a part is looked at. If neither says no, it
// is linear in the bodies, waits and parts between the goal and the chain: each is walked once, and
// struck out at most once.
//
// # The lock
//
// A graph has one lock, since a circle may lead through any objects. All methods of Graph and Node are
// called with it held, and so are those of the interfaces, which may take locks of an object, one at a
// time: the order is the graph's lock, then that of an object. It is held for
//
//   - a constant time, if no wait leads into the caller's chain, and that is short, or its goal
//     leads to few bodies;
//   - in general the effort of G6;
//   - once in the life of each body that waits, or has called one that does, a step to make its node.
package waitgraph

import (
	"slices"
	"sync"
)

// Graph is the bodies that wait, and what they wait for. The zero Graph is empty.
type Graph struct {
	sync.Mutex
	waits     map[Point]int // per object, those that lead there (G5); no zeroes
	unknown   int           // those that may come to follow from other events
	elsewhere int           // objects that bodies of other objects block
	erased    uint64        // waits that have been erased
	looked    int           // effort so far: nodes and arcs that have been looked at
}

// Node is a body's place in the graph. A body needs one before it waits, and so do the bodies
// that it was called from.
type Node struct {
	body   Body
	caller *Node // nil of the outermost of a chain
	root   *Node // the outermost
	called []*Node
	waits  []*Wait
	room   [1]*Wait
}

// Wait is an edge of the graph: a body waits for a goal. A body that waits for the first of several
// has one wait, for a join; one with several waits needs all of their goals. The bodies that it was
// called from wait with it, and have no wait of their own for that.
type Wait struct {
	// Owner is for the user of the graph.
	Owner any

	from    *Node // nil if it is not drawn
	goal    Goal
	at      []Point // where it is counted
	room    [1]Point
	unknown bool // it is counted as such
}

// NewNode returns the node of a body that the body of the caller, if that is not nil, has called.
func NewNode(body Body, caller *Node) *Node {
	n := &Node{body: body, caller: caller}
	n.waits, n.root = n.room[:0], n
	if caller != nil {
		n.root = caller.root
		if len(caller.called) == cap(caller.called) { // so that the effort is constant, and they do not pile up
			caller.called = slices.DeleteFunc(caller.called, (*Node).returned)
		}
		caller.called = append(caller.called, n)
	}
	return n
}

// Body returns the body of the node.
func (n *Node) Body() Body { return n.body }

// Waits returns what the body waits for; it is not to be changed.
func (n *Node) Waits() []*Wait { return n.waits }

// Called returns the nodes of the bodies that it has called, of which some may have returned; it
// is not to be changed.
func (n *Node) Called() []*Node { return n.called }

// WaitsFor reports whether the body itself waits for the goal.
func (n *Node) WaitsFor(goal Goal) bool {
	return slices.ContainsFunc(n.waits, func(w *Wait) bool { return w.goal == goal })
}

func (n *Node) returned() bool { return n.body.Returned() }

// From returns the node of the body that waits, or nil if the wait is not drawn.
func (w *Wait) From() *Node { return w.from }

// Goal returns what the body waits for.
func (w *Wait) Goal() Goal { return w.goal }

// Draw draws w, as a wait of the node's body for the goal.
func (g *Graph) Draw(w *Wait, from *Node, goal Goal) {
	w.from, w.goal = from, goal
	from.waits = append(from.waits, w)
	g.count(w)
}

// Erase erases w, if it is drawn.
func (g *Graph) Erase(w *Wait) {
	if w.from == nil {
		return
	}
	i := slices.Index(w.from.waits, w)
	w.from.waits = slices.Delete(w.from.waits, i, i+1)
	w.from = nil
	g.erased++
	g.uncount(w)
}

// Recount counts w where its goal is now, which has moved.
func (g *Graph) Recount(w *Wait) {
	if w.from != nil {
		g.uncount(w)
		g.count(w)
	}
}

// Elsewhere adds to the number of objects that bodies of other objects block.
func (g *Graph) Elsewhere(objects int) { g.elsewhere += objects }

// Counts returns, for tests, the sum over all objects of the waits that lead there; how many waits
// follow from events that are not known yet; and the sum of what Elsewhere has added.
func (g *Graph) Counts() (waits, unknown, elsewhere int) {
	for _, n := range g.waits {
		waits += n
	}
	return waits, g.unknown, g.elsewhere
}

// Looked returns, for tests, the effort of all searches so far.
func (g *Graph) Looked() int { return g.looked }

func (g *Graph) count(w *Wait) {
	if g.waits == nil {
		g.waits = map[Point]int{}
	}
	w.at = w.room[:0]
	if e, ok := w.goal.(Event); ok { // most are, and this allocates nothing
		g.countEvent(w, e)
	} else if known := Events(w.goal, func(e Event) { g.countEvent(w, e) }); !known {
		w.unknown = true
	}
	if w.unknown {
		g.unknown++
	}
}

func (g *Graph) countEvent(w *Wait, e Event) {
	if at := e.Object(); at == nil {
		w.unknown = true
	} else {
		g.waits[at]++
		w.at = append(w.at, at)
	}
}

func (g *Graph) uncount(w *Wait) {
	for _, at := range w.at {
		if n := g.waits[at]; n > 1 {
			g.waits[at] = n - 1
		} else {
			delete(g.waits, at)
		}
	}
	if w.unknown {
		g.unknown--
	}
	w.at, w.unknown = nil, false
}

// Waits returns the waits that lead to the object and may be in a circle through it: those that its
// blockers lead to. When Circle has been called for each, and those that are in one have been erased,
// no circle leads through the object.
func (g *Graph) Waits(object Point) (found []*Wait) {
	nodes, objects := map[*Node]bool{}, map[Point]bool{nil: true}
	var follow func(*Node)
	into := func(at Point) {
		if !objects[at] {
			objects[at] = true
			for _, n := range at.Blockers(nil) {
				follow(n)
			}
		}
	}
	follow = func(n *Node) {
		if nodes[n] || n.returned() {
			return
		}
		nodes[n] = true
		for _, w := range n.waits {
			leads := false
			Events(w.goal, func(e Event) {
				at := e.Object()
				leads = leads || at == object
				into(at)
			})
			if leads {
				found = append(found, w)
			}
		}
		for _, inner := range n.called {
			follow(inner)
		}
	}
	into(object)
	return found
}
