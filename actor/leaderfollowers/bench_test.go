//go:build unix

package leaderfollowers_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// Every benchmark runs its sides in turn, in one process, on the same work, and reports the median of
// the rounds' ratios, "×" and "cpu×" with the name of the peer: its time, and its CPU time, by that of
// Leader/Followers.

// rounds is how often each side runs.
const rounds = 11

// cost is what one run has taken.
type cost struct {
	wall, cpu time.Duration
	switches  int64 // of the operating system's threads
	p99       time.Duration
}

// used returns what the process has used so far.
func used() (c cost) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return cost{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), switches: u.Nvcsw + u.Nivcsw}
}

// measure returns what a run takes.
func measure(run func() (p99 time.Duration)) cost {
	runtime.GC()
	before, start := used(), time.Now()
	p99 := run()
	wall, after := time.Since(start), used()
	return cost{wall: wall, cpu: after.cpu - before.cpu, switches: after.switches - before.switches, p99: p99}
}

func median[T int64 | float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// side is one way to do the work of a benchmark: n operations.
type side struct {
	name string
	run  func(n int) (p99 time.Duration)
}

// compare runs the sides in turn. The first is Leader/Followers.
func compare(b *testing.B, sides []side) {
	b.Helper()
	n := max(b.N/rounds, 1)
	costs := make([][]cost, len(sides))
	b.ResetTimer()
	for range rounds {
		for i, s := range sides {
			costs[i] = append(costs[i], measure(func() time.Duration { return s.run(n) }))
		}
	}
	b.StopTimer()
	of := func(i int, what func(c cost) float64) float64 {
		var all []float64
		for _, c := range costs[i] {
			all = append(all, what(c))
		}
		return median(all)
	}
	for i, s := range sides {
		b.ReportMetric(of(i, func(c cost) float64 { return float64(c.wall) / float64(n) }), s.name+"-ns")
		b.ReportMetric(of(i, func(c cost) float64 { return float64(c.cpu) / float64(n) }), s.name+"-cpu-ns")
		b.ReportMetric(of(i, func(c cost) float64 { return float64(c.switches) / float64(n) }), s.name+"-switches")
		if costs[i][0].p99 > 0 {
			b.ReportMetric(of(i, func(c cost) float64 { return float64(c.p99.Microseconds()) }), s.name+"-p99-µs")
		}
		if i == 0 {
			continue
		}
		var walls, cpus []float64
		for j := range costs[i] {
			walls = append(walls, float64(costs[i][j].wall)/float64(costs[0][j].wall))
			cpus = append(cpus, float64(costs[i][j].cpu)/float64(costs[0][j].cpu))
		}
		b.ReportMetric(median(walls), "×"+s.name)
		b.ReportMetric(median(cpus), "cpu×"+s.name)
	}
	b.ReportMetric(0, "ns/op")
}

// scheduled is protoactor's default dispatcher as one of objects.
type scheduled struct{ proto.Dispatcher }

func (s scheduled) Dispatch(t actor.Task) { s.Schedule(t.Run) }

// done counts tasks that have run, and tells when it is all.
type done struct {
	left atomic.Int64
	all  chan struct{}
}

func (d *done) Run() {
	if d.left.Add(-1) == 0 {
		d.all <- struct{}{}
	}
}

// Tasks that are dispatched by two goroutines, and do next to nothing: the dispatchers alone.
func BenchmarkTasks(b *testing.B) {
	pool, warm := newPool(b, runtime.GOMAXPROCS(0)), new(actor.Warm)
	b.Cleanup(func() { <-warm.Close() })
	var sides []side
	for _, d := range []struct {
		name string
		to   actor.Dispatcher
	}{{"leaders", pool.Dispatcher()}, {"warm", warm}, {"protoactor", scheduled{proto.NewDefaultDispatcher(300)}}} {
		sides = append(sides, side{d.name, func(n int) time.Duration {
			tasks := &done{all: make(chan struct{}, 1)}
			tasks.left.Store(int64(n / 2 * 2))
			for range 2 {
				go func() {
					for range n / 2 {
						d.to.Dispatch(tasks)
					}
				}()
			}
			if n > 1 {
				<-tasks.all
			}
			return 0
		}})
	}
	compare(b, sides)
}

// Objects that get requests from two goroutines, which do not wait for the results: each turn of an
// object is a task of the dispatcher.
func BenchmarkObjects(b *testing.B) {
	for _, count := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := newSystem(b)
			pool, err := leaderfollowers.New(s, runtime.GOMAXPROCS(0))
			require.NoError(b, err)
			warm := new(actor.Warm)
			b.Cleanup(func() { <-warm.Close() })
			var sides []side
			for _, d := range []struct {
				name string
				to   actor.Dispatcher
			}{{"leaders", pool.Dispatcher()}, {"warm", warm}, {"protoactor", scheduled{proto.NewDefaultDispatcher(300)}}} {
				all := make([]*activeobject.Object[counter], count)
				for i := range all {
					all[i] = newCounter(b, s, activeobject.Dispatcher(d.to))
				}
				sides = append(sides, side{d.name, func(n int) time.Duration {
					var senders sync.WaitGroup
					for k := range 2 {
						senders.Go(func() {
							for i := k; i < n; i += 2 {
								if err := add.Tell(background, all[i%count], 1); err != nil {
									b.Error(err)
								}
							}
						})
					}
					senders.Wait()
					for i := range min(count, n) { // each is answered after what was sent before
						if _, err := add.Call(background, all[i], 0); err != nil {
							b.Error(err)
						}
					}
					return 0
				}})
			}
			compare(b, sides)
		})
	}
}

