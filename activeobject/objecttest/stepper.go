package objecttest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// Stepper is a dispatcher that runs nothing by itself: the test says whose turn it
// is. Objects that are made with activeobject.Dispatcher(stepper) run one body in each turn,
// with what it opens; then, if another can start, they want another turn. So a test
// can play every interleaving of a program, by hand or one after the other.
//
// Requests are made by Send, Begin or Tell, which do not wait, or by goroutines of
// the test's; Waiting says when those have arrived. In a turn in which no request can
// start any more, as one was withdrawn or the object stopped, no body runs. What
// follows from futures, by Then and the like, runs on other goroutines.
//
// When the test ends, turns that are left run by themselves, and so does all that
// follows, so that objects and system can end.
type Stepper struct {
	t     testing.TB
	mu    sync.Mutex
	turns []actor.Task
	over  bool // the test
}

// NewStepper returns a dispatcher without turns.
func NewStepper(t testing.TB) *Stepper {
	s := &Stepper{t: t}
	context.AfterFunc(t.Context(), s.letGo) // before the system is closed, whichever was made first
	return s
}

func (s *Stepper) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, turn := range s.turns {
		go turn.Run()
	}
	s.turns = nil
}

// Dispatch implements actor.Dispatcher: the task waits for its Step.
func (s *Stepper) Dispatch(turn actor.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		go turn.Run()
		return
	}
	s.turns = append(s.turns, turn)
}

// Throughput says that a turn is one body.
func (s *Stepper) Throughput() int { return 1 }

// Lends says that no other thread may run a turn: the test decides when each runs.
func (s *Stepper) Lends() bool { return false }

// Len returns how many objects want a turn.
func (s *Stepper) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// Turns returns the names of the objects that want a turn, in the order in which they
// asked for it.
func (s *Stepper) Turns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, len(s.turns))
	for i, turn := range s.turns {
		all[i] = nameOf(turn)
	}
	return all
}

// Step gives the object a turn that has waited for one longest. It reports false,
// without doing anything, if none wants one.
//
// Step returns when the turn is over. In a bubble of testing/synctest it also returns
// when the body, and everything else in the bubble, waits for something: for another
// object's turn, say. Elsewhere a body that waits is waited for, as long as Idle would
// wait, and then the test fails.
func (s *Stepper) Step() bool { return s.StepAt(0) }

// StepAt is Step for the object with the index i in Turns.
func (s *Stepper) StepAt(i int) bool {
	s.t.Helper()
	return s.step(func(turns []actor.Task) int { return i })
}

// StepObject is Step for an object, if it wants a turn.
func (s *Stepper) StepObject(o activeobject.AnyObject) bool {
	s.t.Helper()
	return s.step(func(turns []actor.Task) int {
		return slices.IndexFunc(turns, func(turn actor.Task) bool { return nameOf(turn) == o.Name() })
	})
}

// Run steps until no object wants a turn, and returns how many steps that took.
func (s *Stepper) Run() (steps int) {
	s.t.Helper()
	for s.Step() {
		steps++
	}
	return steps
}

func (s *Stepper) step(choose func([]actor.Task) int) bool {
	s.t.Helper()
	turn := s.take(choose)
	if turn == nil {
		return false
	}
	done := make(chan struct{})
	go func() {
		defer close(done) // a body may leave by runtime.Goexit
		turn.Run()
	}()
	if bubbled() {
		synctest.Wait()
		return true
	}
	patience := patience(s.t)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.t.Fatalf("objecttest: the turn of %s is not over after %v: its body waits, perhaps for a turn of another object; in a bubble of testing/synctest it may\n%s",
			nameOf(turn), patience, explanation(turn))
	}
	return true
}

func (s *Stepper) take(choose func([]actor.Task) int) actor.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := choose(s.turns)
	if i < 0 || i >= len(s.turns) {
		return nil
	}
	turn := s.turns[i]
	s.turns = slices.Delete(s.turns, i, i+1)
	return turn
}

// nameOf returns the name of the object that a task is a turn of.
func nameOf(turn actor.Task) string {
	if o, ok := turn.(interface{ Name() string }); ok {
		return o.Name()
	}
	return "?"
}

func explanation(turn actor.Task) string {
	if o, ok := turn.(interface{ Explain() mailbox.Snapshot }); ok {
		return o.Explain().String()
	}
	return ""
}
