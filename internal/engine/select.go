package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Selection is a call that waits at several objects at once, for the first that can run it.
//
// One compare-and-swap decides which one that is. It is done by a goroutine that is about to
// start a request and has the exclusion of its object: an owner starts a request only if it has
// claimed the selection for it. So no two of the requests ever start, whatever their objects do
// at the same time. The winner's thread then takes the others out of their queues, before the
// body runs and before the caller is told; an owner that meets one of them in between drops it.
// So where it can be known that one has been chosen, the others are gone.
//
// Nothing fails between the claim and the start, or else no case could be chosen any more: an
// owner claims in the last question that the scheduler asks (see scheduler.grant), and the start
// follows under the same hold of mu. So a winner has started, or failed; and if it waits it has
// been requeued.
//
// The claim also covers requests that are still to be handed in. The caller looks at the winner
// under the mu under which it hands a request in, and the winner's thread takes the mu of every
// object, whether the request is there already or not. Either that thread comes later and finds
// the request; or its claim came first, and the caller sees it.
type Selection struct {
	winner   atomic.Pointer[Request]
	requests []*Request    // not changed from the first arrival on
	wake     chan struct{} // of all of them; the winner's token
	aborted  error         // why the caller has been canceled, by another goroutine; written before the token
	watched  bool          // the requests' contexts may end before the caller's
	timed    bool          // the caller waits for no longer than due
	due      time.Duration
}

// ErrDue is the error of a selection that has become due.
var ErrDue = errors.New("engine: the selection is due")

// noWinner is the winner of a selection that its caller has given up.
var noWinner = new(Request)

// claim reports whether r may run. If so, no other request of its selection runs.
func (r *Request) claim() bool {
	s := r.selection()
	return s == nil || s.winner.CompareAndSwap(nil, r) || s.winner.Load() == r
}

// lost reports whether r will never run, as another request of its selection does.
func (r *Request) lost() bool {
	s := r.selection()
	if s == nil {
		return false
	}
	w := s.winner.Load()
	return w != nil && w != r
}

// retire takes the others of r's selection, which r has won, out of their queues. It is called
// without mu, and takes the mu of one other mailbox at a time, which is never held for long.
func (r *Request) retire() {
	if s := r.selection(); s != nil {
		s.clear(r)
	}
}

// clear takes all requests but one back from their objects. When it returns the objects do not
// look at them any more.
func (s *Selection) clear(but *Request) {
	for _, other := range s.requests {
		if other != but {
			other.lock().drop(other)
		}
	}
}

// drop lets the scheduler forget a request that has lost. If the request has failed, and its
// caller has not been told yet, as the owner tells one at a time, it is not told. It is called
// with mu held, and releases it.
func (m *Mailbox) drop(r *Request) {
	k := m.queues.Load()
	switch {
	case k == nil:
		m.mu.Unlock()
	case k.Withdraw(&r.Request):
		m.dismissThread(r)
		m.reconsider()
	default:
		if k.Drop(&r.Request) {
			m.dismissThread(r)
		}
		m.mu.Unlock()
	}
}

// expire ends the wait of one request of a selection whose own context has ended: the request is
// chosen, and fails. One that has not arrived looks at its context when it does.
func (r *Request) expire() {
	m := r.lock()
	if !r.Waits() || r.committed || !r.claim() {
		m.mu.Unlock()
		return
	}
	m.remove(r)
	r.retire()
	r.lapse(r.ctx.Err())
	r.settle()
}

// cancel lets none of the requests run, unless one has been claimed.
func (s *Selection) cancel() bool {
	if !s.winner.CompareAndSwap(nil, noWinner) {
		return false
	}
	s.clear(nil)
	return true
}

// cancel implements canceler: it cancels the selection. A winner is canceled too unless it has
// started: it waits if it has been requeued, and remains the winner.
func (c *choice) cancel(err error) bool {
	s := c.of
	if s.cancel() {
		return true
	}
	w := s.winner.Load()
	return w != noWinner && w.cancel(err)
}

// abort implements canceler.
func (c *choice) abort(err error) {
	s := c.of
	if w := s.winner.Load(); w != noWinner {
		w.abort(err)
		return
	}
	s.aborted = err
	s.wake <- struct{}{}
}

// choice is what the caller of a selection waits for.
type choice struct{ Join }

