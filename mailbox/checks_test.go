package mailbox_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// checkStart checks the start of c against the rules of order, by the truth of
// the guards and not by what the scheduler knows of it.
func (w *world) checkStart(c *call, before []*call, last int) {
	if !slices.Contains(before, c) {
		w.fatalf("%s started but did not wait", w.name(c))
	}
	if w.ref.held || w.k.Held() {
		w.fatalf("%s started, though the object is held", w.name(c))
	}
	if w.impeded(c) {
		w.fatalf("%s started, though it conflicts with what runs", w.name(c))
	}
	if w.hasFailed() || w.ref.overflowed {
		return // the counts have changed since the choice was made
	}
	count := func(op int) int {
		n := w.k.Waiting(op)
		if op == c.op && c.wasInside {
			n++ // it waited until now, and counted itself
		}
		return n
	}
	open := func(c *call) bool {
		if w.rules.Operations[c.op].Guard == "" {
			return true
		}
		falsePart, err := w.evaluate(c, count)
		return falsePart == "" && err == nil
	}
	if !open(c) {
		w.fatalf("%s started, though its guard is false", w.name(c))
	}
	for _, e := range before {
		if state := e.request.State(); state == mailbox.StateEntry && e.was != mailbox.StateOverflow || state == mailbox.StateAdmitted {
			w.checkPassed(c, e, open(e) && !e.wasBelieved, last)
		}
	}
}

// checkPassed checks that c may have started before e, which waits on.
func (w *world) checkPassed(c, e *call, open bool, last int) {
	p, conflict := w.rules.Policy, w.ref.clash(e, c) && !w.ref.inner(c)
	choosing := p != nil && p.Choose != nil
	due := func(c *call) bool { return c.wasDue }
	same := w.ref.line(e) == w.ref.line(c) && !w.ref.each(c.op) && !w.ref.scoped(c.op) // they share their guard, or the place before it
	head := w.rules.Operations[e.op].HeadOfLine
	// Within a line the policy alone decides.
	if same && c.wasInside && e.request.State() == mailbox.StateAdmitted && !choosing && !due(c) && w.ref.byPolicy(e, c) < 0 {
		w.fatalf("%s started before %s", w.name(c), w.name(e))
	}
	if same && !c.try && e.request.State() == mailbox.StateEntry && e.pos < c.came && c.wasInside && !e.try && !w.waits() { // it may have come from the door
		w.fatalf("%s started before %s, which is at the gate", w.name(c), w.name(e))
	}
	if !conflict {
		return
	}
	atGate := e.request.State() == mailbox.StateEntry
	if w.rules.AllCompatible && due(e) && !(due(c) && c.pos < e.pos) && (open && !head || atGate && w.conds[e.op].looks != guards.AtState) {
		w.fatalf("%s started, though %s is at its bound, and conflicts with it", w.name(c), w.name(e))
	}
	if atGate {
		switch {
		case e.pos >= c.came || !open && w.conds[e.op].looks == guards.AtState:
		case w.rules.AllCompatible && (w.impededBut(c, e) || e.try):
			w.passes(c, e)
		default:
			w.fatalf("%s passed %s, which waits at the gate and conflicts with it", w.name(c), w.name(e))
		}
		return
	}
	if !open || head {
		return
	}
	// Of those that could start, too, the policy decides.
	held := w.rules.AllCompatible && (w.impededBut(c, e) || w.behindDue(e))
	if c.wasInside && !choosing && !due(c) && !due(e) && !held {
		first := e.pos < c.pos
		if w.order.first != nil {
			first = w.order.first(e, c, last) || first && !w.order.first(c, e, last)
		}
		if first {
			w.fatalf("%s passed %s, which is open, conflicts with it and comes first", w.name(c), w.name(e))
		}
	}
	if e.pos < c.pos {
		w.passes(c, e)
	}
}

