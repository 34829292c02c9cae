package kernel_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// world drives a kernel and the reference with the same inputs, compares what
// comes out, and checks what must hold whatever the reference says.
type world struct {
	mix
	t      failer
	src    choices
	rules  *kernel.Rules
	conds  []condition
	state  state
	k      *kernel.Kernel
	ref    *reference
	calls  []*call // all that have not come to an end
	ended  []*kernel.Request
	begun  []*call // the kernel knows their operation only
	stable bool    // Next has returned nil since the last input
	closed bool
	trace  []string

	version int            // starts and completions of state-changing requests
	told    map[int]told   // per operation: the last answer of its state guard
	toldTo  map[*call]told // per request: the last answer of its own guard
	counts  []int          // waiting counts when last looked at
	cursors []*walk
}

// choices decides what happens next: rapid, or the bytes of a fuzzer.
type choices interface {
	// choose returns a number from 0 to n-1.
	choose(n int, what string) int
}

type failer interface{ Fatalf(string, ...any) }

// state is the shared object: what its guards look at, changed only where a
// state-changing request starts or completes.
type state struct {
	open  []bool // per operation, for guards over the state
	level int    // for guards over arguments
	panic int    // the operation whose guard panics, or -1
}

// condition is the guard of an operation.
type condition struct {
	looks guards.Looks
	count int // the operation whose waiting count it looks at
	least int
}

// told is what a guard said when it was last asked, as the test heard it.
type told struct {
	falsePart string
	version   int
	refuted   bool // for a request that is still at the gate
}

type walk struct {
	cursor    *kernel.Cursor
	arrivals  uint64
	from      []*call // those that wait since the beginning
	visited   map[uint64]int
	undisturb bool // nothing has happened since the beginning
}

var errClosed = errors.New("closed")

// byNumber prefers operations with a greater number.
var byNumber = &kernel.Policy{Name: "greater numbers first", Before: func(a, b *kernel.Request, _ int) (bool, error) {
	return a.Op > b.Op, nil
}}

// mix says how often which input comes, and what the objects are like.
type mix struct {
	operations, arrive, next, drain, complete, withdraw, decline, begin, end, walk, silent, close int

	looks  []guards.Looks
	bounds []int // of bypasses
}

var (
	everyday = mix{
		operations: 4, arrive: 4, next: 2, drain: 2, complete: 3, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, silent: 1, close: 1,
		looks:  []guards.Looks{guards.AtState, guards.AtArgument, guards.AtWaiting, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0, 1, 2, 3},
	}
	// walking objects have queues that move slowly, under the eyes of cursors.
	walking = mix{
		operations: 2, arrive: 6, next: 3, complete: 2, withdraw: 1, begin: 1, end: 1, walk: 6,
		looks:  []guards.Looks{guards.AtWaiting},
		bounds: []int{0},
	}
	// bypassing objects have a bound that is soon reached.
	bypassing = mix{
		operations: 3, arrive: 4, next: 3, drain: 1, complete: 3, withdraw: 1, end: 1, begin: 1,
		looks:  []guards.Looks{guards.AtArgument, guards.AtArgument, guards.AtState},
		bounds: []int{1, 2},
	}
)

func newWorld(t failer, src choices, m mix) *world {
	w := &world{t: t, src: src, mix: m, told: map[int]told{}, toldTo: map[*call]told{}}
	w.rules = w.drawRules()
	w.state = state{open: make([]bool, len(w.conds)), panic: -1}
	w.counts = make([]int, len(w.conds))
	w.k = kernel.New(w.rules, w)
	w.ref = newReference(w.rules)
	w.ref.guard = func(op, arg int) (string, error) {
		return w.evaluate(op, arg, func(of int) int { return len(w.ref.waiting(of)) })
	}
	return w
}

