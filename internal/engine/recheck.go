package engine

// recheck has a worker look whether a wait for a request of the object is in a circle now, if requests of
// the object are blocked by different bodies. At other objects a waiting request is blocked by all that runs
// there, from the start. At a parallel object, or one that takes part in transactions, nothing may block the
// request, and later something does:
//
//   - the object is to be restarted, and nothing starts before what runs has returned;
//   - the request is requeued, for an operation that conflicts with what runs;
//   - another request that the policy prefers arrives, or is requeued, and waits itself;
//   - a predicate has been evaluated for the request, and it conflicts with what runs;
//   - another request that goes first has been admitted from the overflow queue;
//   - another request has got its thread, before which it goes;
//   - a request of a transaction has started, and the transaction waits for something else;
//   - another request has reached its bypass bound, at an object where all compatible ones start.
//
// No circle is missed. The cause comes before graph is taken, here and by a body that begins to
// wait. So either the wait has been drawn and is seen here, or the body sees the cause. The caller
// holds mu.
func (m *Mailbox) recheck() {
	if !m.ownPoints() || m.special().rechecks {
		return
	}
	m.special().rechecks = true
	m.config.Workers.Dispatch((*rechecking)(m))
}

// recheckBlockers is recheck, if the scheduler has found that something blocks what it has not blocked before. The
// owner calls it after next, with mu held.
func (m *Mailbox) recheckBlockers() {
	if m.ownPoints() && m.scheduler().BlockersChanged() && pending.Load() > 0 {
		m.recheck()
	}
}

// rechecking is the mailbox of an object at which there may be a circle.
type rechecking Mailbox

// Run implements Task.
func (d *rechecking) Run() {
	m := (*Mailbox)(d)
	m.mu.Lock()
	m.special().rechecks = false
	m.mu.Unlock()
	graph.Lock()
	broken := breakCircles(graph.Waits(m))
	graph.Unlock()
	abort(broken)
}
