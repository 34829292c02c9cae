// Package engine runs the scheduler of an object under threads: it says when a request
// arrives, on which thread its body runs, and how its caller waits.
//
//	caller ──► idle? take it, run, let go                       (the fast path: two atomic steps)
//	   │
//	   └─ busy or closed ──► spin a little ──► arrive ──► wait ──► result
//	                                              │                  ▲
//	                                   owner: next? run it here, or pass the object to its thread
//
// # Two exclusions
//
// Scheduling and bodies exclude separately. The scheduler belongs to whoever holds
// Mailbox.mu, which is never held while a body runs: arrivals, withdrawals,
// inspections and stops wait for guards at most. The object belongs to its
// owner: one goroutine (or a task on its way to a worker) that has set the held
// bit of Mailbox.Word. Only the owner runs bodies, asks guards and clears held.
//
// # The word
//
// Who owns the object is in its word: see package word, whose rules (W1 and so on) the code cites.
package engine

import (
	"context"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Host is the shared object behind a mailbox: its name, and what its guards say.
type Host interface {
	mailbox.Object
	// Name names the object in errors and explanations.
	Name() string
	// Open asks the plain guards of the operations in the set, given as bits,
	// in ascending order, up to the first that holds, and returns its operation;
	// or -1 if none does. It may panic.
	Open(operations uint64) int
	// Carries reports whether the request carries a plain guard of its own, which
	// WatchGuard makes the one that Open asks for the request's operation.
	Carries(r *Request) bool
	WatchGuard(r *Request)
	// Watch says which operations' guards Open will be asked about until further
	// notice; the owner calls it before it gives the object back.
	Watch(operations uint64)
	// Ended is called once, with the scheduling exclusion held, when the object
	// has been closed and its last body has returned.
	Ended()
}

// Config is what the objects of one type in one system have in common. It is not
// changed once a mailbox uses it.
type Config struct {
	Rules *mailbox.Rules
	// Tag tells objects of different types apart. Those with the tag 0 are taken by no
	// request that does not know more of them than the word.
	Tag uint32
	// Dispatcher is whose thread runs the bodies; nil means that of a caller.
	Dispatcher Dispatcher
	// Parallel, if it is not nil, lets requests run at once, and says on which threads;
	// Dispatcher is nil then.
	Parallel *Parallel
	// Turn is how many bodies a worker runs before it gives the object back to its
	// dispatcher, if more can start; 0 stands for a number that is good for most.
	Turn int
	// Workers run what has no thread of its own when the dispatcher is nil, and, in
	// any case, what follows from a request that has ended.
	Workers Dispatcher
	// HelpLimit is how many requests of others a goroutine serves before it passes
	// the object on; or, at a parallel object, before it waits.
	HelpLimit int
	// NoFastPath sends every request through the scheduler. The answers are the
	// same; tests run both ways.
	NoFastPath bool
	// Rank gives a request its rank, for mailbox.Ranked; nil if nobody asks for it.
	Rank func(ctx context.Context) int64
	// Carried is the number, plus one, of an operation whose requests carry their
	// guards, as far as the fast path is to know of it; 0 if there is none.
	Carried int
	// Prioritised says that a request's rank is its priority, the other way round.
	Prioritised bool
	// Views says that the policy wants to see the requests as Candidates.
	Views bool
	// Counted objects count what finds them idle, too; Timed ones measure how long
	// requests wait.
	Counted, Timed bool
	// Unwanted returns an error if the sender of a request that came by message (see
	// Request.Answers) is known to have gone, so that the request is to be withdrawn: nothing
	// would get its result. It is asked when the request is about to start, with the
	// scheduling exclusion held, and must neither wait nor come back to the object.
	Unwanted func(r *Request) error
	// Patience is how long a request may wait before Overdue is told, once, with
	// what runs; 0 is for ever. It is also how long a body may run before Overlong is told,
	// once; within twice that.
	Patience time.Duration
	Overdue  func(object string, w mailbox.Waiting, running []mailbox.Running)
	Overlong func(object string, r mailbox.Running)
	// Failed, if it is not nil, is told that a policy has failed when it was asked about
	// r, and perhaps about others. It is called with mu held.
	Failed func(host Host, r *Request, err error)

	rest word.Word // the word of an object that nobody owns, and at which nobody waits
	// What the requests that wait for an operation have the word say: of plain ones, of which the fast
	// path evaluates the guard, that they wait; of the others one thing more.
	plain         uint64
	recheck, slow guards.Set

	bounded bool           // some waiting queue is
	noted   bool           // something is noted of each request: what its policy wants to know, when to look after it, or from inside of whom it is called
	shared  []word.Counter // per operation: its counter, if the object is parallel
	counts  bool           // some operation has one
	nowhere *Mailbox       // in which requests are that have ended, and been released
	idles   bool           // it matters that a thread is idle as its body waits: it is lent, or does not count for the limit
}

// Dispatcher lends threads to objects.
type Dispatcher interface {
	// Dispatch runs the task on a thread of its own, soon, and does not wait
	// for it.
	Dispatch(Task)
}

// Task is something to run on a dispatcher's thread.
type Task interface{ Run() }

// Mailbox is the waiting queue, the running queue and the scheduler of one
// object. Init must be called before anything else.
type Mailbox struct {
	// Word is the state of the object. The fast path adds a Mark to
	// it to take an object that is Idle, or Idle and Parked, and puts back what it
	// found to give it back. If taking fails, the slow path finds out why; if giving
	// back fails, the caller still owns the object, and calls Look and then Yield.
	Word word.Atomic

	// watched are the operations with waiters whose guards the fast path asks. It is
	// the owner's, like the state: who has stored it gives the object back with parked
	// in the word, and who loads it has taken the object by a swap that found parked.
	watched uint64

	mu     exclusion
	queues atomic.Pointer[mailbox.Scheduler] // made when a request first has to be considered; used under mu
	closed *closing                          // once the object takes no more requests
	extras atomic.Pointer[extras]            // nil unless the object has any
	out    *Request                          // has ended, and its caller is to be told, while the owner asks the scheduler

	// What never changes comes last, and so into another cache line than the word: who leaves
	// an object at which others run beside him looks it up before he writes the word.
	host   Host
	config *Config
}

// closing is the end of an object.
type closing struct {
	err      error
	idle     chan struct{} // closed when the last body has returned
	draining bool          // what waits is served as long as anything can start
	over     bool
}

// Prepare completes a configuration, whose fields are all set. Plain says which
// operations have a guard that is a single condition over the state.
func (c *Config) Prepare(plain func(op int) bool) *Config {
	if c.rest = word.Idle(c.Tag); c.Dispatcher != nil || c.NoFastPath {
		c.rest = c.rest.Close()
	}
	if c.Parallel != nil {
		c.rest, c.shared = word.Slow, c.counters()
		c.counts = slices.ContainsFunc(c.shared, word.Counter.Exists)
	}
	_, lent := c.Dispatcher.(lender)
	c.idles = lent || c.Parallel != nil && (c.Parallel.Threads != nil || c.Parallel.Limit > 0 && !c.Parallel.Hard)
	c.bounded = c.Rules.Bound.Overflow != mailbox.Unbounded
	c.noted = c.Rank != nil || c.Views || c.Patience > 0 || c.Rules.Reentrant
	c.nowhere = &Mailbox{config: &Config{Rules: c.Rules, Workers: c.Workers}, host: nowhere{}} // the threads of a Parallel may be an object's
	n := len(c.Rules.Operations)
	c.recheck, c.slow = guards.NewSet(n), guards.NewSet(n)
	for op, o := range c.Rules.Operations {
		c.bounded = c.bounded || o.Bound.Overflow != mailbox.Unbounded
		switch {
		case op < 64 && plain(op):
			c.plain |= 1 << op
		case o.Looks&(guards.AtWaiting|guards.AtTime) != 0:
			// The scheduler is to see every arrival: it counts, or finds the guard true before those
			// that wait for the same time have been told that it has come.
			c.slow.Add(op)
		default:
			c.recheck.Add(op)
		}
	}
	return c
}

// nowhere is the host of a mailbox in which nothing waits or runs, ever. So it is asked for its
// name only.
type nowhere struct{ Host }

// Name implements Host.
func (nowhere) Name() string { return "" }

// Host returns the object that Init has been given.
func (m *Mailbox) Host() Host { return m.host }

// Init makes the mailbox ready for requests. Config must have been prepared.
func (m *Mailbox) Init(config *Config, host Host) {
	m.config, m.host = config, host
	if n := len(config.Rules.Operations); config.Counted || config.Timed || config.Patience > 0 || config.Parallel != nil {
		x := &extras{}
		if config.Parallel != nil {
			x.parallel = &parallelState{untracked: make([]int, n), placeholders: make([]bool, n)}
		}
		if config.Counted {
			x.fast = make([]fastCounts, n)
		}
		if config.Timed {
			x.waits = make([]mailbox.Histogram, n)
		}
		m.extras.Store(x)
	}
	m.Word.Store(m.rest())
	if config.Patience > 0 {
		m.watch()
	}
}

// rest is the word of the object when nobody owns it and nobody waits.
func (m *Mailbox) rest() word.Word {
	w := m.config.rest
	if m.closed != nil || m.suspended() != nil || m.observed() {
		w = w.Close()
	}
	return w
}

// Waiting returns how many requests of the operation wait inside (Ada's 'Count).
// Guards and bodies may call it: it takes no lock.
func (m *Mailbox) Waiting(op int) int {
	if k := m.queues.Load(); k != nil {
		return k.Waiting(op)
	}
	return 0
}

// Joined returns how many requests of the operation have come inside so far. Guards and
// bodies may call it: it takes no lock.
func (m *Mailbox) Joined(op int) uint64 {
	if k := m.queues.Load(); k != nil {
		return k.Joined(op)
	}
	return 0
}

// Queued returns how many requests of the operation wait, those that are still
// outside behind what runs included. It takes no lock.
func (m *Mailbox) Queued(op int) int {
	if k := m.queues.Load(); k != nil {
		return k.Queued(op)
	}
	return 0
}

// scheduler returns the scheduler, which belongs to the holder of mu.
func (m *Mailbox) scheduler() *mailbox.Scheduler {
	if k := m.queues.Load(); k != nil {
		return k
	}
	return m.newScheduler()
}

func (m *Mailbox) newScheduler() *mailbox.Scheduler {
	k := mailbox.New(m.config.Rules, m.host)
	if c := m.closed; c != nil && !c.draining {
		k.Close(c.err)
	}
	m.queues.Store(k)
	return k
}

// Take takes the object for a leaf body if it is free or becomes free soon, and
// returns the word as it was. It reports false if the fast path is closed, or
// the object stays busy for as long as it is worth waiting awake.
//
// A spinner has not arrived: it competes with whoever comes. The probes are few
// and far apart, so that the owner keeps the cache line for a while: about 1 µs in all,
// what it takes to park and be woken two or three times. (With one more the longest call
// among many callers takes twice as long.) Also who would not have to wait for the result
// spins: a queue that all join without delay grows as fast as it is served, or faster.
func (m *Mailbox) Take(mark word.Word) (w word.Word, ok bool) {
	const probes, gap = 3, 1000
	for i := 0; ; i++ {
		w = m.Word.Load()
		if w.Free() && m.Word.CompareAndSwap(w, w|mark) {
			return w, true
		}
		if w.Has(word.Shared) {
			return w, m.Admit(mark.Operation())
		}
		if w.Has(word.Slow) || i == probes || i == 0 && runtime.GOMAXPROCS(0) == 1 {
			return w, false
		}
		for j := 0; j < gap; j++ {
		}
	}
}

// Leaving says how the fast path's owner leaves the object.
type Leaving struct {
	// Op is the operation that the object was taken for.
	Op int
	// Changed says that the body may have changed the state.
	Changed bool
	// MayHelp says that the caller may run the bodies of others. One that is inside
	// another object must not.
	MayHelp bool
	// Asked are the operations, as bits, whose plain guards have been asked since
	// the body returned, up to Open, whose guard holds; or all of them, if Open
	// is -1.
	Asked uint64
	Open  int
	// Opens says which keys the body can have opened of the families that the
	// operation declares; nil if it declares none.
	Opens mailbox.Opener
}

// Watched returns the operations that wait with plain guards, as Asked, to the owner.
func (m *Mailbox) Watched() uint64 { return m.watched }

// Look asks the guards that are waited for, unless l says what they answer, and
// gives the object back if nobody can start. If it reports false the caller still
// owns the object, and must call Yield. A guard that panics or exits does so out
// of Look, before anything has been given back.
//
// Waiters there may be, but if the word says that none has come or gone through
// this owner, and their guards are false, the object is as it was found. The set
// of them cannot grow unnoticed: an arrival sets engaged, and then the swap fails.
func (m *Mailbox) Look(l *Leaving) (gone bool) {
	w := m.Word.Load()
	if w.Has(word.Slow) {
		return m.Depart(l.Op) // others run beside the caller
	}
	if w.Has(word.Engaged) {
		return false
	}
	if l.Changed {
		if w.Has(word.Recheck) {
			return false
		}
		if w.Has(word.Parked) && l.Asked == 0 {
			l.Asked = m.watched
			l.Open = m.host.Open(l.Asked)
		}
		if l.Asked != 0 && l.Open >= 0 {
			return false
		}
	}
	if !m.Word.CompareAndSwap(w, w.Released()) {
		return false
	}
	if m.extras.Load() != nil {
		for ops := l.Asked; ops != 0; ops &= ops - 1 {
			m.Count(bits.TrailingZeros64(ops), false, 1)
		}
	}
	return true
}

// Yield gives the object back and serves those who can start. The caller has
// taken it on the fast path, and does not own it any more whatever happens: a
// body that is run here may leave through runtime.Goexit.
func (m *Mailbox) Yield(l Leaving) {
	m.mu.Lock()
	if m.config.Parallel != nil {
		if !m.Depart(l.Op) {
			m.departed(l)
			if m.engage() {
				m.startAll(nil)
				return
			}
			m.changed()
		}
		m.mu.Unlock()
		return
	}
	k := m.scheduler()
	switch unknown := m.own(); {
	case unknown && l.Changed:
		k.Ran(l.Op, l.Opens)
	case unknown:
		k.Begin(l.Op)
		k.Abandon(l.Op)
	case l.Changed:
		k.End(l.Op, l.Opens)
	default:
		k.Abandon(l.Op)
	}
	if l.Asked != 0 {
		k.Answered(l.Asked, l.Open)
	}
	m.serve(nil, m.helpLimit(l.MayHelp), false)
}

// own turns the fast path's owner, who holds mu, into one that the scheduler is
// asked by. It reports true if the scheduler has not been told what runs. A store is enough (W1).
func (m *Mailbox) own() (unknown bool) {
	w := m.Word.Load()
	if w.Has(word.Engaged) {
		return false
	}
	m.Word.Store(w.Engage())
	return true
}

// engage makes the caller, who holds mu, the owner if the object is free, and
// else makes sure that the owner looks at the scheduler before it lets go.
func (m *Mailbox) engage() (owner bool) {
	if m.config.Parallel != nil {
		return m.setExclusive()
	}
	for {
		w := m.Word.Load()
		switch {
		case !w.Has(word.Held):
			if m.Word.CompareAndSwap(w, w.Own()) {
				return true
			}
		case w.Has(word.Engaged):
			return false // the owner lets go under mu only
		default:
			if m.Word.CompareAndSwap(w, w.Engage()) {
				m.scheduler().Begin(w.Operation())
				return false
			}
		}
	}
}

// release gives the object back. The caller owns it, holds mu, and has been told
// by the scheduler that nothing can start. While held is set nothing but the holder
// of mu writes the word, so that a store is enough.
func (m *Mailbox) release() {
	w := m.rest()
	if k := m.queues.Load(); k != nil { // or else nothing has ever waited
		w = m.park(w, k)
	}
	if m.config.Parallel != nil {
		w = m.setShared(w)
	}
	m.Word.Store(w)
	if m.closed != nil || m.extras.Load() != nil {
		m.released()
	}
}

// park adds to the word what is to be said of the requests that wait, and has the host keep the
// guards that the fast path evaluates for them. Those in the overflow queue are as the admitted
// ones: nothing runs, and nothing can start, so that they wait for their guards, or behind the
// head of a line of which the same is said.
func (m *Mailbox) park(w word.Word, k *mailbox.Scheduler) word.Word {
	c, in := m.config, k.Inside()
	if c.bounded && k.AtDoor() {
		in = slices.Clone(in)
		for op := range c.Rules.Operations {
			if k.AtDoorOf(op) {
				in.Add(op)
			}
		}
	}
	watched, carrier := uint64(0), (*Request)(nil)
	for i, ops := range in {
		if ops == 0 {
			continue
		}
		w |= word.Parked
		if i == 0 {
			watched = ops & c.plain
		}
		if ops&c.recheck[i] != 0 {
			w |= word.Recheck
		}
		if ops&c.slow[i] != 0 {
			w |= word.Slow
		}
	}
	if w.Has(word.Recheck) && c.Carried > 0 {
		if carrier = m.carried(k, in); carrier != nil {
			w &^= word.Recheck
			watched = 1 << (c.Carried - 1)
		}
	}
	if c.Parallel != nil && k.Threadless() != nil {
		w |= word.Parked | word.Recheck
	}
	// Where nothing waits nothing looks at the set. But a guard that requests carry is
	// not kept longer than they are.
	if old := m.watched; old != watched && (w.Has(word.Parked) || old>>(uint(c.Carried)-1)&1 != 0) {
		m.watched = watched // before the word: see there
		m.host.Watch(watched)
	}
	if carrier != nil {
		m.host.WatchGuard(carrier)
	}
	return w
}

// released says that the object has been given back, where that is of interest.
func (m *Mailbox) released() {
	m.noteQuiescent()
	if c := m.closed; c != nil && !c.over && !m.runs() && !(c.draining && (m.suspended() != nil || m.waits())) { // or else those that wait may yet be served
		c.over = true
		m.forget()
		close(c.idle)
		m.unwatch()
		m.host.Ended()
	}
	m.changed()
}

// runs reports whether anything runs, as far as the scheduler knows. The caller holds mu.
func (m *Mailbox) runs() bool {
	k := m.queues.Load()
	return k != nil && k.Runs()
}

// waits reports whether anybody waits. The caller holds mu.
func (m *Mailbox) waits() bool {
	k := m.queues.Load()
	return k != nil && k.Waits()
}

// carried returns one of the requests that wait, if they all carry one guard, and a plain one; or
// nil.
func (m *Mailbox) carried(k *mailbox.Scheduler, in guards.Set) *Request {
	op := m.config.Carried - 1
	if in.Next(0) != op || in.Next(op+1) >= 0 || k.AtDoor() {
		return nil
	}
	r := k.Only(op)
	if r == nil || !m.host.Carries(r.Record.(*Request)) {
		return nil
	}
	return r.Record.(*Request)
}

// next returns the next request to start, or to fail with err, or nil if nothing
// can be done. The caller owns the object and holds mu. A request that may not start
// goes on waiting, and is returned with mailbox.ErrNoThread.
//
// A request whose context has ended does not start, even if its caller has had
// no time to withdraw it.
func (m *Mailbox) next(may func(*mailbox.Request) bool) (r *Request, err error) {
	k := m.scheduler()
	for {
		next, err := k.NextFor(may)
		if m.extras.Load() != nil {
			m.holdIfFailed()
		}
		if next == nil {
			if c := m.closed; c != nil && c.draining && !k.Runs() && !k.Held() && !m.threadExpected() {
				c.draining = false
				k.Close(c.err)
				continue
			}
			return nil, nil
		}
		r := next.Record.(*Request)
		gone := r.gone()
		if err != nil && err != mailbox.ErrNoThread {
			m.dismissThread(r)
		}
		if err == nil && gone == nil && !next.Try { // it has been claimed: see may
			if m.config.Timed && k.Waited(next) {
				m.measure(r)
			}
			return r, nil
		}
		switch {
		case err != nil && err != mailbox.ErrNoThread:
			if !r.claim() {
				continue // another one of its selection runs, and nobody asks about this
			}
		case r.lost():
			k.Withdraw(next) // nobody waits for it any more, and it is about to be withdrawn anyway
			m.dismissThread(r)
			continue
		case gone != nil && !r.claim():
			k.Withdraw(next) // likewise, since we looked
			m.dismissThread(r)
			continue
		case gone != nil && err == nil:
			k.Decline(next) // a Try, which has been started without a question; or its context has ended since
			m.dismissThread(r)
			r.lapses()
			err = gone
		case err == nil && m.config.Parallel != nil && !may(next):
			k.Decline(next) // a Try: it would have to wait for a thread; or its context has ended since we looked
			m.dismissThread(r)
			if err = r.gone(); err != nil {
				r.lapses()
			} else {
				err = &mailbox.RefusedError{Operation: m.config.Rules.Operations[r.Op].Name}
			}
		case gone != nil:
			k.Withdraw(next)
			m.dismissThread(r)
			r.lapses()
			err = gone
		case err == nil && m.config.Timed && k.Waited(next):
			m.measure(r)
		}
		return r, err
	}
}

// serve runs what can start until nothing can or the object has been passed on.
// It is called by the owner with mu held, and returns with mu released.
//
// Self is a request of the calling goroutine that may be among those to start.
// Up to budget other requests are run here too: by a worker all that are not for
// their own caller's goroutine, by a caller only leaf bodies. If one of these ends
// the goroutine before self has run, self is withdrawn if its caller is there, and so
// dies (see Forsake), and else is left to the worker that takes over.
func (m *Mailbox) serve(self *Request, budget int, worker bool) {
	if m.config.Parallel != nil {
		m.startAll(nil)
		return
	}
	var out *Request // has ended; its caller is told outside mu
	s := server{self: self, budget: budget, worker: worker, dispatched: m.config.Dispatcher != nil}
	for {
		if worker && s.budget <= 0 && m.scheduler().AtGate() {
			// Enough for one turn. Those at the gate come in when there is a thread
			// again, as a Try is decided by that; without any, those inside are asked
			// here, so that there is no other turn unless one of them can start.
			m.changed()
			m.hand(out)
			return
		}
		m.out = out
		r, err := m.next(s.may)
		m.out = nil
		if r == nil {
			m.release()
			m.mu.Unlock()
			if out != nil {
				out.settle()
			}
			return
		}
		m.changed() // or release says so
		if m.config.bounded {
			m.report(m.scheduler().Failed) // for whom there is no room behind r
		}
		switch {
		case err == mailbox.ErrNoThread:
			m.hand(out)
			return
		case err == nil && !s.here(r):
			m.pass(r, out)
			return
		}
		m.mu.Unlock()
		if out != nil {
			out.settle()
		}
		r.retire()
		if r != s.self {
			s.budget--
		}
		if out = r; !m.carryOut(r, err) {
			out = nil // it waits here again
			if r == s.self && !r.called() {
				s.self = nil // who has posted it has better things to do than to run all that follows
			}
		} else if r == s.self {
			if s.self = nil; r.called() {
				out, r.ended = nil, true // its caller is here
				if r.hop() != nil {
					s.budget = 0 // and has to take it to another object
				}
			}
		}
	}
}

// hand gives the object, which the caller owns, to a worker. It is called with mu
// held, and releases it. Out has ended, and its caller is to be told; or it is nil.
func (m *Mailbox) hand(out *Request) {
	m.mu.Unlock()
	out.settle()
	m.workers().Dispatch(m)
}

// server is a goroutine that serves.
type server struct {
	self               *Request // its own, not run yet; or nil
	budget             int      // how many others it still runs
	worker, dispatched bool
}

// here reports whether r is to run on the goroutine itself. Who is committed to a request of
// his own runs no other before it, in which his goroutine may end.
func (s *server) here(r *Request) bool {
	return r == s.self || s.budget > 0 && (s.self == nil || !s.self.called() || !s.self.committed) && (r.Leaf || s.worker && (s.dispatched || !r.called()))
}

// may reports whether a request may start: its context has not ended, there is a
// thread for it, if only that of its caller, who waits, and no other of its
// selection runs.
func (s *server) may(next *mailbox.Request) bool {
	r := next.Record.(*Request)
	return r.gone() == nil && (s.here(r) || !s.dispatched && r.called()) && (r.rare == nil || r.claim())
}

// carryOut runs r, or fails it if err is not nil, and comes back with mu held. The
// caller owns the object. It reports false if r waits here again.
func (m *Mailbox) carryOut(r *Request, err error) bool {
	if err != nil {
		r.fail(err)
		m.mu.Lock()
		return true
	}
	f := r.frame
	r.Body.Run()
	m.mu.Lock()
	m.regain(f)
	if r.hop() != nil {
		return m.over(r)
	}
	m.scheduler().Complete(&r.Request)
	return true
}

// pass gives the object, and r with it, to the caller that waits for r. The
// passing goroutine owns the object and holds mu, which is released. From the
// moment it is passed the object belongs to the receiver, who acts when it has
// received: the channel orders the two.
func (m *Mailbox) pass(r, out *Request) {
	r.granted = true
	m.mu.Unlock()
	out.settle()
	r.retire()
	r.wake <- struct{}{}
}

func (m *Mailbox) workers() Dispatcher {
	if d := m.config.Dispatcher; d != nil {
		return d
	}
	return m.config.Workers
}

// Run is the turn of a worker that the object was dispatched to: it owns the
// object from now on. It implements Task.
func (m *Mailbox) Run() {
	turn := m.config.Turn
	if turn == 0 {
		turn = 256 // then other objects may have the worker
	}
	m.mu.Lock()
	m.serve(nil, turn, true)
}

// helpLimit returns how many requests of others the calling goroutine may serve.
func (m *Mailbox) helpLimit(may bool) int {
	if !may {
		return 0
	}
	return m.config.HelpLimit
}

// Name returns the name of the object.
func (m *Mailbox) Name() string { return m.host.Name() }

// Dispatcher returns whose thread runs the bodies, or nil if it is a caller's.
func (m *Mailbox) Dispatcher() Dispatcher {
	if l, ok := m.config.Dispatcher.(lender); ok {
		return l.own()
	}
	return m.config.Dispatcher
}

// Busy reports whether somebody owns the object.
func (m *Mailbox) Busy() bool { return m.Word.Load().Has(word.Held) }

// Draining reports whether the object takes no more requests, but serves those that
// wait and can start.
func (m *Mailbox) Draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed != nil && m.closed.draining
}

// Closed reports whether the object takes no more requests.
func (m *Mailbox) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed != nil
}
