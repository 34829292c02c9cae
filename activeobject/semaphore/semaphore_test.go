package semaphore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

func TestPermitsAreHeldUntilTheyAreReleased(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(3)
		require.NoError(t, s.Acquire(background, 2))
		counts(t, s, 1, 2, 0)
		waiting := s.Acquires().Send(background, 2)
		counts(t, s, 1, 2, 1)
		require.False(t, waiting.Ready())
		require.NoError(t, s.Release(1))
		require.NoError(t, over(t, waiting))
		counts(t, s, 0, 3, 0)
		require.NoError(t, s.Release(3))
		counts(t, s, 3, 0, 0)
	})
}

func TestAHeadThatDoesNotFitIsNotPassed(t *testing.T) {
	s := made(t)(semaphore.New(objecttest.NewSystem(t), 3))
	require.NoError(t, s.Acquire(background, 2))
	large := s.Acquires().Send(background, 3)
	small := s.Acquires().Send(background, 1)
	require.False(t, small.Ready(), "though one is free")
	err := try(s.Acquires(), 1)
	require.ErrorIs(t, err, activeobject.ErrRefused)
	require.ErrorContains(t, err, "acquire in line would wait: acquire in line comes first")
	require.NoError(t, s.Release(2))
	require.NoError(t, over(t, large))
	require.False(t, small.Ready())
	require.NoError(t, s.Release(1))
	require.NoError(t, over(t, small))
}

func TestAnAcquireThatFitsPassesOneThatDoesNot(t *testing.T) {
	s := made(t)(semaphore.NewBarging(objecttest.NewSystem(t), 3))
	require.NoError(t, s.Acquire(background, 2))
	large := s.Acquires().Send(background, 3)
	require.NoError(t, try(s.Acquires(), 1))
	require.NoError(t, s.Release(1))
	require.NoError(t, over(t, s.Acquires().Send(background, 1)))
	require.False(t, large.Ready())
	require.NoError(t, s.Release(3))
	require.NoError(t, over(t, large))
}

func TestAReleaseGoesToAcquiresThatWait(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(1)
		require.NoError(t, s.Acquire(background, 1))
		first, second := s.Acquires().Send(background, 1), s.Acquires().Send(background, 1)
		require.NoError(t, s.Release(1))
		require.NoError(t, over(t, first))
		require.False(t, second.Ready())
		require.ErrorIs(t, try(s.Acquires(), 1), activeobject.ErrRefused)
		require.NoError(t, s.Release(1))
		require.NoError(t, over(t, second))
	})
}

// Acquires of a barging semaphore that come late are called nevertheless, one after
// another, and those that are withdrawn meanwhile leave none behind uncalled.
func TestAnAcquireThatIsCalledPassesTheCallOn(t *testing.T) {
	for _, weight := range []int{1, 2} {
		s := made(t)(semaphore.NewBarging(objecttest.NewSystem(t), 3*weight))
		require.NoError(t, s.Acquire(background, 3*weight))
		acquired := make(chan error)
		var impatient []context.CancelFunc
		for i := range 6 {
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			go func() { acquired <- s.Acquire(ctx, weight) }()
			for s.Waiting() < i+1 {
				runtime.Gosched()
			}
			if i%2 == 0 {
				impatient = append(impatient, cancel)
			}
		}
		for _, cancel := range impatient {
			go cancel()
		}
		require.NoError(t, s.Release(3*weight)) // enough for three, in one step
		none := 0
		for range 6 {
			select {
			case err := <-acquired:
				if err != nil {
					require.Equal(t, context.Canceled, err)
					none++
				} else {
					require.NoError(t, s.Release(weight))
				}
			case <-time.After(patience):
				t.Fatalf("an acquire has been forgotten\n%v", s.Object().Explain())
			}
		}
		require.LessOrEqual(t, none, 3)
		counts(t, s, 3*weight, 0, 0)
	}
}

