package transaction_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// Money is neither made nor lost, however many transfers run at once and end badly: at every consistent
// read, and in the end.
func TestTransfersKeepTheSum(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		const size, initial = 64, 100
		callers, each := 64, 30
		if testing.Short() {
			callers, each = 16, 20
		}
		var all []*activeobject.Object[Account]
		for range size {
			all = append(all, b.restarting(initial))
		}
		sum := func(ctx context.Context) (n int, err error) {
			err = b.manager.Run(ctx, func(ctx context.Context) error {
				n = 0
				for _, i := range rand.Perm(size) {
					one, err := balance.Call(ctx, all[i], nil)
					if err != nil {
						return err
					}
					n += one
				}
				return nil
			})
			return n, err
		}
		var outcomes [4]atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					from, to, amount := all[rand.IntN(size)], all[rand.IntN(size)], rand.IntN(30)
					ctx, cancel := context.WithCancel(ctx)
					kind := rand.IntN(40)
					err := contained(func() error {
						return b.manager.Run(ctx, func(ctx context.Context) error {
							ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond) // for a guard that stays false
							defer cancel()
							if kind == 0 {
								sent := deposit.Send(ctx, to, amount)
								if err := withdraw.Do(ctx, from, amount); err != nil {
									return err
								}
								_, err := sent.Await(ctx)
								return err
							}
							if err := withdraw.Do(ctx, from, amount); err != nil {
								return err
							}
							switch kind {
							case 1:
								return errBroken
							case 2:
								cancel()
							case 5:
								panic(errBroken)
							case 6:
								if rand.IntN(4) == 0 {
									_ = smash.Do(ctx, to, nil) // which has the account restarted
								}
							case 3:
								if n, err := sum(ctx); err == nil {
									require.Equal(t, size*initial-amount, n)
								}
							}
							return deposit.Do(ctx, to, amount)
						})
					})
					cancel()
					switch {
					case err == nil:
						outcomes[0].Add(1)
					default:
						outcomes[1].Add(1)
					}
					if kind == 4 {
						n, err := sum(context.Background())
						require.NoError(t, err)
						require.Equal(t, size*initial, n)
						outcomes[2].Add(1)
					}
				}
			})
		}
		wg.Wait()
		n, err := sum(ctx)
		require.NoError(t, err)
		require.Equal(t, size*initial, n)
		t.Log("committed, rolled back, sums:", outcomes[0].Load(), outcomes[1].Load(), outcomes[2].Load())
		for range b.manager.Transactions() {
			t.Fatal("a transaction is open")
		}
	})
}

// contained returns the error of f, or that it has panicked with.
func contained(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = value.(error)
		}
	}()
	return f()
}
