package engine

import "context"

// A step in the life of an object (what its supervisor decides after a failure, or a restart for
// the sake of others) conflicts with everything:
//
//	Fail, Suspend ──► what runs finishes, nothing starts ──► Renew ──► Resume
//	                  requests come, wait, are withdrawn      (perhaps)
//
// # What may touch the state meanwhile
//
// A guard is evaluated, and a body runs, after one of two steps. Either the scheduler has been
// consulted, under mu; or the object was taken on the fast path, by a compare-and-swap from a word
// without slow. Suspend, under mu, first sets engaged, so that the scheduler knows what is on the
// fast path, and then holds the scheduler. The swap by which the fast path would release the
// object fails, and its goroutine comes to the scheduler, which starts nothing. When the scheduler
// says that nothing runs, and the release has put slow into the word, nothing reads the state,
// and nothing can begin to. (A request that arrives still owns the object for the moment that it
// takes to be told to wait; it evaluates no guard.) That is what quiet says, which this release
// closes.
//
// Renew puts the new state in place under mu. A request that the scheduler starts afterwards
// starts under mu, and later. The fast path swaps a word that was stored after Resume, under mu.
// Both order the write before the reads.
//
// No wake-up is lost: Resume frees the scheduler and engages under one hold of mu. Either it
// becomes the owner, and a worker starts what can start; or there is an owner, which consults the
// scheduler before it releases the object.

// suspension is why nothing starts at an object.
type suspension struct {
	quiet     chan struct{} // closed when nothing runs any more
	quiescent bool          // quiet has been closed
	// failure is why the object has failed, until its supervisor's decision is carried out.
	failure error
	renewed bool // the state is a new one, or time has passed, so that all guards are evaluated anew
	// children is the object's subtree while it waits for the end of its children, which
	// it does under graph and mu.
	children *Subtree
}

// Suspend lets nothing start until Resume. What runs may finish; the channel is closed when it
// has. Requests arrive, wait and can be withdrawn. If the object is suspended already, also by a
// failure, nothing changes.
func (m *Mailbox) Suspend() (quiet <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspend().quiet
}

// suspend is Suspend with mu held.
func (m *Mailbox) suspend() *suspension {
	s := m.suspended()
	if s != nil {
		return s
	}
	s = m.suspending()
	owner := m.engage() // first, so that the scheduler knows what runs
	m.scheduler().Hold()
	if owner {
		m.release()
	}
	return s
}

// suspended returns why nothing starts, or nil. The caller holds mu.
func (m *Mailbox) suspended() *suspension {
	if x := m.extras.Load(); x != nil {
		return x.suspension
	}
	return nil
}

func (m *Mailbox) suspending() *suspension {
	s := &suspension{quiet: make(chan struct{})}
	m.special().suspension = s
	return s
}

// Fail says that the object has failed, and suspends it. It reports whether a decision is needed
// about what becomes of the object. None is needed if the object is about to end anyway, or if an
// earlier failure is still undecided: one decision covers both, as they have left the same state.
//
// A body's failure is reported before the body ends, so that nothing starts in between.
func (m *Mailbox) Fail(cause error) (undecided bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failureMoot() {
		return false
	}
	m.suspend().failure = cause
	return true
}

// FailAsking is Fail for a guard that the scheduler is evaluating. The owner calls it with mu
// held. The scheduler is held when the evaluation is over: see next.
func (m *Mailbox) FailAsking(cause error) (undecided bool) {
	if m.failureMoot() {
		return false
	}
	s := m.suspended()
	if s == nil {
		s = m.suspending()
	}
	s.failure = cause
	return true
}

// failureMoot reports whether a failure changes nothing any more: the object is about to end, or
// has failed already. The caller holds mu.
func (m *Mailbox) failureMoot() bool {
	c, s := m.closed, m.suspended()
	return c != nil && !c.draining || s != nil && s.failure != nil
}

// Failure returns the failure that is yet to be decided about, or nil.
func (m *Mailbox) Failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.suspended(); s != nil {
		return s.failure
	}
	return nil
}

// Decided is Failure for the goroutine that carries out the decision: what fails from now on is
// another failure.
func (m *Mailbox) Decided() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.suspended()
	if s == nil {
		return nil
	}
	failure := s.failure
	s.failure = nil
	return failure
}

// Renew calls put to replace the state of a suspended object that is quiet. All guards are
// evaluated anew when the object is resumed. If the object is not quiet, or has been closed,
// Renew does nothing and reports false.
func (m *Mailbox) Renew(put func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, c := m.suspended(), m.closed
	if s == nil || !s.quiescent || c != nil && !c.draining {
		return false
	}
	m.forsakeRests() // first, as transactions come to rest only after their requests
	m.restarts()
	if c := m.closed; m.suspended() != s || c != nil && !c.draining { // while mu was released
		return false
	}
	put()
	s.renewed = true
	return true
}

// Lapse says that guards may have turned true by themselves, as time has passed: all that are
// waited for are evaluated anew, as if the state had changed. It waits for no body. It does not
// reach a result that a request which is about to wait has found without mu; so such a request
// must not rely on Lapse.
func (m *Mailbox) Lapse() {
	m.mu.Lock()
	k := m.queues.Load()
	if s := m.suspended(); s != nil || k == nil || m.closed != nil && m.closed.over {
		if s != nil {
			s.renewed = true // guards are evaluated when the object is resumed
		}
		m.mu.Unlock()
		return
	}
	owner := m.engage()
	k.Lapse()
	m.changed()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// Resume lets the requests that wait at a suspended object start again. They have kept their
// places and ages. If the object is not suspended nothing changes.
func (m *Mailbox) Resume() {
	m.mu.Lock()
	s := m.suspended()
	if s == nil {
		m.mu.Unlock()
		return
	}
	m.special().suspension = nil
	m.scheduler().Free(s.renewed)
	owner := m.engage()
	m.changed()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// holdIfFailed holds the scheduler if a guard that it has evaluated has failed: during the
// evaluation it could not be held. The caller holds mu.
func (m *Mailbox) holdIfFailed() {
	if m.suspended() != nil {
		m.scheduler().Hold()
	}
}

// noteQuiescent says that nothing runs any more at a suspended object. The owner calls it with mu
// held, when it has released the object.
func (m *Mailbox) noteQuiescent() {
	if s := m.suspended(); s != nil && !s.quiescent && !m.scheduler().Runs() {
		s.quiescent = true
		close(s.quiet)
	}
}

// BodyOf returns which body the call chain of ctx is in, as object and operation, at the
// innermost object of the chain for which those reports true; or "" if there is none.
func BodyOf(ctx context.Context, those func(Host) bool) string {
	for f := ChainOf(ctx); f != nil && !f.over.Load(); f = f.parent {
		if those(f.box.host) {
			return f.String()
		}
	}
	return ""
}
