package activeobject_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Every benchmark here runs a peer and Sluice in turn, in one process, on the same
// body, and reports the median of the rounds' ratios as "×peer"; docs/performance.md
// says what was reached. Absolute times carry over to no other machine.

// tally is the shared object of the benchmarks: its methods are not inlined on
// either side, and every run checks the sum.
type tally struct {
	sum  int64
	spin int // iterations of work per addition
}

//go:noinline
func (t *tally) Add(n int64) (int64, error) {
	for range t.spin {
		t.sum += n
		t.sum -= n
	}
	t.sum += n
	return t.sum, nil
}

//go:noinline
func (t *tally) Open() bool { return t.sum >= 0 }

func (t *tally) Sum() int64                { return t.sum }
func (t *tally) Reaches(n int64) bool      { return t.sum >= n }
func (t *tally) Pass(int64) (int64, error) { return t.sum, nil }

var (
	tallies  = activeobject.NewType[tally]("tally")
	bump     = activeobject.Procedure(tallies, "bump", (*tally).Add)
	addOpen  = activeobject.Entry(tallies, "add", (*tally).Add).When("open", (*tally).Open)
	sum      = activeobject.Function(tallies, "sum", activeobject.Result((*tally).Sum))
	reach    = activeobject.Entry(tallies, "reach", (*tally).Pass).WhenArg("reached", (*tally).Reaches)
	positive = [3]*activeobject.Operation[tally, int64, int64]{
		activeobject.Entry(tallies, "positive 0", (*tally).Pass).When("positive", (*tally).Open),
		activeobject.Entry(tallies, "positive 1", (*tally).Pass).When("positive", (*tally).Open),
		activeobject.Entry(tallies, "positive 2", (*tally).Pass).When("positive", (*tally).Open),
	}
)

func newTally(b testing.TB, state tally, options ...activeobject.Option) *activeobject.Object[tally] {
	b.Helper()
	system := actor.NewSystem()
	b.Cleanup(func() { system.Close(context.Background()) })
	o, err := activeobject.New(system, tallies, &state, options...)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func checkSum(b testing.TB, o *activeobject.Object[tally], want int64) {
	b.Helper()
	if got, err := sum.Call(context.Background(), o, nil); err != nil || got != want {
		b.Fatalf("sum is %d (%v), want %d", got, err, want)
	}
}

// side is one side of a comparison: run makes n operations.
type side struct {
	name string
	run  func(n int)
}

// versus runs the two sides in turn and reports what our side costs in units of
// the peer's: wall time and CPU time.
func versus(b *testing.B, peer, ours side) {
	const rounds = 11
	n := max(b.N/rounds, 1)
	// b.N grows until the benchmark lasts long enough; the sides are timed here.
	var walls, cpus, peerNs, ourNs []float64
	for range rounds {
		pw, pc := timed(peer.run, n)
		ow, oc := timed(ours.run, n)
		walls = append(walls, ow/pw)
		if pc > 0 && oc > 0 {
			cpus = append(cpus, oc/pc)
		}
		peerNs, ourNs = append(peerNs, pw/float64(n)), append(ourNs, ow/float64(n))
	}
	b.ReportMetric(median(ourNs), "ns/op")
	b.ReportMetric(median(peerNs), peer.name+"-ns")
	b.ReportMetric(median(walls), "×peer")
	if len(cpus) > 0 {
		b.ReportMetric(median(cpus), "cpu×")
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
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// spread lets a number of callers share n operations.
func spread(callers int, one func()) func(int) {
	return func(n int) {
		var wg sync.WaitGroup
		for c := range callers {
			share := n / callers
			if c < n%callers {
				share++
			}
			wg.Go(func() {
				for range share {
					one()
				}
			})
		}
		wg.Wait()
	}
}

// longest returns the longest of n operations shared by a number of callers, in
// microseconds.
func longest(callers, n int, one func()) float64 {
	var worst atomic.Int64
	spread(callers, func() {
		start := time.Now()
		one()
		d := int64(time.Since(start))
		for w := worst.Load(); d > w && !worst.CompareAndSwap(w, d); w = worst.Load() {
		}
	})(n)
	return float64(worst.Load()) / 1e3
}

// guarded is the peer of a guarded call: the same body and condition inside a
// sync.Mutex.
type guarded struct {
	mu sync.Mutex
	t  tally
}

func (g *guarded) add() {
	g.mu.Lock()
	if g.t.Open() {
		g.t.Add(1)
	}
	g.mu.Unlock()
}

// addSafely is add by a caller that expects the body to panic.
//
//go:noinline
func (g *guarded) addSafely() (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.t.Open() {
		return g.t.Add(1)
	}
	return 0, nil
}

func BenchmarkIdle(b *testing.B) {
	ctx := context.Background()
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	mutex := func() side {
		g := &guarded{}
		return side{"mutex", func(n int) {
			for range n {
				g.add()
			}
		}}
	}
	run := func(name string, peer side, call func(o *activeobject.Object[tally], n int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			o := newTally(b, tally{})
			calls := int64(0)
			versus(b, peer, side{"sluice", func(n int) {
				calls += int64(n)
				call(o, n)
			}})
			checkSum(b, o, calls)
		})
	}
	run("call", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			addOpen.Call(ctx, o, 1)
		}
	})
	run("call-cancellable", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			addOpen.Call(cancellable, o, 1)
		}
	})
	safe := &guarded{}
	run("call-against-panic-safe-mutex", side{"mutex", func(n int) {
		for range n {
			safe.addSafely()
		}
	}}, func(o *activeobject.Object[tally], n int) {
		for range n {
			addOpen.Call(ctx, o, 1)
		}
	})
	run("send-await", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			f := addOpen.Send(ctx, o, 1)
			f.Await(ctx)
		}
	})
	run("begin-await", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			t := addOpen.Begin(ctx, o, 1)
			t.Await(ctx)
		}
	})
	run("tell", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			addOpen.Tell(ctx, o, 1)
		}
	})
	run("try", mutex(), func(o *activeobject.Object[tally], n int) {
		for range n {
			addOpen.Try(ctx, o, 1)
		}
	})
}

