package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/stretchr/testify/require"
)

// depot has a body that waits in the middle until there is enough in stock.
type depot struct {
	stock   int
	orders  int // whose bodies have begun
	cleaned atomic.Int32
}

var (
	depots  = activeobject.NewType[depot]("depot")
	collect = activeobject.ProcedureCtx(depots, "collect", (*depot).collect).Suspends()
	deliver = activeobject.Procedure(depots, "deliver", activeobject.Arg(func(s *depot, n int) { s.stock += n }))
	begun   = activeobject.Function(depots, "begun", activeobject.Result(func(s *depot) int { return s.orders }))
	fetch   = activeobject.ProcedureCtx(depots, "fetch", (*depot).fetch).Suspends()
	rigid   = activeobject.ProcedureCtx(depots, "rigid", func(s *depot, ctx context.Context, _ activeobject.None) (activeobject.None, error) {
		return nil, activeobject.SuspendUntil(ctx, "never", func() bool { return false })
	})
	spoilt = activeobject.ProcedureCtx(depots, "spoilt", func(s *depot, ctx context.Context, how string) (activeobject.None, error) {
		s.orders++
		defer s.cleaned.Add(1)
		err := activeobject.SuspendUntil(ctx, "in stock", func() bool {
			if s.stock < 0 {
				panic("negative")
			}
			return s.stock > 0
		})
		switch how {
		case "panic":
			panic("spoilt")
		case "exit":
			runtime.Goexit()
		}
		return nil, err
	}).Suspends()
)

func (s *depot) collect(ctx context.Context, n int) (int, error) {
	s.orders++
	defer s.cleaned.Add(1)
	if err := activeobject.SuspendUntil(ctx, "in stock", func() bool { return s.stock >= n }); err != nil {
		return 0, err
	}
	s.stock -= n
	return s.stock, nil
}

func (s *depot) fetch(ctx context.Context, f actor.Future[int]) (int, error) {
	s.orders++
	defer s.cleaned.Add(1)
	n, err := activeobject.SuspendFor(ctx, f)
	s.stock += n
	return s.stock, err
}

// depotModels runs a test in a bubble for each model, with a function that makes a depot.
func depotModels(t *testing.T, test func(t *testing.T, system *actor.System, open func(s *depot) *activeobject.Object[depot])) {
	newObject, newSynchronizer := activeobject.New[depot], synchronizer.New[depot]
	for _, m := range []struct {
		name string
		make func(*actor.System, *activeobject.Type[depot], *depot, ...activeobject.Option) (*activeobject.Object[depot], error)
		with func(*actor.System) []activeobject.Option
	}{
		{"callers", newObject, func(*actor.System) []activeobject.Option { return nil }},
		{"pooled", newObject, func(*actor.System) []activeobject.Option { return []activeobject.Option{activeobject.PooledThreads()} }},
		{"dedicated", newObject, func(*actor.System) []activeobject.Option {
			return []activeobject.Option{activeobject.DedicatedThread()}
		}},
		{"pool of one", newObject, func(s *actor.System) []activeobject.Option {
			return []activeobject.Option{activeobject.Dispatcher(poolOf(s, 1))}
		}},
		{"synchronizer", newSynchronizer, func(*actor.System) []activeobject.Option { return nil }},
		{"synchronizer, pool of one", newSynchronizer, func(s *actor.System) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(poolOf(s, 1))}
		}},
		{"synchronizer, limit of one", newSynchronizer, func(*actor.System) []activeobject.Option {
			return []activeobject.Option{synchronizer.HardLimit(1)}
		}},
		{"synchronizer, actors", newSynchronizer, func(*actor.System) []activeobject.Option { return []activeobject.Option{synchronizer.Actors(1)} }},
		{"monitor", newSynchronizer, func(*actor.System) []activeobject.Option { return []activeobject.Option{synchronizer.Monitor()} }},
	} {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				system := actor.NewSystem()
				defer system.Close(t.Context())
				test(t, system, func(s *depot) *activeobject.Object[depot] {
					return activeobject.Must(m.make(system, depots, s, m.with(system)...))
				})
			})
		})
	}
}

// explained returns how a depot explains what waits.
func explained(o *activeobject.Object[depot]) (all []string) {
	for _, w := range o.Explain().Waiting {
		all = append(all, w.Operation+": "+w.Reason.Guard)
	}
	return all
}

func TestOthersRunWhileABodyIsSuspended(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		ctx, o := t.Context(), open(&depot{})
		five := collect.Send(ctx, o, 5)
		three := collect.Send(ctx, o, 3)
		synctest.Wait()
		n, err := begun.Call(ctx, o, nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []string{"collect (rest): in stock", "collect (rest): in stock"}, explained(o))
		deliver.Call(ctx, o, 4)
		left, err := three.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, left)
		require.False(t, five.Ready())
		deliver.Call(ctx, o, 4)
		left, err = five.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 0, left)
	})
}

