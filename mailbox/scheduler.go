// Package mailbox is the scheduler of one object's mailbox, which decides which request
// may start: a pure state machine, without goroutine, lock, clock or channel.
//
//	          Arrive            admit                  start             Complete
//	request ─────────► gate ───────────► queues ─────────────► running ──────────►
//	             │       │                ▲ │  guards · conflicts · policy  │
//	             ▼       └──── Withdraw ──┼─┘                               │
//	           door                       └──────────── Requeue ────────────┘
//
// Arrivals, completions, requeues and withdrawals go in; the requests to start
// come out of Next, one at a time, whenever a goroutine is ready to run one. A Scheduler
// is not safe for concurrent use, and can be driven by hand: see the example. The objects of
// package activeobject run on one each.
//
// The package also has the words for what a scheduler says: why a request waits (Reason,
// Snapshot), what has been counted (Stats), and how a request fails that has not run.
//
// # The gate
//
// A request that arrives while something runs that it conflicts with stays
// outside, at the gate. When a request completes, those inside are reconsidered
// until none can start; then the ones at the gate are let in, one at a time in
// order of arrival: one that can start does so before the next one comes in. This is
// the eggshell of Ada's protected objects: a guard over waiting counts never sees
// those outside, and a burst that passes is not joined by latecomers. A policy that
// compares requests is shown all of them, and so all are let in before it is asked.
//
// A request that is requeued is inside already: it joins behind those inside and before
// those at the gate. If it can start it does so before another one is let in. A Try
// that is requeued never waits inside: it stays at the gate, and is decided before
// anything else, as soon as nothing that runs conflicts with it.
//
// Where threads are assigned on arrival, one that has none waits before the gate: see
// ArriveThreadless.
//
// # When a request starts
//
// A waiting request starts when
//
//   - nothing that runs conflicts with it,
//   - its guard holds (a guard is asked only when the first point is met, and no
//     answer outlives the start or completion of a request that changes state),
//   - it passes no request that comes before it and conflicts with it, unless
//     that request's guard is known to be false (or unless that waits for what runs, where
//     Rules.AllCompatible is set),
//   - no request that has been bypassed as often as the rules allow conflicts
//     with it,
//   - the object is not held (see Hold).
//
// What comes before what is the policy's word.
//
// Which requests conflict is the table's word about their operations, and, where that has
// scopes, about what they take up in these by their arguments: see Claim.
//
// # Lines
//
// The requests of an operation that share a guard's answer form a line: all of
// an entry's, if the guard looks at the state alone; those with equal keys, of a
// family of entries. A guard over the argument is asked for each request by
// itself. Whoever is not known to be closed is found without looking at those
// who are: see tree.
package mailbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// some is a set of some of the operations, and how many they are.
type some struct {
	guards.Set
	n int
}

// join puts an operation into the set that is not in it, and leave takes out one
// that is.
func (s *some) join(op int)  { s.Add(op); s.n++ }
func (s *some) leave(op int) { s.Remove(op); s.n-- }

