// Philosophers: five sit around a table, with one fork between any two of them; they
// think, and now and then one gets hungry, and eats with the forks at his left and at
// his right. No two neighbors may eat at the same time, and nobody may starve. (E. W.
// Dijkstra, "Hierarchical Ordering of Sequential Processes", 1971.)
//
//	go run ./examples/classics/philosophers
//	go run ./examples/classics/philosophers -trace page.html
//
// What goes wrong elsewhere, and why not here:
//   - Deadlock: each has his left fork, and waits for the right one. Here nobody has
//     one fork: an entry takes both in one step, as soon as both are free.
//   - Starvation: the two beside him eat by turns, so that never both of his forks are
//     free. Here they stand in one line, and only its head is asked: HeadOfLine. The
//     price is that somebody may wait although his forks are free.
//   - A lost wake-up: who puts down a fork forgets to tell his neighbor, or tells him
//     before he listens. Here nobody tells anybody: guards are asked again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

const seats = 5

// Table is the shared object: which forks are taken. The forks of philosopher i are
// the i-th and the next.
type Table struct {
	taken [seats]bool
	story []event // for check
}

func next(i int) int { return (i + 1) % seats }

// BothFree is the guard of Take.
func (t *Table) BothFree(i int) bool { return !t.taken[i] && !t.taken[next(i)] }

// Take takes both forks.
func (t *Table) Take(i int) {
	t.taken[i], t.taken[next(i)] = true, true
	t.story = append(t.story, event{i, true})
}

// PutDown puts both down.
func (t *Table) PutDown(i int) {
	t.taken[i], t.taken[next(i)] = false, false
	t.story = append(t.story, event{i, false})
}

var (
	tables  = activeobject.NewType[Table]("table")
	take    = activeobject.Entry(tables, "take", activeobject.Arg((*Table).Take)).WhenArg("both forks are free", (*Table).BothFree).HeadOfLine()
	putDown = activeobject.Procedure(tables, "put down", activeobject.Arg((*Table).PutDown))
)

// run lets each philosopher eat n times.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Table{}
	table, err := activeobject.New(system, tables, state, options...)
	if err != nil {
		return err
	}
	var used [seats]int // how often each fork has been; who has a fork has it for himself, so this needs no lock
	philosophers, ctx := errgroup.WithContext(ctx)
	for i := range seats {
		philosophers.Go(func() error {
			for range n {
				if _, err := take.Call(ctx, table, i); err != nil {
					return err
				}
				used[i]++
				used[next(i)]++
				runtime.Gosched() // he eats, and others try to
				if _, err := putDown.Call(ctx, table, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := philosophers.Wait(); err != nil {
		return err
	}
	if err := check(state.story, n); err != nil {
		return err
	}
	for i, times := range used {
		if times != 2*n {
			return fmt.Errorf("fork %d was used %d times, instead of %d", i, times, 2*n)
		}
	}
	_, err = fmt.Fprintf(out, "Each of %d philosophers has eaten %d times, and never two neighbors at once.\n", seats, n)
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "philosophers:", err)
		os.Exit(1)
	}
}
