package coroutine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
)

// Scheduler runs the routines of a program: those that are runnable in the order in which they
// became so, each until it waits, yields or ends. What runs them is said when it is made: a caller
// by hand, or workers. It is the CoScheduler of the text, with its three kinds.
//
// S1. A routine is in one place: in the line of one blocker, in the run queue, or running on one
// worker. Its state says where, and is changed under mu together with the place. A coroutine that
// waits gets into a line only after it has switched out, by the worker that it ran on; so no other
// worker resumes it before.
//
// S2. While routines wait for a blocker, one of these is true: (a) the blocker is in the run queue,
// or a worker examines it; (b) it was found blocked by an evaluation that began after the last call
// of Unblocked; (c) a call of Unblocked has raised the version, and has not yet taken mu. So if it
// is not blocked, and whatever made it so has called Unblocked, a worker examines it: no wake-up is
// lost. What could break this is a call of Unblocked between an evaluation and what is done about
// it. So the version is read before the evaluation, and compared afterwards, under mu: a routine
// that comes into the line with an old evaluation has the blocker examined, and a worker that has
// found it blocked by an old one examines it again. A routine that comes into a line that is not
// empty relies on what holds for the others. When the first in the line goes on, the blocker is
// queued again if there are others: (a). If the first is one that takes, as those of a Queue do, it
// does that itself when it has taken what it waited for (passOn).
//
// S3. Unblocked raises the version first, and then looks whether a routine waits; what gets into
// the line is counted first, and then the version is compared. Both are sequentially consistent, so
// one of the two sees the other.
//
// S4. While the run queue is not empty and there are fewer workers than there may be, one is about
// to begin: whatever fills the queue, or finds it filled, starts one before it lets go of mu
// (release). A worker ends only under mu, if the queue is empty or there are enough others.
type Scheduler struct {
	dispatcher actor.Dispatcher // nil if routines are run by hand
	own        actor.Warm       // goroutines of the scheduler
	failures   func(error)      // may be nil
	runnable   Signal           // notified if routines are run by hand

	closed atomic.Bool // set with mu held

	mu       sync.Mutex
	queue    queue
	blockers blockers // those that routines wait for
	limit    int      // how many workers there may be
	workers  int      // that have not ended
	starting int      // of these, those that have not begun
	running  int      // routines
	blocked  int      // routines
	live     int      // routines that have not ended
	empty    chan struct{}
	options  int // executors that were chosen
}

// Option is a setting of NewScheduler.
type Option func(*Scheduler) error

// Workers has the scheduler run its routines on up to n workers of its own: a thread pool whose
// size can be changed by Resize. They are goroutines that are kept for later use while they are
// idle, and end with Close.
func Workers(n int) Option {
	return func(s *Scheduler) error {
		s.dispatcher, s.limit = &s.own, n
		s.options++
		return atLeastOne("Workers", n)
	}
}

// Dispatcher has the scheduler run its routines on up to n threads of the dispatcher at once: the
// text's scheduler over an Executor. Tasks run on these threads; for a coroutine, such a thread
// waits while a goroutine of the scheduler resumes it. While routines are runnable a thread is
// kept.
func Dispatcher(d actor.Dispatcher, n int) Option {
	return func(s *Scheduler) error {
		if d == nil {
			return wrong("Dispatcher", "d", "is nil")
		}
		s.dispatcher, s.limit = d, n
		s.options++
		return atLeastOne("Dispatcher", n)
	}
}

// Failures has report called with each *RoutineError, after the routine has ended. It is called by
// a goroutine of its own.
func Failures(report func(error)) Option {
	return func(s *Scheduler) error {
		if report == nil {
			return wrong("Failures", "report", "is nil")
		}
		s.failures = report
		return nil
	}
}

func atLeastOne(call string, n int) error {
	if n < 1 {
		return wrong(call, "n", fmt.Sprintf("is %d: there has to be one worker at least", n))
	}
	return nil
}

// NewScheduler makes a scheduler. Without Workers or Dispatcher it runs nothing by itself: its
// caller runs routines one at a time, by RunNextUnblockedRoutine. It fails with
// *activeobject.ArgumentError if an option makes no sense, or both are given.
func NewScheduler(options ...Option) (*Scheduler, error) {
	s := &Scheduler{}
	for _, o := range options {
		if o == nil {
			return nil, wrong("NewScheduler", "an option", "is nil")
		}
		if err := o(s); err != nil {
			return nil, err
		}
	}
	if s.options > 1 {
		return nil, wrong("NewScheduler", "options", "name two executors: one of Workers and Dispatcher is possible, once")
	}
	return s, nil
}

