package mailbox_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// keys is how many keys a family has here.
const keys = 3

// state is the shared object: what its guards look at, changed only where a
// state-changing request starts or completes.
type state struct {
	open  []bool           // per operation, for guards over the state
	level int              // for guards over arguments
	panic int              // the operation whose guard panics, or -1
	keys  [][keys]keyState // per family
}

type keyState int

const (
	closedKey keyState = iota
	openKey
	panicKey
)

func (s state) clone() state {
	s.open, s.keys = slices.Clone(s.open), slices.Clone(s.keys)
	return s
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
	changed   bool // since, by an operation that can open all keys of the family
}

var (
	errClosed   = errors.New("closed")
	errMisjudge = errors.New("the policy panicked")
)

// byNumber prefers operations with a greater number.
var byNumber = &mailbox.Policy{Name: "greater numbers first", Before: func(a, b *mailbox.Request, _ int) (bool, error) {
	return a.Op > b.Op, nil
}}

// drawOrder chooses a policy. Those of a user fail while w.misjudges.
func (w *world) drawOrder() order {
	fail := func() error {
		if w.misjudges {
			return errMisjudge
		}
		return nil
	}
	greater := func(a, b *call, _ int) bool { return a.op > b.op }
	all := []order{
		{},
		{policy: mailbox.Arrival},
		{policy: mailbox.Rotating, first: func(a, b *call, last int) bool {
			if (a.op > last) != (b.op > last) {
				return a.op > last
			}
			return a.op < b.op
		}},
		{policy: byNumber, first: greater},
		{policy: mailbox.LIFO, first: func(a, b *call, _ int) bool { return a.arrival > b.arrival }},
		{policy: mailbox.Ranked, first: func(a, b *call, _ int) bool { return a.rank < b.rank }},
		{policy: &mailbox.Policy{Name: "large arguments first", Within: true, Fallible: true, Before: func(a, b *mailbox.Request, _ int) (bool, error) {
			return a.Record.(*call).arg > b.Record.(*call).arg, fail()
		}}, first: func(a, b *call, _ int) bool { return a.arg > b.arg }},
		{policy: &mailbox.Policy{Name: "fallible", Fallible: true, Before: func(a, b *mailbox.Request, _ int) (bool, error) {
			return a.Op > b.Op, fail()
		}}, first: greater},
		{policy: &mailbox.Policy{Name: "whim", Fallible: true, Choose: w.choose}},
	}
	if w.mix.policies != nil {
		return all[w.mix.policies[w.src.choose(len(w.mix.policies), "policy")]]
	}
	return all[w.src.choose(len(all), "policy")]
}

// choose is the policy of a user who picks among those that may start.
func (w *world) choose(eligible []*mailbox.Request) (int, error) {
	sum := w.whim
	for i, r := range eligible {
		if sum += int(r.Arrival()); slices.Contains(eligible[:i], r) {
			w.fatalf("%s is offered twice", w.nameOf(r))
		}
	}
	switch {
	case w.misjudges && w.whim%2 == 0:
		return 0, errMisjudge
	case w.misjudges:
		return len(eligible), nil
	}
	return sum % len(eligible), nil
}

