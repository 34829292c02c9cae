package engine

import (
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox"
)

// Fan lets the requests of an object that do not conflict run at once, each on a
// thread of its own: the Synchronizer.
//
//	arrival, completion, withdrawal ──► owner: who can start? ──► a thread for each of them
//	                                       (holds mu, runs no body)      │
//	                         ▲                                           ▼
//	                         └──────────────── completion ◄──────────── body
//
// The owner of such an object owns the decision and nothing else: he asks guards and
// the scheduler, and has let go of the object before any body runs. So bodies are kept
// apart by the conflict table alone.
//
// # Who may touch the state
//
// A guard is asked under mu, by the owner, and only while nothing runs that conflicts
// with its operation. A body runs between its start and its completion, which are
// steps of the scheduler, taken under mu. Of two bodies that conflict, or a body and a
// guard that do, the scheduler takes the completion of the one before it starts or asks
// the other, and mu orders the two; the token, or the dispatcher, orders the start
// before the body.
//
// # No wake-up is lost
//
// Whoever changes what can start (an arrival, a completion, a withdrawal, a thread
// that is free) does so under mu and then engages: either he becomes the owner, and
// decides; or there is one, who asks the scheduler again, under mu, before he lets go.
type Fan struct {
	// Threads lends the threads; nil stands for the callers' own: who waits for a
	// request runs it, and what nobody waits for runs on Config.Workers.
	Threads Threads
	// OnArrival gives each request a thread when it arrives instead of when it starts; it
	// keeps that while it waits: the monitor. See thread.
	OnArrival bool
	// Limit is how many requests run at once at most, unless it is 0. A body that waits
	// for another request does not count meanwhile, unless the limit is Hard; so more may
	// have begun, and even be running again.
	Limit int
	Hard  bool
	// Leaf says which operations may come by the fast path: their bodies take no context,
	// and their guards do not look at waiting counts.
	Leaf func(op int) bool
}

// Threads lends a thread to each request that starts or, with Fan.OnArrival, arrives.
type Threads interface {
	// Dispatch runs the task on a thread that Take has reserved. The task gives the
	// thread back by Return.
	Dispatcher
	// Take reserves a thread for a request of the object. If none is free it reports
	// false, and reserves the next one that is free, when it is this object's turn: it
	// calls Offer then.
	Take(m *Mailbox) bool
	// Forget is called when the object has ended, with its mu held: it needs no thread any
	// more, and is not to be kept. If it reports true there will be no Offer that Take has
	// promised; if false there was no promise, or the Offer is on its way.
	Forget(m *Mailbox) bool
	// Return gives back a thread that was reserved. If it is not wanted any more since
	// what has run there has ended, that is the task; it has only to return. Otherwise the
	// task is nil: there has been none, or its body waits. Return may call Offer of any
	// object.
	Return(Task)
	// Retake reserves a thread, if it is one more than there are: a body is about to go
	// on that has returned its thread while it waited.
	Retake()
}

// Keeper is Threads that want to know which of them are kept by requests that wait: see
// Fan.OnArrival. Dispatch is called with the mu of an object held then.
type Keeper interface {
	// Keep says that n more threads are kept, or fewer.
	Keep(n int)
	// Taken says who has the threads, for whom waits for one.
	Taken() string
}

// fanned is what a mailbox keeps for its Fan. It is guarded by mu.
type fanned struct {
	unbegun atomic.Int32 // how many have been granted to their callers, and may be lent a goroutine: see help
	counted int          // requests that count for the limit
	spare   int          // threads that are reserved for the object, and for no request yet
	kept    int          // threads that requests keep which wait
	asked   bool         // Take has said no, so that there will be an Offer
	recheck bool         // a worker is about to look for circles
	unseen  []int        // per operation: bodies that have come by a counter, and the scheduler has been told of
	doubles []bool       // per operation: one more is in its counter for those that have come by the scheduler

	sightings map[*Request]*sighting // of requests that run
	crowd     *sighting              // of the unseen
}

// fan decides who starts, until nobody else can, and gives each a thread. It is called
// by the owner with mu held, and returns with mu released and the object given back.
// Out has ended; its caller is told.
//
// Also the owner's own request gets its thread by a token, which its caller finds when
// he comes to wait for it: so nothing is lost if a guard that is asked here ends his
// goroutine.
func (m *Mailbox) fan(out *Request) {
	for {
		if m.config.Fan.OnArrival {
			m.man()
		}
		m.out = out
		r, err := m.next(m.hasThread)
		m.out = nil
		if m.scheduler().Found() && pending.Load() > 0 {
			m.recheck()
		}
		if err == mailbox.ErrNoThread && m.scheduler().Jam() {
			continue // those who have failed are told
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
			m.report(m.scheduler().Failed) // for whom there is no room behind r
		}
		m.mu.Unlock() // the object is still ours: whoever comes meanwhile leaves the decision to us
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
			m.config.Fan.Threads.Dispatch(t)
		}
		m.mu.Lock()
	}
	spare := m.fanned().spare
	m.fanned().spare = 0
	m.release()
	m.mu.Unlock()
	out.settle()
	for range spare {
		m.config.Fan.Threads.Return(nil)
	}
}

// fanned returns what the mailbox keeps for its Fan, which it must have.
func (m *Mailbox) fanned() *fanned { return m.extras.Load().fanned }