// Begin makes s ready for the requests of another call.
func (s *Selection) Begin() {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	s.winner.Store(nil)
	s.watched, s.timed, s.aborted = false, false, nil
}

// Limit lets the caller wait for no longer than d for one of the requests to be chosen. It does
// not limit a request that has been chosen.
func (s *Selection) Limit(d time.Duration) { s.timed, s.due = true, d }

// Add makes r one of the requests, to be handed in at the box. Its context may be derived from
// the caller's; then own says so, and the record must not be used for another request.
func (s *Selection) Add(ctx context.Context, r *Request, box *Mailbox, now time.Duration, own bool) {
	r.box.Store(box)
	r.special().sel, r.wake, r.tokens = s, s.wake, true
	r.Prepare(ctx, now)
	s.requests = append(s.requests, r)
	s.watched = s.watched || own
}

// Select hands in the requests, of which one is to run, and waits until it has ended; or until
// the context has, and then none of them ever runs. It returns the number of the request that has
// run, or has failed; or -1 and the context's error, ErrDue, or *DeadlockError. Those that come
// first are handed in first, and if one can run at once the later ones are not handed in.
func (s *Selection) Select(ctx context.Context) (int, error) {
	s.handIn()
	if w := s.winner.Load(); w == nil || !w.ended {
		if err := s.wait(ctx, ChainOf(ctx)); err != nil {
			return -1, err
		}
	}
	won := s.winner.Load()
	won.follow()
	if won.lapsed&early != 0 {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
	}
	return slices.Index(s.requests, won), nil
}

// Clear lets go of the requests.
func (s *Selection) Clear() {
	for _, r := range s.requests {
		if r.unwatch != nil {
			r.unwatch()
			r.unwatch = nil
		}
	}
	clear(s.requests)
	s.requests = s.requests[:0]
}

// handIn hands in the requests until one has been claimed.
func (s *Selection) handIn() {
	for _, r := range s.requests {
		m := r.box.Load()
		m.mu.Lock()
		if s.winner.Load() != nil {
			m.mu.Unlock()
			return
		}
		if err := m.turnsAway(r); err != nil {
			if m.closed == nil {
				r.lapses()
			}
			m.mu.Unlock()
			if r.claim() {
				r.retire()
				r.fail(err)
				r.ended = true
			}
			return
		}
		if m.arrive(r, m.engage(), "") {
			m.serve(r, 0, false)
		}
	}
}

// wait waits for the token of the winner, or for the object, to run it.
func (s *Selection) wait(ctx context.Context, chain *Frame) error {
	if chain != nil {
		all := choice{Join{of: s}}
		parts := make([]Awaited, len(s.requests))
		for i, r := range s.requests {
			parts[i] = r
		}
		all.Of(true, parts...)
		w, err := chain.enter(&all.Join, &all)
		defer w.leave()
		if err != nil {
			if w := s.winner.Load(); w != noWinner {
				w.fail(err)
				w.ended = true
				return nil
			}
			return err
		}
	}
	if token, err := s.awaitToken(ctx); !token {
		return err
	}
	r := s.winner.Load()
	if r == noWinner {
		return s.aborted
	}
	m := r.box.Load()
	m.told(r, chain)
	m.wait(r) // if it has been requeued there
	return nil
}

// awaitToken waits for the token of the winner. It reports false if there will be none: the wait has ended before, with the error,
// or the winner's context has, and the winner has left its queue.
func (s *Selection) awaitToken(ctx context.Context) (token bool, err error) {
	defer comesBack(leaves(ctx))
	var due <-chan time.Time
	if s.timed {
		timer := time.NewTimer(s.due)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-s.wake:
			return true, nil
		case <-due:
			if s.cancel() {
				return false, ErrDue
			}
			due = nil // one has been claimed
			continue
		case <-ctx.Done():
		}
		if s.cancel() {
			return false, ctx.Err()
		}
		// One has been claimed. It waits nevertheless if it has been requeued.
		w := s.winner.Load()
		if w != noWinner && w.box.Load().Withdraw(w) {
			w.lapse(ctx.Err())
			w.ended = true
			return false, nil
		}
		<-s.wake
		return true, nil
	}
}

// Forsake is Request.Forsake for the winner of a selection. If there is none, it cancels the
// selection.
func (s *Selection) Forsake() {
	if s.cancel() {
		return
	}
	if w := s.winner.Load(); w != noWinner {
		w.Forsake()
		s.clear(w) // also if it will not run
	}
}
