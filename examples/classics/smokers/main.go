// Smokers: to smoke takes tobacco, paper and matches. Each of three smokers has plenty
// of one of them; an agent has all three, and lays two on the table, again and again.
// Only the smoker who has the third may take them, and the agent lays the next two when
// he has smoked. (S. S. Patil, "Limitations and Capabilities of Dijkstra's Semaphore
// Primitives for Coordination among Processes", 1971.)
//
//	go run ./examples/classics/smokers
//	go run ./examples/classics/smokers -trace page.html
//
// What goes wrong elsewhere, and why not here:
//   - Deadlock: with a semaphore for each ingredient one smoker takes the tobacco and
//     another the paper, and nobody has what he needs. Patil showed that semaphores
//     alone cannot do it; Parnas did it with three more processes, who push. Here a
//     smoker waits for both, and takes both in one step.
//   - A lost wake-up: the agent wakes the wrong smoker, who sleeps again, and the right
//     one never hears of it. Here every smoker is an entry of his own, with his guard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

type none = activeobject.None

// Ingredient is also the smoker who has it.
type Ingredient int

const kinds = 3

func (i Ingredient) String() string { return [...]string{"tobacco", "paper", "matches"}[i] }

// Table is the shared object: what lies on it.
type Table struct {
	on    [kinds]bool
	lit   bool // somebody smokes
	story []event
}

func allBut(missing Ingredient) (on [kinds]bool) {
	for i := range on {
		on[i] = Ingredient(i) != missing
	}
	return on
}

// Lay lays all on the table but one. The agent goes on when that has been smoked.
func (t *Table) Lay(missing Ingredient) (none, error) {
	t.on = allBut(missing)
	t.story = append(t.story, event{laid, missing})
	return smoked.Requeue(nil)
}

// Smoked is the guard of smoked, and of lay.
func (t *Table) Smoked() bool { return t.on == [kinds]bool{} && !t.lit }

// OthersThere is the guard of take, for him who has this.
func (t *Table) OthersThere(has Ingredient) bool { return t.on == allBut(has) }

func (t *Table) Take(has Ingredient) {
	t.on, t.lit = [kinds]bool{}, true
	t.story = append(t.story, event{taken, has})
}

func (t *Table) PutOut(has Ingredient) {
	t.lit = false
	t.story = append(t.story, event{ended, has})
}

var (
	tables = activeobject.NewType[Table]("table")
	lay    = activeobject.Entry(tables, "lay", (*Table).Lay).When("the last was smoked", (*Table).Smoked)
	smoked = activeobject.Entry(tables, "smoked", activeobject.Plain(func(*Table) {})).When("it was smoked", (*Table).Smoked)
	take   = activeobject.EntryFamily(tables, "take", activeobject.Arg((*Table).Take), func(has Ingredient) Ingredient { return has }).
		WhenKey("the other two are there", (*Table).OthersThere)
	putOut = activeobject.Procedure(tables, "put out", activeobject.Arg((*Table).PutOut))
)

// run has the agent come n times.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Table{}
	table, err := activeobject.New(system, tables, state, options...)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		chance := rand.New(rand.NewPCG(1971, 0))
		for range n {
			if _, err := lay.Call(ctx, table, Ingredient(chance.IntN(kinds))); err != nil {
				return err
			}
		}
		return table.Close(ctx) // the smokers, who wait for more, are told
	})
	for has := range Ingredient(kinds) {
		all.Go(func() error {
			for {
				_, err := take.Call(ctx, table, has)
				if errors.Is(err, activeobject.ErrStopped) {
					return nil
				}
				if err == nil {
					runtime.Gosched() // he smokes, and others wait
					_, err = putOut.Call(ctx, table, has)
				}
				if err != nil {
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	times, err := check(state.story, n)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The agent came %d times. Who has tobacco has smoked %d times, who has paper %d, who has matches %d; always the right one.\n",
		n, times[0], times[1], times[2])
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "smokers:", err)
		os.Exit(1)
	}
}
