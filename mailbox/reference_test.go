package mailbox_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// reference restates the rules of the scheduler with plain lists. It remembers no
// answer of a guard, only whether one is known to be false, and asks afresh
// whenever it considers a request.
type reference struct {
	rules *mailbox.Rules
	order order
	// guard evaluates the guard that c waits for.
	guard func(c *call) (falsePart string, err error)
	// misjudges says why the policy fails at present, or nil.
	misjudges func() error

	arrivals int
	newest   uint64
	entered  uint64
	older    uint64 // what is requeued comes after this, where a policy compares
	latest   map[line]uint64
	joined   map[int]uint64 // how many have come inside, per operation
	door     []*call        // all in order of arrival
	gate     []*call
	inside   []*call
	running  []*call // in order of start
	retained []*call // whose bodies have ended
	begun    []int   // operations announced by begin
	failed   []*call // in order of failure
	retries  []*call // requeued, and tries
	extras   []*call // requeued beyond a bound, until nothing more can start
	loose    []line  // lines of families whose first has left

	overflowed bool          // the last start has left somebody waiting for whom there is no room
	knownFalse map[line]int  // guards that are shared, said false, and nothing changed since: the version they said it of
	version    int           // starts and ends of what changes the state
	checks     []declaration // to be checked, in the order in which the operations have ended
	last       int           // the operation that started last
	settled    bool          // nothing that waits can start before the next input
	noThread   map[int]bool  // operations for which no thread is there
	closed     error
	released   map[*mailbox.Transaction]bool
	held       bool // nothing may start
	counts     []mailbox.Stats
}

// order is a policy, and how the reference understands it.
type order struct {
	policy *mailbox.Policy
	first  func(a, b *call, last int) bool // nil means arrival
}

// line is an operation, or one key of a family.
type line struct{ op, key int }

// declaration is an operation, and a family of which it declares what it opens.
type declaration struct{ op, family int }

// call is a request as the test and the reference see it.
type call struct {
	request      *mailbox.Request
	op, arg, key int
	turn         *mailbox.Claim // of this turn, or nil
	tx           *mailbox.Transaction
	outer        []*mailbox.Claim // of those that it is called from inside of
	rank         int64
	try, patient bool
	arrival      int
	pos          uint64 // in the order of arrival
	came         uint64 // the same when it came to the gate; 0 if it has been requeued
	waited       bool
	bypassed     int
	// knownFalse is for guards over arguments: this request's said false, and
	// nothing changed since.
	knownFalse bool
	err        error

	// For the test's own count.
	passed    int
	was       mailbox.State // before Next
	wasInside bool          // when it started, or failed
	wasDue    bool          // when somebody was
	// wasBelieved: nobody could have opened it, by the declarations that are checked.
	wasBelieved bool
	unplaced    bool          // the policy failed about it
	begun       bool          // it has changed the state, so it can no longer be declined
	kept        bool          // it has kept its place
	opens       map[int][]int // per family that its operation declares: the keys that it can open
}

func newReference(rules *mailbox.Rules, o order) *reference {
	return &reference{
		rules: rules, order: o, knownFalse: map[line]int{}, latest: map[line]uint64{}, joined: map[int]uint64{}, last: -1,
		counts: make([]mailbox.Stats, len(rules.Operations)), released: map[*mailbox.Transaction]bool{},
	}
}

func (s *reference) op(c *call) *mailbox.Operation { return &s.rules.Operations[c.op] }

func (s *reference) looks(op int, what guards.Looks) bool {
	return s.rules.Operations[op].Looks&what != 0
}

// conflict: some of the requests of the two operations conflict.
func (s *reference) conflict(a, b int) bool {
	return s.rules.Conflicts.Between(a, b) || s.isolated(a, b)
}

// clash: the two requests do.
func (s *reference) clash(a, b *call) bool {
	return s.apart(a, b) || s.rules.Conflicts.Clash(a.op, a, b.op, b)
}

// scoped: not all of its requests conflict with the same.
func (s *reference) scoped(op int) bool { return s.rules.Scoped(op) }

// around: c has been called from inside of r.
func (s *reference) around(r, c *call) bool { return r.turn != nil && slices.Contains(c.outer, r.turn) }

// inner: c has been called from inside of a request that still runs.
func (s *reference) inner(c *call) bool {
	return slices.ContainsFunc(s.running, func(r *call) bool { return s.around(r, c) }) || s.holds(c.tx)
}

// own: the guard looks at the argument of this request alone.
func (s *reference) own(op int) bool {
	return s.looks(op, guards.AtArgument) && !s.rules.Operations[op].Family
}

// each: every request is considered by itself.
func (s *reference) each(op int) bool { return s.own(op) && !s.rules.Operations[op].HeadOfLine }

func (s *reference) within() bool { return s.rules.Policy != nil && s.rules.Policy.Within }

func (s *reference) sorted(op int) bool {
	return s.each(op) || s.rules.Operations[op].Family || s.within()
}

func (s *reference) line(c *call) line {
	if s.op(c).Family {
		return line{c.op, c.key}
	}
	return line{c.op, 0}
}

// barredAll: something runs that conflicts with the operation, or all is held.
func (s *reference) barredAll(op int) bool {
	return s.held || slices.ContainsFunc(s.begun, func(b int) bool { return s.conflict(op, b) }) ||
		slices.ContainsFunc(s.running, func(r *call) bool { return s.conflict(op, r.op) })
}

// barredSurely: whatever predicates say, which are not asked when somebody arrives.
func (s *reference) barredSurely(c *call) bool {
	return s.held || s.barredByBegun(c) || s.barredByRetained(c) ||
		slices.ContainsFunc(s.running, func(r *call) bool { return s.clashSurely(c, r) && !s.around(r, c) })
}