// Objects that are called by as many goroutines as there are objects, up to 100, each of which waits
// for the result.
func BenchmarkCalls(b *testing.B) {
	for _, count := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := newSystem(b)
			pool, err := leaderfollowers.New(s, runtime.GOMAXPROCS(0))
			require.NoError(b, err)
			warm := new(actor.Warm)
			b.Cleanup(func() { <-warm.Close() })
			var sides []side
			for _, d := range []struct {
				name string
				to   actor.Dispatcher
			}{{"leaders", pool.Dispatcher()}, {"warm", warm}, {"protoactor", scheduled{proto.NewDefaultDispatcher(300)}}} {
				all := make([]*activeobject.Object[counter], count)
				for i := range all {
					all[i] = newCounter(b, s, activeobject.Dispatcher(d.to))
				}
				sides = append(sides, side{d.name, func(n int) time.Duration {
					var callers sync.WaitGroup
					many := min(count, 100)
					for k := range many {
						callers.Go(func() {
							for i := k; i < n; i += many {
								if _, err := add.Call(background, all[i%count], 1); err != nil {
									b.Error(err)
								}
							}
						})
					}
					callers.Wait()
					return 0
				}})
			}
			compare(b, sides)
		})
	}
}

// Plain actors that get messages from two goroutines: on the pool, and on protoactor's default
// dispatcher, which starts a goroutine for each mailbox that has something to do.
func BenchmarkActors(b *testing.B) {
	for _, count := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := newSystem(b)
			pool, err := leaderfollowers.New(s, runtime.GOMAXPROCS(0))
			require.NoError(b, err)
			root := s.Actors().Root
			var sides []side
			for _, d := range []struct {
				name string
				to   proto.Dispatcher
			}{{"leaders", pool.ForActors(300)}, {"protoactor", proto.NewDefaultDispatcher(300)}} {
				tasks := &done{all: make(chan struct{}, 1)}
				all := make([]*actor.PID, count)
				for i := range all {
					all[i] = root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
						if t, ok := c.Message().(*done); ok {
							t.Run()
						}
					}, proto.WithDispatcher(d.to)))
				}
				sides = append(sides, side{d.name, func(n int) time.Duration {
					tasks.left.Store(int64(n))
					for k := range 2 {
						go func() {
							for i := k; i < n; i += 2 {
								root.Send(all[i%count], tasks)
							}
						}()
					}
					<-tasks.all
					return 0
				}})
			}
			compare(b, sides)
		})
	}
}
