package kernel

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
	// Order requests wait for a request that comes before them.
	Order Cause = "order"
	// NoThread requests could start, and wait for somebody to run them.
	NoThread Cause = "no thread"
)

// Reason is why a request waits, as far as the kernel knows without asking
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
	case Order:
		return r.Behind + " comes first"
	}
	return "could start: no thread has come for it"
}

// Running yields the requests that run, in the order of their start. Those
// announced by Begin are not among them, but with Unseen.
func (k *Kernel) Running() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := k.running.first; r != nil; r = r.next {
			if !yield(r) {
				return
			}
		}
	}
}

// Unseen yields, per operation, how many of those announced by Begin run.
func (k *Kernel) Unseen() iter.Seq2[int, int] {
	return func(yield func(op, n int) bool) {
		for op := k.runningOps.Next(0); op >= 0; op = k.runningOps.Next(op + 1) {
			n := int(k.runs[op])
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
// waiting request was open, up to the bound; 0 where no bound is set.
func (k *Kernel) Bypassed(r *Request) int {
	if r.state != Inside {
		return 0
	}
	return min(k.bypasses(r), k.rules.MaxBypass)
}

// Step returns the number of inputs and starts so far.
func (k *Kernel) Step() uint64 { return k.step }

// Why returns why a waiting request waits. It asks no guard.
func (k *Kernel) Why(r *Request) Reason {
	reason := k.whyHere(r.Op)
	rule := &k.rules.Operations[r.Op]
	a := &k.queues[r.Op].answer
	if rule.Looks&guards.AtArgument != 0 {
		a = &r.answer
	}
	if r.state == Inside && a.given && a.falsePart != "" {
		reason.Guard, reason.Step = a.falsePart, a.step
	}
	switch {
	case reason.Cause == Conflict:
	case reason.Guard != "" && k.current(a, rule.Looks):
		reason.Cause = GuardFalse
	default:
		if first := k.ahead(r); first != nil {
			reason.Cause, reason.Behind = Order, k.rules.Operations[first.Op].Name
		}
	}
	return reason
}

// whyHere returns what keeps every request of an operation from running.
func (k *Kernel) whyHere(op int) Reason {
	row := k.rules.Conflicts.Row(op)
	if !row.Meets(k.runningOps) {
		return Reason{Cause: NoThread}
	}
	reason := Reason{Cause: Conflict}
	for other := k.runningOps.Next(0); other >= 0; other = k.runningOps.Next(other + 1) {
		if row.Has(other) {
			reason.Conflicts = append(reason.Conflicts, k.rules.Operations[other].Name)
		}
	}
	return reason
}

// ahead returns a waiting request that comes before r, conflicts with it and is
// not known to be closed; or nil.
func (k *Kernel) ahead(r *Request) *Request {
	if first := k.outside(r); first != nil {
		return first
	}
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		if !k.rules.Conflicts.Conflict(r.Op, op) {
			continue
		}
		first := k.notFalse(op)
		if first == nil {
			continue
		}
		for _, c := range k.alsoDue([]candidate{{r: first, due: k.due(first)}}, first, false) {
			if c.r != r && (r.state == AtGate || k.compare(c, candidate{r: r, due: k.due(r)}) < 0) {
				return c.r
			}
		}
	}
	return nil
}

// Cursor walks over the waiting requests, some at a time, so that an inspection
// of many need not hold up the object. Requests may arrive, start and leave
// between two calls of Next; those that wait from beginning to end of the walk
// are visited exactly once.
type Cursor struct {
	k        *Kernel
	next     *Cursor
	until    uint64 // visit no request that arrived later
	inside   bool   // past the gates, which are visited first
	op       int
	at       *Request
	position int
	seen     [][]span // per operation: the arrivals seen at the gate
	moved    bool     // what it stood on has left, perhaps to the inside
	done     bool
}

// span is a range of arrivals, both ends included.
type span struct{ from, to uint64 }

// Inspect begins a walk over the waiting requests. Close it when done.
func (k *Kernel) Inspect() *Cursor {
	c := &Cursor{k: k, next: k.cursors, until: k.arrivals, op: -1, seen: make([][]span, len(k.queues))}
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
// Position counts from 1 within what the request waits in: the gate or the
// inside of its operation's queue.
func (c *Cursor) Next(n int, visit func(r *Request, position int, why Reason)) bool {
	for ; n > 0 && !c.done; n-- {
		for c.at == nil {
			if !c.advance() {
				return false
			}
		}
		r := c.at
		c.at = r.next
		c.position++
		if r.seq > c.until {
			continue
		}
		if seen := c.seen[r.Op]; c.inside {
			if slices.ContainsFunc(seen, func(s span) bool { return s.from <= r.seq && r.seq <= s.to }) {
				continue
			}
		} else if n := len(seen); n == 0 || c.moved {
			// Those it would have met next have gone inside unseen: a new span.
			c.seen[r.Op], c.moved = append(seen, span{r.seq, r.seq}), false
		} else {
			seen[n-1].to = r.seq
		}
		visit(r, c.position, c.k.Why(r))
	}
	return !c.done
}

// advance moves to the next queue.
func (c *Cursor) advance() bool {
	c.position = 0
	if c.op++; c.op == len(c.k.queues) {
		if c.inside {
			c.done = true
			return false
		}
		c.inside, c.op = true, 0
	}
	if c.inside {
		c.at = c.k.queues[c.op].inside.first
	} else {
		c.at = c.k.queues[c.op].gate.first
	}
	return true
}

// passCursors moves every cursor that stands on r to the request after it.
func (k *Kernel) passCursors(r *Request) {
	for c := k.cursors; c != nil; c = c.next {
		if c.at == r {
			c.at, c.moved = r.next, true
		}
	}
}
