package transaction_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// No deadlock stays, whatever transactions and others call, as long as what is posted is awaited.
func TestNoDeadlockStays(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		manager, err := transaction.NewManager(b.system, transaction.Lease(0), transaction.Attempts(1000))
		require.NoError(t, err)
		typ := activeobject.NewType[Account]("chain")
		var all []*activeobject.Object[Account]
		var chains []*activeobject.Object[Account]
		through := activeobject.ProcedureCtx(typ, "through", func(a *Account, ctx context.Context, n int) (guards.None, error) {
			return nil, deposit.Do(ctx, all[n], 1)
		}).Undo(func(*Account, int, guards.None) {})
		plain := activeobject.ProcedureCtx(typ, "plain", func(a *Account, ctx context.Context, n int) (guards.None, error) {
			_, err := balance.Call(ctx, all[n], nil)
			return nil, err
		}).Undo(func(*Account, int, guards.None) {})
		for range 4 {
			all = append(all, b.account(0))
			o, err := activeobject.New(b.system, typ, &Account{}, b.options...)
			require.NoError(t, err)
			chains = append(chains, o)
		}
		each := 40
		if testing.Short() {
			each = 10
		}
		var sum, failures atomic.Int64 // of deposits, and of calls that a deadlock has failed
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				for range each {
					n := 0
					err := manager.Run(ctx, func(ctx context.Context) error {
						n = 0
						for range 1 + rand.IntN(4) {
							o, c := all[rand.IntN(len(all))], chains[rand.IntN(len(chains))]
							var err error
							switch rand.IntN(7) {
							case 0:
								_, err = balance.Call(ctx, o, nil)
							case 1:
								if err = deposit.Do(ctx, o, 1); err == nil {
									n++
								}
							case 2:
								_, err = deposit.Send(ctx, o, 1).Await(ctx)
								if err == nil {
									n++
								}
							case 3:
								f, g := deposit.Send(ctx, o, 1), deposit.Send(ctx, all[rand.IntN(len(all))], 1)
								_, e1 := f.Await(ctx)
								_, e2 := g.Await(ctx)
								if err = errors.Join(e1, e2); err == nil {
									n += 2
								}
							case 4:
								if err = through.Do(ctx, c, rand.IntN(len(all))); err == nil {
									n++
								}
							case 5:
								_, err = plain.Send(ctx, c, rand.IntN(len(all))).Await(ctx)
							case 6:
								var errs [2]error
								var par sync.WaitGroup
								for i := range errs {
									par.Go(func() { errs[i] = deposit.Do(ctx, all[rand.IntN(len(all))], 1) })
								}
								par.Wait()
								if err = errors.Join(errs[:]...); err == nil {
									n += 2
								}
							}
							if err != nil {
								return err
							}
						}
						if rand.IntN(8) == 0 {
							return errBroken
						}
						return nil
					})
					if err == nil {
						sum.Add(int64(n))
					} else if !errors.Is(err, errBroken) {
						failures.Add(1)
						t.Log(err)
					}
				}
			})
		}
		for range 3 {
			wg.Go(func() {
				for range 60 {
					switch c := chains[rand.IntN(len(chains))]; rand.IntN(3) {
					case 0:
						if err := through.Do(ctx, c, rand.IntN(len(all))); err == nil {
							sum.Add(1)
						} else {
							failures.Add(1)
						}
					case 1:
						_ = plain.Do(ctx, c, rand.IntN(len(all)))
					case 2:
						_ = deposit.Do(ctx, all[0], 0)
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for _, o := range all {
			n, err := balance.Call(ctx, o, nil)
			require.NoError(t, err)
			total += n
		}
		require.EqualValues(t, sum.Load(), total)
	})
}
