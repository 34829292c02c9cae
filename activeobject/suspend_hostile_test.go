package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/stretchr/testify/require"
)

// A close that begins while the result is on its way to a suspended body waits for the body, as one that begins before or after does.
func TestAResultThatComesDuringACloseIsNotLost(t *testing.T) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	lost := 0
	const n = 3000
	for range n {
		o := activeobject.Must(activeobject.New(system, depots, &depot{}))
		p := actor.NewPromise[int]()
		f := fetch.Send(ctx, o, p.Future())
		for len(o.Explain().Waiting) == 0 {
			runtime.Gosched()
		}
		var wg sync.WaitGroup
		wg.Go(func() { p.Settle(3, nil) })
		wg.Go(func() { o.Close(ctx) })
		wg.Wait()
		if _, err := f.Await(ctx); err != nil {
			require.ErrorIs(t, err, mailbox.ErrStopped)
			lost++
		}
	}
	require.Zero(t, lost, "of %d", n)
}

// A condition that is false twice is not said to be impure because the body is woken in between.
func TestAnAuditedConditionIsNotImpureAsTheBodyIsWoken(t *testing.T) {
	type box struct{}
	boxes := activeobject.NewType[box]("box")
	var asked atomic.Int32
	var end context.CancelFunc
	wait := activeobject.ProcedureCtx(boxes, "wait", func(b *box, ctx context.Context, _ activeobject.None) (activeobject.None, error) {
		return nil, activeobject.SuspendUntil(ctx, "never", func() bool {
			if asked.Add(1) == 2 { // the first is the body's own; this is the first of the two of the audit
				end() // stands for a context that ends at this moment
				for range 10_000 {
					runtime.Gosched()
				}
			}
			return false
		})
	}).Suspends()
	ctx, cancel := context.WithCancel(context.Background())
	end = cancel
	system := actor.NewSystem()
	defer system.Close(context.Background())
	o := activeobject.Must(activeobject.New(system, boxes, &box{}, objecttest.Checked(silent{t})))
	_, err := wait.Call(ctx, o, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// silent is a test that is not failed by a finding.
type silent struct{ testing.TB }

func (s silent) Errorf(format string, args ...any) { s.Logf(format, args...) }
func (s silent) Error(args ...any)                 { s.Log(args...) }

// A caller's goroutine that dies while its body is suspended does not take the body with it unseen.
func TestABodyIsNotForgottenWhenItsCallersGoroutineEnds(t *testing.T) {
	type box struct {
		suspended, open, done bool
		cleaned               *atomic.Bool
	}
	boxes := activeobject.NewType[box]("box")
	wait := activeobject.ProcedureCtx(boxes, "wait", func(b *box, ctx context.Context, _ activeobject.None) (activeobject.None, error) {
		defer b.cleaned.Store(true)
		b.suspended = true
		err := activeobject.SuspendUntil(ctx, "open", func() bool { return b.open })
		b.done = true
		return nil, err
	}).Suspends()
	exits := activeobject.Entry(boxes, "exits", activeobject.Arg(func(b *box, n int) {})).WhenArg("exiting", func(b *box, n int) bool {
		if b.suspended {
			runtime.Goexit()
		}
		return false
	})
	open := activeobject.Procedure(boxes, "open", activeobject.Plain(func(b *box) { b.open = true }))
	for name, options := range map[string][]activeobject.Option{"callers": nil, "synchronizer": {synchronizer.Callers()}} {
		t.Run(name, func(t *testing.T) {
			ctx, system := context.Background(), actor.NewSystem()
			b := &box{cleaned: new(atomic.Bool)}
			o := activeobject.Must(activeobject.New(system, boxes, b, options...))
			f := exits.Send(ctx, o, 1)
			for exits.Waiting(o) == 0 {
				runtime.Gosched()
			}
			died := make(chan bool)
			go func() {
				defer close(died)
				wait.Call(ctx, o, nil)
			}()
			_, err := f.Await(ctx)
			require.Error(t, err)
			open.Call(ctx, o, nil)
			<-died
			require.Eventually(t, b.cleaned.Load, 2*time.Second, time.Millisecond, "the body has neither gone on nor been ended")
			system.Close(ctx)
		})
	}
}

// A call is not said to be in a circle by a body that is about to give up its wait.
func TestNoFalseCircleAsASuspendedBodyIsWoken(t *testing.T) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	a := activeobject.Must(activeobject.New(system, depots, &depot{}))
	b := activeobject.Must(activeobject.New(system, depots, &depot{}))
	deadline := time.Now().Add(4 * time.Second)
	rounds := 0
	for time.Now().Before(deadline) {
		rounds++
		own, cancel := context.WithCancel(ctx)
		stop := new(atomic.Bool)
		other := callIt.Send(ctx, b, func(ctx context.Context) (int, error) { // the other calls back, as it may
			for i := 0; !stop.Load(); i++ {
				if i == 20 {
					cancel()
				}
				if _, err := deliver.Call(ctx, a, 1); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
		suspendFor.Call(own, a, func(context.Context) actor.Future[int] { return other })
		stop.Store(true)
		_, err := other.Await(ctx)
		require.NoError(t, err, "round %d: nothing waits for deliver that deliver waits for", rounds)
		cancel()
	}
}

// A body whose own goroutine waits for others meanwhile is in circles like any other when it goes on.
func TestACircleThatGoingOnClosesIsFound(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		a, b := open(&depot{}), open(&depot{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		gate, callBack, begun := make(chan struct{}), make(chan struct{}), make(chan struct{})
		f := forking.Send(ctx, a, func(ctx context.Context, s *depot) (int, error) {
			done := make(chan error, 1)
			go func() {
				_, err := callIt.Call(ctx, b, func(ctx context.Context) (int, error) {
					close(begun)
					<-callBack
					_, err := deliver.Call(ctx, a, 1)
					return 0, err
				})
				done <- err
			}()
			if err := activeobject.SuspendUntil(ctx, "in stock", func() bool { return s.stock > 0 }); err != nil {
				return 0, err
			}
			return 0, <-done
		})
		<-begun
		synctest.Wait()
		x := holding.Send(ctx, a, func(s *depot) { s.stock++; <-gate })
		synctest.Wait()
		close(callBack)
		synctest.Wait()
		close(gate)
		_, err := x.Await(ctx)
		require.NoError(t, err)
		_, err = f.Await(ctx)
		var circle *mailbox.DeadlockError
		require.ErrorAs(t, err, &circle)
	})
}

var (
	forking = activeobject.ProcedureCtx(depots, "fork", func(s *depot, ctx context.Context, f func(context.Context, *depot) (int, error)) (int, error) {
		return f(ctx, s)
	}).Suspends()
	holding = activeobject.ProcedureCtx(depots, "hold", func(s *depot, ctx context.Context, f func(*depot)) (int, error) {
		f(s)
		return 0, nil
	})
	looking = activeobject.FunctionCtx(depots, "look", func(s *depot, ctx context.Context, f func(context.Context, *depot) (int, error)) (int, error) {
		return f(ctx, s)
	}).Suspends()
)

// A body lends its thread while it waits, also if a goroutine that it has started has been waiting since before it was suspended.
func TestABodyLendsItsThreadAfterItWasSuspended(t *testing.T) {
	for _, suspends := range []bool{false, true} {
		t.Run(fmt.Sprint("suspends ", suspends), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				system := actor.NewSystem()
				defer system.Close(t.Context())
				pool := poolOf(system, 1)
				a := activeobject.Must(synchronizer.New(system, depots, &depot{}, synchronizer.Workers(pool)))
				b := activeobject.Must(synchronizer.New(system, depots, &depot{}, synchronizer.Workers(pool)))
				never := actor.NewPromise[int]()
				f := forking.Send(ctx, a, func(ctx context.Context, s *depot) (int, error) {
					go never.Future().Await(ctx)
					time.Sleep(time.Second) // in the bubble: until it waits
					if suspends {
						if err := activeobject.SuspendUntil(ctx, "in stock", func() bool { return s.stock > 0 }); err != nil {
							return 0, err
						}
					}
					_, err := deliver.Call(ctx, b, 1)
					return 0, err
				})
				synctest.Wait()
				time.Sleep(2 * time.Second)
				if suspends {
					deliver.Call(ctx, a, 1)
				}
				_, err := f.Await(ctx)
				require.NoError(t, err)
				never.Settle(0, nil)
			})
		})
	}
}

// An audit does not look at an object that the request has left.
func TestAnAuditDoesNotLookAtAnObjectThatTheRequestHasLeft(t *testing.T) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	a := activeobject.Must(activeobject.New(system, depots, &depot{}, objecttest.Checked(t)))
	b := activeobject.Must(activeobject.New(system, depots, &depot{}, objecttest.Checked(t)))
	var wg sync.WaitGroup
	stop := new(atomic.Bool)
	wg.Go(func() {
		for !stop.Load() {
			deliver.Call(ctx, a, 1)
		}
	})
	for range 200 {
		f := looking.Send(ctx, a, func(ctx context.Context, s *depot) (int, error) {
			return forking.RequeueTo(b, func(ctx context.Context, s *depot) (int, error) {
				n := s.stock
				return n, activeobject.SuspendUntil(ctx, "more", func() bool { return s.stock > n })
			})
		})
		for !f.Ready() {
			deliver.Call(ctx, b, 1)
			runtime.Gosched()
		}
		_, err := f.Await(ctx)
		require.NoError(t, err)
	}
	stop.Store(true)
	wg.Wait()
}

