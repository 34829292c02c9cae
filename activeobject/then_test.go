package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

func TestAContinuationFindsTheObjectReleased(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			f := drain.Send(background, o, nil)
			waiting(t, o, drain, 1)
			where := make(chan string, 1)
			g := actor.Then(f, func(n int, err error) (string, error) {
				where <- goroutine()
				again, callErr := ts.runs.Call(background, o, nil)
				return fmt.Sprint(n, again), errors.Join(err, callErr)
			})
			require.False(t, g.Ready())
			require.Empty(t, where)
			ts.fill.Call(background, o, 1)
			require.Equal(t, outcome[string]{"1 1", nil}, soon(t, s.system, awaiting(background, g)))
			soon(t, s.system, g.Done())
			require.NotEqual(t, goroutine(), <-where, "not on the goroutine that had the object")
		}
	})
}

// The owner goes on to the next body when a request has ended. What follows from
// that does not wait for it, and may wait for the object.
func TestAContinuationNeedNotWaitForTheOwner(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		f, b := ts.runs.Send(background, o, nil), newBrake()
		g := actor.Then(f, func(n int, err error) (int, error) { return n + 1, err })
		h := actor.Then(g, func(int, error) (int, error) { return ts.runs.Call(background, o, nil) })
		held := ts.hold.Send(background, o, b)
		waiting(t, o, ts.hold, 1)
		release()
		soon(t, s.system, b.entered)
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, g)))
		require.False(t, held.Ready(), "the object is in use")
		require.False(t, h.Ready())
		close(b.let)
		require.Equal(t, outcome[int]{0, nil}, soon(t, s.system, awaiting(background, h)))
	})
}

func TestContinuationsRunInTheOrderInWhichTheyWereAdded(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		f := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		var order, want []int
		var last activeobject.Future[int]
		for i := range 50 {
			want = append(want, i)
			last = f.OnDone(func(int, error) { order = append(order, i) }) // the race detector watches
		}
		ts.fill.Call(background, o, 1)
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, last)))
		require.Equal(t, want, order)
	})
}

func TestAContinuationOfAReadyFutureRunsAtOnce(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		waited := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		ts.fill.Call(background, o, 2)
		soon(t, s.system, waited.Done())
		var zero activeobject.Future[int]
		for i, f := range []activeobject.Future[int]{zero, waited, actor.Settled(2, nil)} {
			where := ""
			g := actor.Then(f, func(n int, err error) (int, error) { where = goroutine(); return n, err })
			require.Equal(t, goroutine(), where)
			require.True(t, g.Ready())
			n, err := g.Await(background)
			require.Equal(t, outcome[int]{i, nil}, outcome[int]{n, err})
		}
	})
}

func TestEveryWaiterIsToldOnce(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		const waiters = 24
		for range 50 {
			o := newObject(t, s, ts.Type, &dam{})
			f := ts.drain.Send(background, o, nil)
			var told [waiters]atomic.Int32
			var all, ready sync.WaitGroup
			ready.Add(waiters)
			for i := range waiters {
				all.Go(func() {
					ready.Done()
					switch i % 4 {
					case 0:
						if n, err := f.Await(background); n != 1 || err != nil {
							t.Error(n, err)
						}
						told[i].Add(1)
					case 1:
						<-f.Done()
						told[i].Add(1)
					case 2:
						f.OnDone(func(n int, err error) {
							if n != 1 || err != nil {
								t.Error(n, err)
							}
							told[i].Add(1)
						}).Await(background)
					case 3:
						g := actor.Then(f, func(n int, err error) (int, error) { told[i].Add(1); return n, err })
						h := actor.First(g, actor.Then(f, func(int, error) (int, error) { return 0, errors.New("no") }))
						if n, err := h.Await(background); n != 1 || err != nil {
							t.Error(n, err)
						}
					}
				})
			}
			ready.Wait()
			ts.fill.Call(background, o, 1)
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			soon(t, s.system, done)
			for i := range told {
				require.EqualValues(t, 1, told[i].Load())
			}
			<-o.Stop()
		}
	})
}

