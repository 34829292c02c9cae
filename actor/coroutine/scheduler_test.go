package coroutine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	. "github.com/sluice-go/sluice/actor/coroutine"
)

// tokens is what blockers of the tests are about: something to take, or not.
type tokens struct{ n, evaluated atomic.Int64 }

func (k *tokens) none() bool { k.evaluated.Add(1); return k.n.Load() <= 0 }

// take takes a token if there is one.
func (k *tokens) take() bool {
	for {
		n := k.n.Load()
		if n <= 0 {
			return false
		}
		if k.n.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// Several tasks and coroutines wait for one blocker. None is lost, and they go on in the order in
// which they came.
func TestAllThatWaitForOneBlockerGoOnInTheOrderInWhichTheyCame(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		q, err := NewQueue[string](s, 1)
		require.NoError(t, err)
		const n = 20
		order := make(chan int, n)
		for i := range n {
			if i%2 == 0 {
				_, err := q.DequeueThen(func(string, error) { order <- i })
				require.NoError(t, err)
			} else {
				started(t, s, func(c *Coroutine) error {
					_, err := q.BlockingDequeue(c)
					order <- i
					return err
				})
			}
			settle()
			require.Equal(t, i+1, s.Stats().Blocked)
		}
		for i := range n {
			require.Empty(t, order)
			require.True(t, q.TryEnqueue("item"))
			settle()
			require.Equal(t, i, <-order)
		}
		require.Zero(t, s.Stats().Live)
		// The same for those that put.
		for i := range n + 1 {
			if i%2 == 0 {
				_, err := q.EnqueueThen(fmt.Sprint(i), func(error) {})
				require.NoError(t, err)
			} else {
				started(t, s, func(c *Coroutine) error { return q.BlockingEnqueue(c, fmt.Sprint(i)) })
			}
			settle()
		}
		for i := range n + 1 {
			x, ok := q.TryDequeue()
			require.True(t, ok)
			require.Equal(t, fmt.Sprint(i), x)
			settle()
		}
	})
}

// A gate is opened once, and all that wait for it go on.
func TestOneCallOfUnblockedIsEnoughForAGate(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		var open atomic.Bool
		gate := newBlocker(t, s, func() bool { return !open.Load() })
		const n = 1000
		var passed atomic.Int64
		for i := range n {
			if i%10 > 0 {
				task(t, s, gate, func(error) { passed.Add(1) })
			} else {
				started(t, s, func(c *Coroutine) error { defer passed.Add(1); return gate.WaitUntilNotBlocked(c) })
			}
		}
		settle()
		require.Zero(t, passed.Load())
		open.Store(true)
		gate.Unblocked()
		settle()
		require.EqualValues(t, n, passed.Load())
	})
}

// A single token among many waiters costs two evaluations, and one switch: there is no thundering
// herd.
func TestOneItemAmongManyWaitersWakesOne(t *testing.T) {
	s := newScheduler(t)
	var k tokens
	b := newBlocker(t, s, k.none)
	var woken int
	for range 1000 {
		started(t, s, func(c *Coroutine) error {
			for {
				if err := b.WaitUntilNotBlocked(c); err != nil {
					return err
				}
				woken++
				if k.take() {
					return nil
				}
			}
		})
	}
	run(t, s)
	require.Equal(t, 1000, b.Waiting())
	before := k.evaluated.Load()
	for range 10 {
		k.n.Add(1)
		b.Unblocked()
		require.Equal(t, RanOneRoutine, s.RunNextUnblockedRoutine())
		require.Equal(t, SomeRoutinesBlocked, s.RunNextUnblockedRoutine())
	}
	require.Equal(t, 10, woken)
	require.Equal(t, 990, b.Waiting())
	require.EqualValues(t, 20, k.evaluated.Load()-before)
}

