package kernel_test

import (
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// reference restates the rules of the kernel with plain lists. It remembers no
// answer of a guard, only whether one is known to be false, and asks afresh
// whenever it considers a request.
type reference struct {
	rules *kernel.Rules
	// guard evaluates the guard of an operation for an argument.
	guard func(op, arg int) (falsePart string, err error)

	arrivals int
	gate     []*call // in order of arrival
	inside   []*call // in order of admission
	running  []*call // in order of start
	begun    []int   // operations announced by begin
	failed   []*call // in order of failure

	knownFalse map[int]bool // operations whose guard over the state said false, and nothing changed since
	last       int          // the operation that started last
	closed     error
}

// call is a request as the test and the reference see it.
type call struct {
	request  *kernel.Request
	op, arg  int
	try      bool
	arrival  int
	bypassed int
	// knownFalse is for guards over arguments: this request's said false, and
	// nothing changed since.
	knownFalse bool
	err        error

	// For the test's own count.
	passed int
	begun  bool // it has changed the state, so it can no longer be declined
}

func newReference(rules *kernel.Rules) *reference {
	return &reference{rules: rules, knownFalse: map[int]bool{}, last: -1}
}

func (s *reference) looks(op int, what guards.Looks) bool {
	return s.rules.Operations[op].Looks&what != 0
}

func (s *reference) conflict(a, b int) bool { return s.rules.Conflicts.Conflict(a, b) }

// barred: something runs that conflicts with the operation.
func (s *reference) barred(op int) bool {
	return slices.ContainsFunc(s.begun, func(b int) bool { return s.conflict(op, b) }) ||
		slices.ContainsFunc(s.running, func(r *call) bool { return s.conflict(op, r.op) })
}

// waiting returns the requests of an operation that wait inside.
func (s *reference) waiting(op int) (of []*call) {
	for _, c := range s.inside {
		if c.op == op {
			of = append(of, c)
		}
	}
	return of
}

func (s *reference) arrive(c *call) {
	s.arrivals++
	c.arrival = s.arrivals
	s.gate = append(s.gate, c)
}

func (s *reference) next() (*call, error) {
	for {
		if len(s.failed) > 0 {
			c := s.failed[0]
			s.failed = s.failed[1:]
			return c, c.err
		}
		if s.closed != nil {
			return s.evict()
		}
		c := s.choose()
		if len(s.failed) > 0 {
			continue // who has failed is told before anybody starts
		}
		if c != nil {
			s.start(c)
			return c, nil
		}
		if c, err, moved := s.letIn(); c != nil {
			return c, err
		} else if !moved && len(s.failed) == 0 {
			return nil, nil
		}
	}
}

// evict fails the waiting requests of a closed object in order of arrival.
func (s *reference) evict() (*call, error) {
	all := slices.Concat(s.inside, s.gate)
	if len(all) == 0 {
		return nil, nil
	}
	c := slices.MinFunc(all, func(a, b *call) int { return a.arrival - b.arrival })
	s.remove(c)
	return c, s.closed
}

// choose considers the requests inside and returns the one that starts.
func (s *reference) choose() *call {
	var line []*call
	for op := range s.rules.Operations {
		// Within an operation, requests are asked in order of arrival up to the
		// first that may start; after that only those at the bypass bound are.
		found := false
		for _, c := range s.waiting(op) {
			if slices.Contains(s.inside, c) && (!found || s.atBound(c)) && s.mayBeOpen(c) {
				line = append(line, c)
				found = true
			}
		}
	}
	slices.SortFunc(line, s.before)
	for i, c := range line {
		passes := func(w *call) bool { return s.conflict(w.op, c.op) }
		if s.barred(c.op) || slices.ContainsFunc(line[:i], passes) || s.behindGate(c) {
			continue
		}
		return c
	}
	return nil
}

// mayBeOpen asks c's guard, unless something conflicting runs: then a guard must
// not be asked, and only one that is known to be false is not open.
func (s *reference) mayBeOpen(c *call) bool {
	if s.barred(c.op) {
		return !s.isKnownFalse(c)
	}
	falsePart, err := s.ask(c)
	return falsePart == "" && err == nil
}

func (s *reference) isKnownFalse(c *call) bool {
	if s.looks(c.op, guards.AtArgument) {
		return c.knownFalse
	}
	return s.knownFalse[c.op]
}

// ask evaluates c's guard, which fails those that it guards if it panics.
func (s *reference) ask(c *call) (falsePart string, err error) {
	if s.rules.Operations[c.op].Guard == "" {
		return "", nil
	}
	falsePart, err = s.guard(c.op, c.arg)
	switch perRequest := s.looks(c.op, guards.AtArgument); {
	case err != nil && perRequest:
		s.fail(c, err)
	case err != nil:
		for _, w := range s.waiting(c.op) {
			s.fail(w, err)
		}
	case perRequest:
		c.knownFalse = falsePart != ""
	case len(s.waiting(c.op)) > 0:
		s.knownFalse[c.op] = falsePart != ""
	}
	return falsePart, err
}

func (s *reference) fail(c *call, err error) {
	if slices.Contains(s.inside, c) {
		s.remove(c)
		c.err = err
		s.failed = append(s.failed, c)
	}
}

func (s *reference) atBound(c *call) bool {
	return s.rules.MaxBypass > 0 && c.bypassed >= s.rules.MaxBypass
}

// before: those at the bypass bound, then as the policy says, then by arrival.
func (s *reference) before(a, b *call) int {
	if s.atBound(a) != s.atBound(b) {
		if s.atBound(a) {
			return -1
		}
		return 1
	}
	if p := s.rules.Policy; p != nil && p.Before != nil && !s.atBound(a) {
		if first, _ := p.Before(a.request, b.request, s.last); first {
			return -1
		}
		if last, _ := p.Before(b.request, a.request, s.last); last {
			return 1
		}
	}
	return a.arrival - b.arrival
}

// behindGate: an earlier arrival that conflicts with c waits outside. Nobody has
// asked it, but what those inside know of a guard over the state alone holds for
// it too.
func (s *reference) behindGate(c *call) bool { return s.aheadAtGate(c) != nil }

func (s *reference) aheadAtGate(c *call) *call {
	for op := range s.rules.Operations {
		for _, w := range s.gate {
			if w.op == op && w.arrival < c.arrival && s.conflict(w.op, c.op) && !(s.rules.Operations[op].Looks == guards.AtState && s.knownFalse[op]) {
				return w
			}
		}
	}
	return nil
}

// start makes c run, after counting whom it passes.
func (s *reference) start(c *call) {
	if s.rules.MaxBypass > 0 {
		for op := range s.rules.Operations {
			for _, w := range s.waiting(op) {
				if w.arrival < c.arrival && slices.Contains(s.inside, w) && s.mayBeOpen(w) {
					w.bypassed++
				}
			}
		}
	}
	if !c.try {
		s.remove(c)
	}
	s.running = append(s.running, c)
	s.started(c.op)
}

func (s *reference) started(op int) {
	s.last = op
	s.changed(op)
}

// changed forgets what is known, if the operation changes the state.
func (s *reference) changed(op int) {
	if s.rules.Operations[op].Kind == kernel.Function {
		return
	}
	clear(s.knownFalse)
	for _, c := range slices.Concat(s.inside, s.gate) {
		c.knownFalse = false
	}
}

// counted forgets what is known of guards that look at waiting counts.
func (s *reference) counted() {
	for op := range s.rules.Operations {
		if s.looks(op, guards.AtWaiting) {
			delete(s.knownFalse, op)
			for _, c := range slices.Concat(s.inside, s.gate) {
				c.knownFalse = c.knownFalse && c.op != op
			}
		}
	}
}

// remove takes a waiting request from the gate or from inside.
func (s *reference) remove(c *call) {
	if i := slices.Index(s.gate, c); i >= 0 {
		s.gate = slices.Delete(s.gate, i, i+1)
		s.leftGate(c.op)
		return
	}
	i := slices.Index(s.inside, c)
	s.inside = slices.Delete(s.inside, i, i+1)
	s.counted()
	s.unwatched(c.op)
}

func (s *reference) leftGate(op int) {
	if !slices.ContainsFunc(s.gate, func(w *call) bool { return w.op == op }) {
		s.unwatched(op)
	}
}

// unwatched: an answer is worth nothing once nobody inside waits for the guard,
// for the state may change then without the kernel.
func (s *reference) unwatched(op int) {
	if len(s.waiting(op)) == 0 {
		delete(s.knownFalse, op)
	}
}

// letIn moves requests inside, in order of arrival, until a guard over waiting
// counts opens or something fails. A try is decided and returned.
func (s *reference) letIn() (c *call, err error, moved bool) {
	for {
		i := slices.IndexFunc(s.gate, func(c *call) bool { return !s.barred(c.op) })
		if i < 0 {
			return nil, nil, moved
		}
		c, moved = s.gate[i], true
		s.gate = slices.Delete(s.gate, i, i+1)
		if c.try {
			err := s.decide(c)
			s.leftGate(c.op)
			return c, err, true
		}
		s.inside = append(s.inside, c)
		s.counted()
		if s.countOpened() || len(s.failed) > 0 {
			return nil, nil, true
		}
	}
}

func (s *reference) countOpened() bool {
	for op := range s.rules.Operations {
		if s.looks(op, guards.AtWaiting) && !s.barred(op) && s.firstOpen(op) != nil {
			return true
		}
	}
	return false
}

func (s *reference) firstOpen(op int) *call {
	for _, c := range s.waiting(op) {
		if slices.Contains(s.inside, c) && s.mayBeOpen(c) {
			return c
		}
	}
	return nil
}

// decide starts a try, or says what comes first or which guard is false.
func (s *reference) decide(c *call) error {
	name := func(op int) string { return s.rules.Operations[op].Name }
	for op := range s.rules.Operations {
		if s.conflict(c.op, op) && s.firstOpen(op) != nil {
			return &kernel.Refused{Operation: name(c.op), Behind: name(op)}
		}
	}
	if w := s.aheadAtGate(c); w != nil {
		return &kernel.Refused{Operation: name(c.op), Behind: name(w.op)}
	}
	falsePart, err := s.ask(c)
	if err == nil && falsePart != "" {
		err = &kernel.Refused{Operation: name(c.op), Guard: falsePart}
	}
	if err == nil {
		s.start(c)
	}
	return err
}

func (s *reference) complete(c *call) {
	i := slices.Index(s.running, c)
	s.running = slices.Delete(s.running, i, i+1)
	s.changed(c.op)
}

func (s *reference) begin(op int) {
	s.begun = append(s.begun, op)
	s.changed(op)
}

func (s *reference) end(op int) {
	i := slices.Index(s.begun, op)
	s.begun = slices.Delete(s.begun, i, i+1)
	s.last = op // not before, as it might be abandoned
	s.changed(op)
}

func (s *reference) abandon(op int) {
	i := slices.Index(s.begun, op)
	s.begun = slices.Delete(s.begun, i, i+1)
}

func (s *reference) refuted(c *call) {
	if s.looks(c.op, guards.AtArgument) {
		c.knownFalse = true
	} else {
		s.knownFalse[c.op] = true
	}
}

func (s *reference) answered(falseOps []int, open int) {
	for _, op := range falseOps {
		s.knownFalse[op] = true
	}
	delete(s.knownFalse, open)
}

func (s *reference) withdraw(c *call) { s.remove(c) }

func (s *reference) close(err error) {
	if s.closed == nil {
		s.closed = err
	}
}
