// Package kernel decides which request may start at a shared object: a pure
// state machine, without goroutine, lock, clock or channel.
//
//	          Arrive            admit                  start             Complete
//	request ─────────► gate ───────────► queues ─────────────► running ──────────►
//	             │       │                ▲ │  guards · conflicts · policy  │
//	             ▼       └──── Withdraw ──┼─┘                               │
//	           door                       └──────────── Requeue ────────────┘
//
// Arrivals, completions, requeues and withdrawals go in; the requests to start
// come out of Next, one at a time, whenever somebody is ready to run one. The
// kernel itself is not safe for concurrent use; the mailbox around it is.
//
// # The gate
//
// A request that arrives while something runs that it conflicts with stays
// outside, at the gate. When a request completes, those inside are reconsidered
// until none can start; then the ones at the gate are let in, one at a time in
// order of arrival. This is the eggshell of Ada's protected objects: a guard
// over waiting counts never sees those outside, and a burst that passes is not
// joined by latecomers. A request that is requeued is inside already: it joins
// behind those inside and before those at the gate.
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
package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/guards"
)

// Kind is what an operation may do to the state.
type Kind uint8

const (
	// Procedure changes the state and is always open.
	Procedure Kind = iota
	// Entry changes the state and waits for its guard.
	Entry
	// Function reads the state only.
	Function
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	return [...]string{"procedure", "entry", "function"}[k]
}

// Operation is what the kernel knows of an operation.
type Operation struct {
	Name  string
	Kind  Kind
	Guard string       // the guard's name; empty if the operation is always open
	Looks guards.Looks // what the guard looks at
	// Family operations are one entry per key: the requests have a Key, and those
	// with equal keys share a guard, which is asked with the argument of one of
	// them. It looks at no more of the argument than the key.
	Family bool
	// HeadOfLine says of a guard over arguments that only the request which is
	// considered first is asked; the others wait behind it.
	HeadOfLine bool
	// Opens are the families of which the operation can open no more than the keys
	// that the KeyOpener names. The others' guards, if false, stay so.
	Opens []int
	// Bound is on the waiting requests of the operation.
	Bound Bound
}

func (o *Operation) changes() bool { return o.Kind != Function }

// each reports whether every waiting request is asked by itself.
func (o *Operation) each() bool {
	return o.Looks&guards.AtArgument != 0 && !o.Family && !o.HeadOfLine
}

// Rules are the operations of an object, what conflicts with what, and the order
// of consideration. They are not changed once a kernel uses them, and may be
// shared by many.
type Rules struct {
	Operations []Operation
	// Conflicts must have one row per operation. If it has scopes, requests of the operations
	// in these need a Claim, and may not be announced by Begin.
	Conflicts guards.Table
	// Reentrant says that requests may have a Claim that names others which wait for them.
	Reentrant bool
	// AllCompatible lets all requests start that conflict with nothing that runs: one that
	// waits because of that is not in the way of those that come later, unless it has been
	// bypassed as often as MaxBypass allows, also at the gate. Without a bound it may wait for
	// ever.
	AllCompatible bool
	// Policy is the order of consideration; nil means Arrival.
	Policy *Policy
	// MaxBypass bounds how often a later arrival may start while a request waits
	// inside (or at the gate, with AllCompatible) and its guard is open, or not known
	// to be false; 0 sets no bound. At the bound nothing that conflicts with the
	// request starts before it, not even an earlier arrival of the same entry that
	// was closed meanwhile.
	MaxBypass int
	// CountBypass says how far bypasses are counted for Stats if there is no bound.
	CountBypass int
	// Bound is on all waiting requests together.
	Bound Bound
	// Check makes the kernel ask the guards that an operation cannot have opened
	// by its declaration, too, and fail the requests that it finds open with
	// *UndeclaredError.
	Check bool
	// Log, if not nil, is told everything that goes into a kernel, what its guards
	// answer, and what comes out, in order. It must not call the kernel.
	Log func(Event)
}

// Object asks the guards of a shared object. The answer is empty if the guard
// holds, and else the name of the part of the guard that is false. An error
// means that the guard failed (it panicked); the requests it guards fail with it.
type Object interface {
	// AskState asks the guard of an operation that looks at the state alone.
	AskState(op int) (falsePart string, err error)
	// AskRequest asks the guard of a request that looks at its argument too.
	AskRequest(r *Request) (falsePart string, err error)
}

// KeyOpener is an Object with operations that declare what they open.
type KeyOpener interface {
	// Opens tells open which keys of the family the request, which has run, can
	// have opened.
	Opens(r *Request, family int, open func(key any))
}

// Opener is KeyOpener.Opens for a request that the kernel has not seen.
type Opener func(family int, open func(key any))

// some is a set of some of the operations, and how many they are.
type some struct {
	guards.Set
	n int
}

// join puts an operation into the set that is not in it, and leave takes out one
// that is.
func (s *some) join(op int)  { s.Add(op); s.n++ }
func (s *some) leave(op int) { s.Remove(op); s.n-- }