// A routine that is considered, and finds that another has come first, keeps its place in the line.
func TestARoutineThatFindsNothingKeepsItsPlaceInTheLine(t *testing.T) {
	s := newScheduler(t)
	q, err := NewQueue[int](s, 4)
	require.NoError(t, err)
	var got []int
	take := func(i int) {
		started(t, s, func(c *Coroutine) error {
			_, err := q.BlockingDequeue(c)
			got = append(got, i)
			return err
		})
	}
	task(t, s, nil, func(error) {}) // so that there is something to run before
	take(0)
	then := func(i int) {
		_, err := q.DequeueThen(func(int, error) { got = append(got, i) })
		require.NoError(t, err)
	}
	run(t, s)
	then(1)
	take(2)
	run(t, s)
	for i := range 3 {
		// What comes by TryDequeue does not pass them.
		require.True(t, q.TryEnqueue(i))
		_, ok := q.TryDequeue()
		require.False(t, ok)
		run(t, s)
	}
	require.Equal(t, []int{0, 1, 2}, got)
}

func TestRunNextUnblockedRoutineSaysWhatItHasDone(t *testing.T) {
	s := newScheduler(t)
	require.Equal(t, NoRoutines, s.RunNextUnblockedRoutine())
	var k tokens
	b := newBlocker(t, s, k.none)
	ran := false
	task(t, s, b, func(error) { ran = true })
	require.Equal(t, SomeRoutinesBlocked, s.RunNextUnblockedRoutine())
	require.False(t, ran)
	k.n.Add(1)
	require.Equal(t, SomeRoutinesBlocked, s.RunNextUnblockedRoutine())
	b.Unblocked()
	require.Equal(t, RanOneRoutine, s.RunNextUnblockedRoutine())
	require.True(t, ran)
	require.Equal(t, NoRoutines, s.RunNextUnblockedRoutine())
	require.Equal(t, "RanOneRoutine SomeRoutinesBlocked NoRoutines", RanOneRoutine.String()+" "+SomeRoutinesBlocked.String()+" "+NoRoutines.String())

	// With workers there is nothing to run for a caller.
	s = newScheduler(t, Workers(1))
	require.Equal(t, NoRoutines, s.RunNextUnblockedRoutine())
	task(t, s, newBlocker(t, s, func() bool { return true }), func(error) {})
	require.Equal(t, SomeRoutinesBlocked, s.RunNextUnblockedRoutine())
}

