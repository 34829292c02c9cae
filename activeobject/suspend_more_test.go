package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/stretchr/testify/require"
)

// source gives a body a future.
type source func(ctx context.Context) actor.Future[int]

var (
	suspendFor = activeobject.ProcedureCtx(depots, "suspend for", func(s *depot, ctx context.Context, from source) (int, error) {
		return activeobject.SuspendFor(ctx, from(ctx))
	}).Suspends()
	awaitIt = activeobject.ProcedureCtx(depots, "await", func(s *depot, ctx context.Context, from source) (int, error) {
		return from(ctx).Await(ctx)
	})
	callIt = activeobject.ProcedureCtx(depots, "call", func(s *depot, ctx context.Context, f func(context.Context) (int, error)) (int, error) {
		return f(ctx)
	})
	peek = activeobject.FunctionCtx(depots, "peek", func(s *depot, ctx context.Context, n int) (int, error) {
		err := activeobject.SuspendUntil(ctx, "in stock", func() bool { return s.stock >= n })
		return s.stock, err
	}).Suspends()
)

func TestACircleThroughSuspendedBodiesIsFound(t *testing.T) {
	type opener = func(*depot) *activeobject.Object[depot]
	for name, test := range map[string]func(t *testing.T, ctx context.Context, open opener){
		"itself": func(t *testing.T, ctx context.Context, open opener) {
			a, own := open(&depot{}), make(chan actor.Future[int], 1)
			f := suspendFor.Send(ctx, a, func(context.Context) actor.Future[int] { return <-own })
			own <- f
			_, err := f.Await(ctx)
			var circle *mailbox.DeadlockError
			require.ErrorAs(t, err, &circle)
		},
		"two that suspend": func(t *testing.T, ctx context.Context, open opener) {
			a, b := open(&depot{}), open(&depot{})
			toA, toB := make(chan actor.Future[int], 1), make(chan actor.Future[int], 1)
			fa := suspendFor.Send(ctx, a, func(context.Context) actor.Future[int] { return <-toA })
			fb := suspendFor.Send(ctx, b, func(context.Context) actor.Future[int] { return <-toB })
			toA <- fb
			synctest.Wait()
			toB <- fa
			_, errA := fa.Await(ctx)
			_, errB := fb.Await(ctx)
			var circle *mailbox.DeadlockError
			require.ErrorAs(t, errors.Join(errA, errB), &circle)
		},
		"the caller's object": func(t *testing.T, ctx context.Context, open opener) {
			outer, a := open(&depot{}), open(&depot{})
			_, err := callIt.Call(ctx, outer, func(ctx context.Context) (int, error) {
				return suspendFor.Call(ctx, a, func(ctx context.Context) actor.Future[int] {
					return callIt.Send(ctx, outer, func(context.Context) (int, error) { return 1, nil })
				})
			})
			var circle *mailbox.DeadlockError
			require.ErrorAs(t, err, &circle)
			require.Empty(t, a.Explain().Waiting)
		},
		"a later wait": func(t *testing.T, ctx context.Context, open opener) {
			a, b := open(&depot{}), open(&depot{})
			toB := make(chan actor.Future[int], 1)
			fb := awaitIt.Send(ctx, b, func(context.Context) actor.Future[int] { return <-toB })
			fa := suspendFor.Send(ctx, a, func(context.Context) actor.Future[int] { return fb })
			synctest.Wait()
			toB <- fa
			_, errA := fa.Await(ctx)
			_, errB := fb.Await(ctx)
			var circle *mailbox.DeadlockError
			require.ErrorAs(t, errors.Join(errA, errB), &circle)
		},
	} {
		t.Run(name, func(t *testing.T) {
			depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
				test(t, t.Context(), open)
			})
		})
	}
}

// A suspended body is not in the way of what calls back into its object.
func TestASuspendedBodyMayBeCalledBack(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		a, b := open(&depot{}), open(&depot{})
		n, err := suspendFor.Call(t.Context(), a, func(ctx context.Context) actor.Future[int] {
			return callIt.Send(ctx, b, func(ctx context.Context) (int, error) {
				if _, err := deliver.Call(ctx, a, 3); err != nil {
					return 0, err
				}
				return 7, nil
			})
		})
		require.NoError(t, err)
		require.Equal(t, 7, n)
	})
}

func TestARestartForsakesSuspendedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		defer system.Close(t.Context())
		old, made := &depot{}, 0
		restart := proto.NewOneForOneStrategy(3, time.Minute, decide(proto.RestartDirective))
		o, err := activeobject.NewFrom(system, depots, func() (*depot, error) {
			if made++; made == 1 {
				return old, nil
			}
			return &depot{}, nil
		}, activeobject.Supervisor(restart))
		require.NoError(t, err)
		waiting := collect.Send(t.Context(), o, 5)
		synctest.Wait()
		failed := spoilt.Send(t.Context(), o, "panic")
		deliver.Call(t.Context(), o, 1)
		_, err = failed.Await(t.Context())
		require.Error(t, err)
		_, err = waiting.Await(t.Context())
		var lost *mailbox.StateLostError
		require.ErrorAs(t, err, &lost)
		synctest.Wait()
		require.EqualValues(t, 2, old.cleaned.Load())
		deliver.Call(t.Context(), o, 9)
		require.Equal(t, 1, old.stock)
		n, err := collect.Call(t.Context(), o, 5)
		require.NoError(t, err)
		require.Equal(t, 4, n)
	})
}

