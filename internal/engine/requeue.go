package engine

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

// Hop is what a body asks for instead of a result: that its request be requeued,
// for another operation of its object or of another one. The request keeps its
// caller and its context.
//
//	body returns a Hop ──┬─ to its own object: back inside, in the step that ends the body
//	                     └─ to another: it ends here, and arrives there like any other
//
// Who takes it to another object is its caller's goroutine, if that waits for it,
// and else whoever has run the body, who only hands it in. So a requeue never
// blocks, and however many follow each other no stack grows.
type Hop struct {
	// Box is the object's mailbox; nil stands for that in which the body ran.
	Box *Mailbox
	// Op, Key, Claim and Leaf are the request's from now on.
	Op    int
	Key   any
	Claim *mailbox.Claim
	Leaf  bool
	Body  Body
	// Keep lets the request keep its place in the order of arrivals, and its age.
	Keep bool
	// Commit lets nobody withdraw the request, as long as it waits for this.
	Commit bool
	// Admit, if it is not nil, is called before the request leaves for another object:
	// with no lock held, on its caller's goroutine if that waits for it, and else on a
	// worker. The request goes on with the context that it returns, which is tame; or it
	// fails, with the error, having left, but not arrived. It must not panic.
	Admit func(r *Request) (context.Context, error)
	// Board is called, with the Body, before the request waits.
	Board func(body Body, r *Request, box *Mailbox)

	withdrawn error // that of whoever withdraws the request while it is being admitted; guarded by mu of the box that it leaves
}

// Ran says which bodies have run for r before the one that hands it in.
func (r *Request) Ran(before Turns) {
	if !before.none() {
		r.track().ran = before
	}
}

// track returns the request's trail, which it has from now on.
func (r *Request) track() *trail {
	s := r.special()
	if s.trail == nil {
		if s.kept == nil {
			s.kept = new(trail)
		}
		s.trail = s.kept
		s.trail.home, s.trail.ran.last = r.Body, s.trail.room[:0]
	}
	return s.trail
}

// Stranded returns the error of r, whose body has run in the box m, and asked for a
// Hop that cannot be made because of the cause.
func (r *Request) Stranded(m *Mailbox, cause error) error {
	var ran Turns
	if t := r.trail(); t != nil {
		ran = t.ran
	}
	ran.Add(m, r.Op)
	return ran.Failed(cause)
}

// Home returns r's own body, whatever it has been requeued for.
func (r *Request) Home() Body {
	if t := r.trail(); t != nil {
		return t.home
	}
	return r.Body
}

// Requeued reports whether r has been requeued, by a body that has run for it.
func (r *Request) Requeued() bool { return r.trail() != nil }

// Called reports whether the caller's goroutine waits for r.
func (r *Request) Called() bool { return r.called() }

// Requeue says what the body of r, which is about to return, asks for.
func (r *Request) Requeue(h *Hop) { r.special().hop = h }

// board makes r a request for what h asks. The caller holds the mu of the box, or
// nobody else can know of r.
func (r *Request) board(h *Hop, box *Mailbox, now time.Duration) {
	r.track().ran.Add(r.box.Load(), r.Op)
	r.rare.hop = nil
	r.Leaf, r.Body, r.committed, r.frame = h.Leaf, h.Body, h.Commit, nil
	// A Try stays one. Any is refused by a full queue: no thread waits at a door for it.
	r.Op, r.Key, r.Claim, r.Patient = h.Op, h.Key, h.Claim, false
	if !h.Keep {
		r.since = now
	}
	h.Board(h.Body, r, box)
}

// requeue is the hop of r, whose body has returned, to the object that it is in. It
// reports false if r has ended instead, as its context has. The caller owns the
// object and holds mu.
//
// An end of the context that comes before this is seen here; one that comes later
// finds r in its queue, as both look under mu.
func (m *Mailbox) requeue(r *Request, h *Hop) bool {
	// The scheduler asks what the body can have opened, and so is told of its end as
	// long as r is still a request for that; and it sorts r in by what the policy
	// sees, which therefore has to be brought up to date in between.
	m.scheduler().Complete(&r.Request)
	if m.config.Parallel != nil {
		m.parallel().dropSighting(r)
	}
	r.board(h, m, Now())
	if err := r.gone(); err != nil {
		r.fail(err)
		return false
	}
	m.present(r)
	m.scheduler().Enter(&r.Request, h.Keep)
	if pending.Load() > 0 { // perhaps for one at the gate, before which it comes
		m.recheck()
	}
	return true
}

