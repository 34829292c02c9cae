// Package kernel decides which request may start at a shared object: a pure
// state machine, without goroutine, lock, clock or channel.
//
//	          Arrive            admit                  start             Complete
//	request ─────────► gate ───────────► queues ─────────────► running ──────────►
//	                     │                  │  guards · conflicts · policy
//	                     └──── Withdraw ────┘
//
// Arrivals, completions and withdrawals go in; the requests to start come out
// of Next, one at a time, whenever somebody is ready to run one. The kernel
// itself is not safe for concurrent use; the mailbox around it is.
//
// # The gate
//
// A request that arrives while something runs that it conflicts with stays
// outside, at the gate. When a request completes, those inside are reconsidered
// until none can start; then the ones at the gate are let in, one at a time in
// order of arrival. This is the eggshell of Ada's protected objects: a guard
// over waiting counts never sees those outside, and a burst that passes is not
// joined by latecomers.
//
// # When a request starts
//
// A waiting request starts when
//
//   - nothing that runs conflicts with it,
//   - its guard holds (a guard is asked only when the first point is met, and no
//     answer outlives the start or completion of a request that changes state),
//   - it passes no request that comes before it and conflicts with it, unless
//     that request's guard is known to be false,
//   - no request that has been bypassed as often as the rules allow conflicts
//     with it.
//
// What comes before what is the policy's word.
package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/guards"
)

// Kind is what an operation may do to the state.
type Kind uint8

const (
	// Procedure changes the state and is always open.
	Procedure Kind = iota
	// Entry changes the state and waits for its guard.
	Entry
	// Function reads the state only.
	Function
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	return [...]string{"procedure", "entry", "function"}[k]
}

// Operation is what the kernel knows of an operation.
type Operation struct {
	Name  string
	Kind  Kind
	Guard string       // the guard's name; empty if the operation is always open
	Looks guards.Looks // what the guard looks at
}

func (o *Operation) changes() bool { return o.Kind != Function }

// Rules are the operations of an object, what conflicts with what, and the order
// of consideration. They are not changed once a kernel uses them, and may be
// shared by many.
type Rules struct {
	Operations []Operation
	// Conflicts must have one row per operation.
	Conflicts guards.Table
	// Policy is the order of consideration; nil means Arrival.
	Policy Policy
	// MaxBypass bounds how often a later arrival may start while a request waits
	// inside and its guard is open, or not known to be false; 0 sets no bound. At
	// the bound nothing that conflicts with the request starts before it, not
	// even an earlier arrival of the same entry that was closed meanwhile.
	MaxBypass int
	// Log, if not nil, is told everything that goes into a kernel, what its guards
	// answer, and what comes out, in order. It must not call the kernel.
	Log func(Event)
}

// Object asks the guards of a shared object. The answer is empty if the guard
// holds, and else the name of the part of the guard that is false. An error
// means that the guard failed (it panicked); the requests it guards fail with it.
type Object interface {
	// AskState asks the guard of an operation that looks at the state alone.
	AskState(op int) (falsePart string, err error)
	// AskRequest asks the guard of a request that looks at its argument too.
	AskRequest(r *Request) (falsePart string, err error)
}

// Kernel holds the waiting and the running queue of one shared object.
type Kernel struct {
	rules  *Rules
	object Object

	queues []queue    // one per operation
	inside guards.Set // operations with requests inside
	gated  guards.Set // operations with requests at the gate

	running    list
	runs       []int32    // how many run, per operation, those begun by Begin included
	runningOps guards.Set // operations of which at least one runs

	failed list  // requests that Next has yet to report as failed
	closed error // set once the object takes no more requests

	arrivals uint64 // requests that have arrived so far
	step     uint64 // inputs and starts so far
	version  uint64 // starts and completions of state-changing requests so far
	counting uint64 // arrivals inside and departures so far
	last     int    // the operation that started last

	trying   *Request    // a Try that is being decided, and is in no queue
	watchful bool        // some guard looks at waiting counts
	heads    []candidate // scratch space of pick
	cursors  *Cursor     // inspections under way
}

