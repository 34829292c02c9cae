package activeobject_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// plus asks a plain actor to add, and total for the sum. The actor replies with a
// *total, as one that is written by hand would.
type (
	plus  struct{ n int64 }
	total struct{ sum int64 }
)

// plainTally spawns a plain protoactor actor with the state of a tally.
func plainTally(b testing.TB, system *actor.System) *actor.PID {
	state := &tally{}
	root := system.Actors().Root
	pid := root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
		switch m := ctx.Message().(type) {
		case *plus:
			sum, _ := state.Add(m.n)
			if ctx.Sender() != nil {
				ctx.Respond(&total{sum})
			}
		case *total:
			ctx.Respond(&total{state.sum})
		}
	}))
	b.Cleanup(func() { _ = root.StopFuture(pid).Wait() })
	return pid
}

// totalOf waits until a plain actor has handled what it was sent.
func totalOf(b testing.TB, system *actor.System, pid *actor.PID) int64 {
	answer, err := system.Actors().Root.RequestFuture(pid, &total{}, time.Minute).Result()
	if err != nil {
		b.Fatal(err)
	}
	return answer.(*total).sum
}

// sumOf waits until an object has served what it was sent.
func sumOf(b testing.TB, system *actor.System, pid *actor.PID) int64 {
	n, err := actor.Ask[int64](context.Background(), system, pid, "sum", nil)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func newMessageSystem(b testing.TB) *actor.System {
	system := actor.NewSystem(actor.Logger(quiet))
	b.Cleanup(func() { system.Close(context.Background()) })
	return system
}

func BenchmarkMessageTell(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers, "-callers"), func(b *testing.B) {
			b.ReportAllocs()
			system := newMessageSystem(b)
			root := system.Actors().Root
			plain := plainTally(b, system)
			o := activeobject.Must(activeobject.New(system, tallies, &tally{}))
			pid := o.PID()
			var sent, told int64
			versus(b, side{"plain-actor", func(n int) {
				spread(callers, func() { root.Send(plain, &plus{1}) })(n)
				if sent += int64(n); totalOf(b, system, plain) != sent {
					b.Fatal("plain actor: the sum is wrong")
				}
			}}, side{"sluice", func(n int) {
				spread(callers, func() { root.Send(pid, &actor.Invoke{Operation: "bump", Argument: int64(1)}) })(n)
				if told += int64(n); sumOf(b, system, pid) != told {
					b.Fatal("sluice: the sum is wrong")
				}
			}})
		})
	}
}

func BenchmarkMessageRequest(b *testing.B) {
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		// object says that our Request goes to an object, and not to the plain actor.
		object bool
	}{
		{"object", context.Background(), true},
		{"object-cancellable", cancellable, true},
		{"plain", context.Background(), false},
		{"plain-cancellable", cancellable, false},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprint(c.name, "/", callers, "-callers"), func(b *testing.B) {
				b.ReportAllocs()
				system := newMessageSystem(b)
				root := system.Actors().Root
				plain := plainTally(b, system)
				pid := activeobject.Must(activeobject.New(system, tallies, &tally{})).PID()
				var sent, asked int64
				future := func() {
					answer, err := root.RequestFuture(plain, &plus{1}, time.Minute).Result()
					if err != nil || answer.(*total).sum == 0 {
						b.Error(answer, err)
					}
				}
				ask := func() {
					n, err := actor.Ask[int64](c.ctx, system, pid, "bump", int64(1))
					if err != nil || n == 0 {
						b.Error(n, err)
					}
				}
				if !c.object {
					ask = func() {
						answer, err := system.Request(c.ctx, plain, &plus{1}).Await(c.ctx)
						if err != nil || answer.(*total).sum == 0 {
							b.Error(answer, err)
						}
					}
				}
				versus(b, side{"RequestFuture", func(n int) {
					sent += int64(n)
					spread(callers, future)(n)
				}}, side{"sluice", func(n int) {
					asked += int64(n)
					spread(callers, ask)(n)
				}})
				if !c.object {
					sent, asked = sent+asked, 0
				}
				if totalOf(b, system, plain) != sent || sumOf(b, system, pid) != asked {
					b.Fatal("the sums are wrong")
				}
			})
		}
	}
}

