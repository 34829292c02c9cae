package mailbox

import "fmt"

// Idle reports whether nothing waits and nothing runs.
func (s *Scheduler) Idle() bool { return !s.Waits() && !s.Runs() }

// Counted says what is still counted, or listed, of what runs, waits, or is retained; nothing if all is over.
func (s *Scheduler) Counted() (text string) {
	note := func(what string, n int) {
		if n != 0 {
			text += fmt.Sprintf("%s: %d; ", what, n)
		}
	}
	note("runs", s.runs.n)
	note("bodies", s.bodies)
	note("retained", s.retained)
	note("transacted", s.transacted.n)
	note("running", s.running.len())
	note("total", s.total)
	note("tries", s.tries)
	for op := range s.queues {
		q := &s.queues[op]
		note("runs of "+s.rules.Operations[op].Name, int(q.runs))
		note("retained of "+s.rules.Operations[op].Name, int(q.retained))
		note("transacted of "+s.rules.Operations[op].Name, int(q.transacted))
		note("here of "+s.rules.Operations[op].Name, len(q.here))
	}
	if s.index != nil {
		for i := range s.index.cells {
			note("cells", len(s.index.cells[i]))
			for op := range s.index.spans[i] {
				if s.index.spans[i][op].root != nil {
					note("intervals", 1)
				}
			}
		}
	}
	return text
}

func (a *list) len() (n int) {
	for r := a.first; r != nil; r = r.next {
		n++
	}
	return n
}