// A caller by hand waits while nothing can run, and is woken when something can.
func TestACallerByHandIsWokenWhenSomethingCanRun(t *testing.T) {
	s := newScheduler(t)
	var k tokens
	b := newBlocker(t, s, k.none)
	const n = 100
	for range n {
		started(t, s, func(c *Coroutine) error {
			for !k.take() {
				if err := b.WaitUntilNotBlocked(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	go func() {
		for range n {
			k.n.Add(1)
			b.Unblocked()
			runtime.Gosched()
		}
	}()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	for status := s.RunNextUnblockedRoutine(); status != NoRoutines; status = s.RunNextUnblockedRoutine() {
		if status == SomeRoutinesBlocked {
			require.NoError(t, s.Wait(ctx))
		}
	}
	require.Zero(t, s.Stats().Live)
}

// Workers are added and removed while routines run; those that run are visible.
func TestTheNumberOfWorkersChangesWhileTheyRun(t *testing.T) {
	s := newScheduler(t, Workers(1))
	here, leave := make(chan struct{}), make(chan struct{})
	const n = 6
	for i := range n {
		if i%2 == 0 {
			task(t, s, nil, func(error) { here <- struct{}{}; <-leave })
		} else {
			started(t, s, func(*Coroutine) error { here <- struct{}{}; <-leave; return nil })
		}
	}
	<-here
	require.Equal(t, Stats{Limit: 1, Workers: 1, Running: 1, Runnable: n - 1, Live: n}, s.Stats())
	require.NoError(t, s.Resize(3)) // what waits is served at once
	<-here
	<-here
	stats := s.Stats()
	require.Equal(t, 3, stats.Running)
	require.Equal(t, 3, stats.Workers)
	require.NoError(t, s.Resize(1)) // takes effect as routines end
	require.Equal(t, 3, s.Stats().Running)
	leave <- struct{}{}
	leave <- struct{}{}
	until(t, "workers do not end", func() bool { return s.Stats().Workers == 1 })
	require.Equal(t, n-2, s.Stats().Live)
	for range n - 3 {
		leave <- struct{}{}
		<-here
		require.Equal(t, 1, s.Stats().Running)
	}
	leave <- struct{}{}
	until(t, "they do not end", func() bool { return s.Stats().Live == 0 && s.Stats().Workers == 0 })

	var wrong *activeobject.ArgumentError
	require.ErrorAs(t, s.Resize(0), &wrong)
	require.Equal(t, "n", wrong.Argument)
	require.ErrorAs(t, s.Resize(-1), &wrong)
	require.Equal(t, 1, s.Stats().Limit)
	require.ErrorAs(t, newScheduler(t).Resize(1), &wrong)
	closed(t, s)
	require.ErrorIs(t, s.Resize(2), ErrClosed)
}

// A coroutine that computes for long does not keep others from being run: another worker runs them.
func TestAnUnblockedRoutineDoesNotWaitForTheOneThatUnblockedIt(t *testing.T) {
	s := newScheduler(t, Workers(2))
	var k tokens
	b := newBlocker(t, s, k.none)
	ran := make(chan struct{})
	task(t, s, b, func(error) { close(ran) })
	long := started(t, s, func(*Coroutine) error {
		k.n.Add(1)
		b.Unblocked()
		<-ran // keeps the worker
		return nil
	})
	require.NoError(t, awaited(t, long))
}

// A blocker says that it is not blocked, and it is: the waiter goes on, and one that waits in a
// loop lets others run.
func TestABlockerThatLiesKeepsNothingFromRunning(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, _ func()) {
		liar := newBlocker(t, s, func() bool { return false })
		truth := newBlocker(t, s, func() bool { return true })
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		waits, err := s.Go(ctx, func(c *Coroutine) error { return truth.WaitUntilNotBlocked(c) })
		require.NoError(t, err)
		var enough atomic.Bool
		loops := started(t, s, func(c *Coroutine) error {
			for !enough.Load() {
				if err := liar.WaitUntilNotBlocked(c); err != nil {
					return err
				}
			}
			return nil
		})
		other := started(t, s, func(*Coroutine) error { enough.Store(true); return nil })
		if s.Stats().Limit == 0 {
			run(t, s)
		}
		require.NoError(t, awaited(t, other))
		require.NoError(t, awaited(t, loops))
		cancel()
		until(t, "it waits for ever", func() bool { s.RunNextUnblockedRoutine(); return s.Stats().Live == 0 })
		require.ErrorIs(t, awaited(t, waits), context.Canceled)
	})
}

// A change that comes while a condition is being evaluated, and that the result does not show, is
// not lost: neither by a worker, nor by a coroutine that is about to wait.
func TestAChangeDuringAnEvaluationIsNotLost(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		for _, continues := range []bool{false, true} {
			var evaluations atomic.Int64
			var b *Blocker
			b = newBlocker(t, s, func() bool {
				if evaluations.Add(1) > 1 {
					return false
				}
				b.Unblocked() // it has changed just now, and the result is old
				return true
			})
			var r interface{ Await(context.Context) error }
			if continues {
				r, _ = s.SetRoutineContinuation(b, func(error) {})
			} else {
				r = started(t, s, func(c *Coroutine) error { return b.WaitUntilNotBlocked(c) })
			}
			settle()
			require.NoError(t, awaited(t, r))
		}
	})
}

// A condition that calls Unblocked itself is evaluated again and again, between other routines, and
// a caller by hand gets back in between.
func TestABlockerThatUnblocksItselfKeepsNothingFromRunning(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, _ func()) {
		var b *Blocker
		b = newBlocker(t, s, func() bool { b.Unblocked(); return true })
		waits := task(t, s, b, func(error) {})
		ran := started(t, s, func(c *Coroutine) error { return c.Yield() })
		for s.Stats().Limit == 0 && s.Stats().Live > 1 {
			s.RunNextUnblockedRoutine()
		}
		require.NoError(t, awaited(t, ran))
		require.True(t, waits.Withdraw())
	})
}