func (w *world) drawRules() *kernel.Rules {
	n := 1 + w.src.choose(w.mix.operations, "operations")
	rules := &kernel.Rules{MaxBypass: w.mix.bounds[w.src.choose(len(w.mix.bounds), "max bypass")]}
	var names []string
	for i := range n {
		o := kernel.Operation{Name: string(rune('a' + i)), Kind: kernel.Kind(w.src.choose(3, "kind"))}
		c := condition{}
		// A function may have a guard too: nothing in the kernel depends on kinds
		// but what changes the state.
		if o.Kind == kernel.Entry || o.Kind == kernel.Function && w.src.choose(4, "guarded") == 3 {
			c = condition{
				looks: w.mix.looks[w.src.choose(len(w.mix.looks), "looks")],
				count: w.src.choose(n, "counts"),
				least: 1 + w.src.choose(3, "least"),
			}
			o.Guard, o.Looks = "guard of "+o.Name, c.looks
		}
		rules.Operations = append(rules.Operations, o)
		w.conds = append(w.conds, c)
		names = append(names, o.Name)
	}
	rules.Conflicts = guards.Exclusive(names...)
	table := w.src.choose(3, "table")
	for i := range n {
		for j := range i + 1 {
			functions := rules.Operations[i].Kind == kernel.Function && rules.Operations[j].Kind == kernel.Function
			if table == 1 && functions || table == 2 && w.src.choose(2, "compatible") == 1 {
				rules.Conflicts = rules.Conflicts.Compatible(i, j)
			}
		}
	}
	rules.Policy = []*kernel.Policy{nil, kernel.Arrival, kernel.Rotating, byNumber}[w.src.choose(4, "policy")]
	w.logf("%s conditions %+v, max bypass %d, policy %T\n%s", fmt.Sprintf("%+v", rules.Operations), w.conds, rules.MaxBypass, rules.Policy, rules.Conflicts)
	return rules
}

// evaluate is a pure function of the state, the argument and the counts.
func (w *world) evaluate(op, arg int, count func(int) int) (falsePart string, err error) {
	c := w.conds[op]
	perRequest := c.looks&guards.AtArgument != 0
	if w.state.panic == op && (!perRequest || arg == 1) {
		return "", fmt.Errorf("guard of %s panicked", w.rules.Operations[op].Name)
	}
	holds := false
	switch c.looks {
	case guards.AtState:
		holds = w.state.open[op]
	case guards.AtArgument:
		holds = arg <= w.state.level
	case guards.AtWaiting:
		holds = w.state.open[op] || count(c.count) >= c.least
	default:
		holds = count(c.count) >= arg+w.state.level
	}
	if holds {
		return "", nil
	}
	return w.rules.Operations[op].Guard, nil
}

// AskState and AskRequest are the guards as the kernel sees them.

func (w *world) AskState(op int) (string, error) {
	w.look()
	o := w.rules.Operations[op]
	if o.Guard == "" || o.Looks&guards.AtArgument != 0 {
		w.fatalf("asked %s for a guard over the state, which it has not", o.Name)
	}
	w.mayAsk(op)
	// The promise: one evaluation per reconsideration, however many wait.
	if last, ok := w.told[op]; ok && last.version == w.version && w.k.Waiting(op) > 0 {
		w.fatalf("asked the guard of %s again, though nothing has changed", o.Name)
	}
	falsePart, err := w.evaluate(op, 0, w.k.Waiting)
	w.logf("  asked %s: %q %v", o.Name, falsePart, err)
	delete(w.told, op)
	if err == nil && w.k.Waiting(op) > 0 {
		w.told[op] = told{falsePart: falsePart, version: w.version}
	}
	return falsePart, err
}

func (w *world) AskRequest(r *kernel.Request) (string, error) {
	w.look()
	c := r.Record.(*call)
	if w.rules.Operations[r.Op].Looks&guards.AtArgument == 0 {
		w.fatalf("asked %v for a guard over its argument, which it has not", w.name(c))
	}
	w.mayAsk(r.Op)
	if last, ok := w.toldTo[c]; ok && last.version == w.version {
		w.fatalf("asked %v again, though nothing has changed", w.name(c))
	}
	falsePart, err := w.evaluate(r.Op, c.arg, w.k.Waiting)
	w.logf("  asked %v: %q %v", w.name(c), falsePart, err)
	if err == nil {
		w.toldTo[c] = told{falsePart: falsePart, version: w.version}
	}
	return falsePart, err
}