// BenchmarkTicket sets a ticket against a future: for a request that runs at once,
// and for one that has to wait until the same goroutine opens its guard.
func BenchmarkTicket(b *testing.B) {
	ctx := context.Background()
	run := func(name string, peer, ours func(o *activeobject.Object[turns]) (int64, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			system := actor.NewSystem()
			defer system.Close(ctx)
			steps := func(one func(o *activeobject.Object[turns]) (int64, error)) func(int) {
				return func(n int) {
					o := activeobject.Must(activeobject.New(system, turnsType, &turns{}))
					for i := range n {
						if last, err := one(o); err != nil || last != int64(2*i+2) {
							b.Fatalf("step %d (%v), want %d", last, err, 2*i+2)
						}
					}
					o.Stop()
				}
			}
			versus(b, side{"send", steps(peer)}, side{"ticket", steps(ours)})
		})
	}
	run("ready", func(o *activeobject.Object[turns]) (int64, error) {
		even.Send(ctx, o, nil).Await(ctx)
		return odd.Send(ctx, o, nil).Await(ctx)
	}, func(o *activeobject.Object[turns]) (int64, error) {
		t := even.Begin(ctx, o, nil)
		t.Await(ctx)
		t = odd.Begin(ctx, o, nil)
		return t.Await(ctx)
	})
	run("waiting", func(o *activeobject.Object[turns]) (int64, error) {
		f := odd.Send(ctx, o, nil)
		even.Call(ctx, o, nil)
		return f.Await(ctx)
	}, func(o *activeobject.Object[turns]) (int64, error) {
		t := odd.Begin(ctx, o, nil)
		even.Call(ctx, o, nil)
		return t.Await(ctx)
	})
	b.Run("waiting-against-mutex", func(b *testing.B) {
		// Two calls under a mutex do what the two requests do, without the waiting.
		b.ReportAllocs()
		var mu sync.Mutex
		system := actor.NewSystem()
		defer system.Close(ctx)
		versus(b, side{"mutex", func(n int) {
			var t turns
			for range n {
				for range 2 {
					mu.Lock()
					t.Step(nil)
					mu.Unlock()
				}
			}
		}}, side{"ticket", func(n int) {
			o := activeobject.Must(activeobject.New(system, turnsType, &turns{}))
			for range n {
				t := odd.Begin(ctx, o, nil)
				even.Call(ctx, o, nil)
				t.Await(ctx)
			}
			o.Stop()
		}})
	})
}

