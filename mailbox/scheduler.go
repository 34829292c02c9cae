package mailbox

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// opSet is a set of operations, and how many they are.
type opSet struct {
	guards.Set
	n int
}

// join puts an operation into the set that is not in it, and leave takes out one
// that is.
func (a *opSet) join(op int)  { a.Add(op); a.n++ }
func (a *opSet) leave(op int) { a.Remove(op); a.n-- }

// Scheduler holds the waiting and the running queue of one shared object.
type Scheduler struct {
	// Note is whatever the user of the scheduler wants to keep about what runs; nil again when
	// another request begins to run. The scheduler does not look at it.
	Note any

	rules  *Rules
	object Object

	queues   []queue // one per operation
	admitted opSet   // operations with admitted requests
	entering opSet   // operations with requests in the entry queue
	runs     opSet   // operations of which at least one request runs, or is retained
	bodies   int     // requests that run, those announced by Begin included
	retained int     // requests that transactions retain
	total    int     // requests that wait, those in the overflow queue not included

	running    list
	threadless list  // requests that wait for a thread, of all operations
	failed     list  // requests that Next has yet to report as failed
	stopped    error // set once the object takes no more requests
	held       bool  // nothing starts: see Hold

	arrivals uint64 // requests that have arrived so far
	newest   uint64 // order number of the last arrival
	entered  uint64 // the greatest order number that has been admitted
	older    uint64 // the order number that a requeued request comes after, if a policy compares: see joining
	step     uint64 // inputs and starts so far
	settled  uint64 // the step after which nothing that waits can start before the next
	rested   uint64 // the inputs after which nothing that waits could start
	rests    uint64 // how often nothing more could start, or no thread was there for it
	version  uint64 // starts and completions of state-changing requests so far, and one
	counting uint64 // admissions and departures so far
	asks     uint64 // results of guards that have been noted for admitted requests
	last     int    // the operation that started last

	// What the rules use of the following; what they do not use stays empty.
	bound    int  // of bypasses; 0 if there is none
	counted  int  // how far bypasses are counted; 0 if they are not
	compares bool // a policy compares requests: all in the entry queue are admitted before one starts
	choosing bool // and chooses
	watchful bool // some guard looks at waiting counts
	headed   bool // some entry has a head of line
	bounded  bool // some queue is
	simple   bool // see unchanged
	lean     bool // requests of one operation need not be compared: see pick

	overflowing int        // requests in the overflow queue
	tries       int        // requests in the entry queue that are never admitted to wait, so that no bound concerns them
	resumes     int        // admitted requests that no bound concerns: see Operation.Resumes
	retries     []*Request // in the entry queue: a Try each that has been requeued
	extras      []*Request // admitted beyond a bound until the scheduler is quiescent: they have been requeued
	trying      *Request   // being decided: a Try, or one in the overflow queue
	kept        []int      // families of which some operation declares what it opens
	checks      []opening  // of which the declaration is to be checked
	spare       []*line    // for families
	loose       lines      // without a place among those of their family
	index       *index     // of what runs of scoped operations; nil if there are none
	scopes      []guards.Scope
	transacted  opSet   // operations of which a request runs, or is retained, on behalf of a transaction
	found       bool    // see BlockersChanged
	cursors     *Cursor // inspections under way

	// Scratch space of pick.
	heads        []candidate
	passed       guards.Set // operations that are before the next that is considered
	way          []*Request // likewise: requests of scoped operations
	eligible     []*Request
	policyFailed error
	comparedLast [2]*Request
}

