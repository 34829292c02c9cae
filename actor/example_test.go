package actor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type lamp struct{ on bool }

var (
	lamps    = activeobject.NewType[lamp]("lamp")
	lampPush = activeobject.Procedure(lamps, "push", activeobject.Get(func(l *lamp) bool { l.on = !l.on; return l.on }))
	lampRead = activeobject.Entry(lamps, "read", activeobject.Get(func(*lamp) string { return "reading" })).
			When("light", func(l *lamp) bool { return l.on })
)

func ExampleSystem() {
	system := actor.NewSystem()
	desk := activeobject.Must(activeobject.New(system, lamps, &lamp{}, activeobject.Named("desk lamp")))
	ctx := context.Background()
	reading := lampRead.Send(ctx, desk, activeobject.None{})
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
	reading := lampRead.Send(ctx, desk, activeobject.None{})
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err := reading.Await(short) // ends this wait only
	fmt.Println(err)
	lampPush.Call(ctx, desk, activeobject.None{})
	fmt.Println(reading.Await(ctx))
	// Output:
	// context deadline exceeded
	// reading <nil>
}