func TestAContinuationThatFailsFailsItsFutureOnly(t *testing.T) {
	ts := newTanks()
	cause := errors.New("cause")
	everywhere(t, func(t *testing.T, s *scene) {
		for range 3 { // the workers survive
			o := newObject(t, s, ts.Type, &dam{})
			f := ts.drain.Send(background, o, nil)
			waiting(t, o, ts.drain, 1)
			panics := actor.Then(f, func(int, error) (int, error) { panic(cause) })
			exits := actor.Then(f, func(int, error) (int, error) { runtime.Goexit(); return 0, nil })
			heard := f.OnDone(func(int, error) { panic("heard") })
			fails := actor.Then(f, func(n int, _ error) (int, error) { return n, cause })
			after := actor.Then(panics, func(_ int, err error) (int, error) { return 7, err })
			ts.fill.Call(background, o, 1)

			var e *actor.ContinuationError
			err := soon(t, s.system, awaiting(background, panics)).err
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, cause)
			require.Contains(t, string(e.Stack), "then_test.go")
			require.Contains(t, e.Function, "TestAContinuationThatFailsFailsItsFutureOnly")
			require.EqualError(t, err, "sluice: continuation "+e.Function+" panicked: cause")

			err = soon(t, s.system, awaiting(background, exits)).err
			require.ErrorAs(t, err, &e)
			require.Nil(t, e.Value)
			require.EqualError(t, err, "sluice: continuation "+e.Function+" ended its goroutine (runtime.Goexit)")

			require.ErrorAs(t, soon(t, s.system, awaiting(background, heard)).err, &e)
			require.Equal(t, "heard", e.Value)
			require.Equal(t, outcome[int]{1, cause}, soon(t, s.system, awaiting(background, fails)))
			out := soon(t, s.system, awaiting(background, after))
			require.Equal(t, 7, out.result)
			require.ErrorIs(t, out.err, cause)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, f)))
		}
		// The same at once.
		f := actor.Then(actor.Settled(1, nil), func(int, error) (int, error) { panic(cause) })
		_, err := f.Await(background)
		require.ErrorIs(t, err, cause)
	})
}

func TestContinuationsAreToldOfEveryEnd(t *testing.T) {
	ts, ms := newTanks(), newMines()
	same := func(n int, err error) (int, error) { return n, err }
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			ctx, cancel := context.WithCancel(background)
			canceled := actor.Then(drain.Send(ctx, o, nil), same)
			waiting(t, o, drain, 1)
			cancel()
			require.ErrorIs(t, soon(t, s.system, awaiting(background, canceled)).err, context.Canceled)

			withdrawn := actor.Then(drain.Send(background, o, nil), same)
			waiting(t, o, drain, 1)
			require.True(t, withdrawn.Withdraw())
			require.False(t, withdrawn.Withdraw())
			require.ErrorIs(t, soon(t, s.system, awaiting(background, withdrawn)).err, context.Canceled)

			stopped := actor.Then(drain.Send(background, o, nil), same)
			waiting(t, o, drain, 1)
			o.Stop()
			requireStopped(t, o.Name(), soon(t, s.system, awaiting(background, stopped)).err)
		}
		nothing := func(None, error) (int, error) { return 0, nil }
		for _, leave := range []*activeobject.Operation[mine, None, None]{ms.wait, ms.waitCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			var exit *activeobject.ExitError
			f := leave.Send(background, o, nil)
			waiting(t, o, leave, 1)
			left := actor.Then(f, func(_ None, err error) (None, error) { return nil, err })
			actor.Then(f, nothing)
			tread := async(func() (None, error) { return ms.tread.Call(background, o, nil) }) // its goroutine may be lent
			soon(t, s.system, tread)
			require.ErrorAs(t, soon(t, s.system, awaiting(background, left)).err, &exit)
		}
	})
}

func TestContinuationsRunWhenTheSystemCloses(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		f := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		g := actor.All(f, f.OnDone(func(_ int, err error) { panic(err) }))
		require.NoError(t, s.system.Close(background))
		err := soon(t, s.system, awaiting(background, g)).err
		require.ErrorIs(t, err, activeobject.ErrStopped)
		require.ErrorAs(t, err, new(*actor.ContinuationError))
	})
}