// queue holds the waiting requests of one operation.
type queue struct {
	inside, gate list
	count        atomic.Int32 // len(inside), readable without the kernel's exclusion
	total        atomic.Int32 // inside and at the gate, likewise

	// The last answer of a guard over the state, shared by all inside.
	answer answer
	// Of a guard over arguments: the first request inside that has not been
	// asked in this version. Those before it answered false.
	unasked *Request
	asked   uint64 // the version that unasked belongs to

	// For each start that bypassed this queue's head while it was open, the last
	// arrival number that it bypassed; of these the greatest, at most as many as
	// bypasses are allowed.
	passed []uint64
	due    int // requests inside, with a guard of their own, at the bound
}

// answer is what a guard said, and when.
type answer struct {
	given     bool
	falsePart string
	version   uint64
	counting  uint64
	step      uint64
}

type candidate struct {
	r    *Request
	wall bool // may not start now, and stands in the way of what conflicts with it
	due  bool // has been bypassed as often as allowed
}

// New returns a kernel without requests.
func New(rules *Rules, object Object) *Kernel {
	n := len(rules.Operations)
	if rules.Conflicts.Len() != n {
		panic(fmt.Sprintf("kernel: a conflict table of %d operations for an object of %d", rules.Conflicts.Len(), n))
	}
	sets := make(guards.Set, 3*len(guards.NewSet(n)))
	w := len(sets) / 3
	watchful := slices.ContainsFunc(rules.Operations, func(o Operation) bool { return o.Looks&guards.AtWaiting != 0 })
	return &Kernel{
		rules: rules, object: object,
		queues: make([]queue, n), runs: make([]int32, n),
		inside: sets[:w:w], gated: sets[w : 2*w : 2*w], runningOps: sets[2*w:],
		last: -1, watchful: watchful,
	}
}

// Arrive hands a new request to the kernel. It waits at the gate until Next lets
// it in.
func (k *Kernel) Arrive(r *Request) {
	q := k.register(r)
	r.state = AtGate
	q.gate.push(r)
	k.gated.Add(r.Op)
}

// register counts r among the arrivals, and returns its queue.
func (k *Kernel) register(r *Request) *queue {
	k.step++
	k.arrivals++
	r.seq = k.arrivals
	k.log(Arrived, r.Op, r, "")
	r.bypassed = 0
	r.answer.given = false
	q := &k.queues[r.Op]
	q.total.Add(1)
	return q
}

// enter puts r, which has been registered, into the inside of its queue.
func (k *Kernel) enter(r *Request) {
	q := &k.queues[r.Op]
	r.state = Inside
	q.inside.push(r)
	q.count.Add(1)
	k.inside.Add(r.Op)
	k.counting++
	if q.unasked == nil {
		q.unasked = r
	}
}

// Next returns the next request to start, and counts it as running from now on.
// If the request is not to start but has failed, err says why: its guard
// panicked, it was a Try that would have had to wait, or the object is closed.
// A nil request means that nothing can be done until the next input.
func (k *Kernel) Next() (r *Request, err error) { return k.NextFor(nil) }

// ErrNoThread is returned by NextFor with a request that could start, but goes on
// waiting.
var ErrNoThread = errors.New("no thread")

// NextFor is Next for somebody who cannot run every request: may says which. If
// the next one is not among them, it goes on waiting and is returned with
// ErrNoThread. May is not asked about a Try, whose caller is there.
func (k *Kernel) NextFor(may func(*Request) bool) (r *Request, err error) {
	for {
		if r := k.failed.first; r != nil {
			k.failed.remove(r)
			err := r.err
			r.state, r.err = Done, nil
			return r, err
		}
		if k.closed != nil {
			return k.evict()
		}
		r := k.pick()
		if k.failed.first != nil {
			continue // first things first: what was picked will be again
		}
		if r != nil {
			if may != nil && !may(r) {
				return r, ErrNoThread
			}
			k.countBypass(r)
			k.leave(r)
			k.start(r)
			return r, nil
		}
		r, err, more := k.admit()
		if r != nil {
			return r, err
		}
		if !more && k.failed.first == nil {
			return nil, nil
		}
	}
}

// Complete says that a running request has ended. For one that was granted but
// never ran, use Decline.
func (k *Kernel) Complete(r *Request) {
	k.step++
	k.log(Ended, r.Op, r, "")
	k.running.remove(r)
	r.state = Done
	k.end(r.Op)
}

