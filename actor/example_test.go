package actor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type lamp struct{ on bool }

var (
	lamps    = activeobject.NewType[lamp]("lamp")
	lampPush = activeobject.Procedure(lamps, "push", activeobject.Result(func(l *lamp) bool { l.on = !l.on; return l.on }))
	lampRead = activeobject.Entry(lamps, "read", activeobject.Result(func(*lamp) string { return "reading" })).
			When("light", func(l *lamp) bool { return l.on })
)

func ExampleSystem() {
	system := actor.NewSystem()
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}, activeobject.Name("desk lamp")))
	ctx := context.Background()
	reading := lampRead.Send(ctx, desk, nil)
	for _, snapshot := range system.Explain() {
		fmt.Println(snapshot.Object, "has", len(snapshot.Waiting), "waiting")
	}
	// Closing the system fails what waits, and leaves nothing behind.
	fmt.Println(system.Close(ctx))
	_, err := reading.Await(ctx)
	fmt.Println(err)
	// Output:
	// desk lamp has 1 waiting
	// <nil>
	// sluice: desk lamp has stopped
}

func ExampleFuture() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}))

	ctx := context.Background()
	reading := lampRead.Send(ctx, desk, nil)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err := reading.Await(short) // ends this wait only
	fmt.Println(err)
	lampPush.Call(ctx, desk, nil)
	fmt.Println(reading.Await(ctx))
	// Output:
	// context deadline exceeded
	// reading <nil>
}

func ExampleThen() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}))

	ctx := context.Background()
	reading := lampRead.Send(ctx, desk, nil)
	// What follows runs once the lamp is free again, so it may use it.
	dark := actor.Then(reading, func(what string, err error) (string, error) {
		if err != nil {
			return "", err
		}
		on, err := lampPush.Call(ctx, desk, nil)
		return fmt.Sprintf("after %s the light is on: %t", what, on), err
	})
	lampPush.Call(ctx, desk, nil)
	fmt.Println(dark.Await(ctx))
	// Output: after reading the light is on: false <nil>
}

func ExampleAll() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}))
	hall := activeobject.Must(activeobject.New(system, lamps, &lamp{}, activeobject.Name("hall lamp")))

	ctx := context.Background()
	both := actor.All(
		lampRead.Send(ctx, desk, nil),
		lampRead.Send(ctx, hall, nil),
	)
	lampPush.Call(ctx, desk, nil)
	fmt.Println(both.Ready())
	hall.Stop()
	results, err := both.Await(ctx)
	fmt.Printf("%q\n", results)
	fmt.Println(errors.Is(err, activeobject.ErrStopped), err)
	// Output:
	// false
	// ["reading" ""]
	// true sluice: hall lamp has stopped
}

func ExampleFirst() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}))
	hall := activeobject.Must(activeobject.New(system, lamps, &lamp{}))

	ctx := context.Background()
	somewhere := actor.First(
		lampRead.Send(ctx, desk, nil),
		lampRead.Send(ctx, hall, nil),
	)
	lampPush.Call(ctx, hall, nil)
	fmt.Println(somewhere.Await(ctx))
	// The other goes on waiting; so if it is not wanted, it is withdrawn.
	fmt.Println(lampRead.Waiting(desk), "waits at the desk")
	// Output:
	// reading <nil>
	// 1 waits at the desk
}
