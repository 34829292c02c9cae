// Coaster: a roller coaster has one car with a few seats. It goes only when it is full;
// passengers board when it stands with its doors open, and when it is back all get off
// before anybody boards. (J. S. Herman's problem, in G. R. Andrews, "Concurrent
// Programming: Principles and Practice", 1991, and S. J. Hartley, "Operating Systems
// Programming", 1995.)
//
//	go run ./examples/classics/coaster
//	go run ./examples/classics/coaster -trace page.html
//
// What goes wrong elsewhere, and why not here:
//   - Barging: who has just got off boards again before those get off who sit next to
//     him, or before those board who have waited. Here the doors are a state of the car,
//     and those who wait to board come before those who come.
//   - A passenger who is counted twice, or gives up and is counted: the car leaves with
//     a free seat. Here nobody is counted; who sits in the car is who waits to get off.
//   - A lost wake-up: the last to board wakes the car before it sleeps. Here the car
//     waits for a guard: that all seats are taken.
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

type none = activeobject.None

const passengers, seats = 7, 4

// Car is the shared object.
type Car struct {
	activeobject.Queues
	phase phase
	story []event
}

type phase int

const (
	boarding phase = iota
	running
	unloading
)

// seated is how many sit in the car: those who have boarded, and wait to get off.
func (c *Car) seated() int { return c.Waiting(getOff) }

func (c *Car) Free() bool  { return c.phase == boarding && c.seated() < seats }
func (c *Car) Full() bool  { return c.phase == boarding && c.seated() == seats }
func (c *Car) Back() bool  { return c.phase == unloading }
func (c *Car) Empty() bool { return c.seated() == 0 }

// Board is the first half of a ride; the passenger's call goes on to the second.
func (c *Car) Board(who int) (none, error) {
	c.tell("boards", who)
	return getOff.Requeue(who)
}

func (c *Car) GetOff(who int) { c.tell("gets off", who) }

// Depart is the car's, as is Arrive, which returns when all have got off. That they do
// without fail, so it commits to wait for it.
func (c *Car) Depart() {
	c.phase = running
	c.tell("departs", car)
}

func (c *Car) Arrive() (none, error) {
	c.phase = unloading
	c.tell("arrives", car)
	return open.Requeue(nil, activeobject.Commit)
}

func (c *Car) Open() { c.phase = boarding }

var (
	cars   = activeobject.NewType[Car]("car")
	getOff = activeobject.Entry(cars, "get off", activeobject.Arg((*Car).GetOff)).When("back", (*Car).Back)
	ride   = activeobject.Entry(cars, "ride", (*Car).Board).WhenWaiting("a seat is free", (*Car).Free)
	depart = activeobject.Entry(cars, "depart", activeobject.Plain((*Car).Depart)).WhenWaiting("full", (*Car).Full)
	open   = activeobject.Entry(cars, "open", activeobject.Plain((*Car).Open)).WhenWaiting("empty", (*Car).Empty)
	arrive = activeobject.Procedure(cars, "arrive", activeobject.ResultError((*Car).Arrive))
)

// run lets the car run n times.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Car{}
	object, err := activeobject.New(system, cars, state, options...)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		for range n {
			if _, err := depart.Call(ctx, object, nil); err != nil {
				return err
			}
			runtime.Gosched() // it runs, and others come
			if _, err := arrive.Call(ctx, object, nil); err != nil {
				return err
			}
		}
		object.Stop() // and all who wait are told
		return nil
	})
	for who := range passengers {
		all.Go(func() error {
			for {
				if _, err := ride.Call(ctx, object, who); errors.Is(err, activeobject.ErrStopped) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := check(state.story, n); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The car ran %d times, always with %d passengers; nobody boarded meanwhile, nor before all had got off.\n", n, seats)
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "coaster:", err)
		os.Exit(1)
	}
}
