package semaphore_test

import (
	"context"
	"fmt"
	"runtime"
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
	var our []float64
	theirs, ratios, cpus := make([][]float64, len(peers)), make([][]float64, len(peers)), make([][]float64, len(peers))
	for range rounds {
		w, c := timed(ours.run, n)
		our = append(our, w/float64(n))
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

// Acquire and release. In "held" rows the permit is held over a switch of goroutines, so
// that callers are sure to collide, whatever else uses the cores; in the others nothing
// is done while it is held, and callers collide as it happens.
func BenchmarkSemaphore(b *testing.B) {
	ctx := context.Background()
	system := actor.NewSystem()
	b.Cleanup(func() { system.Close(ctx) })
	type semaphores struct {
		name             string
		acquire, release func()
	}
	for _, c := range []struct {
		permits, callers int
		held             bool
	}{
		{1, 1, false}, {1, 2, false}, {1, 8, false}, {1, 64, false}, {4, 8, false}, {4, 64, false},
		{1, 8, true}, {1, 64, true}, {4, 8, true}, {4, 64, true},
	} {
		weighted, channel := peer.NewWeighted(int64(c.permits)), make(chan struct{}, c.permits)
		fair, _ := semaphore.New(system, c.permits)
		barging, _ := semaphore.NewBarging(system, c.permits)
		binary, _ := semaphore.NewBinary(system)
		run := func(s semaphores) side {
			sum, check := 0, c.permits == 1
			each := spread(c.callers, func() {
				s.acquire()
				if check {
					sum++
				}
				if c.held {
					runtime.Gosched()
				}
				s.release()
			})
			return side{s.name, func(n int) {
				if sum = 0; check {
					defer func() {
						if sum != n {
							b.Errorf("%s: %d of %d were alone", s.name, sum, n)
						}
					}()
				}
				each(n)
			}}
		}
		peers := []side{
			run(semaphores{"x/sync", func() { weighted.Acquire(ctx, 1) }, func() { weighted.Release(1) }}),
			run(semaphores{"chan", func() { channel <- struct{}{} }, func() { <-channel }}),
		}
		for _, ours := range []semaphores{
			{"fair", func() { fair.Acquire(ctx, 1) }, func() { fair.Release(1) }},
			{"barging", func() { barging.Acquire(ctx, 1) }, func() { barging.Release(1) }},
			{"binary", func() { binary.Acquire(ctx) }, func() { binary.Release() }},
		} {
			if ours.name == "binary" && c.permits > 1 {
				continue
			}
			name := fmt.Sprintf("%s/permits=%d/callers=%d", ours.name, c.permits, c.callers)
			if c.held {
				name += "/held"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				versus(b, run(ours), peers...)
			})
		}
	}
}