// Scheduler holds the waiting and the running queue of one shared object.
type Scheduler struct {
	// Note is whatever the user of the scheduler wants to keep about what runs; nil again when
	// another request begins to run. The scheduler does not look at it.
	Note any

	rules  *Rules
	object Object

	queues []queue // one per operation
	inside some    // operations with requests inside
	gated  some    // operations with requests at the gate
	total  int     // requests that wait, those at the door not included

	running    list
	runningOps some // operations of which at least one runs

	threadless list // requests that wait for a thread, of all operations

	failed list  // requests that Next has yet to report as failed
	closed error // set once the object takes no more requests
	held   bool  // nothing starts: see Hold

	arrivals uint64 // requests that have arrived so far
	newest   uint64 // order number of an arrival; between two there is room for requests that are requeued
	entered  uint64 // the greatest order number that has come inside
	older    uint64 // the order number that a requeued request comes after, if a policy compares: see joining
	step     uint64 // inputs and starts so far
	settled  uint64 // the step after which nothing that waits can start before the next
	rested   uint64 // the inputs after which nothing that waits could start
	rests    uint64 // how often nothing more could start, or no thread was there for it
	version  uint64 // starts and completions of state-changing requests so far, and one
	counting uint64 // arrivals inside and departures so far
	last     int    // the operation that started last

	counted  int         // how far bypasses are: see counts
	walks    bool        // candidates are looked at by walk
	stills   bool        // see still
	compares bool        // all at the gate are let in before one starts, as a policy compares them
	single   bool        // requests of one operation only need not be compared: nobody is chosen, or counted
	trying   *Request    // being decided: a Try at the gate, or one at the door
	watchful bool        // some guard looks at waiting counts
	headed   bool        // some entry has a head of line
	bounded  bool        // some queue is
	doors    int         // requests at the door
	tries    int         // requests at the gate that never wait inside, so that no bound concerns them
	retries  []*Request  // at the gate: a Try each that has been requeued
	extras   []*Request  // inside, beyond a bound until the scheduler rests: they have been requeued
	kept     []int       // families of which some operation declares what it opens
	checks   []opening   // of which the declaration is to be checked
	heads    []candidate // scratch space of pick
	passed   guards.Set  // likewise: operations that whoever is considered next would pass
	eligible []*Request  // likewise
	misfits  []*Request  // what a policy has failed about, in pick
	misfit   error
	spare    []*line // for families
	loose    lines   // without a place among those of their family
	cursors  *Cursor // inspections under way
	found    bool    // see Found

	// For scoped operations; the index is nil if there are none.
	index  *index
	scopes []guards.Scope
	way    []*Request // scratch space of walk
	passes []*Request // whom a start bypasses, as bypass has found
	asks   uint64     // answers of guards that have been noted for requests that wait inside
}

// New returns a scheduler without requests.
func New(rules *Rules, object Object) *Scheduler {
	n := len(rules.Operations)
	if rules.Conflicts.Len() != n {
		panic(fmt.Sprintf("scheduler: a conflict table of %d operations for an object of %d", rules.Conflicts.Len(), n))
	}
	sets := make(guards.Set, 4*len(guards.NewSet(n)))
	w := len(sets) / 4
	k := &Scheduler{
		rules: rules, object: object,
		queues: make([]queue, n),
		inside: some{Set: sets[:w:w]}, gated: some{Set: sets[w : 2*w : 2*w]}, runningOps: some{Set: sets[2*w : 3*w : 3*w]}, passed: sets[3*w:],
		last: -1, version: 1, rests: 1, bounded: rules.Bound.Overflow != Unbounded,
		single:  rules.MaxBypass == 0 && (rules.Policy == nil || rules.Policy.Choose == nil),
		counted: rules.CountBypass,
	}
	if rules.MaxBypass > 0 {
		k.counted = rules.MaxBypass
	}
	if p := rules.Policy; p != nil {
		k.compares = p.Before != nil || p.Choose != nil
	}
	for op := range rules.Operations {
		o, q := &rules.Operations[op], &k.queues[op]
		k.watchful = k.watchful || o.Looks&guards.AtWaiting != 0
		k.headed = k.headed || o.HeadOfLine
		k.bounded = k.bounded || o.Bound.Overflow != Unbounded
		q.guard, q.each, q.changes, q.watchful = o.Guard, o.each(), o.changes(), o.Looks&guards.AtWaiting != 0
		q.together = !q.changes && !rules.Conflicts.Between(op, op)
		q.shared = !o.Family && o.Looks&guards.AtArgument == 0
		q.sorted = o.Family || rules.Policy != nil && rules.Policy.Within
		if o.Family {
			q.members = map[any]*line{}
		}
		for _, family := range o.Opens {
			if rules.Operations[family].Looks&(guards.AtWaiting|guards.AtTime) == 0 && !slices.Contains(k.kept, family) {
				k.kept = append(k.kept, family)
				k.queues[family].kept, k.queues[family].fresh = true, 1
			}
		}
	}
	for op := range k.queues {
		if rules.Scoped(op) {
			k.scope(op)
		}
	}
	k.walks = k.index != nil || rules.AllCompatible
	k.stills = !k.walks && !k.bounded && rules.Policy == nil
	within := rules.Policy != nil && rules.Policy.Within
	for op := range k.queues {
		q := &k.queues[op]
		q.plain = !q.sorted && !q.each && k.counted == 0 && !k.bounded
		free := !k.watchful && !k.bounded && !within // who comes inside changes nothing for others
		q.joins = free && !rules.Operations[op].HeadOfLine
	}
	return k
}