// Decline takes back a request that Next returned but that has not begun to run:
// it leaves the running queue without having changed anything.
func (k *Kernel) Decline(r *Request) { k.Complete(r) }

// Join is Arrive and Next in one for a request whose guard has been asked, and is
// false, by somebody who has the object to himself. It reports false, and does
// nothing, if anybody else has to be considered first.
func (k *Kernel) Join(r *Request, falsePart string) bool {
	if k.watchful || k.closed != nil || k.gated.Next(0) >= 0 || k.failed.first != nil || k.Runs() {
		return false
	}
	k.register(r)
	k.enter(r)
	k.Refuted(r, falsePart)
	return true
}

// Begin says that a request the kernel has not seen runs: one that found the
// object idle and took it without asking. End says that it has ended.
func (k *Kernel) Begin(op int) {
	k.step++
	k.log(Started, op, nil, "")
	k.begin(op)
}

// End says that a request announced by Begin has ended. Only now is it certain
// that it had its turn.
func (k *Kernel) End(op int) {
	k.step++
	k.log(Ended, op, nil, "")
	k.last = op
	k.end(op)
}

// Abandon says that a request announced by Begin never ran, and changed nothing.
func (k *Kernel) Abandon(op int) {
	k.step++
	k.log(Abandoned, op, nil, "")
	if k.runs[op]--; k.runs[op] == 0 {
		k.runningOps.Remove(op)
	}
}

// Refuted says that the guard of r, which has just arrived, has been asked and
// is false. Nothing runs that may have changed the state since.
func (k *Kernel) Refuted(r *Request, falsePart string) {
	if k.rules.Operations[r.Op].Looks&guards.AtArgument != 0 {
		k.log(Answered, r.Op, r, falsePart)
		r.answer = k.note(falsePart)
	} else {
		k.log(Answered, r.Op, nil, falsePart)
		k.queues[r.Op].answer = k.note(falsePart)
	}
}

// AskingFailed says that the asking of a guard will not return: that of r, or, if
// r is nil, that of an operation's guard over the state. The requests it guards
// fail with err. It is the one method that may be called during Next, by an
// Object, if the goroutine is not to come back to it.
func (k *Kernel) AskingFailed(op int, r *Request, err error) {
	if t := k.trying; t != nil {
		k.trying = nil
		t.err, t.state = err, Failed
		k.failed.push(t)
	}
	if r == nil {
		for q := &k.queues[op]; q.inside.first != nil; {
			k.fail(q.inside.first, err)
		}
	} else if r.state == Inside {
		k.fail(r, err)
	}
}

// Answered says what the guards over the state of some operations, given as
// bits, have answered since the state last changed: they were asked in ascending
// order up to the operation open, whose guard holds; if open is -1 none does. Each
// of them consists of one part.
func (k *Kernel) Answered(operations uint64, open int) {
	for op := k.inside.Next(0); op >= 0 && (open < 0 || op <= open); op = k.inside.Next(op + 1) {
		if op > 63 || operations>>op&1 == 0 {
			continue
		}
		falsePart := ""
		if op != open {
			falsePart = k.rules.Operations[op].Guard
		}
		k.log(Answered, op, nil, falsePart)
		k.queues[op].answer = k.note(falsePart)
	}
}

// Withdraw takes a waiting request out of its queue, and reports whether it was
// waiting; if not, nothing is changed.
func (k *Kernel) Withdraw(r *Request) bool {
	if r.state != AtGate && r.state != Inside {
		return false
	}
	k.step++
	k.log(Withdrawn, r.Op, r, "")
	k.leave(r)
	r.state = Done
	return true
}

// Close makes Next fail every waiting and every later request with err. What
// runs is not touched. Only the first call counts.
func (k *Kernel) Close(err error) {
	if k.closed == nil {
		k.step++
		k.closed = err
	}
}

// Waiting returns how many requests of the operation wait inside: Ada's 'Count.
// It may be called at any time from anywhere.
func (k *Kernel) Waiting(op int) int { return int(k.queues[op].count.Load()) }

// Queued returns how many requests of the operation wait, inside and at the
// gate. It may be called at any time from anywhere.
func (k *Kernel) Queued(op int) int { return int(k.queues[op].total.Load()) }