func (w *world) drawRules() {
	n := 1 + w.src.choose(w.mix.operations, "operations")
	rules := &mailbox.Rules{MaxBypass: w.mix.bounds[w.src.choose(len(w.mix.bounds), "max bypass")]}
	w.rules = rules
	if !w.mix.plain {
		rules.CountBypass = w.src.choose(3, "count bypass")
	}
	rules.AllCompatible = w.src.choose(4, "all compatible") >= 4-w.mix.all
	var names []string
	var families []int
	for i := range n {
		o := mailbox.Operation{Name: string(rune('a' + i)), Kind: mailbox.Kind(w.src.choose(3, "kind"))}
		c := condition{}
		// A function may have a guard too: nothing in the scheduler depends on kinds
		// but what changes the state.
		if o.Kind == mailbox.Entry || o.Kind == mailbox.Function && w.src.choose(4, "guarded") == 3 {
			c = condition{
				looks: w.mix.looks[w.src.choose(len(w.mix.looks), "looks")],
				count: w.src.choose(n, "counts"),
				least: 1 + w.src.choose(3, "least"),
			}
			o.Guard, o.Looks = "guard of "+o.Name, c.looks
			if c.looks&guards.AtArgument != 0 {
				switch shape := w.src.choose(w.mix.families, "shape"); {
				case shape == 1:
					o.HeadOfLine = true
				case shape > 1:
					o.Family = true
					families = append(families, i)
				}
				o.Resumes = i > 0 && w.mix.resumes > 0 && !o.HeadOfLine && w.src.choose(4, "resumes") >= 4-w.mix.resumes
			}
		}
		o.Bound = w.drawBound()
		rules.Operations = append(rules.Operations, o)
		w.conds = append(w.conds, c)
		names = append(names, o.Name)
	}
	rules.Bound = w.drawBound()
	for i := range rules.Operations {
		for _, family := range families {
			if rules.Operations[i].Kind != mailbox.Function && w.src.choose(2, "declares") == 1 {
				rules.Operations[i].Opens = append(rules.Operations[i].Opens, family)
			}
		}
	}
	rules.Check = len(families) > 0 && (w.mix.undeclared > 0 || w.src.choose(4, "check") == 3)
	rules.Conflicts = guards.NewExclusive(names...)
	table := w.src.choose(3, "table")
	for i := range n {
		for j := range i + 1 {
			functions := rules.Operations[i].Kind == mailbox.Function && rules.Operations[j].Kind == mailbox.Function
			if table == 1 && functions || table == 2 && w.src.choose(2, "compatible") == 1 {
				rules.Conflicts = rules.Conflicts.Allow(i, j)
			}
		}
	}
	w.drawScopes(names)
	w.drawTransactions()
	w.order = w.drawOrder()
	rules.Policy = w.order.policy
	name := "none"
	if rules.Policy != nil {
		name = rules.Policy.Name
	}
	w.logf("%+v conditions %+v, all compatible %v, max bypass %d, counted %d, policy %s, bound %+v, check %v\n%s",
		rules.Operations, w.conds, rules.AllCompatible, rules.MaxBypass, rules.CountBypass, name, rules.Bound, rules.Check, rules.Conflicts)
}

// drawScopes narrows conflicts by what requests take up, and allows for calls from inside.
func (w *world) drawScopes(names []string) {
	if w.src.choose(4, "scopes") < 4-w.mix.scopes {
		return
	}
	t := &w.rules.Conflicts
	w.rules.Reentrant = w.src.choose(4, "reentrant") == 3
	for range w.src.choose(3, "scopes") {
		var members []int
		for op := range names {
			if w.src.choose(2, "in scope") == 1 {
				members = append(members, op)
			}
		}
		var ks []guards.KeyOf
		var is []guards.IntervalOf
		var ps []guards.PairOf
		for i, op := range members {
			name := guards.Name(names[op])
			ks = append(ks, guards.Key(name, func(c *call) int { return c.key }))
			is = append(is, guards.Interval(name, func(c *call) (int, int) { return c.key, c.key + c.arg }))
			other := guards.Name(names[members[w.src.choose(i+1, "pair")]])
			ps = append(ps, guards.Pair(name, other, func(a, b *call) bool { return (2*a.arg+b.arg)%3 == 1 }))
		}
		switch w.src.choose(3, "scope") {
		case 0:
			*t = t.EqualKeys(ks...)
		case 1:
			*t = t.Overlapping(is...)
		case 2:
			*t = t.OnlyIf(ps...)
		}
	}
	if err := t.Err(); err != nil {
		w.fatalf("the table is wrong: %v", err)
	}
}