// New returns a scheduler without requests.
func New(rules *Rules, object Object) *Scheduler {
	n := len(rules.Operations)
	if rules.Conflicts.Len() != n {
		panic(fmt.Sprintf("scheduler: a conflict table of %d operations for an object of %d", rules.Conflicts.Len(), n))
	}
	sets := make(guards.Set, 4*len(guards.NewSet(n)))
	w := len(sets) / 4
	s := &Scheduler{
		rules: rules, object: object,
		queues:   make([]queue, n),
		admitted: opSet{Set: sets[:w:w]}, entering: opSet{Set: sets[w : 2*w : 2*w]}, runs: opSet{Set: sets[2*w : 3*w : 3*w]}, passed: sets[3*w:],
		last: -1, version: 1, rests: 1, bounded: rules.Bound.Overflow != Unbounded, bound: rules.MaxBypass, counted: rules.CountBypass,
	}
	if s.bound > 0 {
		s.counted = s.bound
	}
	within := false
	if p := rules.Policy; p != nil {
		s.choosing = p.Choose != nil
		s.compares = s.choosing || p.Before != nil
		within = p.Within
	}
	for op := range rules.Operations {
		o, q := &rules.Operations[op], &s.queues[op]
		argument := o.Looks&guards.AtArgument != 0
		q.op, q.row, q.guard, q.out.where = op, rules.Conflicts.Row(op), o.Guard, inOverflow
		q.near = q.row
		q.family, q.shared, q.own = o.Family, !o.Family && !argument, !o.Family && argument
		q.headed, q.each = q.own && o.HeadOfLine, q.own && !o.HeadOfLine
		q.one, q.sorted = !q.family && !q.each, q.family || within
		q.changes, q.counts, q.resumes = o.Kind != Function, o.Looks&guards.AtWaiting != 0, o.Resumes
		q.together = !q.changes && !q.row.Has(op)
		if q.family {
			q.members = map[any]*line{}
		}
		s.watchful = s.watchful || q.counts
		s.headed = s.headed || o.HeadOfLine
		s.bounded = s.bounded || o.Bound.Overflow != Unbounded
		for _, family := range o.Opens {
			if !rules.Operations[family].Looks.Lapses() && !slices.Contains(s.kept, family) {
				s.kept = append(s.kept, family)
				s.queues[family].kept, s.queues[family].fresh = true, 1
			}
		}
	}
	for op := range s.queues {
		if rules.Scoped(op) {
			s.scope(op)
		}
	}
	if rules.Transactional {
		s.isolate()
	}
	s.simple = s.index == nil && !rules.AllCompatible && !s.bounded && rules.Policy == nil
	s.lean = s.index == nil && !rules.AllCompatible && s.bound == 0 && !s.choosing
	for op := range s.queues {
		q := &s.queues[op]
		q.bare = q.one && !q.sorted && s.counted == 0 && !s.bounded
		q.joins = !s.watchful && !s.bounded && !within && !rules.Operations[op].HeadOfLine
	}
	return s
}

// scope makes an operation scoped.
func (s *Scheduler) scope(op int) {
	t, q := &s.rules.Conflicts, &s.queues[op]
	if s.index == nil {
		s.index, s.scopes = newIndex(t), t.Scopes()
	}
	q.scoped, q.always, q.scopes = true, guards.NewSet(t.Len()), guards.NewSet(t.Len())
	for other := range s.queues {
		switch {
		case t.Within(op, other) >= 0:
			q.scopes.Add(other)
		case t.Between(op, other):
			q.always.Add(other)
		}
	}
}

// Arrive hands a new request to the scheduler. It waits in the entry queue until Next admits
// it. If its queue is bounded, it or another may have failed by now, which
// Failed tells.
func (s *Scheduler) Arrive(r *Request) {
	q := s.register(r)
	if s.blocked(q, r, certain) {
		s.hasToWait(r)
	}
	r.state = StateEntry
	if q.entry.push(r); r.prev == nil {
		s.entering.join(r.Op)
	}
	q.length.Add(one)
	s.countTry(q, r, 1)
	if s.bounded && s.stuck(q, r) {
		s.settled = s.step
		back := s.turnBack()
		if (s.overflow() || back) && r.state == StateEntry {
			s.settled = 0 // another has left, which may have come before it
		}
	}
}

// register counts r among the arrivals, and returns its queue.
func (s *Scheduler) register(r *Request) *queue {
	s.step++
	s.arrivals++
	r.arrival = s.arrivals
	s.number(r)
	s.log(Arrived, r.Op, r, "")
	r.bypassed = 0
	r.marks &= extra
	r.result.stamp = 0
	r.rests = s.rests
	s.total++
	return &s.queues[r.Op]
}

