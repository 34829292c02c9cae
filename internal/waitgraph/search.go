package waitgraph

import "slices"

// chunk is how many bodies of the chain are looked at first, and then for each step of the walk.
const chunk = 16

// search looks for a circle through one wait (G4).
//
//	own chain, from inside outwards              ┌──► wait point ──► body ──► …
//	from ──► caller ──► caller ──► …             from
//	└ a wait leads here?  └ and here?            └──► (until a body of the chain is met)
type search struct {
	chain
	from *Node
	back bool // the walk has come to a body of the chain

	vertices map[any]*vertex // by *Node, Point and Join
	todo     []*vertex       // whose arcs are not known
	free     []*vertex       // that can go on, and whose predecessors have yet to be told
	own      map[*Node]int   // the bodies of the chain, numbered from 1 outwards, when that has been asked

	// Room for what is found.
	spare []vertex
	room  int // how large spare was when it was made last
	nodes []*Node

	// For naming the circle: what of it has been named, and where in the chain it begins.
	named map[*vertex]bool
	start *Node
	links []Link
}

// chain is the first half of a search, which is apart since it suffices for most, and allocates nothing.
type chain struct {
	graph *Graph
	outer *Node // the part that has not been looked at; nil if all has been
	into  bool  // a wait has been found that leads into the chain
}

// vertex is a body, a wait point or a join that the goal leads to.
type vertex struct {
	of    any // *Node, Point or Join
	arcs  []arc
	preds []*vertex // those with arcs to it
	stuck int       // arcs to what is not known to go on
	first bool      // one arc to what can go on will do
	own   bool      // a body of the chain
	free  bool      // it can go on
	far   int       // of what cannot, and leads to the chain: how far it is from there, counted from 1; else 0

	// Most have one of each.
	arc  [1]arc
	pred [1]*vertex
}

// arc leads to what a vertex depends on.
type arc struct {
	to   *vertex
	goal Goal // of a body's wait, or a join's part; else nil
}

// stuck reports whether what the arc leads to cannot go on, because of the chain among others.
func (a arc) stuck() bool { return a.to.far > 0 }

// nearest returns the arc that leads to the chain on the shortest way, so that whatever other circles there are, to
// follow it comes to the chain. It returns -1 if none leads there.
func (v *vertex) nearest() int {
	near := -1
	for i, a := range v.arcs {
		if a.stuck() && (near < 0 || a.to.far < v.arcs[near].to.far) {
			near = i
		}
	}
	return near
}

// Circle returns the circle that w, which is drawn, is in; or nil, if there is none.
//
// Of several things that block another the one is named that is on a shortest way back to the chain; by G3 each
// leads there, but for circles that are about to be looked for.
func (g *Graph) Circle(w *Wait) []Link {
	c := chain{graph: g, outer: w.from, into: g.unknown > 0 || g.elsewhere > 0}
	if c.enclosed() {
		return nil
	}
	s := &search{chain: c, from: w.from, vertices: map[any]*vertex{}}
	first := s.goal(w.goal)
	for len(s.todo) > 0 {
		v := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		if s.expand(v); len(s.todo) > 0 && s.enclosed() {
			return nil
		}
	}
	if first == nil || !s.back {
		return nil
	}
	if s.strike(); first.free {
		return nil
	}
	if s.trace(); first.far == 0 {
		return nil // another circle is in its way, which is about to be broken
	}
	s.named = map[*vertex]bool{}
	s.name(w.goal, first, w.from)
	if s.start == nil {
		return nil
	}
	// Out of the object along the own chain, and through the others back.
	return append(between(s.start, s.from), s.links...)
}

// Circles calls found for each of the waits that is in a circle, until none is. Found erases the wait,
// or leaves it, if that is over soon.
//
// One event may close several circles at once. While another one stands, Circle may lose its way in
// that one, so those that it has cleared are looked at again when it has been broken. In the end there is
// none: it would have a smallest part whose bodies block each other, with a wait for that event, from which
// there is no other way.
func (g *Graph) Circles(waits []*Wait, found func(w *Wait, circle []Link)) {
	for again := true; again; {
		again = false
		for _, w := range waits {
			if w.from == nil {
				continue
			}
			if circle := g.Circle(w); circle != nil {
				erased := g.erased
				found(w, circle)
				again = again || g.erased != erased
			}
		}
	}
}

// enclosed looks at the next chunk of the chain, and reports whether that was the last, and no wait
// leads into the chain. It ends at a body that has returned.
func (c *chain) enclosed() bool {
	for range chunk {
		if c.into {
			return false
		}
		if c.outer == nil || c.outer.returned() {
			return true
		}
		c.graph.looked++
		c.into = c.graph.enters(c.outer)
		c.outer = c.outer.caller
	}
	return false
}

// enters reports whether a wait leads into a chain by the object of one of its bodies: another one
// than that of the body's own caller.
func (g *Graph) enters(n *Node) bool {
	waits := g.waits[n.body.Object()]
	if waits > 0 && n.caller != nil && n.caller.WaitsFor(n.body.Request()) {
		waits--
	}
	return waits > 0 || slices.ContainsFunc(n.body.Elsewhere(), func(at Point) bool { return g.waits[at] > 0 })
}

// depth returns the number of the body in the chain, from inside outwards; 0 if it is not in it.
func (s *search) depth(n *Node) int {
	if n.root != s.from.root {
		return 0
	}
	if s.own == nil {
		s.own = map[*Node]int{}
		for m := s.from; m != nil && !m.returned(); m = m.caller {
			s.own[m] = len(s.own) + 1
			s.graph.looked++
		}
	}
	return s.own[n]
}

