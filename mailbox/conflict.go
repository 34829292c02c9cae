package mailbox

import (
	"iter"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// Claim is what decides, besides its operation, whether a request conflicts with another. It
// is made for one turn, and not used again: neither for another request, nor for the same one
// when it is requeued.
type Claim struct {
	// Extents are what it takes up of the scopes of the conflict table, by their number.
	Extents []guards.Extent
	// Outer are those of requests that run at the object and wait for this one, if the
	// rules allow that: it conflicts with none of them, and passes all that wait.
	Outer []*Claim

	runs    bool
	regions []region // its places in the index of what runs, by scope
	at      int      // in queue.here, while it runs
	hurdle  *Claim   // of the last that it has been found to conflict with by a predicate
}

// Clasher is an Object whose conflict table has predicates.
type Clasher interface {
	// Clash reports whether two requests conflict, by the predicate of the scope. An error
	// means that the predicate failed; a, which waits, fails with it.
	Clash(scope int, a, b *Request) (bool, error)
}

// Some of the operations may be scoped: of their requests not all conflict with the same.
// These are considered one by one, where of others the first stands for all. What runs of
// them is in an index, so that a request is not compared with all that runs:
//
//	equal keys   a cell per key: how many run of each operation    constant
//	intervals    a tree per operation                              logarithmic
//	predicates   a list per operation                              each is asked
//
// A request that has been called from inside of others (Claim.Outer) is compared with each
// that runs.

// cell is what runs of one key in a scope.
type cell struct {
	runs []int32 // by operation
	n    int
}

// index holds what runs of scoped operations.
type index struct {
	cells   []map[any]*cell // by scope; nil if it is not by key
	regions [][]regions     // by scope and operation; nil if it is not by interval
	asked   []bool          // operations of which each request may have to be compared
	spare   []*cell
}

func newIndex(t *guards.Table) *index {
	scopes, n := t.Scopes(), t.Len()
	x := &index{cells: make([]map[any]*cell, len(scopes)), regions: make([][]regions, len(scopes)), asked: make([]bool, n)}
	for i := range scopes {
		switch s := &scopes[i]; s.Kind() {
		case guards.ByKey:
			x.cells[i] = map[any]*cell{}
		case guards.ByInterval:
			x.regions[i] = make([]regions, n)
		case guards.ByPredicate:
			for op := range n {
				x.asked[op] = x.asked[op] || s.Has(op)
			}
		}
	}
	return x
}

// enlist puts r, which starts, among what runs.
func (k *Scheduler) enlist(r *Request) {
	x := k.index
	r.Claim.runs = true
	if q := &k.queues[r.Op]; x.asked[r.Op] {
		r.Claim.at = len(q.here)
		q.here = append(q.here, r)
	}
	for i, e := range r.Claim.Extents {
		switch {
		case e.From == nil:
		case x.cells[i] != nil:
			c := x.cells[i][e.From]
			if c == nil {
				if last := len(x.spare) - 1; last >= 0 {
					c, x.spare = x.spare[last], x.spare[:last]
				} else {
					c = &cell{runs: make([]int32, len(k.queues))}
				}
				x.cells[i][e.From] = c
			}
			c.runs[r.Op]++
			c.n++
		case x.regions[i] != nil:
			if r.Claim.regions == nil {
				r.Claim.regions = make([]region, len(x.regions))
			}
			s := &r.Claim.regions[i]
			*s = region{extent: e, weight: scatter(k.step)}
			x.regions[i][r.Op].insert(s, k.scopes[i].Compare)
		}
	}
}

// delist takes r, which has run, out again.
func (k *Scheduler) delist(r *Request) {
	x := k.index
	r.Claim.runs = false
	if q := &k.queues[r.Op]; x.asked[r.Op] {
		last := len(q.here) - 1
		q.here[r.Claim.at] = q.here[last]
		q.here[r.Claim.at].Claim.at = r.Claim.at
		q.here[last] = nil
		q.here = q.here[:last]
	}
	for i, e := range r.Claim.Extents {
		switch {
		case e.From == nil:
		case x.cells[i] != nil:
			c := x.cells[i][e.From]
			c.runs[r.Op]--
			if c.n--; c.n == 0 {
				delete(x.cells[i], e.From)
				if len(x.spare) < 64 {
					x.spare = append(x.spare, c)
				}
			}
		case x.regions[i] != nil:
			x.regions[i][r.Op].remove(&r.Claim.regions[i], k.scopes[i].Compare)
		}
	}
}

// bars reports whether something runs that r conflicts with, or the object is held. If a
// predicate fails, so has r, and it reports true. It is for Next, as predicates are asked
// there only.
func (k *Scheduler) bars(r *Request) bool {
	if !k.queues[r.Op].scoped {
		return k.barred(r.Op)
	}
	return k.held || k.runningOps.n > 0 && (r.Claim.hurdle != nil && r.Claim.hurdle.runs || k.obstructed(r, k.clash))
}

// barsSurely is bars for somebody who asks nothing: what conflicts by a predicate may be
// in the way or not, and is not counted.
func (k *Scheduler) barsSurely(r *Request) bool {
	if !k.queues[r.Op].scoped {
		return k.barred(r.Op)
	}
	return k.held || k.runningOps.n > 0 && k.obstructed(r, k.surely)
}

func (k *Scheduler) obstructed(r *Request, clash func(r, other *Request) bool) bool {
	if k.inner(r) {
		return k.obstructedInside(r, clash)
	}
	q := &k.queues[r.Op]
	if q.always.Meets(k.runningOps.Set) {
		return true
	}
	for op := q.scopes.Next(0); op >= 0; op = q.scopes.Next(op + 1) {
		if k.queues[op].runs > 0 && k.meets(r, op, clash) {
			return true
		}
	}
	return false
}

// meets reports whether something runs of the operation that r conflicts with in the scope
// of the two.
func (k *Scheduler) meets(r *Request, op int, clash func(r, other *Request) bool) bool {
	scope := k.rules.Conflicts.Within(r.Op, op)
	e := r.Claim.Extents[scope]
	switch {
	case k.index.cells[scope] != nil:
		c := k.index.cells[scope][e.From]
		return c != nil && c.runs[op] > 0
	case k.index.regions[scope] != nil:
		return e.From != nil && k.index.regions[scope][op].meets(e, k.scopes[scope].Compare)
	}
	for _, other := range k.queues[op].here {
		if clash(r, other) {
			return true
		}
	}
	return false
}

// failOnce fails r, unless it has failed by what has been done in its name.
func (k *Scheduler) failOnce(r *Request, err error) {
	if r.Waits() {
		k.fail(r, err)
	}
}

// inner reports whether r has been called from inside of a request that still runs.
func (k *Scheduler) inner(r *Request) bool {
	return r.Claim != nil && slices.ContainsFunc(r.Claim.Outer, func(c *Claim) bool { return c.runs })
}

// obstructedInside is obstructed for a request that conflicts with none of its outer ones.
// Those announced by Begin are none of these.
func (k *Scheduler) obstructedInside(r *Request, clash func(r, other *Request) bool) bool {
	for op := range k.Unseen() {
		if k.rules.Conflicts.Between(r.Op, op) {
			return true
		}
	}
	for other := k.running.first; other != nil; other = other.next {
		if !slices.Contains(r.Claim.Outer, other.Claim) && clash(r, other) {
			return true
		}
	}
	return false
}

// clash reports whether two requests conflict. It asks predicates; if one fails, so has r,
// and it reports true.
func (k *Scheduler) clash(r, other *Request) bool {
	scope := k.rules.Conflicts.Within(r.Op, other.Op)
	switch {
	case scope < 0:
		return k.rules.Conflicts.Between(r.Op, other.Op)
	case k.scopes[scope].Kind() != guards.ByPredicate:
		return k.scopes[scope].Overlap(r.Claim.Extents[scope], other.Claim.Extents[scope])
	}
	clash, err := k.object.(Clasher).Clash(scope, r, other)
	switch {
	case err != nil:
		k.failOnce(r, err)
		return true
	case clash && r.Claim.hurdle != other.Claim:
		r.Claim.hurdle, k.found = other.Claim, true
	}
	return clash
}

// Found reports whether InTheWay may yield more for some request than before Found was last
// called, though nobody has arrived: a predicate has said that it conflicts with another one,
// somebody has come in by the door, or inside behind others, or to be at his bound.
func (k *Scheduler) Found() bool {
	found := k.found
	k.found = false
	return found
}

// surely is clash without predicates, which it takes to say no.
func (k *Scheduler) surely(r, other *Request) bool {
	scope := k.rules.Conflicts.Within(r.Op, other.Op)
	return (scope < 0 || k.scopes[scope].Kind() != guards.ByPredicate) && k.clash(r, other)
}

// known is clash for an explanation, which asks nothing: of a predicate it knows what was
// said last.
func (k *Scheduler) known(r, other *Request) bool {
	scope := k.rules.Conflicts.Within(r.Op, other.Op)
	if scope >= 0 && k.scopes[scope].Kind() == guards.ByPredicate {
		return r.Claim.hurdle == other.Claim
	}
	return k.clash(r, other)
}

// impedes is known for one that runs, and so is not in the way of those it waits for.
func (k *Scheduler) impedes(r, running *Request) bool {
	return k.known(r, running) && (r.Claim == nil || !slices.Contains(r.Claim.Outer, running.Claim))
}

// open asks what has not been asked since the state changed, and reports whether the guard
// of r, which waits inside and which nothing that runs conflicts with, holds. If the guard
// fails, so has r.
func (k *Scheduler) open(r *Request) bool {
	o := &k.rules.Operations[r.Op]
	switch {
	case o.Guard == "":
		return true
	case o.Looks&guards.AtArgument != 0 && !o.Family:
		return k.askRequest(r) && r.answer.falsePart == ""
	}
	q := &k.queues[r.Op]
	falsePart, err := k.askLine(q, k.lineAt(q, r.Key), r)
	return falsePart == "" && err == nil
}

// openOrBarred is open for one that something running may conflict with: then it is not
// asked, and counts as open unless it is known to be closed.
func (k *Scheduler) openOrBarred(r *Request) bool {
	if k.bars(r) {
		return r.state == StateInside && k.mayHold(r)
	}
	return k.open(r)
}

// considered yields the requests of a scoped operation that are considered, each by itself,
// in order of arrival. It goes on if the one that is looked at leaves, and only that.
func (k *Scheduler) considered(op int) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		q, head := &k.queues[op], (*Request)(nil)
		if o := &k.rules.Operations[op]; o.HeadOfLine && !o.Family && q.inside.first != nil {
			if head = k.front(q, &q.line); !k.rules.Reentrant {
				yield(head)
				return
			}
		}
		for r := q.inside.first; r != nil; {
			next := r.next
			if (head == nil || r == head || k.inner(r)) && !yield(r) {
				return
			}
			r = next
		}
	}
}

