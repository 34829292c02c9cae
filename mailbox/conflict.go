package mailbox

import (
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// Claim is the footprint of a request: what decides, besides its operation, whether it conflicts
// with another. It is made for one turn, and not used again: neither for another request, nor for
// the same one when it is requeued.
type Claim struct {
	// Extents are what it takes up of the scopes of the conflict table, by their number.
	Extents []guards.Extent
	// Outer are those of requests that run at the object and wait for this one, if the
	// rules allow that: it conflicts with none of them, and passes all that wait (R10).
	Outer []*Claim
	// Transaction is the transaction that the request belongs to; nil of most. Transaction.Claim sets it.
	// The rules must be Transactional then.
	Transaction *Transaction

	keeps    *Request // room for what stands for the request when it is retained
	runs     bool
	retained bool             // its body has ended
	spans    []node[interval] // its places in the index of what runs, by scope
	at       int              // in queue.here, while it runs
	last     *Claim           // of the last that it has been found to conflict with by a predicate
}

// retainedFor reports whether the transaction retains the claim.
func (c *Claim) retainedFor(t *Transaction) bool { return c.retained && c.Transaction == t }

// Clasher is an Object whose conflict table has predicates.
type Clasher interface {
	// Clash reports whether two requests conflict, by the predicate of the scope. An error
	// means that the predicate failed; a, which waits, fails with it.
	Clash(scope int, a, b *Request) (bool, error)
}

// conflict reports whether r, which waits, conflicts with another request, which waits or runs
// (R1). If a predicate fails, so has r, and it reports true.
func (s *Scheduler) conflict(r, other *Request, how knowledge) bool {
	switch own := r.Claim; {
	case own == nil || other.Claim == nil:
	case slices.Contains(own.Outer, other.Claim), other.state == StateRetained && own.Transaction == other.Claim.Transaction:
		return false
	}
	switch {
	case s.apart(r, other):
		return true
	case !s.queues[r.Op].row.Has(other.Op):
		return false
	}
	if s.index == nil {
		return true
	}
	scope := s.rules.Conflicts.Within(r.Op, other.Op)
	switch {
	case scope < 0:
		return true
	case s.scopes[scope].Kind() != guards.ByPredicate:
		return s.scopes[scope].Overlap(r.Claim.Extents[scope], other.Claim.Extents[scope])
	case other.state == StateRetained:
		return true // its argument has not been kept
	case how == recall:
		return r.Claim.last == other.Claim
	case how == certain:
		return false
	}
	clash, err := s.object.(Clasher).Clash(scope, r, other)
	switch {
	case err != nil:
		if r.Waits() { // it may have failed by what has been done in its name
			s.fail(r, err)
		}
		return true
	case clash && r.Claim.last != other.Claim:
		r.Claim.last, s.found = other.Claim, true
	}
	return clash
}

// barred reports whether something runs that all requests of the operation conflict with, if it
// is not scoped; or the object is held, which everything conflicts with.
func (s *Scheduler) barred(q *queue) bool {
	return s.held || s.runs.n > 0 && q.row.Meets(s.runs.Set)
}

// blocked reports whether something runs that r conflicts with, or the object is held. If a
// predicate fails, so has r, and it reports true.
func (s *Scheduler) blocked(q *queue, r *Request, how knowledge) bool {
	if q.scoped && !s.held {
		return s.runs.n > 0 && s.blockedScoped(q, r, how)
	}
	return s.barred(q)
}

// blockedScoped is blocked for a request of a scoped operation.
func (s *Scheduler) blockedScoped(q *queue, r *Request, how knowledge) bool {
	switch {
	case r.Claim != nil && r.Claim.last != nil && r.Claim.last.runs && how != certain && !r.Claim.last.retainedFor(r.Claim.Transaction):
		return true
	case s.nested(r):
		return s.blockedByAny(r, how)
	case q.always.Meets(s.runs.Set), q.isolated != nil && s.blockedApart(q, r):
		return true
	}
	for op := q.scopes.Next(0); op >= 0; op = q.scopes.Next(op + 1) {
		if s.queues[op].runs > 0 && s.meets(r, op, how) {
			return true
		}
	}
	return false
}

// meets reports whether something runs of the operation that r conflicts with in the scope
// of the two.
func (s *Scheduler) meets(r *Request, op int, how knowledge) bool {
	scope := s.rules.Conflicts.Within(r.Op, op)
	e := r.Claim.Extents[scope]
	switch {
	case s.index.cells[scope] != nil:
		c := s.index.cells[scope][e.From]
		return c != nil && c.runs[op] > 0
	case s.index.spans[scope] != nil:
		return e.From != nil && overlaps(&s.index.spans[scope][op], e)
	}
	for _, other := range s.queues[op].here {
		if s.conflict(r, other, how) {
			return true
		}
	}
	return false
}

// blockedByAny reports whether r conflicts with a request that runs, by comparing it with each.
// Those announced by Begin are of operations that are not scoped.
func (s *Scheduler) blockedByAny(r *Request, how knowledge) bool {
	for op := range s.Untracked() {
		if s.blockedByUntracked(r, op) {
			return true
		}
	}
	for other := s.running.first; other != nil; other = other.next {
		if s.conflict(r, other, how) {
			return true
		}
	}
	return false
}

// blockedByUntracked reports whether r conflicts with requests of the operation that have been announced
// by Begin, none of which belongs to a transaction.
func (s *Scheduler) blockedByUntracked(r *Request, op int) bool {
	q := &s.queues[r.Op]
	return q.row.Has(op) || r.transaction() != nil && q.isolated != nil && q.isolated.Has(op)
}

// nested reports whether r has been called from inside of a request that still runs; or belongs to a
// transaction of which a request runs here, or is retained (R10).
func (s *Scheduler) nested(r *Request) bool {
	if r.Claim == nil {
		return false
	}
	t := r.Claim.Transaction
	return t != nil && (t.runs > 0 || t.Holds()) || slices.ContainsFunc(r.Claim.Outer, func(c *Claim) bool { return c.runs })
}

// BlockersChanged reports whether Blockers may yield more for some request than before the last call
// of BlockersChanged, though nothing has arrived: a predicate has found a conflict; a request has left the
// overflow queue, has been admitted behind others, has got a thread, or is at its bound; or one of a transaction
// has started, which passes those that wait.
func (s *Scheduler) BlockersChanged() bool {
	found := s.found
	s.found = false
	return found
}

// Some of the operations may be scoped: of their requests not all conflict with the same. What
// runs of them is in an index, so that a request is not compared with all that runs:
//
//	equal keys   a cell per key: how many run of each operation    constant
//	intervals    a tree per operation                              logarithmic
//	predicates   a list per operation                              each is evaluated

// cell is what runs of one key in a scope.
type cell struct {
	runs []int32 // by operation
	n    int
}

// index holds what runs of scoped operations.
type index struct {
	cells []map[any]*cell // by scope; nil if it is not by key
	spans [][]intervals   // by scope and operation; nil if it is not by interval
	asked []bool          // operations of which each request may have to be compared
	spare []*cell
}

func newIndex(t *guards.Table) *index {
	scopes, n := t.Scopes(), t.Len()
	x := &index{cells: make([]map[any]*cell, len(scopes)), spans: make([][]intervals, len(scopes)), asked: make([]bool, n)}
	for i := range scopes {
		switch s := &scopes[i]; s.Kind() {
		case guards.ByKey:
			x.cells[i] = map[any]*cell{}
		case guards.ByInterval:
			x.spans[i] = make([]intervals, n)
		case guards.ByPredicate:
			for op := range n {
				x.asked[op] = x.asked[op] || s.Has(op)
			}
		}
	}
	return x
}

// enlist puts r, which starts, among what runs.
func (s *Scheduler) enlist(r *Request) {
	x := s.index
	r.Claim.runs = true
	if q := &s.queues[r.Op]; x.asked[r.Op] {
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
					c = &cell{runs: make([]int32, len(s.queues))}
				}
				x.cells[i][e.From] = c
			}
			c.runs[r.Op]++
			c.n++
		case x.spans[i] != nil:
			if r.Claim.spans == nil {
				r.Claim.spans = make([]node[interval], len(x.spans))
			}
			n := &r.Claim.spans[i]
			n.v = interval{Extent: e, compare: s.scopes[i].Compare}
			x.spans[i][r.Op].insert(n, scatter(s.step), byBeginning)
		}
	}
}

// delist takes r, which has run, out again.
func (s *Scheduler) delist(r *Request) {
	x := s.index
	r.Claim.runs = false
	if q := &s.queues[r.Op]; x.asked[r.Op] {
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
		case x.spans[i] != nil:
			x.spans[i][r.Op].remove(&r.Claim.spans[i])
		}
	}
}