// Once a body has begun, a Try and a Select wait for its end, however it suspends.
func TestABodySuspendsHoweverItIsAskedFor(t *testing.T) {
	depotModels(t, func(t *testing.T, system *actor.System, open func(*depot) *activeobject.Object[depot]) {
		ctx, o := t.Context(), open(&depot{})
		for name, ask := range map[string]func() (int, error){
			"call":  func() (int, error) { return collect.Call(ctx, o, 1) },
			"try":   func() (int, error) { return collect.Try(ctx, o, 1) },
			"send":  func() (int, error) { return collect.Send(ctx, o, 1).Await(ctx) },
			"begin": func() (int, error) { ticket := collect.Begin(ctx, o, 1); return ticket.Await(ctx) },
			"select": func() (int, error) {
				_, err := activeobject.Select(ctx, collect.Case(o, 1))
				return 0, err
			},
			"tell": func() (int, error) { collect.Tell(ctx, o, 1); return 0, nil },
		} {
			done := make(chan error, 1)
			go func() {
				_, err := ask()
				done <- err
			}()
			synctest.Wait()
			require.Equal(t, []string{"collect (rest): in stock"}, explained(o), name)
			deliver.Call(ctx, o, 1)
			require.NoError(t, <-done, name)
			synctest.Wait()
			require.Empty(t, explained(o), name)
		}
	})
}

func TestInterceptorsAreAroundASuspendedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		defer system.Close(t.Context())
		var seen []string
		note := activeobject.Interceptor{Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
			seen = append(seen, "before "+r.Operation)
			err := body()
			seen = append(seen, "after "+r.Operation)
			return err
		}}
		o := activeobject.Must(activeobject.New(system, depots, &depot{}, activeobject.Interceptors(note)))
		f := collect.Send(t.Context(), o, 1)
		synctest.Wait()
		deliver.Call(t.Context(), o, 1)
		_, err := f.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"before collect", "before deliver", "after deliver", "after collect"}, seen)
	})
}

// What others change while a function is suspended is not the function's doing.
func TestAnAuditLooksAtTheTurnsOfASuspendedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		defer system.Close(t.Context())
		o := activeobject.Must(activeobject.New(system, depots, &depot{}, objecttest.Checked(t)))
		f := peek.Send(t.Context(), o, 2)
		synctest.Wait()
		deliver.Call(t.Context(), o, 2)
		n, err := f.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

// Each request is accounted for, whatever happens to it and to its object; and the stock adds up.
func TestSuspendedRequestsAreAccountedFor(t *testing.T) {
	for name, make := range map[string]func(*actor.System, *depot) *activeobject.Object[depot]{
		"active object": func(s *actor.System, d *depot) *activeobject.Object[depot] {
			return activeobject.Must(activeobject.New(s, depots, d))
		},
		"pooled": func(s *actor.System, d *depot) *activeobject.Object[depot] {
			return activeobject.Must(activeobject.New(s, depots, d, activeobject.PooledThreads()))
		},
		"synchronizer": func(s *actor.System, d *depot) *activeobject.Object[depot] {
			return activeobject.Must(synchronizer.New(s, depots, d))
		},
		"pool": func(s *actor.System, d *depot) *activeobject.Object[depot] {
			return activeobject.Must(synchronizer.New(s, depots, d, synchronizer.Workers(poolOf(s, 2))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, system, d := t.Context(), actor.NewSystem(), &depot{}
			o := make(system, d)
			var got, put, failed atomic.Int64
			var wg sync.WaitGroup
			const callers, each = 16, 200
			for c := range callers {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(c), 1))
					for i := range each {
						n := 1 + random.IntN(3)
						switch {
						case i%2 == c%2:
							deliver.Call(ctx, o, n)
							put.Add(int64(n))
						default:
							own, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(300))*time.Microsecond)
							var err error
							switch random.IntN(3) {
							case 0:
								_, err = collect.Call(own, o, n)
							case 1:
								_, err = collect.Send(own, o, n).Await(ctx)
							default:
								_, err = peek.Call(own, o, n)
								n = 0
							}
							if err == nil {
								got.Add(int64(n))
							} else {
								require.ErrorIs(t, err, context.DeadlineExceeded)
								failed.Add(1)
							}
							cancel()
						}
					}
				})
			}
			wg.Wait()
			left, err := peek.Call(ctx, o, 0)
			require.NoError(t, err)
			require.EqualValues(t, put.Load(), got.Load()+int64(left), fmt.Sprint(failed.Load(), " failed"))
			require.Empty(t, o.Explain().Waiting)
			require.NoError(t, system.Close(ctx))
		})
	}
}

