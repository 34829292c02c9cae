package barrier_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/actor"
)

// condBarrier is the peer: the barrier that a mutex and a condition make.
type condBarrier struct {
	mu      sync.Mutex
	cond    sync.Cond
	parties int
	arrived int
	round   int
}

func newCondBarrier(parties int) *condBarrier {
	b := &condBarrier{parties: parties}
	b.cond.L = &b.mu
	return b
}

func (b *condBarrier) Await() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived++
	if b.arrived == b.parties {
		b.arrived = 0
		b.round++
		b.cond.Broadcast()
		return
	}
	for round := b.round; round == b.round; {
		b.cond.Wait()
	}
}

// rounds has so many parties call await n times each, and returns how long a round
// takes.
func rounds(parties, n int, await func()) float64 {
	var wg sync.WaitGroup
	start := time.Now()
	for range parties {
		wg.Go(func() {
			for range n {
				await()
			}
		})
	}
	wg.Wait()
	return float64(time.Since(start)) / float64(n)
}

// BenchmarkCyclic runs a barrier of a mutex and a condition, and a Cyclic, in turn, and
// reports the median of what the Cyclic costs in units of the other.
func BenchmarkCyclic(b *testing.B) {
	for _, parties := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("parties=%d", parties), func(b *testing.B) {
			system := actor.NewSystem()
			defer system.Close(context.Background())
			ours, err := barrier.NewCyclic(system, parties)
			if err != nil {
				b.Fatal(err)
			}
			peer := newCondBarrier(parties)
			b.ReportAllocs()
			const turns = 11
			var ratios, ourNs, peerNs []float64
			for range turns {
				n := max(b.N/turns, 1)
				p := rounds(parties, n, peer.Await)
				o := rounds(parties, n, func() {
					if err := ours.Await(context.Background()); err != nil {
						b.Error(err)
					}
				})
				ratios, ourNs, peerNs = append(ratios, o/p), append(ourNs, o), append(peerNs, p)
			}
			b.ReportMetric(median(ourNs), "ns/op")
			b.ReportMetric(median(peerNs), "cond-ns")
			b.ReportMetric(median(ratios), "×peer")
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
