package engine

import (
	"context"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// A body that suspends in the middle is requeued for its rest: the turn ends, the object is free for other
// requests, and a later turn of the same request lets the body go on. To the scheduler that is a requeue like any
// other, to an operation with the conflicts of the body's own and with a guard of the request's own; so order,
// explanations, threads, transactions and the end of the object follow from what is said of those. What is added is
// the goroutine on which such a body runs, as it stands still in the middle while its turns come and go:
//
//	thread of the turn   Run ──►  wait ·················► over: requeue         Run ──►  wait ·········► over: complete
//	                      │                  ▲                                   │                ▲
//	                      ▼                  │                                   ▼                │
//	body's goroutine     body ─────► suspends, waits ·······················► goes on ─────► returns
//
// # What may touch the state
//
// The two goroutines run in turn: each sends the other one token, on a channel with room for it, and waits for one
// itself. So what the thread may do during the turn, the body may do, and what each has written the other reads.
//
// # No wake-up is lost
//
// A rest waits in the queue of its object until its guard holds, or it is due: Wake says that its context has ended, that its
// result is there, or that it is in a circle of waits. Wake sets due first, and then looks, under mu, whether the request waits. The
// request begins to wait under mu, and its guard is evaluated after that. So either Wake finds it waiting, and has its
// guard evaluated again; or the guard, evaluated later, sees due.
//
// A request that waits either starts, or fails; and only once. Both send the one token for which the body waits: a start
// that it goes on, a failure that it does not. (A start is not declined: the request is committed, and its caller, if that
// ends its goroutine, waits until the body has returned. See Forsake.)
//
// A body that does not go on has its deferred functions run, while others may run at the object. The object does not end before these
// have returned.

// Apart is a body that runs on a goroutine of its own, so that it can suspend.
type Apart struct {
	frame *Frame
	over  chan struct{} // gets a token when the body has suspended, or ended: the turn is over
	goOn  chan struct{} // gets a token when the body goes on, or is forsaken
	lost  atomic.Bool   // the body has been forsaken while it was suspended: its request has failed
	rest  atomic.Pointer[Rest]
}

// RunApart has the body of r run on a goroutine of its own, and returns when its turn is over: it has suspended or
// ended. Run must not panic; it may end its goroutine.
func (r *Request) RunApart(workers Dispatcher, run func(*Apart)) {
	a := &Apart{frame: r.frame, over: make(chan struct{}, 1), goOn: make(chan struct{}, 1)}
	r.frame.apart = a
	workers.Dispatch(&apartTask{a, run})
	<-a.over
}

// apartTask is a body that runs on a goroutine of its own.
type apartTask struct {
	*Apart
	run func(*Apart)
}

// Run implements Task.
func (t *apartTask) Run() {
	defer func() {
		if !t.lost.Load() {
			t.over <- struct{}{}
		} else {
			t.frame.box.unwound()
		}
	}()
	t.run(t.Apart)
}

// ApartOf returns the body that ctx belongs to, if that may suspend, and whether it is in any body. It is nil for a
// body that is suspended, or has been forsaken: then other goroutines than its own use the context.
func ApartOf(ctx context.Context) (a *Apart, inside bool) {
	f := ChainOf(ctx)
	if f == nil || f.root() {
		return nil, false
	}
	if f.apart == nil || f.away.Load() || f.apart.lost.Load() {
		return nil, true
	}
	return f.apart, true
}

// Request returns the request for which the body runs.
func (a *Apart) Request() *Request { return a.frame.r }

// String names the body: object and operation.
func (a *Apart) String() string { return a.frame.String() }

// Lost reports whether the body has been forsaken: its request has failed while it was suspended, and belongs to other
// goroutines.
func (a *Apart) Lost() bool { return a.lost.Load() }

// Rest is the rest of a body that suspends. Its fields are set before Suspend.
type Rest struct {
	// Hop is the requeue for the rest. Its Body is to call Resume to run, Due before it evaluates the
	// guard, and Forsake to fail.
	Hop

	apart *Apart
	goal  waitgraph.Goal // what the body waits for; nil if it waits for its guard only
	wait  *waiter        // for that
	due   atomic.Pointer[error]
	done  atomic.Bool // it has been resumed, or forsaken
}

// Of makes the rest that of the body. It is called before anything else.
func (rest *Rest) Of(a *Apart) { rest.apart, rest.Hop.rest = a, rest }

// Suspend suspends the body until its request starts again: once the guard of the rest holds, or Wake is called. It
// reports false if the request has failed instead: the body must not go on. It is called on the body's own
// goroutine.
//
// If what is not nil, the body waits for that; then Wake is yet to be called when it is settled. If the wait closes a
// circle, the body does not suspend, and Suspend returns a *DeadlockError that names it.
func (rest *Rest) Suspend(what Awaited) (goesOn bool, err error) {
	a := rest.apart
	a.frame.away.Store(true) // before it is looked whether the body is in its own way
	if what != nil {
		rest.goal = what.goal()
		var err error
		if rest.wait, err = a.frame.enter(rest.goal, rest); err != nil {
			rest.wait.leave()
			a.back()
			return true, err
		}
	}
	a.rest.Store(rest)
	a.frame.r.Requeue(&rest.Hop)
	a.over <- struct{}{}
	<-a.goOn
	if a.lost.Load() {
		if rest.wait != nil {
			rest.wait.leave()
		}
		return false, nil
	}
	if due := rest.due.Load(); due != nil {
		return true, *due
	}
	return true, nil
}

// Due reports whether the body goes on though its guard may be false.
func (rest *Rest) Due() bool { return rest.due.Load() != nil }

// Release makes the body go on with the error, for a guard of the rest that is being evaluated and says that it holds.
func (rest *Rest) Release(err error) { rest.due.CompareAndSwap(nil, &err) }

// Wake lets the body go on, though its guard may be false: Suspend returns the error, which may be nil. Only the first call has an
// effect, and none if the body has gone on, or is forsaken. It may be called on any goroutine, also with graph held.
func (rest *Rest) Wake(err error) {
	if !rest.due.CompareAndSwap(nil, &err) || rest.done.Load() {
		return
	}
	// The record of a request that suspends is not used for another one. While mu is held, and the rest is not done,
	// the request does not leave the object.
	r, m := rest.apart.frame.r, rest.apart.frame.box
	m.mu.Lock()
	if rest.done.Load() || !r.Waits() {
		m.mu.Unlock() // it has ended, or has yet to wait, and will see that it is due
		return
	}
	owner := m.engage()
	m.scheduler().LapseOf(&r.Request)
	m.changed()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// Resume lets the body go on, whose request has started again, and returns when its turn is over.
func (rest *Rest) Resume() {
	a := rest.apart
	rest.done.Store(true)
	if rest.wait != nil {
		rest.wait.leave()
	}
	a.back()
	a.goOn <- struct{}{}
	<-a.over
}

// back says that the body is inside of its object again. Its wait has been erased before: else it would seem to keep
// others out by that. But it may have started goroutines that wait with its context. So from now on it may be in a circle, and its
// thread is idle, as if these waits had just begun. They are seen here, or see that the body is back: a wait that
// comes later is counted in pending after that has been read here, and so looks at away later.
func (a *Apart) back() {
	f := a.frame
	f.away.Store(false)
	if pending.Load() == 0 {
		return
	}
	graph.Lock()
	if f.idle > 0 {
		f.park()
	}
	graph.Unlock()
	f.box.mu.Lock()
	f.box.recheck()
	f.box.mu.Unlock()
}

// Forsake says that the request has failed, so that the body does not go on.
func (rest *Rest) Forsake() {
	a := rest.apart
	a.frame.box.extras.Load().unwinding.Add(1) // before the request leaves the object, as far as others know
	rest.done.Store(true)
	a.frame.over.Store(true)
	a.lost.Store(true)
	a.goOn <- struct{}{}
}

// unwound says that the goroutine of a body that was forsaken is about to end. The object may have waited for that.
func (m *Mailbox) unwound() {
	m.mu.Lock()
	if m.special().unwinding.Add(-1) > 0 || m.closed == nil || !m.engage() {
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.workers().Dispatch(m)
}

// unwinds reports whether deferred functions run of bodies that have been forsaken.
func (m *Mailbox) unwinds() bool {
	x := m.extras.Load()
	return x != nil && x.unwinding.Load() > 0
}

// awaits reports whether the body waits for something else than its guard.
func (rest *Rest) awaits() bool { return rest.goal != nil && rest.due.Load() == nil }

// cancel implements canceler.
func (rest *Rest) cancel(err error) bool {
	rest.Wake(err)
	return true
}

// abort implements canceler.
func (rest *Rest) abort(err error) { rest.Wake(err) }

// rest returns what is left of the body of r, if r waits for that; or nil. The caller holds mu, so that rare is not written as
// long as r waits.
func (r *Request) rest() *Rest {
	if !r.Waits() || r.rare == nil {
		return nil
	}
	return r.rare.rest
}

// rests returns the requests that wait for the rests of their bodies. The caller holds mu.
func (m *Mailbox) rests() (all []*Request) {
	k := m.queues.Load()
	for op, o := range m.config.Rules.Operations {
		if k == nil || !o.Resumes {
			continue
		}
		for r := range k.AdmittedTo(op) {
			all = append(all, r.Record.(*Request))
		}
	}
	return all
}

// expects reports whether a body of the object has suspended until something comes from elsewhere, or has come. The caller holds mu.
func (m *Mailbox) expects() bool {
	for _, r := range m.rests() {
		if rest := r.rest(); rest.goal != nil || rest.Due() { // Wake, which sets due, has yet to come to the scheduler
			return true
		}
	}
	return false
}

// forsakeRests fails the requests whose bodies have suspended, as the object is about to be restarted: what they knew of the state
// is gone. The caller holds mu, which is released meanwhile.
func (m *Mailbox) forsakeRests() {
	for _, r := range m.rests() {
		if !m.scheduler().Withdraw(&r.Request) {
			continue // it has failed meanwhile
		}
		m.dismissThread(r)
		m.mu.Unlock()
		r.fail(&mailbox.StateLostError{Object: m.host.Name(), What: "restarted"})
		r.settle()
		m.mu.Lock()
	}
}

// Stage lets a body suspend that runs outside of any object, in a check of declarations. It is given the name of what the body
// waits for, and how to find out whether that has come; it reports whether the body goes on. If not, the body's goroutine ends.
type Stage func(name string, holds func() bool) (goesOn bool)

type stageKey struct{}

// WithStage returns a context for such a body.
func WithStage(ctx context.Context, s Stage) context.Context {
	return context.WithValue(ctx, stageKey{}, s)
}

// StageOf returns the stage of the body that ctx belongs to, or nil.
func StageOf(ctx context.Context) Stage {
	s, _ := ctx.Value(stageKey{}).(Stage)
	return s
}

// Again returns a claim for the next turn of r, at the object that it is in, with the footprint of this one; nil if it has
// none.
func (r *Request) Again() *mailbox.Claim {
	old := r.Claim
	if old == nil {
		return nil
	}
	c := &mailbox.Claim{}
	if old.Transaction != nil {
		c = old.Transaction.Claim()
	}
	c.Extents = old.Extents
	return c
}
