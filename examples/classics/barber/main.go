// Barber: a shop has one barber, the chair in which he cuts, and some chairs to wait on.
// With nobody there he sleeps; who finds him asleep wakes him, who finds him at work
// waits on a chair, and who finds no chair free leaves. (E. W. Dijkstra, "Cooperating
// Sequential Processes", 1965.)
//
//	go run ./examples/classics/barber
//	go run ./examples/classics/barber -trace page.html
//
// Here the barber is an active object. One customer at a time is what objects are, to
// sleep is to be idle, and the chairs are a bound on those who wait. What goes wrong
// elsewhere, and why not here:
//   - A lost wake-up, from which Dijkstra made the problem: a customer sees the barber
//     at work, and on his way to the chair the barber looks there, sees nobody and falls
//     asleep. Here to come, to find him at work and to sit down are one step.
//   - Lost customers: two see the last free chair. Again, it is one step.
//   - Barging: who comes when the barber is just done gets in before those on the
//     chairs. Here those who wait come first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

type none = activeobject.None

const chairs, crowd = 3, 10

// Barber is the shared object. What he notes is for check.
type Barber struct {
	cutting bool
	done    []int // whom he has cut
}

// Customer is who comes, and what happens while he is being cut.
type Customer struct {
	number    int
	meanwhile func(context.Context) error
}

// Cut takes its time, in which others come. So it is given a context.
func (b *Barber) Cut(ctx context.Context, c Customer) (none, error) {
	if b.cutting {
		return nil, errors.New("the barber cuts two at a time")
	}
	b.cutting = true
	defer func() { b.cutting = false }()
	b.done = append(b.done, c.number)
	return nil, c.meanwhile(ctx)
}

var (
	barbers = activeobject.NewType[Barber]("barber")
	cut     = activeobject.ProcedureCtx(barbers, "cut", (*Barber).Cut).Bound(chairs, activeobject.Refuse)
)

// run has the barber work for n days.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	for range n {
		if err := day(ctx, system, options); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "On each of %d days %d came while the barber was at work: %d found a chair, and were cut one at a time, and %d left.\n",
		n, crowd, chairs, crowd-chairs)
	return err
}

// day begins with a customer who is hard to please: he is not content before all the
// others have come, and each of them has sat down or left.
func day(ctx context.Context, system *actor.System, options []activeobject.Option) error {
	state := &Barber{}
	barber, err := activeobject.New(system, barbers, state, options...)
	if err != nil {
		return err
	}
	defer barber.Stop()
	come, err := barrier.NewLatch(system, crowd, options...)
	if err != nil {
		return err
	}
	defer come.Object().Stop()

	var left [1 + crowd]bool
	street, ctx := errgroup.WithContext(ctx)
	var others []func() error
	for i := range crowd {
		others = append(others, func() error {
			haircut := cut.Send(ctx, barber, Customer{1 + i, func(context.Context) error { return nil }})
			if err := come.CountDown(); err != nil {
				return err
			}
			_, err := haircut.Await(ctx)
			if left[1+i] = errors.Is(err, activeobject.ErrFull); left[1+i] {
				return nil
			}
			return err
		})
	}
	street.Go(func() error {
		_, err := cut.Call(ctx, barber, Customer{0, func(ctx context.Context) error {
			for _, other := range others {
				street.Go(other)
			}
			return come.Await(ctx)
		}})
		return err
	})
	if err := street.Wait(); err != nil {
		return err
	}
	return check(state.done, left[:])
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "barber:", err)
		os.Exit(1)
	}
}