// scope makes an operation scoped.
func (k *Scheduler) scope(op int) {
	t, q := &k.rules.Conflicts, &k.queues[op]
	if k.index == nil {
		k.index, k.scopes = newIndex(t), t.Scopes()
	}
	q.scoped, q.always, q.scopes = true, guards.NewSet(t.Len()), guards.NewSet(t.Len())
	for other := range k.queues {
		switch {
		case t.Within(op, other) >= 0:
			q.scopes.Add(other)
		case t.Between(op, other):
			q.always.Add(other)
		}
	}
}

// Arrive hands a new request to the scheduler. It waits at the gate until Next lets
// it in. If its queue is bounded, it or another may have failed by now, which
// Failed tells.
func (k *Scheduler) Arrive(r *Request) {
	q := k.register(r)
	if k.barsSurely(r) {
		k.hasToWait(r)
	}
	r.state = StateAtGate
	if q.gate.push(r); r.prev == nil {
		k.gated.join(r.Op)
	}
	q.length.Add(one)
	k.untried(q, r, 1)
	if k.bounded && k.stuck(r) {
		k.settled = k.step
		back := k.turnBack()
		if (k.overflow() || back) && r.state == StateAtGate {
			k.settled = 0 // somebody else has left, who may have been in the way
		}
	}
}

// register counts r among the arrivals, and returns its queue.
func (k *Scheduler) register(r *Request) *queue {
	k.step++
	k.arrivals++
	r.arrival = k.arrivals
	k.newest = (max(k.newest, k.entered)>>roomShift + 1) << roomShift
	r.seq, r.came = k.newest, k.newest
	k.log(Arrived, r.Op, r, "")
	r.bypassed = 0
	r.marks &= extra
	r.answer.stamp = 0
	r.rest = k.rests
	k.total++
	return &k.queues[r.Op]
}

// hasToWait notes that r cannot start in the step in which it has come.
func (k *Scheduler) hasToWait(r *Request) { r.rest = k.rests - 1 }

// enter puts r, which has been registered, into the inside of its queue, which is
// longer by the given. If the policy fails, so has r.
func (k *Scheduler) enter(r *Request, longer uint64) {
	q := &k.queues[r.Op]
	r.state = StateInside
	if q.inside.insert(r); q.inside.first == q.inside.last {
		k.inside.join(r.Op)
	}
	q.length.Add(longer)
	q.joined.Add(1)
	k.counting++
	k.entered = max(k.entered, r.seq)
	last := r.seq
	if q.scoped && r.came != 0 {
		last = 0 // others have come before it that are still outside
	}
	if q.plain {
		q.latest = max(q.latest, last)
		return
	}
	if r.bypassed > 0 {
		k.cameIn(q, r)
	}
	l := k.lineOf(q, r)
	l.latest = max(l.latest, last)
	switch {
	case q.sorted:
		k.sort(q, l, r)
	case q.each && (q.unasked == nil || r.seq < q.unasked.seq):
		q.unasked = r
	}
}

// Next returns the next request to start, and counts it as running from now on.
// If the request is not to start but has failed, err says why: its guard
// panicked, it was a Try that would have had to wait, its queue was full, or the
// object is closed. A nil request means that nothing can be done until the next
// input.
func (k *Scheduler) Next() (r *Request, err error) { return k.NextFor(nil) }

// ErrNoThread is returned by NextFor with a request that could start, but goes on
// waiting.
var ErrNoThread = errors.New("no thread")