// A condition that panics, or ends its goroutine, fails those that wait for it; and nothing else.
func TestABlockerThatFailsEndsTheWaitsOfItsLine(t *testing.T) {
	cause := errors.New("cause")
	for name, fail := range map[string]func(){"panic": func() { panic(cause) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
				var broken atomic.Bool
				b := newBlocker(t, s, func() bool {
					if broken.Load() {
						fail()
					}
					return true
				})
				var outcomes [4]error
				var routines [4]interface{ Await(context.Context) error }
				for i := range outcomes {
					if i%2 == 0 {
						routines[i] = task(t, s, b, func(err error) { outcomes[i] = err })
					} else {
						routines[i] = started(t, s, func(c *Coroutine) error { outcomes[i] = b.WaitUntilNotBlocked(c); return nil })
					}
				}
				settle()
				broken.Store(true)
				b.Unblocked()
				if s.Stats().Limit == 0 { // else this goroutine might end
					handed := make(chan struct{})
					go func() { defer close(handed); run(t, s) }()
					<-handed
				}
				settle()
				for i, r := range routines {
					require.NoError(t, awaited(t, r))
					var e *BlockerError
					require.ErrorAs(t, outcomes[i], &e)
					require.Contains(t, e.Function, "TestABlockerThatFails")
					if name == "panic" {
						require.ErrorIs(t, e, cause)
						require.ErrorContains(t, e, "panicked: cause")
						require.NotEmpty(t, e.Stack)
					} else {
						require.ErrorContains(t, e, "runtime.Goexit")
					}
				}
				// A coroutine that finds it on its own is told in the same way, unless that ends
				// its goroutine.
				own := started(t, s, func(c *Coroutine) error { return b.WaitUntilNotBlocked(c) })
				settle()
				if name == "panic" {
					require.ErrorAs(t, awaited(t, own), new(*BlockerError))
				} else {
					require.ErrorAs(t, awaited(t, own), new(*RoutineError))
				}
				after := started(t, s, func(c *Coroutine) error { return c.Yield() })
				settle()
				require.NoError(t, awaited(t, after))
			})
		})
	}
}

// A routine that panics, or ends its goroutine, fails itself only. The scheduler goes on.
func TestARoutineThatFailsFailsItselfOnly(t *testing.T) {
	cause := errors.New("cause")
	for name, fail := range map[string]func(){"panic": func() { panic(cause) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			for executor, options := range executors {
				t.Run(executor, func(t *testing.T) {
					var reports atomic.Int64
					s := newScheduler(t, append(options(t), Failures(func(err error) {
						runtime.LockOSThread() // which ends with the report
						if errors.As(err, new(*RoutineError)) {
							reports.Add(1)
						}
						panic("what reports fail of is not reported")
					}))...)
					var k tokens
					b := newBlocker(t, s, k.none)
					failing := []interface{ Await(context.Context) error }{
						task(t, s, nil, func(error) { fail() }),
						task(t, s, b, func(error) { fail() }),
						started(t, s, func(*Coroutine) error { fail(); return nil }),
						started(t, s, func(c *Coroutine) error { err := b.WaitUntilNotBlocked(c); fail(); return err }),
						started(t, s, func(c *Coroutine) error { defer fail(); return c.Yield() }),
						started(t, s, func(c *Coroutine) error { defer c.Yield(); fail(); return nil }), // it waits on its way out
					}
					well := started(t, s, func(c *Coroutine) error {
						for range 10 {
							if err := c.Yield(); err != nil {
								return err
							}
						}
						return b.WaitUntilNotBlocked(c)
					})
					drive := func() {
						for s.Stats().Limit == 0 && s.Stats().Runnable > 0 {
							handed := make(chan struct{})
							go func() { defer close(handed); s.RunNextUnblockedRoutine() }()
							<-handed
						}
						until(t, "it does not come to rest", s.Idle)
					}
					drive()
					k.n.Add(1)
					b.Unblocked()
					drive()
					require.NoError(t, awaited(t, well))
					for _, r := range failing {
						var e *RoutineError
						require.ErrorAs(t, awaited(t, r), &e)
						require.Contains(t, e.Function, "TestARoutineThatFails")
						require.Equal(t, name == "panic", errors.Is(e, cause))
						require.Equal(t, name == "panic", len(e.Stack) > 0)
						require.ErrorContains(t, e, map[string]string{"panic": "panicked: cause", "exit": "runtime.Goexit"}[name])
					}
					until(t, "a failure is not reported", func() bool { return reports.Load() == int64(len(failing)) })
					require.NoError(t, s.Audit(true))
				})
			}
		})
	}
}