func TestTheReleaseOfWhatIsNotHeldChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(3, activeobject.Name("slots"))
		require.NoError(t, s.Acquire(background, 2))
		for _, release := range []func(int) error{s.Release, func(n int) error { return over(t, s.Releases().Send(background, n)) }} {
			err := release(3)
			require.Equal(t, &semaphore.ReleaseError{Semaphore: "slots", Permits: 3, Held: 2}, err)
			require.EqualError(t, err, "sluice: slots: release of 3 with 2 held")
			counts(t, s, 1, 2, 0)
		}
		require.NoError(t, s.Release(2))
	})
}

func TestAnAcquireThatNeverFitsFailsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(3, activeobject.Name("slots"))
		tooLarge := &semaphore.SizeError{Semaphore: "slots", Permits: 4, Size: 3}
		require.Equal(t, tooLarge, s.Acquire(background, 4))
		require.EqualError(t, tooLarge, "sluice: slots: acquire of 4 with a size of 3")
		require.Equal(t, tooLarge, try(s.Acquires(), 4))
		require.Equal(t, tooLarge, over(t, s.Acquires().Send(background, 4)))
		c := s.Acquires().Case(4)
		_, err := activeobject.Select(background, c)
		require.NoError(t, err)
		_, err = c.Result()
		require.Equal(t, tooLarge, err)
		counts(t, s, 3, 0, 0)
		require.NoError(t, s.Acquire(background, 3))
		waiting := s.Acquires().Send(background, 1)
		require.Equal(t, tooLarge, s.Acquire(background, 4), "though another request waits before it")
		require.False(t, waiting.Ready())

		// The bound operation is a single step, so it fails when it is first in line, if there is one.
		sent, tried := s.Acquires().Send(background, 4), try(s.Acquires(), 4)
		if strings.HasSuffix(t.Name(), "/fair") {
			require.False(t, sent.Ready())
			require.ErrorIs(t, tried, activeobject.ErrRefused)
		} else {
			require.Equal(t, tooLarge, over(t, sent))
			require.Equal(t, tooLarge, tried)
		}
		require.NoError(t, s.Release(1))
		require.NoError(t, over(t, waiting))
		require.Equal(t, tooLarge, over(t, sent))
	})
}

// An acquire that no longer fits fails: at once where each competes, and in a line when it is
// first. The others keep their places.
func TestASemaphoreThatShrinksFailsAcquiresThatNoLongerFit(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.Bound(5, activeobject.Refuse)}, {objecttest.Checked(t)}} {
			s := build(5, options...)
			require.NoError(t, s.Acquire(background, 5))
			ctx, cancel := context.WithCancel(background)
			two := s.Acquires().Send(background, 2)
			four := s.Acquires().Send(background, 4)
			one := s.Acquires().Send(ctx, 1)
			three := s.Acquires().Send(background, 3)
			last := s.Acquires().Send(background, 2)
			tooLarge := func(n int) error {
				return &semaphore.SizeError{Semaphore: s.Object().Name(), Permits: n, Size: 2}
			}
			require.NoError(t, s.Resize(2))
			require.NoError(t, s.Release(3))
			require.False(t, two.Ready(), "two are still held")
			require.NoError(t, s.Release(2))
			require.NoError(t, over(t, two))
			require.Equal(t, tooLarge(4), over(t, four))
			require.False(t, one.Ready())
			cancel()
			_, err := one.Await(background)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, tooLarge(3), over(t, three))
			require.False(t, last.Ready())
			require.NoError(t, s.Release(2))
			require.NoError(t, over(t, last))
			counts(t, s, 0, 2, 0)
			s.Object().Stop()
		}
	})
}

func TestASemaphoreThatGrowsAdmits(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(1)
		require.NoError(t, s.Acquire(background, 1))
		first, second, third := s.Acquires().Send(background, 1), s.Acquires().Send(background, 1), s.Acquires().Send(background, 1)
		require.NoError(t, over(t, s.Resizes().Send(background, 3)))
		require.NoError(t, over(t, first))
		require.NoError(t, over(t, second))
		require.False(t, third.Ready())
		size, err := s.Size()
		require.NoError(t, err)
		require.Equal(t, 3, size)
	})
}

