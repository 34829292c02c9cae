package engine

import (
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox"
)

// Parallel lets the requests of an object that do not conflict run at once, each on a thread of
// its own: the Synchronizer. An object whose Config has one is a parallel object.
//
//	arrival, completion, withdrawal ──► owner: what can start? ──► a thread for each request
//	                                       (holds mu, runs no body)      │
//	                         ▲                                           ▼
//	                         └──────────────── completion ◄──────────── body
//
// The owner of a parallel object owns the decision and nothing else: it evaluates guards, learns
// from the scheduler what can start, and runs no body as the owner. So only the conflict table
// keeps bodies apart.
//
// # What may touch the state
//
// A guard is evaluated under mu, by the owner, and only while nothing runs that conflicts with
// its operation. A body runs between its start and its completion. Both are steps of the
// scheduler, taken under mu. If two bodies conflict, or a body and a guard do, the scheduler
// takes the completion of the first before it starts the other body or evaluates the guard, and
// mu orders the two. The token, or the dispatcher, orders the start before the body.
//
// # No wake-up is lost
//
// Each change of what can start (an arrival, a completion, a withdrawal, a thread that becomes
// free) is made under mu, and its goroutine then engages. Either that makes it the owner, and it
// decides; or there is an owner, which consults the scheduler again, under mu, before it releases
// the object.
type Parallel struct {
	// Threads provides the threads. If it is nil, a request that its caller waits for runs on its
	// caller's goroutine, and any other on Config.Workers.
	Threads Threads
	// OnArrival gives each request a thread when it arrives instead of when it starts; the
	// request keeps the thread while it waits: the monitor. See thread.
	OnArrival bool
	// Limit is how many requests run at once at most; 0 means no limit. A body that waits for
	// another request does not count meanwhile, unless the limit is Hard. So more than Limit
	// bodies may have begun, and may even run again.
	Limit int
	Hard  bool
	// Leaf says which operations may use the fast path: their bodies take no context, and their
	// guards do not look at waiting counts.
	Leaf func(op int) bool
}

// Threads provides a thread for each request that starts or, with Parallel.OnArrival, arrives.
type Threads interface {
	// Dispatch runs the task on a thread that Take has reserved. The task returns the thread by
	// Return.
	Dispatcher
	// Take reserves a thread for a request of the object. If none is free it reports false; when
	// threads become free and it is this object's turn, it reserves one and calls Offer.
	Take(m *Mailbox) bool
	// Forget is called, with mu held, when the object has ended: it needs no more threads, and
	// must not be kept. True says that the Offer which Take has promised will not come. False
	// says that there was no promise, or that the Offer is on its way.
	Forget(m *Mailbox) bool
	// Return returns a thread that was reserved. After a task has ended on the thread, Return
	// is called with that task, which then has only to return. The task is nil if none has run
	// there, or if its body waits. Return may call Offer of any object.
	Return(Task)
	// Retake reserves a thread, even if that makes one more than there are: a body is about to go
	// on that has returned its thread while it waited.
	Retake()
}

// Keeper is implemented by Threads that count which of them are kept by requests that wait: see
// Parallel.OnArrival. Its methods are called with the mu of an object held; so is Dispatch then.
type Keeper interface {
	// Keep says that n more threads are kept, or fewer.
	Keep(n int)
	// Taken says what has the threads, for a request that waits for one.
	Taken() string
}

// parallelState is what the mailbox of a parallel object keeps. It is guarded by mu.
type parallelState struct {
	unbegun      atomic.Int32 // how many requests have been granted to their callers, and may be run by helpers: see help
	counted      int          // requests that count for the limit
	spare        int          // threads that are reserved for the object, and for no request yet
	kept         int          // threads that waiting requests keep
	offerPending bool         // Take has reported false, so that an Offer will come
	untracked    []int        // per operation: bodies that have come by a counter and that Begin has told the scheduler of
	placeholders []bool       // per operation: one more is in its counter, for all bodies that have come by the scheduler

	sightings         map[*Request]*sighting // of requests that run
	untrackedSighting *sighting              // of the untracked bodies
}

