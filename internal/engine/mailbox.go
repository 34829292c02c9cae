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
// The scheduler and the object are owned separately. The scheduler belongs to the goroutine that
// holds Mailbox.mu, which is never held while a body runs: arrivals, withdrawals, inspections and
// stops wait for guards at most. The object belongs to its owner: one goroutine (or a task on its
// way to a worker) that has set the held bit of Mailbox.Word. Only the owner runs bodies, evaluates
// guards and clears held. (At a parallel object it runs no bodies: see Parallel.)
//
// # The word
//
// Whether the object has an owner is in its word: see package word, whose rules (W1 and so on) the
// code cites.
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

// Host is the shared object behind a mailbox: its name, and the results of its guards.
type Host interface {
	mailbox.Object
	// Name names the object in errors and explanations.
	Name() string
	// Open evaluates the plain guards of the operations in the set, given as bits, in
	// ascending order, up to the first that holds. It returns the operation of that, or -1
	// if none holds. It may panic.
	Open(operations uint64) int
	// Carries reports whether the request carries a plain guard of its own. WatchGuard makes
	// that the guard that Open evaluates for the request's operation.
	Carries(r *Request) bool
	WatchGuard(r *Request)
	// Watch says which operations' guards Open will be called for, until the next Watch.
	// The owner calls it before it releases the object.
	Watch(operations uint64)
	// Ended is called once, with the scheduling exclusion held, when the object
	// has been closed and its last body has returned.
	Ended()
}

// Config is what the objects of one type in one system have in common. It is not
// changed once a mailbox uses it.
type Config struct {
	Rules *mailbox.Rules
	// Tag tells objects of different types apart. An object with the tag 0 is not taken by a
	// request that compares nothing but the word.
	Tag uint32
	// Dispatcher is whose thread runs the bodies; nil means that of a caller.
	Dispatcher Dispatcher
	// Parallel, if it is not nil, lets requests run at once, and says on which threads;
	// Dispatcher is nil then.
	Parallel *Parallel
	// Turn is how many bodies a worker runs before it hands the object back to its
	// dispatcher, if more can start; 0 stands for a number that is good for most.
	Turn int
	// Workers run what has no thread of its own when the dispatcher is nil, and, in
	// any case, what follows from a request that has ended.
	Workers Dispatcher
	// HelpLimit is how many requests of other callers a goroutine runs before it passes
	// the object on; or, at a parallel object, before it waits.
	HelpLimit int
	// NoFastPath sends every request through the scheduler. The results are the
	// same; tests run both ways.
	NoFastPath bool
	// Rank returns the rank of a request, for mailbox.Ranked; nil if no policy needs it.
	Rank func(ctx context.Context) int64
	// Carried is the number, plus one, of an operation whose requests carry their guards, if
	// the fast path is to evaluate these; 0 if there is none.
	Carried int
	// Prioritized says that a request's rank is the complement of its priority.
	Prioritized bool
	// Views says that the policy compares requests as Candidates.
	Views bool
	// Counted objects also count the requests that find them idle. Timed objects measure how
	// long requests wait.
	Counted, Timed bool
	// Unwanted returns an error if the sender of a request that came by message (see
	// Request.Answers) is known to have gone, so that the request is to be withdrawn: nothing
	// would get its result. It is called when the request is about to start, with mu held, and
	// must neither wait nor come back to the object.
	Unwanted func(r *Request) error
	// Patience is how long a request may wait before Overdue is called, once, with what runs;
	// 0 means for ever. It is also how long a body may run before Overlong is called, once,
	// and at the latest after twice that time.
	Patience time.Duration
	Overdue  func(object string, w mailbox.Waiting, running []mailbox.Running)
	Overlong func(object string, r mailbox.Running)
	// Failed, if it is not nil, is called when a policy has failed as it compared r, perhaps
	// with others. It is called with mu held.
	Failed func(host Host, r *Request, err error)

	rest word.Word // the word of an object that has no owner, and at which nothing waits
	// What the waiting requests of an operation add to the word. Plain operations, whose guards
	// the fast path evaluates, add Parked alone; those in recheck and slow also add that flag.
	plain         uint64
	recheck, slow guards.Set

	bounded bool           // some waiting queue is
	noted   bool           // note is needed: for the policy, for Patience, or for Rules.Reentrant
	shared  []word.Counter // per operation: its counter, if the object is parallel
	counts  bool           // some operation has one
	nowhere *Mailbox       // the box of requests that have ended and been released
	// distinct says that what runs is in the way of some requests and not of others.
	distinct bool
	idles    bool // while a body waits its thread is lent, or does not count for the limit
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
	// Word is the state of the object. The fast path takes an object that is Idle, or Idle and
	// Parked, by a swap that adds a Mark, and releases it by a swap to what it found. If the
	// first swap fails, the slow path finds out why. If the second fails, the caller still owns
	// the object, and calls Look and then Yield.
	Word word.Atomic

	// watched are the operations with waiting requests whose guards the fast path evaluates.
	// Only the owner uses it, like the state: an owner stores it before it stores a word with
	// Parked, and an owner that loads it has taken the object by a swap from such a word.
	watched uint64

	mu     exclusion
	queues atomic.Pointer[mailbox.Scheduler] // made when a request first has to be considered; used under mu
	closed *closing                          // once the object takes no more requests
	extras atomic.Pointer[extras]            // nil unless the object has any
	out    *Request                          // has ended, and its caller is yet to be told; set during calls of next, for abandon

	// What never changes comes last, in another cache line than the word. A body that leaves a
	// parallel object reads it before it writes the word, which others write meanwhile.
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
	c.distinct = c.Parallel != nil || c.Rules.Transactional || slices.ContainsFunc(c.Rules.Operations, func(o mailbox.Operation) bool { return o.Resumes })
	c.noted = c.Rank != nil || c.Views || c.Patience > 0 || c.Rules.Reentrant
	c.nowhere = &Mailbox{config: &Config{Rules: c.Rules, Workers: c.Workers}, host: nowhere{}} // without Parallel, whose threads may belong to one object
	n := len(c.Rules.Operations)
	c.recheck, c.slow = guards.NewSet(n), guards.NewSet(n)
	for op, o := range c.Rules.Operations {
		c.bounded = c.bounded || o.Bound.Overflow != mailbox.Unbounded
		switch {
		case op < 64 && plain(op):
			c.plain |= 1 << op
		case o.Looks.Lapses():
			// The scheduler has to see every arrival: it is counted; or it might find the guard true
			// before the requests that wait for the same time are considered.
			c.slow.Add(op)
		default:
			c.recheck.Add(op)
		}
	}
	return c
}