// passes counts that c has passed e, by the test's own count.
func (w *world) passes(c, e *call) {
	if e.passed++; w.rules.MaxBypass > 0 && e.passed > w.rules.MaxBypass {
		w.fatalf("%s is the %d. to bypass %s", w.name(c), e.passed, w.name(e))
	}
}

// impededBut: something runs that conflicts with e, besides c.
func (w *world) impededBut(c, e *call) bool {
	return w.ref.barredByBegun(e) || w.ref.barredByRetained(e) ||
		slices.ContainsFunc(w.ref.running, func(r *call) bool { return r != c && w.ref.clash(e, r) && !w.ref.around(r, e) })
}

// behindDue: e conflicts with somebody who waits and was at the bound.
func (w *world) behindDue(e *call) bool {
	return slices.ContainsFunc(w.waiting(), func(d *call) bool { return d != e && d.wasDue && w.ref.clash(d, e) })
}

// checkRest checks what must hold when nothing more can start.
func (w *world) checkRest() {
	n := 0
	for op, o := range w.rules.Operations {
		queued := len(filter(w.waiting(), func(c *call) bool {
			return c.op == op && !c.try && !o.Resumes && c.request.State() != mailbox.StateOverflow
		}))
		if n += queued; o.Bound.Overflow != mailbox.Unbounded && queued > o.Bound.Max {
			w.fatalf("%d wait for %s, and no more than %d may", queued, o.Name, o.Bound.Max)
		}
	}
	if b := w.rules.Bound; b.Overflow != mailbox.Unbounded && n > b.Max {
		w.fatalf("%d wait, and no more than %d may", n, b.Max)
	}
	if w.rules.AllCompatible && len(w.ref.noThread) == 0 && !w.ref.held && !w.lies() {
		for _, c := range w.waiting() {
			w.checkWaits(c)
		}
	}
	if w.ref.settled && len(filter(w.calls, func(c *call) bool { return c.request.State() == mailbox.StateFailed })) > 0 {
		w.fatalf("some have failed, and are not told")
	}
}

// checkWaits checks that c, which waits though nothing more can start, waits for what runs, for
// its guard, for the head of its line or for somebody at the bound: where all start that are
// compatible.
func (w *world) checkWaits(c *call) {
	falsePart, err := w.evaluate(c, w.k.Waiting)
	o := &w.rules.Operations[c.op]
	switch {
	case w.impeded(c), falsePart != "" || err != nil:
	case o.HeadOfLine && !o.Family && slices.ContainsFunc(w.waiting(), func(d *call) bool { return d != c && d.op == c.op }):
	case slices.ContainsFunc(w.waiting(), func(e *call) bool { return e != c && w.ref.precedes(e, c) && w.ref.clash(e, c) }):
	case w.ref.settled:
		w.fatalf("%s waits, and nothing is in its way", w.name(c))
	}
}