// AnyKey stands for all keys of a family: for a request of which nobody can tell
// any more which keys it can have opened.
var AnyKey any = new(int)

// Kernel holds the waiting and the running queue of one shared object.
type Kernel struct {
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
	lean     bool        // see sole
	single   bool        // requests of one operation only need not be compared: nobody is chosen, or counted
	trying   *Request    // being decided: a Try at the gate, or one at the door
	watchful bool        // some guard looks at waiting counts
	headed   bool        // some entry has a head of line
	bounded  bool        // some queue is
	doors    int         // requests at the door
	tries    int         // requests at the gate that never wait inside, so that no bound concerns them
	extras   []*Request  // inside, beyond a bound until the kernel rests: they have been requeued
	kept     []int       // families of which some operation declares what it opens
	checks   []opening   // of which the declaration is to be checked
	heads    []candidate // scratch space of pick
	passed   guards.Set  // likewise: operations that whoever is considered next would pass
	eligible []*Request  // likewise
	misfits  []*Request  // what a policy has failed about, in pick
	misfit   error
	spare    []*line // for families
	loose    []*line // without a place among those of their family
	cursors  *Cursor // inspections under way
	found    bool    // see Found

	// For scoped operations; the index is nil if there are none.
	index  *index
	scopes []guards.Scope
	way    []*Request // scratch space of walk
	asks   uint64     // answers of guards that have been noted for requests that wait inside
}

