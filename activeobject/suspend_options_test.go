package activeobject_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/stretchr/testify/require"
)

// Whatever an object's options, requests with bodies that suspend end, and the stock adds up.
func TestSuspensionGoesWithAllOptions(t *testing.T) {
	type options = []activeobject.Option
	nothing := activeobject.Interceptor{Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error { return body() }, Done: func(context.Context, activeobject.Intercepted, error) {}}
	bases := map[string]func(*actor.System) options{
		"callers":      func(*actor.System) options { return nil },
		"pooled":       func(*actor.System) options { return options{activeobject.PooledThreads()} },
		"dedicated":    func(*actor.System) options { return options{activeobject.DedicatedThread()} },
		"dispatcher":   func(s *actor.System) options { return options{activeobject.Dispatcher(poolOf(s, 1))} },
		"synchronizer": func(*actor.System) options { return options{synchronizer.Callers()} },
		"workers":      func(s *actor.System) options { return options{synchronizer.Workers(poolOf(s, 2))} },
		"hard limit":   func(*actor.System) options { return options{synchronizer.Callers(), synchronizer.HardLimit(1)} },
		"compatible":   func(*actor.System) options { return options{synchronizer.Callers(), synchronizer.AllCompatible()} },
		"reentrant":    func(*actor.System) options { return options{synchronizer.Goroutines(), synchronizer.Reentrant()} },
		"monitor":      func(*actor.System) options { return options{synchronizer.Monitor()} },
		"actors":       func(*actor.System) options { return options{synchronizer.Actors(2)} },
	}
	more := map[string]options{
		"plain":        nil,
		"rotation":     {activeobject.ByRotation()},
		"latest":       {activeobject.ByLatest()},
		"order":        {activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Operation < b.Operation })},
		"choice":       {activeobject.ByChoice(func(all []*activeobject.Candidate) int { return len(all) - 1 })},
		"deadline":     {activeobject.ByDeadline(), activeobject.MaxBypass(1)},
		"refuse":       {activeobject.Bound(3, activeobject.Refuse)},
		"drop":         {activeobject.Bound(3, activeobject.DropOldest), activeobject.MaxBypass(2)},
		"wait":         {activeobject.Bound(2, activeobject.Wait)},
		"watched":      {activeobject.Counters(), activeobject.Watchdog(time.Millisecond), activeobject.Log(func(activeobject.Event) {})},
		"intercepted":  {activeobject.Interceptors(nothing)},
		"no fast path": {activeobject.NoFastPath(), activeobject.MaxBypass(0)},
	}
	for base, first := range bases {
		for name, then := range more {
			t.Run(base+"/"+name, func(t *testing.T) {
				ctx, system := context.Background(), actor.NewSystem(actor.Logger(slog.New(slog.DiscardHandler)))
				d := &depot{}
				o, err := activeobject.New(system, depots, d, append(first(system), then...)...)
				if err != nil {
					t.Skip(err)
				}
				var put, got atomic.Int64
				var wg sync.WaitGroup
				own, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				fine := func(err error) bool {
					var refused *mailbox.RefusedError
					return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, activeobject.ErrFull) || errors.As(err, &refused)
				}
				for c := range 8 {
					wg.Go(func() {
						random := rand.New(rand.NewPCG(uint64(c), 7))
						for range 60 {
							n := 1 + random.IntN(3)
							short, cancel := context.WithTimeout(own, time.Duration(random.IntN(500))*time.Microsecond)
							var err error
							took := n
							switch random.IntN(10) {
							case 0:
								_, err = collect.Call(short, o, n)
							case 1:
								_, err = collect.Send(short, o, n).Await(own)
							case 2:
								_, err = collect.Try(short, o, n)
							case 3:
								ticket := collect.Begin(short, o, n)
								_, err = ticket.Await(own)
							case 4:
								c := collect.Case(o, n)
								i := 0
								if i, err = activeobject.Select(short, c, deliver.Case(o, 0)); i != 0 {
									took = 0
								} else if err == nil {
									_, err = c.Result()
								}
							case 5:
								_, err = peek.Call(short, o, n)
								took = 0
							case 6:
								p := actor.NewPromise[int]()
								f := fetch.Send(short, o, p.Future())
								go p.Settle(n, nil)
								if _, err = f.Await(own); err == nil {
									took = -n
								}
							default:
								_, err = deliver.Call(own, o, n)
								took = -n
							}
							cancel()
							if err != nil {
								if !fine(err) {
									t.Errorf("%v", err)
								}
								continue
							}
							if took < 0 {
								put.Add(int64(-took))
							} else {
								got.Add(int64(took))
							}
						}
					})
				}
				wg.Wait()
				require.NoError(t, own.Err(), "%v", o.Explain())
				for len(o.Explain().Waiting)+len(o.Explain().Running) > 0 {
					require.NoError(t, own.Err(), "%v", o.Explain())
					runtime.Gosched()
				}
				left, err := peek.Call(ctx, o, 0)
				require.NoError(t, err)
				require.EqualValues(t, put.Load(), got.Load()+int64(left))
				require.NoError(t, system.Close(own))
			})
		}
	}
}
