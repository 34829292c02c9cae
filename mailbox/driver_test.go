package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// world drives a scheduler and the reference with the same inputs, compares what
// comes out, and checks what must hold whatever the reference says.
type world struct {
	mix
	t         failer
	src       choices
	rules     *mailbox.Rules
	order     order
	conds     []condition
	state     state
	misjudges bool // the policy fails at present
	whim      int  // of a policy that chooses
	k         *mailbox.Scheduler
	ref       *reference
	calls     []*call // all that have not come to an end
	ended     []*mailbox.Request
	begun     []*call // the scheduler knows their operation only
	stable    bool    // Next has returned nil since the last input
	quiet     bool    // and nobody has joined
	closed    bool
	trace     []string

	version int            // starts and completions of state-changing requests
	told    map[line]told  // the last answer of a guard that is shared
	toldTo  map[*call]told // per request: the last answer of its own guard
	asked   []int          // per operation: how often its guard was
	counts  []int          // waiting counts when last looked at
	cursors []*walk
	open    []*mailbox.Transaction
	names   int
}

// choices decides what happens next: rapid, or the bytes of a fuzzer.
type choices interface {
	// choose returns a number from 0 to n-1.
	choose(n int, what string) int
}

type failer interface{ Fatalf(string, ...any) }

// mix says how often which input comes, and what the objects are like.
type mix struct {
	operations, arrive, next, drain, complete, withdraw, decline, begin, end, walk, silent, close int
	requeue, rerank, policy, noThread, failed, hold                                               int
	release, transacted                                                                           int
	resumes                                                                                       int // of four guards over arguments, how many are of rests
	lapse                                                                                         int
	undeclared                                                                                    int // of four bodies, where that is checked

	looks    []guards.Looks
	bounds   []int // of bypasses
	bounded  int   // how many of four queues have a bound
	families int   // 2: some guards over arguments are head of line; 3 or more: or of families
	policies []int // nil: all
	scopes   int   // of four conflict tables have conflicts by argument
	all      int   // of four objects let all start that are compatible
	plain    bool  // no bypasses are counted
}