// pickEach is pick where operations are scoped, or all start that are compatible.
func (k *Scheduler) pickEach() *Request {
	choosing := k.rules.Policy != nil && k.rules.Policy.Choose != nil
	h := k.heads[:0]
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		if !k.queues[op].scoped {
			h = k.candidates(h, op, choosing)
			continue
		}
		h = k.candidatesEach(h, op)
	}
	k.heads = h
	if k.failed.first != nil {
		return nil
	}
	r := k.pickAmong(h, choosing)
	clear(h) // not deferred: after AskingFailed the scheduler is somebody else's
	clear(k.way)
	return r
}

func (k *Scheduler) pickAmong(h []candidate, choosing bool) *Request {
	if !k.sortCandidates(h) {
		return nil
	}
	before := k.asks
	r, held := k.walk(h, choosing)
	if r == nil && held && k.failed.first == nil && len(k.eligible) == 0 && k.asks != before {
		// Somebody who may have been open is known to be closed by now, as another who
		// shares his guard has been asked.
		r, _ = k.walk(h, choosing)
	}
	if r != nil || k.failed.first != nil {
		clear(k.eligible)
		return r
	}
	return k.choose(k.eligible)
}

// candidatesEach is candidates for a scoped operation. Who is known to be closed is none.
func (k *Scheduler) candidatesEach(h []candidate, op int) []candidate {
	for r := range k.considered(op) {
		if k.mayHold(r) {
			h = append(h, candidate{r: r, due: k.due(r), each: true})
		} else if k.queues[op].shared {
			break // nor are the others
		}
	}
	return h
}