// follow takes a called request, whose body has asked for another object, there,
// as often as it does, and concludes it when it has ended. It runs on the caller's goroutine, which nobody else knows
// of meanwhile: the request is in no queue, and its token has been taken.
func (r *Request) follow() {
	for h := r.hop(); h != nil; h = r.hop() {
		r.ended = true // as far as Forsake is concerned, should Admit end this goroutine
		ctx, err := r.ctx, error(nil)
		if admit := h.Admit; admit != nil {
			ctx, err = admit(r)
		}
		m, err := r.depart(ctx, err)
		if err != nil {
			r.fail(err)
			break
		}
		r.ended = false
		m.call(r, m.engage(), "")
	}
	r.conclude()
}

// depart takes r, whose body has asked for another object, there, with the context
// with which it goes on; unless it has failed on the way. It returns the object
// with its mu held, where r has yet to be handed in; or why it cannot be, with
// nothing held.
//
// Nobody looks at r any more under the mu of the object that it leaves, once its box
// says so.
func (r *Request) depart(ctx context.Context, failed error) (*Mailbox, error) {
	h, from, now := r.hop(), r.box.Load(), Now()
	m := h.Box
	from.mu.Lock()
	r.underWay = false
	if h.Admit != nil && failed == nil { // the context is another one
		if r.unwatch != nil {
			r.unwatch()
			r.unwatch = nil
		}
		r.ctx, r.ends = ctx, ctx.Done() != nil
	}
	r.board(h, m, now)
	r.box.Store(m)
	from.mu.Unlock()
	switch {
	case h.withdrawn != nil:
		return nil, h.withdrawn
	case failed != nil:
		return nil, failed
	}
	m.mu.Lock()
	if err := m.turnsAway(r); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	return m, nil
}

// turnsAway returns why r cannot arrive, or nil. The caller holds mu.
func (m *Mailbox) turnsAway(r *Request) error {
	if m.closed != nil {
		return m.closed.err
	}
	if r.called() && r.selection() == nil { // of several, another one may be the way out
		if err := m.reentered(r); err != nil {
			return err
		}
	}
	return r.gone()
}

// move takes a posted request, whose body has asked for another object, there. It
// may be called by the owner of an object, so it only hands over.
//
// Others may want to withdraw the request meanwhile. It is in no queue, so they
// find it running; but for a context that has ended, and which is looked at again
// when the request has arrived: either whoever withdraws finds it there, or he has
// come before and the context's end is seen. While it is being admitted, which may
// take its time, whoever withdraws it leaves word.
func (r *Request) move() {
	if r.hop().Admit == nil {
		r.moveOn(r.ctx, nil)
		return
	}
	m := r.box.Load()
	m.mu.Lock()
	r.underWay = true
	m.mu.Unlock()
	m.config.Workers.Dispatch((*admission)(r))
}

// admission is a posted request on its way to another object, which a worker is to
// have admitted there.
type admission Request

// Run implements Task.
func (a *admission) Run() {
	r := (*Request)(a)
	h := r.hop()
	m := h.Box
	ctx, err := r.ctx, error(&mailbox.ExitError{Object: m.host.Name(), Operation: m.config.Rules.Operations[h.Op].Name})
	defer func() { r.moveOn(ctx, err) }() // also if Admit ends this goroutine
	ctx, err = h.Admit(r)
}

// giveUp leaves word that r, which is under way to another object, is to fail with
// err instead of arriving there; unless its body has committed it, or somebody has
// left word. The caller holds mu of the object that r leaves.
func (r *Request) giveUp(err error) bool {
	h := r.hop()
	if h.Commit || h.withdrawn != nil {
		return false
	}
	h.withdrawn = err
	return true
}

// moveOn is move when r has been admitted, or has failed.
func (r *Request) moveOn(ctx context.Context, err error) {
	m, err := r.depart(ctx, err)
	if err != nil {
		r.fail(err)
		r.settle()
		return
	}
	told := r.Told && r.sender&followed == 0
	// From here on r may be run by others, and have ended; and if it was told, its
	// record be in its next life.
	if m.arrive(r, m.engage(), "") {
		m.mu.Unlock()
		m.config.Workers.Dispatch(m)
	}
	if !told {
		r.moved()
	}
}

