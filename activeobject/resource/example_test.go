package resource_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject/resource"
	"github.com/sluice-go/sluice/actor"
)

type job struct {
	name     string
	priority int
}

func Example() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	printer, err := resource.New(system, resource.ByPriority(func(j job) int { return j.priority }))
	if err != nil {
		fmt.Println(err)
		return
	}

	grant, _ := printer.Enter(ctx, job{"letter", 1})
	note := printer.Enters().Send(ctx, resource.Request[job]{Data: job{"note", 1}})
	exam := printer.Enters().Send(ctx, resource.Request[job]{Data: job{"exam", 5}})
	fmt.Println(printer.Waiting(), "wait")
	fmt.Println("done:", grant.Done())

	grant, _ = exam.Await(ctx)
	fmt.Println(grant.Data().name, "prints; note is ready:", note.Ready())
	grant.Done()
	grant, _ = note.Await(ctx)
	fmt.Println(grant.Data().name, "prints")
	grant.Done()
	// Output:
	// 2 wait
	// done: <nil>
	// exam prints; note is ready: false
	// note prints
}

// The next job is one for the paper that is in the printer, if there is any.
func ExampleChoosing() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	loaded := "A4"
	printer, err := resource.New(system, resource.Choosing(func(waiting []resource.Client[string]) int {
		for i, c := range waiting {
			if c.Data == loaded {
				return i
			}
		}
		return 0
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	grant, _ := printer.Enter(ctx, "A4")
	legal := printer.Enters().Send(ctx, resource.Request[string]{Data: "legal"})
	a4 := printer.Enters().Send(ctx, resource.Request[string]{Data: "A4"})
	grant.Done()
	grant, _ = a4.Await(ctx)
	fmt.Println(grant.Data(), legal.Ready())
	// Output: A4 false
}

// A holder that hangs loses the resource, and learns of it.
func ExampleLease() {
	ctx := context.Background()
	system := actor.NewSystem()
	defer system.Close(ctx)
	printer, err := resource.New(system, resource.FIFO[string]())
	if err != nil {
		fmt.Println(err)
		return
	}
	err = printer.With(ctx, "book", func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, resource.Lease(time.Millisecond))
	var ended *resource.EndedError
	fmt.Println(errors.As(err, &ended), ended.Reason == resource.LeaseOver)
	// Output: true true
}
