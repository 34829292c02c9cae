package serial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// dependency is a kind of edge, or a set of kinds.
type dependency int

const (
	ww   dependency = 1 << iota // both appended to a list, one after the other
	wr                          // one read what the other appended
	rw                          // one read a list before the other appended to it
	rt                          // one ended before the other started
	pass                        // goes on from an auxiliary node
)

// edge says that its source comes before its target. So that the dependencies of n transactions on m others are
// n + m edges, not n · m, an edge may go to an auxiliary node, whose edges of the kind pass lead to all that come
// later. The first edge of such a path has the kind of the dependency, and the last one says what its
// target appended.
type edge struct {
	to     int
	kind   dependency
	key    string
	before []int // the list before the append of the target; of wr, after that of the source
	value  int   // what the target appended; of wr, what the source appended
	unread bool  // the append of the target is not in the longest list
}

// graph holds the edges from each node: the transactions, and then the auxiliary nodes.
type graph struct{ out [][]edge }

// add adds an edge, unless it would go from a transaction to itself.
func (g *graph) add(from int, e edge) {
	if from != e.to {
		g.out[from] = append(g.out[from], e)
	}
}

// node adds an auxiliary node.
func (g *graph) node() int {
	g.out = append(g.out, nil)
	return len(g.out) - 1
}

// precede returns a function that adds an edge from its source to the targets of all the others, which are of the
// kind pass. A source that is a target itself cannot use their common auxiliary node. The first such source has an
// edge to each other target; any further one has an edge to that first one, with which it forms a cycle already.
func (g *graph) precede(targets []edge) func(from int, e edge) {
	all, first := g.node(), -1
	index := map[int]int{}
	for i, target := range targets {
		g.add(all, target)
		index[target.to] = i
	}
	return func(from int, e edge) {
		if _, ok := index[from]; !ok {
			e.to = all
			g.add(from, e)
			return
		}
		to := targets
		if first < 0 {
			first = from
		} else if first != from {
			to = targets[index[first]:][:1]
		}
		for _, target := range to {
			e.to, e.value, e.unread = target.to, target.value, target.unread
			g.add(from, e)
		}
	}
}

// inferRealTime adds the real-time order: a chain of auxiliary nodes, one for each end of a committed transaction.
func (c *checker) inferRealTime() {
	type event struct {
		at  int64
		end int // 1 for an end: what happens at one time is not ordered
		txn int
	}
	var events []event
	for t, txn := range c.txns {
		if c.counted[t] && txn.Start != 0 {
			events = append(events, event{txn.Start, 0, t})
		}
		if txn.Status == Committed && txn.End != 0 && txn.End >= txn.Start {
			events = append(events, event{txn.End, 1, t})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), a.end-b.end) })
	last := c.node()
	for _, e := range events {
		if e.end == 0 {
			c.add(last, edge{to: e.txn, kind: pass})
			continue
		}
		next := c.node()
		c.add(last, edge{to: next, kind: pass})
		c.add(e.txn, edge{to: next, kind: rt})
		last = next
	}
}

// levels are the kinds of cycles: one edge is of the first kinds, and the others are of the rest.
var levels = []struct {
	kind        Kind
	first, rest dependency
}{{G0, ww, ww}, {G1c, wr, ww | wr}, {GSingle, rw, ww | wr}, {G2, rw, ww | wr | rw}, {RealTime, rt, ww | wr | rw | rt}}

// findCycles reports a cycle for each set of transactions that depend on each other, by the first kind that it has.
func (c *checker) findCycles() {
	s := &search{graph: c.graph, txns: len(c.txns), hops: make([]hop, len(c.out)), of: make([]int, len(c.out))}
	reported := make([]bool, len(c.out))
	for _, level := range levels {
		components := c.components(level.first | level.rest | pass)
		for i, component := range components {
			for _, n := range component {
				s.of[n] = i
			}
		}
		for _, component := range components {
			if len(component) == 1 || slices.ContainsFunc(component, func(n int) bool { return reported[n] }) {
				continue
			}
			var txns []int
			var text []string
			cycle := s.shortest(component, level.first, level.rest|pass, level.kind == GSingle)
			for i, step := range cycle {
				reported[step.from] = true
				txns = append(txns, step.from)
				text = append(text, c.explain(step, cycle[(i+1)%len(cycle)].from))
			}
			if cycle != nil {
				c.report(level.kind, txns, "%s", strings.Join(text, "; "))
			}
		}
	}
}

