package mailbox

import (
	"iter"

	"github.com/sluice-go/sluice/guards"
)

// What can be seen of a scheduler. Of a request that waits, see explain.go.

// Step returns the number of inputs and starts so far.
func (s *Scheduler) Step() uint64 { return s.step }

// NeedsScheduling reports whether what waits has to be reconsidered though nothing has
// ended: after a withdrawal, or another rank.
func (s *Scheduler) NeedsScheduling() bool {
	return s.watchful || s.headed || s.entering.n > 0 || s.failed.first != nil || s.runs.n > 0 && s.Waits()
}

// Held reports whether nothing may start: see Hold.
func (s *Scheduler) Held() bool { return s.held }

// Waiting returns how many requests of the operation are admitted: Ada's 'Count.
// It may be called at any time from anywhere.
func (s *Scheduler) Waiting(op int) int { return s.queues[op].length.inside() }

// Joined returns how many requests of the operation have been admitted so far, one that
// was requeued each time. One that has found the object idle and open never was. It may be
// called at any time from anywhere.
func (s *Scheduler) Joined(op int) uint64 { return s.queues[op].joined.Load() }

// Queued returns how many requests of the operation wait, in any queue. It may be called at any
// time from anywhere.
func (s *Scheduler) Queued(op int) int { return s.queues[op].length.all() }

// Only returns the first of the admitted requests of a family, if they all
// have one key; or nil.
func (s *Scheduler) Only(op int) *Request {
	if n := s.queues[op].in.order.root; s.queues[op].family && n != nil && n.v.size == 1 {
		return n.v.r
	}
	return nil
}

// WaitingAt is Waiting for one key of a family. It is an input like any other:
// it must not be called at any time.
func (s *Scheduler) WaitingAt(op int, key any) int {
	if l := s.queues[op].members[key]; l != nil {
		return l.len()
	}
	return 0
}

// AdmittedTo returns the admitted requests of an operation, in the order of arrival, as long as none comes or goes.
func (s *Scheduler) AdmittedTo(op int) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := s.queues[op].in.first; r != nil && yield(r); r = r.next {
		}
	}
}

// Find returns the waiting request with the arrival number, or nil. It looks at
// all of them.
func (s *Scheduler) Find(arrival uint64) *Request {
	for op := range s.queues {
		q := &s.queues[op]
		for _, l := range [...]*list{&q.in.list, &q.entry, &q.out.list} {
			if r := l.find(arrival); r != nil {
				return r
			}
		}
	}
	return s.threadless.find(arrival)
}

// Waits reports whether any request waits, or has failed and is not yet reported.
func (s *Scheduler) Waits() bool {
	return s.admitted.n > 0 || s.entering.n > 0 || s.failed.first != nil || s.overflowing > 0 || s.threadless.first != nil
}

// Runs reports whether the body of any request runs.
func (s *Scheduler) Runs() bool { return s.bodies > 0 }

// RunsOf returns how many bodies of the operation run, those of requests announced by Begin included.
func (s *Scheduler) RunsOf(op int) int { return int(s.queues[op].runs - s.queues[op].retained) }

// Admitted returns the set of operations with admitted requests. It
// belongs to the scheduler: do not change or keep it.
func (s *Scheduler) Admitted() guards.Set { return s.admitted.Set }

// Overflowing reports whether any request waits for room in a queue.
func (s *Scheduler) Overflowing() bool { return s.overflowing > 0 }

// OverflowingOf reports whether any request of the operation waits for room, that has a thread.
func (s *Scheduler) OverflowingOf(op int) bool {
	return s.queues[op].overflowing > s.queues[op].threadless
}

// Entering reports whether any request waits to be admitted.
func (s *Scheduler) Entering() bool { return s.entering.n > 0 }

// Backlog returns how many requests wait, anywhere.
func (s *Scheduler) Backlog() int { return s.total }
