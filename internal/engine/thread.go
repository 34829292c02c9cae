package engine

// thread is a thread of a Fan's that has been given to a request, when it starts; or, on
// arrival, before it is considered:
//
//	             man                        begun                 left
//	threadless ───────► waits, and t with it ─────► runs on t ──────────► t is returned
//	                        │         ▲                 │
//	                        │ dismiss └─────────────────┘ requeued here
//	                        ▼
//	                  t is returned
//
// A thread that waits is really there: a goroutine that stands still in Run, until it gets
// a token. Who sends one has taken the request from among those that wait, under mu, so
// there is one token for each wait, and room for it; and none is missing, as dismiss is
// called wherever one leaves without having started.
type thread struct {
	m    *Mailbox
	r    *Request
	wake chan bool // nil unless it was given on arrival; then whether r is to run
	// waits says that it is to wait for a token. It is the goroutine's own.
	waits bool
}

// Run implements Task.
func (t *thread) Run() {
	if t.wake == nil {
		t.r.turn(t)
		return
	}
	defer func() {
		if t.waits { // a guard that was asked here has ended the goroutine: r waits with another one
			t.m.threads().Dispatch(t)
		}
	}()
	for t.waits {
		run := <-t.wake
		if t.waits = false; run {
			t.r.turn(t)
		} else if lender := t.m.config.Fan.Threads; lender != nil {
			lender.Return(t)
		}
	}
}

// execution is a request that runs on a worker: nobody waits for it, and no thread has been
// reserved.
type execution Request

// Run implements Task.
func (t *execution) Run() { (*Request)(t).turn(nil) }

// turn runs the body of r on t, or on a worker if t is nil, and says that it has ended.
func (r *Request) turn(t *thread) {
	m := r.box.Load()
	r.Body.Run()
	m.mu.Lock()
	out, f := r, r.frame
	if !m.over(r) {
		out = nil // it waits here again
		if t != nil {
			t.waits = t.wake != nil
		}
	}
	if m.left(r, f) {
		m.fan(out)
	} else {
		m.mu.Unlock()
		out.settle()
	}
}

// threads returns where threads come from that are not those of callers.
func (m *Mailbox) threads() Dispatcher {
	if t := m.config.Fan.Threads; t != nil {
		return t
	}
	return m.config.Workers
}

// man gives threads to those that have come without one, in the order of arrival, as long
// as there are any. The owner calls it with mu held, at an object that assigns threads on
// arrival.
//
// No wake-up is lost: who has come without a thread has engaged, so that the owner comes
// here; and if there is none then, there will be an Offer, which engages in turn.
func (m *Mailbox) man() {
	x, k := m.fanned(), m.scheduler()
	for next := k.Threadless(); next != nil; next = k.Threadless() {
		if m.config.Fan.Threads != nil {
			if !m.reserve() {
				k.Strand()
				return
			}
			x.spare--
		}
		k.Man(next)
		r := next.Record.(*Request)
		r.special().thread = &thread{m: m, r: r, wake: make(chan bool, 1), waits: true}
		m.keep(1)
		m.threads().Dispatch(r.thread())
	}
}

// keep counts n more threads as kept by requests that wait. The caller holds mu.
func (m *Mailbox) keep(n int) {
	m.fanned().kept += n
	if t, ok := m.config.Fan.Threads.(Keeper); ok {
		t.Keep(n)
	}
}

// dismiss lets go of the thread that waits with r, which has left its queue without having
// started; if there is one. The caller holds mu.
func (m *Mailbox) dismiss(r *Request) {
	if t := r.thread(); t != nil {
		r.rare.thread = nil
		m.keep(-1)
		t.wake <- false
	}
}

// expects reports whether somebody waits for a thread that others have, so that it may yet
// come. If those have it who wait here and cannot start, nobody returns it. The caller holds
// mu, and nothing runs.
func (m *Mailbox) expects() bool {
	return m.scheduler().Threadless() != nil && m.fanned().kept == 0
}