// The bounds of an object hold also after rests have failed.
func TestBoundsHoldAfterRestsHaveFailed(t *testing.T) {
	type box struct{ n int }
	boxes := activeobject.NewType[box]("box")
	wait := activeobject.ProcedureCtx(boxes, "wait", func(b *box, ctx context.Context, _ activeobject.None) (activeobject.None, error) {
		return nil, activeobject.SuspendUntil(ctx, "positive", func() bool {
			if b.n < 0 {
				panic("negative")
			}
			return b.n > 0
		})
	}).Suspends()
	set := activeobject.Procedure(boxes, "set", activeobject.Arg(func(b *box, n int) { b.n = n }))
	take := activeobject.Entry(boxes, "take", activeobject.Plain(func(b *box) {})).When("ten", func(b *box) bool { return b.n == 10 })
	synctest.Test(t, func(t *testing.T) {
		ctx, system := t.Context(), actor.NewSystem()
		defer system.Close(ctx)
		o := activeobject.Must(activeobject.New(system, boxes, &box{}, activeobject.Bound(2, activeobject.Refuse)))
		for range 5 {
			wait.Send(ctx, o, nil)
			synctest.Wait()
		}
		require.Len(t, o.Explain().Waiting, 5)
		set.Call(ctx, o, -1)
		set.Call(ctx, o, 0)
		require.Empty(t, o.Explain().Waiting)
		one, two, three := take.Send(ctx, o, nil), take.Send(ctx, o, nil), take.Send(ctx, o, nil)
		synctest.Wait()
		require.False(t, one.Ready())
		require.False(t, two.Ready())
		require.True(t, three.Ready())
		set.Call(ctx, o, 10)
	})
}

