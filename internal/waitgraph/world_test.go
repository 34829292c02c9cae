package waitgraph

import (
	"fmt"
	"iter"
	"slices"
)

// world is a graph with bodies, objects, requests and joins that have nothing else to do.
type world struct {
	Graph
	objects []*object
	bodies  []*body
	goals   []Goal
	waits   []*Wait // that have been drawn; some may have been erased
}

type object struct {
	name    string
	running []*body
	below   []*object // whose bodies block it
	held    []*body   // that block it, and run elsewhere: transactions
}

type body struct {
	name     string
	at       *object
	request  *request
	caller   *body
	called   []*body
	node     *Node // nil as long as it has no need of one
	returned bool
	holds    []Point
}

// request waits at its object, runs as its body, or has ended.
type request struct {
	name  string
	at    *object // nil if it has not been handed in
	own   bool    // it is a wait point of its own
	body  *body
	ended bool
	meets []*body // of a wait point of its own, as long as it waits
}

type join struct {
	first, unknown bool
	parts          []Goal // nil if it has been lost
}

func (o *object) Blockers(nodes []*Node) []*Node { return nodesOf(nodes, o.blockers()) }

func (o *object) Via(b Body) string {
	if by := b.(*body); by.at == o || slices.Contains(o.held, by) {
		return ""
	}
	return "the restart of " + o.name
}

func (o *object) blockers() []*body {
	all := slices.Clone(o.running)
	for _, b := range o.held {
		if !b.returned {
			all = append(all, b)
		}
	}
	for _, child := range o.below {
		all = append(all, child.running...)
	}
	return all
}

func nodesOf(nodes []*Node, bodies []*body) []*Node {
	for _, b := range bodies {
		if b.node != nil {
			nodes = append(nodes, b.node)
		}
	}
	return nodes
}

func (b *body) Object() Point      { return b.at }
func (b *body) Request() Goal      { return b.request }
func (b *body) Returned() bool     { return b.returned }
func (b *body) Elsewhere() []Point { return b.holds }
func (b *body) String() string     { return b.name }

func (b *body) place() *Node {
	if b.node == nil {
		var caller *Node
		if b.caller != nil {
			caller = b.caller.place()
		}
		b.node = NewNode(b, caller)
	}
	return b.node
}

func (r *request) Pending() bool  { return r.at != nil && !r.ended }
func (r *request) String() string { return r.name }

func (r *request) Object() Point {
	if r.at == nil {
		return nil
	}
	return r.at
}

func (r *request) Point() Point {
	if r.own {
		return r
	}
	return r.at
}

func (r *request) blockers() []*body {
	switch {
	case !r.own:
		return r.at.blockers()
	case r.body != nil:
		return []*body{r.body}
	}
	return r.meets
}

func (r *request) Blockers(nodes []*Node) []*Node { return nodesOf(nodes, r.blockers()) }
func (r *request) Via(b Body) string              { return r.at.Via(b) }

func (j *join) Pending() bool { return true }
func (j *join) First() bool   { return j.first }

func (j *join) Parts() iter.Seq[Goal] {
	if j.unknown {
		return nil
	}
	return func(yield func(Goal) bool) {
		for _, p := range j.parts {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

func (w *world) object() *object {
	o := &object{name: fmt.Sprint("o", len(w.objects))}
	w.objects = append(w.objects, o)
	return o
}

// waiting returns a request that waits at the object.
func (w *world) waiting(at *object) *request {
	r := &request{name: fmt.Sprint("r", len(w.goals)), at: at}
	w.goals = append(w.goals, r)
	return r
}

// start starts the request, which a body of the caller has made, or none.
func (w *world) start(r *request, caller *body) *body {
	b := &body{name: fmt.Sprint("b", len(w.bodies)), at: r.at, request: r, caller: caller}
	w.bodies = append(w.bodies, b)
	r.at.running = append(r.at.running, b)
	r.body = b
	if caller != nil {
		caller.called = append(caller.called, b)
		if caller.node != nil {
			b.place()
		}
	}
	return b
}

// enter returns a body that runs at a new object.
func (w *world) enter(caller *body) *body { return w.start(w.waiting(w.object()), caller) }

func (w *world) join(first bool, parts ...Goal) *join {
	j := &join{first: first, parts: parts}
	w.goals = append(w.goals, j)
	return j
}

// draw draws a wait of the body, looks for a circle, and if there is one erases the wait.
func (w *world) draw(b *body, goal Goal) (circle []Link) {
	wait := new(Wait)
	w.Draw(wait, b.place(), goal)
	w.waits = append(w.waits, wait)
	if circle = w.Circle(wait); circle != nil {
		w.Erase(wait)
	}
	return circle
}

// again looks at waits that something has been changed for, and returns how many were in a circle.
func (w *world) again(waits []*Wait) (found int) {
	w.Circles(waits, func(wait *Wait, _ []Link) {
		w.Erase(wait)
		found++
	})
	return found
}

// leading returns the waits that lead to the goal.
func (w *world) leading(to Goal) (waits []*Wait) {
	for _, wait := range w.waits {
		if wait.from != nil && reaches(wait.goal, to) {
			waits = append(waits, wait)
		}
	}
	return waits
}

// reaches reports whether the goal is, or follows from, another one.
func reaches(goal, to Goal) bool {
	j, ok := goal.(*join)
	return goal == to || ok && slices.ContainsFunc(j.parts, func(p Goal) bool { return p != nil && reaches(p, to) })
}

// deadlocked is the naive model: the bodies that wait and of which none can go on in any order.
func (w *world) deadlocked() (stuck []*body) {
	goesOn := map[*body]bool{}
	var comes func(Goal) bool
	comes = func(goal Goal) bool {
		switch g := goal.(type) {
		case *request:
			return !g.Pending() || !slices.ContainsFunc(g.blockers(), func(b *body) bool { return !goesOn[b] })
		case *join:
			if g.unknown {
				return true
			}
			some, all := false, true
			for _, p := range g.parts {
				if p != nil {
					c := comes(p)
					some, all = some || c, all && c
				}
			}
			return all || g.first && some
		}
		panic("no goal")
	}
	for again := true; again; {
		again = false
		for _, b := range w.bodies {
			if goesOn[b] {
				continue
			}
			can := true
			if !b.returned {
				if b.node != nil {
					for _, wait := range b.node.waits {
						can = can && comes(wait.goal)
					}
				}
				for _, inner := range b.called {
					can = can && (inner.returned || goesOn[inner])
				}
			}
			goesOn[b], again = can, again || can
		}
	}
	for _, b := range w.bodies {
		if !goesOn[b] {
			stuck = append(stuck, b)
		}
	}
	return stuck
}