func (s *reference) clashSurely(a, b *call) bool {
	scope := s.rules.Conflicts.Within(a.op, b.op)
	return s.apart(a, b) || s.clash(a, b) && (scope < 0 || s.rules.Conflicts.Scopes()[scope].Kind() != guards.ByPredicate)
}

// barred: something runs that conflicts with the request, or all is held.
func (s *reference) barred(c *call) bool {
	return s.held || s.barredByBegun(c) || s.barredByRetained(c) ||
		slices.ContainsFunc(s.running, func(r *call) bool { return s.clash(c, r) && !s.around(r, c) })
}

func of(op int, calls []*call) (some []*call) {
	return filter(calls, func(c *call) bool { return c.op == op })
}

func filter(calls []*call, ok func(*call) bool) (some []*call) {
	for _, c := range calls {
		if ok(c) {
			some = append(some, c)
		}
	}
	return some
}

// waiting returns the requests of an operation that wait inside.
func (s *reference) waiting(op int) []*call { return of(op, s.inside) }

// members returns those inside that share a line, in order of arrival.
func (s *reference) members(l line) []*call {
	return filter(s.inside, func(c *call) bool { return s.line(c) == l })
}

func byPlace(a, b *call) int { return cmp.Compare(a.pos, b.pos) }

// byPolicy is the order of consideration of the requests of one operation.
func (s *reference) byPolicy(a, b *call) int {
	if s.within() {
		if s.order.first(a, b, -1) {
			return -1
		} else if s.order.first(b, a, -1) {
			return 1
		}
	}
	return byPlace(a, b)
}

// lines returns the lines of an operation that have a place, each in the order of
// consideration, in the order of their first requests.
func (s *reference) lines(op int) (lines [][]*call) {
	seen := map[line]bool{}
	for _, c := range s.waiting(op) {
		if l := s.line(c); !seen[l] && !slices.Contains(s.loose, l) {
			seen[l] = true
			members := s.members(l)
			slices.SortFunc(members, s.byPolicy)
			lines = append(lines, members)
		}
	}
	slices.SortFunc(lines, func(a, b []*call) int { return s.byPolicy(a[0], b[0]) })
	return lines
}

// front returns who would start first of a line if its guard held.
func (s *reference) front(members []*call) *call {
	if s.rules.AllCompatible {
		// Not all that wait in a line have been passed by the same: some of it at the gate.
		if due := filter(members, s.atBound); len(due) > 0 {
			return slices.MinFunc(due, byPlace)
		}
	}
	if oldest := slices.MinFunc(members, byPlace); s.atBound(oldest) {
		return oldest
	}
	return members[0]
}

func insert(calls []*call, c *call) []*call {
	i := slices.IndexFunc(calls, func(o *call) bool { return o.pos > c.pos })
	if i < 0 {
		i = len(calls)
	}
	return slices.Insert(calls, i, c)
}

// register counts an arrival.
func (s *reference) register(c *call) {
	s.arrivals++
	c.arrival = s.arrivals
	s.newest = (max(s.newest, s.entered)>>32 + 1) << 32
	c.pos, c.came, c.waited, c.bypassed, c.knownFalse = s.newest, s.newest, false, 0, false
	if s.barredSurely(c) {
		s.hasToWait(c)
	}
}

func (s *reference) hasToWait(c *call) {
	if !c.waited {
		c.waited = true
		s.counts[c.op].Waits++
	}
}

func (s *reference) arrive(c *call) {
	s.register(c)
	stays := s.barredSurely(c) || !s.inner(c) && s.aheadIf(c, s.clashSurely) != nil
	s.gate = append(s.gate, c)
	s.settled = s.closed == nil && (s.settled && stays || s.blocked())
	if s.settled {
		back := s.turnBack()
		if (s.overflow() || back) && slices.Contains(s.gate, c) {
			s.settled = false // somebody else has left, who may have been in the way
		}
	}
}

// stand lets in a request that has to stand in a line.
func (s *reference) stand(c *call) {
	s.settled = false
	s.register(c)
	s.hasToWait(c)
	s.enter(c)
	s.older = s.entered
}

// join lets in a request whose guard has been asked, and is false.
func (s *reference) join(c *call) {
	s.stand(c)
	s.refuted(c)
}

func (s *reference) requeue(c *call, op, key int, keep bool) {
	s.complete(c)
	c.op, c.key = op, key
	s.admitAgain(c, keep)
}

// admitAgain lets in a request that is inside already.
func (s *reference) admitAgain(c *call, keep bool) {
	s.forgetExtras() // it may have been one in another queue, and have started since
	s.settled = false
	arrival, pos := c.arrival, c.pos
	s.register(c)
	if c.pos, c.came = s.entered+1, 0; s.compares() && s.rules.MaxBypass == 0 {
		s.older++
		c.pos = s.older
	}
	if keep && pos != 0 {
		c.arrival, c.pos = arrival, pos
	}
	if c.try {
		s.forgetRetries() // it may have been one of them, and have started since
		s.gate = insert(s.gate, c)
		s.retries = append(s.retries, c)
		s.entered = max(s.entered, c.pos)
		return
	}
	s.enter(c)
	if !s.op(c).Resumes && s.full(c.op) != nil && slices.Contains(s.inside, c) {
		s.extras = append(s.extras, c)
	}
}

// turnBack fails those who were requeued into a full queue and could not start.
func (s *reference) turnBack() (changed bool) {
	for s.forgetExtras(); len(s.extras) > 0; s.forgetExtras() {
		c := s.extras[len(s.extras)-1]
		s.extras = s.extras[:len(s.extras)-1]
		if full := s.full(c.op); full != nil {
			changed = true
			s.hasToWait(c)
			s.counts[c.op].Refusals++
			s.fail(c, full)
		}
	}
	return changed
}

// forgetExtras forgets those who have left.
func (s *reference) forgetExtras() {
	s.extras = slices.DeleteFunc(s.extras, func(c *call) bool { return !slices.Contains(s.inside, c) })
}