// check compares all that can be seen from outside with the reference.
func (w *world) check() {
	for _, c := range w.calls {
		want := mailbox.StateFailed
		switch {
		case slices.Contains(w.ref.door, c):
			want = mailbox.StateOverflow
		case slices.Contains(w.ref.gate, c):
			want = mailbox.StateEntry
		case slices.Contains(w.ref.inside, c):
			want = mailbox.StateAdmitted
		case slices.Contains(w.ref.running, c):
			want = mailbox.StateRunning
		}
		if got := c.request.State(); got != want {
			w.fatalf("%s is in state %d; the reference says %d", w.name(c), got, want)
		}
	}
	running := []*call{}
	for r := range w.k.Running() {
		if r.State() == mailbox.StateRunning {
			running = append(running, r.Record.(*call))
		}
	}
	w.checkRetained()
	if !slices.Equal(running, w.ref.running) {
		w.fatalf("%d run; the reference says %d", len(running), len(w.ref.running))
	}
	unseen := make([]int, len(w.conds))
	for op, n := range w.k.Untracked() {
		unseen[op] += n
	}
	for op, n := range unseen {
		if want := len(filter(w.begun, func(b *call) bool { return b.op == op })); n != want {
			w.fatalf("%d unseen of operation %d run, want %d", n, op, want)
		}
	}
	for op := range w.conds {
		inside := len(w.ref.waiting(op))
		queued := inside + len(of(op, w.ref.gate)) + len(of(op, w.ref.door))
		if w.k.Waiting(op) != inside || w.k.Queued(op) != queued {
			w.fatalf("operation %d: waiting %d, queued %d; want %d, %d", op, w.k.Waiting(op), w.k.Queued(op), inside, queued)
		}
		if got, want := w.k.Joined(op), w.ref.joined[op]; got != want {
			w.fatalf("operation %d: %d have joined, want %d", op, got, want)
		}
		if w.rules.Operations[op].Family {
			for key := range keys {
				if got, want := w.k.WaitingAt(op, key), len(w.ref.members(line{op, key})); got != want {
					w.fatalf("operation %d: %d wait for key %d, want %d", op, got, key, want)
				}
			}
		}
		got, want := w.k.Stats(op), w.ref.counts[op]
		want.Operation, want.Evaluations = w.rules.Operations[op].Name, mailbox.Count(w.asked[op])
		if most := max(w.rules.MaxBypass, w.rules.CountBypass); got.LongestBypass > mailbox.Count(most) || (got.LongestBypass == mailbox.NotCounted) != (most == 0) {
			w.fatalf("operation %d: %v bypasses", op, got.LongestBypass)
		}
		if got.LongestBypass = 0; !reflect.DeepEqual(got, want) {
			w.fatalf("operation %d: counted %+v, want %+v", op, got, want)
		}
		if w.k.Admitted().Has(op) != (inside > 0) {
			w.fatalf("operation %d: inside %v with %d waiting", op, w.k.Admitted().Has(op), inside)
		}
	}
	waits := len(w.calls) > len(running)
	runs := len(running)+len(w.begun) > 0
	if w.k.Waits() != waits || w.k.Runs() != runs || w.k.Idle() != (!waits && !runs) {
		w.fatalf("waits %v runs %v idle %v; want %v %v", w.k.Waits(), w.k.Runs(), w.k.Idle(), waits, runs)
	}
	if w.stable && w.closed && waits {
		w.fatalf("a closed object lets requests wait")
	}
	bound := w.rules.MaxBypass
	if bound == 0 {
		bound = w.rules.CountBypass
	}
	if w.k.Overflowing() != (len(w.ref.door) > 0) {
		w.fatalf("at the door: %v", w.k.Overflowing())
	}
	for _, c := range w.waiting() {
		w.checkWhy(c)
		if c.came == 0 && w.ref.compares() && w.rules.MaxBypass == 0 {
			continue // it has joined in front of some, and counts as if it had been there: see Bypassed
		}
		if got, want := w.k.Bypassed(c.request), min(c.bypassed, bound); got != want {
			w.fatalf("%s has been bypassed %d times, the scheduler says %d", w.name(c), want, got)
		}
	}
}

