package mailbox

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// Selection is a call that waits at several objects at once, for the first that
// can run it.
//
// Which one that is is decided by one compare-and-swap, of whoever is about to
// start a request and has the exclusion of its object: an owner starts it only if
// he has claimed the selection for it. So no two of the requests ever start,
// whatever their objects do at the same time. The winner's thread then takes the
// others out of their queues, before the body runs and before the caller is told;
// an owner who meets one of them in between drops it. So whoever can know that one
// has been chosen finds the others gone.
type Selection struct {
	winner   atomic.Pointer[Request]
	requests []*Request // not changed from the first arrival on
	boxes    []*Mailbox
	wake     chan struct{} // of all of them; the winner's token
}

// nobody is the winner of a selection that its caller has given up.
var nobody = new(Request)

// claim reports whether r may run, and lets no other of its selection run then.
func (r *Request) claim() bool {
	s := r.sel
	return s == nil || s.winner.CompareAndSwap(nil, r) || s.winner.Load() == r
}

// lost reports whether r will never run, as another of its selection does.
func (r *Request) lost() bool {
	if r.sel == nil {
		return false
	}
	w := r.sel.winner.Load()
	return w != nil && w != r
}

// retire takes the others of r's selection, which r has won, out of their queues.
// It is called without mu, and takes that of one other mailbox at a time, which is
// never held for long.
//
// One that has not arrived yet has no box, or has one and is not waiting; its
// caller, who is on the way, looks at the winner after it has arrived.
func (r *Request) retire() {
	if r.sel != nil {
		r.sel.clear(r)
	}
}

// clear withdraws all requests but one.
func (s *Selection) clear(but *Request) {
	for _, other := range s.requests {
		if other != but {
			if m := other.box.Load(); m != nil {
				m.Withdraw(other)
			}
		}
	}
}

// quit implements quitter: the caller gives up, unless one has been claimed.
func (s *Selection) quit() bool {
	if !s.winner.CompareAndSwap(nil, nobody) {
		return false
	}
	s.clear(nil)
	return true
}

// Begin makes s ready for the requests of another call.
func (s *Selection) Begin() {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	s.winner.Store(nil)
	s.boxes, s.requests = s.boxes[:0], s.requests[:0]
}

// Add makes r one of the requests, to be handed in at the box.
func (s *Selection) Add(ctx context.Context, r *Request, box *Mailbox, now time.Duration) {
	r.box.Store(nil)
	r.sel, r.wake = s, s.wake
	r.Prepare(ctx, now)
	s.boxes, s.requests = append(s.boxes, box), append(s.requests, r)
}

// Select hands in the requests, of which one is to run, and waits until it has
// ended; or until the context has, and then none of them ever runs. It returns the
// number of the one that has run, or has failed; or -1 and the context's error, or
// *DeadlockError. Those that come first are handed in first, and if one can run at
// once the later ones are not handed in.
func (s *Selection) Select(ctx context.Context) (int, error) {
	s.handIn()
	if !s.decidedHere() {
		if err := s.wait(ctx, ChainOf(ctx)); err != nil {
			return -1, err
		}
	}
	won := s.winner.Load()
	won.follow()
	return slices.Index(s.requests, won), nil
}

// Clear lets go of the requests.
func (s *Selection) Clear() {
	clear(s.boxes)
	clear(s.requests)
}

// decidedHere reports whether the winner has ended without a token.
func (s *Selection) decidedHere() bool {
	w := s.winner.Load()
	return w != nil && w.ended
}

// handIn hands in the requests until one has been claimed.
func (s *Selection) handIn() {
	for i, r := range s.requests {
		m := s.boxes[i]
		m.mu.Lock()
		if c := m.closed; c != nil {
			r.box.Store(m)
			m.mu.Unlock()
			if r.claim() {
				s.clear(r)
				r.fail(c.err)
				r.ended = true
			}
			return
		}
		owner := m.engage()
		m.arrive(r, "")
		switch {
		case !owner:
			m.mu.Unlock()
		case m.config.Dispatcher != nil:
			m.mu.Unlock()
			m.config.Dispatcher.Dispatch(m)
		default:
			m.serve(r, 0, false)
		}
		if w := s.winner.Load(); w != nil {
			if w != r {
				m.Withdraw(r)
			}
			return
		}
	}
}

// wait waits for the token of the winner, or for the object, to run it.
func (s *Selection) wait(ctx context.Context, chain *Frame) error {
	if chain != nil {
		var all Join
		parts := make([]Awaited, len(s.requests))
		for i, r := range s.requests {
			parts[i] = r
		}
		all.Of(true, parts...)
		v, err := chain.enter(&all, s)
		defer chain.leave(&all, v)
		if err != nil {
			return err
		}
	}
	select {
	case <-s.wake:
	case <-ctx.Done():
		if s.quit() {
			return ctx.Err()
		}
		<-s.wake
	}
	r := s.winner.Load()
	m := r.box.Load()
	m.told(r, chain)
	m.wait(r) // if it has been requeued there
	return nil
}

// Forsake is Request.Forsake for the winner of a selection, or gives it up.
func (s *Selection) Forsake() {
	if s.quit() {
		return
	}
	if w := s.winner.Load(); w != nil && w != nobody {
		w.Forsake()
	}
}
