package mailbox

import (
	"fmt"
	"iter"
	"slices"
	"strings"
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
	// NoRoom requests wait in the overflow queue, as theirs is full.
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
	// Held are the requests in the way that transactions hold, whose bodies have ended.
	Held []HeldBy `json:"held,omitempty"`
	// Behind is the operation of the request that comes first.
	Behind string `json:"behind,omitempty"`
	// Threads says, of a request that is not considered before it has a thread, what has
	// become of them.
	Threads string `json:"threads,omitempty"`
}

// HeldBy is an operation that a transaction has called and holds.
type HeldBy struct {
	Operation   string `json:"operation"`
	Transaction string `json:"transaction"`
}

// HeldBy reports whether the transaction holds something that is in the way.
func (r Reason) HeldBy(transaction string) bool {
	return slices.ContainsFunc(r.Held, func(h HeldBy) bool { return h.Transaction == transaction })
}

// conflicts says what is in the way.
func (r Reason) conflicts() string {
	var all []string
	if len(r.Conflicts) > 0 {
		all = append(all, strings.Join(r.Conflicts, ", ")+", running")
	}
	for _, h := range r.Held {
		all = append(all, h.Operation+", held by transaction "+h.Transaction)
	}
	return "conflicts with " + strings.Join(all, "; ")
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
		s := r.conflicts()
		if guard != "" {
			s += "; " + guard
		}
		return s
	case Suspended:
		s := "object is suspended"
		if len(r.Conflicts)+len(r.Held) > 0 {
			s += "; " + r.conflicts()
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

// Why returns why a waiting request waits. It asks no guard.
func (s *Scheduler) Why(r *Request) (reason Reason) {
	s.Explain(r, &reason)
	return reason
}

// Explain is Why for a caller that has room for the reason, a zero one: of very many requests,
// copying their reasons would take longer than finding them.
func (s *Scheduler) Explain(r *Request, reason *Reason) {
	switch r.state {
	case StateOverflow:
		reason.Cause = NoRoom
		return
	case StateAwaitingThread:
		reason.Cause, reason.Threads = NoThread, "none is free"
		return
	}
	q := &s.queues[r.Op]
	for op := s.runs.Next(0); op >= 0; op = s.runs.Next(op + 1) {
		if q.near.Has(op) && (!q.scoped || s.blockedByOp(r, op)) {
			reason.Conflicts = append(reason.Conflicts, s.rules.Operations[op].Name)
		}
	}
	for other := s.running.first; other != nil && s.retained > 0; other = other.next {
		if held := (HeldBy{s.rules.Operations[other.Op].Name, other.Held()}); held.Transaction != "" && !slices.Contains(reason.Held, held) && s.conflict(r, other, recall) {
			reason.Held = append(reason.Held, held)
		}
	}
	a := q.resultOf(r)
	closed := r.state == StateAdmitted && a.stamp != 0 && a.falsePart != ""
	if closed {
		reason.Guard, reason.Step = a.falsePart, a.step
	}
	switch {
	case s.held:
		reason.Cause = Suspended
	case reason.Conflicts != nil, reason.Held != nil:
		reason.Cause = Conflict
	case closed && s.stands(q, r, a):
		reason.Cause = GuardFalse
	default:
		reason.Cause = NoThread
		s.ahead(r, recall, func(first *Request, _ bool) bool {
			reason.Cause, reason.Behind = Order, s.rules.Operations[first.Op].Name
			return false
		})
	}
}

// blockedByOp reports whether the body of a request of the operation runs that r, of a scoped one, conflicts
// with, as far as that is known.
func (s *Scheduler) blockedByOp(r *Request, op int) bool {
	n := s.queues[op].runs // those announced by Begin are left, and are alike
	for other := s.running.first; other != nil; other = other.next {
		if other.Op == op {
			if n--; other.state == StateRunning && s.conflict(r, other, recall) {
				return true
			}
		}
	}
	return n > 0 && s.blockedByUntracked(r, op)
}

// Holding yields those of the n requests started last that run and that r waits for: it
// cannot start before they have ended, since it conflicts with them; or does not, unless
// another one leaves that waits in the entry queue and comes before it. It evaluates nothing.
func (s *Scheduler) Holding(r *Request, n int) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if !r.Waits() {
			return
		}
		first := r
		if !s.nested(r) {
			s.enteringAhead(r, recall, func(w *Request) bool { first = w; return false })
		}
		for other := s.running.last; other != nil && n > 0; other = other.prev {
			if (s.conflict(r, other, recall) || s.conflict(first, other, recall)) && !yield(other) {
				return
			}
			n--
		}
	}
}