func TestAllWaitsForEachAndJoinsTheErrorsInOrder(t *testing.T) {
	ts := newTanks()
	errs := []error{errors.New("first"), errors.New("second")}
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			a, b := newObject(t, s, ts.Type, &dam{}), newObject(t, s, ts.Type, &dam{})
			onA, onB := drain.Send(background, a, nil), drain.Send(background, b, nil)
			waiting(t, a, drain, 1)
			waiting(t, b, drain, 1)
			var zero activeobject.Future[int]
			all := actor.All(onA, zero, onB)
			failing := actor.All(
				actor.Then(onB, func(int, error) (int, error) { return 5, errs[0] }),
				onA,
				actor.Settled(6, errs[1]),
			)
			ts.fill.Call(background, b, 1)
			soon(t, s.system, onB.Done())
			require.False(t, all.Ready())
			require.False(t, failing.Ready(), "it waits for all, though two have failed")
			ts.fill.Call(background, a, 1)
			require.Equal(t, outcome[[]int]{[]int{1, 0, 1}, nil}, soon(t, s.system, awaiting(background, all)))
			out := soon(t, s.system, awaiting(background, failing))
			require.Equal(t, []int{5, 1, 6}, out.result)
			for _, err := range errs {
				require.ErrorIs(t, out.err, err)
			}
			require.EqualError(t, out.err, "first\nsecond")
		}
	})
}

func TestFirstIsTheFirstThatSucceeds(t *testing.T) {
	ts := newTanks()
	bad, worse := errors.New("bad"), errors.New("worse")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			a, b := newObject(t, s, ts.Type, &dam{}), newObject(t, s, ts.Type, &dam{})
			onA, onB := drain.Send(background, a, nil), drain.Send(background, b, nil)
			waiting(t, a, drain, 1)
			waiting(t, b, drain, 1)
			failsA := actor.Then(onA, func(int, error) (int, error) { return 0, worse })
			first := actor.First(failsA, actor.Settled(0, bad), onB)
			require.False(t, first.Ready())
			ts.fill.Call(background, a, 1)
			soon(t, s.system, failsA.Done())
			require.False(t, first.Ready(), "a failure decides nothing")
			ts.fill.Call(background, b, 1)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, first)))

			ready, err := actor.First(actor.Settled(0, bad), actor.Settled(1, nil), onA, actor.Settled(2, nil)).Await(background)
			require.Equal(t, outcome[int]{1, nil}, outcome[int]{ready, err}, "of several the one that comes first in the arguments")
		}
	})
}

func TestFirstFailsIfAllDo(t *testing.T) {
	ts := newTanks()
	bad := errors.New("bad")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ts.Type, &dam{}), newObject(t, s, ts.Type, &dam{}, activeobject.Name("b"))
		onA, onB := ts.drain.Send(background, a, nil), ts.drain.Send(background, b, nil)
		waiting(t, a, ts.drain, 1)
		waiting(t, b, ts.drain, 1)
		first := actor.First(onA, actor.Settled(0, bad), onB)
		b.Stop()
		soon(t, s.system, onB.Done())
		require.True(t, onA.Withdraw())
		err := soon(t, s.system, awaiting(background, first)).err
		require.ErrorIs(t, err, bad)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, activeobject.ErrStopped)
		require.EqualError(t, err, "context canceled\nbad\nsluice: b has stopped", "in the order of the arguments")
	})
}

