package activeobject_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// pigeonhole is a buffer of one place.
type pigeonhole struct {
	full bool
	v    int64
}

var (
	pigeonholes = activeobject.NewType[pigeonhole]("pigeonhole")
	fill        = activeobject.Entry(pigeonholes, "fill", activeobject.Arg(func(s *pigeonhole, v int64) { s.full, s.v = true, v })).
			When("empty", func(s *pigeonhole) bool { return !s.full })
	takeOut = activeobject.Entry(pigeonholes, "takeOut", activeobject.Result(func(s *pigeonhole) int64 { s.full = false; return s.v })).
		When("full", func(s *pigeonhole) bool { return s.full })
)

// Select over several objects, against Go's select over as many channels of
// capacity one. In "ready" one item is there, at the last of them; in "waiting"
// another goroutine puts it there and waits for an answer.
func BenchmarkSelect(b *testing.B) {
	ctx := context.Background()
	for _, k := range []int{2, 8} {
		channels := make([]chan int64, k)
		objects := make([]*activeobject.Object[pigeonhole], k)
		cases := make([]activeobject.Alternative, k)
		takes := make([]*activeobject.Case[int64], k)
		system := actor.NewSystem()
		b.Cleanup(func() { system.Close(ctx) })
		for i := range k {
			channels[i] = make(chan int64, 1)
			objects[i] = activeobject.Must(activeobject.New(system, pigeonholes, &pigeonhole{}))
			takes[i] = takeOut.Case(objects[i], nil)
			cases[i] = takes[i]
		}
		receive := func() int64 {
			if k == 2 {
				select {
				case v := <-channels[0]:
					return v
				case v := <-channels[1]:
					return v
				}
			}
			select {
			case v := <-channels[0]:
				return v
			case v := <-channels[1]:
				return v
			case v := <-channels[2]:
				return v
			case v := <-channels[3]:
				return v
			case v := <-channels[4]:
				return v
			case v := <-channels[5]:
				return v
			case v := <-channels[6]:
				return v
			case v := <-channels[7]:
				return v
			}
		}
		take := func() int64 {
			i, err := activeobject.Select(ctx, cases...)
			if err != nil {
				b.Fatal(err)
			}
			v, _ := takes[i].Result()
			return v
		}
		check := func(sum int64, n int) {
			if want := int64(n) * int64(n-1) / 2; sum != want {
				b.Fatalf("the items add up to %d, want %d", sum, want)
			}
		}
		b.Run(fmt.Sprintf("ready/%d", k), func(b *testing.B) {
			versus(b, side{"select", func(n int) {
				sum := int64(0)
				for i := range n {
					channels[k-1] <- int64(i)
					sum += receive()
				}
				check(sum, n)
			}}, side{"sluice", func(n int) {
				sum := int64(0)
				for i := range n {
					if _, err := fill.Call(ctx, objects[k-1], int64(i)); err != nil {
						b.Fatal(err)
					}
					sum += take()
				}
				check(sum, n)
			}})
		})
		b.Run(fmt.Sprintf("waiting/%d", k), func(b *testing.B) {
			versus(b, side{"select", func(n int) {
				sum, back := int64(0), make(chan struct{})
				go func() {
					for range n {
						sum += receive()
						back <- struct{}{}
					}
				}()
				for i := range n {
					channels[i%k] <- int64(i)
					<-back
				}
				check(sum, n)
			}}, side{"sluice", func(n int) {
				sum := int64(0)
				answers := activeobject.Must(activeobject.New(system, pigeonholes, &pigeonhole{}))
				defer answers.Stop()
				go func() {
					for range n {
						sum += take()
						fill.Call(ctx, answers, 0)
					}
				}()
				for i := range n {
					if _, err := fill.Call(ctx, objects[i%k], int64(i)); err != nil {
						b.Fatal(err)
					}
					takeOut.Call(ctx, answers, nil)
				}
				check(sum, n)
			}})
		})
	}
}

// step is an object whose work takes two turns.
var (
	twoSteps = activeobject.NewType[tally]("twoSteps")
	stepOne  = activeobject.Procedure(twoSteps, "one", (*tally).Add)
	stepTwo  = activeobject.Entry(twoSteps, "two", (*tally).Add).When("open", (*tally).Open)
	both     = activeobject.Procedure(twoSteps, "both", func(t *tally, n int64) (int64, error) {
		t.Add(n)
		return stepTwo.Requeue(n)
	})
	farTally *activeobject.Object[tally]
	bothFar  = activeobject.Procedure(twoSteps, "both, at two objects", func(t *tally, n int64) (int64, error) {
		t.Add(n)
		return addOpen.RequeueTo(farTally, n)
	})
)

// A request that is requeued, against two calls.
func BenchmarkRequeue(b *testing.B) {
	ctx := context.Background()
	near := func() *activeobject.Object[tally] {
		system := actor.NewSystem()
		b.Cleanup(func() { system.Close(ctx) })
		return activeobject.Must(activeobject.New(system, twoSteps, &tally{}))
	}
	o := near()
	farTally = newTally(b, tally{})
	call := func(b *testing.B, op *activeobject.Operation[tally, int64, int64], o *activeobject.Object[tally]) {
		if _, err := op.Call(ctx, o, 1); err != nil {
			b.Fatal(err)
		}
	}
	for name, ours := range map[string]*activeobject.Operation[tally, int64, int64]{"same object": both, "another object": bothFar} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			versus(b, side{"two-calls", func(n int) {
				for range n {
					call(b, stepOne, o)
					if ours == both {
						call(b, stepTwo, o)
					} else {
						call(b, addOpen, farTally)
					}
				}
			}}, side{"sluice", func(n int) {
				for range n {
					call(b, ours, o)
				}
			}})
		})
	}
}