// components returns the strongly connected components of the graph of such edges (Tarjan, "Depth-First Search and
// Linear Graph Algorithms", 1972).
func (g *graph) components(kinds dependency) (all [][]int) {
	var stack []int
	number := make([]int, len(g.out)) // in the order of visits, from 1; above all numbers once a component is complete
	low := make([]int, len(g.out))    // the least number that is known to be reached
	visits := 0
	var visit func(n int)
	visit = func(n int) {
		visits++
		number[n], low[n] = visits, visits
		base := len(stack)
		stack = append(stack, n)
		for _, e := range g.out[n] {
			if e.kind&kinds == 0 {
				continue
			}
			if number[e.to] == 0 {
				visit(e.to)
				low[n] = min(low[n], low[e.to])
			}
			low[n] = min(low[n], number[e.to])
		}
		if low[n] == number[n] {
			component := slices.Clone(stack[base:])
			stack = stack[:base]
			for _, m := range component {
				number[m] = len(g.out) + 1
			}
			slices.Sort(component)
			all = append(all, component)
		}
	}
	for n := range g.out {
		if number[n] == 0 {
			visit(n)
		}
	}
	return all
}

// step is a dependency of a cycle: an edge from a transaction, with what the last edge that leads on says of its target.
type step struct {
	from int
	edge
}

// search looks for shortest cycles.
type search struct {
	graph
	txns  int
	of    []int // the component of a node
	hops  []hop // how a node was reached
	tries int   // the number of starts
	edges int   // how many edges have been followed
}

// hop says how a node was reached.
type hop struct {
	step
	cost          int // how many transactions are on the path
	reached, done int // in which try it was reached, and its edges were followed
}

// enough bounds the edges that a check follows to make cycles shorter.
const enough = 20_000_000

// shortest returns a cycle in the component with the fewest transactions, whose first edge is of the first kinds and
// whose others are of the rest; nil if there is none. When enough edges have been followed it returns the best cycle
// so far; if there may be none, also nil.
func (s *search) shortest(component []int, first, rest dependency, mayBeNone bool) (best []step) {
	for _, start := range component {
		if start >= s.txns || len(best) == 2 || (s.edges > enough && (best != nil || mayBeNone)) {
			break
		}
		s.tries++
		now, next := []int{start}, []int{}
		for cost := 0; len(now) > 0 && s.hops[start].reached != s.tries && (best == nil || cost < len(best)); cost++ {
			for i := 0; i < len(now); i++ { // grows by what auxiliary nodes lead to
				n := now[i]
				if s.hops[n].done == s.tries {
					continue
				}
				s.hops[n].done = s.tries
				allowed, to, at := rest, &next, cost+1
				if n == start {
					allowed = first
				} else if n >= s.txns {
					to, at = &now, cost
				}
				s.edges += len(s.out[n])
				for _, e := range s.out[n] {
					h := &s.hops[e.to]
					if e.kind&allowed != 0 && s.of[e.to] == s.of[start] && (h.reached != s.tries || h.cost > at) {
						h.step, h.cost, h.reached = step{n, e}, at, s.tries
						*to = append(*to, e.to)
					}
				}
			}
			now, next = next, now[:0]
		}
		if h := s.hops[start]; h.reached == s.tries && (best == nil || h.cost < len(best)) {
			best = s.cycle(start)
		}
	}
	return best
}

// cycle returns the cycle that was found from the start, without auxiliary nodes.
func (s *search) cycle(start int) (all []step) {
	var last *step // the last edge from an auxiliary node
	for n := start; len(all) == 0 || n != start; {
		h := s.hops[n].step
		if n = h.from; n >= s.txns {
			if last == nil {
				last = &h
			}
			continue
		}
		if last != nil {
			h.value, h.unread, last = last.value, last.unread, nil
		}
		all = append(all, h)
	}
	slices.Reverse(all)
	return all
}

// explain says why one transaction comes before the other.
func (c *checker) explain(s step, to int) string {
	a, b := c.name(s.from), c.name(to)
	list := listText(s.before)
	why := ""
	switch s.kind {
	case ww:
		why = fmt.Sprintf("%s appended %d to %s, %s appended %d", a, s.before[len(s.before)-1], s.key, b, s.value)
		if s.unread {
			why += fmt.Sprintf(", which is not in %s=%s", s.key, list)
		} else {
			why += " after it"
		}
	case wr:
		why = fmt.Sprintf("%s appended %d to %s, %s read %s=%s", a, s.value, s.key, b, s.key, list)
	case rw:
		why = fmt.Sprintf("%s read %s=%s, %s appended %d to %s", a, s.key, list, b, s.value, s.key)
	case rt:
		why = fmt.Sprintf("%s ended before %s started", a, b)
	}
	return fmt.Sprintf("%s: %s before %s", why, a, b)
}
