package engine

import "context"

// A step in the life of an object (what its supervisor decides after a failure, or a
// restart for the sake of others) conflicts with everything:
//
//	Fail, Suspend ──► what runs finishes, nothing starts ──► Renew ──► Resume
//	                  requests come, wait, are withdrawn      (perhaps)
//
// # Who may touch the state meanwhile
//
// A guard is asked, and a body runs, in one of two ways. Either the scheduler has been
// asked, under mu; or the object was taken on the fast path, by a compare-and-swap
// from a word without slow. Suspend, under mu, first sets engaged, so that the scheduler
// knows who is on the fast path, and then holds the scheduler. The swap by which that
// one would let go fails, and he comes to the scheduler, which starts nothing. When the
// scheduler says that nothing runs, and the release has put slow into the word, nobody
// reads the state, and nobody can begin to. (A request that arrives still owns the
// object for the moment that it takes to be told to wait; it asks no guard.) That is
// what quiet says, which is closed by this release.
//
// Renew puts the new state in place under mu. Whoever the scheduler lets run afterwards
// has had mu since; the fast path swaps a word that was stored after Resume, under
// mu. Both order the write before the reads.
//
// No wake-up is lost: Resume frees the scheduler and engages under one hold of mu. It
// either becomes the owner, and sends a worker to ask who can start, or there is an
// owner, who asks before he lets go.

// suspension is why nothing starts at an object.
type suspension struct {
	quiet chan struct{} // closed when nothing runs any more
	still bool          // it is
	// failure is what nobody has decided about yet, if the object has failed.
	failure error
	renewed bool // the state is another one
	// children is the object's subtree while it waits for the end of its children, which
	// it does under graph and mu.
	children *Subtree
}

// Suspend lets nothing start until Resume. What runs may finish; the channel is
// closed when it has. Requests arrive, wait and can be withdrawn. Suspending what is
// suspended, by a failure too, changes nothing.
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

// Fail says that the object has failed, and suspends it. It reports whether somebody
// is to decide what becomes of the object: not if it is about to end anyway, or if an
// earlier failure is still undecided. In that case one decision covers both, as they
// have befallen the same state.
//
// A body says so before it ends, so that nothing starts in between.
func (m *Mailbox) Fail(cause error) (undecided bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.doomed() {
		return false
	}
	m.suspend().failure = cause
	return true
}

// FailAsking is Fail for a guard that the scheduler has asked, with mu held by the
// owner. The scheduler is held when it has answered: see next.
func (m *Mailbox) FailAsking(cause error) (undecided bool) {
	if m.doomed() {
		return false
	}
	s := m.suspended()
	if s == nil {
		s = m.suspending()
	}
	s.failure = cause
	return true
}

// doomed reports whether a failure changes nothing any more.
func (m *Mailbox) doomed() bool {
	c, s := m.closed, m.suspended()
	return c != nil && !c.draining || s != nil && s.failure != nil
}

// Failure returns the failure that nobody has decided about yet, or nil.
func (m *Mailbox) Failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.suspended(); s != nil {
		return s.failure
	}
	return nil
}

// Decided is Failure for whoever carries out the decision: what fails from now on is
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

// Renew has put put another state in the place of the old one, of a suspended object
// that is quiet; all guards are asked anew when it is resumed. If the object is not
// quiet, or has been closed, nothing is done and Renew reports false.
func (m *Mailbox) Renew(put func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, c := m.suspended(), m.closed
	if s == nil || !s.still || c != nil && !c.draining {
		return false
	}
	put()
	s.renewed = true
	return true
}

// Lapse says that guards may have turned true by themselves, as time has passed: all that are waited
// for are evaluated anew, as if the state had changed. It waits for no body. What has been found without
// mu, by a request that is about to wait, is not reached by it: so that is not to be relied on.
func (m *Mailbox) Lapse() {
	m.mu.Lock()
	k := m.queues.Load()
	if s := m.suspended(); s != nil || k == nil || m.closed != nil && m.closed.over {
		if s != nil {
			s.renewed = true // they are evaluated when it is resumed
		}
		m.mu.Unlock()
		return
	}
	owner := m.engage()
	k.Hold()
	k.Free(true)
	m.changed()
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
}

// Resume lets requests start again that wait at a suspended object. They have kept
// their places and ages. If the object is not suspended nothing changes.
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

// hush holds the scheduler if a guard that it has asked has failed, which it could not
// be told then. The caller holds mu.
func (m *Mailbox) hush() {
	if m.suspended() != nil {
		m.scheduler().Hold()
	}
}

// still says that nothing runs any more at a suspended object. It is called by the
// owner with mu held, when he has given it back.
func (m *Mailbox) still() {
	if s := m.suspended(); s != nil && !s.still && !m.scheduler().Runs() {
		s.still = true
		close(s.quiet)
	}
}

// BodyOf returns which body the call chain of ctx is in, as object and operation, at the
// innermost object of the chain that is one of those; or "" if it is in none.
func BodyOf(ctx context.Context, those func(Host) bool) string {
	for f := ChainOf(ctx); f != nil && !f.over.Load(); f = f.parent {
		if those(f.box.host) {
			return f.String()
		}
	}
	return ""
}