// SetRoutineContinuation makes a task, which waits until the blocker is not blocked, and then calls
// run with nil on a worker. Without a blocker (nil) it is runnable at once. If the wait fails
// instead, run is called with the error: ErrClosed when the scheduler is closed, or *BlockerError.
// So run is called once, unless the task is withdrawn.
//
// SetRoutineContinuation evaluates nothing, and does not block. It fails with ErrClosed if the
// scheduler is closed, and with *activeobject.ArgumentError if run is nil, or b is of another
// scheduler; then run is not called.
func (s *Scheduler) SetRoutineContinuation(b *Blocker, run func(error)) (*Task, error) {
	if run == nil {
		return nil, wrong("SetRoutineContinuation", "run", "is nil")
	}
	return s.task(b, "SetRoutineContinuation", run, false, func(err error) bool { run(err); return false })
}

// task makes a task. Source is the function of the program that it calls; takes says that it passes
// on.
func (s *Scheduler) task(b *Blocker, call string, source any, takes bool, run func(error) bool) (*Task, error) {
	if b != nil && b.s != s {
		return nil, wrong(call, "the blocker", "belongs to another scheduler")
	}
	t := &Task{routine{s: s, run: run, source: source, home: b, takes: takes}}
	if err := s.admit(&t.routine, b); err != nil {
		return nil, err
	}
	return t, nil
}

// admit puts a new routine into the line of a blocker, or into the run queue if that is nil.
func (s *Scheduler) admit(r *routine, b *Blocker) error {
	s.mu.Lock()
	defer s.release()
	if s.closed.Load() {
		return ErrClosed
	}
	s.live++
	if b != nil {
		b.enlist(r, intent{})
	} else {
		s.ready(r)
	}
	return nil
}

// Dispatch implements actor.Dispatcher: the task is run as a routine. So a scheduler can have the
// turns of objects run on its workers, or by hand: see activeobject.Dispatcher. When it has been
// closed, the task runs on a goroutine of its own, as it must not be lost.
func (s *Scheduler) Dispatch(t actor.Task) {
	if _, err := s.SetRoutineContinuation(nil, func(error) { t.Run() }); err != nil {
		go t.Run()
	}
}

// Resize changes how many workers there may be. If there are to be more, they begin at once with
// what is runnable; if fewer, workers end as soon as their routines wait, yield or end. It fails
// with *activeobject.ArgumentError if n is less than 1, or routines are run by hand, and with
// ErrClosed; then nothing has changed.
func (s *Scheduler) Resize(n int) error {
	if err := atLeastOne("Resize", n); err != nil {
		return err
	}
	if s.dispatcher == nil {
		return wrong("Resize", "the scheduler", "has no workers: it is run by hand")
	}
	s.mu.Lock()
	defer s.release()
	if s.closed.Load() {
		return ErrClosed
	}
	s.limit = n
	return nil
}

// Stats are figures of one moment.
type Stats struct {
	Limit    int // how many workers there may be; 0 if routines are run by hand
	Workers  int // that have something to do, or look for it
	Running  int // routines that run; there may be fewer than workers
	Runnable int // routines and blockers that are to be looked at by a worker
	Blocked  int // routines in the line of a blocker
	Live     int // routines that have not ended
}

// Stats returns the figures of now.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Limit: s.limit, Workers: s.workers, Running: s.running, Runnable: s.queue.len(), Blocked: s.blocked, Live: s.live}
}

// RunStatus is what RunNextUnblockedRoutine has done.
type RunStatus uint8

const (
	// RanOneRoutine says that a routine was run. There may be others.
	RanOneRoutine RunStatus = iota
	// SomeRoutinesBlocked says that there is nothing to run now, but routines are blocked, or run
	// elsewhere.
	SomeRoutinesBlocked
	// NoRoutines says that all routines have ended.
	NoRoutines
)

// String returns the name of the status.
func (r RunStatus) String() string {
	return [...]string{"RanOneRoutine", "SomeRoutinesBlocked", "NoRoutines"}[r]
}