// walk considers the candidates in their order, and returns the one that starts; or nil, and
// those that are eligible, for a policy that chooses. It reports whether somebody could start
// but for those before him.
func (k *Scheduler) walk(h []candidate, choosing bool) (r *Request, held bool) {
	clear(k.way)
	way := k.way[:0]
	clear(k.passed)
	k.eligible = k.eligible[:0]
	all := k.rules.AllCompatible
	for _, c := range h {
		if c.each {
			c.wall = k.bars(c.r)
			open := k.failed.first == nil && (c.wall && k.mayHold(c.r) || !c.wall && k.open(c.r))
			if k.failed.first != nil {
				return nil, false
			}
			if !open {
				continue
			}
		}
		behind := !c.wall && !k.inner(c.r) && (k.behind(c.r, way) || k.aheadOutside(c.r) != nil)
		wait := all && !c.wall && !behind && !k.inner(c.r) && k.enters(c.r)
		if k.failed.first != nil {
			return nil, false
		}
		if wait {
			clear(k.eligible)
			k.eligible = k.eligible[:0]
			return nil, held
		}
		if c.due || !all && (c.wall || !choosing) {
			if k.queues[c.r.Op].scoped {
				way = append(way, c.r)
				k.way = way
			} else {
				k.passed.Add(c.r.Op)
			}
		}
		held = held || behind
		if c.wall || behind {
			continue
		}
		if !choosing || c.due {
			return c.r, held
		}
		k.eligible = append(k.eligible, c.r)
	}
	return nil, held
}