// startAll starts requests until none can start, and gives each a thread. The owner calls it with
// mu held; it returns with mu and the object released. If out is not nil it has ended, and its
// caller is told.
//
// Also a request of the calling goroutine is granted by a token, which its caller takes when it
// begins to wait. So nothing is lost if a guard that is evaluated here ends the goroutine.
func (m *Mailbox) startAll(out *Request) {
	for {
		if m.config.Parallel.OnArrival {
			m.assignThreads()
		}
		m.out = out
		r, err := m.next(m.hasThread)
		m.out = nil
		m.recheckBlockers()
		if err == mailbox.ErrNoThread && m.scheduler().NoThread() {
			continue // requests have failed, and are reported by next
		}
		if r == nil || err == mailbox.ErrNoThread {
			break
		}
		t := (*thread)(nil)
		if err == nil {
			t = m.begun(r)
		}
		m.changed()
		if m.config.bounded {
			m.report(m.scheduler().Failed) // requests for which there is no room behind r
		}
		m.mu.Unlock() // this goroutine still owns the object: what arrives meanwhile leaves the decision to it
		out.settle()
		out = nil
		r.retire()
		switch {
		case err != nil:
			r.fail(err)
			r.settle()
		case t == nil && r.called():
			m.grant(r)
		case t == nil:
			m.config.Workers.Dispatch((*execution)(r))
		case t.wake != nil:
			t.wake <- true
		default:
			m.config.Parallel.Threads.Dispatch(t)
		}
		m.mu.Lock()
	}
	spare := m.parallel().spare
	m.parallel().spare = 0
	m.release()
	m.mu.Unlock()
	out.settle()
	for range spare {
		m.config.Parallel.Threads.Return(nil)
	}
}

// parallel returns what the mailbox of a parallel object keeps. M must be one.
func (m *Mailbox) parallel() *parallelState { return m.extras.Load().parallel }

// hasThread reports whether a request may start: its context has not ended, the limit allows it,
// there is a thread, and no other request of its selection runs. The owner calls it with mu held.
//
// A thread that is reserved here counts as spare until the request has begun, as the scheduler
// may still start another request instead.
func (m *Mailbox) hasThread(next *mailbox.Request) bool {
	r, f, x := next.Record.(*Request), m.config.Parallel, m.parallel()
	if r.gone() != nil || f.Limit > 0 && x.counted >= f.Limit {
		return false
	}
	if f.Threads != nil && r.thread() == nil && !m.reserve() {
		return false
	}
	return r.claim()
}

// reserve makes sure that there is a spare thread. It reports false if there is none now; then an
// Offer will come. The caller holds mu.
func (m *Mailbox) reserve() bool {
	x := m.parallel()
	switch {
	case x.spare > 0:
		return true
	case x.offerPending:
		return false
	case !m.config.Parallel.Threads.Take(m):
		x.offerPending = true
		return false
	}
	x.spare++
	return true
}

// forget takes back the object's claim to a thread, so that Threads does not keep an object that
// has ended. The caller holds mu.
func (m *Mailbox) forget() {
	if f := m.config.Parallel; f != nil && f.Threads != nil && m.parallel().offerPending && f.Threads.Forget(m) {
		m.parallel().offerPending = false
	}
}

// begun counts r, which has been started, as running, and returns the thread that it has or gets.
// Nil stands for the goroutine of its caller, or a worker. The caller holds mu.
func (m *Mailbox) begun(r *Request) *thread {
	x := m.parallel()
	x.counted++
	switch {
	case r.thread() != nil:
		m.countKept(-1)
	case x.spare > 0:
		x.spare--
		r.special().thread = &thread{m: m, r: r}
	}
	return r.thread()
}

