package coroutine

// worker runs routines, one at a time. It is a task of the scheduler's dispatcher, or lasts for one
// call of RunNextUnblockedRoutine.
//
//	take ──► a routine ──► run ──► settle ──► take …
//	 └─► a blocker ──► examine: still blocked, or the first of its line
//
// It is used by one goroutine at a time. On a goroutine that is not the scheduler's it has
// coroutines run by one that is, and waits for that (substitute).
type worker struct {
	s   *Scheduler
	own bool // its goroutine is one of the scheduler's: C1

	// What it is about, for the case that a function ends its goroutine.
	running   *routine
	again     bool // the running task is to wait again
	examining *Blocker
	failure   *BlockerError
}

// Run implements actor.Task: it runs routines until there are none, or there are too many workers.
func (w *worker) Run() {
	s := w.s
	s.mu.Lock()
	s.starting--
	s.mu.Unlock()
	w.work()
}

// work runs routines until there are none, or there are too many workers. If a function ends the
// goroutine, another one of the dispatcher takes its place.
func (w *worker) work() {
	s := w.s
	returned := false
	defer func() {
		if !returned {
			s.mu.Lock()
			w.leave()
			s.release()
			s.dispatcher.Dispatch((*replacement)(w))
		}
	}()
	s.mu.Lock()
	for s.workers <= s.limit {
		r := w.take()
		if r == nil {
			break
		}
		for r != nil {
			if c := r.co; c != nil && w.own {
				// This is what run does, without its frames: after a switch the processor does not
				// foresee where a return leads, so that each takes as long as several calls.
				s.release()
				if c.next == nil {
					c.start()
				}
				c.next()
				s.mu.Lock()
				if r = w.exchange(c); r != nil {
					continue
				}
				w.leave()
				break
			}
			r = w.run(r, true)
		}
	}
	s.workers--
	s.release()
	returned = true
}

// replacement is a worker whose goroutine has been ended.
type replacement worker

// Run implements actor.Task.
func (w *replacement) Run() { (*worker)(w).work() }

// runOne runs one routine by hand.
func (w *worker) runOne() RunStatus {
	s := w.s
	returned := false
	defer func() {
		if !returned {
			s.mu.Lock()
			w.leave()
		}
		s.release()
	}()
	s.mu.Lock()
	if s.dispatcher == nil {
		// A condition that calls Unblocked itself is in the queue again each time: that has an end.
		for n := s.queue.len() + maxPasses; n > 0 && s.queue.len() > 0; n-- {
			if r := w.next(); r != nil {
				w.run(r, false)
				returned = true
				return RanOneRoutine
			}
		}
	}
	returned = true
	if s.live == 0 {
		return NoRoutines
	}
	return SomeRoutinesBlocked
}

// take returns the next routine that is to run now, or nil if there is none. It is called with mu
// held, and lets go of it while a condition is evaluated.
func (w *worker) take() *routine {
	for w.s.queue.len() > 0 {
		if r := w.next(); r != nil {
			return r
		}
	}
	return nil
}

// next looks at the next entry of the run queue, and returns the routine that is to run now for it, if
// there is one. It is called as take is.
func (w *worker) next() *routine {
	s := w.s
	e := s.queue.pop()
	r := e.routine
	switch {
	case e.blocker != nil:
		if r = w.examine(e.blocker); r == nil {
			return nil
		}
	case r.state == ended: // it was withdrawn
		return nil
	}
	if c := r.co; c != nil && c.next == nil {
		if err := c.interruption.Load(); err != nil {
			r.end(*err) // it has never run
			return nil
		}
	}
	r.is(running)
	s.running++
	w.running = r
	return r
}

// examine evaluates the condition of a blocker that was in the run queue. If it is not blocked,
// examine takes the first routine out of its line. It is called with mu held, and lets go of it
// meanwhile.
func (w *worker) examine(b *Blocker) *routine {
	s := w.s
	b.examination = examined
	version := b.version.Load() // S2
	w.examining = b
	s.release()
	blocked, failure := b.evaluate(func(f *BlockerError) { w.failure = f })
	s.mu.Lock()
	w.examining = nil
	if w.own {
		unlockThread() // C1
	}
	return b.decide(blocked, failure, version)
}

