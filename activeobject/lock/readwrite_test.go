package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// holders requires so many readers, and a writer or none.
func holders(t testingT, l *lock.ReadWrite, readers int, writing bool) {
	t.Helper()
	r, err := l.Readers()
	require.NoError(t, err)
	w, err := l.Writing()
	require.NoError(t, err)
	require.Equal(t, []any{readers, writing}, []any{r, w}, "readers, writing")
}

func TestReadersReadTogetherAndWritersWriteAlone(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		require.NoError(t, l.RLock(background))
		require.NoError(t, over(t, l.Locks().Send(background, lock.ToRead)))
		require.NoError(t, try(l.Locks(), lock.ToRead))
		holders(t, l, 3, false)
		require.ErrorIs(t, try(l.Locks(), lock.ToWrite), activeobject.ErrRefused)
		writer := l.Locks().Send(background, lock.ToWrite)
		require.NoError(t, l.RUnlock())
		require.NoError(t, l.RUnlock())
		require.False(t, writer.Ready())
		require.NoError(t, over(t, l.Unlocks().Send(background, lock.ToRead)))
		require.NoError(t, over(t, writer))
		holders(t, l, 0, true)
		require.ErrorIs(t, try(l.Locks(), lock.ToRead), activeobject.ErrRefused)
		require.ErrorIs(t, try(l.Locks(), lock.ToWrite), activeobject.ErrRefused)
		require.NoError(t, over(t, l.Unlocks().Send(background, lock.ToWrite)))
		require.NoError(t, try(l.Locks(), lock.ToWrite))
	})
}

// What becomes of a reader that comes while one reads and a writer waits, and which is next
// after a writer behind which both wait, the writer first.
func TestWhichGoesFirst(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		require.NoError(t, l.RLock(background))
		writer := l.Locks().Send(background, lock.ToWrite)
		tried := try(l.Locks(), lock.ToRead)
		if tried == nil {
			require.NoError(t, l.RUnlock())
		}
		reader := l.Locks().Send(background, lock.ToRead)
		passed := reader.Ready()
		require.Equal(t, passed, tried == nil, "an attempt keeps to the same rule")
		if passed {
			require.NoError(t, l.RUnlock())
		}
		require.NoError(t, l.RUnlock())
		require.NoError(t, over(t, writer))

		second := l.Locks().Send(background, lock.ToWrite)
		if !passed {
			require.False(t, reader.Ready())
		} else {
			reader = l.Locks().Send(background, lock.ToRead)
		}
		third := l.Locks().Send(background, lock.ToWrite)
		require.NoError(t, l.Unlock())
		next := []bool{second.Ready(), reader.Ready(), third.Ready()}
		switch t.Name() {
		case "TestWhichGoesFirst/readers-first":
			require.True(t, passed)
			require.Equal(t, []bool{false, true, false}, next)
		case "TestWhichGoesFirst/writers-first":
			require.False(t, passed)
			require.Equal(t, []bool{true, false, false}, next)
			require.NoError(t, l.Unlock())
			require.NoError(t, over(t, third))
			require.False(t, reader.Ready(), "though it has waited for two writers that came later")
		default:
			require.False(t, passed)
			require.Equal(t, []bool{false, true, false}, next, "the reader came before these writers")
		}
	})
}

func TestAWriterThatIsWithdrawnHoldsNoneOff(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		require.NoError(t, l.RLock(background))
		ctx, cancel := context.WithCancel(background)
		writer := l.Locks().Send(ctx, lock.ToWrite)
		first, second := l.Locks().Send(background, lock.ToRead), l.Locks().Send(background, lock.ToRead)
		cancel()
		require.ErrorIs(t, over(t, writer), context.Canceled)
		require.NoError(t, over(t, first))
		require.NoError(t, over(t, second))
		holders(t, l, 3, false)
	})
}

func TestTheUnlockOfWhatIsNotHeldChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		notWriting := &lock.UnlockError{Lock: "table", Writing: true}
		notReading := &lock.UnlockError{Lock: "table"}
		require.Equal(t, notWriting, l.Unlock())
		require.Equal(t, notReading, l.RUnlock())
		require.EqualError(t, notWriting, "sluice: table: unlock of a lock that is not held for writing")
		require.EqualError(t, notReading, "sluice: table: unlock of a lock that is not held for reading")
		require.NoError(t, l.RLock(background))
		require.Equal(t, notWriting, l.Unlock())
		holders(t, l, 1, false)
		require.NoError(t, l.RUnlock())
		require.NoError(t, l.Lock(background))
		require.Equal(t, notReading, l.RUnlock())
		holders(t, l, 0, true)
		require.NoError(t, l.Unlock())
		require.Equal(t, notWriting, over(t, l.Unlocks().Send(background, lock.ToWrite)))
	})
}

