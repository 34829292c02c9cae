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

// Requeue says what the body of r, which is about to return, asks for.
func (r *Request) Requeue(h *Hop) { r.hop = h }

// board makes r a request for what h asks. The caller holds the mu of the box, or
// nobody else can know of r.
func (r *Request) board(h *Hop, box *Mailbox, now time.Duration) {
	from := r.box.Load()
	r.ran = append(r.ran, from.nameOf(r))
	r.hop = nil
	r.Leaf, r.Body, r.committed, r.frame = h.Leaf, h.Body, h.Commit, nil
	r.Op, r.Key, r.Try, r.Patient = h.Op, h.Key, false, false
	r.granted, r.ended = false, false
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
	op := r.Op
	r.board(h, m, Now())
	if err := r.gone(); err != nil {
		r.Op, op = op, r.Op
		m.kernel().Complete(&r.Request)
		r.Op = op
		r.fail(err)
		return false
	}
	r.Op = op // of the body that has returned, until the kernel is told
	m.kernel().Requeue(&r.Request, h.Op, h.Key, h.Keep)
	if m.config.Rank != nil || m.config.Views {
		m.appraise(r)
	}
	return true
}

// follow takes a called request, whose body has asked for another object, there,
// as often as it does. It runs on the caller's goroutine, which nobody else knows
// of meanwhile: the request is in no queue, and its token has been taken.
func (r *Request) follow() {
	for h := r.hop; h != nil; h = r.hop {
		m := h.Box
		r.board(h, m, Now())
		if err := r.gone(); err != nil {
			r.fail(err)
			return
		}
		m.mu.Lock()
		r.box.Store(m)
		if c := m.closed; c != nil {
			m.mu.Unlock()
			r.fail(c.err)
			return
		}
		m.call(r, m.engage(), "")
	}
}

// move takes a posted request, whose body has asked for another object, there. It
// may be called by the owner of an object, so it only hands over.
//
// Others may want to withdraw the request meanwhile. It is in no queue, so they
// find it running; but for a context that has ended, and which is looked at again
// when the request has arrived: either whoever withdraws finds it there, or he has
// come before and the context's end is seen.
func (r *Request) move() {
	h, from := r.hop, r.box.Load()
	now := Now()
	from.mu.Lock() // nobody looks at r under this mu any more, once box says so
	r.board(h, h.Box, now)
	r.box.Store(h.Box)
	from.mu.Unlock()

	m := h.Box
	m.mu.Lock()
	err := r.gone()
	if c := m.closed; c != nil {
		err = c.err
	}
	if err != nil {
		m.mu.Unlock()
		r.fail(err)
		r.settle()
		return
	}
	m.arrive(r, "")
	owner := m.engage()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
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
	Ran   []string // object and operation, in the order in which they ran
	Cause error
}

// Error implements error.
func (e *RequeuedError) Error() string {
	return fmt.Sprintf("%v (after %s had run)", e.Cause, strings.Join(e.Ran, ", "))
}

// Unwrap returns the cause.
func (e *RequeuedError) Unwrap() error { return e.Cause }