// vertex returns the vertex of a *Node, Point or Join.
func (s *search) vertex(of any) *vertex {
	v := s.vertices[of]
	if v != nil {
		return v
	}
	if len(s.spare) == 0 {
		s.room = min(max(8*s.room, 4), 64) // most searches end soon
		s.spare = make([]vertex, s.room)
	}
	v, s.spare = &s.spare[0], s.spare[1:]
	v.of, v.arcs, v.preds = of, v.arc[:0], v.pred[:0]
	s.vertices[of] = v
	s.todo = append(s.todo, v)
	return v
}

// goal returns the vertex that the goal depends on, or nil if that can come now.
func (s *search) goal(goal Goal) *vertex {
	if !goal.Pending() {
		return nil
	}
	if e, ok := goal.(Event); ok {
		return s.vertex(e.Point())
	}
	return s.vertex(goal)
}

// expand finds the arcs of v.
func (s *search) expand(v *vertex) {
	s.graph.looked++
	switch of := v.of.(type) {
	case *Node:
		if s.depth(of) > 0 {
			v.own, s.back = true, true
			return // what it waits for does not matter
		}
		if of.returned() {
			break
		}
		for _, w := range of.waits {
			s.depend(v, s.goal(w.goal), w.goal)
		}
		for _, inner := range of.called {
			if !inner.returned() {
				s.depend(v, s.vertex(inner), nil)
			}
		}
	case Join:
		v.first = of.First()
		if parts := of.Parts(); parts != nil {
			for part := range parts {
				s.depend(v, s.goal(part), part)
			}
		}
	case Point:
		s.nodes = of.Blockers(s.nodes[:0])
		for _, n := range s.nodes {
			s.depend(v, s.vertex(n), nil)
		}
	}
	if v.free = v.free || v.stuck == 0; v.free {
		s.free = append(s.free, v)
	}
}

// depend adds an arc from v; to is nil if it leads to what can come now.
func (s *search) depend(v, to *vertex, goal Goal) {
	s.graph.looked++
	if to == nil {
		v.free = v.free || v.first
		return
	}
	v.arcs = append(v.arcs, arc{to, goal})
	to.preds = append(to.preds, v)
	v.stuck++
}

// strike strikes out what can go on, and what can go on because of that: v.free says so in the
// end. It begins with the assumption that nothing can, which is true of what is left.
func (s *search) strike() {
	for len(s.free) > 0 {
		v := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		for _, p := range v.preds {
			s.graph.looked++
			if p.stuck--; !p.free && (p.stuck == 0 || p.first) {
				p.free = true
				s.free = append(s.free, p)
			}
		}
	}
}

// trace finds what leads to the chain, and how far it is from there: there may be other circles, for which Circle
// is about to be called, so that not all that is stuck does, nor every way.
func (s *search) trace() {
	var reached []*vertex
	for _, v := range s.vertices {
		if v.own {
			v.far = 1
			reached = append(reached, v)
		}
	}
	for len(reached) > 0 {
		v := reached[0]
		reached = reached[1:]
		for _, p := range v.preds {
			s.graph.looked++
			if !p.free && p.far == 0 {
				p.far = v.far + 1
				reached = append(reached, p)
			}
		}
	}
}

// name names what the body n waits for, the goal with the vertex v, and how it goes on from there.
func (s *search) name(goal Goal, v *vertex, n *Node) {
	if e, ok := goal.(Event); ok {
		s.links = append(s.links, Link{n.body.String(), e.String(), n})
		s.through(v)
		return
	}
	if s.named[v] {
		return
	}
	s.named[v] = true
	if !v.first {
		if i := v.nearest(); i >= 0 {
			s.name(v.arcs[i].goal, v.arcs[i].to, n)
		}
		return
	}
	for _, a := range v.arcs { // all of them are in the circle
		if a.stuck() {
			s.name(a.goal, a.to, n)
		}
	}
}

// through names how the circle goes on from a wait point: by the innermost body of the own chain that
// blocks it, or by the first body that does.
func (s *search) through(v *vertex) {
	if s.named[v] {
		return
	}
	s.named[v] = true
	var to *vertex
	for _, a := range v.arcs {
		switch {
		case !a.stuck():
		case to == nil, a.to.far < to.far, a.to.own && to.own && s.own[a.to.of.(*Node)] < s.own[to.of.(*Node)]:
			to = a.to
		}
	}
	if to == nil {
		return
	}
	n := to.of.(*Node)
	if via := v.of.(Point).Via(n.body); via != "" {
		s.links = append(s.links, Link{Body: via, For: n.body.String()})
	}
	if !to.own {
		s.down(n, to)
	} else if s.start == nil || s.own[n] > s.own[s.start] {
		s.start = n // the furthest out that the circle comes back to
	}
}

// down names what blocks the body n with the vertex v: a goal of it, or of one that it has called.
func (s *search) down(n *Node, v *vertex) {
	for {
		i := v.nearest()
		if i < 0 {
			return
		}
		a := v.arcs[i]
		if a.goal != nil {
			inner := v.of.(*Node)
			s.links = append(s.links, between(n, inner)...)
			s.name(a.goal, a.to, inner)
			return
		}
		v = a.to
	}
}

// between returns the links of a chain from one body to another that it has called, perhaps by way
// of others.
func between(outer, inner *Node) (links []Link) {
	for n := inner; n != outer; n = n.caller {
		links = append(links, Link{Body: n.caller.body.String(), For: n.body.String()})
	}
	slices.Reverse(links)
	return links
}
