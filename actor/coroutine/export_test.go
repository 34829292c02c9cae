package coroutine

import "fmt"

// Audit checks what S1 and S2 say of a scheduler, at one moment while it runs. If it is quiescent,
// and is to be so, Audit also evaluates the conditions that routines wait for, and fails if one of
// them is not blocked.
func (s *Scheduler) Audit(quiescent bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, inQueue := map[*routine]bool{}, map[*Blocker]bool{}
	ready, waits := 0, 0
	for _, e := range s.queue.entries[s.queue.head:] {
		switch r := e.routine; {
		case r == nil && (inQueue[e.blocker] || e.blocker.examination != queued):
			return fmt.Errorf("a blocker is in the run queue twice, or does not know that it is there")
		case r == nil:
			inQueue[e.blocker] = true
		case r.state == ended: // withdrawn
		case seen[r] || r.state != runnable || r.at != nil:
			return fmt.Errorf("a routine that is %s is in the run queue, or is there twice", states[r.state])
		default:
			seen[r] = true
			ready++
		}
	}
	for b := s.blockers.first; b != nil; b = b.next {
		n, ticket := 0, uint64(0)
		for r := b.first; r != nil; r = r.next {
			if seen[r] || r.state != blocked || r.at != b || r.ticket <= ticket {
				return fmt.Errorf("a routine that is %s is in a line, or is there twice, or out of order", states[r.state])
			}
			seen[r], ticket = true, r.ticket
			n++
		}
		if n == 0 || n != int(b.waiting.Load()) {
			return fmt.Errorf("a line of %d counts %d", n, b.waiting.Load())
		}
		if b.examination == queued != inQueue[b] {
			return fmt.Errorf("a blocker is to be examined, and is not in the run queue")
		}
		if quiescent && s.workers == 0 && s.running == 0 && s.queue.len() == 0 && b.examination == idle && !b.condition() {
			return fmt.Errorf("a wake-up has been lost: %d routines wait for a blocker that is not blocked", n)
		}
		waits += n
	}
	if waits != s.blocked || s.live != ready+waits+s.running {
		return fmt.Errorf("%d routines are alive: %d runnable, %d (or %d) blocked, %d running", s.live, ready, waits, s.blocked, s.running)
	}
	return nil
}

// Idle reports whether the coroutine's scheduler has nothing to do.
func (s *Scheduler) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers == 0 && s.queue.len() == 0 && s.running == 0
}