var (
	everyday = mix{
		operations: 4, arrive: 4, next: 2, drain: 2, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, silent: 1, close: 1,
		requeue: 1, rerank: 1, noThread: 1, hold: 1,
		looks:    []guards.Looks{guards.AtState, guards.AtArgument, guards.AtWaiting, guards.AtArgument | guards.AtWaiting},
		bounds:   []int{0, 1, 2, 3},
		families: 3, scopes: 1, all: 1,
	}
	// judging objects have policies that fail now and then.
	judging = mix{
		operations: 3, arrive: 5, next: 3, drain: 1, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 1, rerank: 3, policy: 2, failed: 1, hold: 1,
		looks:    []guards.Looks{guards.AtState, guards.AtArgument, guards.AtArgument, guards.AtWaiting},
		bounds:   []int{0, 0, 1, 2},
		families: 4, policies: []int{4, 5, 6, 6, 7, 8, 8}, scopes: 1, all: 1,
	}
	// crowded objects have bounded queues.
	crowded = mix{
		operations: 3, arrive: 8, next: 2, drain: 2, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, silent: 1, close: 1,
		requeue: 2, rerank: 1, policy: 1, noThread: 1, failed: 1, hold: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtArgument, guards.AtWaiting, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0, 0, 1, 2}, bounded: 2, families: 3, scopes: 1, all: 1,
	}
	// resuming objects are crowded, and have bodies that suspend.
	resuming = mix{
		operations: 3, arrive: 8, next: 2, drain: 3, complete: 2, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 5, noThread: 1, failed: 1, hold: 1, resumes: 3, lapse: 2,
		looks:  []guards.Looks{guards.AtState, guards.AtArgument, guards.AtArgument, guards.AtArgument},
		bounds: []int{0, 0, 1, 2}, bounded: 3, families: 3, scopes: 1, all: 1,
	}
	// related operations are families, mostly, that some declare to open.
	related = mix{
		operations: 3, arrive: 6, next: 2, drain: 3, complete: 4, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 1, rerank: 1, hold: 1,
		looks:  []guards.Looks{guards.AtArgument, guards.AtArgument, guards.AtArgument, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0, 0, 1, 2}, families: 12, all: 1,
	}
	// lying objects are related ones whose declarations are checked, and wrong.
	lying = mix{
		operations: 3, arrive: 6, next: 2, drain: 3, complete: 5, withdraw: 1, decline: 1, begin: 1, end: 2, walk: 1, close: 1,
		requeue: 1, rerank: 1, noThread: 1, undeclared: 3,
		looks:  []guards.Looks{guards.AtArgument, guards.AtArgument, guards.AtArgument, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0, 0, 1, 2}, families: 12, all: 1,
	}
	// plain objects have nothing that stands in the way of short ways, mostly.
	plain = mix{
		operations: 3, arrive: 6, next: 3, drain: 3, complete: 4, withdraw: 2, decline: 1, begin: 1, end: 2, walk: 2,
		silent: 1, requeue: 1, rerank: 1, noThread: 1, hold: 1, failed: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtState, guards.AtArgument, guards.AtArgument, guards.AtWaiting, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0}, families: 3, policies: []int{0, 0, 0, 0, 1, 2, 7}, plain: true,
	}
	// walking objects have queues that move slowly, under the eyes of cursors.
	walking = mix{
		operations: 2, arrive: 6, next: 3, complete: 2, withdraw: 1, begin: 1, end: 1, walk: 6, requeue: 1,
		looks:    []guards.Looks{guards.AtWaiting},
		bounds:   []int{0},
		families: 1, all: 1,
	}
	// narrow objects have conflicts by argument, and calls from inside.
	narrow = mix{
		operations: 4, arrive: 6, next: 2, drain: 3, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 1, rerank: 1, noThread: 1, hold: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtArgument, guards.AtArgument, guards.AtWaiting},
		bounds: []int{0, 0, 0, 2}, families: 4, scopes: 4, all: 1,
	}
	// tight objects are narrow ones with bounded queues.
	tight = mix{
		operations: 3, arrive: 8, next: 2, drain: 3, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, close: 1,
		requeue: 2, rerank: 1, noThread: 1, hold: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtState, guards.AtArgument, guards.AtWaiting},
		bounds: []int{0, 0, 2}, bounded: 3, families: 4, scopes: 4, all: 1,
	}
	// overtaking objects let all start that are compatible.
	overtaking = mix{
		operations: 4, arrive: 6, next: 2, drain: 3, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 2, rerank: 1, noThread: 1, hold: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtState, guards.AtArgument, guards.AtWaiting},
		bounds: []int{0, 1, 2, 3}, families: 4, scopes: 2, all: 4,
	}
	// bypassing objects have a bound that is soon reached.
	bypassing = mix{
		operations: 3, arrive: 4, next: 3, drain: 1, complete: 3, withdraw: 1, end: 1, begin: 1, requeue: 1, hold: 1,
		looks:    []guards.Looks{guards.AtArgument, guards.AtArgument, guards.AtState},
		bounds:   []int{1, 2},
		families: 5, all: 1,
	}
)

func newWorld(t failer, src choices, m mix) *world {
	w := &world{t: t, src: src, mix: m, told: map[line]told{}, toldTo: map[*call]told{}}
	w.drawRules()
	n := len(w.conds)
	w.state = state{open: make([]bool, n), keys: make([][keys]keyState, n), panic: -1}
	w.counts, w.asked = make([]int, n), make([]int, n)
	w.k = mailbox.New(w.rules, w)
	w.ref = newReference(w.rules, w.order)
	w.ref.guard = func(c *call) (string, error) {
		return w.evaluate(c, func(of int) int { return len(w.ref.waiting(of)) })
	}
	w.ref.misjudges = func() error {
		if w.misjudges && w.rules.Policy != nil && w.rules.Policy.Fallible {
			return errMisjudge
		}
		return nil
	}
	return w
}

func (w *world) runningOps() []int {
	var ops []int
	for _, b := range w.begun {
		ops = append(ops, b.op)
	}
	for r := range w.k.Running() {
		if r.State() == mailbox.StateRunning {
			ops = append(ops, r.Op)
		}
	}
	return ops
}