// NextFor is Next for somebody who cannot run every request: may says which. If
// the next one is not among them, it goes on waiting and is returned with
// ErrNoThread. May is not asked about a Try, whose caller is there.
func (k *Scheduler) NextFor(may func(*Request) bool) (r *Request, err error) {
	for {
		if r, err := k.Failed(); r != nil {
			return r, err
		}
		if k.closed != nil {
			return k.evict()
		}
		if k.loose.first != nil {
			k.tidy()
		}
		if len(k.checks) > 0 {
			k.check()
		}
		if len(k.retries) > 0 {
			if r, err := k.retry(); r != nil {
				return r, err
			}
			if k.failed.first != nil {
				continue
			}
		}
		var r *Request
		if !k.still() {
			r = k.pick()
		} else if lone := k.lone(); lone != nil {
			r = k.decide(lone)
		}
		if k.failed.first != nil {
			continue // first things first: what was picked will be again
		}
		if r != nil {
			return k.grant(r, may)
		}
		if k.AtGate() {
			r, err, more := k.admit()
			if r != nil {
				return r, err
			}
			if more || k.failed.first != nil {
				continue
			}
		}
		if k.bounded {
			if k.turnBack() || k.overflow() {
				continue
			}
			asks := k.asks
			if r := k.knock(); r != nil {
				return k.grant(r, may)
			}
			if k.failed.first != nil || k.index != nil && k.asks != asks {
				continue // those are known to be closed now who share a guard with one at the door
			}
		}
		k.rest()
		return nil, nil
	}
}

// grant starts r, which waits, if may allows it.
//
// May is the last that is asked: it may commit the caller to the start, as a selection
// does that is claimed for r. So the guards of those whom r passes are evaluated before,
// one of which may fail, and after it nothing is evaluated.
func (k *Scheduler) grant(r *Request, may func(*Request) bool) (*Request, error) {
	if k.counts() > 0 {
		// If one has failed, that is told before anything starts; and r, which may have
		// failed by that, is considered again.
		if k.bypass(r, false); k.failed.first != nil {
			return k.Failed()
		}
	}
	if may != nil && !may(r) {
		k.rests++
		return r, ErrNoThread
	}
	if k.counts() > 0 {
		k.bypass(r, true)
	}
	k.leave(r)
	k.start(r)
	return r, nil
}

// Jam says that there is no thread for anybody before the next input, after NextFor has
// failed with ErrNoThread. So all who wait have to, and the queues are brought back within
// their bounds, as by Next when nothing more can start; and a Try that nothing bars is
// refused, instead of waiting behind them. It reports whether that changed anything; then
// NextFor is to be asked again.
func (k *Scheduler) Jam() bool {
	refused := k.refuseTries()
	if !k.bounded {
		return refused
	}
	back := k.turnBack()
	return k.overflow() || back || refused
}

// Failed returns a request that has failed, and why; or nil if there is none. It
// does of Next's work what needs no thread and asks no guard.
func (k *Scheduler) Failed() (r *Request, err error) {
	r = k.failed.first
	if r == nil {
		return nil, nil
	}
	k.failed.remove(r)
	err = r.err
	r.state, r.err = StateDone, nil
	return r, err
}

// Complete says that a running request has ended. For one that was granted but
// never ran, use Decline.
func (k *Scheduler) Complete(r *Request) {
	k.finish(r)
}

func (k *Scheduler) finish(r *Request) {
	k.step++
	k.log(Ended, r.Op, r, "")
	k.running.remove(r)
	if r.Claim != nil && k.index != nil {
		k.delist(r)
	}
	r.state = StateDone
	k.end(r.Op, k.opener(r))
}

// Decline takes back a request that Next returned but that has not begun to run:
// it leaves the running queue without having changed anything, and counts as one
// that has been withdrawn.
func (k *Scheduler) Decline(r *Request) {
	q := &k.queues[r.Op]
	q.started--
	q.withdrawn++
	k.finish(r)
}

// Requeue says that a running request has ended its turn, and now asks for the
// operation op with the key: it waits inside, behind those that wait there and
// before those at the gate. If it keeps its place it is considered as if it had
// waited here since it first arrived. If its queue is full, and it cannot start
// before the scheduler rests, it fails. A Try stays one: it starts in its turn, or fails
// with *Refused.
func (k *Scheduler) Requeue(r *Request, op int, key any, claim *Claim, keep bool) {
	k.finish(r)
	r.Op, r.Key, r.Claim = op, key, claim
	k.Enter(r, keep)
}