// checkWhy checks the reason that the scheduler gives for the wait of c.
func (w *world) checkWhy(c *call) {
	why := w.k.Why(c.request)
	wrong := func(what string) { w.fatalf("why does %s wait? %+v: %s", w.name(c), why, what) }

	if c.request.State() == mailbox.StateOverflow {
		if why.Cause != mailbox.NoRoom {
			wrong("it is at the door")
		}
		return
	}
	var conflicts []string
	for op, o := range w.rules.Operations {
		if w.conflictsWith(c, op) && (slices.Contains(why.Conflicts, o.Name) || !w.byPredicate(c.op, op)) {
			conflicts = append(conflicts, o.Name) // a predicate is not asked for it
		}
	}
	isHeld := w.ref.barredByRetained(c)
	if !slices.Equal(why.Conflicts, conflicts) || (why.Held != nil) != isHeld || (why.Cause == mailbox.Conflict) != ((conflicts != nil || isHeld) && !w.ref.held) {
		wrong(fmt.Sprintf("it conflicts with %v, held %v", conflicts, isHeld))
	}
	w.checkBlockers(c)

	if (why.Cause == mailbox.Suspended) != w.ref.held {
		wrong(fmt.Sprintf("the object is held: %v", w.ref.held))
	}

	last, asked := w.told[w.ref.line(c)]
	if w.own(c.op) {
		last, asked = w.toldTo[c]
	}
	inside := c.request.State() == mailbox.StateAdmitted
	if w.precise(c.op) && (inside && asked && why.Guard != last.falsePart || !(inside && asked) && why.Guard != "") {
		wrong(fmt.Sprintf("the guard's last answer was %q", last.falsePart))
	}
	if (why.Step != 0) != (why.Guard != "") || why.Step > w.k.Step() {
		wrong(fmt.Sprintf("the step is %d", w.k.Step()))
	}
	known := inside && w.ref.isKnownFalse(c)
	if (why.Cause == mailbox.GuardFalse) != (known && conflicts == nil && !isHeld && !w.ref.held) {
		wrong(fmt.Sprintf("its guard is known to be false: %v", known))
	}
	if why.Cause == mailbox.GuardFalse && !(w.lies() && w.kept(c.op)) {
		if falsePart, err := w.evaluate(c, w.k.Waiting); falsePart != why.Guard || err != nil {
			wrong("the guard holds by now")
		}
	}

	if (why.Cause == mailbox.Order) != (why.Behind != "") {
		wrong("order and what it is behind go together")
	}
	if why.Cause == mailbox.Order && !slices.ContainsFunc(w.waiting(), func(first *call) bool {
		if first == c || w.rules.Operations[first.op].Name != why.Behind {
			return false
		}
		if first.op == c.op && w.rules.Operations[c.op].HeadOfLine {
			return true
		}
		if !w.ref.clash(first, c) || w.rules.AllCompatible && !w.ref.precedes(first, c) {
			return false
		}
		if first.request.State() == mailbox.StateEntry {
			return w.rules.AllCompatible || first.pos < c.pos || slices.ContainsFunc(w.ref.waiting(c.op), func(own *call) bool { return first.pos < own.pos })
		}
		guessed := w.rules.Policy != nil && w.rules.Policy.Fallible // its order is not asked for
		return !w.ref.isKnownFalse(first) && (!inside || guessed || w.ref.before(first, c) < 0)
	}) {
		wrong("nothing of that kind waits, conflicts with it and comes first")
	}
	if why.Cause == mailbox.NoThread && w.stable {
		wrong("nothing can start")
	}
	if (why.Cause == mailbox.Conflict || why.Cause == mailbox.Suspended) && !inside && why.Guard != "" {
		wrong("a guard is not asked for those at the gate")
	}
}

// conflictsWith: a request of the operation runs that conflicts with c.
func (w *world) conflictsWith(c *call, op int) bool {
	return slices.ContainsFunc(w.begun, func(b *call) bool {
		return b.op == op && w.ref.begunBars(c, b.op)
	}) ||
		slices.ContainsFunc(w.ref.running, func(r *call) bool {
			return r.op == op && w.ref.clash(r, c) && !w.ref.around(r, c)
		})
}

// byPredicate: requests of the two operations conflict if a predicate says so.
func (w *world) byPredicate(a, b int) bool {
	s := w.rules.Conflicts.Within(a, b)
	return s >= 0 && w.rules.Conflicts.Scopes()[s].Kind() == guards.ByPredicate
}

func (w *world) hasFailed() bool {
	return slices.ContainsFunc(w.calls, func(c *call) bool { return c.request.State() == mailbox.StateFailed })
}
