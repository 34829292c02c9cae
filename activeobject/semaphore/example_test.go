package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

// Printer is a resource that blocks: a page takes its time, and two jobs at once would
// be a mess. It is no shared object, and knows of no other job than the one at hand.
type Printer struct{ jobs []string }

func (p *Printer) Print(job string) {
	time.Sleep(time.Millisecond) // a shared object's body must not
	p.jobs = append(p.jobs, job)
}

// A monitor's operations are short, so a resource that blocks is not put inside of one.
// The semaphore is held around it.
func Example_blocking() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	var printer Printer
	free, err := semaphore.NewBinary(system)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			err := free.With(ctx, func(context.Context) error {
				printer.Print(fmt.Sprint("job ", i)) // alone
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	fmt.Println(len(printer.jobs), "jobs printed")
	// Output: 3 jobs printed
}

func ExampleNewBinary() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	door, _ := semaphore.NewBinary(system, activeobject.Name("door"))
	fmt.Println(door.Acquire(ctx))
	_, err := door.Acquires().Try(ctx, nil)
	fmt.Println(err)
	fmt.Println(door.Release())
	fmt.Println(door.Release()) // the Ada text is silent about this
	// Output:
	// <nil>
	// sluice: door: acquire would wait: guard "free" is false
	// <nil>
	// sluice: door: release of 1 with 0 held
}

func ExampleNew() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	slots, _ := semaphore.New(system, 3)
	slots.Acquire(ctx, 2)
	large := slots.Acquires().Send(ctx, 3)
	small := slots.Acquires().Send(ctx, 1) // fits, but does not pass
	fmt.Println(large.Ready(), small.Ready())
	slots.Release(2)
	fmt.Println(large.Ready(), small.Ready())
	slots.Release(3)
	fmt.Println(large.Ready(), small.Ready())
	// Output:
	// false false
	// true false
	// true true
}

func ExampleNewBarging() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	slots, _ := semaphore.NewBarging(system, 3)
	slots.Acquire(ctx, 2)
	large := slots.Acquires().Send(ctx, 3)
	small := slots.Acquires().Send(ctx, 1) // fits, and passes
	fmt.Println(large.Ready(), small.Ready())
	// Output: false true
}

func ExampleSemaphore_With() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	connections, _ := semaphore.New(system, 4)
	var now, most atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			connections.With(ctx, 1, func(context.Context) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				defer now.Add(-1)
				return nil
			})
		})
	}
	all.Wait()
	fmt.Println("at most four at once:", most.Load() <= 4)
	// Output: at most four at once: true
}

func ExampleSemaphore_Resize() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	slots, _ := semaphore.New(system, 4, activeobject.Name("slots"))
	slots.Acquire(ctx, 4)
	three, two := slots.Acquires().Send(ctx, 3), slots.Acquires().Send(ctx, 2)
	slots.Resize(2) // four are held, two too many for another to be acquired
	_, err := three.Await(ctx)
	fmt.Println(err)
	slots.Release(3)
	fmt.Println(two.Ready())
	slots.Release(1)
	fmt.Println(two.Ready())
	// Output:
	// sluice: slots: acquire of 3 with a size of 2
	// false
	// true
}

func ExampleSemaphore_Drain() {
	system := actor.NewSystem()
	defer system.Close(context.Background())

	// Wait until no worker is busy any more, and let none begin.
	workers, _ := semaphore.New(system, 3)
	workers.Acquire(context.Background(), 1)
	idle, _ := workers.Drain()
	fmt.Println(idle, "were idle")
	// Output: 2 were idle
}