// claim returns what c takes up of the scopes.
func (w *world) claim(c *call) *mailbox.Claim {
	if !w.rules.Scoped(c.op) {
		return nil
	}
	if !w.rules.Reentrant && !w.rules.Conflicts.Narrowed(c.op) && c.tx == nil {
		return nil // as the scheduler's user does
	}
	claim := &mailbox.Claim{Transaction: c.tx}
	for _, s := range w.rules.Conflicts.Scopes() {
		e, err := s.Extent(c.op, c)
		if err != nil {
			w.fatalf("extent: %v", err)
		}
		claim.Extents = append(claim.Extents, e)
	}
	claim.Outer = c.outer
	return claim
}

// calledInside draws the requests that c is called from inside of.
func (w *world) calledInside(tx *mailbox.Transaction) (outer []*mailbox.Claim) {
	if !w.rules.Reentrant {
		return nil
	}
	for _, r := range w.ref.running {
		if r.tx == tx && w.src.choose(4, "outer") == 3 {
			outer = append(outer, r.turn)
		}
	}
	return outer
}

// Clash is the predicate of a scope.
func (w *world) Clash(scope int, a, b *mailbox.Request) (bool, error) {
	s := w.rules.Conflicts.Scopes()[scope]
	return s.Predicate(a.Op, a.Record, b.Record), nil
}

// drawBound draws no bound more often than not.
func (w *world) drawBound() mailbox.Bound {
	if w.mix.bounded == 0 || w.src.choose(4, "bounded") >= w.mix.bounded {
		return mailbox.Bound{}
	}
	return mailbox.Bound{Max: w.src.choose(4, "max"), Overflow: mailbox.Overflow(1 + w.src.choose(3, "overflow"))}
}

// own: the guard is asked about one request for itself.
func (w *world) own(op int) bool {
	return w.conds[op].looks&guards.AtArgument != 0 && !w.rules.Operations[op].Family
}

// kept: some operation declares which keys of the family it opens.
func (w *world) kept(family int) bool {
	return w.rules.Operations[family].Family && w.conds[family].looks&guards.AtWaiting == 0 &&
		slices.ContainsFunc(w.rules.Operations, func(o mailbox.Operation) bool { return slices.Contains(o.Opens, family) })
}

// evaluate is a pure function of the state, the request and the counts.
func (w *world) evaluate(c *call, count func(int) int) (falsePart string, err error) {
	cond, o := w.conds[c.op], &w.rules.Operations[c.op]
	key := closedKey
	if o.Family {
		key = w.state.keys[c.op][c.key]
	}
	if key == panicKey || !o.Family && w.state.panic == c.op && (!w.own(c.op) || c.arg == 1) {
		return "", fmt.Errorf("guard of %s panicked", o.Name)
	}
	holds := false
	switch {
	case o.Family:
		holds = key == openKey || cond.looks&guards.AtWaiting != 0 && count(cond.count) >= cond.least
	case cond.looks == guards.AtState:
		holds = w.state.open[c.op]
	case cond.looks == guards.AtArgument:
		holds = c.arg <= w.state.level
	case cond.looks == guards.AtWaiting:
		holds = w.state.open[c.op] || count(cond.count) >= cond.least
	default:
		holds = count(cond.count) >= c.arg+w.state.level
	}
	if holds {
		return "", nil
	}
	return o.Guard, nil
}

// AskState and AskRequest are the guards as the scheduler sees them.

func (w *world) AskState(op int) (string, error) {
	w.look()
	o, l := w.rules.Operations[op], line{op, 0}
	if o.Guard == "" || o.Looks&guards.AtArgument != 0 {
		w.fatalf("asked %s for a guard over the state, which it has not", o.Name)
	}
	w.mayAsk(op, nil)
	w.asked[op]++
	// The promise: one evaluation per reconsideration, however many wait.
	if last, ok := w.told[l]; ok && !last.refuted && last.version == w.version && w.k.Waiting(op) > 0 && w.precise(op) {
		w.fatalf("asked the guard of %s again, though nothing has changed", o.Name)
	}
	falsePart, err := w.evaluate(&call{op: op}, w.k.Waiting)
	w.logf("  asked %s: %q %v", o.Name, falsePart, err)
	delete(w.told, l)
	if err == nil && w.k.Waiting(op) > 0 {
		w.told[l] = told{falsePart: falsePart, version: w.version}
	}
	return falsePart, err
}