func (s *reference) enter(c *call) {
	l := s.line(c)
	s.inside = insert(s.inside, c)
	s.joined[c.op]++
	s.counted()
	s.entered = max(s.entered, c.pos)
	if !s.scoped(c.op) || c.came == 0 { // or else those may still be outside that have come before it
		s.latest[l] = max(s.latest[l], c.pos)
	}
	s.place(c)
}

// place has the policy put c into its line, and the line among the others.
func (s *reference) place(c *call) {
	l, err := s.line(c), s.misjudges()
	if !s.within() {
		err = nil
	}
	if len(s.members(l)) > 1 && err != nil {
		c.unplaced = true
		s.fail(c, err)
		c.unplaced = false
		return
	}
	first := slices.MinFunc(s.members(l), s.byPolicy)
	if s.op(c).Family && (first == c || slices.Contains(s.loose, l)) {
		s.placeLine(l)
	}
}

func (s *reference) placeLine(l line) {
	s.loose = slices.DeleteFunc(s.loose, func(o line) bool { return o == l })
	if err := s.misjudges(); err != nil && s.within() && len(s.lines(l.op)) > 1 {
		s.failAll(s.members(l), err)
	}
}

func (s *reference) failAll(calls []*call, err error) {
	for _, c := range calls {
		s.fail(c, err)
	}
}

func (s *reference) rerank(c *call, rank int64) {
	s.settled = false
	if !slices.Contains(s.inside, c) || !s.sorted(c.op) || s.misjudges() != nil && s.within() && len(s.members(s.line(c))) > 1 {
		if slices.Contains(s.inside, c) && s.sorted(c.op) {
			s.fail(c, s.misjudges())
		}
		c.rank = rank
		return
	}
	c.rank = rank
	if s.op(c).Family { // its line may have to move
		s.placeLine(s.line(c))
	}
}

func (s *reference) next() (*call, error) {
	for {
		if c := s.nextFailed(); c != nil {
			return c, c.err
		}
		if s.closed != nil {
			return s.evict()
		}
		for len(s.loose) > 0 {
			s.placeLine(s.loose[0])
		}
		s.check()
		if c, err := s.retry(); c != nil {
			return c, err
		} else if len(s.retries) > 0 && len(s.failed) > 0 {
			continue
		}
		c := s.pick()
		if len(s.failed) > 0 {
			continue // who has failed is told before anybody starts
		}
		if c != nil {
			return s.grant(c)
		}
		if c, err, moved := s.letIn(); c != nil {
			return c, err
		} else if moved || len(s.failed) > 0 || s.turnBack() || s.overflow() {
			continue
		}
		known := maps.Clone(s.knownFalse)
		c = s.knock()
		switch {
		case len(s.failed) > 0:
		case c != nil:
			return s.grant(c)
		case !maps.Equal(known, s.knownFalse): // so that others are behind nobody any more
		default:
			s.settled = true
			if len(s.running)+len(s.begun)+len(s.retained) == 0 {
				s.older = s.entered
			}
			s.rest()
			return nil, nil
		}
	}
}

func (s *reference) grant(c *call) (*call, error) {
	if s.bypass(c, false); len(s.failed) > 0 { // who has failed is told before anybody starts
		failed := s.nextFailed()
		return failed, failed.err
	}
	if s.noThread[c.op] {
		s.rest()
		return c, mailbox.ErrNoThread
	}
	s.start(c)
	return c, nil
}

func (s *reference) rest() {
	for _, c := range slices.Concat(s.inside, s.gate, s.door) {
		s.hasToWait(c)
	}
}

func (s *reference) nextFailed() *call {
	if len(s.failed) == 0 {
		return nil
	}
	c := s.failed[0]
	s.failed = s.failed[1:]
	return c
}

// evict fails the waiting requests of a closed object in order of arrival.
func (s *reference) evict() (*call, error) {
	all := slices.Concat(s.inside, s.gate, s.door)
	if len(all) == 0 {
		return nil, nil
	}
	c := slices.MinFunc(all, byPlace)
	s.leave(c)
	return c, s.closed
}

// considered is a request that may come next, or stands in the way.
type considered struct {
	*call
	wall bool
	due  bool
	each bool // whether it is a wall, or open, is to be found out
}

// considered returns the requests of a scoped operation that are considered, each by itself:
// where there is a head of line that, and those that pass it as they are called from inside.
func (s *reference) considered(op int) []*call {
	some := s.waiting(op)
	if o := &s.rules.Operations[op]; o.HeadOfLine && !o.Family && len(some) > 0 {
		line := slices.Clone(some)
		slices.SortFunc(line, s.byPolicy)
		head := s.front(line)
		return filter(some, func(c *call) bool { return c == head || s.inner(c) })
	}
	return some
}

// pick considers the requests inside and returns the one that starts.
func (s *reference) pick() *call {
	choosing := s.rules.Policy != nil && s.rules.Policy.Choose != nil
	var row []considered
	for op, o := range s.rules.Operations {
		if s.scoped(op) {
			for _, c := range s.considered(op) {
				if !s.isKnownFalse(c) {
					row = append(row, considered{call: c, due: s.atBound(c), each: true})
				}
			}
			continue
		}
		some := s.firsts(op)
		if row = append(row, some...); !choosing || len(some) == 0 || some[0].wall || o.HeadOfLine && !o.Family {
			continue // else a policy that chooses wants to see all
		}
		first := some[0].call
		failed := len(s.failed)
		for _, c := range s.waiting(op) {
			// Those that are due have been looked at above; of a line, the first of them.
			skip := c == first || s.each(op) && s.atBound(c) ||
				o.Family && slices.Contains(s.inside, c) && s.atBound(c) && c == s.front(s.members(s.line(c)))
			if !skip && slices.Contains(s.inside, c) && (!s.each(op) && !o.Family || s.mayBeOpen(c)) {
				// Of a line the first may have to stay behind somebody at the gate whom one
				// that was requeued need not mind, and who is due like it.
				row = append(row, considered{call: c, wall: false, due: !s.each(op) && s.atBound(c)})
			}
			if o.Family && len(s.failed) > failed {
				break // who has failed is told first
			}
		}
	}
	if len(s.failed) > 0 || !s.sort(row) {
		return nil
	}
	start, eligible := s.walk(row, choosing)
	if start == nil && eligible == nil && len(s.failed) == 0 {
		start, eligible = s.walk(row, choosing) // some are known to be closed by now
	}
	if start != nil || len(s.failed) > 0 {
		return start
	}
	var requests []*mailbox.Request
	for _, c := range eligible {
		requests = append(requests, c.request)
	}
	if eligible == nil {
		return nil
	}
	i, err := s.rules.Policy.Choose(requests)
	if err == nil && (i < 0 || i >= len(eligible)) {
		err = &mailbox.ChoiceError{Policy: s.rules.Policy.Name, Index: i, Eligible: len(eligible)}
	}
	if err != nil {
		s.failAll(eligible, err)
		return nil
	}
	return eligible[i]
}