// step makes one input, or asks for one request to start, and checks everything.
func (w *world) step() {
	inputs := []struct {
		often int
		do    func()
	}{
		{w.mix.arrive, w.arrive},
		{w.mix.next, w.next},
		{w.mix.drain, w.drain},
		{w.mix.complete, w.complete},
		{w.mix.withdraw, w.withdraw},
		{w.mix.decline, w.decline},
		{w.mix.begin, w.begin},
		{w.mix.end, w.end},
		{w.mix.walk, w.walk},
		{w.mix.silent, w.silent},
		{w.mix.close, w.close},
		{w.mix.requeue, w.requeue},
		{w.mix.rerank, w.rerank},
		{w.mix.policy, w.changePolicy},
		{w.mix.noThread, w.noThread},
		{w.mix.failed, w.fail},
		{w.mix.hold, w.hold},
		{w.mix.release, w.release},
		{w.mix.lapse, w.lapse},
	}
	total := 0
	for _, in := range inputs {
		total += in.often
	}
	n := w.src.choose(total, "input")
	for _, in := range inputs {
		if n -= in.often; n < 0 {
			in.do()
			break
		}
	}
	w.look()
	w.check()
}

// newCall draws a request that has not arrived.
func (w *world) newCall() *call {
	c := &call{
		op: w.src.choose(len(w.conds), "operation"), arg: w.src.choose(3, "argument"), key: w.src.choose(keys, "key"),
		rank: int64(w.src.choose(3, "rank")), try: w.src.choose(4, "try") == 3, patient: w.src.choose(4, "patient") > 0,
	}
	if w.rules.Operations[c.op].Resumes { // to which nothing arrives
		c.op = 0
	}
	// Records are pooled: a request that is done is used again.
	if len(w.ended) > 0 && w.src.choose(2, "again") == 1 {
		c.request, w.ended = w.ended[0], w.ended[1:]
		c.request.Fresh()
	} else {
		c.request = &mailbox.Request{}
	}
	r := c.request
	c.tx = w.drawTransaction()
	c.outer = w.calledInside(c.tx)
	c.turn = w.claim(c)
	r.Op, r.Try, r.Patient, r.Key, r.Rank, r.Record, r.Claim = c.op, c.try, c.patient, c.key, c.rank, c, c.turn
	w.declares(c)
	return c
}

func (w *world) arrive() {
	c := w.newCall()
	if !w.k.Runs() && !w.k.Retains() && w.stable && w.src.choose(2, "comes") == 1 {
		w.come(c)
		return
	}
	w.input()
	w.logf("arrive op %d key %d rank %d patient %v", c.op, c.key, c.rank, c.patient)
	w.k.Arrive(c.request)
	w.ref.arrive(c)
	w.calls = append(w.calls, c)
	w.logf("arrived: %s", w.name(c))
	if got := int(c.request.Arrival()); got != c.arrival {
		w.fatalf("arrival number %d, want %d", got, c.arrival)
	}
}

// come is an arrival at an object that is free, by a caller that may have evaluated the guard.
func (w *world) come(c *call) {
	falsePart := ""
	if !c.try && w.rules.Operations[c.op].Guard != "" && w.src.choose(2, "known") == 1 {
		if part, err := w.evaluate(c, w.k.Waiting); err == nil {
			falsePart = part
		}
	}
	known := falsePart != ""
	settles := w.quiet && (known && w.joins(c) || !known && w.plain(c))
	w.logf("come op %d key %d rank %d patient %v, known %q", c.op, c.key, c.rank, c.patient, falsePart)
	w.calls = append(w.calls, c)
	waits := w.k.Come(c.request, falsePart)
	w.input()
	w.look()
	switch {
	case known && waits:
		w.ref.join(c)
	default:
		if w.ref.arrive(c); known {
			w.ref.refuted(c)
		}
	}
	if known {
		w.hear(c, told{falsePart: falsePart, version: w.version, refuted: !waits})
	}
	w.logf("came: %s, waits: %v", w.name(c), waits)
	if !waits {
		if w.next(); settles && w.stable {
			w.fatalf("all have to wait, and Come does not say so")
		}
		return
	}
	if r, err := w.ref.next(); r != nil {
		w.fatalf("all have to wait; the reference says %s, %v", w.name(r), err)
	}
	w.stable, w.quiet = true, true
	w.checkRest()
}