// nowhere is the host of a mailbox in which nothing ever waits or runs. Only its name is used.
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

// rest returns the word of the object for when it has no owner and nothing waits.
func (m *Mailbox) rest() word.Word {
	w := m.config.rest
	if m.closed != nil || m.suspended() != nil || m.observed() || m.config.Rules.Transactional && m.retains() {
		w = w.Close()
	}
	return w
}

// Waiting returns how many requests of the operation are admitted and wait (Ada's 'Count). Guards
// and bodies may call it: it takes no lock.
func (m *Mailbox) Waiting(op int) int {
	if k := m.queues.Load(); k != nil {
		return k.Waiting(op)
	}
	return 0
}

// Joined returns how many requests of the operation have been admitted so far. Guards and bodies
// may call it: it takes no lock.
func (m *Mailbox) Joined(op int) uint64 {
	if k := m.queues.Load(); k != nil {
		return k.Joined(op)
	}
	return 0
}

// Queued returns how many requests of the operation wait, admitted or not. It takes no lock.
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
// A spinner has not arrived: it competes with every later caller. The probes are few and far apart,
// so that the owner keeps the cache line for a while: about 1 µs in all, what it takes to park and
// be woken two or three times. (With one more the longest call among many callers takes twice as
// long.) A caller that does not wait for the result spins, too: a queue that all join without delay
// grows as fast as it is served, or faster.
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
	// MayHelp says that the calling goroutine may run the bodies of other callers. It must not
	// if it is inside another object.
	MayHelp bool
	// Asked are the operations, as bits, whose plain guards have been evaluated since the body
	// returned: in ascending order up to Open, whose guard holds; or all, if Open is -1.
	Asked uint64
	Open  int
	// Opens says which keys the body can have opened of the families that the
	// operation declares; nil if it declares none.
	Opens mailbox.Opener
	// For is the claim of a transaction on whose behalf the body has run, which retains it; or nil.
	For *mailbox.Claim
}

// Watched returns the operations with waiting requests whose guards are plain, as bits. Only the
// owner may call it.
func (m *Mailbox) Watched() uint64 { return m.watched }

// Look releases the object if no waiting request can start. It evaluates the guards that are waited
// for, unless l has their results. If it reports false the caller still owns the object, and must
// call Yield. A guard that panics or exits does so out of Look, before the object is released.
//
// Requests may wait all the same. If the word says that none has come or gone while the caller
// owned the object, and their guards are false, the object is as it was found. No request begins
// to wait unnoticed: an arrival sets Engaged, so that the swap fails (W2).
func (m *Mailbox) Look(l *Leaving) (gone bool) {
	if l.For != nil {
		return false
	}
	w := m.Word.Load()
	if w.Has(word.Slow) {
		return m.Depart(l.Op) // the object is parallel: other bodies may run
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

// Yield serves the requests that can start, and then releases the object or passes it on. The
// caller has taken the object on the fast path. It does not own it any more, even if Yield does not
// return: a body that is run here may leave through runtime.Goexit.
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
	case l.For != nil:
		m.retain(unknown, &l)
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
		k.GuardResults(l.Asked, l.Open)
	}
	m.serve(nil, m.helpLimit(l.MayHelp), false)
}

