package engine

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

// Hop is a requeue: a body asks for it instead of returning a result. Its request is requeued for
// another operation, of the same object or of another one. It keeps its caller and its context.
//
//	body returns a Hop ──┬─ to its own object: admitted again, in the step that ends the body
//	                     └─ to another: it ends here, and arrives there like any other
//
// If the caller's goroutine waits for the request, it takes the request to the other object. Else
// the goroutine that has run the body does, and only hands it in. So a requeue never blocks, and
// no stack grows, however many follow each other.
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
	// Commit keeps the request from being withdrawn while it waits for this operation.
	Commit bool
	// Admit, if it is not nil, is called before the request leaves for another object:
	// with no lock held, on its caller's goroutine if that waits for it, and else on a
	// worker. The request goes on with the context that it returns, which is tame; or it
	// fails, with the error, having left, but not arrived. It must not panic.
	Admit func(r *Request) (context.Context, error)
	// Board is called, with the Body, before the request waits, unless it is nil.
	Board func(body Body, r *Request, box *Mailbox)

	withdrawn error // of a withdrawal during Admit; guarded by mu of the box that the request leaves
	rest      *Rest // that the Hop is part of; or nil
}

// Ran says which bodies have run for r before the one that hands it in.
func (r *Request) Ran(before Turns) {
	if !before.none() {
		r.track().ran = before
	}
}

// track returns the trail of r, which gets one if it has none.
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

// Stranded returns the error of r, whose body has run in the box m and has asked for a Hop that is
// not possible because of the cause.
func (r *Request) Stranded(m *Mailbox, cause error) error {
	var ran Turns
	if t := r.trail(); t != nil {
		ran = t.ran
	}
	ran.Add(m, r.Op)
	return ran.Failed(cause)
}

// Home returns the body that r was made with, whatever it has been requeued for.
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

// board applies h to r, which is about to be handed in at box. The caller holds the mu of the box
// that r is in, or no other goroutine knows of r.
func (r *Request) board(h *Hop, box *Mailbox, now time.Duration) {
	m, frame := r.box.Load(), (*Frame)(nil)
	if t := r.track(); !m.config.Rules.Operations[r.Op].Resumes { // else the body has been added
		t.ran.Add(m, r.Op)
	}
	if r.rare.hop, r.rare.rest = nil, h.rest; h.rest != nil {
		frame, r.Try = r.frame, false // the body has begun
		m.special()                   // which Forsake needs
	}
	r.Leaf, r.Body, r.committed, r.frame = h.Leaf, h.Body, h.Commit, frame
	// A Try stays one. If the queue is full r is refused: it does not wait in an overflow queue.
	r.Op, r.Key, r.Claim, r.Patient = h.Op, h.Key, h.Claim, false
	if !h.Keep || h.rest != nil {
		r.since = now
	}
	if h.Board != nil {
		h.Board(h.Body, r, box)
	}
}

// requeue admits r, whose body has returned and asks for h, again at the object that it is in. It
// reports false if r fails instead, as its context has ended. The caller owns the object, unless
// that is parallel, and holds mu.
//
// No end of the context is missed. One that comes before is seen here. After one that comes later,
// the withdrawal finds r in its queue, as it takes mu.
func (m *Mailbox) requeue(r *Request, h *Hop) bool {
	// Complete looks up what the body can have opened, so that r must not have changed yet.
	// Enter sorts r in by what the policy sees, which present brings up to date before.
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
	if pending.Load() > 0 { // perhaps for a request in the entry queue, before which r goes
		m.recheck()
	}
	return true
}

