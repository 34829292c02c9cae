package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func newBurst(t *testing.T, sample int, options ...activeobject.Option) *lock.Burst {
	t.Helper()
	b, err := lock.NewBurst(objecttest.NewSystem(t, objecttest.AllowWaiting()), sample, options...)
	require.NoError(t, err)
	return b
}

func TestABurstPassesWholeAndClosesTheLock(t *testing.T) {
	for _, sample := range []int{1, 2, 5} {
		b := newBurst(t, sample)
		for range 3 {
			var burst []activeobject.Future[None]
			for i := range sample {
				for _, f := range burst {
					require.False(t, f.Ready())
				}
				require.Equal(t, i, b.Waiting())
				burst = append(burst, b.Requests().Send(background, nil))
			}
			for _, f := range burst {
				require.NoError(t, over(t, f))
			}
			require.Zero(t, b.Waiting())
			require.ErrorIs(t, try(b.Requests(), nil), activeobject.ErrRefused)
		}
	}
}

func TestAGrantLetsPassAllThatWait(t *testing.T) {
	b := newBurst(t, 5)
	one, two := b.Requests().Send(background, nil), b.Requests().Send(background, nil)
	require.NoError(t, b.Grant())
	require.NoError(t, over(t, one))
	require.NoError(t, over(t, two))
	require.False(t, b.Requests().Send(background, nil).Ready(), "the lock is closed again")
}

func TestAGrantWithNoneWaitingIsKeptForTheNext(t *testing.T) {
	b := newBurst(t, 5)
	require.NoError(t, b.Grant())
	require.NoError(t, over(t, b.Grants().Send(background, nil)), "two are as good as one")
	require.NoError(t, over(t, b.Requests().Send(background, nil)))
	require.False(t, b.Requests().Send(background, nil).Ready())

	b = newBurst(t, 5)
	require.NoError(t, b.Grant())
	require.NoError(t, try(b.Requests(), nil))
	require.ErrorIs(t, try(b.Requests(), nil), activeobject.ErrRefused)
}

func TestARequestThatIsWithdrawnIsInNoBurst(t *testing.T) {
	b := newBurst(t, 3)
	one, two := b.Requests().Send(background, nil), b.Requests().Send(background, nil)
	require.True(t, one.Withdraw())
	require.ErrorIs(t, over(t, one), context.Canceled)
	three := b.Requests().Send(background, nil)
	require.False(t, two.Ready() || three.Ready(), "two are no sample")
	four := b.Requests().Send(background, nil)
	for _, f := range []activeobject.Future[None]{two, three, four} {
		require.NoError(t, over(t, f))
	}
}

func TestABurstTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBurst(t, 3)
		start := time.Now()
		short, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		require.ErrorIs(t, b.Request(short), context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Minute)
				if err := b.Request(background); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d != time.Hour+2*time.Minute {
					t.Errorf("passed after %v, which is not when the last one came", d)
				}
			})
		}
		all.Wait()
	})
}

func TestABurstIsChosenBySelect(t *testing.T) {
	b, other := newBurst(t, 2), newBurst(t, 2)
	chosen := make(chan int, 1)
	go func() {
		i, _ := activeobject.Select(background, other.Requests().Case(nil), b.Requests().Case(nil))
		chosen <- i
	}()
	for b.Waiting() < 1 {
		runtime.Gosched()
	}
	require.NoError(t, b.Request(background))
	require.Equal(t, 1, <-chosen)
	require.Zero(t, other.Waiting())
}

func TestAStoppedBurstFailsEverything(t *testing.T) {
	b := newBurst(t, 2)
	waiting := b.Requests().Send(background, nil)
	<-b.Object().Stop()
	for _, err := range []error{over(t, waiting), b.Request(background), try(b.Requests(), nil), b.Grant()} {
		require.ErrorIs(t, err, activeobject.ErrStopped)
	}
}

func TestABurstOfNoneCannotBeMade(t *testing.T) {
	for _, n := range []int{0, -1} {
		_, err := lock.NewBurst(objecttest.NewSystem(t), n)
		require.EqualError(t, err, fmt.Sprintf("sluice: lock.NewBurst: sampleSize is %d: there must be at least one", n))
		require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	}
	_, err := lock.NewBurst(nil, 1)
	require.ErrorAs(t, err, new(*activeobject.OptionError))
}

func TestAWaitForABurstIsExplained(t *testing.T) {
	b := newBurst(t, 2)
	b.Requests().Send(background, nil)
	w := b.Object().Explain().Waiting[0]
	require.Equal(t, "request", w.Operation)
	require.Equal(t, "burst complete or granted", w.Reason.Guard)
}

