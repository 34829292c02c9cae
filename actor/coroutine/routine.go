package coroutine

import (
	"context"
	"fmt"
	"runtime/debug"
)

// routine is what a Task and a Coroutine have in common: what a scheduler runs.
type routine struct {
	s  *Scheduler
	co *Coroutine // nil if it is a task
	// run is the function of a task. It reports whether the task is to wait again where it has
	// waited.
	run func(error) (again bool)
	// source is the function that it was made of; for its name.
	source any

	// What follows is guarded by the mu of s. While the routine is running, the goroutine that runs
	// it may read the state, which does not change then, and has err, ticket, takes and outcome to
	// itself.
	state      state
	home       *Blocker // of a task: where it waits
	at         *Blocker // that it waits for
	next, prev *routine // in the line of at
	ticket     uint64   // its place in the line; 0 if it has none
	takes      bool     // it calls passOn when it has gone on
	err        error    // what ends its wait
	outcome    error
	done       chan struct{} // closed when it has ended; nil until it is asked for
}

// A state of a routine. It is in one of them at a time, and in the structure that belongs to it:
// S1.
type state uint8

const (
	created  state = iota
	blocked        // in the line of one blocker
	runnable       // in the run queue, once
	running        // on one worker
	ended          // nowhere
)

var states = [...]string{"created", "blocked", "runnable", "running", "ended"}

// may are the states that may follow on each state, as bits.
var may = [...]uint8{
	created:  1<<blocked | 1<<runnable,
	blocked:  1<<runnable | 1<<running | 1<<ended,
	runnable: 1<<running | 1<<ended,
	running:  1<<blocked | 1<<runnable | 1<<ended,
	ended:    0,
}

// is sets the state. It panics if the state must not follow on that before: S1 would not hold. The
// caller holds mu.
func (r *routine) is(next state) {
	if may[r.state]&(1<<next) == 0 {
		r.cannotBe(next)
	}
	r.state = next
}

func (r *routine) cannotBe(next state) {
	panic(fmt.Sprintf("sluice: a routine that is %s cannot be %s", states[r.state], states[next]))
}

// end notes that the routine has ended. The caller holds mu.
func (r *routine) end(outcome error) {
	r.is(ended)
	r.outcome = outcome
	r.run, r.err, r.home = nil, nil, nil
	if r.done != nil {
		close(r.done)
	}
	s := r.s
	if s.live--; s.live == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// await waits until the routine has ended, and returns its outcome.
func (r *routine) await(ctx context.Context) error {
	s := r.s
	s.mu.Lock()
	if r.state == ended {
		defer s.mu.Unlock()
		return r.outcome
	}
	if r.done == nil {
		r.done = make(chan struct{})
	}
	done := r.done
	s.mu.Unlock()
	select {
	case <-done:
		return r.outcome // not changed since done was closed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Task is a routine that is a function to go on with: a continuation.
type Task struct{ routine }

// Await waits until the task has ended. It returns nil if its function has returned, *RoutineError
// if the function has not, ErrWithdrawn if it was withdrawn; or the context's error, if that ends
// first. A routine that calls it keeps its worker.
func (t *Task) Await(ctx context.Context) error { return t.await(ctx) }

// Withdraw takes back a task that has not begun: it never runs. It reports false, and does nothing,
// if the task has begun or ended.
func (t *Task) Withdraw() bool {
	s := t.s
	s.mu.Lock()
	defer s.release()
	switch t.state {
	case blocked:
		t.at.remove(&t.routine)
	case runnable: // the worker that comes to it passes on
	default:
		return false
	}
	t.end(ErrWithdrawn)
	return true
}

// do runs the function of a task, and reports whether it is to wait again. A panic is its outcome.
// If the function ends the goroutine, so is that, and do does not return.
func (r *routine) do() (again bool) {
	returned := false
	run, err := r.run, r.err
	r.err = nil
	defer func() {
		if !returned {
			again, r.outcome = false, r.failure(recover())
		}
	}()
	again = run(err)
	returned = true
	return again
}

// failure returns the outcome of a function that has panicked with the value, or has ended its
// goroutine if that is nil, and reports it.
func (r *routine) failure(value any) error {
	e := &RoutineError{Function: nameOf(r.source), Value: value}
	if value != nil {
		e.Stack = debug.Stack()
	}
	if r.s.failures != nil {
		r.s.own.Dispatch(&reported{r.s.failures, e})
	}
	return e
}

// reported is the task of telling the program of a failure.
type reported struct {
	report func(error)
	err    error
}

// Run implements actor.Task. What the function itself fails of is not reported.
func (r *reported) Run() {
	defer func() {
		_ = recover()
		unlockThread() // C1
	}()
	r.report(r.err)
}