func TestALockIsUnlockedHoweverItsUseEnds(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		mine := errors.New("mine")
		for _, c := range []struct {
			with    func(context.Context, func(context.Context) error) error
			unlock  func() error
			readers int
			writing bool
		}{{l.WithLock, l.Unlock, 0, true}, {l.WithRLock, l.RUnlock, 1, false}} {
			require.ErrorIs(t, c.with(background, func(context.Context) error { holders(t, l, c.readers, c.writing); return mine }), mine)
			require.PanicsWithValue(t, "cause", func() { c.with(background, func(context.Context) error { panic("cause") }) })
			exited := make(chan struct{})
			go func() {
				defer close(exited)
				c.with(background, func(context.Context) error { runtime.Goexit(); return nil })
			}()
			<-exited
			holders(t, l, 0, false)
			require.ErrorAs(t, c.with(background, func(context.Context) error { return c.unlock() }), new(*lock.UnlockError))
		}
	})
}

func TestAStoppedLockFailsEverything(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		never := func(context.Context) error { t.Error("it has run"); return nil }
		require.NoError(t, l.WithLock(background, func(ctx context.Context) error {
			reader, writer := l.Locks().Send(ctx, lock.ToRead), l.Locks().Send(ctx, lock.ToWrite)
			<-l.Object().Stop()
			require.ErrorIs(t, over(t, reader), activeobject.ErrStopped)
			require.ErrorIs(t, over(t, writer), activeobject.ErrStopped)
			return nil
		}))
		_, counted := l.Readers()
		_, asked := l.Writing()
		for _, err := range []error{
			l.Lock(background), try(l.Locks(), lock.ToWrite), l.Unlock(), l.WithLock(background, never),
			l.RLock(background), try(l.Locks(), lock.ToRead), l.RUnlock(), l.WithRLock(background, never), counted, asked,
		} {
			require.ErrorIs(t, err, activeobject.ErrStopped)
		}
	})
}

func TestSelectLocksOnce(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		require.NoError(t, l.RLock(background))
		i, err := activeobject.Select(background, l.Locks().Case(lock.ToWrite), l.Locks().Case(lock.ToRead))
		require.NoError(t, err)
		require.Equal(t, 1, i)
		holders(t, l, 2, false)
		require.Zero(t, l.Waiting())
	})
}

func TestAWaitForALockIsExplained(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		require.NoError(t, l.Lock(background))
		l.Locks().Send(background, lock.ToRead)
		w := l.Object().Explain().Waiting[0]
		require.Equal(t, "lock", w.Operation)
		require.Equal(t, "free", w.Reason.Guard)
	})
}

func TestTheKindOfALockIsNotAnOption(t *testing.T) {
	for name, build := range kinds {
		_, err := build(objecttest.NewSystem(t), activeobject.ByLatest())
		require.EqualError(t, err, "sluice: new read-write lock: an order of requests is given to an object that has one of its own, which is a part of what it is: leave it out", name)
	}
}