// BenchmarkMessageAllocs reports what one message costs in allocations, which the
// comparisons above mix with those of the other side.
func BenchmarkMessageAllocs(b *testing.B) {
	system := newMessageSystem(b)
	root := system.Actors().Root
	plain := plainTally(b, system)
	pid := activeobject.Must(activeobject.New(system, tallies, &tally{})).PID()
	b.Run("tell", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			root.Send(pid, &actor.Invoke{Operation: "bump", Argument: int64(1)})
		}
	})
	b.Run("ask", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			actor.Ask[int64](context.Background(), system, pid, "bump", int64(1))
		}
	})
	b.Run("RequestFuture", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			root.RequestFuture(plain, &plus{1}, time.Minute).Result()
		}
	})
	b.Run("request-plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			system.Request(context.Background(), plain, &plus{1}).Await(context.Background())
		}
	})
}

// BenchmarkSpawn makes 100 000 objects or plain actors, uses each of them once by
// message (or, without a PID, by a call), and stops them. It reports the time for one,
// and what one takes of memory while all are there, state included.
func BenchmarkSpawn(b *testing.B) {
	const many = 100_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	type cost struct{ spawn, use, stop, bytes float64 }
	run := func(b *testing.B, system *actor.System, spawn func(i int), use func(i int), used func() bool, stop func(i int), stopped func()) (c cost) {
		before := heap()
		start := time.Now()
		lap := func() float64 {
			d := float64(time.Since(start)) / many
			start = time.Now()
			return d
		}
		for i := range many {
			spawn(i)
		}
		c.spawn = lap()
		for i := range many {
			use(i)
		}
		for !used() {
			runtime.Gosched()
		}
		c.use = lap()
		c.bytes = float64(heap()-before) / many
		lap()
		for i := range many {
			stop(i)
		}
		stopped()
		c.stop = lap()
		return c
	}
	report := func(b *testing.B, cs []cost) {
		var spawn, use, stop, all, bytes []float64
		for _, c := range cs {
			spawn, use, stop = append(spawn, c.spawn), append(use, c.use), append(stop, c.stop)
			all, bytes = append(all, c.spawn+c.use+c.stop), append(bytes, c.bytes)
		}
		b.ReportMetric(median(all), "ns/op")
		b.ReportMetric(median(spawn), "spawn-ns")
		b.ReportMetric(median(use), "use-ns")
		b.ReportMetric(median(stop), "stop-ns")
		b.ReportMetric(median(bytes), "B/object")
	}
	objects := func(b *testing.B, addressed bool) (c cost) {
		system := actor.NewSystem(actor.Logger(quiet))
		defer system.Close(context.Background())
		root := system.Actors().Root
		all := make([]*activeobject.Object[tally], many)
		pids := make([]*actor.PID, many)
		states := make([]*tally, many)
		return run(b, system, func(i int) {
			states[i] = &tally{}
			all[i] = activeobject.Must(activeobject.New(system, tallies, states[i]))
			if addressed {
				pids[i] = all[i].PID()
			}
		}, func(i int) {
			if addressed {
				root.Send(pids[i], &actor.Invoke{Operation: "bump", Argument: int64(1)})
			} else {
				bump.Call(context.Background(), all[i], 1)
			}
		}, func() bool {
			n, _ := sum.Call(context.Background(), all[many-1], nil)
			return n == 1
		}, func(i int) {
			stopped := all[i].Stop()
			if addressed {
				return
			}
			<-stopped
		}, func() {
			if addressed { // the actors, too
				for i := range pids {
					ended, _ := system.Watch(pids[i])
					<-ended
				}
			}
		})
	}
	plains := func(b *testing.B) (c cost) {
		system := actor.NewSystem(actor.Logger(quiet))
		defer system.Close(context.Background())
		root := system.Actors().Root
		pids := make([]*actor.PID, many)
		var used atomic.Int64
		return run(b, system, func(i int) {
			state := &tally{}
			pids[i] = root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
				if m, ok := ctx.Message().(*plus); ok {
					state.Add(m.n)
					used.Add(1)
				}
			}))
		}, func(i int) {
			root.Send(pids[i], &plus{1})
		}, func() bool { return used.Load() == many }, func(i int) {
			root.Stop(pids[i])
		}, func() {
			for i := range pids {
				ended, _ := system.Watch(pids[i])
				<-ended
			}
		})
	}
	for name, one := range map[string]func(b *testing.B) cost{
		"plain-actors":   plains,
		"objects":        func(b *testing.B) cost { return objects(b, false) },
		"objects-as-PID": func(b *testing.B) cost { return objects(b, true) },
	} {
		b.Run(name, func(b *testing.B) {
			var cs []cost
			for range max(b.N, 1) {
				cs = append(cs, one(b))
			}
			report(b, cs)
		})
	}
}
