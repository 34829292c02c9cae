// Water: atoms of hydrogen and of oxygen come by themselves, and each waits until it
// can be part of a molecule: two of hydrogen and one of oxygen. They go in groups of
// three; no atom of the next molecule may be among them. (G. R. Andrews, "Concurrent
// Programming: Principles and Practice", 1991.)
//
//	go run ./examples/classics/water
//	go run ./examples/classics/water -trace page.html
//
// What goes wrong elsewhere, and why not here:
//   - Barging: the first hydrogen has passed, and before the second wakes up, a third
//     takes its place; or it is counted for two molecules. Here the oxygen opens two
//     places, and no other oxygen can start before both are taken.
//   - Deadlock: with a semaphore for each element, two oxygens have one hydrogen each.
//     Here nobody has anything; the oxygen starts when two hydrogens wait.
//   - An atom that gives up while it waits, as its context ends, and is counted all the
//     same. Here those that wait are counted by the object: WhenWaiting.
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
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

// Vessel is the shared object.
type Vessel struct {
	activeobject.Queues
	molecules int // so far
	places    int // for hydrogen in the last one
	story     []atom
}

// TwoWait is the guard of Oxygen.
func (v *Vessel) TwoWait() bool { return v.places == 0 && v.Waiting(hydrogen) >= 2 }

// Oxygen begins a molecule. It returns the number of that, and so does Hydrogen. The two
// that wait come next; if one of them gives up just now, its place is for another.
func (v *Vessel) Oxygen() int {
	v.molecules++
	v.places = 2
	v.story = append(v.story, atom{"O", v.molecules})
	return v.molecules
}

// Place is the guard of Hydrogen.
func (v *Vessel) Place() bool { return v.places > 0 }

func (v *Vessel) Hydrogen() int {
	v.places--
	v.story = append(v.story, atom{"H", v.molecules})
	return v.molecules
}

var (
	vessels  = activeobject.NewType[Vessel]("vessel")
	hydrogen = activeobject.Entry(vessels, "hydrogen", activeobject.Result((*Vessel).Hydrogen)).When("there is a place", (*Vessel).Place)
	oxygen   = activeobject.Entry(vessels, "oxygen", activeobject.Result((*Vessel).Oxygen)).WhenWaiting("two hydrogens wait", (*Vessel).TwoWait)
)

// drop is how many molecules are made at once.
const drop = 10

// run makes n drops.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Vessel{}
	vessel, err := activeobject.New(system, vessels, state, options...)
	if err != nil {
		return err
	}
	var told []atom // by the calls, whatever the bodies noted
	for range n {
		var results [3 * drop]atom
		atoms, ctx := errgroup.WithContext(ctx)
		for i := range results {
			comes, element := hydrogen, "H"
			if i%3 == 0 {
				comes, element = oxygen, "O"
			}
			atoms.Go(func() error {
				molecule, err := comes.Call(ctx, vessel, nil)
				results[i] = atom{element, molecule}
				return err
			})
		}
		if err := atoms.Wait(); err != nil {
			return err
		}
		told = append(told, results[:]...)
	}
	if err := check(state.story, told); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d molecules, each of two H and one O, one after the other.\n", n*drop)
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "water:", err)
		os.Exit(1)
	}
}