// A ticket is redeemed once.
func TestATicketOfASuspendedBodyIsRedeemedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, system := t.Context(), actor.NewSystem()
		defer system.Close(ctx)
		o := activeobject.Must(activeobject.New(system, depots, &depot{}))
		ticket := collect.Begin(ctx, o, 1)
		deliver.Call(ctx, o, 1)
		_, err := ticket.Await(ctx)
		require.NoError(t, err)
		own, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_, err = ticket.Await(own)
		require.Error(t, err)
		require.False(t, errors.Is(err, context.DeadlineExceeded))
	})
}

// An object that has ended is not touched any more, by deferred functions of suspended bodies either.
func TestTheEndOfAnObjectWaitsForSuspendedBodies(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		s := &depot{}
		o := open(s)
		f := forking.Send(t.Context(), o, func(ctx context.Context, s *depot) (int, error) {
			defer func() {
				time.Sleep(time.Second)
				s.cleaned.Add(1)
			}()
			return 0, activeobject.SuspendUntil(ctx, "never", func() bool { return false })
		})
		synctest.Wait()
		require.NoError(t, o.Close(t.Context()))
		require.EqualValues(t, 1, s.cleaned.Load(), "the object has ended, and its last body has not")
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, mailbox.ErrStopped)
	})
}