func (w *world) AskRequest(r *mailbox.Request) (string, error) {
	w.look()
	c := r.Record.(*call)
	if w.rules.Operations[r.Op].Looks&guards.AtArgument == 0 {
		w.fatalf("asked %v for a guard over its argument, which it has not", w.name(c))
	}
	w.mayAsk(r.Op, c)
	falsePart, err := w.evaluate(c, w.k.Waiting)
	w.logf("  asked %v: %q %v", w.name(c), falsePart, err)
	if l := (line{c.op, c.key}); w.rules.Operations[r.Op].Family && w.k.WaitingAt(r.Op, c.key) > 0 {
		last, ok := w.told[l]
		standing := ok && last.falsePart != "" && !last.changed && w.kept(r.Op)
		switch {
		case w.rules.Check && standing && !(w.precise(r.Op) && last.version == w.version):
			return falsePart, err // to check the declarations; the answer is not kept
		case standing:
			w.fatalf("asked key %d of %s again, though nobody can have opened it", c.key, w.rules.Operations[r.Op].Name)
		case ok && last.version == w.version && w.precise(r.Op):
			w.fatalf("asked key %d of %s again, though nothing has changed", c.key, w.rules.Operations[r.Op].Name)
		}
		delete(w.told, l)
		if err == nil {
			w.told[l] = told{falsePart: falsePart, version: w.version}
		}
	} else {
		if last, ok := w.toldTo[c]; ok && last.version == w.version && w.precise(r.Op) {
			w.fatalf("asked %v again, though nothing has changed", w.name(c))
		}
		if err == nil {
			w.toldTo[c] = told{falsePart: falsePart, version: w.version}
		}
	}
	w.asked[r.Op]++
	return falsePart, err
}

// precise: the test sees all that makes the scheduler ask again, or forget an answer.
// It does not see somebody come in and fail, or go to the door and back, within
// one call of Next.
func (w *world) precise(op int) bool {
	return w.mix.bounded == 0 && (w.conds[op].looks&guards.AtWaiting == 0 || w.mix.policy == 0)
}

// Opens tells which keys the body of a request can have opened.
func (w *world) Opens(r *mailbox.Request, family int, open func(any)) {
	w.opened(r.Record.(*call), family, open)
}

func (w *world) opened(c *call, family int, open func(any)) {
	if !slices.Contains(w.rules.Operations[c.op].Opens, family) {
		w.fatalf("%s is asked for what it opens of %d, which it does not declare", w.name(c), family)
	}
	for _, key := range c.opens[family] {
		if open(key); w.kept(family) {
			delete(w.told, line{family, key})
		}
	}
}

// mayAsk: what a guard reads is protected by its operation's row of the table.
func (w *world) mayAsk(op int, c *call) {
	if w.ref.held {
		w.fatalf("asked the guard of operation %d, though the object is held", op)
	}
	if w.rules.Transactional && w.rules.Check && w.kept(op) {
		return // declarations are checked by the table alone
	}
	if w.rules.Scoped(op) {
		barred := func(c *call) bool { return c.op == op && w.impeded(c) }
		if c != nil && barred(c) || c == nil && !slices.ContainsFunc(w.waiting(), func(c *call) bool { return c.op == op && !barred(c) }) {
			w.fatalf("asked the guard of operation %d while something runs that conflicts with those who wait", op)
		}
		return
	}
	for _, running := range w.runningOps() {
		if w.rules.Conflicts.Between(op, running) {
			w.fatalf("asked the guard of operation %d while %d runs", op, running)
		}
	}
}

// impeded: something runs that conflicts with the request.
func (w *world) impeded(c *call) bool {
	return w.ref.barredByBegun(c) || w.ref.barredByRetained(c) ||
		slices.ContainsFunc(w.calls, func(r *call) bool {
			return r != c && r.request.State() == mailbox.StateRunning && w.ref.clash(c, r) && !w.ref.around(r, c)
		})
}