// decide does what follows from an evaluation by a worker: it returns the first of the line if the
// blocker is not blocked. The caller holds mu.
func (b *Blocker) decide(blocked bool, failure *BlockerError, version uint64) *routine {
	b.examination = idle
	switch {
	case failure != nil:
		b.endWaits(failure)
	case b.first == nil: // all have been withdrawn
	case blocked:
		if b.version.Load() != version {
			b.s.examine(b) // S2
		}
	default:
		r := b.first
		b.remove(r)
		if b.first != nil && !r.takes {
			b.s.examine(b) // S2
		}
		return r
	}
	return nil
}

// exchange does what leave and take do if the coroutine that has been running has yielded, and the
// next in the run queue is a coroutine, too, that has begun: it returns that. Else it does nothing,
// and returns nil. The caller holds mu.
func (w *worker) exchange(c *Coroutine) *routine {
	s := w.s
	if c.intent.to != toYield || s.queue.len() == 0 || s.workers > s.limit {
		return nil
	}
	next := s.queue.entries[s.queue.head].routine
	if next == nil || next.state != runnable || next.co == nil || next.co.next == nil {
		return nil
	}
	s.queue.pop()
	s.ready(&c.routine)
	next.is(running)
	w.running = next
	return next
}

// run runs a routine that it has taken until that waits, yields or ends. It is called with mu held,
// and lets go of it meanwhile. If a goroutine of the scheduler runs the routine in place of this
// one, it may run others after it if more is set, and run returns the one that it has taken and
// left.
func (w *worker) run(r *routine, more bool) *routine {
	s := w.s
	s.release()
	switch {
	case r.co == nil:
		w.again = r.do()
		if w.own {
			unlockThread() // C1: a task that has locked its thread has no more use of it
		}
	case w.own:
		r.co.resume()
	default:
		r = w.substitute(r, more)
		s.mu.Lock()
		return r
	}
	s.mu.Lock()
	w.leave()
	return nil
}

// leave notes what has become of what the worker was about. The caller holds mu.
func (w *worker) leave() {
	if b := w.examining; b != nil { // the condition has ended the goroutine
		w.examining = nil
		b.decide(false, w.failure, 0)
	}
	if r := w.running; r != nil {
		w.running = nil
		w.s.running--
		w.s.settle(r, w.again)
		w.again = false
	}
}

// settle puts a routine that was running where it belongs. The caller holds mu.
func (s *Scheduler) settle(r *routine, again bool) {
	c := r.co
	if c == nil {
		switch {
		case !again:
			r.end(r.outcome)
		case s.closed.Load():
			r.err = ErrClosed
			s.ready(r)
		default:
			r.home.enlist(r, intent{again: true})
		}
		return
	}
	switch c.intent.to {
	case toYield:
		s.ready(r)
	case toWait:
		n := c.intent
		c.intent.at = nil
		if r.err = c.interrupted(); r.err != nil {
			s.ready(r)
		} else {
			n.at.enlist(r, n)
		}
	case toEnd:
		r.end(r.outcome)
	}
}

// substitution is a goroutine of the scheduler that runs coroutines in place of a worker whose
// goroutine is not the scheduler's. The worker waits for it, so that one of the two runs at a time.
type substitution struct {
	worker
	first *routine
	more  bool
	left  chan *routine // what it has taken, and not run
}

// substitute has a goroutine of the scheduler run a coroutine; and, if more is set, the next
// routines as long as they are coroutines. It returns the routine that the goroutine has taken
// after that, if any.
func (w *worker) substitute(r *routine, more bool) *routine {
	t := &substitution{worker: worker{s: w.s, own: true, running: w.running}, first: r, more: more, left: make(chan *routine, 1)}
	w.running = nil
	w.s.own.Dispatch(t)
	w.running = <-t.left
	return w.running
}

// Run implements actor.Task.
func (t *substitution) Run() {
	s, r := t.s, t.first
	returned := false
	defer func() {
		if !returned {
			s.mu.Lock()
			t.leave()
			r = nil
		}
		s.release()
		t.left <- r
	}()
	s.mu.Lock()
	for r != nil && r.co != nil {
		t.run(r, false)
		if r = nil; t.more && s.workers <= s.limit {
			r = t.take()
		}
	}
	returned = true
}
