package buffer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/actor"
)

// Every benchmark here runs a peer and Sluice in turn, in one process, and reports the
// median of the rounds' ratios as "×peer", as those of activeobject do. Every run checks
// the sum of what came out.

// pipe is what a benchmark hands items through. Put and get report whether they did.
type pipe struct {
	name string
	put  func(int) bool
	get  func() (int, bool)
	end  func() // no more is put
}

// carry returns what hands n items from producers to consumers.
func carry(producers, consumers int) func(b *testing.B, p pipe, n int) {
	return func(b *testing.B, p pipe, n int) {
		var in, out sync.WaitGroup
		var sum, count atomic.Int64
		for c := range producers {
			in.Go(func() {
				for i := c; i < n; i += producers {
					if !p.put(i) {
						b.Error("cannot put")
						return
					}
				}
			})
		}
		for range consumers {
			out.Go(func() {
				s, k := 0, 0
				for {
					i, ok := p.get()
					if !ok {
						break
					}
					s, k = s+i, k+1
				}
				sum.Add(int64(s))
				count.Add(int64(k))
			})
		}
		in.Wait()
		p.end()
		out.Wait()
		if sum.Load() != int64(n)*int64(n-1)/2 || count.Load() != int64(n) {
			b.Fatalf("%s: %d items with sum %d came out of %d", p.name, count.Load(), sum.Load(), n)
		}
	}
}

// inTurn hands n items through by one goroutine, which takes out what it has put in.
func inTurn(b *testing.B, p pipe, n int) {
	sum := 0
	for i := range n {
		if !p.put(i) {
			b.Fatal("cannot put")
		}
		got, _ := p.get()
		sum += got
	}
	if sum != n*(n-1)/2 {
		b.Fatalf("%s: items with sum %d came out of %d", p.name, sum, n)
	}
}

// versus lets each of several kinds of pipe carry the items in turn, and reports what
// the others cost in units of the first.
func versus(b *testing.B, carry func(b *testing.B, p pipe, n int), kinds ...func() pipe) {
	const rounds = 11
	n := max(b.N/rounds, 1)
	names := make([]string, len(kinds))
	ns, ratios, cpus := make([][]float64, len(kinds)), make([][]float64, len(kinds)), make([][]float64, len(kinds))
	for range rounds {
		var first, firstCPU float64
		for k, kind := range kinds {
			p := kind()
			c, start := cpuTime(), time.Now()
			carry(b, p, n)
			wall, cpu := float64(time.Since(start)), float64(cpuTime()-c)
			names[k] = p.name
			ns[k] = append(ns[k], wall/float64(n))
			if k == 0 {
				first, firstCPU = wall, cpu
				continue
			}
			ratios[k] = append(ratios[k], wall/first)
			if firstCPU > 0 {
				cpus[k] = append(cpus[k], cpu/firstCPU)
			}
		}
	}
	for k, name := range names {
		b.ReportMetric(median(ns[k]), name+"-ns")
		if k > 0 {
			b.ReportMetric(median(ratios[k]), name+"×"+names[0])
		}
	}
	last := len(kinds) - 1
	b.ReportMetric(median(ns[last]), "ns/op")
	b.ReportMetric(median(ratios[last]), "×peer")
	if len(cpus[last]) > 0 {
		b.ReportMetric(median(cpus[last]), "cpu×")
	}
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

func channel(capacity int) func() pipe {
	return func() pipe {
		c := make(chan int, capacity)
		return pipe{"channel",
			func(i int) bool { c <- i; return true },
			func() (int, bool) { i, ok := <-c; return i, ok },
			func() { close(c) },
		}
	}
}

// monitor is a bounded buffer by hand.
type monitor struct {
	mu                sync.Mutex
	notFull, notEmpty sync.Cond
	items             []int
	first, count      int
	closed            bool
}

func (m *monitor) put(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.count == len(m.items) {
		m.notFull.Wait()
	}
	at := m.first + m.count
	if at >= len(m.items) {
		at -= len(m.items)
	}
	m.items[at] = i
	m.count++
	m.notEmpty.Signal()
	return true
}

func (m *monitor) get() (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.count == 0 && !m.closed {
		m.notEmpty.Wait()
	}
	if m.count == 0 {
		return 0, false
	}
	i := m.items[m.first]
	if m.first++; m.first == len(m.items) {
		m.first = 0
	}
	m.count--
	m.notFull.Signal()
	return i, true
}

func (m *monitor) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.notEmpty.Broadcast()
}

func conds(capacity int) func() pipe {
	return func() pipe {
		m := &monitor{items: make([]int, capacity)}
		m.notFull.L, m.notEmpty.L = &m.mu, &m.mu
		return pipe{"conds", m.put, m.get, m.close}
	}
}

func bounded(b *testing.B, system *actor.System, capacity int) func() pipe {
	ctx := context.Background()
	return func() pipe {
		buf, err := buffer.NewBounded[int](system, capacity)
		if err != nil {
			b.Fatal(err)
		}
		return pipe{"bounded",
			func(i int) bool { return buf.Put(ctx, i) == nil },
			func() (int, bool) { i, err := buf.Get(ctx); return i, err == nil },
			func() { buf.Close() },
		}
	}
}

// crowds are how many produce, and as many consume.
var crowds = []int{1, 4, 32}

func benchSystem(b *testing.B) *actor.System {
	system := actor.NewSystem()
	b.Cleanup(func() { system.Close(context.Background()) })
	return system
}

// BenchmarkBounded sets the bounded buffer against a Go channel and against a mutex with
// two conditions.
func BenchmarkBounded(b *testing.B) {
	for _, capacity := range []int{1, 16, 1024} {
		for _, crowd := range crowds {
			b.Run(fmt.Sprintf("capacity=%d/%dx%d", capacity, crowd, crowd), func(b *testing.B) {
				b.ReportAllocs()
				versus(b, carry(crowd, crowd), channel(capacity), conds(capacity), bounded(b, benchSystem(b), capacity))
			})
		}
	}
}