// behind reports whether r conflicts with one of those it would pass: of the operations in
// passed, and those in the way.
func (k *Scheduler) behind(r *Request, way []*Request) bool {
	if k.rules.Conflicts.Row(r.Op).Meets(k.passed) {
		return true
	}
	for _, w := range way {
		if k.clash(r, w) {
			return true
		}
	}
	return false
}

// firstUnbarred returns the first request at the gate of a scoped operation that arrived
// before the given one, if that is not nil, and that nothing which runs conflicts with. It
// returns nil too if a predicate has failed.
func (k *Scheduler) firstUnbarred(op int, before *Request) *Request {
	for r := k.queues[op].gate.first; r != nil && (before == nil || r.seq < before.seq); {
		next := r.next
		if !k.bars(r) {
			return r
		}
		if k.failed.first != nil {
			return nil
		}
		r = next
	}
	return nil
}

// blockedEach reports whether every waiting request of a scoped operation conflicts with
// something that runs, whatever predicates say.
func (k *Scheduler) blockedEach(q *queue) bool {
	for _, l := range [...]*list{&q.inside, &q.gate} {
		for r := l.first; r != nil; r = r.next {
			if !k.barsSurely(r) {
				return false
			}
		}
	}
	return true
}

// firstOpenEach returns the first request of a scoped operation that is open, and nothing
// that runs conflicts with; or nil.
func (k *Scheduler) firstOpenEach(op int) *Request {
	failed := k.failed.last
	for r := range k.considered(op) {
		if !k.bars(r) && k.open(r) {
			return r
		}
		if k.failed.last != failed {
			break
		}
	}
	return nil
}

// aheadEach returns a request of a scoped operation that waits inside, conflicts with r,
// which does not, and may be open; or nil. If somebody fails meanwhile it returns nil.
func (k *Scheduler) aheadEach(op int, r *Request) *Request {
	failed := k.failed.last
	for w := range k.considered(op) {
		if k.follows(w, r) {
			continue
		}
		if clash := k.clash(r, w); clash && k.failed.last == failed && k.openOrBarred(w) {
			return w
		}
		if k.failed.last != failed {
			break
		}
	}
	return nil
}

// bypassEach finds out whom of a scoped operation the start of r bypasses. If one fails,
// perhaps with others who share a guard, nothing starts, and it does not go on.
func (k *Scheduler) bypassEach(op int, r *Request) {
	failed := k.failed.last
	for w := range k.considered(op) {
		if w.seq >= r.seq {
			break
		}
		open := k.openOrBarred(w)
		if k.failed.last != failed {
			return
		}
		if open {
			k.passes = append(k.passes, w)
		}
	}
}