// firsts returns who comes first among those of an operation that may be open, and, beyond
// the first, those that have been bypassed often enough.
func (s *reference) firsts(op int) (some []considered) {
	first := s.firstOpen(op)
	if first == nil {
		return nil
	}
	o, wall := &s.rules.Operations[op], s.barredAll(op)
	some = append(some, considered{call: first, wall: wall, due: s.atBound(first)})
	switch {
	case s.each(op):
		for _, c := range s.waiting(op) {
			if c != first && s.atBound(c) && s.mayBeOpen(c) {
				some = append(some, considered{call: c, wall: wall, due: true})
			}
		}
	case o.Family:
		failed := len(s.failed)
		for _, l := range s.lines(op) {
			if c := s.front(l); s.line(c) != s.line(first) && s.atBound(c) && s.mayBeOpen(c) {
				some = append(some, considered{call: c, wall: wall, due: true})
			}
			if len(s.failed) > failed && o.Looks&guards.AtWaiting != 0 {
				break // fewer wait now, so that no answer is worth anything
			}
		}
	}
	return some
}

// walk considers those in the row, and returns who starts, or is eligible. Where all start
// that are compatible, those are in the way that are at the bound, and nobody else who waits.
func (s *reference) walk(row []considered, choosing bool) (start *call, eligible []*call) {
	var way []*call
	for _, c := range row {
		if c.each {
			c.wall = s.barred(c.call)
			open := s.mayBeOpen(c.call)
			if len(s.failed) > 0 {
				return nil, nil
			}
			if !open {
				continue
			}
		}
		behind := slices.ContainsFunc(way, func(w *call) bool { return s.clash(w, c.call) }) || s.aheadAtGate(c.call) != nil
		if s.rules.AllCompatible && !c.wall && !behind && !s.inner(c.call) && s.comesIn(c.call) {
			return nil, nil
		}
		if c.due || !s.rules.AllCompatible && (c.wall || !choosing) {
			way = append(way, c.call)
		}
		if c.wall || behind && !s.inner(c.call) {
			continue
		}
		if !choosing || c.due {
			return c.call, nil
		}
		eligible = append(eligible, c.call)
	}
	return nil, eligible
}

// sort orders those considered; the first two whose comparison fails, fail.
func (s *reference) sort(row []considered) bool {
	var misfit error
	var misfits []*call
	slices.SortFunc(row, func(a, b considered) int {
		if err := s.misjudges(); err != nil && misfit == nil && !a.due && !b.due && s.order.first != nil {
			misfit, misfits = err, []*call{a.call, b.call}
		}
		if misfit != nil && a.due == b.due {
			return byPlace(a.call, b.call)
		}
		return s.before(a.call, b.call)
	})
	s.failAll(misfits, misfit)
	return misfit == nil
}

// mayBeOpen asks c's guard, unless something conflicting runs: then a guard must
// not be asked, and only one that is known to be false is not open.
func (s *reference) mayBeOpen(c *call) bool {
	if s.barred(c) {
		return !s.isKnownFalse(c)
	}
	falsePart, err := s.ask(c)
	return falsePart == "" && err == nil
}

func (s *reference) isKnownFalse(c *call) bool {
	if s.own(c.op) {
		return c.knownFalse
	}
	return s.holdsFalse(s.line(c))
}

func (s *reference) holdsFalse(l line) bool {
	_, known := s.knownFalse[l]
	return known
}

// noteShared notes what a guard has said that a line shares.
func (s *reference) noteShared(l line, isFalse bool) {
	delete(s.knownFalse, l)
	if isFalse {
		s.knownFalse[l] = s.version
	}
}

// believes: where declarations are checked they may be wrong, so that asking a
// guard that nobody can have opened might show that somebody did. Such a guard is
// not asked but by check.
func (s *reference) believes(c *call) bool {
	return s.rules.Check && s.op(c).Family && s.holdsFalse(s.line(c))
}

// check asks the guards of families that nobody can have opened, by the
// declarations of what has ended. What holds nevertheless fails its line.
func (s *reference) check() {
	for len(s.checks) > 0 && !s.barredAll(s.checks[0].family) {
		op, family := s.checks[0].op, s.checks[0].family
		s.checks = s.checks[1:]
		for _, members := range s.lines(family) {
			c := s.front(members)
			l := s.line(c)
			if said, known := s.knownFalse[l]; !known || said == s.version {
				continue
			}
			falsePart, err := s.guard(c)
			if falsePart == "" && err == nil {
				err = &mailbox.UndeclaredError{Operation: s.rules.Operations[op].Name, Family: s.op(c).Name, Key: l.key}
			}
			if err != nil {
				members := s.members(l) // in order of arrival
				s.failAll(members, err)
			}
		}
	}
}