// Whatever is done to a burst lock, it lets pass what the text lets pass.
func TestABurstLockKeepsToItsRules(t *testing.T) {
	for thread, option := range map[string]activeobject.Option{"borrowed": activeobject.CallerThreads(), "scheduler": activeobject.NoFastPath(), "pooled": activeobject.PooledThreads(), "latest first": activeobject.ByLatest(), "checked": nil} {
		t.Run(thread, func(t *testing.T) {
			system := objecttest.NewSystem(t, objecttest.AllowWaiting())
			if option == nil {
				option = objecttest.Checked(t)
			}
			rapid.Check(t, func(t *rapid.T) {
				sample := rapid.IntRange(1, 4).Draw(t, "sample")
				b, err := lock.NewBurst(system, sample, option)
				require.NoError(t, err)
				defer b.Object().Stop()
				var line, passed []activeobject.Future[None]
				granted := false
				settle := func() {
					if granted && len(line) > 0 || len(line) >= sample {
						granted = false
						line, passed = nil, append(passed, line...)
					}
				}
				t.Repeat(map[string]func(*rapid.T){
					"request": func(t *rapid.T) {
						line = append(line, b.Requests().Send(background, nil))
						settle()
					},
					"try": func(t *rapid.T) {
						if err := try(b.Requests(), nil); granted {
							require.NoError(t, err)
							granted = false
						} else {
							require.ErrorIs(t, err, activeobject.ErrRefused)
						}
					},
					"grant": func(t *rapid.T) {
						require.NoError(t, b.Grant())
						granted = true
						settle()
					},
					"withdraw": func(t *rapid.T) {
						if len(line) == 0 {
							t.Skip("none waits")
						}
						i := rapid.IntRange(0, len(line)-1).Draw(t, "which")
						require.True(t, line[i].Withdraw())
						line = slices.Delete(line, i, i+1)
					},
					"": func(t *rapid.T) {
						for _, f := range passed {
							require.NoError(t, over(t, f))
						}
						require.Equal(t, len(line), b.Waiting())
						for _, f := range line {
							require.False(t, f.Ready())
						}
					},
				})
			})
		})
	}
}

// Requests come and are withdrawn while others make their bursts: without grants, those
// that pass are so many that all bursts have been whole; and the lock is closed
// afterwards, whichever was the last.
func TestBurstsAreWholeUnderCancellation(t *testing.T) {
	const sample, workers, rounds = 4, 12, 300
	system := actor.NewSystem(quiet)
	defer system.Close(background)
	b, err := lock.NewBurst(system, sample)
	require.NoError(t, err)
	var passed, withdrawn atomic.Int64
	var all sync.WaitGroup
	ending, end := context.WithCancel(background)
	defer end()
	working := atomic.Int64{}
	working.Store(workers)
	for range workers {
		all.Go(func() {
			defer working.Add(-1)
			for i := range rounds {
				ctx, cancel := context.WithCancel(ending)
				if i%2 == 0 {
					go func() {
						for range rand.N(4) {
							runtime.Gosched()
						}
						cancel()
					}()
				}
				switch err := b.Request(ctx); {
				case err == nil:
					passed.Add(1)
				case errors.Is(err, context.Canceled):
					withdrawn.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		})
	}
	for working.Load() > 0 { // the last ones make no burst any more
		if working.Load() < sample {
			end()
		}
		runtime.Gosched()
	}
	all.Wait()
	require.EqualValues(t, workers*rounds, passed.Load()+withdrawn.Load())
	require.Positive(t, passed.Load())
	require.ErrorIs(t, try(b.Requests(), nil), activeobject.ErrRefused, "the lock is closed")
	require.Zero(t, b.Waiting())
}

// Some of a burst are withdrawn at the very moment at which it begins. It may do without
// them, or not; but a request that comes later is not one of it.
func TestNoRequestSlipsInBehindABurst(t *testing.T) {
	b := newBurst(t, 4)
	for range 1000 {
		ctx, cancel := context.WithCancel(background)
		var early []activeobject.Future[None]
		for range 3 {
			early = append(early, b.Requests().Send(ctx, nil))
		}
		var all sync.WaitGroup
		all.Go(cancel)
		all.Go(func() { early = append(early, b.Requests().Send(background, nil)) })
		all.Wait()
		passed := 0
		for _, f := range early[:3] {
			if err := over(t, f); err == nil {
				passed++
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		require.ErrorIs(t, try(b.Requests(), nil), activeobject.ErrRefused)
		if late := early[3]; !late.Withdraw() { // it was one of a burst, maybe the only one left
			require.NoError(t, over(t, late))
		} else {
			require.Zero(t, passed, "a burst has begun without the fourth")
		}
	}
}
