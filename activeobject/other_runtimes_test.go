package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// What has hurt the users of other runtimes. Here are the failures that no other test
// covers: full queues of tells and a policy that drops a bound are in bound_test
// and policy_test.

// bay is an object with so many free berths.
type bay struct{ free, served, asked int }

type bays struct {
	*activeobject.Type[bay]
	run     *activeobject.Operation[bay, func(context.Context) error, None]
	touch   *activeobject.Operation[bay, None, int]
	acquire *activeobject.Operation[bay, int, None]
	release *activeobject.Operation[bay, int, None]
	never   *activeobject.Operation[bay, None, None]
}

func newBays() bays {
	t := activeobject.NewType[bay]("bay")
	return bays{
		Type: t,
		run: activeobject.ProcedureCtx(t, "run", func(_ *bay, ctx context.Context, f func(context.Context) error) (None, error) {
			return nil, f(ctx)
		}),
		touch:   activeobject.Procedure(t, "touch", activeobject.Result(func(b *bay) int { b.served++; return b.served })),
		acquire: activeobject.Entry(t, "acquire", activeobject.Arg(func(b *bay, n int) { b.free -= n })).WhenArg("enough", func(b *bay, n int) bool { return b.free >= n }),
		release: activeobject.Procedure(t, "release", activeobject.Arg(func(b *bay, n int) { b.free += n })),
		never:   activeobject.Entry(t, "never", activeobject.Plain(func(*bay) {})).When("never", func(b *bay) bool { b.asked++; return false }),
	}
}

// occupied makes the object busy until the returned function is called.
func (bs bays) occupied(t *testing.T, s *scene, o *activeobject.Object[bay]) (leave func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	c := calling(background, o, bs.run, func(context.Context) error { close(in); <-out; return nil })
	soon(t, s.system, in)
	leave = sync.OnceFunc(func() { close(out); <-c })
	t.Cleanup(leave)
	return leave
}

// The failure: two actors were wedged for a working day, one by telling a full mailbox,
// the other by asking without a deadline. This is the asking.
func TestTwoObjectsThatCallEachOtherWithFullQueuesDoNotWedge(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
			for name, ask := range map[string]func(ctx context.Context, o *activeobject.Object[bay]) error{
				"call": func(ctx context.Context, o *activeobject.Object[bay]) error {
					_, err := bs.touch.Call(ctx, o, nil)
					return err
				},
				"await": func(ctx context.Context, o *activeobject.Object[bay]) error {
					_, err := bs.touch.Send(ctx, o, nil).Await(ctx)
					return err
				},
			} {
				a := newObject(t, s, bs.Type, &bay{}, activeobject.Bound(2, overflow))
				b := newObject(t, s, bs.Type, &bay{}, activeobject.Bound(2, overflow))
				var ready, full sync.WaitGroup
				ready.Add(2)
				full.Add(1)
				answer := func(at, other *activeobject.Object[bay]) <-chan outcome[None] {
					return calling(background, at, bs.run, func(ctx context.Context) error {
						ready.Done()
						full.Wait()
						return ask(ctx, other)
					})
				}
				one, two := answer(a, b), answer(b, a)
				ready.Wait()
				for _, o := range []*activeobject.Object[bay]{a, b} {
					for range 2 {
						bs.touch.Send(background, o, nil)
					}
					waiting(t, o, bs.touch, 2)
				}
				full.Done()
				failed := 0
				for _, c := range []<-chan outcome[None]{one, two} {
					if err := soon(t, s.system, c).err; err != nil {
						failed++
						require.True(t, errors.As(err, new(*activeobject.FullError)) || errors.As(err, new(*activeobject.DeadlockError)), "%s: %v", name, err)
					}
				}
				require.NotZero(t, failed, "a request was refused")
				for _, o := range []*activeobject.Object[bay]{a, b} {
					require.NoError(t, soon(t, s.system, calling(background, o, bs.touch, nil)).err, "it goes on")
				}
			}
		}
	})
}

// The failure: a reply that came before its requester waited for it was dropped.
func TestAReplyThatComesBeforeItsRequesterParksIsNotLost(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, bs.Type, &bay{})
		// Each has ended before its result is waited for.
		future, ticket := bs.touch.Send(background, o, nil), bs.touch.Begin(background, o, nil)
		message := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "touch", Argument: nil}, patience)
		eventually(t, "all are answered", func() bool {
			n := 0
			o.View(background, func(b *bay) error { n = b.served; return nil })
			return n == 3
		})
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, awaiting(background, future)))
		require.Equal(t, outcome[int]{result: 2}, soon(t, s.system, async(func() (int, error) { return ticket.Await(background) })))
		reply, err := message.Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 3}, reply)
		// And the two race.
		done := make(chan int, 1)
		go func() {
			n := 0
			for range 2000 {
				if _, err := bs.touch.Send(background, o, nil).Await(background); err == nil {
					n++
				}
				ticket := bs.touch.Begin(background, o, nil)
				runtime.Gosched()
				if _, err := ticket.Await(background); err == nil {
					n++
				}
			}
			done <- n
		}()
		require.Equal(t, 4000, soon(t, s.system, done))
	})
}