// Enter lets in a request that is inside already: it was announced by Begin, has
// ended its turn by End, and asks to be requeued.
func (k *Scheduler) Enter(r *Request, keep bool) {
	arrival, seq := r.arrival, r.seq
	q := k.register(r)
	r.seq, r.came = k.joining(), 0
	if keep && seq != 0 {
		r.arrival, r.seq = arrival, seq
	}
	if k.barsSurely(r) {
		k.hasToWait(r)
	}
	if r.Try {
		k.retries = append(k.retries, r)
		k.toGate(q, r)
		q.length.Add(one)
		k.untried(q, r, 1)
		k.entered = max(k.entered, r.seq) // the number is taken
		return
	}
	k.enter(r, one|indoors)
	if r.state == StateInside && k.full(r.Op) != nil {
		r.marks |= extra
		k.extras = append(k.extras, r)
	}
}

// joining returns the order number of a request that is requeued: it comes after those
// inside, and before those at the gate.
//
// Where a policy compares requests, all at the gate are let in together to be compared.
// Those that were the last to be let in come after the one that is requeued, as if they
// were still at the gate, unless nothing more could start since. (But if bypasses are
// bounded, they are inside: they may have been bypassed there.)
func (k *Scheduler) joining() uint64 {
	if !k.compares || k.rules.MaxBypass > 0 {
		return k.after(k.entered)
	}
	k.older = k.after(k.older)
	return k.older
}

// Order numbers of arrivals are 1<<roomShift apart: as many requests may be requeued
// before those that wait outside have to make room for more.
const roomShift = 16

// after returns an order number after the given one, and before all greater ones.
func (k *Scheduler) after(seq uint64) uint64 {
	if seq++; seq&(1<<roomShift-1) == 0 {
		k.makeRoom(seq)
	}
	return seq
}

// makeRoom raises all order numbers from the given one on. Their order stays the same, and
// so do the trees.
func (k *Scheduler) makeRoom(from uint64) {
	raise := func(seq *uint64) {
		if *seq >= from {
			*seq += 1 << roomShift
		}
	}
	line := func(l *line) {
		raise(&l.latest)
		for i := range l.passed {
			raise(&l.passed[i])
		}
	}
	lists := []*list{&k.threadless, &k.running} // a Try that runs may keep its place
	for op := range k.queues {
		q := &k.queues[op]
		lists = append(lists, &q.inside, &q.gate, &q.door.list)
		line(&q.line)
		for _, l := range q.members {
			line(l)
		}
	}
	for _, l := range lists {
		for r := l.first; r != nil; r = r.next {
			raise(&r.seq)
			raise(&r.came)
		}
	}
	raise(&k.newest)
	raise(&k.entered)
}

// Fresh forgets the place that a request had in the order of arrivals, before it
// is used for another call.
func (r *Request) Fresh() { r.arrival, r.seq = 0, 0 }

// Begin says that a request the scheduler has not seen runs: one that found the
// object idle and took it without asking. End says that it has ended.
func (k *Scheduler) Begin(op int) {
	k.step++
	k.log(Started, op, nil, "")
	k.begin(op)
}

// End says that a request announced by Begin has ended. Only now is it certain
// that it had its turn. Opens says which keys of the families that its operation
// declares it can have opened; if it is nil, it can have opened all.
func (k *Scheduler) End(op int, opens Opener) {
	k.step++
	k.log(Ended, op, nil, "")
	k.last = op
	k.queues[op].started++
	k.end(op, opens)
}

// Ran is Begin and End in one, for a request that has ended before the scheduler was
// told of it.
func (k *Scheduler) Ran(op int, opens Opener) {
	if len(k.kept) > 0 {
		k.Begin(op)
		k.End(op, opens)
		return
	}
	k.step += 2
	k.log(Started, op, nil, "")
	k.log(Ended, op, nil, "")
	k.last = op
	q := &k.queues[op]
	q.started++
	if q.changes {
		k.version += 2
	}
}

