package transaction_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

type purse struct{ coins, fallen int }

var (
	purses = activeobject.NewType[purse]("purse").Copies(func(p *purse) *purse { c := *p; return &c })
	pay    = activeobject.ProcedureCtx(purses, "pay", func(p *purse, ctx context.Context, n int) (int, error) {
		err := activeobject.SuspendUntil(ctx, "covered", func() bool {
			if p.coins < 0 {
				panic("negative")
			}
			return p.coins >= n
		})
		if err == nil {
			p.coins -= n
		}
		return p.coins, err
	}).Suspends()
	drop = activeobject.ProcedureCtx(purses, "drop", func(p *purse, ctx context.Context, _ guards.None) (guards.None, error) {
		p.fallen++ // the first half of what is to be done
		err := activeobject.SuspendUntil(ctx, "not negative", func() bool {
			if p.coins < 0 {
				panic("negative")
			}
			return p.coins > 0
		})
		return nil, err
	}).Suspends()
	earn  = activeobject.Procedure(purses, "earn", activeobject.Arg(func(p *purse, n int) { p.coins += n }))
	tear  = activeobject.Procedure(purses, "tear", activeobject.Plain(func(p *purse) { panic("torn") }))
	coins = activeobject.Function(purses, "coins", activeobject.Result(func(p *purse) purse { return *p }))
)

// purseModels are the ways in which the objects of these tests take part.
var purseModels = map[string][]activeobject.Option{
	"active object": nil,
	"no fast path":  {activeobject.NoFastPath()},
	"pooled":        {activeobject.PooledThreads()},
	"dedicated":     {activeobject.DedicatedThread()},
	"synchronizer":  {synchronizer.Callers()},
	"goroutines":    {synchronizer.Goroutines()},
	"monitor":       {synchronizer.Monitor()},
}

// A restart ends a transaction of which a body is suspended at the object.
func TestARestartEndsATransactionOfASuspendedBody(t *testing.T) {
	for name, options := range purseModels {
		t.Run(name, func(t *testing.T) {
			ctx, system := context.Background(), actor.NewSystem()
			manager, err := transaction.NewManager(system)
			require.NoError(t, err)
			options := append(options[:len(options):len(options)], activeobject.Supervisor(proto.RestartingSupervisorStrategy()))
			o, err := activeobject.NewFrom(system, purses, func() (*purse, error) { return &purse{}, nil }, options...)
			require.NoError(t, err)
			inner, tx, err := manager.Begin(ctx)
			require.NoError(t, err)
			f := pay.Send(inner, o, 5)
			for len(o.Explain().Waiting) == 0 {
				runtime.Gosched()
			}
			_, err = tear.Call(inner, o, nil)
			require.Error(t, err)
			own, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err = f.Await(own)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the suspended body neither goes on nor is ended")
			_, err = coins.Call(own, o, nil)
			require.NoError(t, err, "the object is not restarted")
			require.NoError(t, tx.Rollback(own))
			system.Close(own)
		})
	}
}

// A body that has begun and is ended in the middle dooms its transaction, like one that panics.
func TestABodyThatItsConditionEndsDoomsItsTransaction(t *testing.T) {
	for name, options := range purseModels {
		t.Run(name, func(t *testing.T) {
			ctx, system := context.Background(), actor.NewSystem()
			defer system.Close(ctx)
			manager, err := transaction.NewManager(system)
			require.NoError(t, err)
			o, err := activeobject.New(system, purses, &purse{}, options...)
			require.NoError(t, err)
			inner, tx, err := manager.Begin(ctx)
			require.NoError(t, err)
			f := drop.Send(inner, o, nil)
			for len(o.Explain().Waiting) == 0 {
				runtime.Gosched()
			}
			_, err = earn.Call(inner, o, -1)
			require.NoError(t, err)
			_, err = f.Await(ctx)
			require.Error(t, err)
			require.Error(t, tx.Commit(ctx), "half of a body is committed")
			p, err := coins.Call(ctx, o, nil)
			require.NoError(t, err)
			require.Equal(t, purse{}, p)
		})
	}
}

// What a suspended body did before others of its transaction is undone after them, by the copy of the state.
func TestStepsAreUndoneInReverseOrder(t *testing.T) {
	sums := activeobject.NewType[purse]("sum").Copies(func(p *purse) *purse { c := *p; return &c })
	add := activeobject.ProcedureCtx(sums, "add", func(p *purse, ctx context.Context, n int) (guards.None, error) {
		p.coins += n
		return nil, activeobject.SuspendUntil(ctx, "fallen", func() bool { return p.fallen > 0 })
	}).Suspends()
	double := activeobject.Procedure(sums, "double", activeobject.Plain(func(p *purse) { p.coins *= 2; p.fallen++ })).
		Undo(func(p *purse, _ guards.None, _ guards.None) { p.coins /= 2; p.fallen-- })
	require.Panics(t, func() { add.Undo(func(*purse, int, guards.None) {}) }, "it would be undone after what was built upon it")
	require.Panics(t, func() {
		activeobject.ProcedureCtx(sums, "both", func(*purse, context.Context, guards.None) (guards.None, error) { return nil, nil }).
			Undo(func(*purse, guards.None, guards.None) {}).Suspends()
	})
	look := activeobject.Function(sums, "look", activeobject.Result(func(p *purse) purse { return *p }))
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	manager, err := transaction.NewManager(system)
	require.NoError(t, err)
	o, err := activeobject.New(system, sums, &purse{})
	require.NoError(t, err)
	inner, tx, err := manager.Begin(ctx)
	require.NoError(t, err)
	f := add.Send(inner, o, 3)
	for len(o.Explain().Waiting) == 0 {
		runtime.Gosched()
	}
	_, err = double.Call(inner, o, nil)
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(ctx))
	p, err := look.Call(ctx, o, nil)
	require.NoError(t, err)
	require.Equal(t, purse{}, p)
}

// Transactions with bodies that suspend end, and what they leave adds up.
func TestTransactionsWithSuspendedBodies(t *testing.T) {
	for name, options := range purseModels {
		t.Run(name, func(t *testing.T) {
			ctx, system := context.Background(), actor.NewSystem()
			defer system.Close(ctx)
			manager, err := transaction.NewManager(system, transaction.Lease(50*time.Millisecond))
			require.NoError(t, err)
			var all []*activeobject.Object[purse]
			for range 3 {
				o, err := activeobject.New(system, purses, &purse{coins: 5}, options...)
				require.NoError(t, err)
				all = append(all, o)
			}
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					for range 25 {
						own, cancel := context.WithTimeout(ctx, 5*time.Second)
						n := 1 + rand.IntN(4)
						manager.Run(own, func(ctx context.Context) error {
							from, to := all[rand.IntN(3)], all[rand.IntN(3)]
							f := pay.Send(ctx, from, n)
							_, err := earn.Call(ctx, to, n)
							if err != nil {
								return err
							}
							switch rand.IntN(4) {
							case 0:
								return errors.New("given up")
							case 1: // commit while it is suspended, or not
								short, cancel := context.WithTimeout(ctx, time.Millisecond)
								defer cancel()
								_, err = f.Await(short)
								return err
							}
							_, err = f.Await(ctx)
							return err
						})
						require.NoError(t, own.Err(), "a transaction does not end")
						cancel()
					}
				})
			}
			wg.Wait()
			sum := 0
			for _, o := range all {
				p, err := coins.Call(ctx, o, nil)
				require.NoError(t, err)
				sum += p.coins
			}
			require.Equal(t, 15, sum)
		})
	}
}