// queueing is an object that admits one request for each token.
type queueing struct {
	tokens int
	served int
}

var (
	queueings = activeobject.NewType[queueing]("queueing")
	turn      = activeobject.Entry(queueings, "turn", activeobject.Arg(func(q *queueing, _ int64) { q.tokens--; q.served++ })).
			When("a token", func(q *queueing) bool { return q.tokens > 0 })
	grant    = activeobject.Procedure(queueings, "grant", activeobject.Plain(func(q *queueing) { q.tokens++ }))
	servings = activeobject.Function(queueings, "served", activeobject.Result(func(q *queueing) int { return q.served }))
)

// One admission with n waiting: a request arrives, and the one that the policy
// prefers is let go. The peer is the same in order of arrival with ten waiting.
func BenchmarkPolicy(b *testing.B) {
	ctx := context.Background()
	contexts := make([]context.Context, 1024)
	for i := range contexts {
		mixed := i * 769 % len(contexts)
		c, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour+time.Duration(mixed)*time.Second))
		defer cancel()
		contexts[i] = activeobject.WithPriority(c, mixed)
	}
	arrange := func(b *testing.B, n int, o activeobject.Option) func(n int) {
		system := actor.NewSystem(actor.Logger(quiet))
		b.Cleanup(func() { system.Close(ctx) })
		object := activeobject.Must(activeobject.New(system, queueings, &queueing{}, o))
		made, want := 0, 0
		arrive := func() {
			made++
			// The context is one that does not end, so that what is measured is the
			// queue and not the watch over it.
			if err := turn.Tell(context.WithoutCancel(contexts[made%len(contexts)]), object, int64(made*7919)); err != nil {
				b.Fatal(err)
			}
		}
		for range n {
			arrive()
		}
		return func(n int) {
			for range n {
				arrive()
				if _, err := grant.Call(ctx, object, nil); err != nil {
					b.Fatal(err)
				}
			}
			want += n
			if got, err := servings.Call(ctx, object, nil); err != nil || got != want {
				b.Fatalf("%d served (%v), want %d", got, err, want)
			}
		}
	}
	for _, p := range []struct {
		name   string
		option activeobject.Option
		most   int
	}{
		{"arrival", activeobject.ByArrival(), 100_000},
		{"rotating", activeobject.ByRotation(), 100_000},
		{"lifo", activeobject.ByLatest(), 100_000},
		{"priority", activeobject.ByPriority(), 100_000},
		{"deadline", activeobject.ByDeadline(), 100_000},
		{"ordered", activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
			return a.Argument.(int64)%1000 < b.Argument.(int64)%1000
		}), 100_000},
		// Linear by nature: it is shown all that may start.
		{"choosing", activeobject.ByChoice(func(eligible []*activeobject.Candidate) int { return len(eligible) / 2 }), 1000},
	} {
		for n := 10; n <= p.most; n *= 100 {
			b.Run(fmt.Sprintf("%s/%d", p.name, n), func(b *testing.B) {
				versus(b, side{"arrival-10", arrange(b, 10, activeobject.ByArrival())}, side{"sluice", arrange(b, n, p.option)})
			})
		}
	}
}

var (
	never = guards.When("never", func(t *tally) bool { return t.sum < 0 })
	grown = guards.When("grown", func(t *tally) bool { return t.sum >= 1<<40 })
)

// Calls of an object at which ten thousand goroutines wait for one guard, against one without
// waiters; and what it costs to wake each of them.
func BenchmarkUntil(b *testing.B) {
	const watchers = 10_000
	ctx := context.Background()
	watched := func(b *testing.B, g guards.Guard[tally, None]) (*activeobject.Object[tally], *sync.WaitGroup, context.CancelFunc) {
		o := newTally(b, tally{})
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for range watchers {
			all.Go(func() { o.Until(ctx, g) })
		}
		for len(o.Explain().Waiting) < watchers {
			time.Sleep(time.Millisecond)
		}
		return o, &all, cancel
	}
	add := func(b *testing.B, o *activeobject.Object[tally]) func(n int) {
		return func(n int) {
			for range n {
				if _, err := bump.Call(ctx, o, 1); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("a call beside 10000 watchers", func(b *testing.B) {
		o, all, cancel := watched(b, never)
		versus(b, side{"unwatched", add(b, newTally(b, tally{}))}, side{"sluice", add(b, o)})
		cancel()
		all.Wait()
	})
	b.Run("10000 watchers are told", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			o, all, cancel := watched(b, grown)
			b.StartTimer()
			if _, err := bump.Call(ctx, o, 1<<40); err != nil {
				b.Fatal(err)
			}
			all.Wait()
			b.StopTimer()
			cancel()
			b.StartTimer()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*watchers), "ns/watcher")
	})
}