// ask evaluates c's guard, which fails those that it guards if it panics.
func (s *reference) ask(c *call) (falsePart string, err error) {
	if s.op(c).Guard == "" {
		return "", nil
	}
	if s.believes(c) {
		return s.op(c).Guard, nil
	}
	falsePart, err = s.guard(c)
	switch own := s.own(c.op); {
	case err != nil && own:
		if slices.Contains(s.inside, c) {
			s.fail(c, err)
		}
	case err != nil:
		s.failAll(s.members(s.line(c)), err)
	case own:
		c.knownFalse = falsePart != ""
	case s.watched(s.line(c)):
		s.noteShared(s.line(c), falsePart != "")
	}
	return falsePart, err
}

func (s *reference) fail(c *call, err error) {
	s.leave(c)
	c.err = err
	s.failed = append(s.failed, c)
}

func (s *reference) atBound(c *call) bool {
	return s.rules.MaxBypass > 0 && c.bypassed >= s.rules.MaxBypass
}

// before: those at the bypass bound, then as the policy says, then by arrival.
func (s *reference) before(a, b *call) int {
	switch {
	case s.atBound(a) != s.atBound(b):
		if s.atBound(a) {
			return -1
		}
		return 1
	case s.atBound(a) || s.order.first == nil:
	case s.order.first(a, b, s.last):
		return -1
	case s.order.first(b, a, s.last):
		return 1
	}
	return byPlace(a, b)
}

// aheadAtGate returns one at the gate that c must not pass.
func (s *reference) aheadAtGate(c *call) *call { return s.aheadIf(c, s.clash) }

// aheadIf: by default c must not pass an earlier arrival that conflicts with it; where all
// start that are compatible, one that is at the bound.
func (s *reference) aheadIf(c *call, clash func(a, b *call) bool) *call {
	for op := range s.rules.Operations {
		for _, w := range of(op, s.gate) {
			ahead := s.earlier(w, c)
			if s.rules.AllCompatible {
				ahead = s.precedes(w, c)
			}
			if ahead && clash(w, c) && s.mayBeOpenOutside(w) {
				return w
			}
		}
	}
	return nil
}

// earlier: w, at the gate, has arrived before c. Who has been requeued was inside before all at
// the gate.
func (s *reference) earlier(w, c *call) bool { return w.pos < c.came }

// precedes: w is at the bound, and c is not, or comes after it.
func (s *reference) precedes(w, c *call) bool {
	return s.atBound(w) && (!s.atBound(c) || w.pos < c.pos)
}

// mayBeOpenOutside: nobody has asked w, which is at the gate, but what those inside know of a
// guard over the state alone holds for it too.
func (s *reference) mayBeOpenOutside(w *call) bool {
	o := s.op(w)
	return o.Family || o.Looks != guards.AtState || !s.holdsFalse(line{w.op, 0})
}

// comesIn: one at the gate that c must not pass, by default, can be let in; then nobody is to
// start before that is considered, too, who is not considered before c.
func (s *reference) comesIn(c *call) bool {
	return slices.ContainsFunc(s.gate, func(w *call) bool {
		return s.earlier(w, c) && s.clash(w, c) && s.mayBeOpenOutside(w) && !w.try && !s.barred(w)
	})
}

// start makes c run, after counting whom it passes.
func (s *reference) start(c *call) {
	for _, w := range append(slices.Concat(s.inside, s.gate), c) {
		w.wasDue, w.wasBelieved = s.atBound(w), s.believes(w)
	}
	c.wasInside = slices.Contains(s.inside, c)
	s.bypass(c, true)
	if !c.try {
		s.leave(c)
	}
	s.settled = false
	s.running = append(s.running, c)
	s.started(c.op)
	s.overflowed = false
	if s.bounded() && s.blocked() {
		s.settled = s.closed == nil
		back := s.turnBack()
		s.overflowed = s.overflow() || back
	}
}

// blocked reports whether everybody who waits conflicts with something that runs.
func (s *reference) blocked() bool {
	return !slices.ContainsFunc(slices.Concat(s.inside, s.gate), func(w *call) bool { return !s.barredSurely(w) })
}

func (s *reference) bounded() bool {
	return s.rules.Bound.Overflow != mailbox.Unbounded || slices.ContainsFunc(s.rules.Operations, func(o mailbox.Operation) bool { return o.Bound.Overflow != mailbox.Unbounded })
}

// bypass counts a bypass of all that c passes by starting, or only asks who they are.
func (s *reference) bypass(c *call, count bool) {
	if s.rules.MaxBypass == 0 && s.rules.CountBypass == 0 {
		return
	}
	pass := func(some []*call) {
		for _, w := range some {
			if w.pos < c.pos && count {
				w.bypassed++
			}
		}
	}
	for op, o := range s.rules.Operations {
		switch some := s.waiting(op); {
		case s.scoped(op):
			failed := len(s.failed)
			for _, w := range s.considered(op) {
				if w.pos < c.pos && s.mayBeOpen(w) {
					pass([]*call{w})
				}
				if len(s.failed) > failed {
					break
				}
			}
		case s.each(op):
			for _, w := range some {
				if w.pos < c.pos && s.mayBeOpen(w) {
					pass([]*call{w})
				}
			}
		case o.Family:
			for _, l := range s.lines(op) {
				if slices.ContainsFunc(l, func(w *call) bool { return w.pos < c.pos }) && s.mayBeOpen(s.front(l)) {
					pass(l)
				}
			}
		case len(some) > 0 && some[0].pos < c.pos && s.firstOpen(op) != nil:
			pass(some)
		}
	}
	if s.rules.AllCompatible && count { // also those at the gate are passed
		for _, w := range s.gate {
			if s.earlier(w, c) && s.mayBeOpenOutside(w) {
				w.bypassed++
			}
		}
	}
}

func (s *reference) started(op int) {
	s.last = op
	s.counts[op].Starts++
	s.changed(op, false, nil)
}

