package synchronizer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// Every benchmark runs a peer and the Synchronizer in turn, in one process, on the same
// body, and reports the median of the rounds' ratios as "×peer".

// ledger is the shared object of the benchmarks. Every run checks the number of writes.
type ledger struct {
	writes int64
	spin   int
	wait   time.Duration
}

//go:noinline
func (l *ledger) Read() int64 { l.work(); return l.writes }

//go:noinline
func (l *ledger) Write() { l.work(); l.writes++ }

func (l *ledger) work() {
	_ = burn(l.spin)
	if l.wait > 0 {
		time.Sleep(l.wait) // what a body that waits for something else does
	}
}

var (
	ledgers = activeobject.NewType[ledger]("ledger")
	read    = activeobject.Function(ledgers, "read", activeobject.Result((*ledger).Read))
	write   = activeobject.Procedure(ledgers, "write", activeobject.Plain((*ledger).Write))
	audit   = activeobject.FunctionCtx(ledgers, "audit", func(l *ledger, _ context.Context, _ None) (int64, error) { return l.Read(), nil })
	post    = activeobject.ProcedureCtx(ledgers, "post", func(l *ledger, _ context.Context, _ None) (None, error) { l.Write(); return none, nil })
)

// burn takes time: each step needs the result of the one before. (Empty loops are done by
// some processors at several rounds a cycle, and by their neighbors at one.)
//
//go:noinline
func burn(steps int) (x uint64) {
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// spinFor returns how many steps take about d.
func spinFor(d time.Duration) int {
	best := time.Hour
	for range 5 {
		start := time.Now()
		_ = burn(1 << 20)
		best = min(best, time.Since(start))
	}
	return max(int(d*(1<<20)/best), 1)
}

func benchSystem(b *testing.B) *actor.System {
	system := actor.NewSystem(actor.Logger(quiet))
	b.Cleanup(func() { _ = system.Close(background) })
	return system
}

type doer struct{ read, write func() }

func locked(l *ledger) doer {
	var mu sync.RWMutex
	return doer{
		read:  func() { mu.RLock(); defer mu.RUnlock(); l.Read() },
		write: func() { mu.Lock(); defer mu.Unlock(); l.Write() },
	}
}

// spawning runs each request on a goroutine of its own, and brings its caller what a call
// does: the result, or the panic.
func spawning(l *ledger) doer {
	var mu sync.RWMutex
	type outcome struct {
		result   int64
		panicked any
	}
	on := func(f func() int64) int64 {
		ended := make(chan outcome, 1)
		go func() {
			var o outcome
			defer func() { o.panicked = recover(); ended <- o }()
			o.result = f()
		}()
		o := <-ended
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.result
	}
	read := func() int64 { mu.RLock(); defer mu.RUnlock(); return l.Read() }
	write := func() int64 { mu.Lock(); defer mu.Unlock(); l.Write(); return 0 }
	return doer{read: func() { on(read) }, write: func() { on(write) }}
}

func object(o *activeobject.Object[ledger], leaf bool) doer {
	if leaf {
		return doer{read: func() { must(read.Call(background, o, none)) }, write: func() { must(write.Call(background, o, none)) }}
	}
	return doer{read: func() { must(audit.Call(background, o, none)) }, write: func() { must(post.Call(background, o, none)) }}
}

func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

// mixed has callers share n operations, of which some in a hundred are reads.
func mixed(d doer, callers, reads int, writes *atomic.Int64) func(int) {
	return func(n int) {
		var all sync.WaitGroup
		for c := range callers {
			share := n / callers
			if c < n%callers {
				share++
			}
			all.Go(func() {
				for i := range share {
					if (i*61+c)%100 < reads {
						d.read()
					} else {
						d.write()
						writes.Add(1)
					}
				}
			})
		}
		all.Wait()
	}
}

// versus runs both sides in turn, with so many operations at least.
func versus(b *testing.B, least int, peer, ours func(int)) {
	const rounds = 7
	n := max(b.N/rounds, least)
	var ratios, peers, own []float64
	timed := func(run func(int)) float64 {
		start := time.Now()
		run(n)
		return float64(time.Since(start)) / float64(n)
	}
	for range rounds {
		p, o := timed(peer), timed(ours)
		ratios, peers, own = append(ratios, o/p), append(peers, p), append(own, o)
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(median(own), "ns/op")
	b.ReportMetric(median(peers), "peer-ns")
	b.ReportMetric(median(ratios), "×peer")
}

// An idle object that admits a read, against a guarded call of an active object, and
// against an RWMutex.
func BenchmarkReadOnAnIdleObject(b *testing.B) {
	one := func(f func()) func(int) {
		return func(n int) {
			for range n {
				f()
			}
		}
	}
	for _, peer := range []string{"call", "rwmutex"} {
		b.Run("against="+peer, func(b *testing.B) {
			system := benchSystem(b)
			var d doer
			if peer == "call" {
				d = object(activeobject.Must(activeobject.New(system, ledgers, &ledger{})), true)
			} else {
				d = locked(&ledger{})
			}
			o := activeobject.Must(synchronizer.New(system, ledgers, &ledger{}))
			versus(b, 1, one(d.read), one(object(o, true).read))
		})
	}
}

// Readers and writers with bodies of a microsecond, against the same by hand.
func BenchmarkReadersAndWriters(b *testing.B) {
	microsecond := spinFor(time.Microsecond)
	for _, callers := range []int{8, 64} {
		for _, reads := range []int{100, 99, 90} {
			for _, peer := range []string{"rwmutex", "spawned"} {
				b.Run(fmt.Sprintf("callers=%d/reads=%d/against=%s", callers, reads, peer), func(b *testing.B) {
					system := benchSystem(b)
					by, state := &ledger{spin: microsecond}, &ledger{spin: microsecond}
					d := locked(by)
					if peer == "spawned" {
						d = spawning(by)
					}
					o := activeobject.Must(synchronizer.New(system, ledgers, state))
					var theirs, ours atomic.Int64
					versus(b, 1, mixed(d, callers, reads, &theirs), mixed(object(o, true), callers, reads, &ours))
					if by.writes != theirs.Load() || state.writes != ours.Load() {
						b.Fatal("writes were lost")
					}
				})
			}
		}
	}
}

// Bodies that wait for a millisecond, against an object with one thread.
func BenchmarkBodiesThatWait(b *testing.B) {
	for _, reads := range []int{100, 99, 90} {
		b.Run(fmt.Sprintf("reads=%d", reads), func(b *testing.B) {
			system := benchSystem(b)
			single := activeobject.Must(activeobject.New(system, ledgers, &ledger{wait: time.Millisecond}, activeobject.DedicatedThread()))
			o := activeobject.Must(synchronizer.New(system, ledgers, &ledger{wait: time.Millisecond}))
			var theirs, ours atomic.Int64
			versus(b, 1000, mixed(object(single, false), 64, reads, &theirs), mixed(object(o, false), 64, reads, &ours))
		})
	}
}
