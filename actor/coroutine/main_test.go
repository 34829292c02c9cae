package coroutine_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	. "github.com/sluice-go/sluice/actor/coroutine"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var background = context.Background()

// patience is how long a test waits before it takes something to hang.
const patience = 20 * time.Second

// newScheduler makes a scheduler that has ended when the test has.
func newScheduler(t testing.TB, options ...Option) *Scheduler {
	t.Helper()
	s, err := NewScheduler(options...)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, s) })
	return s
}

// closed closes a scheduler.
func closed(t testing.TB, s *Scheduler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		stacks := make([]byte, 1<<20)
		t.Errorf("%v\n%s", err, stacks[:runtime.Stack(stacks, true)])
	}
	require.NoError(t, s.Audit(true))
}

// run runs by hand what can run now.
func run(t testing.TB, s *Scheduler) {
	t.Helper()
	for s.RunNextUnblockedRoutine() == RanOneRoutine {
		require.NoError(t, s.Audit(true))
	}
	require.NoError(t, s.Audit(true))
}

// awaited waits until a routine has ended, and returns its outcome.
func awaited(t testing.TB, r interface{ Await(context.Context) error }) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	err := r.Await(ctx)
	if ctx.Err() != nil {
		stacks := make([]byte, 1<<20)
		t.Fatalf("this hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return err
}

// until waits until something holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// newBlocker makes a blocker.
func newBlocker(t testing.TB, s *Scheduler, condition func() bool) *Blocker {
	t.Helper()
	b, err := NewBlocker(s, condition)
	require.NoError(t, err)
	return b
}

// started makes a coroutine.
func started(t testing.TB, s *Scheduler, body func(*Coroutine) error) *Coroutine {
	t.Helper()
	c, err := s.Go(nil, body) //nolint:staticcheck // no context is allowed
	require.NoError(t, err)
	return c
}

// task makes a task.
func task(t testing.TB, s *Scheduler, b *Blocker, f func(error)) *Task {
	t.Helper()
	r, err := s.SetRoutineContinuation(b, f)
	require.NoError(t, err)
	return r
}

// executors are the three ways of running routines.
var executors = map[string]func(t testing.TB) []Option{
	"by hand":    func(testing.TB) []Option { return nil },
	"workers":    func(testing.TB) []Option { return []Option{Workers(2)} },
	"one worker": func(testing.TB) []Option { return []Option{Workers(1)} },
	"dispatcher": func(t testing.TB) []Option {
		w := &actor.Warm{}
		t.Cleanup(func() { <-w.Close() })
		return []Option{Dispatcher(w, 2)}
	},
	"locked thread": func(t testing.TB) []Option {
		d := newLocked()
		t.Cleanup(d.close)
		return []Option{Dispatcher(d, 1)}
	},
}

// everywhere runs a test with each executor. Settle waits until the scheduler is quiescent.
func everywhere(t *testing.T, test func(t *testing.T, s *Scheduler, settle func())) {
	for name, options := range executors {
		t.Run(name, func(t *testing.T) {
			s := newScheduler(t, options(t)...)
			settle := func() {
				if s.Stats().Limit == 0 {
					run(t, s)
				}
				until(t, "it does not come to rest", s.Idle)
				require.NoError(t, s.Audit(true))
			}
			test(t, s, settle)
		})
	}
}

// locked is a dispatcher of one goroutine that is locked to its operating-system thread, as that of
// a graphics library is.
type locked struct {
	tasks chan actor.Task
	ended chan struct{}
}

func newLocked() *locked {
	d := &locked{tasks: make(chan actor.Task, 100), ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		d.work()
	}()
	return d
}

func (d *locked) work() {
	runtime.LockOSThread()
	exited := make(chan struct{})
	for t := range d.tasks {
		returned := false
		func() {
			defer func() {
				if !returned { // the task ends the goroutine: another takes its place
					go func() { defer close(exited); d.work() }()
					<-exited
				}
			}()
			t.Run()
			returned = true
		}()
	}
}

func (d *locked) Dispatch(t actor.Task) { d.tasks <- t }

func (d *locked) close() {
	close(d.tasks)
	<-d.ended
}