// look forgets the answers of guards over counts that have changed, and of those
// that nobody waited for in between.
func (w *world) look() {
	counts := make([]int, len(w.conds))
	for op := range counts {
		counts[op] = w.k.Waiting(op)
	}
	for l, last := range w.told {
		n := counts[l.op]
		if w.rules.Operations[l.op].Family {
			n = w.k.WaitingAt(l.op, l.key)
		}
		if n == 0 && (w.rules.Operations[l.op].Family || !w.atGate(l.op)) {
			delete(w.told, l)
		} else if n > 0 {
			last.refuted = false
			w.told[l] = last
		}
	}
	if !slices.Equal(counts, w.counts) {
		w.counts = counts
		w.recount()
	}
}

// recount marks the answers of guards over waiting counts as out of date.
func (w *world) recount() {
	for l, last := range w.told {
		if w.conds[l.op].looks&guards.AtWaiting != 0 {
			last.version = -1
			w.told[l] = last
		}
	}
	for c, last := range w.toldTo {
		if w.conds[c.op].looks&guards.AtWaiting != 0 {
			last.version = -1
			w.toldTo[c] = last
		}
	}
}

// body may change the state, as a body does between its start and its end. What
// an operation declares to open it opens at its end.
func (w *world) body(c *call, ends bool) {
	if w.rules.Operations[c.op].Kind == mailbox.Function || w.src.choose(2, "changes") == 0 {
		return
	}
	c.begun = true
	before := w.state.clone()
	w.newState()
	if w.lies() && w.src.choose(4, "undeclared") < w.mix.undeclared {
		w.logf("  state %+v, whatever is declared", w.state)
		return
	}
	for family := range w.state.keys {
		if !w.kept(family) || !slices.Contains(w.rules.Operations[c.op].Opens, family) {
			continue
		}
		for key, now := range w.state.keys[family] {
			if was := before.keys[family][key]; was == closedKey && now != was && !(ends && slices.Contains(c.opens[family], key)) {
				w.state.keys[family][key] = was
			}
		}
	}
	w.logf("  state %+v", w.state)
}

// lies: some open what they do not declare, and that is checked.
func (w *world) lies() bool { return w.rules.Check && w.mix.undeclared > 0 }

// declares draws the keys that c can open.
func (w *world) declares(c *call) {
	c.opens = map[int][]int{}
	for _, family := range w.rules.Operations[c.op].Opens {
		for key := range keys {
			if w.src.choose(2, "opens") == 1 {
				c.opens[family] = append(c.opens[family], key)
			}
		}
	}
}

func (w *world) newState() {
	switch w.src.choose(6, "what changes") {
	case 0:
		for op := range w.state.open {
			w.state.open[op] = w.src.choose(2, "open") == 1
		}
	case 1:
		op := w.src.choose(len(w.conds), "toggles")
		w.state.open[op] = !w.state.open[op]
	case 2, 3:
		op, any := w.src.choose(len(w.conds), "family"), false
		for i := range w.conds { // the next that is one
			if f := (op + i) % len(w.conds); w.rules.Operations[f].Family {
				op, any = f, true
				break
			}
		}
		if !any {
			w.state.open[op] = !w.state.open[op]
		}
		for key := range keys {
			if n := w.src.choose(12, "key"); n < 11 {
				w.state.keys[op][key] = keyState(n & 1)
			} else {
				w.state.keys[op][key] = panicKey
			}
		}
	case 4:
		w.state.level = w.src.choose(4, "level")
	case 5:
		w.state.panic = w.src.choose(len(w.conds)+3, "panics")
	}
}

// atGate reports whether anybody waits at the gate for the operation.
func (w *world) atGate(op int) bool {
	return slices.ContainsFunc(w.calls, func(c *call) bool { return c.op == op && c.request.State() == mailbox.StateEntry })
}