func TestACallThatIsCanceledAfterAShrinkHasTheContextsError(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(2)
		require.NoError(t, s.Acquire(background, 2))
		ctx, cancel := context.WithCancel(background)
		acquired := make(chan error, 1)
		go func() { acquired <- s.Acquire(ctx, 1) }()
		for s.Waiting() < 1 {
			runtime.Gosched()
		}
		require.NoError(t, s.Resize(1))
		cancel()
		require.Equal(t, context.Canceled, <-acquired)
	})
}

func TestADrainTakesWhatIsFree(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(4)
		require.NoError(t, s.Acquire(background, 1))
		large := s.Acquires().Send(background, 4)
		n, err := s.Drain()
		require.NoError(t, err)
		require.Equal(t, 3, n)
		counts(t, s, 0, 4, 1)
		n, err = s.Drains().Send(background, nil).Await(background)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, s.Resize(3))
		n, err = s.Drain()
		require.NoError(t, err)
		require.Zero(t, n, "less than nothing is free")
		require.ErrorAs(t, over(t, large), new(*semaphore.SizeError))
		require.NoError(t, s.Release(4))
		counts(t, s, 3, 0, 0)
	})
}

func TestAnAcquireThatIsWithdrawnHasTakenNothingAndHoldsUpNone(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(3)
		require.NoError(t, s.Acquire(background, 1))
		large := s.Acquires().Send(background, 3)
		small := s.Acquires().Send(background, 2)
		require.True(t, large.Withdraw())
		require.ErrorIs(t, over(t, large), context.Canceled)
		require.NoError(t, over(t, small))
		counts(t, s, 0, 3, 0)

		ended, cancel := context.WithCancel(background)
		cancel()
		require.NoError(t, s.Release(3))
		require.ErrorIs(t, s.Acquire(ended, 1), context.Canceled, "though there are enough")
		counts(t, s, 3, 0, 0)
	})
}

func TestAStoppedSemaphoreFailsEverything(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(1)
		inside := s.With(background, 1, func(ctx context.Context) error {
			waiting := s.Acquires().Send(ctx, 1)
			<-s.Object().Stop()
			require.ErrorIs(t, over(t, waiting), activeobject.ErrStopped)
			return nil
		})
		require.NoError(t, inside, "a caller that held it when it was stopped has done its work")
		for name, err := range map[string]error{
			"acquire": s.Acquire(background, 1), "try": try(s.Acquires(), 1), "send": over(t, s.Acquires().Send(background, 1)),
			"release": s.Release(1), "resize": s.Resize(2),
			"with": s.With(background, 1, func(context.Context) error { t.Error("f has run"); return nil }),
		} {
			require.ErrorIs(t, err, activeobject.ErrStopped, name)
		}
		for name, count := range map[string]func() (int, error){"drain": s.Drain, "available": s.Available, "held": s.Held, "size": s.Size} {
			_, err := count()
			require.ErrorIs(t, err, activeobject.ErrStopped, name)
		}
	})
}

func TestWithReleasesHoweverItEnds(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(2)
		mine := errors.New("mine")
		require.ErrorIs(t, s.With(background, 2, func(context.Context) error {
			counts(t, s, 0, 2, 0)
			return mine
		}), mine)
		require.PanicsWithValue(t, "cause", func() {
			s.With(background, 2, func(context.Context) error { panic("cause") })
		})
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			s.With(background, 2, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-exited
		counts(t, s, 2, 0, 0)

		err := s.With(background, 2, func(context.Context) error { return s.Release(2) })
		require.ErrorAs(t, err, new(*semaphore.ReleaseError), "another caller has released it")
		counts(t, s, 2, 0, 0)
	})
}

func TestSelectAcquiresOnce(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		one, other := build(1), build(2)
		require.NoError(t, one.Acquire(background, 1))
		require.NoError(t, other.Acquire(background, 1))
		chosen := make(chan int, 1)
		go func() {
			i, _ := activeobject.Select(background, one.Acquires().Case(1), other.Acquires().Case(2))
			chosen <- i
		}()
		for one.Waiting() < 1 || other.Waiting() < 1 {
			runtime.Gosched()
		}
		require.NoError(t, other.Release(1))
		require.Equal(t, 1, <-chosen)
		counts(t, one, 0, 1, 0)
		counts(t, other, 0, 2, 0)
	})
}