// Coroutines, tasks and conditions that lock their operating-system thread, and goroutines with
// such a lock that run routines by hand, or make them, do not end the process, and all end
// properly.
func TestALockOnTheThreadEndsWithTheNextWait(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		var k tokens
		b := newBlocker(t, s, func() bool { runtime.LockOSThread(); return k.none() })
		t.Cleanup(func() { k.n.Add(1000) })
		lock := func() {
			for range 3 {
				runtime.LockOSThread()
			}
		}
		var all []interface{ Await(context.Context) error }
		for range 4 {
			all = append(all,
				started(t, s, func(c *Coroutine) error { lock(); return c.Yield() }),
				started(t, s, func(c *Coroutine) error { lock(); return b.WaitUntilNotBlocked(c) }),
				started(t, s, func(*Coroutine) error { lock(); return nil }),
				started(t, s, func(c *Coroutine) error {
					for range 10 {
						runtime.LockOSThread()
						if err := c.Yield(); err != nil {
							return err
						}
						runtime.UnlockOSThread()
					}
					return nil
				}),
				started(t, s, func(c *Coroutine) error { return b.WaitUntilNotBlocked(c) }),
				task(t, s, b, func(error) {}),
			)
			if s.Stats().Limit > 0 { // by hand it would lock the test's own goroutine for good
				all = append(all, task(t, s, nil, func(error) { lock() }))
			}
		}
		failed := []interface{ Await(context.Context) error }{
			started(t, s, func(*Coroutine) error { lock(); panic("cause") }),
			started(t, s, func(*Coroutine) error { lock(); runtime.Goexit(); return nil }),
		}
		settle()
		k.n.Add(1)
		b.Unblocked()
		settle()
		for _, r := range all {
			require.NoError(t, awaited(t, r))
		}
		for _, r := range failed {
			require.ErrorAs(t, awaited(t, r), new(*RoutineError))
		}
	})
}