// Whatever is done to a lock, exactly those requests hold it that its rule admits.
func TestAReadWriteLockKeepsToItsRules(t *testing.T) {
	type waiter struct {
		write  bool
		future activeobject.Future[None]
	}
	for name, build := range kinds {
		for thread, option := range map[string]activeobject.Option{"borrowed": activeobject.CallerThreads(), "scheduler": activeobject.NoFastPath(), "pooled": activeobject.PooledThreads()} {
			t.Run(name+"/"+thread, func(t *testing.T) {
				system := objecttest.NewSystem(t, objecttest.AllowWaiting())
				rapid.Check(t, func(t *rapid.T) {
					l, err := build(system, option)
					require.NoError(t, err)
					defer l.Object().Stop()
					readers, writing := 0, false
					var line []*waiter // in the order of the rule
					var got []activeobject.Future[None]
					first := map[string]bool{"readers-first": false, "writers-first": true}
					join := func(w *waiter) {
						i := len(line)
						if preferred, ok := first[name]; ok && w.write == preferred {
							i = 0
							for i < len(line) && line[i].write == preferred {
								i++
							}
						}
						line = slices.Insert(line, i, w)
					}
					free := func(write bool) bool { return !writing && (!write || readers == 0) }
					hold := func(write bool) {
						if writing = write; !write {
							readers++
						}
					}
					settle := func() {
						for len(line) > 0 && free(line[0].write) {
							hold(line[0].write)
							got = append(got, line[0].future)
							line = line[1:]
						}
					}
					t.Repeat(map[string]func(*rapid.T){
						"lock": func(t *rapid.T) {
							w := &waiter{write: rapid.Bool().Draw(t, "write")}
							w.future = l.Locks().Send(background, lock.Mode(w.write))
							join(w)
							settle()
						},
						"try": func(t *rapid.T) {
							write := rapid.Bool().Draw(t, "write")
							preferred, ok := first[name]
							ahead := len(line) > 0 && !(ok && write == preferred && line[0].write != preferred)
							if err := try(l.Locks(), lock.Mode(write)); free(write) && !ahead {
								require.NoError(t, err)
								hold(write)
							} else {
								require.ErrorIs(t, err, activeobject.ErrRefused)
							}
						},
						"unlock": func(t *rapid.T) {
							err := l.Unlock()
							require.Equal(t, writing, err == nil)
							writing = false
							settle()
						},
						"read unlock": func(t *rapid.T) {
							err := l.RUnlock()
							require.Equal(t, readers > 0, err == nil)
							readers = max(readers-1, 0)
							settle()
						},
						"withdraw": func(t *rapid.T) {
							if len(line) == 0 {
								t.Skip("none waits")
							}
							i := rapid.IntRange(0, len(line)-1).Draw(t, "which")
							require.True(t, line[i].future.Withdraw())
							line = slices.Delete(line, i, i+1)
							settle()
						},
						"": func(t *rapid.T) {
							for _, f := range got {
								require.NoError(t, over(t, f))
							}
							holders(t, l, readers, writing)
							require.Equal(t, len(line), l.Waiting())
							for _, w := range line {
								require.False(t, w.future.Ready())
							}
						},
					})
				})
			})
		}
	}
}

// Readers and writers come, lose patience, and look whether they are where they should.
func TestNoneReadsWhileOneWrites(t *testing.T) {
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			const workers, rounds = 12, 300
			system := actor.NewSystem(quiet)
			defer system.Close(background)
			l, err := build(system)
			require.NoError(t, err)
			var readers, writers, done, withdrawn atomic.Int64
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for i := range rounds {
						ctx, cancel := context.WithCancel(background)
						if i%3 == 0 {
							go cancel()
						}
						with, me, limit := l.WithRLock, &readers, int64(workers)
						if rand.N(3) == 0 {
							with, me, limit = l.WithLock, &writers, 1
						}
						err := with(ctx, func(context.Context) error {
							if n := me.Add(1); n > limit || limit > 1 && writers.Load() > 0 || limit == 1 && readers.Load() > 0 {
								t.Errorf("%d readers and %d writers at once", readers.Load(), writers.Load())
							}
							runtime.Gosched()
							me.Add(-1)
							return nil
						})
						switch {
						case err == nil:
							done.Add(1)
						case errors.Is(err, context.Canceled):
							withdrawn.Add(1)
						default:
							t.Error(err)
						}
						cancel()
					}
				})
			}
			all.Wait()
			require.EqualValues(t, workers*rounds, done.Load()+withdrawn.Load())
			holders(t, l, 0, false)
			require.Zero(t, l.Waiting())
		})
	}
}

// Readers overlap without end. A writer starves behind them in one kind of lock, and not
// in the others; and readers behind overlapping writers likewise.
func TestWhichStarves(t *testing.T) {
	each(t, func(t *testing.T, l *lock.ReadWrite) {
		const long = 100
		require.NoError(t, l.RLock(background))
		writer := l.Locks().Send(background, lock.ToWrite)
		var late []activeobject.Future[None]
		for range long {
			late = append(late, l.Locks().Send(background, lock.ToRead)) // another one comes,
			require.NoError(t, l.RUnlock())                              // and then one leaves
			if writer.Ready() {
				break
			}
		}
		if t.Name() == "TestWhichStarves/readers-first" {
			require.False(t, writer.Ready(), "there was always one that read")
			require.NoError(t, l.RUnlock())
		}
		require.NoError(t, over(t, writer))

		// Now one writes, and readers wait, or come to wait.
		reader := l.Locks().Send(background, lock.ToRead)
		for range long {
			l.Locks().Send(background, lock.ToWrite)
			require.NoError(t, l.Unlock())
			if reader.Ready() {
				break
			}
		}
		if t.Name() == "TestWhichStarves/writers-first" {
			require.False(t, reader.Ready(), "there was always one that waited to write")
			require.False(t, late[0].Ready())
			require.NoError(t, l.Unlock())
		}
		require.NoError(t, over(t, reader))
	})
}