// Idle reports whether nothing waits and nothing runs.
func (k *Kernel) Idle() bool {
	return !k.Waits() && !k.Runs()
}

// Waits reports whether any request waits, or has failed and is not yet reported.
func (k *Kernel) Waits() bool {
	return k.inside.Next(0) >= 0 || k.gated.Next(0) >= 0 || k.failed.first != nil
}

// Runs reports whether any request runs.
func (k *Kernel) Runs() bool { return k.runningOps.Next(0) >= 0 }

// Inside returns the set of operations with requests that wait inside. It
// belongs to the kernel: do not change or keep it.
func (k *Kernel) Inside() guards.Set { return k.inside }

// Watchful reports whether some guard looks at waiting counts, so that a
// withdrawal can open it.
func (k *Kernel) Watchful() bool { return k.watchful }

// start moves a request, which waits nowhere any more, to the running queue.
func (k *Kernel) start(r *Request) {
	k.step++
	k.last = r.Op
	k.log(Started, r.Op, r, "")
	r.state = Running
	k.running.push(r)
	k.begin(r.Op)
}

func (k *Kernel) begin(op int) {
	if k.runs[op]++; k.runs[op] == 1 {
		k.runningOps.Add(op)
	}
	if k.rules.Operations[op].changes() {
		k.version++
	}
}

func (k *Kernel) end(op int) {
	if k.runs[op]--; k.runs[op] == 0 {
		k.runningOps.Remove(op)
	}
	if k.rules.Operations[op].changes() {
		k.version++
	}
}

// leave takes a waiting request out of the queue it is in.
func (k *Kernel) leave(r *Request) {
	q := &k.queues[r.Op]
	q.total.Add(-1)
	if r.state == AtGate {
		k.leaveGate(r)
		q.unwatched()
		return
	}
	k.passCursors(r)
	if q.unasked == r {
		q.unasked = r.next
	}
	if k.counted(r) {
		q.due--
	}
	head := q.inside.first == r
	if q.inside.remove(r); q.inside.first == nil {
		k.inside.Remove(r.Op)
		// Nobody watches this guard any more: the fast path may change the state
		// without asking it, so what it said is worth nothing.
		q.answer.given = false
		q.passed = q.passed[:0]
	}
	q.count.Add(-1)
	k.counting++
	if head && len(q.passed) > 0 {
		q.passed = slices.DeleteFunc(q.passed, func(seq uint64) bool { return seq < q.inside.first.seq })
	}
}

// unwatched forgets an answer given by Refuted, if the requests it was meant for
// have left without coming inside.
func (q *queue) unwatched() {
	if q.inside.first == nil && q.gate.first == nil {
		q.answer.given = false
	}
}

func (k *Kernel) leaveGate(r *Request) {
	k.passCursors(r)
	q := &k.queues[r.Op]
	if q.gate.remove(r); q.gate.first == nil {
		k.gated.Remove(r.Op)
	}
}

// fail queues a waiting request to be reported as failed by Next.
func (k *Kernel) fail(r *Request, err error) {
	k.log(Failing, r.Op, r, "")
	k.leave(r)
	r.err = err
	r.state = Failed
	k.failed.push(r)
}

// evict reports one waiting request of a closed object as failed.
func (k *Kernel) evict() (*Request, error) {
	r := k.oldest(func(q *queue) *Request {
		if q.inside.first != nil {
			return q.inside.first
		}
		return q.gate.first
	})
	if r == nil {
		return nil, nil
	}
	k.log(Failing, r.Op, r, "")
	k.leave(r)
	r.state = Done
	return r, k.closed
}

// oldest returns the request that arrived first among those that head returns
// for each queue; nil ones do not count.
func (k *Kernel) oldest(head func(*queue) *Request) (first *Request) {
	for op := range k.queues {
		if r := head(&k.queues[op]); r != nil && (first == nil || r.seq < first.seq) {
			first = r
		}
	}
	return first
}

// barred reports whether something runs that conflicts with the operation.
func (k *Kernel) barred(op int) bool {
	return k.rules.Conflicts.Row(op).Meets(k.runningOps)
}