// New returns a kernel without requests.
func New(rules *Rules, object Object) *Kernel {
	n := len(rules.Operations)
	if rules.Conflicts.Len() != n {
		panic(fmt.Sprintf("kernel: a conflict table of %d operations for an object of %d", rules.Conflicts.Len(), n))
	}
	sets := make(guards.Set, 4*len(guards.NewSet(n)))
	w := len(sets) / 4
	k := &Kernel{
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
	for op := range rules.Operations {
		o, q := &rules.Operations[op], &k.queues[op]
		k.watchful = k.watchful || o.Looks&guards.AtWaiting != 0
		k.headed = k.headed || o.HeadOfLine
		k.bounded = k.bounded || o.Bound.Overflow != Unbounded
		q.guard, q.each, q.changes, q.watchful = o.Guard, o.each(), o.changes(), o.Looks&guards.AtWaiting != 0
		q.shared = !o.Family && o.Looks&guards.AtArgument == 0
		q.sorted = o.Family || rules.Policy != nil && rules.Policy.Within
		if o.Family {
			q.members = map[any]*line{}
		}
		for _, family := range o.Opens {
			if rules.Operations[family].Looks&guards.AtWaiting == 0 && !slices.Contains(k.kept, family) {
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
	k.lean = !k.walks && !k.bounded && k.single && k.counted == 0 && len(k.kept) == 0
	for op := range k.queues {
		q := &k.queues[op]
		q.plain = !q.sorted && !q.each && k.counted == 0 && !k.bounded
		free := !k.watchful && !k.bounded && !within // who comes inside changes nothing for others
		q.joins = free && !rules.Operations[op].HeadOfLine
	}
	return k
}

// Scoped reports whether not all requests of the operation conflict with the same.
func (r *Rules) Scoped(op int) bool { return r.Reentrant || r.Conflicts.Narrowed(op) }

// scope makes an operation scoped.
func (k *Kernel) scope(op int) {
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

// Arrive hands a new request to the kernel. It waits at the gate until Next lets
// it in. If its queue is bounded, it or another may have failed by now, which
// Failed tells.
func (k *Kernel) Arrive(r *Request) {
	q := k.register(r)
	if k.barsSurely(r) {
		k.hasToWait(r)
	}
	r.state = AtGate
	if q.gate.push(r); r.prev == nil {
		k.gated.join(r.Op)
	}
	q.length.Add(one)
	k.untried(q, r, 1)
	if k.bounded && k.stuck(r) {
		k.settled = k.step
		back := k.turnBack()
		if (k.overflow() || back) && r.state == AtGate {
			k.settled = 0 // somebody else has left, who may have been in the way
		}
	}
}

// register counts r among the arrivals, and returns its queue.
func (k *Kernel) register(r *Request) *queue {
	k.step++
	k.arrivals++
	r.arrival = k.arrivals
	k.newest = (max(k.newest, k.entered)>>16 + 1) << 16
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
func (k *Kernel) hasToWait(r *Request) { r.rest = k.rests - 1 }

// enter puts r, which has been registered, into the inside of its queue, which is
// longer by the given. If the policy fails, so has r.
func (k *Kernel) enter(r *Request, longer uint64) {
	q := &k.queues[r.Op]
	r.state = Inside
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
func (k *Kernel) Next() (r *Request, err error) { return k.NextFor(nil) }

// ErrNoThread is returned by NextFor with a request that could start, but goes on
// waiting.
var ErrNoThread = errors.New("no thread")

// NextFor is Next for somebody who cannot run every request: may says which. If
// the next one is not among them, it goes on waiting and is returned with
// ErrNoThread. May is not asked about a Try, whose caller is there.
func (k *Kernel) NextFor(may func(*Request) bool) (r *Request, err error) {
	for {
		if r, err := k.Failed(); r != nil {
			return r, err
		}
		if q := k.sole(); q != nil {
			r := q.inside.first
			if k.lets(q, r) {
				return k.grant(r, may)
			}
			if k.failed.first != nil {
				continue
			}
			k.rest()
			return nil, nil
		}
		if k.closed != nil {
			return k.evict()
		}
		if len(k.loose) > 0 {
			k.tidy()
		}
		if len(k.checks) > 0 {
			k.check()
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

// sole returns the queue in whose line all stand who wait, if nothing bars them and there is
// nobody else to consider; or nil.
func (k *Kernel) sole() *queue {
	if !k.lean || k.inside.n != 1 || k.gated.n != 0 || k.closed != nil || len(k.loose) > 0 {
		return nil
	}
	op := k.inside.Next(0)
	if q := &k.queues[op]; q.plain && !k.barred(op) {
		return q
	}
	return nil
}

// inputs numbers the states of the kernel between which more has happened than arrivals.
func (k *Kernel) inputs() uint64 { return k.step - k.arrivals + k.counting }

// still reports whether nothing has happened but arrivals since nothing could start, so
// that nobody inside can; where neither policies nor bounds have a say in it.
func (k *Kernel) still() bool { return k.rested == k.inputs() && k.stills }

// lone returns the request at the gate, if it is the only one and can be let in.
func (k *Kernel) lone() *Request {
	if k.gated.n != 1 {
		return nil
	}
	op := k.gated.Next(0)
	if r := k.queues[op].gate.first; r.next == nil && !r.Try && !k.barred(op) {
		return r
	}
	return nil
}

// decide lets r in, before which nobody inside can start, and returns who can then, if
// anybody.
func (k *Kernel) decide(r *Request) *Request {
	k.letIn(r)
	switch {
	case k.failed.first != nil:
		return nil
	case k.watchful || k.counted > 0 || k.Runs():
		return k.pick()
	}
	return k.firstOpen(r.Op) // the others are closed
}

// grant starts r, which waits, if may allows it.
func (k *Kernel) grant(r *Request, may func(*Request) bool) (*Request, error) {
	if may != nil && !may(r) {
		k.rests++
		return r, ErrNoThread
	}
	if k.counts() > 0 {
		// Before anybody is counted: who has failed is told before anybody starts, and
		// r, which may have failed by that, is considered again.
		if k.bypass(r, false); k.failed.first != nil {
			return k.Failed()
		}
		k.bypass(r, true)
	}
	if k.lean && r.state == Inside && k.queues[r.Op].plain {
		k.proceed(&k.queues[r.Op], r)
	} else {
		k.leave(r)
		k.start(r)
	}
	return r, nil
}

// proceed is leave and start for a request of a line of which there is no more to know, where
// there are neither bounds nor claims.
func (k *Kernel) proceed(q *queue, r *Request) {
	if k.Waited(r) {
		q.waited++
	}
	k.total--
	k.passCursors(r)
	if q.inside.remove(r); q.inside.first == nil {
		k.inside.leave(r.Op)
		q.answer.stamp = 0
	}
	q.length.Add(^(one | indoors) + 1)
	k.counting++
	k.step++
	k.last = r.Op
	k.log(Started, r.Op, r, "")
	q.started++
	r.state = Running
	k.running.push(r)
	if q.runs++; q.runs == 1 {
		k.runningOps.join(r.Op)
	}
	if q.changes {
		k.version++
	}
}

// Jam says that there is no thread for anybody before the next input, after NextFor has
// failed with ErrNoThread. So all who wait have to, and the queues are brought back within
// their bounds, as by Next when nothing more can start; and a Try that nothing bars is
// refused, instead of waiting behind them. It reports whether that changed anything; then
// NextFor is to be asked again.
func (k *Kernel) Jam() bool {
	refused := k.refuseTries()
	if !k.bounded {
		return refused
	}
	back := k.turnBack()
	return k.overflow() || back || refused
}

// refuseTries refuses those at the gate that could be decided, had anybody a thread.
func (k *Kernel) refuseTries() (some bool) {
	if k.tries == 0 {
		return false
	}
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		some = k.strand(k.queues[op].gate.first, func(r *Request) bool { return !k.barsSurely(r) }) || some
	}
	return some
}

// Failed returns a request that has failed, and why; or nil if there is none. It
// does of Next's work what needs no thread and asks no guard.
func (k *Kernel) Failed() (r *Request, err error) {
	r = k.failed.first
	if r == nil {
		return nil, nil
	}
	k.failed.remove(r)
	err = r.err
	r.state, r.err = Done, nil
	return r, err
}

// Complete says that a running request has ended. For one that was granted but
// never ran, use Decline.
func (k *Kernel) Complete(r *Request) {
	k.finish(r)
}

func (k *Kernel) finish(r *Request) {
	k.step++
	k.log(Ended, r.Op, r, "")
	k.running.remove(r)
	if r.Claim != nil && k.index != nil {
		k.delist(r)
	}
	r.state = Done
	k.end(r.Op, k.opener(r))
}

// opener returns what says which keys r can have opened, or nil.
func (k *Kernel) opener(r *Request) Opener {
	if len(k.kept) == 0 || len(k.rules.Operations[r.Op].Opens) == 0 {
		return nil
	}
	return func(family int, open func(any)) { k.object.(KeyOpener).Opens(r, family, open) }
}

// Decline takes back a request that Next returned but that has not begun to run:
// it leaves the running queue without having changed anything, and counts as one
// that has been withdrawn.
func (k *Kernel) Decline(r *Request) {
	q := &k.queues[r.Op]
	q.started--
	q.withdrawn++
	k.finish(r)
}

// Requeue says that a running request has ended its turn, and now asks for the
// operation op with the key: it waits inside, behind those that wait there and
// before those at the gate. If it keeps its place it is considered as if it had
// waited here since it first arrived. If its queue is full, and it cannot start
// before the kernel rests, it fails.
func (k *Kernel) Requeue(r *Request, op int, key any, claim *Claim, keep bool) {
	k.finish(r)
	r.Op, r.Key, r.Claim = op, key, claim
	k.Enter(r, keep)
}

// Enter lets in a request that is inside already: it was announced by Begin, has
// ended its turn by End, and asks to be requeued.
func (k *Kernel) Enter(r *Request, keep bool) {
	arrival, seq := r.arrival, r.seq
	k.register(r)
	r.seq, r.came = k.entered+1, 0
	if keep && seq != 0 {
		r.arrival, r.seq = arrival, seq
	}
	r.Try = false
	if k.barsSurely(r) {
		k.hasToWait(r)
	}
	k.enter(r, one|indoors)
	if r.state == Inside && k.full(r.Op) != nil {
		r.marks |= extra
		k.extras = append(k.extras, r)
	}
}

// Fresh forgets the place that a request had in the order of arrivals, before it
// is used for another call.
func (r *Request) Fresh() { r.arrival, r.seq = 0, 0 }

// Join is Arrive and Next in one for a request whose guard has been asked, and is
// false, by somebody who has the object to himself. It reports false, and does
// nothing, if anybody else has to be considered first.
func (k *Kernel) Join(r *Request, falsePart string) bool {
	if !k.queues[r.Op].joins || !k.calm() {
		return false
	}
	k.join(r)
	k.Refuted(r, falsePart)
	return true
}

// Come is Arrive and Next in one for a request that finds everything at rest, if it joins a line
// of which there is no more to know, by somebody who has the object to himself and has run
// nothing. It reports whether the request has come, and whether it, like all others, has to wait;
// if it has come and need not, Next says who starts. If it has not come nothing has been done.
func (k *Kernel) Come(r *Request) (come, waits bool) {
	q := &k.queues[r.Op]
	if !q.plain || r.Try || !k.still() || !k.calm() {
		return false, false
	}
	k.register(r)
	k.enter(r, one|indoors)
	switch {
	case k.watchful && k.inside.n > 1:
		if k.pick() != nil {
			return true, false
		}
	case !k.watchful && q.inside.first != r: // whoever is first cannot start, as before
	case k.lets(q, q.inside.first):
		return true, false
	}
	if k.failed.first != nil {
		return true, false
	}
	k.rest()
	return true, true
}

// rest notes that nothing more can start.
func (k *Kernel) rest() {
	k.rests++
	k.settled = k.step
	k.rested = k.inputs()
}

// calm reports whether nobody is outside, runs, or has failed.
func (k *Kernel) calm() bool {
	return k.closed == nil && !k.held && k.gated.n == 0 && k.runningOps.n == 0 && k.failed.first == nil
}

// join lets r in, which has to wait.
func (k *Kernel) join(r *Request) {
	k.register(r)
	k.hasToWait(r)
	k.enter(r, one|indoors)
}

// Begin says that a request the kernel has not seen runs: one that found the
// object idle and took it without asking. End says that it has ended.
func (k *Kernel) Begin(op int) {
	k.step++
	k.log(Started, op, nil, "")
	k.begin(op)
}

// End says that a request announced by Begin has ended. Only now is it certain
// that it had its turn. Opens says which keys of the families that its operation
// declares it can have opened; if it is nil, it can have opened all.
func (k *Kernel) End(op int, opens Opener) {
	k.step++
	k.log(Ended, op, nil, "")
	k.last = op
	k.queues[op].started++
	k.end(op, opens)
}

// Ran is Begin and End in one, for a request that has ended before the kernel was
// told of it.
func (k *Kernel) Ran(op int, opens Opener) {
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
func (k *Kernel) Abandon(op int) {
	k.step++
	k.log(Abandoned, op, nil, "")
	q := &k.queues[op]
	if q.runs--; q.runs == 0 {
		k.runningOps.leave(op)
	}
}

// Refuted says that the guard of r, which has just arrived, has been asked and
// is false. Nothing runs that may have changed the state since.
func (k *Kernel) Refuted(r *Request, falsePart string) {
	q := &k.queues[r.Op]
	if q.shared {
		k.log(Answered, r.Op, nil, falsePart)
		k.note(&q.answer, r.Op, falsePart)
	} else {
		k.refuted(q, r, falsePart)
	}
}

// refuted is Refuted for a guard that looks at the argument.
func (k *Kernel) refuted(q *queue, r *Request, falsePart string) {
	if q.members == nil {
		k.log(Answered, r.Op, r, falsePart)
		k.note(&r.answer, r.Op, falsePart)
		r.note()
	} else if r.state == Inside {
		k.log(Answered, r.Op, r, falsePart)
		l := q.members[r.Key]
		k.note(&l.answer, r.Op, falsePart)
		l.note(no(l.answer))
	}
}

// AskingFailed says that the asking of a guard will not return: that of r, or, if
// r is nil, that of an operation's guard over the state. The requests it guards
// fail with err. It is, with Misjudged, the one method that may be called during
// Next, by an Object, if the goroutine is not to come back to it.
func (k *Kernel) AskingFailed(op int, r *Request, err error) {
	k.tryingFailed(op, r, err)
	switch q := &k.queues[op]; {
	case r == nil:
		k.failLine(q, &q.line, err)
	case r.state == Inside && k.rules.Operations[op].Family:
		k.failLine(q, q.members[r.Key], err)
	case r.state == Inside || r.state == AtDoor:
		k.fail(r, err)
	}
}

// Misjudged says that a policy will not return that was asked about some waiting
// requests. They fail with err.
func (k *Kernel) Misjudged(err error, about ...*Request) {
	k.trying = nil
	for _, r := range about {
		if r.Waits() {
			k.fail(r, err)
		}
	}
}

// tryingFailed fails the request that was being decided, a Try or one at the door, if it
// is guarded by what was asked: the guard of r, or of the operation. If not it stays
// where it is, and is considered again.
func (k *Kernel) tryingFailed(op int, r *Request, err error) {
	t := k.trying
	k.trying = nil
	if t != nil && t.Op == op && (r == nil || r == t || k.rules.Operations[op].Family && r.Key == t.Key) {
		k.fail(t, err)
	}
}

// Answered says what the guards over the state of some operations, given as
// bits, have answered since the state last changed: they were asked in ascending
// order up to the operation open, whose guard holds; if open is -1 none does. Each
// of them consists of one part; a family among them has one key with waiters.
func (k *Kernel) Answered(operations uint64, open int) {
	if open >= 0 {
		operations &= 2<<open - 1 // who comes after it has not been asked, whether it still waits or not
	}
	asked := guards.Set{operations & k.inside.Set[0]}
	for op := asked.Next(0); op >= 0; op = asked.Next(op + 1) {
		falsePart, q := "", &k.queues[op]
		if op != open {
			falsePart = q.guard
		}
		q.asked++
		if q.members != nil {
			k.answeredFor(k.Only(op), falsePart)
		} else {
			k.log(Answered, op, nil, falsePart)
			k.note(&q.answer, op, falsePart)
		}
	}
}

// answeredFor is Answered for a family, at which r waits with others of its key.
func (k *Kernel) answeredFor(r *Request, falsePart string) {
	l := k.queues[r.Op].members[r.Key]
	if falsePart != "" {
		falsePart = l.answer.falsePart // as the guard has no other part
	}
	k.log(Answered, r.Op, r, falsePart)
	k.note(&l.answer, r.Op, falsePart)
	l.note(no(l.answer))
}

// Withdraw takes a waiting request out of its queue, and reports whether it was
// waiting; if not, nothing is changed.
func (k *Kernel) Withdraw(r *Request) bool {
	if !r.Waits() {
		return false
	}
	k.step++
	k.log(Withdrawn, r.Op, r, "")
	k.queues[r.Op].withdrawn++
	k.leave(r)
	r.state = Done
	return true
}

// Drop lets go of a request that has failed, so that Next does not report that, and
// reports true. If it has not failed, or that has been reported, nothing is changed.
func (k *Kernel) Drop(r *Request) bool {
	if r.state != Failed {
		return false
	}
	k.failed.remove(r)
	r.state, r.err = Done, nil
	return true
}

// Rerank gives a request another rank, and reports whether it was waiting; if not,
// nothing is changed. It may have failed by now, with its policy.
func (k *Kernel) Rerank(r *Request, rank int64) bool {
	if !r.Waits() {
		return false
	}
	k.step++
	k.log(Reranked, r.Op, r, "")
	q := &k.queues[r.Op]
	if r.state != Inside || !q.sorted {
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
func (k *Kernel) Unsettled() bool {
	return k.watchful || k.headed || k.doors > 0 || k.failed.first != nil || k.Runs() && k.Waits()
}

// Close makes Next fail every waiting and every later request with err. What
// runs is not touched. Only the first call counts.
func (k *Kernel) Close(err error) {
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
func (k *Kernel) Hold() {
	if !k.held {
		k.step++
		k.logObject(Held)
		k.held = true
	}
}

// Free ends Hold. The requests that wait have kept their places and ages. If the
// step has changed the state no answer of a guard is worth anything any more, so that
// all are asked anew.
func (k *Kernel) Free(changed bool) {
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
func (k *Kernel) Held() bool { return k.held }

// Waiting returns how many requests of the operation wait inside: Ada's 'Count.
// It may be called at any time from anywhere.
func (k *Kernel) Waiting(op int) int { return k.queues[op].length.inside() }

// Joined returns how many requests of the operation have come inside so far, one that
// was requeued each time. Who has found the object idle and open never came. It may be
// called at any time from anywhere.
func (k *Kernel) Joined(op int) uint64 { return k.queues[op].joined.Load() }

// Queued returns how many requests of the operation wait, inside, at the gate and
// at the door. It may be called at any time from anywhere.
func (k *Kernel) Queued(op int) int { return k.queues[op].length.all() }

// Only returns the first of the requests of a family that wait inside, if they all
// have one key; or nil.
func (k *Kernel) Only(op int) *Request {
	q := &k.queues[op]
	if n := q.lines.first(); n != nil && n.size == 1 && q.lines.root == n {
		return n.r
	}
	return nil
}

// WaitingAt is Waiting for one key of a family. It is an input like any other:
// it must not be called at any time.
func (k *Kernel) WaitingAt(op int, key any) int {
	if l := k.queues[op].members[key]; l != nil {
		return l.len()
	}
	return 0
}

// Find returns the waiting request with the arrival number, or nil. It looks at
// all of them.
func (k *Kernel) Find(arrival uint64) *Request {
	for op := range k.queues {
		q := &k.queues[op]
		for _, l := range [...]*list{&q.inside, &q.gate, &q.door} {
			if r := l.find(arrival); r != nil {
				return r
			}
		}
	}
	return k.threadless.find(arrival)
}

// Idle reports whether nothing waits and nothing runs.
func (k *Kernel) Idle() bool {
	return !k.Waits() && !k.Runs()
}

// Waits reports whether any request waits, or has failed and is not yet reported.
func (k *Kernel) Waits() bool {
	return k.inside.n > 0 || k.gated.n > 0 || k.failed.first != nil || k.doors > 0 || k.threadless.first != nil
}

// Runs reports whether any request runs.
func (k *Kernel) Runs() bool { return k.runningOps.n > 0 }

// RunsOf returns how many requests of the operation run, those announced by Begin included.
func (k *Kernel) RunsOf(op int) int { return int(k.queues[op].runs) }

// Inside returns the set of operations with requests that wait inside. It
// belongs to the kernel: do not change or keep it.
func (k *Kernel) Inside() guards.Set { return k.inside.Set }

// AtGate reports whether any request waits to be let in.
func (k *Kernel) AtGate() bool { return k.gated.n > 0 }

// Backlog returns how many requests wait, anywhere.
func (k *Kernel) Backlog() int { return k.total }

// AtDoor reports whether any request waits for room in a queue.
func (k *Kernel) AtDoor() bool { return k.doors > 0 }

// start moves a request, which waits nowhere any more, to the running queue.
func (k *Kernel) start(r *Request) {
	k.step++
	k.last = r.Op
	k.log(Started, r.Op, r, "")
	k.queues[r.Op].started++
	r.state = Running
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

func (k *Kernel) begin(op int) {
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

// outdate makes the answers old that are kept, but for the families of which the
// operation, which begins, declares what it opens.
func (k *Kernel) outdate(op int) {
	o := &k.rules.Operations[op]
	for _, family := range k.kept {
		if !slices.Contains(o.Opens, family) {
			k.queues[family].fresh = k.version
		}
	}
}

func (k *Kernel) end(op int, opens Opener) {
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

// opened makes the answers old that are kept, but for those about keys that the
// operation, which has ended, has not opened, as far as it declares that.
func (k *Kernel) opened(op int, opens Opener) {
	o := &k.rules.Operations[op]
	for _, family := range k.kept { // all of them, in case opens does not return
		q := &k.queues[family]
		q.stands, q.fresh = q.fresh, k.version
	}
	for _, family := range k.kept {
		q := &k.queues[family]
		if opens == nil || !slices.Contains(o.Opens, family) {
			continue
		}
		opens(family, func(key any) {
			if key == AnyKey {
				q.fresh = k.version
			} else if l := q.members[key]; l != nil {
				l.answer.stamp = 0
				l.note(0)
			}
		})
		q.fresh = q.stands
		if k.rules.Check {
			k.checks = append(k.checks, opening{op, family})
		}
	}
}

// leave takes a waiting request out of the queue it is in.
func (k *Kernel) leave(r *Request) {
	q := &k.queues[r.Op]
	if k.Waited(r) {
		q.waited++
	}
	if k.index != nil && r.Claim != nil {
		r.Claim.hurdle = nil // or else it would keep all that have ever been in the way of another
	}
	if !q.plain || r.state != Inside {
		k.leaveOther(q, r)
		return
	}
	// This is take, for a queue of which there is no more to know.
	k.total--
	k.passCursors(r)
	if q.inside.remove(r); q.inside.first == nil {
		k.inside.leave(r.Op)
		q.answer.stamp = 0
	}
	q.length.Add(^(one | indoors) + 1)
	k.counting++
}

// leaveOther is leave where it takes more.
func (k *Kernel) leaveOther(q *queue, r *Request) {
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
func (k *Kernel) take(q *queue, r *Request, shorter uint64) {
	switch r.state {
	case AtDoor:
		k.leaveDoor(q, r)
		q.length.Add(-shorter)
		return
	case Threadless:
		k.total--
		k.leaveThreadless(q, r)
		q.length.Add(-shorter)
		return
	case AtGate:
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
		// Nobody watches this guard any more: the fast path may change the state
		// without asking it, so what it said is worth nothing.
		l.answer.stamp = 0
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

// unwatched forgets an answer given by Refuted, if the requests it was meant for
// have left without coming inside.
func (q *queue) unwatched() {
	if q.inside.first == nil && q.gate.first == nil {
		q.answer.stamp = 0
	}
}

func (k *Kernel) leaveGate(r *Request) {
	k.passCursors(r)
	q := &k.queues[r.Op]
	k.untried(q, r, -1)
	if q.gate.remove(r); q.gate.first == nil {
		k.gated.leave(r.Op)
	}
}

// fail queues a waiting request to be reported as failed by Next.
func (k *Kernel) fail(r *Request, err error) {
	k.log(Failing, r.Op, r, "")
	k.leave(r)
	r.err = err
	r.state = Failed
	k.failed.push(r)
}

// evict reports one waiting request of a closed object as failed.
func (k *Kernel) evict() (*Request, error) {
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
	r.state = Done
	return r, k.closed
}

// barred reports whether something runs that conflicts with the operation, or the
// object is held: then everything conflicts with what is done to it.
func (k *Kernel) barred(op int) bool {
	return k.held || k.runningOps.n > 0 && k.rules.Conflicts.Row(op).Meets(k.runningOps.Set)
}

// admit lets requests in from the gate, in order of arrival, until one opens a
// guard over waiting counts or none is left that may enter. A Try is decided
// on the spot and returned. More reports whether any request entered.
func (k *Kernel) admit() (r *Request, err error, more bool) {
	for {
		r := (*Request)(nil)
		for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
			if k.queues[op].scoped {
				if first := k.firstUnbarred(op, r); first != nil {
					r = first
				} else if k.failed.first != nil {
					return nil, nil, true
				}
				continue
			}
			if head := k.queues[op].gate.first; (r == nil || head.seq < r.seq) && !k.barred(op) {
				r = head
			}
		}
		if r == nil {
			return nil, nil, more
		}
		if r.Try && k.rules.AllCompatible {
			if other := k.firstToEnter(); other != nil {
				r = other // who may come before it: first of all they are considered
			} else if more || k.failed.first != nil {
				return nil, nil, true
			}
		}
		if r.Try {
			decided, err := k.try(r)
			if !decided {
				return nil, nil, true // it is asked again, when that can be
			}
			return r, err, true
		}
		k.letIn(r)
		more = true
		if k.watchful && k.countsOpened() || k.failed.first != nil {
			return nil, nil, true
		}
	}
}

// letIn lets r in from the gate.
func (k *Kernel) letIn(r *Request) {
	k.leaveGate(r)
	q := &k.queues[r.Op]
	if l := k.lineOf(q, r); r.seq <= l.latest {
		// Somebody has been requeued in front of it.
		r.seq = max(k.entered, l.latest) + 1
		k.found = true
	}
	k.enter(r, indoors)
}

// countsOpened reports whether a guard over waiting counts holds for somebody.
func (k *Kernel) countsOpened() bool {
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		switch q := &k.queues[op]; {
		case !q.watchful:
		case q.scoped && k.firstOpenEach(op) != nil, !q.scoped && !k.barred(op) && k.firstOpen(op) != nil:
			return true
		}
	}
	return false
}

// Refused is the reason why a Try did not run: it would have had to wait. If neither a
// guard nor a request is named, that is for a thread.
type Refused struct {
	Operation string
	// Guard is the part of the guard that was false, if the guard refused.
	Guard string
	// Behind is the operation of the request that came first, if one did.
	Behind string
}

// Error implements error.
func (e *Refused) Error() string {
	switch {
	case e.Guard != "":
		return fmt.Sprintf("%s would wait: guard %q is false", e.Operation, e.Guard)
	case e.Behind != "":
		return fmt.Sprintf("%s would wait: %s comes first", e.Operation, e.Behind)
	}
	return fmt.Sprintf("%s would wait: there is no thread for it", e.Operation)
}

// try starts r, which is at the gate, or says why it would have to wait. It is called
// when nothing that runs conflicts with r.
//
// The guards of others are asked for that, before whom it must not start, or whom it
// bypasses. If one of these has failed, r stays where it is, and nothing is decided: as
// in grant, who has failed is told before anybody starts, since the object may be held
// for that.
func (k *Kernel) try(r *Request) (decided bool, err error) {
	k.trying = r
	if err = k.wouldWait(r); err == nil && k.failed.first == nil {
		k.bypass(r, false)
	}
	k.trying = nil // not deferred: after AskingFailed the kernel is somebody else's
	switch {
	case r.state == Failed:
		return false, nil
	case err != nil:
		k.leave(r)
		r.state = Done
	case k.failed.first != nil:
		return false, nil
	default:
		k.bypass(r, true)
		k.leave(r)
		k.start(r)
	}
	return true, err
}

// wouldWait returns nil if r, which is not inside, could start if it were, and
// else the reason, or the failure of its guard. Nothing that runs conflicts with
// r.
func (k *Kernel) wouldWait(r *Request) error {
	op, inner := &k.rules.Operations[r.Op], k.inner(r)
	for other := k.inside.Next(0); other >= 0; other = k.inside.Next(other + 1) {
		if inner || !k.rules.Conflicts.Between(r.Op, other) {
			continue
		}
		first := (*Request)(nil)
		if k.rules.AllCompatible {
			failed := k.failed.last
			if first = k.dueAhead(other, r); k.failed.last != failed {
				return nil
			}
		} else if k.queues[other].scoped {
			failed := k.failed.last
			if first = k.aheadEach(other, r); k.failed.last != failed {
				return nil
			}
		} else if first = k.notFalse(other); first != nil && !k.barred(other) {
			first = k.firstOpen(other)
		}
		if first != nil {
			return &Refused{Operation: op.Name, Behind: k.rules.Operations[other].Name}
		}
	}
	if !inner { // or else nobody is asked whom it passes anyway
		if other := k.aheadOutside(r); other != nil {
			return &Refused{Operation: op.Name, Behind: k.rules.Operations[other.Op].Name}
		}
	}
	if r.state == Failed {
		return nil
	}
	falsePart, err := "", error(nil)
	q := &k.queues[r.Op]
	switch l := k.lineAt(q, r.Key); {
	case op.Guard == "":
	case op.Family && l != nil || !op.Family && op.Looks&guards.AtArgument == 0:
		falsePart, err = k.askLine(q, l, r)
	default:
		if op.HeadOfLine && !op.Family && q.inside.first != nil && !k.inner(r) {
			return &Refused{Operation: op.Name, Behind: op.Name}
		}
		if a := &r.answer; a.stamp == k.stamp(r.Op) {
			falsePart = a.falsePart
			break
		}
		q.asked++
		if falsePart, err = k.object.AskRequest(r); err == nil {
			k.note(&r.answer, r.Op, falsePart) // it may be at the door, and asked again
		}
	}
	if err == nil && falsePart != "" {
		err = &Refused{Operation: op.Name, Guard: falsePart}
	}
	return err
}

// aheadOutside returns a request at the gate that r must not pass, or nil.
func (k *Kernel) aheadOutside(r *Request) *Request {
	if !k.rules.AllCompatible {
		return k.outside(r)
	}
	return k.reservedFor(r, k.clash)
}

// refutedOutside reports whether the guard of those at the gate is known to be false.
func (k *Kernel) refutedOutside(op int) bool {
	o, a := &k.rules.Operations[op], &k.queues[op].answer
	return !o.Family && o.Looks == guards.AtState && a.falsePart != "" && k.current(op, a)
}

// outside returns a request at the gate that arrived before r and conflicts with
// it, or nil. Those at the gate have not been asked, but a guard over the state
// alone is as false for them as it is for those inside. (One over waiting counts
// may open when they come in.) A request that has been requeued was inside before
// all of them.
func (k *Kernel) outside(r *Request) *Request { return k.outsideAfter(nil, r, k.clash) }

// outsideAfter is outside for those that come after one that it has returned, if that is not
// nil, and with another way to find out whether two requests conflict.
func (k *Kernel) outsideAfter(last, r *Request, clash func(r, other *Request) bool) *Request {
	from := 0
	if last != nil {
		from = last.Op
	}
	for op := k.gated.Next(from); op >= 0; op = k.gated.Next(op + 1) {
		head := k.queues[op].gate.first
		if last != nil && op == from {
			if head = last.next; k.index == nil {
				continue // the last one stands for all of its operation
			}
		}
		if head == nil || head.seq >= r.came || !k.rules.Conflicts.Between(r.Op, op) {
			continue
		}
		for k.index != nil && !clash(r, head) { // or else they all conflict with r
			if head = head.next; head == nil || head.seq >= r.came {
				head = nil
				break
			}
		}
		if head == nil {
			continue
		}
		o := &k.rules.Operations[op]
		if a := &k.queues[op].answer; o.Family || o.Looks != guards.AtState || a.falsePart == "" || !k.current(op, a) {
			return head
		}
	}
	return nil
}