// The state of an object that is kept belongs to one body at a time, also while a body is ended by its condition.
func TestDeferredFunctionsOfAnEndedBodyDoNotRaceWithOthers(t *testing.T) {
	ctx, system := context.Background(), actor.NewSystem(actor.Logger(slog.New(slog.DiscardHandler)))
	defer system.Close(ctx)
	o := activeobject.Must(activeobject.New(system, depots, &depot{}))
	for range 200 {
		f := forking.Send(ctx, o, func(ctx context.Context, s *depot) (int, error) {
			s.orders++
			defer func() { s.orders-- }() // as bodies do
			return 0, activeobject.SuspendUntil(ctx, "in stock", func() bool {
				if s.stock < 0 {
					panic("negative")
				}
				return false
			})
		})
		for len(o.Explain().Waiting) == 0 {
			runtime.Gosched()
		}
		deliver.Call(ctx, o, -1)
		_, err := f.Await(ctx)
		require.Error(t, err)
		deliver.Call(ctx, o, 1)
		n, err := begun.Call(ctx, o, nil)
		require.NoError(t, err)
		require.Zero(t, n, "the request has ended, and its body has not")
	}
}

// The operations of rests cannot be named, nor get into the way of those that are declared.
func TestRestsHaveNoNameThatIsDeclared(t *testing.T) {
	type box struct{ n int }
	boxes := activeobject.NewType[box]("box")
	wait := activeobject.ProcedureCtx(boxes, "wait", func(b *box, ctx context.Context, _ activeobject.None) (int, error) {
		return 1, activeobject.SuspendUntil(ctx, "positive", func() bool { return b.n > 0 })
	}).Suspends()
	other := activeobject.Procedure(boxes, "wait (rest)", activeobject.Result(func(b *box) int { b.n++; return 2 }))
	synctest.Test(t, func(t *testing.T) {
		ctx, system := t.Context(), actor.NewSystem()
		defer system.Close(ctx)
		o := activeobject.Must(activeobject.New(system, boxes, &box{}))
		f := wait.Send(ctx, o, nil)
		synctest.Wait()
		n, err := other.Call(ctx, o, nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		n, err = f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Len(t, boxes.Operations(), 2)
	})
}

// A suspended body answers a message, and its rest takes none.
func TestASuspendedBodyAnswersAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, system := t.Context(), actor.NewSystem(actor.Logger(slog.New(slog.DiscardHandler)))
		defer system.Close(ctx)
		o := activeobject.Must(activeobject.New(system, depots, &depot{}, activeobject.Name("depot")))
		f := system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "collect", Argument: 2}, time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"collect (rest): in stock"}, explained(o))
		rest := system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "collect (rest)", Argument: 2}, time.Hour)
		answer, err := rest.Result()
		require.NoError(t, err)
		require.IsType(t, &actor.Reply{}, answer)
		require.Error(t, answer.(*actor.Reply).Err)
		deliver.Call(ctx, o, 3)
		answer, err = f.Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 1}, answer)
	})
}

