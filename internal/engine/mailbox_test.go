package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

func TestACallRunsAndReturns(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		v := r.visit(tidy, "a")
		soon(t, v.call(background))
		require.Equal(t, 1, v.ran)
		require.NoError(t, v.err)
		require.True(t, v.Ended())
	})
}

func TestBodiesExcludeEachOtherAndAllRunOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		const callers, calls = 16, 200
		var inside atomic.Int32
		var all sync.WaitGroup
		r.open.Store(true)
		for i := range callers {
			all.Go(func() {
				for range calls {
					v := r.visit(i%3, "x")
					v.during = func() {
						if inside.Add(1) != 1 {
							t.Error("two bodies at a time")
						}
						inside.Add(-1)
					}
					if i%2 == 0 {
						v.ForCall(0)
						r.Call(background, &v.Request, engine.Now())
					} else {
						v.post(background)
						v.Await(background)
					}
					if v.ran != 1 {
						t.Errorf("ran %d times", v.ran)
					}
				}
			})
		}
		all.Wait()
		soon(t, r.Close(errors.New("over")))
		require.Len(t, r.order, callers*calls)
	})
}

func TestAPostIsThereToBeAwaitedByMany(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		v := r.visit(pass, "v")
		require.NoError(t, v.post(background))
		r.queued(t, pass, 1)
		require.False(t, v.Settled())
		over, cancel := context.WithCancel(background)
		cancel()
		require.ErrorIs(t, v.Await(over), context.Canceled)
		woken := make(chan error, 10)
		for range cap(woken) {
			go func() { woken <- v.Await(background) }()
		}
		r.open.Store(true)
		soon(t, r.visit(tidy, "opener").call(background))
		for range cap(woken) {
			require.NoError(t, soon(t, woken))
		}
		soon(t, v.Done())
		require.True(t, v.Settled())
		require.NoError(t, v.Await(over), "what has ended is there, whatever the context")
	})
}

func TestWhatIsToldIsRecycledOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		ran, failed := r.visit(pass, "ran"), r.visit(pass, "failed")
		ran.Told, failed.Told = true, true
		require.NoError(t, ran.post(background))
		r.queued(t, pass, 1)
		r.open.Store(true)
		soon(t, r.visit(tidy, "opener").call(background))
		soon(t, ran.recycled)
		require.NoError(t, ran.err)

		r.open.Store(false)
		soon(t, r.visit(tidy, "shutter").call(background))
		require.NoError(t, failed.post(background))
		r.queued(t, pass, 1)
		over := errors.New("over")
		r.Close(over)
		soon(t, failed.recycled)
		require.Equal(t, over, failed.err)
		require.Zero(t, failed.ran)
	})
}

func TestAWithdrawnRequestNeverRuns(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		inside, outside := r.visit(pass, "inside"), r.visit(tidy, "outside")
		require.NoError(t, inside.post(background))
		r.queued(t, pass, 1)
		entered, let := make(chan struct{}), make(chan struct{})
		holder := r.visit(tidy, "holder")
		holder.during = func() { close(entered); <-let }
		held := holder.call(background)
		soon(t, entered)
		require.NoError(t, outside.post(background))
		require.True(t, outside.WithdrawAll(context.Canceled))
		require.True(t, inside.WithdrawAll(context.Canceled))
		require.False(t, inside.WithdrawAll(context.Canceled))
		require.False(t, holder.WithdrawAll(context.Canceled), "it runs")
		require.Zero(t, r.Queued(pass)+r.Queued(tidy))
		r.open.Store(true)
		close(let)
		soon(t, held)
		soon(t, r.visit(look, "last").call(background))
		require.Zero(t, inside.ran+outside.ran)
		require.Equal(t, context.Canceled, inside.err)
	})
}

