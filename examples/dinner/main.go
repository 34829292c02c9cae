// Command dinner is the problem of the dining philosophers, with the table as one shared object.
//
// One request takes both forks of a seat, or waits: its guard looks at the argument, the seat. No seat holds one fork while it waits for
// the other, so the circle of waits that the problem is known for cannot close. The guard also says which fork is missing, and Explain
// repeats it.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

const (
	seats = 5
	free  = -1
)

// Table has a fork between every two seats.
type Table struct {
	holder [seats]int // the seat that has the fork, or free
	meals  [seats]int
}

// NewTable returns a table whose forks are free.
func NewTable() *Table {
	t := &Table{}
	for fork := range t.holder {
		t.holder[fork] = free
	}
	return t
}

// forks returns the forks of a seat.
func forks(seat int) (left, right int) { return seat, (seat + 1) % seats }

// missing says which fork the seat waits for, and which seat has it. It returns "" when both forks are free.
func (t *Table) missing(seat int) string {
	left, right := forks(seat)
	for _, fork := range []int{left, right} {
		if by := t.holder[fork]; by != free {
			return fmt.Sprintf("seat %d waits for fork %d, which seat %d has", seat, fork, by)
		}
	}
	return ""
}

// Take takes the two forks of the seat.
func (t *Table) Take(seat int) {
	left, right := forks(seat)
	t.holder[left], t.holder[right] = seat, seat
}

// PutDown frees them, after a meal.
func (t *Table) PutDown(seat int) {
	left, right := forks(seat)
	t.holder[left], t.holder[right] = free, free
	t.meals[seat]++
}

// Meals returns how often each seat has eaten.
func (t *Table) Meals() [seats]int { return t.meals }

var (
	tables = activeobject.NewType[Table]("table")
	take   = activeobject.Entry(tables, "take forks", activeobject.Arg((*Table).Take)).
		Guard(guards.Of("both forks free", guards.AtArgument, (*Table).missing))
	putDown = activeobject.Procedure(tables, "put down", activeobject.Arg((*Table).PutDown))
	meals   = activeobject.Function(tables, "meals", activeobject.Result((*Table).Meals))
)

// waits returns what each request that waits at the table waits for.
func waits(table *activeobject.Object[Table]) (lines []string) {
	for _, request := range table.Explain().Waiting {
		lines = append(lines, request.Reason.Guard)
	}
	return lines
}

// dine has all seats eat n times, each on a goroutine of its own.
func dine(ctx context.Context, table *activeobject.Object[Table], n int, eat func(seat int)) error {
	dinner, ctx := errgroup.WithContext(ctx)
	for seat := range seats {
		dinner.Go(func() error {
			for range n {
				if err := take.Do(ctx, table, seat); err != nil {
					return err
				}
				eat(seat)
				if err := putDown.Do(context.WithoutCancel(ctx), table, seat); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return dinner.Wait()
}

func main() {
	ctx, system := context.Background(), actor.NewSystem()
	defer func() { _ = system.Close(ctx) }()
	table := activeobject.Must(activeobject.New(system, tables, NewTable()))

	_, _ = take.Do(ctx, table, 0), take.Do(ctx, table, 2)
	one, four := take.Send(ctx, table, 1), take.Send(ctx, table, 4)
	fmt.Println(strings.Join(waits(table), "\n"))
	_ = putDown.Do(ctx, table, 0) // lets seat 4 begin
	fmt.Printf("\nseat 0 has eaten:\n%s\n", strings.Join(waits(table), "\n"))
	_ = putDown.Do(ctx, table, 2) // lets seat 1 begin
	_, err := actor.All(one, four).Await(ctx)
	_, _ = putDown.Do(ctx, table, 1), putDown.Do(ctx, table, 4)

	err = errors.Join(err, dine(ctx, table, 100, func(int) {}))
	eaten, _ := meals.Call(ctx, table, nil)
	fmt.Println("\nmeals:", eaten, err)
}