func TestWithdrawOfManyWithdrawsThoseThatWait(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, first := range []bool{true, false} {
			a, b := newObject(t, s, ts.Type, &dam{}), newObject(t, s, ts.Type, &dam{})
			brake := newBrake()
			none := func(None, error) (int, error) { return 9, nil }
			runs := actor.Then(ts.hold.Send(background, a, brake), none)
			soon(t, s.system, brake.entered)
			waits := []activeobject.Future[int]{ts.drain.Send(background, b, nil), ts.drainCtx.Send(background, b, nil)}
			waiting(t, b, ts.drain, 1)
			waiting(t, b, ts.drainCtx, 1)
			var withdraw func() bool
			var done func() error
			if first {
				f := actor.First(waits[0], runs, waits[1])
				withdraw, done = f.Withdraw, func() error { return soon(t, s.system, awaiting(background, f)).err }
			} else {
				f := actor.All(waits[0], runs, waits[1])
				withdraw, done = f.Withdraw, func() error { return soon(t, s.system, awaiting(background, f)).err }
			}
			require.True(t, withdraw())
			require.False(t, withdraw(), "only what runs is left")
			require.Zero(t, ts.drain.Waiting(b)+ts.drainCtx.Waiting(b))
			for _, f := range waits {
				require.ErrorIs(t, soon(t, s.system, awaiting(background, f)).err, context.Canceled)
			}
			close(brake.let)
			if err := done(); first {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
			require.False(t, withdraw(), "it has ended")
			ts.fill.Call(background, b, 5)
			require.Zero(t, ts.ran(b))
		}
	})
}

func TestFuturesThatMakeNoSenseAreATypedError(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		f := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		g := actor.Then(f, func(n int, err error) (int, error) { return n, err })
		var nothing func(int, error) (int, error)
		check := func(want actor.FutureError, err error) {
			t.Helper()
			var e *actor.FutureError
			require.ErrorAs(t, err, &e)
			require.Equal(t, want, *e)
			require.EqualError(t, err, "sluice: "+want.Function+": "+want.Problem)
		}
		_, err := actor.All[int]().Await(background)
		check(actor.FutureError{Function: "All", Problem: "there are no futures"}, err)
		_, err = actor.First[int]().Await(background)
		check(actor.FutureError{Function: "First", Problem: "there are no futures"}, err)
		_, err = actor.All(f, g, f).Await(background)
		check(actor.FutureError{Function: "All", Problem: "futures 0 and 2 are the same"}, err)
		_, err = actor.First(f, g, g).Await(background)
		check(actor.FutureError{Function: "First", Problem: "futures 1 and 2 are the same"}, err)
		_, err = actor.Then(f, nothing).Await(background)
		check(actor.FutureError{Function: "Then", Problem: "the function is nil"}, err)
		_, err = f.OnDone(nil).Await(background)
		check(actor.FutureError{Function: "OnDone", Problem: "the function is nil"}, err)
		require.False(t, f.Ready(), "nothing has happened to it")
		ts.fill.Call(background, o, 1)
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, g)))

		var zero activeobject.Future[int]
		all, err := actor.All(zero, zero).Await(background)
		require.Equal(t, outcome[[]int]{[]int{0, 0}, nil}, outcome[[]int]{all, err}, "futures without a request are not the same")
	})
}

func TestAwaitOfWhatFollowsFromOnesOwnObjectFails(t *testing.T) {
	ps := newPlaces()
	type future = activeobject.Future[None]
	same := func(_ None, err error) (None, error) { return nil, err }
	none := func(_ []None, err error) (None, error) { return nil, err }
	everywhere(t, func(t *testing.T, s *scene) {
		home, away := ps.at(t, s, "home"), ps.at(t, s, "away")
		for name, derive := range map[string]func(ctx context.Context, back, far future) future{
			"then":         func(_ context.Context, back, _ future) future { return actor.Then(back, same) },
			"all":          func(_ context.Context, back, far future) future { return actor.Then(actor.All(far, back), none) },
			"first of one": func(_ context.Context, back, _ future) future { return actor.First(back) },
			"first of those": func(_ context.Context, back, far future) future {
				return actor.First(actor.Then(actor.All(back, far), none))
			},
			"first left": func(_ context.Context, back, far future) future {
				return actor.First(actor.Settled[activeobject.None](nil, errors.New("lost")), back)
			},
		} {
			_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
				back, far := ps.visit.Send(ctx, home, nil), ps.enter.Send(ctx, away, nil)
				defer back.Withdraw()
				defer far.Withdraw()
				f := derive(ctx, back, far)
				_, err := f.Await(ctx)
				if f.Ready() {
					t.Error(name, "is ready")
				}
				return err
			})
			requireCircle(t, err, "home.visit waits for home.visit", "home.visit", "home.visit")
		}
	})
}