// changed forgets what is known, if the operation changes the state; but of a
// family, if the operation declares what it opens, only that.
func (s *reference) changed(op int, ended bool, opens map[int][]int) {
	o := &s.rules.Operations[op]
	if o.Kind == mailbox.Function {
		return
	}
	s.version++
	for l := range s.knownFalse {
		stands := s.stands(op, l.op)
		if stands && ended && opens != nil {
			stands = !slices.Contains(opens[l.op], l.key)
		} else if ended && opens == nil {
			stands = false
		}
		if !stands || s.rules.Check && len(s.members(l)) == 0 {
			delete(s.knownFalse, l) // of those at the door declarations are not checked, but their guards asked
		}
	}
	for _, c := range slices.Concat(s.inside, s.gate, s.door) {
		c.knownFalse = false
	}
	if !s.rules.Check || !ended || opens == nil {
		return
	}
	for _, family := range s.declared() {
		if s.stands(op, family) {
			s.checks = append(s.checks, declaration{op, family})
		}
	}
}

// declared returns the families that somebody declares to open, in the order in
// which they are first declared.
func (s *reference) declared() (families []int) {
	for _, o := range s.rules.Operations {
		for _, family := range o.Opens {
			if !slices.Contains(families, family) {
				families = append(families, family)
			}
		}
	}
	return families
}

// stands: the operation declares which keys of the family it opens.
func (s *reference) stands(op, family int) bool {
	return slices.Contains(s.rules.Operations[op].Opens, family) && !s.looks(family, guards.AtWaiting)
}

// counted forgets what is known of guards that look at waiting counts.
func (s *reference) counted() {
	for l := range s.knownFalse {
		if s.looks(l.op, guards.AtWaiting) {
			delete(s.knownFalse, l)
		}
	}
	for _, c := range slices.Concat(s.inside, s.gate, s.door) {
		c.knownFalse = c.knownFalse && !s.looks(c.op, guards.AtWaiting)
	}
}

// leave takes a waiting request from where it is; there may be room now.
func (s *reference) leave(c *call) {
	s.remove(c)
	s.refill()
}

func (s *reference) remove(c *call) {
	c.wasInside = slices.Contains(s.inside, c)
	if i := slices.Index(s.door, c); i >= 0 {
		s.door = slices.Delete(s.door, i, i+1)
		s.leftDoor(c)
		return
	}
	if i := slices.Index(s.gate, c); i >= 0 {
		s.gate = slices.Delete(s.gate, i, i+1)
		s.leftGate(c.op)
		return
	}
	l := s.line(c)
	first := slices.MinFunc(s.members(l), s.byPolicy)
	i := slices.Index(s.inside, c)
	s.inside = slices.Delete(s.inside, i, i+1)
	s.counted()
	left := s.members(l)
	if !s.op(c).Family {
		s.leftGate(c.op)
		return
	}
	if len(left) == 0 && (!s.watched(l) || s.rules.Check) {
		delete(s.knownFalse, l)
	}
	if len(left) == 0 {
		delete(s.latest, l)
		s.loose = slices.DeleteFunc(s.loose, func(o line) bool { return o == l })
	} else if first == c && !c.unplaced && !slices.Contains(s.loose, l) {
		s.loose = append(s.loose, l)
	}
}

// leftGate: an answer is worth nothing once no request waits for the guard, inside, at
// the gate or at the door, for the state may change then without the scheduler.
func (s *reference) leftGate(op int) {
	if l := (line{op, 0}); len(of(op, s.gate)) == 0 && !s.watched(l) && !s.rules.Operations[op].Family {
		delete(s.knownFalse, l)
	}
}

// leftDoor is the same for the line of a request that has left the door.
func (s *reference) leftDoor(c *call) {
	if l := s.line(c); s.op(c).Family && !s.watched(l) {
		delete(s.knownFalse, l)
	}
	s.leftGate(c.op)
}

// watched: some request waits for the guard that is shared in the line, inside or at the
// door. (Those of a family that is scoped are asked there one by one.)
func (s *reference) watched(l line) bool {
	return len(s.members(l)) > 0 || !(s.rules.Operations[l.op].Family && s.scoped(l.op)) &&
		slices.ContainsFunc(s.door, func(c *call) bool { return s.line(c) == l })
}

// compares: a policy is to see all that have come.
func (s *reference) compares() bool {
	p := s.rules.Policy
	return p != nil && (p.Before != nil || p.Choose != nil)
}

// retry decides the first try that has been requeued and could be.
func (s *reference) retry() (*call, error) {
	s.forgetRetries()
	for _, c := range s.retries {
		if len(s.failed) > 0 {
			break
		}
		if s.barred(c) {
			continue
		}
		if decided, err := s.decide(c); decided {
			return c, err
		}
		break
	}
	return nil, nil
}

// forgetRetries forgets those that have left.
func (s *reference) forgetRetries() {
	s.retries = filter(s.retries, func(c *call) bool { return slices.Contains(s.gate, c) })
}

