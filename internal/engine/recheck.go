package engine

// recheck has a worker look whether a wait for a request of the object, which fans out, is in
// a circle now. Elsewhere a request that waits is blocked by all that runs there,
// from the start. Here it may be that nothing blocks the request, and later something does:
//
//   - the object is to be restarted, and nothing starts before what runs has returned;
//   - the request is requeued, for an operation that conflicts with what runs;
//   - another one has come that the policy prefers, or has been requeued, and waits itself;
//   - a predicate has been asked about it, and says that it conflicts with what runs;
//   - another one that comes first has come in from the overflow queue;
//   - another one has come to be at its bound, where all start that are compatible.
//
// The cause comes before graph is taken, here and by those that begin to wait: so a wait that
// has been drawn is seen here, and another one sees the cause. The caller holds mu.
func (m *Mailbox) recheck() {
	if m.config.Parallel == nil || m.parallel().recheck {
		return
	}
	m.parallel().recheck = true
	m.config.Workers.Dispatch((*rechecking)(m))
}

// rechecking is an object at which there may be a circle.
type rechecking Mailbox

// Run implements Task.
func (d *rechecking) Run() {
	m := (*Mailbox)(d)
	m.mu.Lock()
	m.parallel().recheck = false
	m.mu.Unlock()
	graph.Lock()
	broken := breakCircles(graph.Waits(m))
	graph.Unlock()
	abort(broken)
}