// admit lets requests in from the gate, in order of arrival, until one opens a
// guard over waiting counts or none is left that may enter. A Try is decided
// on the spot and returned. More reports whether any request entered.
func (k *Kernel) admit() (r *Request, err error, more bool) {
	for {
		r := (*Request)(nil)
		for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
			if head := k.queues[op].gate.first; (r == nil || head.seq < r.seq) && !k.barred(op) {
				r = head
			}
		}
		if r == nil {
			return nil, nil, more
		}
		k.leaveGate(r)
		q := &k.queues[r.Op]
		if r.Try {
			q.total.Add(-1)
			err := k.try(r)
			q.unwatched()
			return r, err, true
		}
		k.enter(r)
		more = true
		if k.watchful && k.countsOpened() || k.failed.first != nil {
			return nil, nil, true
		}
	}
}

// countsOpened reports whether a guard over waiting counts holds for somebody.
func (k *Kernel) countsOpened() bool {
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		if k.rules.Operations[op].Looks&guards.AtWaiting != 0 && !k.barred(op) && k.firstOpen(op) != nil {
			return true
		}
	}
	return false
}

// Refused is the reason why a Try did not run: it would have had to wait.
type Refused struct {
	Operation string
	// Guard is the part of the guard that was false, if the guard refused.
	Guard string
	// Behind is the operation of the request that came first, if one did.
	Behind string
}

// Error implements error.
func (e *Refused) Error() string {
	if e.Guard != "" {
		return fmt.Sprintf("%s would wait: guard %q is false", e.Operation, e.Guard)
	}
	return fmt.Sprintf("%s would wait: %s comes first", e.Operation, e.Behind)
}

// try starts r, which has left the gate, or says why it would have to wait. It
// is called when nothing that runs conflicts with r.
func (k *Kernel) try(r *Request) error {
	k.trying = r
	err := k.decide(r)
	k.trying = nil // not deferred: after AskingFailed the kernel is somebody else's
	return err
}

// decide is try, while r is in no queue.
func (k *Kernel) decide(r *Request) error {
	op := &k.rules.Operations[r.Op]
	for other := k.inside.Next(0); other >= 0; other = k.inside.Next(other + 1) {
		if !k.rules.Conflicts.Conflict(r.Op, other) {
			continue
		}
		first := k.notFalse(other)
		if first != nil && !k.barred(other) {
			first = k.firstOpen(other)
		}
		if first != nil {
			r.state = Done
			return &Refused{Operation: op.Name, Behind: k.rules.Operations[other].Name}
		}
	}
	if other := k.outside(r); other != nil {
		r.state = Done
		return &Refused{Operation: op.Name, Behind: k.rules.Operations[other.Op].Name}
	}
	falsePart, err := "", error(nil)
	switch {
	case op.Guard == "":
	case op.Looks&guards.AtArgument != 0:
		falsePart, err = k.object.AskRequest(r)
	default:
		falsePart, err = k.askState(r.Op)
	}
	if err == nil && falsePart != "" {
		err = &Refused{Operation: op.Name, Guard: falsePart}
	}
	if err != nil {
		r.state = Done
		return err
	}
	k.countBypass(r)
	k.start(r)
	return nil
}

// outside returns a request at the gate that arrived before r and conflicts with
// it, or nil. Those at the gate have not been asked, but a guard over the state
// alone is as false for them as it is for those inside. (One over waiting counts
// may open when they come in.)
func (k *Kernel) outside(r *Request) *Request {
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		head := k.queues[op].gate.first
		if head.seq >= r.seq || !k.rules.Conflicts.Conflict(r.Op, op) {
			continue
		}
		if a := &k.queues[op].answer; k.rules.Operations[op].Looks != guards.AtState || a.falsePart == "" || !k.current(a, guards.AtState) {
			return head
		}
	}
	return nil
}