func TestABodyThatNeedNotWaitDoesNotSuspend(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		left, err := collect.Call(t.Context(), open(&depot{stock: 7}), 5)
		require.NoError(t, err)
		require.Equal(t, 2, left)
	})
}

func TestABodySuspendsUntilAFutureHasItsResult(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		ctx, o := t.Context(), open(&depot{})
		p := actor.NewPromise[int]()
		fetched := fetch.Send(ctx, o, p.Future())
		synctest.Wait()
		require.Equal(t, []string{"fetch (rest): the result of a future"}, explained(o))
		deliver.Call(ctx, o, 1)
		p.Settle(10, nil)
		n, err := fetched.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 11, n)
	})
}

// A body may wait for a request to its own object, which another order would make a deadlock.
func TestABodySuspendsForARequestToItsOwnObject(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		ctx, o := t.Context(), open(&depot{})
		five := collect.Send(ctx, o, 5)
		fetched := fetch.Send(ctx, o, five)
		synctest.Wait()
		deliver.Call(ctx, o, 6)
		n, err := fetched.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

func TestTheEndOfTheContextLetsASuspendedBodyGoOn(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		s := &depot{}
		o := open(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := collect.Call(ctx, o, 5)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, s.cleaned.Load())
		sent := collect.Send(ctx, o, 5)
		_, err = sent.Await(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		p := actor.NewPromise[int]()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = fetch.Call(ctx, o, p.Future())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, o.Explain().Waiting)
		p.Settle(1, nil)
	})
}

func TestASuspendedBodyDoesNotGoOnWhenItsObjectStops(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		s := &depot{}
		o := open(s)
		five := collect.Send(t.Context(), o, 5)
		synctest.Wait()
		o.Stop()
		_, err := five.Await(t.Context())
		require.ErrorIs(t, err, mailbox.ErrStopped)
		var ran *mailbox.RequeuedError
		require.True(t, errors.As(err, &ran))
		require.Equal(t, []string{o.Name() + ".collect"}, ran.Ran)
		synctest.Wait()
		require.EqualValues(t, 1, s.cleaned.Load())
	})
}

func TestCloseWaitsForABodyThatSuspendsForAResult(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		o := open(&depot{})
		p := actor.NewPromise[int]()
		fetched := fetch.Send(t.Context(), o, p.Future())
		five := collect.Send(t.Context(), o, 5)
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- o.Close(t.Context()) }()
		synctest.Wait()
		require.Empty(t, closed)
		p.Settle(3, nil)
		n, err := fetched.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n)
		_, err = five.Await(t.Context())
		require.ErrorIs(t, err, mailbox.ErrStopped)
		require.NoError(t, <-closed)
	})
}

func TestABodyPanicsIfItsConditionDoes(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		s := &depot{}
		o := open(s)
		f := spoilt.Send(t.Context(), o, "")
		synctest.Wait()
		deliver.Call(t.Context(), o, -1)
		_, err := f.Await(t.Context())
		var failed *mailbox.PanicError
		require.ErrorAs(t, err, &failed)
		synctest.Wait()
		require.EqualValues(t, 1, s.cleaned.Load())
	})
}

func TestABodyMayFailAfterItWasSuspended(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		s := &depot{}
		o := open(s)
		for _, how := range []string{"panic", "exit"} {
			f := spoilt.Send(t.Context(), o, how)
			synctest.Wait()
			deliver.Call(t.Context(), o, 1)
			_, err := f.Await(t.Context())
			require.Error(t, err)
			n, err := begun.Call(t.Context(), o, nil)
			require.NoError(t, err)
			require.NotZero(t, n)
			deliver.Call(t.Context(), o, -1)
		}
	})
}

func TestABodySuspendsOnlyIfItsOperationSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		defer system.Close(t.Context())
		o := activeobject.Must(activeobject.New(system, depots, &depot{}))
		_, err := rigid.Call(t.Context(), o, nil)
		var wrong *activeobject.SuspendError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, o.Name()+".rigid", wrong.Body)
		require.ErrorAs(t, activeobject.SuspendUntil(t.Context(), "x", func() bool { return true }), &wrong)
		var argument *activeobject.ArgumentError
		require.ErrorAs(t, activeobject.SuspendUntil(t.Context(), "", func() bool { return true }), &argument)
		require.ErrorAs(t, activeobject.SuspendUntil(t.Context(), "x", nil), &argument)
	})
}

func poolOf(system *actor.System, n int) *synchronizer.Pool {
	p, err := synchronizer.NewPool(system, n)
	if err != nil {
		panic(err)
	}
	return p
}