// hasToWait notes that r cannot start in the step in which it has come.
func (s *Scheduler) hasToWait(r *Request) { r.rests = s.rests - 1 }

// enter admits r, which has been registered; the length of its queue changes by the given. If
// the policy fails, so has r.
func (s *Scheduler) enter(r *Request, longer uint64) {
	q := &s.queues[r.Op]
	r.state = StateAdmitted
	if q.in.insert(r); q.in.first == q.in.last {
		s.admitted.join(r.Op)
	}
	q.length.Add(longer)
	q.joined.Add(1)
	if q.resumes {
		s.resumes++
	}
	s.counting++
	s.entered = max(s.entered, r.seq)
	if r.bypassed > 0 {
		s.cameIn(q, r)
	}
	l := &q.line
	if q.family {
		l = s.lineFor(q, r)
	}
	if !q.scoped || r.came == 0 { // else others have come before it that are still in the entry queue
		l.latest = max(l.latest, r.seq)
	}
	if !q.one || q.sorted {
		s.lineUp(q, &q.in, r)
	}
}

// Complete says that the body of a running request has ended, and so has the request; unless it
// belongs to a transaction, which retains it. For one that was granted but never ran, use Decline.
func (s *Scheduler) Complete(r *Request) { s.complete(r, true) }

// complete is Complete; ran is false for Decline.
func (s *Scheduler) complete(r *Request, ran bool) {
	s.step++
	s.log(Ended, r.Op, r, "")
	s.running.remove(r)
	if t := r.transaction(); t != nil {
		t.runs--
	}
	if ran && s.retain(r) {
		s.bodies--
	} else {
		s.vacate(r)
	}
	r.state = StateDone
	s.hasRun(&s.queues[r.Op], s.opener(r))
}

// Decline takes back a request that Next returned but that has not begun to run:
// it leaves the running queue without having changed anything, and counts as one
// that has been withdrawn.
func (s *Scheduler) Decline(r *Request) {
	q := &s.queues[r.Op]
	q.started--
	q.withdrawn++
	s.complete(r, false)
}

// Requeue says that a running request has ended its turn, and now asks for the
// operation op with the key: it is admitted, behind those that are and
// before those in the entry queue. If it keeps its place it is considered as if it had
// waited here since it first arrived. If its queue is full, and it cannot start
// before the scheduler is quiescent, it fails. A Try stays one: it starts in its turn, or fails
// with *RefusedError.
func (s *Scheduler) Requeue(r *Request, op int, key any, claim *Claim, keep bool) {
	s.Complete(r)
	r.Op, r.Key, r.Claim = op, key, claim
	s.Enter(r, keep)
}

// Enter admits a request again: it was announced by Begin, has
// ended its turn by End, and asks to be requeued.
func (s *Scheduler) Enter(r *Request, keep bool) {
	arrival, seq := r.arrival, r.seq
	q := s.register(r)
	r.seq, r.came = s.joining(), 0
	if keep && seq != 0 {
		r.arrival, r.seq = arrival, seq
	}
	if s.blocked(q, r, certain) {
		s.hasToWait(r)
	}
	if r.Try {
		s.retries = append(s.retries, r)
		s.toEntry(q, r)
		q.length.Add(one)
		s.countTry(q, r, 1)
		s.entered = max(s.entered, r.seq) // the number is taken
		return
	}
	s.enter(r, one|isAdmitted)
	if s.bounded && r.state == StateAdmitted && !q.resumes {
		if _, _, full := s.full(q, 0); full {
			r.marks |= extra
			s.extras = append(s.extras, r)
		}
	}
}

// Begin says that a request the scheduler has not seen runs: one that found the
// object idle and took it without asking. End says that it has ended.
func (s *Scheduler) Begin(op int) {
	s.step++
	s.log(Started, op, nil, "")
	s.begin(op)
}

