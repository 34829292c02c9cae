package semaphore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	peer "golang.org/x/sync/semaphore"

	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

// side is one side of a comparison: run makes n operations.
type side struct {
	name string
	run  func(n int)
}

// versus runs the sides in turn, in one process, and reports the median of the rounds'
// ratios to the first of them as "×" and its name.
func versus(b *testing.B, ours side, peers ...side) {
	const rounds = 11
	n := max(b.N/rounds, 1)
	var our, cpu []float64
	theirs, ratios, cpus := make([][]float64, len(peers)), make([][]float64, len(peers)), make([][]float64, len(peers))
	for range rounds {
		w, c := timed(ours.run, n)
		our, cpu = append(our, w/float64(n)), append(cpu, c)
		for i, p := range peers {
			pw, pc := timed(p.run, n)
			theirs[i], ratios[i] = append(theirs[i], pw/float64(n)), append(ratios[i], w/pw)
			if pc > 0 {
				cpus[i] = append(cpus[i], c/pc)
			}
		}
	}
	b.ReportMetric(median(our), "ns/op")
	for i, p := range peers {
		b.ReportMetric(median(theirs[i]), p.name+"-ns")
		b.ReportMetric(median(ratios[i]), "×"+p.name)
		if i == 0 && len(cpus[i]) > 0 {
			b.ReportMetric(median(cpus[i]), "cpu×")
		}
	}
}

func timed(run func(int), n int) (wall, cpu float64) {
	c := cpuTime()
	start := time.Now()
	run(n)
	return float64(time.Since(start)), float64(cpuTime() - c)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// spread lets a number of callers share n operations. They begin together.
func spread(callers int, one func()) func(int) {
	return func(n int) {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for c := range callers {
			share := n / callers
			if c < n%callers {
				share++
			}
			wg.Go(func() {
				<-start
				for range share {
					one()
				}
			})
		}
		close(start)
		wg.Wait()
	}
}

func BenchmarkSemaphore(b *testing.B) {
	ctx := context.Background()
	system := actor.NewSystem()
	b.Cleanup(func() { system.Close(ctx) })
	for _, c := range []struct{ permits, callers int }{{1, 1}, {1, 2}, {1, 8}, {1, 64}, {4, 8}, {4, 64}} {
		theirs := func() side {
			s := peer.NewWeighted(int64(c.permits))
			return side{"x/sync", spread(c.callers, func() {
				s.Acquire(ctx, 1)
				s.Release(1)
			})}
		}()
		channel := func() side {
			s := make(chan struct{}, c.permits)
			return side{"chan", spread(c.callers, func() {
				s <- struct{}{}
				<-s
			})}
		}()
		for name, build := range map[string]func() func(){
			"fair": func() func() {
				s, _ := semaphore.New(system, c.permits)
				return func() {
					s.Acquire(ctx, 1)
					s.Release(1)
				}
			},
			"barging": func() func() {
				s, _ := semaphore.NewBarging(system, c.permits)
				return func() {
					s.Acquire(ctx, 1)
					s.Release(1)
				}
			},
			"binary": func() func() {
				s, _ := semaphore.NewBinary(system)
				return func() {
					s.Acquire(ctx)
					s.Release()
				}
			},
		} {
			if name == "binary" && c.permits > 1 {
				continue
			}
			b.Run(fmt.Sprintf("%s/permits=%d/callers=%d", name, c.permits, c.callers), func(b *testing.B) {
				b.ReportAllocs()
				versus(b, side{"sluice", spread(c.callers, build())}, theirs, channel)
			})
		}
	}
}