// A request starts only when a thread is ready for it. Here the thread is late.
func TestARequestWithoutAThreadWaitsAndCanBeWithdrawn(t *testing.T) {
	t.Run("dispatched", func(t *testing.T) {
		s := &shelf{}
		r := newRoom(engine.Config{Dispatcher: s})
		a, b := r.visit(tidy, "a"), r.visit(tidy, "b")
		require.NoError(t, a.post(background))
		require.NoError(t, b.post(background))
		require.Equal(t, 1, s.len(), "one thread is on its way")
		require.Equal(t, 2, r.Queued(tidy))
		require.Empty(t, r.Explain().Running)
		w := r.Explain().Waiting
		require.Len(t, w, 2)
		require.Equal(t, mailbox.NoThread, w[0].Reason.Cause)
		require.True(t, a.WithdrawAll(context.Canceled))
		s.run()
		require.Equal(t, []string{"b"}, r.order)
	})
	t.Run("worker", func(t *testing.T) {
		// A body that may block needs a thread of its own, as its sender does not wait.
		s := &shelf{}
		r := newRoom(engine.Config{Workers: s})
		a, b := r.visit(tidy, "a"), r.visit(tidy, "b")
		a.Leaf, b.Leaf = false, false
		require.NoError(t, a.post(background))
		require.NoError(t, b.post(background))
		require.Equal(t, 1, s.len())
		require.True(t, a.WithdrawAll(context.Canceled), "it has not begun")
		snap := r.Explain()
		s.run()
		require.Equal(t, []string{"b"}, r.order)
		require.Empty(t, snap.Running, "a thread is on its way, but nothing runs: %v", snap)
		require.Len(t, snap.Waiting, 1)
	})
	t.Run("worker explained", func(t *testing.T) {
		s := &shelf{}
		r := newRoom(engine.Config{Workers: s})
		a := r.visit(tidy, "a")
		a.Leaf = false
		require.NoError(t, a.post(background))
		snap := r.Explain()
		s.run()
		require.Empty(t, snap.Running, "a thread is on its way, but nothing runs: %v", snap)
		require.Len(t, snap.Waiting, 1)
		require.Equal(t, mailbox.NoThread, snap.Waiting[0].Reason.Cause)
	})
}

func TestTheThreadThatComesTooLateFindsNothing(t *testing.T) {
	for name, config := range map[string]engine.Config{"dispatched": {Dispatcher: &shelf{}}, "worker": {Workers: &shelf{}}} {
		t.Run(name, func(t *testing.T) {
			s, _ := config.Dispatcher.(*shelf)
			if s == nil {
				s = config.Workers.(*shelf)
			}
			r := newRoom(config)
			a := r.visit(tidy, "a")
			a.Leaf = false
			require.NoError(t, a.post(background))
			over := errors.New("over")
			idle := r.Close(over)
			soon(t, a.Done())
			require.Equal(t, over, a.err)
			s.run()
			soon(t, idle)
			require.Empty(t, r.order)
			require.Equal(t, over, r.visit(tidy, "b").post(background))
			c := r.visit(tidy, "c")
			soon(t, c.call(background))
			require.Equal(t, over, c.err)
		})
	}
}

func TestOnlyTheFirstCloseCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		require.False(t, r.Closed())
		v := r.visit(pass, "v")
		require.NoError(t, v.post(background))
		first, second := errors.New("first"), errors.New("second")
		idle := r.Close(first)
		require.Equal(t, idle, r.Close(second))
		require.True(t, r.Closed())
		soon(t, idle)
		soon(t, v.Done())
		require.Equal(t, first, v.err)
	})
}

func TestEndedIsCalledOnceAfterTheLastBody(t *testing.T) {
	var ended atomic.Int32
	r := newRoom(engine.Config{})
	r.ended = func() { ended.Add(1) }
	entered, let := make(chan struct{}), make(chan struct{})
	v := r.visit(tidy, "v")
	v.during = func() { close(entered); <-let }
	done := v.call(background)
	soon(t, entered)
	idle := r.Close(errors.New("over"))
	require.Zero(t, ended.Load())
	select {
	case <-idle:
		t.Fatal("a body runs")
	default:
	}
	close(let)
	soon(t, done)
	soon(t, idle)
	r.Close(errors.New("again"))
	soon(t, r.visit(tidy, "late").call(background))
	require.EqualValues(t, 1, ended.Load())
}

