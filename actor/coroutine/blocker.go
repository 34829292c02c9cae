package coroutine

import (
	"reflect"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// Blocker is a condition that routines of one scheduler wait for, such as "the queue is empty". Any
// number of routines may wait for it; they go on in the order in which they came, each when the
// blocker has been found not blocked just before.
//
// The condition is evaluated by workers, and by coroutines that begin to wait, several at the same
// time. It must guard what it reads (by a mutex, or atomics), and must not block. Whatever makes it
// false calls Unblocked afterwards; without that, routines may wait for ever.
//
// When a routine goes on, another may have come first and made the condition true again: one that
// did not wait, or one on another worker. So what a routine then takes it takes by a step that can
// fail, and waits again if it does, as Queue does.
type Blocker struct {
	s         *Scheduler
	condition func() bool

	version atomic.Uint64 // counts calls of Unblocked
	waiting atomic.Int32  // routines in the line; changed with mu held

	// What follows is guarded by the mu of s.
	first, last *routine // the line, by ticket
	tickets     uint64   // the last ticket
	examination examination
	next, prev  *Blocker // those whose lines are not empty
}

// examination is the state of a blocker for workers.
type examination uint8

const (
	idle     examination = iota
	queued               // it is in the run queue, to be examined
	examined             // a worker evaluates its condition
)

// NewBlocker returns a blocker of the scheduler's routines, which is blocked while the condition
// returns true. It fails with *activeobject.ArgumentError if an argument is nil.
func NewBlocker(s *Scheduler, condition func() bool) (*Blocker, error) {
	switch {
	case s == nil:
		return nil, wrong("NewBlocker", "s", "is nil")
	case condition == nil:
		return nil, wrong("NewBlocker", "condition", "is nil")
	}
	return &Blocker{s: s, condition: condition}, nil
}

// IsBlocked evaluates the condition.
func (b *Blocker) IsBlocked() bool { return b.condition() }

// Waiting returns how many routines wait for the blocker.
func (b *Blocker) Waiting() int { return int(b.waiting.Load()) }

// Unblocked says that the blocker is probably not blocked any more. If routines wait for it, a
// worker evaluates the condition: if it is false, the first in the line goes on, and then the next
// one is considered in the same way, as long as the condition is false. So one call is enough for a
// gate that opens for all, and with a single item one routine goes on, or now and then as many as
// there are workers, of which all but one find nothing. If nothing waits, or the blocker is still
// blocked, nothing happens. Unblocked may be called by any goroutine, evaluates nothing itself, and
// does not block.
//
// No wake-up is lost; see the rules at Scheduler.
func (b *Blocker) Unblocked() {
	b.version.Add(1)
	b.passOn() // S3
}

// WaitUntilNotBlocked has the coroutine wait until the blocker is not blocked. Only the coroutine's
// own body may call it. It returns nil at once if the blocker is not blocked and no routine waits
// for it; but a coroutine that has passed in this way 64 times yields first.
//
// It fails with ErrClosed if the scheduler is closed, with the cause of the coroutine's context
// when that ends, with *BlockerError if the condition panics, and with *activeobject.ArgumentError
// if the coroutine is nil, is not running, or belongs to another scheduler. Then the coroutine does
// not wait any more, and goes on.
func (b *Blocker) WaitUntilNotBlocked(c *Coroutine) error {
	return b.wait(c, "WaitUntilNotBlocked")
}

// until has the coroutine wait for the blocker until step reports that it has done what the wait
// was for. Step reports false if, and only if, the blocker is blocked: so it stands for an
// evaluation of the condition. The coroutine keeps its place if others have come first.
func (b *Blocker) until(c *Coroutine, call string, step func() bool) error {
	if err := b.s.isRunning(c, call); err != nil {
		return err
	}
	c.ticket, c.takes = 0, true
	for again := false; ; again = true {
		if err := c.interrupted(); err != nil {
			b.passOn()
			return err
		}
		n := intent{to: toWait, at: b, again: again}
		if again || b.waiting.Load() == 0 {
			n.version = b.version.Load() // before the step: S2
			if step() {
				b.passOn()
				return nil
			}
			n.evaluated = true
		}
		c.intent = n
		c.prepare()
		c.yield(struct{}{}) // C1, C2
		if err := c.cause(); err != nil {
			return err
		}
	}
}

// passOn has the next in the line considered, after a routine that takes has gone on and has taken
// what it waited for: so the next is not woken for what this one takes. (If it finds nothing, the
// blocker was blocked then, and whatever has changed that since has called Unblocked.)
func (b *Blocker) passOn() {
	if b.waiting.Load() == 0 {
		return // what comes into an empty line is considered by itself: S2
	}
	b.s.mu.Lock()
	if b.first != nil {
		b.s.examine(b)
	}
	b.s.release()
}

// maxPasses is how many waits in succession may find a blocker not blocked before a coroutine
// yields.
const maxPasses = 64

// wait is WaitUntilNotBlocked.
func (b *Blocker) wait(c *Coroutine, call string) error {
	if err := b.s.isRunning(c, call); err != nil {
		return err
	}
	c.ticket, c.takes = 0, false
	n := intent{to: toWait, at: b}
	for b.waiting.Load() == 0 { // else it comes behind those that wait
		if err := c.interrupted(); err != nil {
			return err
		}
		n.version = b.version.Load() // before the condition is evaluated: S2
		blocked, failure := b.evaluate(nil)
		if failure != nil {
			return failure
		}
		if blocked {
			n.evaluated = true
			break
		}
		if c.passes++; c.passes < maxPasses {
			return nil
		}
		if err := c.Yield(); err != nil {
			return err
		}
	}
	c.intent = n
	c.prepare()
	c.yield(struct{}{}) // C1, C2
	return c.cause()
}

// evaluate evaluates the condition. If that panics, there is a failure. If it ends its goroutine,
// evaluate does not return, but calls exited with the failure.
func (b *Blocker) evaluate(exited func(*BlockerError)) (blocked bool, failure *BlockerError) {
	returned := false
	defer func() {
		if returned {
			return
		}
		failure = &BlockerError{Function: nameOf(b.condition), Value: recover()}
		if failure.Value != nil {
			failure.Stack = debug.Stack()
		} else if exited != nil {
			exited(failure)
		}
	}()
	blocked = b.condition()
	returned = true
	return blocked, nil
}

// enlist puts a routine that does not run into the line. Evaluated says that it has found the
// condition true, having read the version before. The caller holds mu.
func (b *Blocker) enlist(r *routine, n intent) {
	r.is(blocked)
	b.s.blocked++
	r.at = b
	if b.first == nil {
		b.s.blockers.add(b)
	}
	before := b.last // what r comes after
	if n.again && r.ticket > 0 {
		before = nil // those that have left the front with r, and have come back, are few
		for next := b.first; next != nil && next.ticket < r.ticket; next = next.next {
			before = next
		}
	} else {
		b.tickets++
		r.ticket = b.tickets
	}
	r.prev = before
	if before == nil {
		r.next, b.first = b.first, r
	} else {
		r.next, before.next = before.next, r
	}
	if r.next == nil {
		b.last = r
	} else {
		r.next.prev = r
	}
	alone := b.waiting.Add(1) == 1
	if n.evaluated && b.version.Load() != n.version || !n.evaluated && alone { // S2
		b.s.examine(b)
	}
}

// remove takes a routine out of the line. The caller holds mu.
func (b *Blocker) remove(r *routine) {
	if r.prev == nil {
		b.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		b.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next, r.at = nil, nil, nil
	b.s.blocked--
	if b.waiting.Add(-1) == 0 {
		b.s.blockers.remove(b)
	}
}

// endWaits ends the waits of all routines in the line with an error. The caller holds mu.
func (b *Blocker) endWaits(err error) {
	for b.first != nil {
		r := b.first
		b.remove(r)
		r.err = err
		b.s.ready(r)
	}
}

// blockers is a list of the blockers whose lines are not empty.
type blockers struct{ first *Blocker }

func (l *blockers) add(b *Blocker) {
	if b.next = l.first; b.next != nil {
		b.next.prev = b
	}
	l.first = b
}

func (l *blockers) remove(b *Blocker) {
	if b.prev == nil {
		l.first = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	b.next, b.prev = nil, nil
}

// nameOf returns the name of a function in the program.
func nameOf(function any) string {
	return runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
}