// follow takes a called request to the object that its body has asked for, and waits for it there,
// as often as a body asks; then it concludes the request. It runs on the caller's goroutine. Between
// two objects no other goroutine acts on the request: it is in no queue, and its token has been
// taken.
func (r *Request) follow() {
	for h := r.hop(); h != nil; h = r.hop() {
		r.ended = true // for Forsake, should Admit end this goroutine
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

// depart makes r a request of the object that its body has asked for. Ctx is the context with which
// it goes on; failed is the error of its Admit, or nil. Depart returns the object's mailbox with mu
// held, where r has yet to be handed in; or why r cannot be, with no lock held.
//
// Once the box of r is the new one, no goroutine looks at r under the mu of the old one.
func (r *Request) depart(ctx context.Context, failed error) (*Mailbox, error) {
	h, from, now := r.hop(), r.box.Load(), Now()
	m := h.Box
	from.mu.Lock()
	r.underWay = false
	if h.Admit != nil && failed == nil { // ctx is another context
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
	if r.called() && r.selection() == nil { // in a selection another request may run
		if err := m.reentered(r); err != nil {
			return err
		}
	}
	return r.gone()
}

// move takes a posted request to the object that its body has asked for. The calling goroutine may
// own an object, so move only hands the request over.
//
// Other goroutines may try to withdraw the request meanwhile. It is in no queue, so they find it
// running, and fail. No end of the context is missed by that, as turnsAway looks at the context
// under the mu under which the request arrives: either the withdrawal comes later, and finds the
// request in its queue, or the end is seen. During Admit, which may take long, a withdrawal is noted
// in the hop: see giveUp.
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

// admission is a posted request on its way to another object. A worker calls its Admit.
type admission Request

// Run implements Task.
func (a *admission) Run() {
	r := (*Request)(a)
	h := r.hop()
	m := h.Box
	ctx, err := r.ctx, error(&mailbox.ExitError{Object: m.host.Name(), Operation: m.config.Rules.Operations[h.Op].Name})
	defer func() { r.moveOn(ctx, err) }() // deferred, as Admit may end this goroutine
	ctx, err = h.Admit(r)
}

// giveUp notes that r, which is under way to another object, is to fail with err instead of arriving
// there. It reports false if the hop commits r, or if r has been given up already. The caller holds
// the mu of the object that r leaves.
func (r *Request) giveUp(err error) bool {
	h := r.hop()
	if h.Commit || h.withdrawn != nil {
		return false
	}
	h.withdrawn = err
	return true
}

// moveOn is move after Admit, which has returned ctx or failed with err.
func (r *Request) moveOn(ctx context.Context, err error) {
	m, err := r.depart(ctx, err)
	if err != nil {
		r.fail(err)
		r.settle()
		return
	}
	told := r.Told && r.sender&followed == 0
	owner := m.engage()
	// From here on r may run and end on other goroutines. If it is Told, its record may then be
	// that of another request. The calling goroutine may own the object that r comes from, and so
	// must not evaluate guards here, which may end it: a worker does.
	if m.arrive(r, false, ""); owner {
		m.workers().Dispatch(m)
	}
	if !told {
		r.moved()
	}
}

// CallOn is Call for a request whose first body the calling goroutine has run on the fast path, and
// which has asked for a Hop. CallOn ends the ownership of the object.
func (m *Mailbox) CallOn(ctx context.Context, r *Request, l Leaving, now time.Duration) {
	r.Prepare(ctx, now)
	waits, owner := m.goOn(r, l)
	if waits {
		m.serveIf(owner, r, m.helpLimit(l.MayHelp))
		m.wait(r)
	} else {
		r.ended = true           // for Forsake, should a guard end this goroutine
		m.serveIf(owner, nil, 0) // no bodies run here that might end it before r goes on
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
		defer r.settle() // which moves r on, unless its context has ended; deferred, as a body may end this goroutine
		m.serveIf(owner, nil, m.helpLimit(l.MayHelp))
	}
}

// serveIf is serve if the caller is the owner, which it need not be at a parallel object. It is
// called with mu held, and returns with mu released.
func (m *Mailbox) serveIf(owner bool, self *Request, budget int) {
	if owner {
		m.serve(self, budget, false)
	} else {
		m.mu.Unlock()
	}
}

// goOn tells the scheduler that the body of r has run on the fast path, and requeues r if the body
// has asked for this object. It returns with mu held, and reports whether r waits here now, and
// whether the caller owns the object. At a parallel object another goroutine may be the owner.
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
		if l.For != nil {
			m.retain(false, &l)
		} else {
			k.End(l.Op, l.Opens)
		}
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

// turn is a body that has run for a request.
type turn struct {
	box *Mailbox
	op  int
}

// Turns are the bodies that have run for a request. There may be any number, so that only the last
// ones are kept, and the others counted.
type Turns struct {
	first   turn // apart from the rest, as most requests that are requeued have no other
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

// more adds one that is not the first. It is a function of its own so that Add is inlined.
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