func BenchmarkContended(b *testing.B) {
	ctx := context.Background()
	for _, work := range []struct {
		name    string
		spin    int
		callers []int
	}{
		{"empty", 0, []int{2, 8, 64}},
		{"1µs", spinFor(time.Microsecond), []int{8, 64}},
		{"10µs", spinFor(10 * time.Microsecond), []int{8, 64}},
	} {
		for _, callers := range work.callers {
			b.Run(fmt.Sprintf("%s/callers=%d", work.name, callers), func(b *testing.B) {
				b.ReportAllocs()
				g := &guarded{t: tally{spin: work.spin}}
				o := newTally(b, tally{spin: work.spin})
				var calls int64
				call := func() { addOpen.Call(ctx, o, 1) }
				ours := spread(callers, call)
				versus(b, side{"mutex", spread(callers, g.add)}, side{"sluice", func(n int) {
					calls += int64(n)
					ours(n)
				}})
				n := max(b.N/4, 1)
				calls += int64(n)
				b.ReportMetric(cores(), "cores")
				b.ReportMetric(longest(callers, n, g.add), "mutex-max-µs")
				b.ReportMetric(longest(callers, n, call), "max-µs")
				checkSum(b, o, calls)
			})
		}
	}
}

// cores returns how many cores the process really has just now: what two spinning
// goroutines get.
func cores() float64 {
	t := tally{spin: 1 << 22}
	wall, cpu := timed(spread(2, func() { u := t; u.Add(1) }), 2)
	return cpu / wall
}

// spinFor returns how much work of a tally takes about d.
func spinFor(d time.Duration) int {
	t := &tally{spin: 1 << 20}
	best := time.Hour
	for range 5 {
		start := time.Now()
		t.Add(1)
		best = min(best, time.Since(start))
	}
	return max(int(d*(1<<20)/best), 1)
}

// turns is a shared object for two that take turns.
type turns struct{ n int64 }

func (t *turns) Step(activeobject.None) (int64, error) { t.n++; return t.n, nil }
func (t *turns) Even() bool                            { return t.n%2 == 0 }
func (t *turns) Odd() bool                             { return t.n%2 == 1 }

var (
	turnsType = activeobject.NewType[turns]("turns")
	even      = activeobject.Entry(turnsType, "even", (*turns).Step).When("even", (*turns).Even)
	odd       = activeobject.Entry(turnsType, "odd", (*turns).Step).When("odd", (*turns).Odd)
)

// BenchmarkPingPong is a call that waits for a guard which the other side opens,
// against two goroutines that pass a token over two channels.
func BenchmarkPingPong(b *testing.B) {
	channels := side{"channel", func(n int) {
		ping, pong := make(chan int), make(chan int)
		go func() {
			for v := range ping {
				pong <- v
			}
			close(pong)
		}()
		for i := range n {
			ping <- i
			<-pong
		}
		close(ping)
		<-pong
	}}
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"no-deadline": context.Background(), "cancellable": cancellable} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			system := actor.NewSystem()
			defer system.Close(context.Background())
			versus(b, channels, side{"sluice", func(n int) {
				o := activeobject.Must(activeobject.New(system, turnsType, &turns{}))
				var wg sync.WaitGroup
				for _, op := range []*activeobject.Operation[turns, activeobject.None, int64]{even, odd} {
					wg.Go(func() {
						for range n {
							op.Call(ctx, o, nil)
						}
					})
				}
				wg.Wait()
				if last, _ := even.Call(ctx, o, nil); last != int64(2*n+1) {
					b.Fatalf("%d turns, want %d", last, 2*n+1)
				}
				o.Stop()
			}})
		})
	}
}

func BenchmarkTellContended(b *testing.B) {
	ctx := context.Background()
	const callers = 64
	channel := make(chan int64, 1024)
	received := tally{}
	go func() {
		for n := range channel {
			received.Add(n)
		}
	}()
	defer close(channel)
	b.Run("callers=64", func(b *testing.B) {
		b.ReportAllocs()
		o := newTally(b, tally{})
		var calls int64
		tell := spread(callers, func() { bump.Tell(ctx, o, 1) })
		versus(b, side{"channel", spread(callers, func() { channel <- 1 })}, side{"sluice", func(n int) {
			calls += int64(n)
			tell(n)
		}})
		checkSum(b, o, calls)
	})
}

// BenchmarkPeers sets an idle call against the two ways to share an object by
// messages.
func BenchmarkPeers(b *testing.B) {
	ctx := context.Background()
	ours := func(b *testing.B) (side, func()) {
		o := newTally(b, tally{})
		var calls int64
		return side{"sluice", func(n int) {
			calls += int64(n)
			for range n {
				addOpen.Call(ctx, o, 1)
			}
		}}, func() { checkSum(b, o, calls) }
	}
	b.Run("goroutine-and-channel", func(b *testing.B) {
		type request struct {
			n     int64
			reply chan int64
		}
		requests := make(chan request)
		go func() {
			var t tally
			for r := range requests {
				sum, _ := t.Add(r.n)
				r.reply <- sum
			}
		}()
		defer close(requests)
		reply := make(chan int64, 1)
		s, check := ours(b)
		versus(b, side{"channel", func(n int) {
			for range n {
				requests <- request{1, reply}
				<-reply
			}
		}}, s)
		check()
	})
	b.Run("protoactor", func(b *testing.B) {
		system := actor.NewSystem()
		defer system.Close(ctx)
		root := system.Actors().Root
		var t tally
		pid := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if n, ok := c.Message().(int64); ok {
				sum, _ := t.Add(n)
				c.Respond(sum)
			}
		}))
		defer root.Stop(pid)
		s, check := ours(b)
		versus(b, side{"protoactor", func(n int) {
			for range n {
				if _, err := root.RequestFuture(pid, int64(1), time.Minute).Result(); err != nil {
					b.Fatal(err)
				}
			}
		}}, s)
		check()
	})
}

