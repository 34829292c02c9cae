package barrier

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Parties that are canceled whenever it is, resets whenever they come, and actions that fail,
// panic or end their goroutines: none waits for ever, and with an action, which counts the rounds,
// as many pass as these have room for, but for those that are canceled.
func TestRoundsDoNotMixWhicheverPartyLeaves(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		for _, parties := range []int{1, 2, 3} {
			for _, withAction := range []bool{false, true} {
				var good, passes, late atomic.Int64
				var action func(context.Context) error
				if withAction {
					action = func(context.Context) error {
						switch rand.IntN(8) {
						case 0:
							return errors.New("failed")
						case 1:
							panic("panicked")
						case 2:
							runtime.Goexit()
						}
						good.Add(1)
						return nil
					}
				}
				b, err := newTestCyclic(system, parties, action, options)
				require.NoError(t, err)
				var all sync.WaitGroup
				stop := make(chan struct{})
				for range parties + 2 {
					all.Go(func() {
						for range 300 {
							var one sync.WaitGroup
							one.Go(func() { // it may be ended
								ctx, cancel := context.WithCancel(background)
								defer cancel()
								switch rand.IntN(4) {
								case 0:
									go func() { runtime.Gosched(); cancel() }()
								case 1:
									f := b.Awaits().Send(ctx, nil)
									if rand.IntN(2) == 0 {
										go f.Withdraw()
									}
									if _, err := f.Await(background); err == nil {
										passes.Add(1)
									} else if errors.Is(err, context.Canceled) {
										late.Add(1)
									}
									return
								}
								switch err := b.Await(ctx); {
								case err == nil:
									passes.Add(1)
								case errors.Is(err, context.Canceled):
									late.Add(1)
								}
							})
							one.Wait()
						}
					})
				}
				var resetter sync.WaitGroup
				resetter.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							if is, err := b.Broken(); err == nil && is || rand.IntN(64) == 0 || b.Waiting() > 0 && rand.IntN(16) == 0 {
								b.Resets().Send(background, nil)
							}
							runtime.Gosched()
						}
					}
				})
				all.Wait()
				close(stop)
				resetter.Wait()
				if withAction {
					require.LessOrEqual(t, passes.Load(), good.Load()*int64(parties))
					require.GreaterOrEqual(t, passes.Load()+late.Load(), good.Load()*int64(parties))
				}
			}
		}
	})
}