// joins says whether a request waits whose guard is known to be false, without more ado.
func (w *world) joins(c *call) bool {
	watchful := slices.ContainsFunc(w.conds, func(c condition) bool { return c.looks&guards.AtWaiting != 0 })
	bounded := slices.ContainsFunc(w.rules.Operations, func(o mailbox.Operation) bool { return o.Bound.Overflow != 0 })
	within := w.rules.Policy != nil && w.rules.Policy.Within
	return !watchful && !w.closed && !w.ref.held && len(w.ref.gate) == 0 && len(w.ref.failed) == 0 &&
		!bounded && w.rules.Bound.Overflow == 0 && !within && !w.rules.Operations[c.op].HeadOfLine
}

// plain says whether there is no more to know of the line that c joins, and nobody outside.
func (w *world) plain(c *call) bool {
	r := w.rules
	o := r.Operations[c.op]
	bounded := slices.ContainsFunc(r.Operations, func(o mailbox.Operation) bool { return o.Bound.Overflow != 0 })
	scoped := false
	for op := range r.Operations {
		scoped = scoped || r.Scoped(op)
	}
	return !c.try && !w.closed && !w.ref.held && len(w.ref.gate) == 0 && len(w.ref.failed) == 0 && !scoped && !r.AllCompatible &&
		!bounded && r.Bound.Overflow == 0 && r.Policy == nil && r.MaxBypass == 0 && r.CountBypass == 0 &&
		!o.Family && (o.Looks&guards.AtArgument == 0 || o.HeadOfLine)
}

func (w *world) hear(c *call, said told) {
	switch {
	case w.own(c.op):
		w.toldTo[c] = said
	case !w.rules.Operations[c.op].Family:
		w.told[line{c.op, 0}] = said
	case !said.refuted: // one at the gate has no line
		w.told[line{c.op, c.key}] = said
	}
}

func (w *world) input() {
	w.stable, w.quiet = false, false
	for _, x := range w.cursors {
		x.undisturb = false
	}
}

func (w *world) drain() {
	for !w.next1() {
	}
}

func (w *world) next() { w.next1() }

// next1 asks both for the next request, and reports whether there was none.
func (w *world) next1() (none bool) {
	w.logf("next")
	before, last := w.waiting(), w.ref.last
	for _, c := range before {
		c.was = c.request.State()
	}
	r, err := w.k.NextFor(func(r *mailbox.Request) bool { return !w.ref.noThread[r.Op] })
	w.look()
	for _, x := range w.cursors {
		x.undisturb = false
	}
	want, wantErr := w.ref.next()
	for _, c := range before {
		if s := c.request.State(); s == mailbox.StateOverflow || !c.request.Waits() && s != mailbox.StateRunning {
			w.unwatched(c)
		}
	}
	switch {
	case r == nil && err != nil:
		w.fatalf("an error %v for no request", err)
	case r == nil && want == nil:
		w.logf("  none")
		w.stable, w.quiet = true, true
		w.checkRest()
		return true
	case r == nil || want == nil || r != want.request:
		w.fatalf("next is %s, %v; the reference says %s, %v", w.nameOf(r), err, w.name(want), wantErr)
	case fmt.Sprint(err) != fmt.Sprint(wantErr):
		w.fatalf("%s: error %v; the reference says %v", w.nameOf(r), err, wantErr)
	}
	if !slices.Contains(w.calls, want) {
		w.fatalf("%s came out again", w.name(want))
	}
	if err == mailbox.ErrNoThread {
		w.logf("  no thread for %s", w.name(want))
		return true
	}
	if err != nil {
		w.fails(want, err)
		return false
	}
	w.logf("  starts %s", w.name(want))
	w.recount() // it may have come inside and left at once
	w.checkStart(want, before, last)
	w.changed(want.op, false)
	w.body(want, false)
	return false
}

func (w *world) fails(c *call, err error) {
	w.logf("  fails %s: %v", w.name(c), err)
	if c.request.State() != mailbox.StateDone {
		w.fatalf("%s failed and is in state %d", w.name(c), c.request.State())
	}
	w.over(c)
}

// unwatched forgets what was said to c's line, if c has come inside and left, and
// nobody else is there.
func (w *world) unwatched(c *call) {
	if l := w.ref.line(c); c.wasInside && len(w.ref.members(l)) == 0 && (w.ref.op(c).Family || !w.atGate(c.op)) {
		delete(w.told, l)
	}
}