func TestAFirstOfWhichOneMayEndIsNoDeadlock(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		home, away := ps.at(t, s, "home"), ps.at(t, s, "away")
		let := make(chan struct{})
		called := calling(background, home, ps.visit, func(ctx context.Context) error {
			back := ps.visit.Send(ctx, home, nil)
			far := ps.visit.Send(ctx, away, func(context.Context) error { <-let; return nil })
			_, err := actor.First(back, far).Await(ctx)
			return err
		})
		eventually(t, "it waits for both", func() bool {
			r := home.Explain().Running
			return len(r) == 1 && len(r[0].Waits) == 2
		})
		close(let)
		require.NoError(t, soon(t, s.system, called).err)
	})
}

// The circle is closed neither by a wait nor by a call: what was not in it fails.
func TestAFirstIsADeadlockWhenTheLastWayOutIsLost(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, nested := range []bool{false, true} {
			home, away := ps.at(t, s, fmt.Sprint("home", nested)), ps.at(t, s, fmt.Sprint("away", nested))
			called := calling(background, home, ps.visit, func(ctx context.Context) error {
				back, far := ps.visit.Send(ctx, home, nil), ps.enter.Send(ctx, away, nil)
				defer back.Withdraw()
				first := actor.First(back, far)
				if nested {
					never := ps.enter.Send(ctx, away, nil)
					_, err := actor.All(first, never).Await(ctx)
					return err
				}
				_, err := first.Await(ctx)
				return err
			})
			eventually(t, "it waits for both", func() bool {
				r := home.Explain().Running
				return len(r) == 1 && len(r[0].Waits) >= 2
			})
			if nested {
				// One of the two is the way out; the other is needed in any case.
				eventually(t, "both are there", func() bool { return ps.enter.Waiting(away) == 2 })
			}
			away.Stop()
			visit := home.Name() + ".visit"
			requireCircle(t, soon(t, s.system, called).err, visit+" waits for "+visit, visit, visit)
			_, err := ps.touch.Call(background, home, nil)
			require.NoError(t, err)
			<-home.Stop()
		}
	})
}

func TestAFirstIsADeadlockWhenEveryWayLeadsBack(t *testing.T) {
	// a waits for b or c. The body in b calls a, which is no circle: c may end. Then
	// the body in c does the same.
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b, c := ps.at(t, s, "a"), ps.at(t, s, "b"), ps.at(t, s, "c")
		go1, go2 := make(chan struct{}), make(chan struct{})
		inside := make(chan struct{}, 2)
		through := func(let chan struct{}) visit {
			return func(ctx context.Context) error {
				inside <- struct{}{}
				<-let
				_, err := ps.touch.Call(ctx, a, nil)
				return err
			}
		}
		inB, inC := calling(background, b, ps.visit, through(go1)), calling(background, c, ps.visit, through(go2))
		soon(t, s.system, inside)
		soon(t, s.system, inside)
		inA := calling(background, a, ps.visit, func(ctx context.Context) error {
			_, err := actor.First(ps.touch.Send(ctx, b, nil), ps.touch.Send(ctx, c, nil)).Await(ctx)
			return err
		})
		eventually(t, "it waits for both", func() bool {
			r := a.Explain().Running
			return len(r) == 1 && len(r[0].Waits) == 2
		})
		close(go1)
		eventually(t, "b waits for a", func() bool { // as a link, and not only in its queue
			r := b.Explain().Running
			return len(r) == 1 && len(r[0].Waits) == 1
		})
		close(go2)
		err := soon(t, s.system, inC).err
		requireCircle(t, err, "c.visit waits for a.touch, a.visit waits for b.touch, b.visit waits for a.touch, a.visit waits for c.touch",
			"c.visit", "a.touch", "a.visit", "b.touch", "b.visit", "a.touch", "a.visit", "c.touch")
		require.NoError(t, soon(t, s.system, inA).err, "c is free again")
		require.NoError(t, soon(t, s.system, inB).err)
	})
}

