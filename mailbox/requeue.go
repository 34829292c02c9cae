package mailbox

import (
	"context"
	"fmt"
	"strings"
	"time"
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
	// Op, Key and Leaf are the request's from now on.
	Op   int
	Key  any
	Leaf bool
	Body Body
	// Keep lets the request keep its place in the order of arrivals, and its age.
	Keep bool
	// Commit lets nobody withdraw the request, as long as it waits for this.
	Commit bool
	// Board is called before the request waits, with the context of the call.
	Board func(r *Request, box *Mailbox)
}

// Ran says which bodies have run for r before the one that hands it in.
func (r *Request) Ran(before Turns) { r.ran = before }

// Requeue says what the body of r, which is about to return, asks for.
func (r *Request) Requeue(h *Hop) { r.hop = h }

// board makes r a request for what h asks. The caller holds the mu of the box, or
// nobody else can know of r.
func (r *Request) board(h *Hop, box *Mailbox, now time.Duration) {
	r.ran.Add(r.box.Load(), r.Op)
	r.hop = nil
	r.Leaf, r.Body, r.committed, r.frame = h.Leaf, h.Body, h.Commit, nil
	// It is refused by a full queue: nobody's thread waits at a door for it.
	r.Op, r.Key, r.Try, r.Patient = h.Op, h.Key, false, false
	if !h.Keep {
		r.since = now
	}
	h.Board(r, box)
}

// requeue is the hop of r, whose body has returned, to the object that it is in. It
// reports false if r has ended instead, as its context has. The caller owns the
// object and holds mu.
//
// An end of the context that comes before this is seen here; one that comes later
// finds r in its queue, as both look under mu.
func (m *Mailbox) requeue(r *Request, h *Hop) bool {
	// The kernel asks what the body can have opened, and so is told of its end as
	// long as r is still a request for that; and it sorts r in by what the policy
	// sees, which therefore has to be brought up to date in between.
	m.kernel().Complete(&r.Request)
	r.board(h, m, Now())
	if err := r.gone(); err != nil {
		r.fail(err)
		return false
	}
	m.present(r)
	m.kernel().Enter(&r.Request, h.Keep)
	return true
}

// follow takes a called request, whose body has asked for another object, there,
// as often as it does. It runs on the caller's goroutine, which nobody else knows
// of meanwhile: the request is in no queue, and its token has been taken.
func (r *Request) follow() {
	for r.hop != nil {
		m := r.depart()
		r.ended = false
		m.mu.Lock()
		if err := m.turnsAway(r); err != nil {
			m.mu.Unlock()
			r.ended = true
			r.fail(err)
			return
		}
		m.call(r, m.engage(), "")
	}
}

// depart makes r, whose body has asked for another object, a request of that, at
// which it has yet to arrive. Nobody looks at r any more under the mu of the object
// that it leaves, once its box says so.
func (r *Request) depart() *Mailbox {
	h, from, now := r.hop, r.box.Load(), Now()
	from.mu.Lock()
	defer from.mu.Unlock()
	r.board(h, h.Box, now)
	r.box.Store(h.Box)
	return h.Box
}

// turnsAway returns why r cannot arrive, or nil. The caller holds mu.
func (m *Mailbox) turnsAway(r *Request) error {
	if m.closed != nil {
		return m.closed.err
	}
	return r.gone()
}

// move takes a posted request, whose body has asked for another object, there. It
// may be called by the owner of an object, so it only hands over.
//
// Others may want to withdraw the request meanwhile. It is in no queue, so they
// find it running; but for a context that has ended, and which is looked at again
// when the request has arrived: either whoever withdraws finds it there, or he has
// come before and the context's end is seen.
func (r *Request) move() {
	m := r.depart()
	m.mu.Lock()
	if err := m.turnsAway(r); err != nil {
		m.mu.Unlock()
		r.fail(err)
		r.settle()
		return
	}
	told, owner := r.Told, m.engage()
	m.arrive(r, "")
	// From here on r may be run by others, and have ended; and if it was told, its
	// record be in its next life.
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
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
	if m.goOn(r, l) {
		m.serve(r, m.lend(l.Lend), false)
		m.wait(r)
	} else {
		m.serve(nil, m.lend(l.Lend), false)
	}
	r.follow()
}