// Blockers yields the requests that run and that r, which waits, waits for: it conflicts
// with them, or a request does that comes before it, and so on. Those announced by Begin
// are not among them.
//
// One that has another reason to wait, its guard or what runs, is not held up by one that only
// perhaps comes first: it may well start before.
func (s *Scheduler) Blockers(r *Request) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		others := slices.Collect(s.Running())
		way := []*Request{r}
		for i := 0; i < len(way) && len(others) > 0; i++ {
			at := way[i]
			for j := 0; j < len(others); {
				switch {
				case !s.conflict(at, others[j], recall):
					j++
					continue
				case !yield(others[j]):
					return
				}
				others = slices.Delete(others, j, j+1)
			}
			var before []*Request
			s.ahead(at, recall, func(first *Request, sure bool) bool {
				if sure || s.judge(&s.queues[at.Op], at, recall).ready() {
					before = append(before, first)
				}
				return true
			})
			for _, first := range slices.Backward(before) {
				if !slices.ContainsFunc(way, func(w *Request) bool { return w == first || s.standsFor(w, first) }) {
					way = append(way, first)
				}
			}
		}
	}
}

// standsFor reports whether r, which is before some request, waits for all that other waits for,
// which comes before r: so that of very many with one key not each has to be looked at. Where
// requests are not scoped, the first that is met stands for all of its operation.
func (s *Scheduler) standsFor(r, other *Request) bool {
	q := &s.queues[r.Op]
	if r.Op != other.Op || !q.scoped {
		return r.Op == other.Op
	}
	return r.seq >= other.seq && !s.closed(q, r) && s.guess(candidate{r: other, due: s.due(other)}, candidate{r: r, due: s.due(r)}) < 0 &&
		!s.index.asked[r.Op] && alikeClaims(r.Claim, other.Claim)
}

// alikeClaims reports whether two requests of an operation, of which neither is nested, conflict with
// the same.
func alikeClaims(a, b *Claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return len(a.Outer)+len(b.Outer) == 0 && a.Transaction == b.Transaction && slices.Equal(a.Extents, b.Extents)
}

// Obstacles yields the requests that r, which waits, waits for directly: those that run and that it
// conflicts with, in the order of their start; else the one that comes before it, if there is
// one. It evaluates nothing.
func (s *Scheduler) Obstacles(r *Request) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if !r.Waits() {
			return
		}
		conflicts := false
		for other := range s.Running() {
			if s.conflict(r, other, recall) {
				if conflicts = true; !yield(other) {
					return
				}
			}
		}
		if !conflicts && r.state != StateOverflow && r.state != StateAwaitingThread && s.judge(&s.queues[r.Op], r, recall).ready() {
			s.ahead(r, recall, func(first *Request, _ bool) bool {
				yield(first)
				return false
			})
		}
	}
}

// Running yields the requests that run, in the order of their start, and those that transactions retain: see
// Request.Held. Those announced by Begin are not among them, but with Untracked.
func (s *Scheduler) Running() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := s.running.first; r != nil; r = r.next {
			if !yield(r) {
				return
			}
		}
	}
}

// Untracked yields, per operation, how many of those announced by Begin run.
func (s *Scheduler) Untracked() iter.Seq2[int, int] {
	return func(yield func(op, n int) bool) {
		for op := s.runs.Next(0); op >= 0; op = s.runs.Next(op + 1) {
			n := int(s.queues[op].runs)
			for r := s.running.first; r != nil; r = r.next {
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