// Of two futures one leads back, and the other ends at any time, before, during or
// after the wait for the first begins. That is never a deadlock.
func TestThereAreNoPhantomDeadlocksAmongAlternatives(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		const rounds = 300
		var all sync.WaitGroup
		for i := range 3 {
			home, away := ps.at(t, s, fmt.Sprint("home", i)), ps.at(t, s, fmt.Sprint("away", i))
			all.Go(func() {
				for range rounds {
					_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
						far := ps.visit.Send(ctx, away, nil)
						back := ps.visit.Send(ctx, home, nil)
						defer back.Withdraw()
						first := actor.First(back, actor.Then(far, func(_ None, err error) (None, error) { return nil, err }))
						_, err := first.Await(ctx)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		soon(t, s.system, done)
	})
}

// A future that takes part in one race after the other does not remember them.
func TestARaceThatIsOverIsForgotten(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		never := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		race := func() {
			quick := ts.drainCtx.Send(background, o, nil)
			f := actor.First(never, actor.Then(quick, func(int, error) (int, error) { return 1, nil }))
			quick.Withdraw()
			f.Await(background)
		}
		race()
		for range 100 {
			race()
		}
		before := heap()
		for range 5000 {
			race()
		}
		// Threads of requests that were withdrawn may have yet to end.
		eventually(t, "they are forgotten", func() bool { return heap()-before < 5000*100 })
		require.True(t, never.Withdraw())
	})
}

func TestALongChainOfFuturesEnds(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		f := ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		const long = 10_000
		for range long {
			f = actor.Then(f, func(n int, err error) (int, error) { return n + 1, err })
		}
		ts.fill.Call(background, o, 1)
		require.Equal(t, outcome[int]{1 + long, nil}, soon(t, s.system, awaiting(background, f)))
	})
}

func TestFuturesAreJoinedByManyAtTheSameTime(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 20 {
			o := newObject(t, s, ts.Type, &dam{})
			var futures []activeobject.Future[int]
			for i := range 16 {
				futures = append(futures, ts.entries()[i%2].Send(background, o, nil))
			}
			results := make([]<-chan outcome[[]int], 8)
			firsts := make([]<-chan outcome[int], 8)
			for i := range results {
				results[i] = async(func() ([]int, error) { return actor.All(futures...).Await(background) })
				firsts[i] = async(func() (int, error) { return actor.First(futures...).Await(background) })
			}
			for range futures {
				ts.fill.Call(background, o, 1)
			}
			for i := range results {
				out := soon(t, s.system, results[i])
				require.NoError(t, out.err)
				slices.Sort(out.result)
				for n, got := range out.result {
					require.Equal(t, n+1, got, "each ran once")
				}
				require.NoError(t, soon(t, s.system, firsts[i]).err)
			}
		}
	})
}

// A future that is used twice, the result of that again, and so on, is behind the
// last in more ways than can be counted.
func TestAFutureMayBeBehindAnotherInManyWays(t *testing.T) {
	ps := newPlaces()
	same := func(_ None, err error) (None, error) { return nil, err }
	everywhere(t, func(t *testing.T, s *scene) {
		home, away := ps.at(t, s, "home"), ps.at(t, s, "away")
		deep := func(f activeobject.Future[None]) activeobject.Future[None] {
			for range 60 {
				f = actor.First(actor.Then(actor.All(f, actor.Then(f, same)), func(_ []None, err error) (None, error) { return nil, err }), f)
			}
			return f
		}
		_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
			f := deep(ps.touch.Send(ctx, home, nil))
			_, err := f.Await(ctx)
			if !f.Withdraw() {
				t.Error("the request is still there to be withdrawn")
			}
			return err
		})
		var d *activeobject.DeadlockError
		require.ErrorAs(t, err, &d)
		require.Equal(t, "home.visit", d.Circle[0].Body)
		called := calling(background, home, ps.visit, func(ctx context.Context) error {
			_, err := deep(ps.enter.Send(ctx, away, nil)).Await(ctx)
			return err
		})
		eventually(t, "it waits", func() bool {
			r := home.Explain().Running
			return len(r) == 1 && len(r[0].Waits) > 0
		})
		away.Stop()
		require.ErrorIs(t, soon(t, s.system, called).err, activeobject.ErrStopped)
	})
}