// When a scheduler is closed every wait ends with ErrClosed; what can run runs; nothing is lost,
// and nothing hangs.
func TestCloseEndsEveryWait(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		b := newBlocker(t, s, func() bool { return true })
		q, err := NewQueue[int](s, 1)
		require.NoError(t, err)
		const n = 10
		var told, later atomic.Int64
		var routines []interface{ Await(context.Context) error }
		for range n {
			routines = append(routines, task(t, s, b, func(err error) {
				if errors.Is(err, ErrClosed) {
					told.Add(1)
				}
			}))
			routines = append(routines, started(t, s, func(c *Coroutine) error {
				_, err := q.BlockingDequeue(c)
				if errors.Is(err, ErrClosed) {
					told.Add(1)
				}
				for _, err := range []error{c.Yield(), b.WaitUntilNotBlocked(c), q.BlockingEnqueue(c, 1)} {
					if errors.Is(err, ErrClosed) {
						later.Add(1)
					}
				}
				return nil
			}))
			then, err := q.DequeueThen(func(_ int, err error) {
				if errors.Is(err, ErrClosed) {
					told.Add(1)
				}
			})
			require.NoError(t, err)
			routines = append(routines, then)
		}
		settle()
		ran := false
		task(t, s, nil, func(err error) { ran = err == nil })
		closed(t, s)
		require.True(t, ran)
		for _, r := range routines {
			require.NoError(t, awaited(t, r))
		}
		require.EqualValues(t, 3*n, told.Load())
		require.EqualValues(t, 3*n, later.Load())
		_, err = s.Go(background, func(*Coroutine) error { return nil })
		require.ErrorIs(t, err, ErrClosed)
		_, err = s.SetRoutineContinuation(b, func(error) {})
		require.ErrorIs(t, err, ErrClosed)
		_, err = q.EnqueueThen(1, func(error) {})
		require.ErrorIs(t, err, ErrClosed)
		b.Unblocked()
		closed(t, s) // again
	})
}

// A routine that does not end keeps Close waiting as long as its context lasts.
func TestCloseSaysHowManyRoutinesAreLeft(t *testing.T) {
	s := newScheduler(t, Workers(2))
	leave := make(chan struct{})
	task(t, s, nil, func(error) { <-leave })
	c := started(t, s, func(*Coroutine) error { <-leave; return nil })
	ctx, cancel := context.WithCancel(background)
	cancel()
	var e *CloseError
	require.ErrorAs(t, s.Close(ctx), &e)
	require.Equal(t, 2, e.Left)
	require.ErrorIs(t, e, context.Canceled)
	require.ErrorContains(t, e, "2 routines")
	close(leave)
	require.NoError(t, awaited(t, c))
	closed(t, s)
}

// Unblocked without a waiter does nothing, and what comes afterwards is decided by the condition.
func TestUnblockedWithoutAWaiterDoesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		b := newBlocker(t, s, func() bool { return true })
		for range 3 {
			b.Unblocked()
		}
		require.Zero(t, s.Stats().Live)
		ran := false
		r := task(t, s, b, func(error) { ran = true })
		settle()
		require.False(t, ran)
		require.True(t, b.IsBlocked())
		require.True(t, r.Withdraw())
	})
}

// A task that is withdrawn never runs; one that has begun, or ended, is not withdrawn.
func TestAWithdrawnTaskNeverRuns(t *testing.T) {
	s := newScheduler(t)
	var k tokens
	b := newBlocker(t, s, k.none)
	var ran []int
	var tasks [5]*Task
	for i := range tasks {
		tasks[i] = task(t, s, b, func(error) { ran = append(ran, i) })
	}
	ready := task(t, s, nil, func(error) { ran = append(ran, 9) })
	for _, i := range []int{2, 0, 4} { // from the middle, the beginning and the end
		require.True(t, tasks[i].Withdraw())
		require.NoError(t, s.Audit(true))
		require.ErrorIs(t, awaited(t, tasks[i]), ErrWithdrawn)
		require.False(t, tasks[i].Withdraw())
	}
	require.True(t, ready.Withdraw())
	k.n.Add(1)
	b.Unblocked()
	run(t, s)
	require.Equal(t, []int{1, 3}, ran)
	require.False(t, tasks[1].Withdraw())
	require.Equal(t, NoRoutines, s.RunNextUnblockedRoutine())
}