// hasThread reports whether a request may start: its context has not ended, the limit
// allows it, there is a thread, and no other of its selection runs. The owner calls it
// with mu held.
//
// The thread is among those that are spare until the request has begun: the scheduler may
// come to think better of it.
func (m *Mailbox) hasThread(next *mailbox.Request) bool {
	r, f, x := next.Record.(*Request), m.config.Fan, m.fanned()
	if r.gone() != nil || f.Limit > 0 && x.counted >= f.Limit {
		return false
	}
	if f.Threads != nil && r.thread() == nil && !m.reserve() {
		return false
	}
	return r.claim()
}

// reserve makes sure that there is a spare thread, and reports false if there is none to
// be had, but will be. The caller holds mu.
func (m *Mailbox) reserve() bool {
	x := m.fanned()
	switch {
	case x.spare > 0:
		return true
	case x.asked:
		return false
	case !m.config.Fan.Threads.Take(m):
		x.asked = true
		return false
	}
	x.spare++
	return true
}

// forget has the object, which has ended, kept by nothing that lends threads. The caller
// holds mu.
func (m *Mailbox) forget() {
	if f := m.config.Fan; f != nil && f.Threads != nil && m.fanned().asked && f.Threads.Forget(m) {
		m.fanned().asked = false
	}
}

// begun counts r, which has been started, as running, and returns the thread that it has
// or gets; nil is its caller's, or that of a worker.
func (m *Mailbox) begun(r *Request) *thread {
	x := m.fanned()
	x.counted++
	switch {
	case r.thread() != nil:
		m.keep(-1)
	case x.spare > 0:
		x.spare--
		r.special().thread = &thread{m: m, r: r}
	}
	return r.thread()
}

// left is what is to be done when r, which was started, has left the running queue. It is
// called with mu held, and returns with mu held, but lets go of it in between. It
// reports whether the caller is the owner now, and so has to decide.
//
// The frame is that of the body which has run, or was to: if r has been requeued here, it
// has another one by now, and the old one may have been left behind in a wait.
func (m *Mailbox) left(r *Request, f *Frame) (owner bool) {
	x, fan, t, done := m.fanned(), m.config.Fan, r.thread(), false
	parked := f != nil && f.parked // its wait has given back what it had
	if !parked || fan.Hard {
		x.counted--
	}
	if parked {
		f.parked = false // and will not take it back
	}
	switch {
	case t == nil:
	case t.waits: // r waits here again, and so does t
		if m.keep(1); parked && fan.Threads != nil {
			fan.Threads.Retake()
		}
	default:
		r.rare.thread, done = nil, !parked && fan.Threads != nil
	}
	owner = !m.single() && m.engage()
	m.changed()
	if done {
		m.mu.Unlock()
		fan.Threads.Return(t)
		m.mu.Lock()
	}
	return owner
}

// Offer tells the object that a thread has been reserved for it. It takes mu; so the
// caller must hold no lock that is taken by Take.
func (m *Mailbox) Offer() {
	if l, ok := m.config.Dispatcher.(*reserving); ok {
		l.offered(m)
		return
	}
	m.mu.Lock()
	x := m.fanned()
	x.asked = false
	x.spare++
	owner := m.engage()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// nest makes r, if it is called from inside of requests that run here, one of theirs: they
// wait for it. The caller holds mu, without which none of them ends.
func (m *Mailbox) nest(r *Request) {
	for f := ChainOf(r.ctx).within(m); f != nil; f = f.parent.within(m) {
		r.Claim.Outer = append(r.Claim.Outer, f.r.Claim)
	}
}

// reentered returns the error of a call from inside the object that it is made to, if
// that fans out and does not allow it. (Elsewhere it would wait for its own caller, and that
// is found then.)
func (m *Mailbox) reentered(r *Request) error {
	if m.config.Fan == nil || m.config.Rules.Reentrant {
		return nil
	}
	inner := ChainOf(r.ctx)
	outer := inner.within(m)
	if outer == nil {
		return nil
	}
	return &mailbox.DeadlockError{Circle: append(between(outer, inner), mailbox.Link{Body: inner.String(), For: m.nameOf(r)})}
}

// park says that the body f waits for another request, so that its thread is idle, at an
// object where that matters. It is called with graph held.
//
// Whether the body has returned is looked at under mu, as is its completion, which comes
// later: so what is counted out here is counted in again by unpark, or by left.
func (f *Frame) park() {
	m := f.box
	fan := m.config.Fan
	if l, ok := m.config.Dispatcher.(lender); ok {
		m.mu.Lock()
		parks := !f.parked && !f.over.Load()
		f.parked = f.parked || parks
		m.mu.Unlock()
		if parks {
			l.park()
		}
		return
	}
	m.mu.Lock()
	if f.parked || f.over.Load() {
		m.mu.Unlock()
		return
	}
	f.parked = true
	if !fan.Hard {
		m.fanned().counted--
	}
	onThread := fan.Threads != nil && f.r.thread() != nil
	owner := !fan.Hard && fan.Limit > 0 && m.engage()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
	if onThread {
		fan.Threads.Return(nil)
	}
}

// unpark ends park.
func (f *Frame) unpark() {
	m := f.box
	fan := m.config.Fan
	m.mu.Lock()
	defer m.mu.Unlock()
	if fan == nil {
		m.regain(f)
		return
	}
	if !f.parked {
		return
	}
	f.parked = false
	if !fan.Hard {
		m.fanned().counted++
	}
	if fan.Threads != nil && f.r.thread() != nil {
		fan.Threads.Retake()
	}
}