// Abandon says that a request announced by Begin never ran, and changed nothing.
func (k *Scheduler) Abandon(op int) {
	k.step++
	k.log(Abandoned, op, nil, "")
	q := &k.queues[op]
	if q.runs--; q.runs == 0 {
		k.runningOps.leave(op)
	}
}

// Misjudged says that a policy will not return that was asked about some waiting
// requests. They fail with err.
func (k *Scheduler) Misjudged(err error, about ...*Request) {
	k.trying = nil
	for _, r := range about {
		if r.Waits() {
			k.fail(r, err)
		}
	}
}

// Withdraw takes a waiting request out of its queue, and reports whether it was
// waiting; if not, nothing is changed.
func (k *Scheduler) Withdraw(r *Request) bool {
	if !r.Waits() {
		return false
	}
	k.step++
	k.log(Withdrawn, r.Op, r, "")
	k.queues[r.Op].withdrawn++
	k.leave(r)
	r.state = StateDone
	return true
}

// Drop lets go of a request that has failed, so that Next does not report that, and
// reports true. If it has not failed, or that has been reported, nothing is changed.
func (k *Scheduler) Drop(r *Request) bool {
	if r.state != StateFailed {
		return false
	}
	k.failed.remove(r)
	r.state, r.err = StateDone, nil
	return true
}

// Rerank gives a request another rank, and reports whether it was waiting; if not,
// nothing is changed. It may have failed by now, with its policy.
func (k *Scheduler) Rerank(r *Request, rank int64) bool {
	if !r.Waits() {
		return false
	}
	k.step++
	k.log(Reranked, r.Op, r, "")
	q := &k.queues[r.Op]
	if r.state != StateInside || !q.sorted {
		r.Rank = rank
		return true
	}
	l := k.lineOf(q, r)
	l.tree.remove(r.node)
	if q.members != nil && l.placed && l.r == r {
		q.lines.remove(l.node)
	}
	r.Rank = rank
	k.sort(q, l, r)
	return true
}

// Unsettled reports whether what waits has to be reconsidered though nothing has
// ended: after a withdrawal, or another rank.
func (k *Scheduler) Unsettled() bool {
	return k.watchful || k.headed || k.gated.n > 0 || k.failed.first != nil || k.Runs() && k.Waits()
}

// Close makes Next fail every waiting and every later request with err. What
// runs is not touched. Only the first call counts.
func (k *Scheduler) Close(err error) {
	if k.closed == nil {
		k.step++
		k.closed = err
	}
}

// Hold lets nothing start, and no guard be asked, until Free: a step in the life of
// the object is about to be taken, and conflicts with everything. What runs may end;
// requests arrive and wait, a Try included, and can be withdrawn, fail, be turned
// away by bounds and asked why they wait; Close still ends the object. Holding twice
// is holding once.
func (k *Scheduler) Hold() {
	if !k.held {
		k.step++
		k.logObject(Held)
		k.held = true
	}
}

// Free ends Hold. The requests that wait have kept their places and ages. If the
// step has changed the state no answer of a guard is worth anything any more, so that
// all are asked anew.
func (k *Scheduler) Free(changed bool) {
	if !k.held {
		return
	}
	k.step++
	k.logObject(Freed)
	k.held = false
	if changed {
		k.version++
		for _, family := range k.kept {
			k.queues[family].fresh = k.version // nobody can have declared what this opens
		}
	}
}

// Held reports whether nothing may start: see Hold.
func (k *Scheduler) Held() bool { return k.held }

// Waiting returns how many requests of the operation wait inside: Ada's 'Count.
// It may be called at any time from anywhere.
func (k *Scheduler) Waiting(op int) int { return k.queues[op].length.inside() }

// Joined returns how many requests of the operation have come inside so far, one that
// was requeued each time. Who has found the object idle and open never came. It may be
// called at any time from anywhere.
func (k *Scheduler) Joined(op int) uint64 { return k.queues[op].joined.Load() }