// A test can play what happens while a body is suspended, turn by turn.
func TestASuspendedBodyIsSteppedThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, steps := t.Context(), objecttest.NewStepper(t)
		o := activeobject.Must(activeobject.New(objecttest.NewSystem(t), depots, &depot{}, activeobject.Dispatcher(steps)))
		f := collect.Send(ctx, o, 2)
		require.True(t, steps.Step())
		require.Equal(t, []string{"collect (rest): in stock"}, explained(o))
		for want := range 2 {
			deliver.Tell(ctx, o, 1)
			require.True(t, steps.Step(), want)
		}
		for steps.Step() {
		}
		left, err := f.Await(ctx)
		require.NoError(t, err)
		require.Zero(t, left)
	})
}

// At a Synchronizer a rest conflicts with what its body conflicts with, by the arguments of its request.
func TestARestConflictsAsItsBodyDoes(t *testing.T) {
	type row struct {
		seats map[int]int
		mu    sync.Mutex
	}
	type ask struct {
		key  int
		gate chan struct{}
	}
	rows := activeobject.NewType[row]("row")
	hold := activeobject.ProcedureCtx(rows, "hold", func(r *row, ctx context.Context, a ask) (activeobject.None, error) {
		err := activeobject.SuspendUntil(ctx, "open", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.seats[a.key] > 0 })
		if a.gate != nil {
			<-a.gate
		}
		return nil, err
	}).Suspends()
	open := activeobject.Procedure(rows, "open", activeobject.Arg(func(r *row, key int) { r.mu.Lock(); defer r.mu.Unlock(); r.seats[key]++ }))
	table := rows.Conflicts().EqualKeys(guards.Key(hold, func(a ask) int { return a.key })).Compatible(open, hold, open)
	synctest.Test(t, func(t *testing.T) {
		ctx, system := t.Context(), actor.NewSystem()
		defer system.Close(ctx)
		o := activeobject.Must(synchronizer.New(system, rows, &row{seats: map[int]int{}}, synchronizer.Conflicts(table)))
		gate := make(chan struct{})
		first := hold.Send(ctx, o, ask{1, gate})
		same, other := hold.Send(ctx, o, ask{1, nil}), hold.Send(ctx, o, ask{2, nil})
		synctest.Wait()
		open.Call(ctx, o, 1)
		open.Call(ctx, o, 2)
		synctest.Wait()
		require.True(t, other.Ready())
		require.False(t, same.Ready(), "it conflicts with the first, which has gone on")
		require.Equal(t, []string{"hold (rest)"}, o.Explain().Waiting[0].Reason.Conflicts)
		close(gate)
		_, err := same.Await(ctx)
		require.NoError(t, err)
		_, err = first.Await(ctx)
		require.NoError(t, err)
	})
}

// What a call costs whose body may suspend, and what it costs to suspend.
func BenchmarkSuspend(b *testing.B) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	plain := activeobject.NewType[depot]("plain")
	take := activeobject.ProcedureCtx(plain, "take", func(s *depot, ctx context.Context, n int) (int, error) { s.stock -= n; return s.stock, nil })
	b.Run("call/plain", func(b *testing.B) {
		o := activeobject.Must(activeobject.New(system, plain, &depot{}))
		for b.Loop() {
			take.Call(ctx, o, 1)
		}
	})
	b.Run("call/may suspend", func(b *testing.B) {
		o := activeobject.Must(activeobject.New(system, depots, &depot{stock: 1 << 60}))
		for b.Loop() {
			collect.Call(ctx, o, 1)
		}
	})
	b.Run("suspend and go on", func(b *testing.B) {
		o := activeobject.Must(activeobject.New(system, depots, &depot{}))
		for b.Loop() {
			f := collect.Send(ctx, o, 1)
			deliver.Call(ctx, o, 1)
			f.Await(ctx)
		}
	})
	b.Run("an entry instead", func(b *testing.B) {
		types := activeobject.NewType[depot]("entry")
		get := activeobject.EntryCtx(types, "get", func(s *depot, ctx context.Context, n int) (int, error) { s.stock -= n; return s.stock, nil }).
			WhenArg("in stock", func(s *depot, n int) bool { return s.stock >= n })
		put := activeobject.Procedure(types, "put", activeobject.Arg(func(s *depot, n int) { s.stock += n }))
		o := activeobject.Must(activeobject.New(system, types, &depot{}))
		for b.Loop() {
			f := get.Send(ctx, o, 1)
			put.Call(ctx, o, 1)
			f.Await(ctx)
		}
	})
}

// BenchmarkSuspendedBytes reports what a suspended body occupies.
func BenchmarkSuspendedBytes(b *testing.B) {
	for range b.N {
		ctx, system := context.Background(), actor.NewSystem()
		o := activeobject.Must(activeobject.New(system, depots, &depot{}))
		const n = 5000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all := make([]actor.Future[int], n)
		for i := range all {
			all[i] = collect.Send(ctx, o, 1)
		}
		for o.Type(); len(all) > 0; {
			if k, _ := begun.Call(ctx, o, nil); k == n {
				break
			}
			runtime.Gosched()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/n, "B/body")
		o.Stop()
		runtime.KeepAlive(all)
		system.Close(ctx)
	}
}