// BenchmarkWaiters is a passing call while others wait behind closed guards,
// against the same call with none waiting.
func BenchmarkWaiters(b *testing.B) {
	const waiters = 100_000
	ctx := context.Background()
	deep := int64(-1) << 60
	passing := func(o *activeobject.Object[tally]) func(int) {
		return func(n int) {
			for range n {
				bump.Call(ctx, o, 1)
			}
		}
	}
	for _, guards := range []int{1, 2, 3} {
		b.Run(fmt.Sprintf("state-guards=%d", guards), func(b *testing.B) {
			b.ReportAllocs()
			free, o := newTally(b, tally{sum: deep}), newTally(b, tally{sum: deep})
			for i := range waiters {
				positive[i%guards].Send(ctx, o, 1)
			}
			b.ResetTimer()
			versus(b, side{"none", passing(free)}, side{"sluice", passing(o)})
		})
	}
	b.Run("argument-guard-per-waiter", func(b *testing.B) {
		o := newTally(b, tally{sum: deep})
		for range waiters {
			reach.Send(ctx, o, 1)
		}
		b.ResetTimer()
		for b.Loop() {
			bump.Call(ctx, o, 1)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/waiters, "ns/waiter")
	})
}

func BenchmarkWithdraw(b *testing.B) {
	const waiters = 100_000
	ctx := context.Background()
	o := newTally(b, tally{sum: -1})
	futures := make([]activeobject.Future[int64], waiters)
	for i := range futures {
		futures[i] = positive[0].Send(ctx, o, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		// A stride through the queue, and a newcomer for each that leaves.
		k := i * 7919 % waiters
		if !futures[k].Withdraw() {
			b.Fatal("not withdrawn")
		}
		b.StopTimer()
		futures[k] = positive[0].Send(ctx, o, 1)
		b.StartTimer()
	}
}

// BenchmarkSnapshot explains an object at which 100 000 wait, and reports how
// long a call had to wait for it at most.
func BenchmarkSnapshot(b *testing.B) {
	const waiters = 100_000
	ctx := context.Background()
	o := newTally(b, tally{sum: -1})
	for range waiters {
		positive[0].Send(ctx, o, 1)
	}
	var stop atomic.Bool
	worst := make(chan time.Duration)
	go func() {
		var d time.Duration
		for !stop.Load() {
			start := time.Now()
			positive[0].Send(ctx, o, 1).Withdraw() // both need the scheduler
			d = max(d, time.Since(start))
			runtime.Gosched()
		}
		worst <- d
	}()
	for b.Loop() {
		if s := o.Explain(); len(s.Waiting) < waiters {
			b.Fatalf("%d of %d explained", len(s.Waiting), waiters)
		}
	}
	stop.Store(true)
	b.ReportMetric(float64((<-worst).Microseconds()), "longest-stall-µs")
}

// BenchmarkMemory reports the memory of an idle object: before and after its PID
// has been asked for.
func BenchmarkMemory(b *testing.B) {
	const objects = 100_000
	system := actor.NewSystem()
	defer system.Close(context.Background())
	system.Actors() // the actor system's own memory is not the objects'
	type small struct{ n int64 }
	smalls := activeobject.NewType[small]("small")
	activeobject.Procedure(smalls, "touch", activeobject.Plain(func(s *small) { s.n++ }))
	kept := make([]*activeobject.Object[small], objects)
	states := make([]small, objects)
	for b.Loop() {
		before := heap()
		for i := range kept {
			kept[i] = activeobject.Must(activeobject.New(system, smalls, &states[i]))
		}
		idle := heap()
		for _, o := range kept {
			o.PID()
		}
		addressed := heap()
		b.ReportMetric(float64(idle-before)/objects, "B/object")
		b.ReportMetric(float64(addressed-before)/objects, "B/addressed-object")
		for _, o := range kept {
			<-o.Stop()
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