// own sets Engaged for an owner by the fast path, which holds mu. It reports true if that was not
// set, so that the scheduler has not been told what runs. A store is enough (W1).
func (m *Mailbox) own() (unknown bool) {
	w := m.Word.Load()
	if w.Has(word.Engaged) {
		return false
	}
	m.Word.Store(w.Engage())
	return true
}

// engage makes the caller, which holds mu, the owner if there is none. Else it makes sure that the
// owner consults the scheduler before it releases the object, and that the scheduler knows what
// runs.
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
			return false // the owner releases the object under mu only
		default:
			if m.Word.CompareAndSwap(w, w.Engage()) {
				m.scheduler().Begin(w.Operation())
				return false
			}
		}
	}
}

// release ends the caller's ownership of the object. The caller holds mu, and the scheduler has
// said that nothing can start. While Held and Engaged are set only the holder of mu writes the word,
// so that a store is enough (W1).
func (m *Mailbox) release() {
	w := m.rest()
	if k := m.queues.Load(); k != nil { // else nothing has ever waited
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

// park adds to w the flags for the requests that wait, and tells the host which guards the fast path
// evaluates for them. Requests in the overflow queue count as admitted ones do: nothing runs, and
// nothing can start, so that they wait for their guards, or behind the head of a line, which does.
func (m *Mailbox) park(w word.Word, k *mailbox.Scheduler) word.Word {
	c, in := m.config, k.Admitted()
	if c.bounded && k.Overflowing() {
		in = slices.Clone(in)
		for op := range c.Rules.Operations {
			if k.OverflowingOf(op) {
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
	if c.Parallel != nil && k.AwaitingThread() != nil {
		w |= word.Parked | word.Recheck
	}
	// Where nothing waits nothing looks at the set. But a guard that requests carry is
	// not kept longer than they are.
	if old := m.watched; old != watched && (w.Has(word.Parked) || old>>(uint(c.Carried)-1)&1 != 0) {
		m.watched = watched // before the word: see watched
		m.host.Watch(watched)
	}
	if carrier != nil {
		m.host.WatchGuard(carrier)
	}
	return w
}

// released does what follows from a release, at an object that is closed or has extras. If it is
// closed and nothing runs any more, that is the end of the object.
func (m *Mailbox) released() {
	m.noteQuiescent()
	if c := m.closed; c != nil && !c.over && !m.runs() && !m.unwinds() && !m.undoes() && !(c.draining && (m.suspended() != nil || m.waits() || m.retains())) { // a Drain may yet serve what waits
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

// waits reports whether any request waits. The caller holds mu.
func (m *Mailbox) waits() bool {
	k := m.queues.Load()
	return k != nil && k.Waits()
}

// carried returns one of the requests that wait, if all carry the same plain guard; or nil.
func (m *Mailbox) carried(k *mailbox.Scheduler, in guards.Set) *Request {
	op := m.config.Carried - 1
	if in.Next(0) != op || in.Next(op+1) >= 0 || k.Overflowing() {
		return nil
	}
	r := k.Only(op)
	if r == nil || !m.host.Carries(r.Record.(*Request)) {
		return nil
	}
	return r.Record.(*Request)
}

// next returns the next request to start, or to fail with err; or nil if nothing can be done. May
// says which requests the caller can start. The first one that it does not allow goes on waiting,
// and is returned with mailbox.ErrNoThread. The caller owns the object and holds mu.
//
// A request whose context has ended does not start, even if its caller has had no time to withdraw
// it.
func (m *Mailbox) next(may func(*mailbox.Request) bool) (r *Request, err error) {
	k := m.scheduler()
	for {
		next, err := k.NextFor(may)
		if m.extras.Load() != nil {
			m.holdIfFailed()
		}
		if next == nil {
			if c := m.closed; c != nil && c.draining && !k.Runs() && !k.Retains() && !k.Held() && !m.threadExpected() && !m.expects() {
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
				continue // another request of its selection runs, so this one is told nothing
			}
		case r.lost():
			k.Withdraw(next) // another request of its selection runs, whose thread is about to withdraw it anyway
			m.dismissThread(r)
			continue
		case gone != nil && !r.claim():
			k.Withdraw(next) // likewise, since lost was called
			m.dismissThread(r)
			continue
		case gone != nil && err == nil:
			k.Decline(next) // a Try, for which may is not called; or its context has ended since may was
			m.dismissThread(r)
			r.lapses()
			err = gone
		case err == nil && m.config.Parallel != nil && !may(next):
			k.Decline(next) // a Try: it would have to wait for a thread; or its context has ended since gone was called
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

// serve runs what can start, until nothing can, or the object has been passed on. It is called by
// the owner with mu held, and returns with mu released.
//
// Self is a request that the calling goroutine has handed in, or nil. Serve runs it, if it starts,
// and up to budget other requests: on a worker all but those that their own callers' goroutines
// are to run, on a caller's goroutine only leaf bodies. Such a body may end the goroutine before
// self has run. A called self is withdrawn then, as its caller dies (see Forsake); a posted one is
// left to the worker that takes over.
func (m *Mailbox) serve(self *Request, budget int, worker bool) {
	if m.config.Parallel != nil {
		m.startAll(nil)
		return
	}
	var out *Request // has ended; its caller is told without mu
	s := server{self: self, budget: budget, worker: worker, dispatched: m.config.Dispatcher != nil}
	for {
		if worker && s.budget <= 0 && m.scheduler().Entering() {
			// The turn is over. The requests in the entry queue are admitted in the next
			// turn, which has a thread: by that a Try is decided. If the entry queue is
			// empty, the admitted are considered here, so that there is a next turn only if
			// one of them can start.
			m.changed()
			m.hand(out)
			return
		}
		m.out = out
		r, err := m.next(s.may)
		m.out = nil
		m.recheckBlockers()
		if r == nil {
			m.release()
			m.mu.Unlock()
			if out != nil {
				out.settle()
			}
			return
		}
		m.changed() // release does it otherwise
		if m.config.bounded {
			m.report(m.scheduler().Failed) // requests for which there is no room behind r
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
			out = nil // r waits here again
			if r == s.self && !r.called() {
				s.self = nil // the goroutine that posted r does not run what it is requeued for
			}
		} else if r == s.self {
			if s.self = nil; r.called() {
				out, r.ended = nil, true // this is its caller's goroutine
				if r.hop() != nil {
					s.budget = 0 // which has to take r to another object
				}
			}
		}
	}
}

// hand passes the object, which the caller owns, to a worker. It is called with mu held, and
// releases mu. Out has ended, and its caller is told here; or it is nil.
func (m *Mailbox) hand(out *Request) {
	m.mu.Unlock()
	out.settle()
	m.workers().Dispatch(m)
}

// server is a goroutine in serve.
type server struct {
	self               *Request // the request that it has handed in and that has not run yet; or nil
	budget             int      // how many others it still runs
	worker, dispatched bool
}

// here reports whether r is to run on the goroutine itself. Before a called and committed self no
// other request runs here: its body might end the goroutine, and self could not be withdrawn.
func (s *server) here(r *Request) bool {
	return r == s.self || s.budget > 0 && (s.self == nil || !s.self.called() || !s.self.committed) && (r.Leaf || s.worker && (s.dispatched || !r.called()))
}

// may reports whether a request may start: its context has not ended; there is a thread for it,
// this one or that of its caller, which waits; and no other request of its selection runs.
func (s *server) may(next *mailbox.Request) bool {
	r := next.Record.(*Request)
	return r.gone() == nil && (s.here(r) || !s.dispatched && r.called()) && (r.rare == nil || r.claim())
}

// carryOut runs r, or fails it if err is not nil, and returns with mu held. The caller owns the
// object, and does not hold mu. CarryOut reports false if r waits here again.
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

// pass passes the object, together with r, to the goroutine of r's caller, which waits. It is called
// by the owner with mu held, and releases mu. The token makes the receiver the owner, and the
// channel orders what the two do.
func (m *Mailbox) pass(r, out *Request) {
	r.granted = true
	m.mu.Unlock()
	out.settle()
	r.retire()
	r.wake <- struct{}{}
}

// workers returns the dispatcher to which the object is passed.
func (m *Mailbox) workers() Dispatcher {
	if d := m.config.Dispatcher; d != nil {
		return d
	}
	return m.config.Workers
}

// Run is the turn of a worker to which the object has been passed: the worker owns the object. It
// implements Task.
func (m *Mailbox) Run() {
	turn := m.config.Turn
	if turn == 0 {
		turn = 256 // then other objects may have the worker
	}
	m.mu.Lock()
	m.serve(nil, turn, true)
}

// helpLimit returns how many requests of other callers the calling goroutine may run: none unless
// may is true.
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

// Busy reports whether the object has an owner.
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
