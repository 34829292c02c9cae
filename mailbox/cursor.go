package mailbox

import "slices"

// Cursor walks over the waiting requests, some at a time, so that an inspection
// of many need not hold up the object. Requests may arrive, start and leave
// between two calls of Next; those that wait from beginning to end of the walk
// are visited exactly once. (One that is sent to the overflow queue in the meantime
// may be missed.)
type Cursor struct {
	s        *Scheduler
	next     *Cursor
	until    uint64 // visit no request that arrived later
	where    State  // StateOverflow, StateAwaitingThread, StateEntry, StateAdmitted: the order in which a request is there, so that none is missed
	op       int
	at       *Request
	position int
	ones     map[uint64]bool // the arrivals seen in the overflow queue, or without a thread; and those in the entry queue, of scoped operations, where all start that are compatible, or that have been requeued
	seen     [][]span        // per operation, of the others: the arrivals seen in the entry queue
	moved    bool            // what it stood on has left, perhaps as it was admitted
	done     bool
}

// span is a range of arrivals, both ends included.
type span struct{ from, to uint64 }

// Inspect begins a walk over the waiting requests. Close it when done.
func (s *Scheduler) Inspect() *Cursor {
	c := &Cursor{s: s, next: s.cursors, until: s.arrivals, where: StateOverflow, op: -1, seen: make([][]span, len(s.queues))}
	s.cursors = c
	return c
}

// Close ends the walk.
func (c *Cursor) Close() {
	for p := &c.s.cursors; *p != nil; p = &(*p).next {
		if *p == c {
			*p = c.next
			return
		}
	}
}

// Next visits up to n more requests and reports whether there may be others.
// Position counts from 1 within what the request waits in: the overflow queue or the
// entry queue of its operation, in order of arrival; without a thread, among all those; or admitted, in
// the order in which those that are open would start.
func (c *Cursor) Next(n int, visit func(r *Request, position int)) bool {
	for ; n > 0 && !c.done; n-- {
		for c.at == nil {
			if !c.advance() {
				return false
			}
		}
		r := c.at
		c.at = r.next
		c.position++
		if r.arrival > c.until || c.again(r) {
			continue
		}
		at := c.position
		if c.where == StateAdmitted && r.placed() {
			at = position(r.node)
		}
		visit(r, at)
	}
	return !c.done
}

// again notes that r is seen, and reports whether it has been before.
func (c *Cursor) again(r *Request) bool {
	switch seen := c.seen[r.Op]; {
	case c.ones != nil && c.ones[r.arrival]:
		return true
	case c.where <= StateAwaitingThread, c.where == StateEntry && (r.came == 0 || r.marks.has(assigned) || c.s.queues[r.Op].scoped || c.s.rules.AllCompatible): // from there some go inside, and others between them do not
		if c.ones == nil {
			c.ones = map[uint64]bool{}
		}
		c.ones[r.arrival] = true
	case c.where == StateAdmitted:
		return r.came > 0 && !r.marks.has(assigned) && slices.ContainsFunc(seen, func(s span) bool { return s.from <= r.arrival && r.arrival <= s.to })
	case len(seen) == 0 || c.moved:
		// Those it would have met next have been admitted unseen: a new span.
		c.seen[r.Op], c.moved = append(seen, span{r.arrival, r.arrival}), false
	default:
		seen[len(seen)-1].to = r.arrival
	}
	return false
}

// advance moves to the next queue.
func (c *Cursor) advance() bool {
	c.position = 0
	if c.op++; c.op == len(c.s.queues) || c.where == StateAwaitingThread { // of which there is one list
		if c.where == StateAdmitted {
			c.done = true
			return false
		}
		c.where++
		c.op = 0
	}
	if c.where == StateAwaitingThread {
		c.at = c.s.threadless.first
		return true
	}
	q := &c.s.queues[c.op]
	c.at = map[State]*list{StateOverflow: &q.out.list, StateEntry: &q.entry, StateAdmitted: &q.in.list}[c.where].first
	return true
}

// passCursors moves every cursor that stands on r to the request after it.
func (s *Scheduler) passCursors(r *Request) {
	for c := s.cursors; c != nil; c = c.next {
		if c.at == r {
			c.at, c.moved = r.next, true
		}
	}
}
