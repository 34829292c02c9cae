// Command instructions runs a scenario a number of times on one processor, so that a tool
// that counts instructions can say what one wait costs: .ci/instructions does that. Counts
// do not depend on what else the machine does, as times do.
//
//	instructions SCENARIO N
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

type turns struct{ n int }

func (t *turns) step()      { t.n++ }
func (t *turns) even() bool { return t.n%2 == 0 }
func (t *turns) odd() bool  { return t.n%2 == 1 }

var (
	ctx    = context.Background()
	system = actor.NewSystem()

	games = activeobject.NewType[turns]("game")
	first = activeobject.Entry(games, "first", activeobject.Plain((*turns).step)).When("begun", func(t *turns) bool { return t.n >= 0 })
	even  = activeobject.Entry(games, "even", activeobject.Plain((*turns).step)).When("even", (*turns).even)
	odd   = activeobject.Entry(games, "odd", activeobject.Plain((*turns).step)).When("odd", (*turns).odd)
	reads = activeobject.Function(games, "reads", activeobject.Result((*turns).even))

	again = activeobject.Entry(games, "again", func(t *turns, n int) (int, error) { t.n++; return n, nil }).When("begun", func(t *turns) bool { return t.n >= 0 })
	twice = activeobject.Entry(games, "twice", func(t *turns, n int) (int, error) { t.n++; return again.Requeue(n) }).When("begun", func(t *turns) bool { return t.n >= 0 })
)

// scenarios do n times what their names say. Those of the peers come behind a slash.
var scenarios = map[string]func(n int){
	"call": func(n int) {
		o := activeobject.Must(activeobject.New(system, games, &turns{}))
		for range n {
			first.Call(ctx, o, nil)
		}
	},
	"read": func(n int) {
		o := activeobject.Must(synchronizer.New(system, games, &turns{}))
		for range n {
			reads.Call(ctx, o, nil)
		}
	},
	"requeue": func(n int) {
		o := activeobject.Must(activeobject.New(system, games, &turns{}))
		for range n {
			twice.Call(ctx, o, 1)
		}
	},
	"select": func(n int) {
		o := activeobject.Must(activeobject.New(system, games, &turns{}))
		for range n {
			activeobject.Select(ctx, odd.Case(o, nil), even.Case(o, nil))
		}
	},
	"call/mutex": func(n int) {
		var mu sync.Mutex
		t := &turns{}
		for range n {
			mu.Lock()
			if t.n >= 0 {
				t.step()
			}
			mu.Unlock()
		}
	},
	"ping-pong": func(n int) {
		o := activeobject.Must(activeobject.New(system, games, &turns{}))
		together(
			func() { repeat(n, func() { even.Call(ctx, o, nil) }) },
			func() { repeat(n, func() { odd.Call(ctx, o, nil) }) },
		)
	},
	"ping-pong/channel": func(n int) {
		ping, pong := make(chan int), make(chan int)
		together(
			func() { repeat(n, func() { ping <- 1; <-pong }) },
			func() { repeat(n, func() { <-ping; pong <- 1 }) },
		)
	},
	"buffer": func(n int) {
		b, _ := buffer.NewBounded[int](system, 1)
		together(
			func() { repeat(n, func() { b.Put(ctx, 1) }) },
			func() { repeat(n, func() { b.Get(ctx) }) },
		)
	},
	"buffer/channel": func(n int) {
		c := make(chan int, 1)
		together(func() { repeat(n, func() { c <- 1 }) }, func() { repeat(n, func() { <-c }) })
	},
	"barrier": func(n int) {
		b, _ := barrier.NewCyclic(system, 8)
		together(slices.Repeat([]func(){func() { repeat(n, func() { b.Await(ctx) }) }}, 8)...)
	},
	"semaphore": func(n int) {
		s, _ := semaphore.New(system, 1)
		together(slices.Repeat([]func(){func() {
			repeat(n, func() { s.Acquire(ctx, 1); runtime.Gosched(); s.Release(1) })
		}}, 8)...)
	},
}

func repeat(n int, do func()) {
	for range n {
		do()
	}
}

// together runs the functions at once, and returns when all have.
func together(all ...func()) {
	var wg sync.WaitGroup
	for _, do := range all {
		wg.Go(do)
	}
	wg.Wait()
}

func main() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	if len(os.Args) == 3 {
		n, err := strconv.Atoi(os.Args[2])
		if run := scenarios[os.Args[1]]; run != nil && err == nil && n > 0 {
			run(100) // what is made once
			run(n)
			return
		}
	}
	fmt.Fprintf(os.Stderr, "usage: instructions SCENARIO N\nscenarios: %v\n", slices.Sorted(maps.Keys(scenarios)))
	os.Exit(2)
}