func TestTheOwnerServesOthersWithinItsBound(t *testing.T) {
	// With a bound of one, every goroutine serves at most one other request, and no request
	// is lost when ownership passes on.
	for _, lend := range []int{1, 2, 1000} {
		r := newRoom(engine.Config{HelpLimit: lend})
		entered, let := make(chan struct{}), make(chan struct{})
		v := r.visit(tidy, "holder")
		v.during = func() { close(entered); <-let }
		done := v.call(background)
		soon(t, entered)
		var all []<-chan struct{}
		for range 100 {
			all = append(all, r.visit(tidy, "x").call(background))
		}
		r.queued(t, tidy, 100)
		close(let)
		soon(t, done)
		for _, c := range all {
			soon(t, c)
		}
		require.Len(t, r.order, 101)
	}
}

func TestTheClockKnowsABubble(t *testing.T) {
	require.False(t, engine.Bubbled(engine.Now()))
	synctest.Test(t, func(t *testing.T) {
		require.True(t, engine.Bubbled(engine.Now()), "%v", engine.Now())
	})
	require.False(t, engine.Bubbled(engine.Now()))
}

func TestErrorsSayWhatHappened(t *testing.T) {
	for text, err := range map[string]error{
		"sluice: a has stopped":                                      &mailbox.StoppedError{Object: "a"},
		"sluice: a has stopped: because":                             &mailbox.StoppedError{Object: "a", Cause: errors.New("because")},
		`sluice: a: op would wait: guard "open" is false`:            &mailbox.RefusedError{Object: "a", Operation: "op", Guard: "open"},
		"sluice: a: op would wait: other comes first":                &mailbox.RefusedError{Object: "a", Operation: "op", Behind: "other"},
		"sluice: a.op panicked: 7":                                   &mailbox.PanicError{Object: "a", Operation: "op", Value: 7},
		`sluice: guard "open" of a.op panicked: 7`:                   &mailbox.GuardError{Object: "a", Operation: "op", Guard: "open", Value: 7},
		"sluice: a.op ended its goroutine (runtime.Goexit)":          &mailbox.ExitError{Object: "a", Operation: "op"},
		"sluice: deadlock: a.op waits for b.op, b.op waits for a.op": &mailbox.DeadlockError{Circle: []mailbox.Link{{Body: "a.op", For: "b.op"}, {Body: "b.op", For: "a.op"}}},
	} {
		require.EqualError(t, err, text)
	}
	require.ErrorIs(t, &mailbox.StoppedError{}, mailbox.ErrStopped)
	require.ErrorIs(t, &mailbox.RefusedError{}, mailbox.ErrRefused)
	require.NotErrorIs(t, &mailbox.StoppedError{}, mailbox.ErrRefused)
	cause := errors.New("cause")
	for _, err := range []error{&mailbox.StoppedError{Cause: cause}, &mailbox.PanicError{Value: cause}, &mailbox.GuardError{Value: cause}} {
		require.ErrorIs(t, err, cause)
	}
}

// A withdrawal while the object is taken cannot clear the flags of its word, and the owner by the
// fast path would put back the flags that it found.
func TestTheMarksOfAnObjectGoWithTheLastWhoWaits(t *testing.T) {
	r := newRoom(engine.Config{})
	for _, taken := range []bool{false, true} {
		ctx, cancel := context.WithCancel(background)
		done := r.visit(pass, "gives up").call(ctx)
		r.queued(t, pass, 1)
		for r.Word.Load() != word.Idle(1)|word.Parked {
		}
		l := engine.Leaving{Op: tidy, Changed: true}
		w, ok := r.Take(word.Mark(tidy))
		require.True(t, ok)
		if !taken {
			require.True(t, r.Look(&l))
		}
		cancel()
		soon(t, done)
		if taken && !r.Word.CompareAndSwap(w|word.Mark(tidy), w) && !r.Look(&l) {
			r.Yield(l)
		}
		require.Equal(t, word.Idle(1), r.Word.Load(), "taken: %v", taken)
	}
}
