package engine

// thread is a thread of a parallel object that has been given to a request: when it starts, or,
// on arrival, before it is considered:
//
//	           assignThreads              begun                 left
//	no thread ──────────────► waits, and t with it ─────► runs on t ──────────► t is returned
//	                             │         ▲                 │
//	                dismissThread│         └─────────────────┘ requeued here
//	                             ▼
//	                       t is returned
//
// A thread that waits is a goroutine that stands still in Run until it gets a token. A token is
// sent by a goroutine that has taken the request, under mu, from among those that wait. So there
// is one token for each wait, and room for it. None is missing, as dismissThread is called
// wherever a request leaves its queue without having started.
type thread struct {
	m    *Mailbox
	r    *Request
	wake chan bool // nil unless the thread was given on arrival; says whether r is to run
	// waits says that the thread is to wait for a token. Only its own goroutine uses it.
	waits bool
}

// Run implements Task.
func (t *thread) Run() {
	if t.wake == nil {
		t.r.runOn(t)
		return
	}
	defer func() {
		if t.waits { // a guard that was evaluated here has ended the goroutine: r waits with another one
			t.m.threads().Dispatch(t)
		}
	}()
	for t.waits {
		run := <-t.wake
		if t.waits = false; run {
			t.r.runOn(t)
		} else if lender := t.m.config.Parallel.Threads; lender != nil {
			lender.Return(t)
		}
	}
}

// execution is a request that runs on a worker: no caller waits for it, and no thread has been
// reserved.
type execution Request

// Run implements Task.
func (t *execution) Run() { (*Request)(t).runOn(nil) }

// runOn runs the body of r on t, or on a worker if t is nil, and completes the request.
func (r *Request) runOn(t *thread) {
	m := r.box.Load()
	r.Body.Run()
	m.mu.Lock()
	out, f := r, r.frame
	if !m.over(r) {
		out = nil // r waits here again
		if t != nil {
			t.waits = t.wake != nil && r.rest() == nil // a body that has suspended takes no thread
		}
	}
	if m.left(r, f) {
		m.startAll(out)
	} else {
		m.mu.Unlock()
		out.settle()
	}
}

// threads returns the dispatcher for requests that do not run on their callers' goroutines.
func (m *Mailbox) threads() Dispatcher {
	if t := m.config.Parallel.Threads; t != nil {
		return t
	}
	return m.config.Workers
}

// assignThreads gives threads to requests that have none, in the order of arrival, as long as
// there are any. The owner calls it with mu held, at an object that assigns threads on arrival.
//
// No wake-up is lost: a request that arrives without a thread engages, so that the owner comes
// here. If there is no thread then, an Offer will come, which engages in turn.
func (m *Mailbox) assignThreads() {
	x, k := m.parallel(), m.scheduler()
	for next := k.AwaitingThread(); next != nil; next = k.AwaitingThread() {
		if m.config.Parallel.Threads != nil {
			if !m.reserve() {
				k.NoThreadToAssign()
				return
			}
			x.spare--
		}
		k.AssignThread(next)
		r := next.Record.(*Request)
		r.special().thread = &thread{m: m, r: r, wake: make(chan bool, 1), waits: true}
		m.countKept(1)
		m.threads().Dispatch(r.thread())
	}
}

// countKept counts n more threads, or fewer, as kept by requests that wait. The caller holds mu.
func (m *Mailbox) countKept(n int) {
	m.parallel().kept += n
	if t, ok := m.config.Parallel.Threads.(Keeper); ok {
		t.Keep(n)
	}
}

// dismissThread lets go of the thread that waits with r, if there is one. R has left its queue
// without having started. The caller holds mu.
func (m *Mailbox) dismissThread(r *Request) {
	if t := r.thread(); t != nil {
		r.rare.thread = nil
		m.countKept(-1)
		t.wake <- false
	}
}

// threadExpected reports whether a request waits for a thread that may yet come. If the threads
// are kept by requests that wait here and cannot start, none will be returned. The caller holds
// mu, and nothing runs.
func (m *Mailbox) threadExpected() bool {
	return m.scheduler().AwaitingThread() != nil && m.parallel().kept == 0
}