// The failure: a stash that overflowed sent its actor into a crash loop, and a recursion
// over what was stashed overflowed the stack. Here a request that is dropped is made again at
// once, and so drops another.
func TestAQueueThatOverflowsNeitherCrashesItsObjectNorGrowsAStack(t *testing.T) {
	const rounds = 10_000
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, bs.Type, &bay{}, activeobject.Bound(1, activeobject.DropOldest))
		leave := bs.occupied(t, s, o)
		var drops, deepest atomic.Int64
		over := make(chan struct{})
		var again func(int, error) (int, error)
		again = func(_ int, err error) (int, error) {
			if !errors.Is(err, activeobject.ErrFull) {
				return 0, nil
			}
			// One turn takes some 60 frames. Another is on top of it if its request has been dropped before
			// Then is called; that happens a few times in a row at most. If the frames grew from drop to drop,
			// there would be no room for them.
			var pcs [1000]uintptr
			deepest.Store(max(deepest.Load(), int64(runtime.Callers(0, pcs[:]))))
			if n := drops.Add(1); n == rounds {
				close(over)
			} else if n < rounds {
				actor.Then(bs.touch.Send(background, o, nil), again)
			}
			return 0, nil
		}
		for range 2 {
			actor.Then(bs.touch.Send(background, o, nil), again)
		}
		soon(t, s.system, over)
		require.Less(t, deepest.Load(), int64(1000))
		require.Equal(t, 1, bs.touch.Waiting(o))
		leave()
		served, err := bs.touch.Call(background, o, nil)
		require.NoError(t, err)
		require.Equal(t, 2, served, "it served the one that waited, and is the same as before")
		require.EqualValues(t, rounds, bs.touch.Stats(o).Refusals)
	})
}

// The failure: a lock broke when one transaction called the same object twice while
// others did, too.
func TestOneCallerMayCallTheSameObjectTwiceUnderLoad(t *testing.T) {
	const callers, rounds = 8, 100
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		bank := newObject(t, s, bs.Type, &bay{free: 3})
		errs := make(chan error, callers)
		for range callers {
			desk := newObject(t, s, bs.Type, &bay{})
			go func() {
				for range rounds {
					_, err := bs.run.Call(background, desk, func(ctx context.Context) error {
						first, second := bs.touch.Send(ctx, bank, nil), bs.touch.Send(ctx, bank, nil)
						_, err := bs.acquire.Call(ctx, bank, 2)
						_, err2 := bs.release.Call(ctx, bank, 1)
						_, err3 := bs.release.Call(ctx, bank, 1)
						_, err4 := second.Await(ctx)
						_, err5 := first.Await(ctx)
						return errors.Join(err, err2, err3, err4, err5)
					})
					if err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		for range callers {
			require.NoError(t, soon(t, s.system, errs))
		}
		require.NoError(t, bank.View(background, func(b *bay) error {
			require.Equal(t, 3, b.free)
			require.Equal(t, 2*callers*rounds, b.served)
			return nil
		}))
	})
}

// The failure: one busy actor delayed the timers of others. Here many are busy for good,
// in bodies that may block. Other objects are not delayed, and what waits for the busy ones can be
// withdrawn.
func TestBusyObjectsDelayNoOthers(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithCancel(background)
		var left []<-chan outcome[int]
		for range 50 {
			busy := newObject(t, s, bs.Type, &bay{})
			bs.occupied(t, s, busy)
			left = append(left, calling(ctx, busy, bs.touch, nil))
			waiting(t, busy, bs.touch, 1)
		}
		free := newObject(t, s, bs.Type, &bay{})
		for range 20 {
			require.NoError(t, soon(t, s.system, calling(background, free, bs.touch, nil)).err)
			require.NoError(t, soon(t, s.system, awaiting(background, bs.touch.Send(background, free, nil))).err)
			require.NoError(t, soon(t, s.system, calling(background, free, bs.run, func(context.Context) error { return nil })).err)
		}
		cancel()
		for _, c := range left {
			require.ErrorIs(t, soon(t, s.system, c).err, context.Canceled)
		}
	})
}

