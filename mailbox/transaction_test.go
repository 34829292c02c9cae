package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

var (
	// transacting objects take part in transactions.
	transacting = mix{
		operations: 4, arrive: 7, next: 2, drain: 3, complete: 4, withdraw: 1, decline: 1, begin: 1, end: 1, walk: 1, close: 1,
		requeue: 2, rerank: 1, noThread: 1, failed: 1, hold: 1, release: 2, transacted: 3,
		looks:  []guards.Looks{guards.AtState, guards.AtArgument, guards.AtArgument, guards.AtWaiting, guards.AtArgument | guards.AtWaiting},
		bounds: []int{0, 0, 1, 2}, families: 4, scopes: 2, all: 1,
	}
	// transactingTight objects have bounded queues, too, and policies that may fail.
	transactingTight = mix{
		operations: 3, arrive: 8, next: 2, drain: 3, complete: 4, withdraw: 1, decline: 1, begin: 1, end: 1, close: 1,
		requeue: 2, rerank: 1, policy: 1, noThread: 1, failed: 1, hold: 1, release: 2, transacted: 3,
		looks:  []guards.Looks{guards.AtState, guards.AtState, guards.AtArgument, guards.AtWaiting},
		bounds: []int{0, 0, 2}, bounded: 3, families: 4, scopes: 2, all: 1,
	}
)

// What transactions retain is in the way of all others until it is released, and nothing else is, as the
// rules say.
func TestTransactionsDecideAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(transacting)) }

// The same if queues are bounded.
func TestBoundedTransactionsDecideAsTheRulesSay(t *testing.T) {
	rapid.Check(t, drive(transactingTight))
}

// drawTransactions draws whether the object takes part in transactions.
func (w *world) drawTransactions() {
	if w.mix.transacted == 0 {
		return
	}
	w.rules.Transactional = true
	w.rules.Commuting = w.src.choose(2, "commuting") == 1
}

// drawTransaction draws the transaction of a request, or none.
func (w *world) drawTransaction() *mailbox.Transaction {
	if !w.rules.Transactional || w.src.choose(4, "in a transaction") >= w.mix.transacted {
		return nil
	}
	i := w.src.choose(3, "transaction")
	if i < len(w.open) {
		return w.open[i]
	}
	w.names++
	t := &mailbox.Transaction{Named: named(fmt.Sprintf("t%d", w.names))}
	t.Record = t
	w.open = append(w.open, t)
	return t
}

// release ends a transaction, perhaps while requests of it run or wait.
func (w *world) release() {
	if len(w.open) > 0 {
		w.releaseOne(w.src.choose(len(w.open), "released"))
	}
}

func (w *world) releaseOne(i int) {
	t := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	w.input()
	changed := !w.k.Runs() && t.Holds() && w.src.choose(2, "undone") == 1
	w.logf("release %s, changed: %v", t.Named, changed)
	if changed {
		w.newState()
		w.logf("  state %+v", w.state)
	}
	if changed {
		w.outdate()
	}
	w.k.Release(t, changed)
	w.ref.release(t, changed)
	if t.Holds() {
		w.fatalf("%s holds something, though it has been released", t.Named)
	}
}

// isolated: requests of the two operations conflict if they are of different transactions, or only one is.
func (s *reference) isolated(a, b int) bool {
	changes := func(op int) bool { return s.rules.Operations[op].Kind != mailbox.Function }
	return s.rules.Transactional && !s.rules.Commuting && (changes(a) || changes(b))
}

// apart: the two requests conflict for that reason.
func (s *reference) apart(a, b *call) bool { return a.tx != b.tx && s.isolated(a.op, b.op) }

// holds: a request of the transaction runs, or is retained.
func (s *reference) holds(t *mailbox.Transaction) bool {
	of := func(c *call) bool { return c.tx == t }
	return t != nil && (slices.ContainsFunc(s.running, of) || slices.ContainsFunc(s.retained, of))
}

// begunBars: a request of the operation that has been announced conflicts with c.
func (s *reference) begunBars(c *call, op int) bool {
	return s.rules.Conflicts.Between(c.op, op) || c.tx != nil && s.isolated(c.op, op)
}

func (s *reference) barredByBegun(c *call) bool {
	return slices.ContainsFunc(s.begun, func(b int) bool { return s.begunBars(c, b) })
}

// barredByRetained: another transaction retains what c conflicts with. Of a predicate it is not known.
func (s *reference) barredByRetained(c *call) bool {
	return slices.ContainsFunc(s.retained, func(h *call) bool { return s.retainedBars(c, h) })
}

func (s *reference) retainedBars(c, h *call) bool {
	if h.tx == c.tx {
		return false
	}
	scope := s.rules.Conflicts.Within(c.op, h.op)
	return s.clash(c, h) || scope >= 0 && s.rules.Conflicts.Scopes()[scope].Kind() == guards.ByPredicate
}

func (s *reference) release(t *mailbox.Transaction, changed bool) {
	s.released[t] = true
	s.settled = false
	s.retained = slices.DeleteFunc(s.retained, func(h *call) bool { return h.tx == t })
	if changed {
		s.outdate()
	}
}

// checkRetained checks that no more and no less is retained than has run, but for what is alike.
func (w *world) checkRetained() {
	type kind struct {
		tx      string
		op      int
		extents string
	}
	of := func(op int, c *mailbox.Claim) kind {
		return kind{c.Transaction.Named.String(), op, fmt.Sprint(c.Extents)}
	}
	want, got := map[kind]bool{}, map[kind]bool{}
	for _, h := range w.ref.retained {
		want[of(h.op, h.turn)] = true
	}
	for r := range w.k.Running() {
		if r.State() == mailbox.StateRetained {
			if got[of(r.Op, r.Claim)] = true; r.Held() != r.Claim.Transaction.Named.String() || r.Record != r.Claim.Transaction {
				w.fatalf("%s is retained by %s", r.Held(), r.Claim.Transaction.Named)
			}
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(got) || w.k.Retains() != (len(want) > 0) {
		w.fatalf("retained: %v, want %v", got, want)
	}
}

// checkBlockers checks that a request waits, by the scheduler, for all that it conflicts with directly, and
// for nothing of its own transaction whose body has ended.
func (w *world) checkBlockers(c *call) {
	if c.request.State() == mailbox.StateOverflow {
		return
	}
	blockers := slices.Collect(w.k.Blockers(c.request))
	for _, b := range blockers {
		if b.State() == mailbox.StateRetained && b.Claim.Transaction == c.tx && w.ref.inner(c) {
			w.fatalf("%s waits for what its own transaction retains", w.name(c))
		}
	}
	for _, h := range w.ref.retained {
		if w.ref.retainedBars(c, h) && !slices.ContainsFunc(blockers, func(b *mailbox.Request) bool {
			return b.State() == mailbox.StateRetained && b.Claim.Transaction == h.tx
		}) {
			w.fatalf("%s does not wait for %s", w.name(c), h.tx.Named)
		}
	}
	for _, r := range w.ref.running {
		if w.ref.clashSurely(c, r) && !w.ref.around(r, c) && !slices.Contains(blockers, r.request) {
			w.fatalf("%s does not wait for %s", w.name(c), w.name(r))
		}
	}
}

// checkCounters checks that the scheduler counts nothing any more, as all is over.
func (w *world) checkCounters() {
	if counted := w.k.Counted(); counted != "" {
		w.fatalf("all is over, but counted are %s", counted)
	}
}

// named is the name of a transaction.
type named string

func (n named) String() string { return string(n) }