// The end of a context ends the wait of its coroutine, and those after; one that has ended before
// does not begin.
func TestTheEndOfAContextEndsTheWaitsOfItsCoroutine(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(background)
		b := newBlocker(t, s, func() bool { return true })
		var again error
		c, err := s.Go(ctx, func(c *Coroutine) error {
			if c.Context() != ctx {
				return errors.New("another context")
			}
			err := b.WaitUntilNotBlocked(c)
			again = b.WaitUntilNotBlocked(c)
			return err
		})
		require.NoError(t, err)
		stays := started(t, s, func(c *Coroutine) error { return b.WaitUntilNotBlocked(c) })
		require.Equal(t, background, stays.Context())
		settle()
		cancel(cause)
		until(t, "it does not end", func() bool { s.RunNextUnblockedRoutine(); return s.Stats().Live == 1 })
		require.ErrorIs(t, awaited(t, c), cause)
		require.ErrorIs(t, again, cause)
		require.Equal(t, 1, b.Waiting())
		never, err := s.Go(ctx, func(*Coroutine) error { return errors.New("it has run") })
		require.NoError(t, err)
		settle()
		require.ErrorIs(t, awaited(t, never), cause)
	})
}

// What makes no sense is refused with an error that says so, and changes nothing.
func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	s, other := newScheduler(t), newScheduler(t)
	b, far := newBlocker(t, s, func() bool { return false }), newBlocker(t, other, func() bool { return false })
	q, err := NewQueue[int](s, 1)
	require.NoError(t, err)
	warm := &actor.Warm{}
	c := started(t, s, func(c *Coroutine) error {
		if err := far.WaitUntilNotBlocked(c); !errors.As(err, new(*activeobject.ArgumentError)) {
			return err
		}
		return nil
	})
	run(t, s)
	require.NoError(t, awaited(t, c))
	for want, make := range map[string]func() error{
		"Workers: n is 0":              func() error { _, err := NewScheduler(Workers(0)); return err },
		"Dispatcher: n is -1":          func() error { _, err := NewScheduler(Dispatcher(warm, -1)); return err },
		"Dispatcher: d is nil":         func() error { _, err := NewScheduler(Dispatcher(nil, 1)); return err },
		"name two executors":           func() error { _, err := NewScheduler(Workers(1), Dispatcher(warm, 1)); return err },
		"an option is nil":             func() error { _, err := NewScheduler(nil); return err },
		"report is nil":                func() error { _, err := NewScheduler(Failures(nil)); return err },
		"NewBlocker: s is nil":         func() error { _, err := NewBlocker(nil, func() bool { return true }); return err },
		"condition is nil":             func() error { _, err := NewBlocker(s, nil); return err },
		"NewQueue: s is nil":           func() error { _, err := NewQueue[int](nil, 1); return err },
		"capacity is 0":                func() error { _, err := NewQueue[int](s, 0); return err },
		"Go: body is nil":              func() error { _, err := s.Go(background, nil); return err },
		"run is nil":                   func() error { _, err := s.SetRoutineContinuation(b, nil); return err },
		"the blocker belongs":          func() error { _, err := s.SetRoutineContinuation(far, func(error) {}); return err },
		"EnqueueThen: then is nil":     func() error { _, err := q.EnqueueThen(1, nil); return err },
		"DequeueThen: then is nil":     func() error { _, err := q.DequeueThen(nil); return err },
		"coroutine is nil":             func() error { return b.WaitUntilNotBlocked(nil) },
		"coroutine is not running":     func() error { return b.WaitUntilNotBlocked(c) },
		"Yield: coroutine is not":      func() error { return c.Yield() },
		"BlockingDequeue: coroutine":   func() error { _, err := q.BlockingDequeue(c); return err },
		"BlockingEnqueue: coroutine":   func() error { return q.BlockingEnqueue(nil, 1) },
		"Await: coroutine is nil":      func() error { _, err := Await(nil, actor.Settled(1, nil)); return err },
		"coroutine.Await: coroutine i": func() error { _, err := Await(c, actor.NewPromise[int]().Future()); return err },
	} {
		var e *activeobject.ArgumentError
		err := make()
		require.ErrorAs(t, err, &e, want)
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, s.Stats().Live)
	require.Zero(t, q.Len())
}

