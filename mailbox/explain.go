package mailbox

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/guards"
)

// Cause is the kind of reason why a request waits.
type Cause string

const (
	// GuardFalse requests wait for their guard.
	GuardFalse Cause = "guard"
	// Conflict requests wait for running requests they conflict with.
	Conflict Cause = "conflict"
	// Suspended requests wait for what is to be done to the object: nothing starts
	// at it before.
	Suspended Cause = "suspended"
	// Order requests wait for a request that comes before them.
	Order Cause = "order"
	// NoRoom requests wait at the door of a queue that is full.
	NoRoom Cause = "no room"
	// NoThread requests could start, and wait for a goroutine to run them.
	NoThread Cause = "no thread"
)

// Reason is why a request waits, as far as the scheduler knows without asking
// anything anew.
type Reason struct {
	Cause Cause `json:"cause"`
	// Guard is the part of the guard that was false when it was last asked,
	// also where that is not the cause; empty if it held or was never asked.
	Guard string `json:"guard,omitempty"`
	// Step is the number of inputs and starts that the object had seen when the
	// guard gave that answer.
	Step uint64 `json:"step,omitempty"`
	// Conflicts are the operations of the running requests in the way.
	Conflicts []string `json:"conflicts,omitempty"`
	// Behind is the operation of the request that comes first.
	Behind string `json:"behind,omitempty"`
	// Threads says, of a request that is not considered before it has a thread, what has
	// become of them.
	Threads string `json:"threads,omitempty"`
}

// String says the reason in a few words.
func (r Reason) String() string {
	guard := ""
	if r.Guard != "" {
		guard = fmt.Sprintf("guard %q was false at step %d", r.Guard, r.Step)
	}
	switch r.Cause {
	case GuardFalse:
		return guard
	case Conflict:
		s := "conflicts with " + strings.Join(r.Conflicts, ", ") + ", running"
		if guard != "" {
			s += "; " + guard
		}
		return s
	case Suspended:
		s := "object is suspended"
		if len(r.Conflicts) > 0 {
			s += "; conflicts with " + strings.Join(r.Conflicts, ", ") + ", running"
		}
		if guard != "" {
			s += "; " + guard
		}
		return s
	case Order:
		return r.Behind + " comes first"
	case NoRoom:
		return "waits for room: the queue is full"
	}
	if r.Threads != "" {
		return "waits for a thread: " + r.Threads
	}
	return "could start: no thread has come for it"
}

// Holding yields those of the n requests started last that run and that r waits for: it
// cannot start before they have ended, since it conflicts with them; or does not, unless
// another one leaves that waits outside and is in its way. It asks nothing.
func (k *Scheduler) Holding(r *Request, n int) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if !r.Waits() {
			return
		}
		first := (*Request)(nil)
		switch {
		case k.inner(r):
		case k.rules.AllCompatible:
			first = k.reservedFor(r, k.known)
		default:
			first = k.outsideAfter(nil, r, k.known)
		}
		for other := k.running.last; other != nil && n > 0; other = other.prev {
			if (k.impedes(r, other) || first != nil && k.impedes(first, other)) && !yield(other) {
				return
			}
			n--
		}
	}
}

// Running yields the requests that run, in the order of their start. Those
// announced by Begin are not among them, but with Unseen.
func (k *Scheduler) Running() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := k.running.first; r != nil; r = r.next {
			if !yield(r) {
				return
			}
		}
	}
}

// Unseen yields, per operation, how many of those announced by Begin run.
func (k *Scheduler) Unseen() iter.Seq2[int, int] {
	return func(yield func(op, n int) bool) {
		for op := k.runningOps.Next(0); op >= 0; op = k.runningOps.Next(op + 1) {
			n := int(k.queues[op].runs)
			for r := k.running.first; r != nil; r = r.next {
				if r.Op == op {
					n--
				}
			}
			if n > 0 && !yield(op, n) {
				return
			}
		}
	}
}

// Bypassed returns how often later arrivals have started while the guard of a
// waiting request was open, up to the bound; 0 where nothing is counted. Without a bound
// one that has been requeued to a place in front of others, as it kept its own or a policy
// compares them, may count what started there before.
func (k *Scheduler) Bypassed(r *Request) int {
	switch {
	case k.counts() == 0:
	case r.state == StateInside:
		return min(k.bypasses(r), k.counts())
	case r.state == StateAtGate:
		return min(int(r.bypassed), k.counts())
	}
	return 0
}