// The failure: a mailbox bounded to ten kept a processor busy while it was full.
func TestAFullQueueOfTenDoesNothing(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
			o := newObject(t, s, bs.Type, &bay{}, activeobject.Bound(10, overflow), activeobject.Counters())
			var all []<-chan outcome[None]
			for i := range 10 {
				all = append(all, calling(background, o, bs.never, nil))
				waiting(t, o, bs.never, i+1)
			}
			if overflow == activeobject.Wait {
				all = append(all, calling(background, o, bs.never, nil))
				waiting(t, o, bs.never, 11)
			}
			require.NoError(t, o.Do(background, func(*bay) error { return nil }))
			require.NoError(t, o.View(background, func(*bay) error { return nil })) // what has come is settled
			work := func() [2]uint64 { return [2]uint64{o.Explain().Step, uint64(bs.never.Stats(o).Evaluations)} }
			before := work()
			for range 10_000 {
				runtime.Gosched()
			}
			require.Equal(t, before, work(), "%v", overflow)
			<-o.Stop()
			for _, c := range all {
				require.ErrorIs(t, soon(t, s.system, c).err, activeobject.ErrStopped)
			}
		}
	})
}

// The failure: two that needed several permits took them one by one, until each had some
// and waited for the other's.
func TestAcquiringSeveralAtOnceDeadlocksNoCaller(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		for name, options := range map[string][]activeobject.Option{
			"by arrival": nil, "LIFO": {activeobject.ByLatest()}, "rotating": {activeobject.ByRotation()}, "never passed": {activeobject.ByLatest(), activeobject.MaxBypass(1)},
		} {
			o := newObject(t, s, bs.Type, &bay{free: 4}, options...)
			finished := make(chan error, 4)
			for _, n := range []int{4, 4, 3, 2} {
				go func() {
					var err error
					for range 200 {
						_, acquired := bs.acquire.Call(background, o, n)
						runtime.Gosched()
						_, released := bs.release.Call(background, o, n)
						err = errors.Join(err, acquired, released)
					}
					finished <- err
				}()
			}
			for range 4 {
				require.NoError(t, soon(t, s.system, finished), name)
			}
		}
	})
}

// The failure: circles that were none, since an edge of the graph of waits lived until
// the reply was received, and not until it was sent. Here b replies to a, and at once
// calls a, before the body that waits in a can have noticed.
func TestACallThatHasItsReplyIsInNoCircle(t *testing.T) {
	bs := newBays()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 100 {
			a, b := newObject(t, s, bs.Type, &bay{}), newObject(t, s, bs.Type, &bay{})
			leave := bs.occupied(t, s, b)
			asks := calling(background, a, bs.run, func(ctx context.Context) error { _, err := bs.touch.Call(ctx, b, nil); return err })
			waiting(t, b, bs.touch, 1)
			back := calling(background, b, bs.run, func(ctx context.Context) error { _, err := bs.touch.Call(ctx, a, nil); return err })
			waiting(t, b, bs.run, 1)
			leave()
			require.NoError(t, soon(t, s.system, asks).err)
			require.NoError(t, soon(t, s.system, back).err)
			a.Stop()
			b.Stop()
		}
	})
}

// The failure: a key that was never served, since there was always a request for another.
func TestNoKeyIsStarvedByAStreamBeyondTheBound(t *testing.T) {
	const bound, stream = 4, 30
	type quay struct{ log []string }
	typ := activeobject.NewType[quay]("quay")
	write := func(q *quay, name string) (None, error) { q.log = append(q.log, name); return nil, nil }
	land := activeobject.EntryFamily(typ, "land", write, func(name string) string { return name[:1] }).WhenKey("there", func(*quay, string) bool { return true })
	other := activeobject.Procedure(typ, "other", write)
	block := activeobject.ProcedureCtx(typ, "block", func(_ *quay, _ context.Context, f func()) (None, error) { f(); return nil, nil })
	loved := func(c *activeobject.Candidate) bool { return c.Argument != "unloved" }
	everywhere(t, func(t *testing.T, s *scene) {
		for name, policy := range map[string]activeobject.Option{
			"by arrival": activeobject.ByArrival(), "rotating": activeobject.ByRotation(), "LIFO": activeobject.ByLatest(), "by priority": activeobject.ByPriority(),
			"ordered": activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return loved(a) && !loved(b) }),
			"choosing": activeobject.ByChoice(func(eligible []*activeobject.Candidate) int {
				for i, c := range eligible {
					if loved(c) {
						return i
					}
				}
				return 0
			}),
		} {
			state := &quay{}
			o := newObject(t, s, typ, state, policy, activeobject.MaxBypass(bound))
			in, out := make(chan struct{}), make(chan struct{})
			busy := calling(background, o, block, func() { close(in); <-out })
			soon(t, s.system, in)
			all := []activeobject.Future[None]{land.Send(background, o, "unloved")}
			for i := range stream {
				ctx, name := activeobject.WithPriority(background, 1), fmt.Sprintf("%c%d", 'a'+i%5, i)
				if i%4 == 3 {
					all = append(all, other.Send(ctx, o, name))
				} else {
					all = append(all, land.Send(ctx, o, name))
				}
			}
			close(out)
			require.NoError(t, soon(t, s.system, busy).err)
			for _, f := range all {
				require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
			}
			<-o.Stop()
			require.Len(t, state.log, stream+1)
			require.Contains(t, state.log[:bound+1], "unloved", name)
		}
	})
}