// End says that a request announced by Begin has ended. Only now is it certain
// that it had its turn. Opens says which keys of the families that its operation
// declares it can have opened; if it is nil, it can have opened all.
func (s *Scheduler) End(op int, opens Opener) {
	s.step++
	s.log(Ended, op, nil, "")
	s.last = op
	s.queues[op].started++
	s.end(op, opens)
}

// Ran is Begin and End in one, for a request that has ended before the scheduler was
// told of it.
func (s *Scheduler) Ran(op int, opens Opener) {
	if len(s.kept) > 0 {
		s.Begin(op)
		s.End(op, opens)
		return
	}
	s.step += 2
	s.log(Started, op, nil, "")
	s.log(Ended, op, nil, "")
	s.last = op
	q := &s.queues[op]
	q.started++
	if q.changes {
		s.version += 2
	}
}

// Abandon says that a request announced by Begin never ran, and changed nothing.
func (s *Scheduler) Abandon(op int) {
	s.step++
	s.log(Abandoned, op, nil, "")
	s.runsNoMore(&s.queues[op])
}

func (s *Scheduler) begin(op int) {
	if s.Note != nil {
		s.Note = nil
	}
	q := &s.queues[op]
	s.bodies++
	if q.runs++; q.runs == 1 {
		s.runs.join(op)
	}
	if q.changes {
		s.version++
		if len(s.kept) > 0 {
			s.outdate(op)
		}
	}
}

func (s *Scheduler) end(op int, opens Opener) {
	q := &s.queues[op]
	s.runsNoMore(q)
	s.hasRun(q, opens)
}

// hasRun notes what a body of the operation that has ended can have opened.
func (s *Scheduler) hasRun(q *queue, opens Opener) {
	if q.changes {
		s.version++
		if len(s.kept) > 0 {
			s.opened(q.op, opens)
		}
	}
}

func (s *Scheduler) runsNoMore(q *queue) {
	s.bodies--
	if q.runs--; q.runs == 0 {
		s.runs.leave(q.op)
	}
}

// Withdraw takes a waiting request out of its queue, and reports whether it was
// waiting; if not, nothing is changed.
func (s *Scheduler) Withdraw(r *Request) bool {
	if !r.Waits() {
		return false
	}
	s.step++
	s.log(Withdrawn, r.Op, r, "")
	s.queues[r.Op].withdrawn++
	s.leave(r)
	r.state = StateDone
	return true
}

// Drop lets go of a request that has failed, so that Next does not report that, and
// reports true. If it has not failed, or that has been reported, nothing is changed.
func (s *Scheduler) Drop(r *Request) bool {
	if r.state != StateFailed {
		return false
	}
	s.failed.remove(r)
	r.state, r.err = StateDone, nil
	return true
}

// Rerank gives a request another rank, and reports whether it was waiting; if not,
// nothing is changed. It may have failed by now, with its policy.
func (s *Scheduler) Rerank(r *Request, rank int64) bool {
	if !r.Waits() {
		return false
	}
	s.step++
	s.log(Reranked, r.Op, r, "")
	q := &s.queues[r.Op]
	if r.state != StateAdmitted || !q.sorted {
		r.Rank = rank
		return true
	}
	s.lineDown(q, &q.in, r)
	if q.family {
		if n := &s.lineFor(q, r).at[inQueue].node; n.placed && n.v.r == r {
			q.in.order.remove(n)
		}
	}
	r.Rank = rank
	s.lineUp(q, &q.in, r)
	return true
}

// Close makes Next fail every waiting and every later request with err. What
// runs is not touched. Only the first call counts.
func (s *Scheduler) Close(err error) {
	if s.stopped == nil {
		s.step++
		s.stopped = err
	}
}

// Hold lets nothing start, and no guard be asked, until Free (R8): a step in the life of
// the object is about to be taken, and conflicts with everything. What runs may end;
// requests arrive and wait, a Try included, and can be withdrawn, fail, be turned
// away by bounds and asked why they wait; Close still ends the object. Holding twice
// is holding once.
func (s *Scheduler) Hold() {
	if !s.held {
		s.step++
		s.logObject(Held)
		s.held = true
	}
}