// pick returns the request inside that starts next, or nil.
func (k *Kernel) pick() *Request {
	op := k.inside.Next(0)
	if op < 0 {
		return nil
	}
	if k.rules.MaxBypass == 0 && k.inside.Next(op+1) < 0 && k.gated.Next(0) < 0 {
		// Requests of one operation only: nobody to be compared with.
		if k.barred(op) {
			return nil
		}
		return k.firstOpen(op)
	}
	h := k.heads[:0]
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		if k.barred(op) {
			// It may be open or not: nobody can tell before what runs has ended,
			// unless it was asked since the state last changed.
			if r := k.notFalse(op); r != nil {
				h = append(h, candidate{r: r, wall: true, due: k.due(r)})
				h = k.alsoDue(h, r, !k.barred(op))
			}
			continue
		}
		if r := k.firstOpen(op); r != nil {
			h = append(h, candidate{r: r, due: k.due(r)})
			h = k.alsoDue(h, r, !k.barred(op))
		}
	}
	k.heads = h
	if len(h) > 1 {
		slices.SortFunc(h, k.compare)
	}
next:
	for i, c := range h {
		if c.wall || k.outside(c.r) != nil {
			continue
		}
		for _, earlier := range h[:i] {
			if k.rules.Conflicts.Conflict(earlier.r.Op, c.r.Op) {
				continue next
			}
		}
		return c.r
	}
	return nil
}

// alsoDue appends the requests after first, in its queue, that have been bypassed
// as often as allowed: they were open when first was not. If it may not ask, it
// takes those not known to be closed. Without guards over arguments there are
// none, for nobody is bypassed more often than the first.
func (k *Kernel) alsoDue(h []candidate, first *Request, ask bool) []candidate {
	q, looks := &k.queues[first.Op], k.rules.Operations[first.Op].Looks
	for r, left := q.inside.first, q.due; left > 0; {
		next := r.next
		if k.counted(r) {
			left--
			if r.seq > first.seq && (!ask || k.askRequest(r, looks)) && k.mayHold(r) {
				h = append(h, candidate{r: r, wall: !ask, due: true})
			}
		}
		r = next
	}
	return h
}

// counted reports whether r is one of its queue's due.
func (k *Kernel) counted(r *Request) bool {
	return k.rules.MaxBypass > 0 && int(r.bypassed) >= k.rules.MaxBypass
}

// compare orders candidates: those that have been bypassed often enough first,
// by arrival; then as the policy says; ties by arrival.
func (k *Kernel) compare(a, b candidate) int {
	switch {
	case a.due && b.due:
		return cmp.Compare(a.r.seq, b.r.seq)
	case a.due:
		return -1
	case b.due:
		return 1
	}
	if p := k.rules.Policy; p != nil {
		if p.Before(a.r, b.r, k.last) {
			return -1
		}
		if p.Before(b.r, a.r, k.last) {
			return 1
		}
	}
	return cmp.Compare(a.r.seq, b.r.seq)
}

// current reports whether an answer still stands.
func (k *Kernel) current(a *answer, looks guards.Looks) bool {
	return a.given && a.version == k.version && (looks&guards.AtWaiting == 0 || a.counting == k.counting)
}

// firstOpen returns the first request inside the operation's queue whose guard
// holds, asking what has not been asked since the state changed. A guard that
// fails takes the requests it guards with it.
func (k *Kernel) firstOpen(op int) *Request {
	q, rule := &k.queues[op], &k.rules.Operations[op]
	switch {
	case rule.Guard == "":
		return q.inside.first
	case rule.Looks&guards.AtArgument == 0:
		if falsePart, err := k.askState(op); falsePart != "" || err != nil {
			return nil
		}
		return q.inside.first
	}
	if q.asked != k.version || rule.Looks&guards.AtWaiting != 0 {
		q.asked, q.unasked = k.version, q.inside.first
	}
	for q.unasked != nil {
		r := q.unasked
		if !k.askRequest(r, rule.Looks) {
			continue // it has failed, which moved unasked on
		}
		if r.answer.falsePart == "" {
			return r
		}
		q.unasked = r.next
	}
	return nil
}

// askState returns what an operation's guard over the state says, asking it if
// that is not known. If the guard fails, so do all that wait inside for it.
func (k *Kernel) askState(op int) (falsePart string, err error) {
	q := &k.queues[op]
	if k.current(&q.answer, k.rules.Operations[op].Looks) {
		return q.answer.falsePart, nil
	}
	falsePart, err = k.object.AskState(op)
	for err != nil && q.inside.first != nil {
		k.fail(q.inside.first, err)
	}
	if err == nil {
		k.log(Answered, op, nil, falsePart)
	}
	q.answer = k.note(falsePart)
	q.answer.given = q.inside.first != nil // or else a Try has asked, and nobody watches the guard
	return falsePart, err
}