// fail asks for who has failed, as one does who has no thread.
func (w *world) fail() {
	r, err := w.k.Failed()
	want := w.ref.nextFailed()
	switch {
	case r == nil && want == nil:
	case r == nil || want == nil || r != want.request || fmt.Sprint(err) != fmt.Sprint(want.err):
		w.fatalf("failed is %s, %v; the reference says %s", w.nameOf(r), err, w.name(want))
	default:
		w.fails(want, err)
	}
}

// noThread: there is no thread for some operation, or there is again.
func (w *world) noThread() {
	if op := w.src.choose(len(w.conds), "no thread"); len(w.ref.noThread) > 0 {
		w.ref.noThread = nil
	} else {
		w.ref.noThread = map[int]bool{op: true}
	}
	w.stable = false
}

// changePolicy makes the policy fail for a while, or choose otherwise.
func (w *world) changePolicy() {
	w.misjudges = !w.misjudges && w.rules.Policy != nil && w.rules.Policy.Fallible
	w.whim = w.src.choose(4, "whim")
	w.logf("policy fails: %v, whim %d", w.misjudges, w.whim)
	w.stable = false
}

// waiting returns the calls that wait now.
func (w *world) waiting() []*call {
	return filter(w.calls, func(c *call) bool { return c.request.Waits() })
}

// changed notes the start or completion of a request, which can have opened no
// more than it declares, unless all.
func (w *world) changed(op int, all bool) {
	if w.rules.Operations[op].Kind == mailbox.Function {
		return
	}
	w.version++
	for l, last := range w.told {
		if all || !slices.Contains(w.rules.Operations[op].Opens, l.op) {
			last.changed = true
			w.told[l] = last
		}
	}
}

// over forgets a request that has come to an end.
func (w *world) over(c *call) {
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	delete(w.toldTo, c)
	w.ended = append(w.ended, c.request)
}