// left does what remains when r, which was started, has left the running queue. It is called with
// mu held, and returns with mu held, but may release mu in between. It reports whether the caller
// is the owner now, and so has to decide.
//
// F is the frame of the body that has run, or was to run. If r has been requeued here it has
// another frame by now; the old one may belong to a body that has returned while a goroutine that
// it started still waits.
func (m *Mailbox) left(r *Request, f *Frame) (owner bool) {
	x, parallel, t, done := m.parallel(), m.config.Parallel, r.thread(), false
	parked := f != nil && f.parked // its wait has returned the thread, and its place in a limit that is not hard
	if !parked || parallel.Hard {
		x.counted--
	}
	if parked {
		f.parked = false // and will not take them back
	}
	switch {
	case t == nil:
	case t.waits: // r waits here again, and so does t
		if m.countKept(1); parked && parallel.Threads != nil {
			parallel.Threads.Retake()
		}
	default:
		r.rare.thread, done = nil, !parked && parallel.Threads != nil
	}
	owner = !m.dropPlaceholders() && m.engage()
	m.changed()
	if done {
		m.mu.Unlock()
		parallel.Threads.Return(t)
		m.mu.Lock()
	}
	return owner
}

// Offer tells the object that a thread has been reserved for it. It takes mu; so the caller must
// hold no lock that Take needs.
func (m *Mailbox) Offer() {
	if l, ok := m.config.Dispatcher.(*reserving); ok {
		l.offered(m)
		return
	}
	m.mu.Lock()
	x := m.parallel()
	x.offerPending = false
	x.spare++
	owner := m.engage()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// nest adds the footprints of the running requests that r is called from inside of: they wait for
// it, and do not conflict with it. The caller holds mu, without which none of them ends.
func (m *Mailbox) nest(r *Request) {
	for f := ChainOf(r.ctx).within(m); f != nil; f = f.parent.within(m) {
		r.Claim.Outer = append(r.Claim.Outer, f.r.Claim)
	}
}

// reentered returns the error of a call from inside the object that it is made to, if that is a
// parallel object and does not allow it. (At other objects the call waits for its own caller, and
// the search for circles finds that.)
func (m *Mailbox) reentered(r *Request) error {
	if m.config.Parallel == nil || m.config.Rules.Reentrant {
		return nil
	}
	inner := ChainOf(r.ctx)
	outer := inner.within(m)
	if outer == nil {
		return nil
	}
	return &mailbox.DeadlockError{Circle: append(between(outer, inner), mailbox.Link{Body: inner.String(), For: m.nameOf(r)})}
}

// park says that the body f waits for another request, so that its thread is idle, at an object
// where that matters. The caller holds graph.
//
// Under mu it checks that the body has not returned. The completion of the body follows later,
// under mu. So what park counts out is counted in again, by unpark or by left.
func (f *Frame) park() {
	m := f.box
	parallel := m.config.Parallel
	if l, ok := m.config.Dispatcher.(lender); ok {
		m.mu.Lock()
		parks := !f.parked && !f.over.Load() && !f.away.Load()
		f.parked = f.parked || parks
		m.mu.Unlock()
		if parks {
			l.park()
		}
		return
	}
	m.mu.Lock()
	if f.parked || f.over.Load() || f.away.Load() {
		m.mu.Unlock()
		return
	}
	f.parked = true
	if !parallel.Hard {
		m.parallel().counted--
	}
	onThread := parallel.Threads != nil && f.r.thread() != nil
	owner := !parallel.Hard && parallel.Limit > 0 && m.engage()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
	if onThread {
		parallel.Threads.Return(nil)
	}
}

// unpark ends what park began: the body goes on.
func (f *Frame) unpark() {
	m := f.box
	parallel := m.config.Parallel
	m.mu.Lock()
	defer m.mu.Unlock()
	if parallel == nil {
		m.regain(f)
		return
	}
	if !f.parked {
		return
	}
	f.parked = false
	if !parallel.Hard {
		m.parallel().counted++
	}
	if parallel.Threads != nil && f.r.thread() != nil {
		parallel.Threads.Retake()
	}
}