// Free ends Hold. The requests that wait have kept their places and ages. If the
// step has changed the state no result of a guard stands any more, so that
// all are asked anew.
func (s *Scheduler) Free(changed bool) {
	if !s.held {
		return
	}
	s.step++
	s.logObject(Freed)
	s.held = false
	if changed {
		s.outdateAll()
	}
}

// Lapse says that guards may have turned true by themselves, as time has passed: no result of a
// guard stands any more, so that all are evaluated anew.
func (s *Scheduler) Lapse() {
	s.step++
	s.logObject(Lapsed)
	s.outdateAll()
}

// LapseOf is Lapse for the guard of one request, which looks at its argument, and for those of a family with its key. If
// the request does not wait nothing is changed.
func (s *Scheduler) LapseOf(r *Request) {
	if !r.Waits() {
		return
	}
	s.step++
	s.log(Lapsed, r.Op, r, "")
	q := &s.queues[r.Op]
	a := q.resultOf(r)
	a.stamp = 0
	noted(q, r, a)
	switch r.state {
	case StateAdmitted:
		q.in.unsee(q, r)
	case StateOverflow:
		q.out.unsee(q, r)
	}
}

func (s *Scheduler) outdateAll() {
	s.version++
	for _, family := range s.kept {
		s.queues[family].fresh = s.version // it has not been declared what this opens
	}
}

// PolicyFailed says that a policy will not return that was asked about some waiting
// requests. They fail with err.
func (s *Scheduler) PolicyFailed(err error, about ...*Request) {
	s.trying = nil
	for _, r := range about {
		if r.Waits() {
			s.fail(r, err)
		}
	}
}

// fail queues a waiting request to be reported as failed by Next.
func (s *Scheduler) fail(r *Request, err error) {
	s.log(Failing, r.Op, r, "")
	s.leave(r)
	r.err = err
	r.state = StateFailed
	s.failed.push(r)
}

// leave takes a waiting request out of the queue it is in.
func (s *Scheduler) leave(r *Request) {
	q := &s.queues[r.Op]
	if s.Waited(r) {
		q.waited++
	}
	if r.Claim != nil {
		r.Claim.last = nil // or else it would keep all that have ever blocked another
	}
	if r.marks.has(extra) {
		s.notExtra(r)
	}
	s.take(q, r, one)
	if s.overflowing > 0 {
		s.refill() // at once: the next to come has no claim to the room
	}
}

// take takes a waiting request from where it is. The queue is shorter by the given,
// and, if it was admitted, by that.
func (s *Scheduler) take(q *queue, r *Request, shorter uint64) {
	switch r.state {
	case StateAdmitted:
		s.takeAdmitted(q, r)
		shorter |= isAdmitted
	case StateEntry:
		s.leaveEntry(q, r)
		if r.bypassed > 0 {
			s.left(q, r)
		}
	case StateAwaitingThread:
		s.passCursors(r)
		s.threadless.remove(r)
		s.countTry(q, r, -1)
	case StateOverflow:
		s.leaveOverflow(q, r)
	}
	if r.state != StateOverflow {
		s.total--
	}
	q.unwatched()
	q.length.Add(-shorter)
}

// takeAdmitted is take for an admitted request.
func (s *Scheduler) takeAdmitted(q *queue, r *Request) {
	s.passCursors(r)
	if s.counted > 0 {
		s.left(q, r)
	}
	if q.resumes {
		s.resumes--
	}
	l := &q.line
	if q.family {
		l = s.lineFor(q, r) // there is none any more if the policy has failed about all of it
	}
	if !q.one || q.sorted {
		s.lineDown(q, &q.in, r)
	}
	if q.in.remove(r); q.in.first == nil {
		s.admitted.leave(r.Op)
	}
	if len(l.passed) > 0 {
		l.forgetPassed(q.eldest(l))
	}
	if q.family {
		if !s.watched(q, l) {
			l.result.stamp = 0
		}
		s.loosen(q, l)
	}
	s.counting++
}