// A coroutine waits for a future, and its worker runs others meanwhile.
func TestACoroutineAwaitsAFutureWithoutItsWorker(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scheduler, settle func()) {
		p, failing, never := actor.NewPromise[int](), actor.NewPromise[int](), actor.NewPromise[int]()
		var result atomic.Int64
		cause := errors.New("cause")
		waits := started(t, s, func(c *Coroutine) (err error) {
			for _, f := range []actor.Future[int]{actor.Settled(1, nil), p.Future()} {
				n, err := Await(c, f)
				if err != nil {
					return err
				}
				result.Store(int64(n))
			}
			_, err = Await(c, failing.Future())
			return err
		})
		closes := started(t, s, func(c *Coroutine) error {
			_, err := Await(c, never.Future())
			return err
		})
		settle()
		require.Equal(t, 2, s.Stats().Blocked)
		p.Settle(7, nil)
		until(t, "it does not go on", func() bool { s.RunNextUnblockedRoutine(); return result.Load() == 7 })
		failing.Settle(0, cause)
		until(t, "it does not end", func() bool { s.RunNextUnblockedRoutine(); return s.Stats().Live == 1 })
		require.ErrorIs(t, awaited(t, waits), cause)
		closed(t, s)
		require.ErrorIs(t, awaited(t, closes), ErrClosed)
		require.True(t, never.Settle(1, nil))
	})
}

// A scheduler is the dispatcher of objects: by hand their turns run when the caller says, and on
// workers by themselves.
func TestASchedulerRunsTheTurnsOfObjects(t *testing.T) {
	type counter struct{ n int }
	for name, options := range map[string][]Option{"by hand": nil, "workers": {Workers(2)}} {
		t.Run(name, func(t *testing.T) {
			system := actor.NewSystem()
			defer func() { require.NoError(t, system.Close(background)) }()
			s := newScheduler(t, options...)
			typ := activeobject.NewType[counter]("counter")
			add := activeobject.Procedure(typ, "add", activeobject.ArgResult(func(c *counter, n int) int { c.n += n; return c.n }))
			o, err := activeobject.New(system, typ, &counter{}, activeobject.Dispatcher(s))
			require.NoError(t, err)
			f := add.Send(background, o, 2)
			asks := started(t, s, func(c *Coroutine) error {
				n, err := Await(c, add.Send(background, o, 3))
				if err == nil && n != 5 {
					err = errors.New("another result")
				}
				return err
			})
			if options == nil {
				require.False(t, f.Ready())
				until(t, "it does not end", func() bool { run(t, s); return s.Stats().Live == 0 })
			}
			require.NoError(t, awaited(t, asks))
			o.Stop()
			if options == nil {
				run(t, s)
			}
			closed(t, s)
			// A turn that comes later is not lost.
			ran := make(chan struct{})
			s.Dispatch(turn(func() { close(ran) }))
			<-ran
		})
	}
}

// goroutines is a dispatcher that starts a goroutine for each task.
type goroutines struct{}

func (goroutines) Dispatch(t actor.Task) { go t.Run() }

type turn func()

func (f turn) Run() { f() }

// In a bubble of synctest, coroutines that wait are durably blocked, and time goes on.
func TestCoroutinesWorkInASynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewScheduler(Workers(2))
		require.NoError(t, err)
		q, err := NewQueue[time.Duration](s, 2)
		require.NoError(t, err)
		start := time.Now()
		reader := started(t, s, func(c *Coroutine) error {
			for i := range 3 {
				d, err := q.BlockingDequeue(c)
				if err != nil || d != time.Duration(i)*time.Hour || time.Since(start) != d {
					return errors.Join(err, errors.New("another time"))
				}
			}
			return nil
		})
		for i := range 3 {
			at := time.Duration(i) * time.Hour
			time.AfterFunc(at, func() { q.TryEnqueue(at); task(t, s, nil, func(error) {}) })
		}
		require.NoError(t, reader.Await(background))
		require.Equal(t, 2*time.Hour, time.Since(start))
		require.NoError(t, s.Close(background))
	})
}