// letIn moves requests inside, in order of arrival, until one may start, a guard over
// waiting counts opens or something fails; or all of them, for a policy that compares. A
// try is decided and returned.
func (s *reference) letIn() (c *call, err error, moved bool) {
	for together := -1; ; { // its requests start by one decision
		i := slices.IndexFunc(s.gate, func(c *call) bool { return !s.barred(c) })
		if s.rules.AllCompatible && i >= 0 && s.gate[i].try {
			// It is decided when all the others are in, and nobody inside can start.
			if j := slices.IndexFunc(s.gate, func(c *call) bool { return !s.barred(c) && !c.try }); j >= 0 {
				i = j
			} else if moved {
				return nil, nil, true
			}
		}
		if i < 0 || together >= 0 && (s.gate[i].op != together || s.gate[i].try) {
			return nil, nil, moved
		}
		if c = s.gate[i]; c.try {
			decided, err := s.decide(c)
			if !decided {
				return nil, nil, true
			}
			return c, err, true
		}
		if !moved {
			s.older = s.entered // those that are let in from here on come together
		}
		moved = true
		s.gate = slices.Delete(s.gate, i, i+1)
		if latest := s.latest[s.line(c)]; c.pos <= latest {
			c.pos = max(s.entered, latest) + 1
			s.older = c.pos
		}
		s.enter(c)
		if s.countOpened() || len(s.failed) > 0 {
			return nil, nil, true
		}
		if !s.compares() && s.scoped(c.op) && s.each(c.op) {
			if open := s.mayBeOpen(c); len(s.failed) > 0 {
				return nil, nil, true
			} else if !open {
				continue
			}
		}
		switch tries := filter(s.gate, func(c *call) bool { return c.try }); {
		case s.compares() || s.isKnownFalse(c):
		case len(tries) > 0 && !s.rules.AllCompatible:
			s.refuseBehind(c, tries)
			return nil, nil, true
		case s.op(c).Kind == mailbox.Function && !s.conflict(c.op, c.op):
			together = c.op
		default:
			return nil, nil, true
		}
	}
}

// refuseBehind refuses those tries that c comes before and conflicts with, if it starts now.
func (s *reference) refuseBehind(c *call, tries []*call) {
	if s.pick() != c || len(s.failed) > 0 {
		return
	}
	slices.SortStableFunc(tries, func(a, b *call) int { return cmp.Compare(a.op, b.op) })
	for _, t := range tries {
		if t.came > c.came && s.clash(t, c) && !s.inner(t) && !s.barred(t) {
			s.fail(t, &mailbox.RefusedError{Operation: s.op(t).Name, Behind: s.op(c).Name})
		}
	}
}

func (s *reference) countOpened() bool {
	for op := range s.rules.Operations {
		if !s.looks(op, guards.AtWaiting) {
			continue
		}
		if s.scoped(op) {
			if s.anyOpen(op, func(c *call) bool { return !s.barred(c) }) {
				return true
			}
		} else if !s.barredAll(op) && s.firstOpen(op) != nil {
			return true
		}
	}
	return false
}

// anyOpen: some request of a scoped operation may be open, of those that are meant.
func (s *reference) anyOpen(op int, meant func(*call) bool) bool {
	failed := len(s.failed)
	for _, c := range s.considered(op) {
		if slices.Contains(s.inside, c) && meant(c) && s.mayBeOpen(c) {
			return true
		}
		if len(s.failed) > failed {
			return false
		}
	}
	return false
}

// firstOpen returns who comes first among those of an operation that may be open.
func (s *reference) firstOpen(op int) *call {
	if s.each(op) {
		some := s.waiting(op)
		slices.SortFunc(some, s.byPolicy)
		for _, c := range some {
			if s.mayBeOpen(c) {
				return c
			}
		}
		return nil
	}
	for _, l := range s.lines(op) { // one, unless it is a family
		if c := s.front(l); s.mayBeOpen(c) {
			return c
		}
	}
	return nil
}

// decide starts a try, or says why it would have to wait; or leaves it where it is, if
// somebody has failed: who has failed is told before anybody starts.
func (s *reference) decide(c *call) (decided bool, err error) {
	err = s.wouldWait(c)
	if err == nil && len(s.failed) == 0 {
		s.bypass(c, false)
	}
	if err == nil && len(s.failed) > 0 {
		return false, nil
	}
	s.gate = slices.DeleteFunc(s.gate, func(other *call) bool { return other == c })
	s.refill()
	if err == nil {
		s.start(c)
	}
	s.leftGate(c.op)
	return true, err
}

// wouldWait says what comes before c, or that its guard is false.
func (s *reference) wouldWait(c *call) error {
	behind := func(op int) error {
		return &mailbox.RefusedError{Operation: s.op(c).Name, Behind: s.rules.Operations[op].Name}
	}
	for op := range s.rules.Operations {
		failed := len(s.failed)
		due := func(w *call) bool { return !s.rules.AllCompatible || s.precedes(w, c) }
		// follows: w has been let in to be compared, or c has kept an older place.
		follows := func(w *call) bool { return c.came == 0 && w.pos > c.pos && !s.atBound(w) }
		switch {
		case !s.conflict(c.op, op) || s.inner(c) || !slices.ContainsFunc(s.waiting(op), due):
		case s.scoped(op):
			if s.anyOpen(op, func(w *call) bool { return due(w) && !follows(w) && s.clash(c, w) }) {
				return behind(op)
			}
			if len(s.failed) > failed {
				return nil
			}
		case s.rules.AllCompatible:
			some := slices.ContainsFunc(s.firsts(op), func(w considered) bool { return due(w.call) })
			if len(s.failed) > failed {
				return nil
			}
			if some {
				return behind(op)
			}
		default:
			if w := s.firstOpen(op); w != nil && !follows(w) {
				return behind(op)
			}
		}
	}
	if w := s.aheadAtGate(c); w != nil && !s.inner(c) {
		return behind(w.op)
	}
	if o := s.op(c); o.HeadOfLine && !o.Family && len(s.waiting(c.op)) > 0 && !s.inner(c) {
		return behind(c.op)
	}
	falsePart, err := s.ask(c)
	if err == nil && falsePart != "" {
		err = &mailbox.RefusedError{Operation: s.op(c).Name, Guard: falsePart}
	}
	return err
}

func (s *reference) complete(c *call) {
	i := slices.Index(s.running, c)
	s.running = slices.Delete(s.running, i, i+1)
	if c.tx != nil && !s.released[c.tx] {
		h := *c
		s.retained = append(s.retained, &h)
	}
	s.completed(c)
}

func (s *reference) completed(c *call) {
	s.settled = false
	opens := c.opens
	if opens == nil {
		opens = map[int][]int{}
	}
	s.changed(c.op, true, opens)
}