// Queued returns how many requests of the operation wait, inside, at the gate and
// at the door. It may be called at any time from anywhere.
func (k *Scheduler) Queued(op int) int { return k.queues[op].length.all() }

// Only returns the first of the requests of a family that wait inside, if they all
// have one key; or nil.
func (k *Scheduler) Only(op int) *Request {
	q := &k.queues[op]
	if n := q.lines.first(); n != nil && n.size == 1 && q.lines.root == n {
		return n.r
	}
	return nil
}

// WaitingAt is Waiting for one key of a family. It is an input like any other:
// it must not be called at any time.
func (k *Scheduler) WaitingAt(op int, key any) int {
	if l := k.queues[op].members[key]; l != nil {
		return l.len()
	}
	return 0
}

// Find returns the waiting request with the arrival number, or nil. It looks at
// all of them.
func (k *Scheduler) Find(arrival uint64) *Request {
	for op := range k.queues {
		q := &k.queues[op]
		for _, l := range [...]*list{&q.inside, &q.gate, &q.door.list} {
			if r := l.find(arrival); r != nil {
				return r
			}
		}
	}
	return k.threadless.find(arrival)
}

// Idle reports whether nothing waits and nothing runs.
func (k *Scheduler) Idle() bool {
	return !k.Waits() && !k.Runs()
}

// Waits reports whether any request waits, or has failed and is not yet reported.
func (k *Scheduler) Waits() bool {
	return k.inside.n > 0 || k.gated.n > 0 || k.failed.first != nil || k.doors > 0 || k.threadless.first != nil
}

// Runs reports whether any request runs.
func (k *Scheduler) Runs() bool { return k.runningOps.n > 0 }

// RunsOf returns how many requests of the operation run, those announced by Begin included.
func (k *Scheduler) RunsOf(op int) int { return int(k.queues[op].runs) }

// Inside returns the set of operations with requests that wait inside. It
// belongs to the scheduler: do not change or keep it.
func (k *Scheduler) Inside() guards.Set { return k.inside.Set }

// AtGate reports whether any request waits to be let in.
func (k *Scheduler) AtGate() bool { return k.gated.n > 0 }

// Backlog returns how many requests wait, anywhere.
func (k *Scheduler) Backlog() int { return k.total }

// AtDoor reports whether any request waits for room in a queue.
func (k *Scheduler) AtDoor() bool { return k.doors > 0 }

// AtDoorOf reports whether any request of the operation waits for room, that has a thread.
func (k *Scheduler) AtDoorOf(op int) bool { return k.queues[op].doors > k.queues[op].door.bare }

// start moves a request, which waits nowhere any more, to the running queue.
func (k *Scheduler) start(r *Request) {
	k.step++
	k.last = r.Op
	k.log(Started, r.Op, r, "")
	k.queues[r.Op].started++
	r.state = StateRunning
	k.running.push(r)
	if r.Claim != nil && k.index != nil {
		k.enlist(r)
	}
	k.begin(r.Op)
	if k.bounded && k.blocked() {
		k.settled = k.step // nobody else starts before this one has ended, and there may be too many for that
		k.turnBack()
		k.overflow()
	}
}

func (k *Scheduler) begin(op int) {
	if k.Note != nil {
		k.Note = nil
	}
	q := &k.queues[op]
	if q.runs++; q.runs == 1 {
		k.runningOps.join(op)
	}
	if q.changes {
		k.version++
		if len(k.kept) > 0 {
			k.outdate(op)
		}
	}
}

func (k *Scheduler) end(op int, opens Opener) {
	q := &k.queues[op]
	if q.runs--; q.runs == 0 {
		k.runningOps.leave(op)
	}
	if q.changes {
		k.version++
		if len(k.kept) > 0 {
			k.opened(op, opens)
		}
	}
}

// leave takes a waiting request out of the queue it is in.
func (k *Scheduler) leave(r *Request) {
	q := &k.queues[r.Op]
	if k.Waited(r) {
		q.waited++
	}
	if k.index != nil && r.Claim != nil {
		r.Claim.hurdle = nil // or else it would keep all that have ever been in the way of another
	}
	if !q.plain || r.state != StateInside {
		k.leaveOther(q, r)
		return
	}
	// This is take, for a queue of which there is no more to know.
	k.total--
	k.passCursors(r)
	if q.inside.remove(r); q.inside.first == nil {
		k.inside.leave(r.Op)
		q.unwatched()
	}
	q.length.Add(^(one | indoors) + 1)
	k.counting++
}

