package engine

// recheck has a worker look whether a wait for a request of the object is in a circle now, if the
// object is parallel, or takes part in transactions. At other objects a waiting request is blocked by all that runs there, from
// the start. At a parallel object nothing may block the request, and later something does:
//
//   - the object is to be restarted, and nothing starts before what runs has returned;
//   - the request is requeued, for an operation that conflicts with what runs;
//   - another request that the policy prefers arrives, or is requeued, and waits itself;
//   - a predicate has been evaluated for the request, and it conflicts with what runs;
//   - another request that goes first has been admitted from the overflow queue;
//   - another request of a transaction starts, which already waits for something else;
//   - another request has reached its bypass bound, at an object where all compatible ones start.
//
// No circle is missed. The cause comes before graph is taken, here and by a body that begins to
// wait. So either the wait has been drawn and is seen here, or the body sees the cause. The caller
// holds mu.
func (m *Mailbox) recheck() {
	if m.config.Parallel == nil && !m.config.Rules.Transactional || m.special().rechecks {
		return
	}
	m.special().rechecks = true
	m.config.Workers.Dispatch((*rechecking)(m))
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
