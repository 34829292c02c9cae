package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/actor"
)

// Three workers add up a triangle of numbers, row by row; what a row comes to is ready
// when the last of them has arrived.
func ExampleCyclic() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	var parts [3]int
	rows, err := barrier.NewCyclicAction(system, len(parts), func(context.Context) error {
		fmt.Println(parts[0] + parts[1] + parts[2])
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			for row := range 3 {
				parts[i] = i * row
				if err := rows.Await(ctx); err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	all.Wait()
	// Output:
	// 0
	// 3
	// 6
}

// A party that gives up breaks the round, so that none waits for it in vain.
func ExampleCyclic_Broken() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	b, err := barrier.NewCyclic(system, 2, activeobject.Name("rounds"))
	if err != nil {
		fmt.Println(err)
		return
	}
	f := b.Awaits().Send(context.Background(), nil)
	f.Withdraw()
	fmt.Println(b.Await(context.Background()))
	b.Reset()
	fmt.Println(b.Broken())
	// Output:
	// sluice: rounds is broken: a party has left that had arrived
	// false <nil>
}

// The leader prepares the next task while the herd works on this one.
func ExampleSquad() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	const herd = 4
	squad, err := barrier.NewSquad(system, herd)
	if err != nil {
		fmt.Println(err)
		return
	}
	task := "plow"
	var mu sync.Mutex
	done := map[string]int{}
	var all sync.WaitGroup
	for range herd {
		all.Go(func() {
			for range 2 {
				mu.Lock()
				done[task]++
				mu.Unlock()
				squad.WaitForLeader(ctx)
			}
		})
	}
	for _, next := range []string{"sow", "rest"} {
		squad.WaitForHerd(ctx)
		task = next // they all wait
		fmt.Println(squad.LeaderDone())
	}
	all.Wait()
	fmt.Println(done)
	// Output:
	// 4 <nil>
	// 4 <nil>
	// map[plow:4 sow:4]
}

func ExampleAuto() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	squad, err := barrier.NewAuto(system, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	one, two := squad.WaitsForLeader().Send(ctx, nil), squad.WaitsForLeader().Send(ctx, nil)
	fmt.Println(squad.Gathered(), one.Ready(), two.Ready())
	gone, _ := squad.WaitForHerd(ctx)
	fmt.Println(gone)
	// Output:
	// 2 false false
	// 2
}

func ExamplePhaser() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	phases, err := barrier.NewPhaser(system, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	phases.Join() // and so there are two
	phase, _ := phases.Arrive()
	_, err = phases.Awaits().Try(ctx, phase)
	fmt.Println("it goes on:", errors.Is(err, activeobject.ErrRefused))
	phases.ArriveAndLeave() // the other one
	fmt.Println(phases.AwaitPhase(ctx, phase))
	fmt.Println(phases.Status())
	// Output:
	// it goes on: true
	// <nil>
	// {1 1 0} <nil>
}

func ExampleLatch() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	ready, err := barrier.NewLatch(system, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		go ready.CountDown()
	}
	fmt.Println(ready.Await(ctx))
	// Output: <nil>
}