// leaveOther is leave where it takes more.
func (k *Scheduler) leaveOther(q *queue, r *Request) {
	if r.marks.has(extra) {
		k.notExtra(r)
	}
	k.take(q, r, one)
	if k.doors > 0 {
		k.refill() // at once: who comes next has no claim to the room
	}
}

// take takes a waiting request from where it is. The queue is shorter by the given,
// and, if it was inside, by that.
func (k *Scheduler) take(q *queue, r *Request, shorter uint64) {
	switch r.state {
	case StateAtDoor:
		k.leaveDoor(q, r)
		q.unwatched()
		q.length.Add(-shorter)
		return
	case StateThreadless:
		k.total--
		k.leaveThreadless(q, r)
		q.unwatched()
		q.length.Add(-shorter)
		return
	case StateAtGate:
		k.total--
		k.leaveGate(r)
		if r.bypassed > 0 {
			k.leftGate(q, r)
		}
		q.unwatched()
		q.length.Add(-shorter)
		return
	}
	k.total--
	k.passCursors(r)
	if k.counts() > 0 {
		if k.overtaken(r) {
			q.due--
		}
		q.longest = max(q.longest, min(k.bypasses(r), k.counts()))
	}
	l := k.lineOf(q, r)
	old := l.oldest(q) == r
	if q.unasked == r {
		q.unasked = r.next
	}
	if q.inside.remove(r); q.inside.first == nil {
		k.inside.leave(r.Op)
	}
	if r.placed() {
		l.tree.remove(r.node)
	}
	switch first := l.oldest(q); {
	case first == nil:
		if q.members == nil {
			q.unwatched()
		} else if !k.watched(q, l) {
			l.answer.stamp = 0
		}
		l.passed = l.passed[:0]
	case old && len(l.passed) > 0:
		l.passed = slices.DeleteFunc(l.passed, func(seq uint64) bool { return seq < first.seq })
	}
	if q.members != nil {
		k.loosen(q, l)
	}
	q.length.Add(-(shorter | indoors))
	k.counting++
}

// watched reports whether a request waits for the guard of a line, inside or at the
// door. If not, the fast path may change the state without asking the guard, so that
// what it said is worth nothing.
func (k *Scheduler) watched(q *queue, l *line) bool {
	return l.oldest(q) != nil || q.doors > 0 && (q.members == nil || l.out.root != nil)
}

// unwatched forgets what the guard has said, if no request is left that waits for it,
// inside, at the gate or at the door. (Those at the gate keep the fast path closed.)
func (q *queue) unwatched() {
	if q.inside.first == nil && q.gate.first == nil && q.doors == 0 {
		q.answer.stamp = 0
	}
}

// fail queues a waiting request to be reported as failed by Next.
func (k *Scheduler) fail(r *Request, err error) {
	k.log(Failing, r.Op, r, "")
	k.leave(r)
	r.err = err
	r.state = StateFailed
	k.failed.push(r)
}

// evict reports one waiting request of a closed object as failed.
func (k *Scheduler) evict() (*Request, error) {
	r := k.threadless.first
	for op := range k.queues {
		q := &k.queues[op]
		for _, head := range [...]*Request{q.inside.first, q.gate.first, q.door.first} {
			if head != nil && (r == nil || head.seq < r.seq) {
				r = head
			}
		}
	}
	if r == nil {
		return nil, nil
	}
	k.log(Failing, r.Op, r, "")
	k.leave(r)
	r.state = StateDone
	return r, k.closed
}

// barred reports whether something runs that conflicts with the operation, or the
// object is held: then everything conflicts with what is done to it.
func (k *Scheduler) barred(op int) bool {
	return k.held || k.runningOps.n > 0 && k.rules.Conflicts.Row(op).Meets(k.runningOps.Set)
}