// Step returns the number of inputs and starts so far.
func (k *Scheduler) Step() uint64 { return k.step }

// Why returns why a waiting request waits. It asks no guard.
func (k *Scheduler) Why(r *Request) (reason Reason) {
	k.Explain(r, &reason)
	return reason
}

// Explain is Why for who has room for the reason, a zero one: of very many requests,
// copying their reasons would take longer than finding them.
func (k *Scheduler) Explain(r *Request, reason *Reason) {
	switch r.state {
	case StateAtDoor:
		reason.Cause = NoRoom
		return
	case StateThreadless:
		reason.Cause, reason.Threads = NoThread, "none is free"
		return
	}
	cause, conflicts := k.whyHere(r)
	if conflicts != nil {
		reason.Conflicts = conflicts
	}
	a := k.answerOf(r)
	no := r.state == StateInside && a.stamp != 0 && a.falsePart != ""
	if no {
		reason.Guard, reason.Step = a.falsePart, a.step
	}
	switch {
	case cause != NoThread:
	case no && k.current(r.Op, a):
		cause = GuardFalse
	default:
		if first := k.ahead(r); first != nil {
			cause, reason.Behind = Order, k.rules.Operations[first.Op].Name
		}
	}
	reason.Cause = cause
}

// whyHere returns what keeps r from running that runs, or is to be done to the object.
func (k *Scheduler) whyHere(r *Request) (cause Cause, conflicts []string) {
	row := k.rules.Conflicts.Row(r.Op)
	for other := k.runningOps.Next(0); other >= 0; other = k.runningOps.Next(other + 1) {
		if row.Has(other) && (!k.queues[r.Op].scoped || k.impededBy(r, other)) {
			conflicts = append(conflicts, k.rules.Operations[other].Name)
		}
	}
	switch {
	case k.held:
		return Suspended, conflicts
	case conflicts == nil:
		return NoThread, nil
	}
	return Conflict, conflicts
}

// unhindered reports whether nothing keeps r from running but others that wait.
func (k *Scheduler) unhindered(r *Request) bool {
	cause, _ := k.whyHere(r)
	return cause == NoThread
}

// ahead returns a waiting request that comes before r, conflicts with it and is
// not known to be closed; or nil.
func (k *Scheduler) ahead(r *Request) *Request {
	for first := range k.inFront(r) {
		return first
	}
	return nil
}

// inFront yields waiting requests that come before r, conflict with it and are not known
// to be closed: of each operation that has such the first, but all of a scoped one. A head
// of line stands in the way of those in its line whatever its guard says. If nothing can
// start, though no request is sure to come first, the policy says so; then it yields one that
// perhaps does.
func (k *Scheduler) inFront(r *Request) iter.Seq2[*Request, bool] {
	if k.rules.AllCompatible {
		return k.dueInFront(r)
	}
	return func(yield func(first *Request, sure bool) bool) {
		known := false
		found := func(first *Request) (more bool) {
			known = true
			return yield(first, true)
		}
		inner := k.inner(r)
		behind := r
		if r.state == StateInside && !k.queues[r.Op].scoped && k.outside(r) == nil { // but it waits with the first of its own, which may be behind a request outside
			if own := k.notFalse(r.Op); own != nil {
				behind = own
			}
		}
		for first := k.outsideAfter(nil, behind, k.known); first != nil && !inner; first = k.outsideAfter(first, behind, k.known) {
			if !found(first) {
				return
			}
		}
		if inner {
			return // it passes all others that wait
		}
		if first := k.headOf(r); first != nil && !found(first) {
			return
		}
		var perhaps *Request
		for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
			if !k.rules.Conflicts.Between(r.Op, op) {
				continue
			}
			if k.queues[op].scoped {
				for w := range k.considered(op) {
					switch {
					case w == r || !k.known(r, w) || !k.mayHold(w):
					case (r.state != StateAtGate || w.came > r.came) && !k.comesFirst(candidate{r: w, due: k.due(w)}, candidate{r: r, due: k.due(r)}):
						perhaps = w
					case !found(w):
						return
					}
				}
				continue
			}
			first := k.notFalse(op)
			if first == nil {
				continue
			}
			candidates := []candidate{{r: first, due: k.due(first)}}
			if k.rules.MaxBypass > 0 {
				candidates = k.alsoDue(candidates, first, false)
			}
			for _, c := range candidates {
				if c.r == r {
					continue
				}
				if r.state == StateAtGate || r.state == StateThreadless || k.comesFirst(c, candidate{r: r, due: k.due(r)}) {
					if !found(c.r) {
						return
					}
					break
				}
				perhaps = c.r
			}
		}
		if !known && perhaps != nil && k.settled == k.step {
			yield(perhaps, false)
		}
	}
}