// askRequest brings the answer of a guard over r's argument up to date. It
// reports false if the guard failed, and r with it.
func (k *Kernel) askRequest(r *Request, looks guards.Looks) bool {
	if k.current(&r.answer, looks) {
		return true
	}
	falsePart, err := k.object.AskRequest(r)
	if err != nil {
		k.fail(r, err)
		return false
	}
	k.log(Answered, r.Op, r, falsePart)
	r.answer = k.note(falsePart)
	return true
}

func (k *Kernel) note(falsePart string) answer {
	return answer{given: true, falsePart: falsePart, version: k.version, counting: k.counting, step: k.step}
}

// notFalse returns the first request inside the operation's queue whose guard is
// not known to be false, without asking.
func (k *Kernel) notFalse(op int) *Request {
	q, rule := &k.queues[op], &k.rules.Operations[op]
	switch {
	case rule.Guard == "":
	case rule.Looks&guards.AtArgument == 0:
		if k.current(&q.answer, rule.Looks) && q.answer.falsePart != "" {
			return nil
		}
	default:
		r := q.inside.first
		if q.asked == k.version && rule.Looks&guards.AtWaiting == 0 {
			r = q.unasked
		}
		// Some after the first that holds may have been asked too.
		for r != nil && !k.mayHold(r) {
			r = r.next
		}
		return r
	}
	return q.inside.first
}

// mayHold reports whether a guard over r's argument is not known to be false.
func (k *Kernel) mayHold(r *Request) bool {
	return r.answer.falsePart == "" || !k.current(&r.answer, k.rules.Operations[r.Op].Looks)
}

// due reports whether a request whose guard holds has been bypassed as often as
// the rules allow.
func (k *Kernel) due(r *Request) bool {
	return k.rules.MaxBypass > 0 && k.bypasses(r) >= k.rules.MaxBypass
}

// bypasses returns how often later arrivals started while r waited inside and
// its guard was open.
//
// Requests with a guard of their own are counted one by one. The others in a
// queue share their guard and start in order of arrival, so whatever passed one
// of them has passed the head and all up to that one: the queue keeps the
// greatest arrival number that each start passed, and those not below r's are r's.
func (k *Kernel) bypasses(r *Request) int {
	n := int(r.bypassed)
	for _, seq := range k.queues[r.Op].passed {
		if seq >= r.seq {
			n++
		}
	}
	return n
}

// countBypass books the start of r, which is about to happen, with all that have
// waited longer and could start as well. Those that something running conflicts
// with count as open unless they are known to be false: a stream of functions
// must not starve an entry whose guard holds.
func (k *Kernel) countBypass(r *Request) {
	if k.rules.MaxBypass == 0 {
		return
	}
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		q, rule := &k.queues[op], &k.rules.Operations[op]
		wall := k.barred(op)
		if rule.Looks&guards.AtArgument == 0 {
			if q.inside.first.seq >= r.seq || wall && k.notFalse(op) == nil || !wall && k.firstOpen(op) == nil {
				continue
			}
			q.pass(min(r.seq, q.inside.last.seq), k.rules.MaxBypass)
			continue
		}
		for w := q.inside.first; w != nil && w.seq < r.seq; {
			next := w.next
			if wall && k.mayHold(w) || !wall && k.askRequest(w, rule.Looks) && w.answer.falsePart == "" {
				if w.bypassed++; int(w.bypassed) == k.rules.MaxBypass {
					q.due++
				}
			}
			w = next
		}
	}
}

// pass notes that a start bypassed those in the queue that arrived up to seq.
// Only the greatest bound numbers are kept: of those, as many are not below a
// request's own as have passed it, up to the bound.
func (q *queue) pass(seq uint64, bound int) {
	if len(q.passed) < bound {
		q.passed = append(q.passed, seq)
		return
	}
	least := 0
	for i, s := range q.passed {
		if s < q.passed[least] {
			least = i
		}
	}
	q.passed[least] = max(q.passed[least], seq)
}