func TestBadInputIsSaidAndChangesNothing(t *testing.T) {
	system := objecttest.NewSystem(t)
	for name, build := range map[string]maker{"New": semaphore.New, "NewBarging": semaphore.NewBarging} {
		for _, n := range []int{0, -3} {
			_, err := build(system, n)
			require.ErrorAs(t, err, new(*activeobject.ArgumentError))
			require.ErrorContains(t, err, "semaphore."+name)
		}
	}
	_, err := semaphore.New(system, 0)
	require.EqualError(t, err, "sluice: semaphore.New: permits is 0: there must be at least one")
	_, err = semaphore.New(nil, 1)
	require.ErrorAs(t, err, new(*activeobject.OptionError))
	_, err = semaphore.NewBinary(nil)
	require.ErrorAs(t, err, new(*activeobject.OptionError))

	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(2)
		require.NoError(t, s.Acquire(background, 1))
		for _, n := range []int{0, -1} {
			for name, err := range map[string]error{
				"Acquire": s.Acquire(background, n), "TryAcquire": try(s.Acquires(), n), "SendAcquire": over(t, s.Acquires().Send(background, n)),
				"Release": s.Release(n), "Resize": s.Resize(n),
				"With": s.With(background, n, func(context.Context) error { t.Error("f has run"); return nil }),
			} {
				require.ErrorAs(t, err, new(*activeobject.ArgumentError), name)
			}
			c := s.Acquires().Case(n)
			_, err := activeobject.Select(background, c)
			require.NoError(t, err)
			_, err = c.Result()
			require.ErrorAs(t, err, new(*activeobject.ArgumentError))
		}
		counts(t, s, 1, 1, 0)
	})
}

func TestAWaitIsExplained(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		s := build(1)
		require.NoError(t, s.Acquire(background, 1))
		s.Acquires().Send(background, 1)
		waiting := s.Object().Explain().Waiting
		require.Len(t, waiting, 1)
		require.Equal(t, "acquire in line", waiting[0].Operation)
		require.Equal(t, "enough free", waiting[0].Reason.Guard)
	})
}

func TestABinarySemaphoreIsHeldByOne(t *testing.T) {
	b, err := semaphore.NewBinary(objecttest.NewSystem(t), activeobject.Name("printer"))
	require.NoError(t, err)
	held := func(want bool) {
		t.Helper()
		h, err := b.Held()
		require.NoError(t, err)
		require.Equal(t, want, h)
	}
	held(false)
	err = b.Release()
	require.Equal(t, &semaphore.ReleaseError{Semaphore: "printer", Permits: 1}, err)
	require.EqualError(t, err, "sluice: printer: release of 1 with 0 held")
	require.NoError(t, b.Acquire(background))
	held(true)
	require.ErrorIs(t, try(b.Acquires(), nil), activeobject.ErrRefused)
	first, second := b.Acquires().Send(background, nil), b.Acquires().Send(background, nil)
	require.Equal(t, 2, b.Waiting())
	require.True(t, first.Withdraw())
	require.NoError(t, b.Release())
	require.NoError(t, over(t, second))
	require.NoError(t, over(t, b.Releases().Send(background, nil)))
	c := b.Acquires().Case(nil)
	_, err = activeobject.Select(background, c)
	require.NoError(t, err)
	require.NoError(t, b.Release())
	require.Panics(t, func() { b.With(background, func(context.Context) error { held(true); panic("cause") }) })
	held(false)
	<-b.Object().Stop()
	require.ErrorIs(t, b.With(background, func(context.Context) error { return nil }), activeobject.ErrStopped)
	require.ErrorIs(t, b.Release(), activeobject.ErrStopped)
}

// A request that makes no sense is told so at once, also if more is held than there are permits.
func TestACaseThatMakesNoSenseFailsAlsoAfterAResize(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(background)
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			s, err := build(system, 3)
			require.NoError(t, err)
			require.NoError(t, s.Acquire(background, 3))
			require.NoError(t, s.Resize(1))
			for _, n := range []int{0, -1, 2} {
				c := s.Acquires().Case(n)
				_, err := activeobject.Select(background, c)
				require.NoError(t, err)
				_, err = c.Result()
				require.Error(t, err)
			}
		})
	}
}