// headOf returns the head of the line that r waits in, inside, if it is another one; or nil.
func (k *Scheduler) headOf(r *Request) *Request {
	o, q := &k.rules.Operations[r.Op], &k.queues[r.Op]
	if !o.HeadOfLine || o.Family || r.state != StateInside {
		return nil
	}
	if first := k.front(q, &q.line); first != r {
		return first
	}
	return nil
}

// InTheWay yields the requests that run and that r, which waits, waits for: it conflicts
// with them, or a request does that comes before it, and so on. Those announced by Begin
// are not among them.
//
// Of several requests of one operation the first that is met stands for all. One that has
// another reason to wait, its guard or what runs, is not held up by who only perhaps comes
// first: it may well start before.
func (k *Scheduler) InTheWay(r *Request) iter.Seq[*Request] {
	if k.index != nil {
		return k.inTheWayEach(r)
	}
	ops := guards.NewSet(len(k.queues))
	ops.Add(r.Op)
	for way := []*Request{r}; len(way) > 0; way = way[1:] {
		for first, sure := range k.inFront(way[0]) {
			if !ops.Has(first.Op) && (sure || k.mayHold(way[0]) && !k.barred(way[0].Op)) {
				ops.Add(first.Op)
				way = append(way, first)
			}
		}
	}
	return func(yield func(*Request) bool) {
		for other := k.running.first; other != nil; other = other.next {
			if k.rules.Conflicts.Row(other.Op).Meets(ops) && !yield(other) {
				return
			}
		}
	}
}

// impededBy reports whether a request of the operation runs that r, of a scoped one, conflicts
// with. Those announced by Begin are of operations that are not scoped.
func (k *Scheduler) impededBy(r *Request, op int) bool {
	n := k.queues[op].runs
	for other := k.running.first; other != nil; other = other.next {
		if other.Op != op {
			continue
		}
		if k.impedes(r, other) {
			return true
		}
		n--
	}
	return n > 0
}

// inTheWayEach is InTheWay where operations are scoped.
func (k *Scheduler) inTheWayEach(r *Request) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		others := slices.Collect(k.Running())
		way := []*Request{r}
		for i := 0; i < len(way) && len(others) > 0; i++ {
			at := way[i]
			for j := 0; j < len(others); {
				switch {
				case !k.impedes(at, others[j]):
					j++
					continue
				case !yield(others[j]):
					return
				}
				others = slices.Delete(others, j, j+1)
			}
			var before []*Request
			for first, sure := range k.inFront(at) {
				if sure || k.mayHold(at) && k.unhindered(at) {
					before = append(before, first)
				}
			}
			for _, first := range slices.Backward(before) {
				if !slices.ContainsFunc(way, func(w *Request) bool { return w == first || k.standsFor(w, first) }) {
					way = append(way, first)
				}
			}
		}
	}
}

// standsFor reports whether r, which is in the way of others, waits for all that other waits
// for, which comes before it: so that of very many with one key not each has to be looked at.
func (k *Scheduler) standsFor(r, other *Request) bool {
	if r.Op != other.Op || r.seq < other.seq || !k.mayHold(r) || !k.comesFirst(candidate{r: other, due: k.due(other)}, candidate{r: r, due: k.due(r)}) {
		return false
	}
	return !k.queues[r.Op].scoped || !k.index.asked[r.Op] && len(r.Claim.Outer)+len(other.Claim.Outer) == 0 && slices.Equal(r.Claim.Extents, other.Claim.Extents)
}