// PostOn is Post for a request whose first body has been run, like CallOn.
func (m *Mailbox) PostOn(ctx context.Context, r *Request, l Leaving, now time.Duration) {
	r.Prepare(ctx, now)
	waits := m.goOn(r, l)
	r.heed()
	switch {
	case waits && r.Leaf:
		m.serve(r, m.lend(l.Lend), false)
	case waits:
		m.serve(nil, 0, false)
	default:
		m.serve(nil, m.lend(l.Lend), false)
		r.settle() // which moves it on, unless its context has ended
	}
}

// goOn tells the kernel of the body of r, which it has not seen, and, if that asks
// for this object, of what follows. It returns with mu held, and reports whether r
// waits here now.
func (m *Mailbox) goOn(r *Request, l Leaving) bool {
	m.mu.Lock()
	k := m.kernel()
	if m.own() {
		k.Begin(l.Op)
	}
	k.End(l.Op, l.Opens)
	r.box.Store(m)
	h := r.hop
	if h.Box != nil && h.Box != m {
		return false
	}
	r.board(h, m, r.since)
	if err := r.gone(); err != nil {
		r.fail(err)
		return false
	}
	m.present(r)
	k.Enter(&r.Request, false)
	return true
}

// RequeuedError fails a request that has been requeued, and did not run again. The
// bodies that had run are listed; what they did is done.
type RequeuedError struct {
	// Ran are the last of them, 64 at most, as object and operation, in the order in
	// which they ran; Earlier is how many ran before these.
	Ran     []string
	Earlier int
	Cause   error
}

// Error implements error.
func (e *RequeuedError) Error() string {
	earlier := ""
	if e.Earlier > 0 {
		earlier = fmt.Sprintf("%d others and ", e.Earlier)
	}
	return fmt.Sprintf("%v (after %s%s had run)", e.Cause, earlier, strings.Join(e.Ran, ", "))
}

// Unwrap returns the cause.
func (e *RequeuedError) Unwrap() error { return e.Cause }

// turn is a body that has run.
type turn struct {
	box *Mailbox
	op  int
}

// Turns are the last of the bodies that have run for a request. There may be any
// number, so that not all are kept.
type Turns struct {
	last    []turn
	earlier int
}

const keptTurns = 64

// Add adds the body of an operation of the object with the box.
func (t *Turns) Add(box *Mailbox, op int) {
	if len(t.last) == 2*keptTurns {
		t.last = t.last[:copy(t.last, t.last[keptTurns:])]
		t.earlier += keptTurns
	}
	t.last = append(t.last, turn{box, op})
}

// AddAll adds those of another, which came later.
func (t *Turns) AddAll(later Turns) {
	for _, one := range later.last {
		t.Add(one.box, one.op)
	}
	t.earlier += later.earlier
}

// Failed returns the error of a request that fails because of the cause, after
// these have run.
func (t *Turns) Failed(cause error) error {
	if len(t.last) == 0 {
		return cause
	}
	skip := max(len(t.last)-keptTurns, 0)
	e := &RequeuedError{Earlier: t.earlier + skip, Cause: cause}
	later, _ := cause.(*RequeuedError) // others have run after these
	for _, one := range t.last[skip:] {
		e.Ran = append(e.Ran, one.box.host.Name()+"."+one.box.config.Rules.Operations[one.op].Name)
	}
	if later != nil {
		e.Ran, e.Cause = append(e.Ran, later.Ran...), later.Cause
		skip := max(len(e.Ran)-keptTurns, 0)
		e.Ran, e.Earlier = e.Ran[skip:], e.Earlier+skip
		if later.Earlier > 0 {
			e.Ran, e.Earlier = later.Ran, e.Earlier+len(e.Ran)-len(later.Ran)+later.Earlier
		}
	}
	return e
}