func (s *reference) decline(c *call) {
	s.counts[c.op].Starts--
	s.counts[c.op].Withdrawals++
	i := slices.Index(s.running, c)
	s.running = slices.Delete(s.running, i, i+1)
	s.completed(c)
}

func (s *reference) begin(op int) {
	s.settled = false
	s.begun = append(s.begun, op)
	s.changed(op, false, nil)
}

// end ends what begin announced; opens is nil if it can have opened all keys.
func (s *reference) end(op int, opens map[int][]int) {
	s.settled = false
	i := slices.Index(s.begun, op)
	s.begun = slices.Delete(s.begun, i, i+1)
	s.last = op // not before, as it might be abandoned
	s.counts[op].Starts++
	s.changed(op, true, opens)
}

func (s *reference) abandon(op int) {
	s.settled = false
	i := slices.Index(s.begun, op)
	s.begun = slices.Delete(s.begun, i, i+1)
}

func (s *reference) refuted(c *call) {
	switch inside := slices.Contains(s.inside, c); {
	case s.own(c.op):
		c.knownFalse = true
	case inside || !s.op(c).Family:
		s.noteShared(s.line(c), true)
	}
}

func (s *reference) answered(falseOps []int, open int) {
	for _, op := range falseOps {
		s.noteShared(line{op, 0}, true)
	}
	delete(s.knownFalse, line{open, 0})
}

func (s *reference) withdraw(c *call) {
	s.settled = false
	s.counts[c.op].Withdrawals++
	s.leave(c)
}

func (s *reference) hold() {
	s.settled = s.settled && s.held
	s.held = true
}

// free forgets all that is known of guards if the state has changed.
func (s *reference) free(changed bool) {
	if !s.held {
		return
	}
	s.held, s.settled = false, false
	if changed {
		s.outdate()
	}
}

// lapse forgets all that is known of guards.
func (s *reference) lapse() {
	s.settled = false
	s.outdate()
}

func (s *reference) outdate() {
	clear(s.knownFalse)
	for _, c := range slices.Concat(s.inside, s.gate, s.door) {
		c.knownFalse = false
	}
}

func (s *reference) close(err error) {
	if s.closed == nil {
		s.settled = false
		s.closed = err
	}
}

// lapseOf forgets what the guard of c has said.
func (s *reference) lapseOf(c *call) {
	s.settled = false
	c.knownFalse = false
	delete(s.knownFalse, s.line(c))
}

// Bounds.

// queued returns those inside and at the gate, in order of arrival, as far as bounds
// concern them: a try is not among them, nor the rest of a body.
func (s *reference) queued() []*call {
	all := slices.DeleteFunc(slices.Concat(s.inside, s.gate), func(c *call) bool { return c.try || s.op(c).Resumes })
	slices.SortFunc(all, byPlace)
	return all
}

func (s *reference) full(op int) error {
	o := &s.rules.Operations[op]
	if b := o.Bound; b.Overflow != mailbox.Unbounded && len(of(op, s.queued())) > b.Max {
		return &mailbox.FullError{Operation: o.Name, Max: b.Max, Entry: true}
	}
	if b := s.rules.Bound; b.Overflow != mailbox.Unbounded && len(s.queued()) > b.Max {
		return &mailbox.FullError{Operation: o.Name, Max: b.Max}
	}
	return nil
}

// overflow turns away who is too many.
func (s *reference) overflow() (changed bool) {
	cut := func(b mailbox.Bound, entry bool, some func() []*call) {
		for b.Overflow != mailbox.Unbounded && len(some()) > b.Max {
			changed = true
			all := some()
			c := all[len(all)-1]
			if b.Overflow == mailbox.DropOldest {
				c = all[0]
			}
			s.hasToWait(c)
			if b.Overflow == mailbox.Wait && c.patient {
				l := s.line(c)
				said, known := s.knownFalse[l]
				s.remove(c)
				c.bypassed, c.passed = 0, 0
				s.door = insert(s.door, c)
				if known && said == s.version && s.watched(l) && !s.looks(c.op, guards.AtWaiting) {
					s.knownFalse[l] = said // it may have been the last inside
				}
				continue
			}
			s.counts[c.op].Refusals++
			s.fail(c, &mailbox.FullError{Operation: s.op(c).Name, Max: b.Max, Entry: entry, Dropped: b.Overflow == mailbox.DropOldest})
		}
	}
	for op, o := range s.rules.Operations {
		cut(o.Bound, true, func() []*call { return of(op, s.queued()) })
	}
	cut(s.rules.Bound, false, s.queued)
	return changed
}

// refill lets in from the door whom there is room for.
func (s *reference) refill() {
	for {
		i := slices.IndexFunc(s.door, func(c *call) bool {
			entry, object := s.op(c).Bound, s.rules.Bound
			return (entry.Overflow == mailbox.Unbounded || len(of(c.op, s.queued())) < entry.Max) &&
				(object.Overflow == mailbox.Unbounded || len(s.queued()) < object.Max)
		})
		if i < 0 {
			return
		}
		c := s.door[i]
		s.gate = insert(s.gate, c)
		s.door = slices.Delete(s.door, i, i+1)
		s.leftDoor(c)
	}
}

// knock returns the first at the door that can start at once.
func (s *reference) knock() (first *call) {
	for op, o := range s.rules.Operations {
		for _, c := range of(op, s.door) {
			if first != nil && first.pos < c.pos {
				break
			}
			if s.barred(c) {
				continue
			}
			err := s.wouldWait(c)
			if _, waits := err.(*mailbox.RefusedError); err != nil && !waits && slices.Contains(s.door, c) {
				s.fail(c, err)
			}
			if len(s.failed) > 0 {
				return nil
			}
			if err == nil {
				first = c
				break
			}
			if !s.each(op) && !o.Family && !s.scoped(op) {
				break // what holds for one of them holds for all
			}
		}
	}
	return first
}