// comesFirst is compare for an explanation, which asks no policy that may fail:
// one that chooses, or orders by a user's word, is taken to go by arrival.
func (k *Scheduler) comesFirst(a, b candidate) bool {
	if p := k.rules.Policy; p != nil && p.Fallible && !a.due && !b.due {
		if p.Within && a.r.Op == b.r.Op && a.r.placed() && b.r.placed() && k.queues[a.r.Op].members == nil {
			return a.r.node.position() < b.r.node.position()
		}
		return a.r.seq < b.r.seq
	}
	return k.compare(a, b) < 0
}

// Cursor walks over the waiting requests, some at a time, so that an inspection
// of many need not hold up the object. Requests may arrive, start and leave
// between two calls of Next; those that wait from beginning to end of the walk
// are visited exactly once. (One that is sent to the door in the meantime may be
// missed.)
type Cursor struct {
	k        *Scheduler
	next     *Cursor
	until    uint64 // visit no request that arrived later
	where    State  // AtDoor, Threadless, AtGate, Inside: the way of a request, so that none is missed
	op       int
	at       *Request
	position int
	ones     map[uint64]bool // the arrivals seen at the door, or that have come without a thread; and those at the gate, of scoped operations, where all start that are compatible, or that have been requeued
	seen     [][]span        // per operation, of the others: the arrivals seen at the gate
	moved    bool            // what it stood on has left, perhaps to the inside
	done     bool
}

// span is a range of arrivals, both ends included.
type span struct{ from, to uint64 }

// Inspect begins a walk over the waiting requests. Close it when done.
func (k *Scheduler) Inspect() *Cursor {
	c := &Cursor{k: k, next: k.cursors, until: k.arrivals, where: StateAtDoor, op: -1, seen: make([][]span, len(k.queues))}
	k.cursors = c
	return c
}

// Close ends the walk.
func (c *Cursor) Close() {
	for p := &c.k.cursors; *p != nil; p = &(*p).next {
		if *p == c {
			*p = c.next
			return
		}
	}
}

// Next visits up to n more requests and reports whether there may be others.
// Position counts from 1 within what the request waits in: the door or the gate of
// its operation, in order of arrival; without a thread, among all those; or inside, in
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
		position := c.position
		if c.where == StateInside && r.placed() {
			position = r.node.position()
		}
		visit(r, position)
	}
	return !c.done
}

// again notes that r is seen, and reports whether it has been before.
func (c *Cursor) again(r *Request) bool {
	switch seen := c.seen[r.Op]; {
	case c.ones != nil && c.ones[r.arrival]:
		return true
	case c.where <= StateThreadless, c.where == StateAtGate && (r.came == 0 || r.marks.has(manned) || c.k.queues[r.Op].scoped || c.k.rules.AllCompatible): // from there some go inside, and others between them do not
		if c.ones == nil {
			c.ones = map[uint64]bool{}
		}
		c.ones[r.arrival] = true
	case c.where == StateInside:
		return r.came > 0 && !r.marks.has(manned) && slices.ContainsFunc(seen, func(s span) bool { return s.from <= r.arrival && r.arrival <= s.to })
	case len(seen) == 0 || c.moved:
		// Those it would have met next have gone inside unseen: a new span.
		c.seen[r.Op], c.moved = append(seen, span{r.arrival, r.arrival}), false
	default:
		seen[len(seen)-1].to = r.arrival
	}
	return false
}

// advance moves to the next queue.
func (c *Cursor) advance() bool {
	c.position = 0
	if c.op++; c.op == len(c.k.queues) || c.where == StateThreadless { // of which there is one list
		if c.where == StateInside {
			c.done = true
			return false
		}
		c.where++
		c.op = 0
	}
	if c.where == StateThreadless {
		c.at = c.k.threadless.first
		return true
	}
	q := &c.k.queues[c.op]
	c.at = map[State]*list{StateAtDoor: &q.door.list, StateAtGate: &q.gate, StateInside: &q.inside}[c.where].first
	return true
}

// passCursors moves every cursor that stands on r to the request after it.
func (k *Scheduler) passCursors(r *Request) {
	for c := k.cursors; c != nil; c = c.next {
		if c.at == r {
			c.at, c.moved = r.next, true
		}
	}
}