// CallOn is Call for a request whose first body the calling goroutine has run, in
// the object that it has taken on the fast path and gives back now; the body has
// asked for a Hop.
func (m *Mailbox) CallOn(ctx context.Context, r *Request, l Leaving, now time.Duration) {
	r.Prepare(ctx, now)
	waits, owner := m.goOn(r, l)
	if waits {
		m.serveIf(owner, r, m.helpLimit(l.MayHelp))
		m.wait(r)
	} else {
		r.ended = true           // as far as Forsake is concerned, should a guard end this goroutine
		m.serveIf(owner, nil, 0) // it has yet to go on, and so is not lent to bodies that might
	}
	r.follow()
}

// PostOn is Post for a request whose first body has been run, like CallOn.
func (m *Mailbox) PostOn(ctx context.Context, r *Request, l Leaving, now time.Duration) {
	r.Prepare(ctx, now)
	waits, owner := m.goOn(r, l)
	r.heed()
	switch {
	case waits && r.Leaf:
		m.serveIf(owner, r, m.helpLimit(l.MayHelp))
	case waits:
		m.serveIf(owner, nil, 0)
	default:
		defer r.settle() // which moves it on, unless its context has ended; also if a body that is lent this goroutine ends it
		m.serveIf(owner, nil, m.helpLimit(l.MayHelp))
	}
}

// serveIf is serve for who may not be the owner, at an object that fans out. It is called
// with mu held, and returns with mu released.
func (m *Mailbox) serveIf(owner bool, self *Request, budget int) {
	if owner {
		m.serve(self, budget, false)
	} else {
		m.mu.Unlock()
	}
}

// goOn tells the scheduler of the body of r, which it has not seen, and, if that asks
// for this object, of what follows. It returns with mu held, and reports whether r
// waits here now, and whether the caller owns the object: if that fans out, somebody else
// may.
func (m *Mailbox) goOn(r *Request, l Leaving) (waits, owner bool) {
	m.mu.Lock()
	k := m.scheduler()
	if m.config.Parallel != nil {
		owner = m.engage() // so that the scheduler knows of the body
		m.departed(l)
	} else {
		if owner = true; m.own() {
			k.Begin(l.Op)
		}
		k.End(l.Op, l.Opens)
	}
	r.box.Store(m)
	h := r.hop()
	if h.Box != nil && h.Box != m {
		return false, owner
	}
	r.board(h, m, r.since)
	if err := r.gone(); err != nil {
		r.fail(err)
		return false, owner
	}
	m.present(r)
	k.Enter(&r.Request, false)
	if pending.Load() > 0 {
		m.recheck()
	}
	return true, owner
}

// turn is a body that has run.
type turn struct {
	box *Mailbox
	op  int
}

// Turns are the last of the bodies that have run for a request. There may be any
// number, so that not all are kept.
type Turns struct {
	first   turn // kept for itself, as most requests that are requeued have no other
	last    []turn
	earlier int
}

const keptTurns = 64

// Add adds the body of an operation of the object with the box.
func (t *Turns) Add(box *Mailbox, op int) {
	if t.none() {
		t.first = turn{box, op}
		return
	}
	t.more(turn{box, op})
}

// none reports whether no body has run.
func (t *Turns) none() bool { return t.first.box == nil && t.earlier == 0 }

// more adds one that is not the first. It is apart, so that Add is inlined.
func (t *Turns) more(one turn) {
	if len(t.last) == 2*keptTurns {
		t.last = t.last[:copy(t.last, t.last[keptTurns:])]
		t.earlier += keptTurns
		if t.first.box != nil {
			t.first = turn{}
			t.earlier++
		}
	}
	t.last = append(t.last, one)
}

// Failed returns the error of a request that fails because of the cause, after
// these have run.
func (t *Turns) Failed(cause error) error {
	if t.none() {
		return cause
	}
	skip := max(len(t.last)-keptTurns, 0)
	e := &mailbox.RequeuedError{Earlier: t.earlier + skip, Cause: cause}
	last := t.last[skip:]
	switch {
	case t.first.box == nil:
	case len(last) < keptTurns:
		last = append([]turn{t.first}, last...)
	default:
		e.Earlier++
	}
	for _, one := range last {
		e.Ran = append(e.Ran, one.box.host.Name()+"."+one.box.config.Rules.Operations[one.op].Name)
	}
	return e
}