// A suspended body takes no thread, at a monitor either.
func TestASuspendedBodyTakesNoThreadOfAMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		system := actor.NewSystem()
		defer system.Close(t.Context())
		o := activeobject.Must(synchronizer.New(system, depots, &depot{}, synchronizer.Monitor(), synchronizer.Workers(poolOf(system, 1))))
		f := collect.Send(ctx, o, 1)
		synctest.Wait()
		_, err := deliver.Call(ctx, o, 1)
		require.NoError(t, err)
		_, err = f.Await(ctx)
		require.NoError(t, err)
	})
}

type bigDepot struct {
	depot
	extra int
}

// Bodies of derived types suspend as those of their bases do.
func TestDerivedBodiesSuspend(t *testing.T) {
	base := activeobject.NewType[depot]("base")
	take := activeobject.ProcedureCtx(base, "take", (*depot).collect).Suspends()
	add := activeobject.Procedure(base, "add", activeobject.Arg(func(s *depot, n int) { s.stock += n }))
	big := activeobject.Derive(base, "big", func(b *bigDepot) *depot { return &b.depot })
	over := activeobject.Derive(base, "over", func(b *bigDepot) *depot { return &b.depot })
	activeobject.In(over, take).OverrideCtx(func(b *bigDepot, ctx context.Context, n int) (int, error) {
		b.extra++
		return b.collect(ctx, n)
	}).Suspends()
	rigidly := activeobject.Derive(base, "rigid", func(b *bigDepot) *depot { return &b.depot })
	activeobject.In(rigidly, take).OverrideCtx(func(b *bigDepot, ctx context.Context, n int) (int, error) { return b.collect(ctx, n) })
	for _, typ := range []*activeobject.Type[bigDepot]{big, over, rigidly} {
		t.Run(typ.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, system := t.Context(), actor.NewSystem()
				defer system.Close(ctx)
				o := activeobject.Must(activeobject.New(system, typ, &bigDepot{}))
				f := activeobject.In(typ, take).Send(ctx, o, 2)
				synctest.Wait()
				activeobject.In(typ, add).Call(ctx, o, 2)
				_, err := f.Await(ctx)
				if typ == rigidly {
					require.ErrorAs(t, err, new(*activeobject.SuspendError))
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// A circle is broken, whichever of its waits comes last: also that of the caller of a body that has suspended by then.
func TestACircleThatACallerOfASuspendedBodyClosesIsBroken(t *testing.T) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * runtime.GOMAXPROCS(0) { // so that goroutines are preempted anywhere
		go func() {
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	for end, i := time.Now().Add(10*time.Second), 0; time.Now().Before(end); i++ {
		x, a := activeobject.Must(activeobject.New(system, depots, &depot{})), activeobject.Must(activeobject.New(system, depots, &depot{}))
		own, cancel := context.WithTimeout(ctx, 3*time.Second)
		begun := make(chan struct{})
		outer := make(chan error, 1)
		go func() {
			_, err := callIt.Call(own, x, func(ctx context.Context) (int, error) {
				return forking.Call(ctx, a, func(ctx context.Context, s *depot) (int, error) {
					close(begun)
					for len(a.Explain().Waiting) == 0 {
						runtime.Gosched()
					}
					return 0, activeobject.SuspendUntil(ctx, "in stock", func() bool { return s.stock > 0 })
				})
			})
			outer <- err
		}()
		<-begun
		_, err := callIt.Call(own, a, func(ctx context.Context) (int, error) { _, err := deliver.Call(ctx, x, 1); return 0, err })
		require.NotErrorIs(t, err, context.DeadlineExceeded, "round %d: the circle stands", i)
		deliver.Call(own, a, 1)
		<-outer
		cancel()
		x.Stop()
		a.Stop()
	}
}