// mayAsk: what a guard reads is protected by its operation's row of the table.
func (w *world) mayAsk(op int) {
	for _, running := range w.runningOps() {
		if w.rules.Conflicts.Conflict(op, running) {
			w.fatalf("asked the guard of operation %d while %d runs", op, running)
		}
	}
}

// look forgets the answers of guards over counts that have changed, and of those
// that nobody waited for in between.
func (w *world) look() {
	counts := make([]int, len(w.conds))
	for op := range counts {
		last, ok := w.told[op]
		if counts[op] = w.k.Waiting(op); counts[op] == 0 && !(last.refuted && w.k.Queued(op) > 0) {
			delete(w.told, op)
		} else if ok && counts[op] > 0 {
			last.refuted = false
			w.told[op] = last
		}
	}
	if !slices.Equal(counts, w.counts) {
		w.counts = counts
		w.recount()
	}
}

// recount marks the answers of guards over waiting counts as out of date.
func (w *world) recount() {
	for op := range w.told {
		if w.conds[op].looks&guards.AtWaiting != 0 {
			w.told[op] = told{falsePart: w.told[op].falsePart, version: -1}
		}
	}
	for c := range w.toldTo {
		if w.conds[c.op].looks&guards.AtWaiting != 0 {
			w.toldTo[c] = told{falsePart: w.toldTo[c].falsePart, version: -1}
		}
	}
}