// RunNextUnblockedRoutine runs the next routine that is runnable until it waits, yields or ends:
//
//	for status := s.RunNextUnblockedRoutine(); status != coroutine.NoRoutines; status = s.RunNextUnblockedRoutine() {
//		if status == coroutine.SomeRoutinesBlocked {
//			if err := s.Wait(ctx); err != nil {
//				return err
//			}
//		}
//	}
//
// A task runs on the caller's goroutine, and ends that if it calls runtime.Goexit; then the task
// has ended properly. If the scheduler has workers, which run everything, it runs nothing, and
// returns SomeRoutinesBlocked or NoRoutines.
func (s *Scheduler) RunNextUnblockedRoutine() RunStatus {
	w := worker{s: s}
	return w.runOne()
}

// Wait waits until a routine may have become runnable, or all have ended, since the last Wait: the
// text's coWait. It is for schedulers that are run by hand, by one goroutine. It fails with the
// context's error if that ends first.
func (s *Scheduler) Wait(ctx context.Context) error { return s.runnable.Wait(ctx) }

// Close ends the scheduler: no more routines are made, the wait of each that is blocked ends with
// ErrClosed, and so does every later wait of a coroutine; those that are runnable are run. Close
// waits until all routines have ended, and then for the scheduler's goroutines. If routines are run
// by hand, Close runs them.
//
// If the context ends before that, Close fails with *CloseError, which says how many routines are
// left. They go on, and Close can be called again. A routine that calls Close would wait for
// itself.
func (s *Scheduler) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed.Store(true)
	for s.blockers.first != nil {
		s.blockers.first.endWaits(ErrClosed)
	}
	s.release()
	if s.dispatcher == nil {
		for status := s.RunNextUnblockedRoutine(); status != NoRoutines && ctx.Err() == nil; status = s.RunNextUnblockedRoutine() {
			if status == SomeRoutinesBlocked && s.Wait(ctx) != nil {
				break
			}
		}
	}
	s.mu.Lock()
	left := s.live
	if left > 0 && s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	if left > 0 {
		select {
		case <-empty:
		case <-ctx.Done():
			return s.notClosed(ctx)
		}
	}
	select {
	case <-s.own.Close():
		return nil
	case <-ctx.Done():
		return s.notClosed(ctx)
	}
}

func (s *Scheduler) notClosed(ctx context.Context) error {
	return &CloseError{Left: s.Stats().Live, Cause: ctx.Err()}
}

// ready puts a routine into the run queue. The caller holds mu.
func (s *Scheduler) ready(r *routine) {
	r.is(runnable)
	s.queue.push(entry{routine: r})
}

// examine has a worker examine a blocker, unless one does, or is about to. The caller holds mu.
func (s *Scheduler) examine(b *Blocker) {
	if b.examination == idle {
		b.examination = queued
		s.queue.push(entry{blocker: b})
	}
}

// release lets go of mu, and starts workers if there is something to do (S4).
//
// Workers of the scheduler's own are started one after another, as each that begins starts the next
// if there is more: so what takes less time than to wake one is done by those that are awake. A
// dispatcher is given as many as there is to do, as its threads may be busy.
func (s *Scheduler) release() {
	if s.dispatcher == nil {
		wake := s.queue.len() > 0 || s.live == 0
		s.mu.Unlock()
		if wake {
			s.runnable.Notify()
		}
		return
	}
	most := s.queue.len()
	if most == 0 || s.workers >= s.limit {
		s.mu.Unlock()
		return
	}
	if s.isOwn() {
		most = min(most, 1)
	}
	start := min(most-s.starting, s.limit-s.workers)
	if start <= 0 {
		s.mu.Unlock()
		return
	}
	s.starting += start
	s.workers += start
	s.mu.Unlock()
	for range start {
		s.dispatcher.Dispatch(&worker{s: s, own: s.isOwn()})
	}
}

// isOwn reports whether the workers are goroutines of the scheduler.
func (s *Scheduler) isOwn() bool { return s.dispatcher == &s.own }

// entry is what a worker is to look at: a routine to be run, or a blocker to be examined.
type entry struct {
	routine *routine
	blocker *Blocker
}

// queue is the run queue. The memory of a queue that has been long is given back when it is empty.
type queue struct {
	entries []entry
	head    int
}

const keptEntries = 1024

func (q *queue) len() int { return len(q.entries) - q.head }

func (q *queue) push(e entry) {
	if q.head > keptEntries && q.head > len(q.entries)/2 {
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, e)
}

func (q *queue) pop() (e entry) {
	e, q.entries[q.head] = q.entries[q.head], entry{}
	if q.head++; q.head == len(q.entries) {
		q.entries, q.head = q.entries[:0], 0
		if cap(q.entries) > 2*keptEntries {
			q.entries = nil
		}
	}
	return e
}