// one chooses among the calls that satisfy the condition; nil if none does.
func (w *world) one(ok func(*call) bool) *call {
	var some []*call
	for _, c := range w.calls {
		if ok(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[w.src.choose(len(some), "which")]
}

func (w *world) complete() {
	c := w.one(func(c *call) bool { return c.request.State() == mailbox.StateRunning })
	if c == nil {
		return
	}
	w.input()
	w.body(c, true)
	w.logf("complete %s, can have opened %v", w.name(c), c.opens)
	w.changed(c.op, false)
	w.k.Complete(c.request)
	w.ref.complete(c)
	w.over(c)
}

func (w *world) decline() {
	c := w.one(func(c *call) bool { return c.request.State() == mailbox.StateRunning && !c.begun })
	if c == nil {
		return
	}
	w.logf("decline %s", w.name(c))
	w.input()
	w.changed(c.op, false)
	w.k.Decline(c.request)
	w.ref.decline(c)
	w.over(c)
}

// requeue ends the turn of a running request, which asks for another operation,
// or perhaps the same; or lets in one that the scheduler has not seen run.
func (w *world) requeue() {
	op, key := w.src.choose(len(w.conds), "operation"), w.src.choose(keys, "key")
	// In a line a place that was kept counts as if the request had waited there all the time,
	// unless each of it is counted by itself.
	counts := w.rules.MaxBypass > 0 || w.rules.CountBypass > 0
	keep := (!counts || w.rules.AllCompatible) && w.src.choose(2, "keep") == 1
	c := w.one(func(c *call) bool { return c.request.State() == mailbox.StateRunning })
	switch {
	case c == nil && w.rules.Operations[op].Resumes:
		return
	case c != nil:
		w.input()
		if w.rules.Operations[op].Resumes {
			c.try, c.request.Try = false, false
		}
		w.body(c, true)
		w.logf("requeue %s to op %d key %d, keep %v, can have opened %v", w.name(c), op, key, keep, c.opens)
		w.changed(c.op, false)
		turn := *c
		turn.op, turn.key = op, key
		turn.turn = w.claim(&turn)
		w.k.Requeue(c.request, op, key, turn.turn, keep)
		w.ref.requeue(c, op, key, keep)
		c.turn = turn.turn
	case len(w.begun) > 0:
		w.logf("and then enter")
		w.end()
		c = w.newCall()
		w.k.Enter(c.request, keep)
		w.ref.admitAgain(c, keep)
		w.calls = append(w.calls, c)
	default:
		return
	}
	w.logf("  now %s", w.name(c))
	if got := int(c.request.Arrival()); got != c.arrival {
		w.fatalf("arrival number %d, want %d", got, c.arrival)
	}
	c.passed, c.begun = 0, false
	c.kept = c.kept || keep
	delete(w.toldTo, c)
	if c.request.State() == mailbox.StateFailed {
		w.unwatched(c)
	}
	w.declares(c)
	w.stable = false
}

func (w *world) rerank() {
	c := w.one(func(*call) bool { return true })
	if c == nil {
		return
	}
	waits, rank := c.request.Waits(), int64(w.src.choose(3, "rank"))
	w.logf("rerank %s: %d", w.name(c), rank)
	if got := w.k.Rerank(c.request, rank); got != waits {
		w.fatalf("rerank %s: %v", w.name(c), got)
	}
	if waits {
		w.input()
		w.ref.rerank(c, rank)
	}
}

func (w *world) withdraw() {
	c := w.one(func(*call) bool { return true })
	if c == nil {
		return
	}
	waits := c.request.Waits()
	w.logf("withdraw %s", w.name(c))
	if got := w.k.Withdraw(c.request); got != waits {
		w.fatalf("withdraw %s: %v", w.name(c), got)
	}
	if !waits {
		return
	}
	w.input()
	w.ref.withdraw(c)
	w.over(c)
}

func (w *world) begin() {
	op := w.src.choose(len(w.conds), "begins")
	if w.ref.held || w.rules.Conflicts.Narrowed(op) {
		return // whoever takes the object by himself is kept from it
	}
	for _, running := range w.runningOps() {
		if w.rules.Conflicts.Between(op, running) {
			return
		}
	}
	if len(w.ref.retained) > 0 || slices.ContainsFunc(w.ref.running, func(r *call) bool { return r.tx != nil }) {
		return // the fast path is closed
	}
	w.logf("begin %d", op)
	w.input()
	b := &call{op: op}
	w.declares(b)
	w.begun = append(w.begun, b)
	w.k.Begin(op)
	w.ref.begin(op)
	w.changed(op, false)
	w.body(b, false)
}

func (w *world) end() {
	if len(w.begun) == 0 {
		return
	}
	i := w.src.choose(len(w.begun), "ends")
	b := w.begun[i]
	w.input()
	w.begun = slices.Delete(w.begun, i, i+1)
	if !b.begun && w.src.choose(3, "abandon") == 2 {
		w.logf("abandon %d", b.op)
		w.k.Abandon(b.op)
		w.ref.abandon(b.op)
		return
	}
	w.body(b, true)
	if w.src.choose(3, "declared") == 2 {
		w.logf("end %d, can have opened all", b.op)
		w.changed(b.op, true)
		w.k.End(b.op, nil)
		w.ref.end(b.op, nil)
	} else {
		w.logf("end %d, can have opened %v", b.op, b.opens)
		w.changed(b.op, false)
		w.k.End(b.op, func(family int, open func(any)) { w.opened(b, family, open) })
		w.ref.end(b.op, b.opens)
	}
	w.answer()
}

// answer: whoever ran has asked the plain guards that are waited for, in
// ascending order up to the first that holds.
func (w *world) answer() {
	if w.k.Runs() || w.k.Retains() || w.src.choose(2, "answered") == 0 {
		return
	}
	var asked uint64
	var falseOps []int
	for op, c := range w.conds {
		if w.rules.Operations[op].Guard == "" || c.looks != guards.AtState || w.k.Waiting(op) == 0 {
			continue
		}
		asked |= 1 << op
		falsePart, err := w.evaluate(&call{op: op}, nil)
		if err != nil {
			return
		}
		if falsePart != "" {
			falseOps = append(falseOps, op)
			continue
		}
		for _, op := range append(falseOps, op) {
			w.asked[op]++
		}
		w.logf("  answered: %v are closed, %d is open", falseOps, op)
		w.k.GuardResults(asked, op)
		w.ref.answered(falseOps, op)
		for _, op := range falseOps {
			w.told[line{op, 0}] = told{falsePart: w.rules.Operations[op].Guard, version: w.version}
		}
		w.told[line{op, 0}] = told{version: w.version}
		return
	}
}

// silent changes the state without a word to the scheduler, as its user's fast path
// may while nothing runs and only guards are waited for that stay closed.
func (w *world) silent() {
	if w.k.Runs() || w.k.Retains() || !w.stable || w.ref.held {
		return
	}
	before := w.state.clone()
	w.logf("silent change")
	w.newState()
	w.logf("  state %+v", w.state)
	for _, c := range w.waiting() {
		falsePart, err := w.evaluate(c, w.k.Waiting)
		if c.request.State() != mailbox.StateAdmitted || w.conds[c.op].looks != guards.AtState || falsePart == "" || err != nil {
			w.logf("  but no: %s", w.name(c))
			w.state = before
			return
		}
	}
}

// hold: something is about to be done to the object, or has been: perhaps its state
// is another one now.
func (w *world) hold() {
	w.input()
	if w.src.choose(4, "lapse") == 0 {
		w.logf("lapse")
		w.outdate()
		w.k.Lapse()
		w.ref.lapse()
		return
	}
	if !w.ref.held {
		w.logf("hold")
		w.k.Hold()
		w.ref.hold()
		return
	}
	if w.src.choose(4, "hold again") == 0 {
		w.logf("hold again")
		w.k.Hold()
		w.ref.hold()
		return
	}
	changed := !w.k.Runs() && w.src.choose(2, "another state") == 1
	w.logf("free, changed: %v", changed)
	if changed {
		w.newState()
		w.logf("  state %+v", w.state)
		w.outdate()
	}
	w.k.Free(changed)
	w.ref.free(changed)
}

// outdate notes that no result of a guard stands any more.
// lapse has the guard of a request evaluated again, for all that share it.
func (w *world) lapse() {
	c := w.one(func(c *call) bool {
		return w.rules.Operations[c.op].Looks&guards.AtArgument != 0 && !w.rules.Operations[c.op].HeadOfLine
	})
	if c == nil {
		return
	}
	w.logf("lapse %s", w.name(c))
	if c.request.Waits() {
		w.input()
		w.ref.lapseOf(c)
		delete(w.told, line{c.op, c.key})
		delete(w.toldTo, c)
	}
	w.k.LapseOf(c.request)
}

func (w *world) outdate() {
	w.version++
	for l, last := range w.told {
		last.changed = true
		w.told[l] = last
	}
}

func (w *world) close() {
	if w.src.choose(8, "close") != 7 {
		return
	}
	w.logf("close")
	w.input()
	err := errClosed
	if w.closed {
		err = errors.New("closed again")
	}
	w.k.Close(err)
	w.ref.close(err)
	w.closed = true
}

func (w *world) name(c *call) string {
	if c == nil {
		return "nobody"
	}
	try := ""
	if c.try {
		try = " (try)"
	}
	if c.tx != nil {
		try += " of " + c.tx.Named.String()
	}
	return fmt.Sprintf("%s#%d(%d)%s", w.rules.Operations[c.op].Name, c.arrival, c.arg, try)
}

func (w *world) nameOf(r *mailbox.Request) string {
	if r == nil {
		return "nobody"
	}
	return w.name(r.Record.(*call))
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Fatalf("%s\n\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

// finish lets everything that runs complete until nothing is left that can.
func (w *world) finish() {
	w.ref.noThread, w.misjudges = nil, false
	w.k.Free(false)
	w.ref.free(false)
	for {
		w.drain()
		w.check()
		if len(w.calls) == 0 && len(w.begun) == 0 {
			for len(w.open) > 0 {
				w.releaseOne(0)
			}
			w.check()
			w.checkCounters()
			return
		}
		switch {
		case len(w.begun) > 0:
			w.end()
		case w.k.Runs():
			w.complete()
		case len(w.open) > 0:
			w.releaseOne(0)
		case !w.closed:
			w.closed = true
			w.k.Close(errClosed)
			w.ref.close(errClosed)
		default:
			w.fatalf("%d requests are lost", len(w.calls))
		}
	}
}
