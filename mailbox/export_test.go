package mailbox

// Idle reports whether nothing waits and nothing runs.
func (s *Scheduler) Idle() bool { return !s.Waits() && !s.Runs() }