func (w *world) runningOps() []int {
	var ops []int
	for _, b := range w.begun {
		ops = append(ops, b.op)
	}
	for r := range w.k.Running() {
		ops = append(ops, r.Op)
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

func (w *world) arrive() {
	c := &call{op: w.src.choose(len(w.conds), "operation"), arg: w.src.choose(3, "argument"), try: w.src.choose(4, "try") == 3}
	// Records are pooled: a request that is done is used again.
	if len(w.ended) > 0 && w.src.choose(2, "again") == 1 {
		c.request, w.ended = w.ended[0], w.ended[1:]
	} else {
		c.request = &kernel.Request{}
	}
	c.request.Op, c.request.Try, c.request.Record = c.op, c.try, c
	if w.join(c) {
		return
	}
	w.input()
	w.k.Arrive(c.request)
	w.ref.arrive(c)
	w.calls = append(w.calls, c)
	w.logf("arrive %s", w.name(c))
	if got := int(c.request.Arrival()); got != c.arrival {
		w.fatalf("arrival number %d, want %d", got, c.arrival)
	}
	w.refute(c)
}

// join: whoever had taken the object for this request has asked its guard, and
// leaves it to wait without asking for the next one.
func (w *world) join(c *call) bool {
	if c.try || w.k.Runs() || !w.stable || w.rules.Operations[c.op].Guard == "" || w.src.choose(2, "joins") == 0 {
		return false
	}
	falsePart, err := w.evaluate(c.op, c.arg, w.k.Waiting)
	if falsePart == "" || err != nil {
		return false
	}
	joined := w.k.Join(c.request, falsePart)
	watchful := slices.ContainsFunc(w.conds, func(c condition) bool { return c.looks&guards.AtWaiting != 0 })
	want := !watchful && !w.closed && len(w.ref.gate) == 0 && len(w.ref.failed) == 0
	if joined != want {
		w.fatalf("operation %d joins: %v, want %v", c.op, joined, want)
	}
	if !joined {
		return false
	}
	w.calls = append(w.calls, c)
	for _, x := range w.cursors {
		x.undisturb = false
	}
	w.ref.arrive(c)
	w.logf("join %s", w.name(c))
	if r, err := w.ref.next(); r != nil {
		w.fatalf("%s joined, though %s is to come out (%v)", w.name(c), w.name(r), err)
	}
	w.hear(c, told{falsePart: falsePart, version: w.version})
	return true
}

func (w *world) hear(c *call, said told) {
	if w.conds[c.op].looks&guards.AtArgument != 0 {
		w.toldTo[c] = said
	} else {
		w.told[c.op] = said
	}
}

// refute: whoever had taken the object for this request has asked its guard.
func (w *world) refute(c *call) {
	if c.try || w.k.Runs() || w.rules.Operations[c.op].Guard == "" || w.src.choose(2, "refuted") == 0 {
		return
	}
	falsePart, err := w.evaluate(c.op, c.arg, w.k.Waiting)
	if falsePart == "" || err != nil {
		return
	}
	w.logf("  refuted")
	w.k.Refuted(c.request, falsePart)
	w.ref.refuted(c)
	w.hear(c, told{falsePart: falsePart, version: w.version, refuted: true})
}

func (w *world) input() {
	w.stable = false
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
	before := w.waiting()
	r, err := w.k.Next()
	w.look()
	for _, x := range w.cursors {
		x.undisturb = false
	}
	want, wantErr := w.ref.next()
	switch {
	case r == nil && err != nil:
		w.fatalf("an error %v for no request", err)
	case r == nil && want == nil:
		w.logf("  none")
		w.stable = true
		return true
	case r == nil || want == nil || r != want.request:
		w.fatalf("next is %s, %v; the reference says %s, %v", w.nameOf(r), err, w.name(want), wantErr)
	case fmt.Sprint(err) != fmt.Sprint(wantErr):
		w.fatalf("%s: error %v; the reference says %v", w.nameOf(r), err, wantErr)
	}
	if !slices.Contains(w.calls, want) {
		w.fatalf("%s came out again", w.name(want))
	}
	if err != nil {
		w.logf("  fails %s: %v", w.name(want), err)
		if r.State() != kernel.Done {
			w.fatalf("%s failed and is in state %d", w.name(want), r.State())
		}
		w.over(want)
		return false
	}
	w.logf("  starts %s", w.name(want))
	w.recount() // it may have come inside and left at once
	w.checkStart(want, before)
	w.changed(want.op)
	w.body(want)
	return false
}

// waiting returns the calls that wait now.
func (w *world) waiting() (all []*call) {
	for _, c := range w.calls {
		if s := c.request.State(); s == kernel.AtGate || s == kernel.Inside {
			all = append(all, c)
		}
	}
	return all
}

// checkStart checks the start of c against the rules of order, by the truth of
// the guards and not by what the kernel knows of it.
func (w *world) checkStart(c *call, before []*call) {
	if !slices.Contains(before, c) {
		w.fatalf("%s started but did not wait", w.name(c))
	}
	for op, running := range w.runningOps() {
		for _, other := range w.runningOps()[:op] {
			if w.rules.Conflicts.Conflict(running, other) {
				w.fatalf("operations %d and %d run together", running, other)
			}
		}
	}
	count := func(op int) int {
		n := w.k.Waiting(op)
		if op == c.op && !c.try {
			n++ // it waited until now, and counted itself
		}
		return n
	}
	if w.hasFailed() {
		return // the counts have changed since the choice was made
	}
	if falsePart, err := w.evaluate(c.op, c.arg, count); w.rules.Operations[c.op].Guard != "" && (falsePart != "" || err != nil) {
		w.fatalf("%s started, though its guard is false", w.name(c))
	}
	for _, e := range before {
		state := e.request.State()
		if state != kernel.AtGate && state != kernel.Inside || e.arrival > c.arrival {
			continue
		}
		if e.op == c.op && !e.try && !c.try && w.conds[e.op].looks&guards.AtArgument == 0 {
			w.fatalf("%s started before %s", w.name(c), w.name(e))
		}
		if !w.rules.Conflicts.Conflict(e.op, c.op) {
			continue
		}
		falsePart, err := "", error(nil)
		if w.rules.Operations[e.op].Guard != "" {
			falsePart, err = w.evaluate(e.op, e.arg, count)
		}
		if state == kernel.AtGate && (falsePart == "" || w.conds[e.op].looks != guards.AtState) {
			w.fatalf("%s passed %s, which waits at the gate and conflicts with it", w.name(c), w.name(e))
		}
		if falsePart != "" || err != nil {
			continue
		}
		byArrival := w.rules.Policy == nil || w.rules.Policy == kernel.Arrival
		if byArrival && w.rules.MaxBypass == 0 {
			w.fatalf("%s passed %s, which is open and conflicts with it", w.name(c), w.name(e))
		}
		if e.passed++; w.rules.MaxBypass > 0 && e.passed > w.rules.MaxBypass {
			w.fatalf("%s is the %d. to bypass %s", w.name(c), e.passed, w.name(e))
		}
	}
}

func (w *world) hasFailed() bool {
	return slices.ContainsFunc(w.calls, func(c *call) bool { return c.request.State() == kernel.Failed })
}

// changed notes the start or completion of a request.
func (w *world) changed(op int) {
	if w.rules.Operations[op].Kind != kernel.Function {
		w.version++
	}
}

// body may change the state, as a body does between its start and its end.
func (w *world) body(c *call) {
	if w.rules.Operations[c.op].Kind != kernel.Function && w.src.choose(2, "changes") == 1 {
		c.begun = true
		w.newState()
	}
}

func (w *world) newState() {
	switch w.src.choose(5, "what changes") {
	case 0:
		for op := range w.state.open {
			w.state.open[op] = w.src.choose(2, "open") == 1
		}
	case 1, 2:
		op := w.src.choose(len(w.conds), "toggles")
		w.state.open[op] = !w.state.open[op]
	case 3:
		w.state.level = w.src.choose(4, "level")
	case 4:
		w.state.panic = w.src.choose(len(w.conds)+3, "panics")
	}
	w.logf("  state %+v", w.state)
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
	c := w.one(func(c *call) bool { return c.request.State() == kernel.Running })
	if c == nil {
		return
	}
	w.logf("complete %s", w.name(c))
	w.input()
	w.body(c)
	w.k.Complete(c.request)
	w.ref.complete(c)
	w.changed(c.op)
	w.over(c)
}

func (w *world) decline() {
	c := w.one(func(c *call) bool { return c.request.State() == kernel.Running && !c.begun })
	if c == nil {
		return
	}
	w.logf("decline %s", w.name(c))
	w.input()
	w.k.Decline(c.request)
	w.ref.complete(c)
	w.changed(c.op)
	w.over(c)
}

func (w *world) withdraw() {
	c := w.one(func(*call) bool { return true })
	if c == nil {
		return
	}
	waits := c.request.State() == kernel.AtGate || c.request.State() == kernel.Inside
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
	for _, running := range w.runningOps() {
		if w.rules.Conflicts.Conflict(op, running) {
			return
		}
	}
	w.logf("begin %d", op)
	w.input()
	b := &call{op: op}
	w.begun = append(w.begun, b)
	w.k.Begin(op)
	w.ref.begin(op)
	w.changed(op)
	w.body(b)
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
	w.logf("end %d", b.op)
	w.body(b)
	w.k.End(b.op, nil)
	w.ref.end(b.op)
	w.changed(b.op)
	w.answer()
}

// answer: whoever ran has asked the plain guards that are waited for, in
// ascending order up to the first that holds.
func (w *world) answer() {
	if w.k.Runs() || w.src.choose(2, "answered") == 0 {
		return
	}
	var asked uint64
	var falseOps []int
	for op, c := range w.conds {
		if w.rules.Operations[op].Guard == "" || c.looks != guards.AtState || w.k.Waiting(op) == 0 {
			continue
		}
		asked |= 1 << op
		falsePart, err := w.evaluate(op, 0, nil)
		if err != nil {
			return
		}
		if falsePart != "" {
			falseOps = append(falseOps, op)
			continue
		}
		w.logf("  answered: %v are closed, %d is open", falseOps, op)
		w.k.Answered(asked, op)
		w.ref.answered(falseOps, op)
		for _, op := range falseOps {
			w.told[op] = told{falsePart: w.rules.Operations[op].Guard, version: w.version}
		}
		w.told[op] = told{version: w.version}
		return
	}
}

// silent changes the state without a word to the kernel, as its user's fast path
// may while nothing runs and only guards are waited for that stay closed.
func (w *world) silent() {
	if w.k.Runs() || !w.stable {
		return
	}
	before := w.state
	before.open = slices.Clone(before.open)
	w.logf("silent change")
	w.newState()
	for _, c := range w.waiting() {
		falsePart, err := w.evaluate(c.op, c.arg, w.k.Waiting)
		if c.request.State() != kernel.Inside || w.conds[c.op].looks != guards.AtState || falsePart == "" || err != nil {
			w.logf("  but no: %s", w.name(c))
			w.state = before
			return
		}
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

// walk opens a cursor, or moves one on.
func (w *world) walk() {
	if len(w.cursors) < 2 && w.src.choose(2, "inspect") == 0 {
		w.logf("inspect")
		w.cursors = append(w.cursors, &walk{
			cursor: w.k.Inspect(), arrivals: uint64(w.ref.arrivals), from: w.waiting(),
			visited: map[uint64]int{}, undisturb: true,
		})
		return
	}
	if len(w.cursors) == 0 {
		return
	}
	i := w.src.choose(len(w.cursors), "cursor")
	x, n, visits := w.cursors[i], 1+w.src.choose(4, "visits"), 0
	w.logf("cursor %d: %d more", i, n)
	more := x.cursor.Next(n, func(r *kernel.Request, position int, why kernel.Reason) {
		visits++
		c := r.Record.(*call)
		w.logf("  visits %s at %d: %+v", w.name(c), position, why)
		if s := r.State(); s != kernel.AtGate && s != kernel.Inside {
			w.fatalf("the cursor visits %s, which does not wait", w.name(c))
		}
		if x.visited[r.Arrival()]++; x.visited[r.Arrival()] > 1 {
			w.fatalf("the cursor visits %s twice", w.name(c))
		}
		if r.Arrival() > x.arrivals {
			w.fatalf("the cursor visits %s, which arrived after the walk began", w.name(c))
		}
		if x.undisturb {
			same := func(o *call) bool {
				return o.op == c.op && o.request.State() == r.State() && o.arrival <= c.arrival
			}
			if want := len(filter(w.calls, same)); position != want {
				w.fatalf("%s is at position %d, the cursor says %d", w.name(c), want, position)
			}
		}
	})
	if visits > n {
		w.fatalf("asked for %d visits, got %d", n, visits)
	}
	if more {
		return
	}
	for _, c := range x.from {
		if slices.Contains(w.waiting(), c) && x.visited[uint64(c.arrival)] != 1 {
			w.fatalf("the cursor never visited %s, which waited all the time", w.name(c))
		}
	}
	x.cursor.Close()
	w.cursors = slices.Delete(w.cursors, i, i+1)
}

func filter(calls []*call, ok func(*call) bool) (some []*call) {
	for _, c := range calls {
		if ok(c) {
			some = append(some, c)
		}
	}
	return some
}

// check compares all that can be seen from outside with the reference.
func (w *world) check() {
	for _, c := range w.calls {
		want := kernel.Failed
		switch {
		case slices.Contains(w.ref.gate, c):
			want = kernel.AtGate
		case slices.Contains(w.ref.inside, c):
			want = kernel.Inside
		case slices.Contains(w.ref.running, c):
			want = kernel.Running
		}
		if got := c.request.State(); got != want {
			w.fatalf("%s is in state %d; the reference says %d", w.name(c), got, want)
		}
	}
	running := []*call{}
	for r := range w.k.Running() {
		running = append(running, r.Record.(*call))
	}
	if !slices.Equal(running, w.ref.running) {
		w.fatalf("%d run; the reference says %d", len(running), len(w.ref.running))
	}
	unseen := make([]int, len(w.conds))
	for op, n := range w.k.Unseen() {
		unseen[op] += n
	}
	for op, n := range unseen {
		if want := len(filter(w.begun, func(b *call) bool { return b.op == op })); n != want {
			w.fatalf("%d unseen of operation %d run, want %d", n, op, want)
		}
	}
	for op := range w.conds {
		inside := len(w.ref.waiting(op))
		queued := inside + len(filter(w.ref.gate, func(c *call) bool { return c.op == op }))
		if w.k.Waiting(op) != inside || w.k.Queued(op) != queued {
			w.fatalf("operation %d: waiting %d, queued %d; want %d, %d", op, w.k.Waiting(op), w.k.Queued(op), inside, queued)
		}
		if w.k.Inside().Has(op) != (inside > 0) {
			w.fatalf("operation %d: inside %v with %d waiting", op, w.k.Inside().Has(op), inside)
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
	for _, c := range w.waiting() {
		w.checkWhy(c)
		if got, want := w.k.Bypassed(c.request), min(c.bypassed, w.rules.MaxBypass); got != want {
			w.fatalf("%s has been bypassed %d times, the kernel says %d", w.name(c), want, got)
		}
	}
}

// checkWhy checks the reason that the kernel gives for the wait of c.
func (w *world) checkWhy(c *call) {
	why := w.k.Why(c.request)
	wrong := func(what string) { w.fatalf("why does %s wait? %+v: %s", w.name(c), why, what) }

	var conflicts []string
	for op, o := range w.rules.Operations {
		if slices.Contains(w.runningOps(), op) && w.rules.Conflicts.Conflict(op, c.op) {
			conflicts = append(conflicts, o.Name)
		}
	}
	if !slices.Equal(why.Conflicts, conflicts) || (why.Cause == kernel.Conflict) != (conflicts != nil) {
		wrong(fmt.Sprintf("it conflicts with %v", conflicts))
	}

	last, asked := w.told[c.op]
	if w.conds[c.op].looks&guards.AtArgument != 0 {
		last, asked = w.toldTo[c]
	}
	inside := c.request.State() == kernel.Inside
	if inside && asked && why.Guard != last.falsePart || !(inside && asked) && why.Guard != "" {
		wrong(fmt.Sprintf("the guard's last answer was %q", last.falsePart))
	}
	if (why.Step != 0) != (why.Guard != "") || why.Step > w.k.Step() {
		wrong(fmt.Sprintf("the step is %d", w.k.Step()))
	}
	known := inside && w.ref.isKnownFalse(c)
	if (why.Cause == kernel.GuardFalse) != (known && conflicts == nil) {
		wrong(fmt.Sprintf("its guard is known to be false: %v", known))
	}
	if why.Cause == kernel.GuardFalse {
		if falsePart, err := w.evaluate(c.op, c.arg, w.k.Waiting); falsePart != why.Guard || err != nil {
			wrong("the guard holds by now")
		}
	}

	if (why.Cause == kernel.Order) != (why.Behind != "") {
		wrong("order and what it is behind go together")
	}
	if why.Cause == kernel.Order && !slices.ContainsFunc(w.waiting(), func(first *call) bool {
		if first == c || w.rules.Operations[first.op].Name != why.Behind || !w.rules.Conflicts.Conflict(first.op, c.op) {
			return false
		}
		if first.request.State() == kernel.AtGate {
			return first.arrival < c.arrival
		}
		return !w.ref.isKnownFalse(first) && (!inside || w.ref.before(first, c) < 0)
	}) {
		wrong("nothing of that kind waits, conflicts with it and comes first")
	}
	if why.Cause == kernel.NoThread && w.stable {
		wrong("nothing can start")
	}
	if why.Cause == kernel.Conflict && !inside && why.Guard != "" {
		wrong("a guard is not asked for those at the gate")
	}
}

func (w *world) name(c *call) string {
	if c == nil {
		return "nobody"
	}
	try := ""
	if c.try {
		try = " (try)"
	}
	return fmt.Sprintf("%s#%d(%d)%s", w.rules.Operations[c.op].Name, c.arrival, c.arg, try)
}

func (w *world) nameOf(r *kernel.Request) string {
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
	for {
		w.drain()
		w.check()
		if len(w.calls) == 0 && len(w.begun) == 0 {
			return
		}
		switch {
		case len(w.begun) > 0:
			w.end()
		case w.k.Runs():
			w.complete()
		case !w.closed:
			w.closed = true
			w.k.Close(errClosed)
			w.ref.close(errClosed)
		default:
			w.fatalf("%d requests are lost", len(w.calls))
		}
	}
}
