package mailbox

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// Transaction is a transaction as the scheduler of one object knows it: what it retains there. Its
// requests have it in their Claim. The body of such a request ends by Complete, as any other does; but
// the request stays in the running queue, with its footprint, until Release: that is strict two-phase
// locking, and how the Transactional Synchronizer of the text 003 refines its scheduler.
type Transaction struct {
	// Named names the transaction in explanations.
	Named fmt.Stringer
	// Record is that of the requests that are retained, which the scheduler yields among those that
	// run. It belongs to the user of the scheduler.
	Record any

	retained []*Request
	room     [1]*Request
	runs     int // its requests that run
	released bool
}

// retainable is a claim, and room for what stands for its request when that is retained.
type retainable struct {
	Claim
	kept Request
}

// Claim returns a new claim of a request of the transaction.
func (t *Transaction) Claim() *Claim {
	r := &retainable{Claim: Claim{Transaction: t}}
	r.keeps = &r.kept
	return &r.Claim
}

// alike is how many of the requests retained last are compared with one that is to be retained, as
// one of two that are alike is enough.
const alike = 8

// Holds reports whether the transaction retains any request.
func (t *Transaction) Holds() bool { return len(t.retained) > 0 }

// transaction returns the transaction that r belongs to, or nil.
func (r *Request) transaction() *Transaction {
	if r.Claim == nil {
		return nil
	}
	return r.Claim.Transaction
}

// Held returns the name of the transaction that retains r, which Running has yielded; it is empty if
// r runs.
func (r *Request) Held() string {
	if r.state != StateRetained {
		return ""
	}
	return r.Claim.Transaction.Named.String()
}

// retain keeps the footprint of r, whose body has ended, if r belongs to a transaction: a request in
// its place goes on running. Record and argument of r are not kept. It reports false if there is
// nothing to keep, as one retained before is like it.
func (s *Scheduler) retain(r *Request) bool {
	t := r.transaction()
	if t == nil || t.released {
		return false
	}
	last := t.retained[max(len(t.retained)-alike, 0):]
	if slices.ContainsFunc(last, func(h *Request) bool {
		return h.Op == r.Op && slices.Equal(h.Claim.Extents, r.Claim.Extents)
	}) {
		return false
	}
	h := r.Claim.keeps
	if h == nil { // the claim was not made by Transaction.Claim
		h = new(Request)
	}
	*h = Request{Op: r.Op, Claim: r.Claim, Record: t.Record, arrival: r.arrival, seq: r.seq}
	if s.index.asked[r.Op] {
		s.queues[r.Op].here[r.Claim.at] = h
	}
	s.keep(h)
	return true
}

// EndFor is End for a request that belongs to a transaction, which has found the object idle: so nothing
// is retained there. The transaction retains it, with the claim.
func (s *Scheduler) EndFor(op int, opens Opener, claim *Claim) {
	s.step++
	s.log(Ended, op, nil, "")
	s.last = op
	q := &s.queues[op]
	q.started++
	h := claim.keeps
	*h = Request{Op: op, Claim: claim, Record: claim.Transaction.Record}
	s.enlist(h)
	s.occupy(h)
	claim.Transaction.runs--
	s.keep(h)
	s.bodies--
	s.hasRun(q, opens)
}

// keep adds h, in the place of a request that has ended, to what its transaction retains.
func (s *Scheduler) keep(h *Request) {
	t := h.Claim.Transaction
	h.state = StateRetained
	if t.retained == nil {
		t.retained = t.room[:0]
	}
	t.retained = append(t.retained, h)
	h.Claim.retained = true
	s.running.push(h)
	s.queues[h.Op].retained++
	s.retained++
	s.log(Retained, h.Op, h, "")
}

// Release ends the transaction: what it retains leaves the running queue. Changed says that the state
// has changed since the last of its bodies, as these have been undone; then no result of a guard
// stands any more. If requests of the transaction still run they are not retained.
func (s *Scheduler) Release(t *Transaction, changed bool) {
	if t.released {
		return
	}
	s.step++
	t.released = true
	for _, h := range t.retained {
		s.log(Released, h.Op, h, "")
		s.running.remove(h)
		s.queues[h.Op].retained--
		s.retained--
		s.bodies++ // which runsNoMore counts out
		s.vacate(h)
		h.state = StateDone
	}
	t.retained, t.room = nil, [1]*Request{}
	if changed {
		s.outdateAll()
	}
}

// Retains reports whether any transaction retains a request.
func (s *Scheduler) Retains() bool { return s.retained > 0 }

// Transacts reports whether a request of any transaction runs, or is retained.
func (s *Scheduler) Transacts() bool { return s.transacted.n > 0 }

// isolate finds with which operations those of other transactions, and of none, conflict. If the
// table's compatible operations commute, that is what the table says. Else only functions do for
// certain: two other operations may be safe together, and yet see what the transaction has not
// committed.
func (s *Scheduler) isolate() {
	s.transacted = opSet{Set: guards.NewSet(len(s.queues))}
	if s.rules.Commuting {
		return
	}
	for op := range s.queues {
		q := &s.queues[op]
		q.isolated, q.near = guards.NewSet(len(s.queues)), slices.Clone(q.row)
		for other := range s.queues {
			if q.changes || s.queues[other].changes {
				q.isolated.Add(other)
				q.near.Add(other)
			}
		}
	}
}

// apart reports whether two requests, at least one of which belongs to a transaction, conflict though
// the table may let them run beside each other.
func (s *Scheduler) apart(r, other *Request) bool {
	q := &s.queues[r.Op]
	return q.isolated != nil && r.transaction() != other.transaction() && q.isolated.Has(other.Op)
}

// blockedApart reports whether something runs that r is kept apart from, which conflicts with all
// requests of its operation of other transactions, or of none.
func (s *Scheduler) blockedApart(q *queue, r *Request) bool {
	if r.transaction() != nil {
		return q.isolated.Meets(s.runs.Set) // none of its own: see nested
	}
	return s.transacted.n > 0 && q.isolated.Meets(s.transacted.Set)
}

// occupy counts r, which starts, among what runs on behalf of its transaction, if it has one.
func (s *Scheduler) occupy(r *Request) {
	t := r.transaction()
	if t == nil {
		return
	}
	t.runs++
	q := &s.queues[r.Op]
	if q.transacted++; q.transacted == 1 {
		s.transacted.join(r.Op)
	}
	s.found = true // it may block what waits, and another request of the transaction may wait
}

// vacate takes r, which has run, or was retained, out of what runs.
func (s *Scheduler) vacate(r *Request) {
	q := &s.queues[r.Op]
	if r.Claim != nil && s.index != nil {
		s.delist(r)
	}
	if r.transaction() != nil {
		if q.transacted--; q.transacted == 0 {
			s.transacted.leave(r.Op)
		}
	}
	s.runsNoMore(q)
}
