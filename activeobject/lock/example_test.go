package lock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/actor"
)

func ExampleBurst() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	// A link that is opened for three messages at a time, or for what there is.
	link, _ := lock.NewBurst(system, 3)
	one, two := link.SendRequest(ctx), link.SendRequest(ctx)
	fmt.Println(one.Ready(), two.Ready())
	fmt.Println(link.Request(ctx)) // the third: all pass
	one.Await(ctx)
	two.Await(ctx)

	four := link.SendRequest(ctx)
	fmt.Println(four.Ready())
	link.Grant() // it has waited for long enough
	fmt.Println(four.Await(ctx))

	link.Grant() // nobody waits: it is kept for the next one
	fmt.Println(link.TryRequest(ctx))
	fmt.Println(link.TryRequest(ctx) != nil)
	// Output:
	// false false
	// <nil>
	// false
	// {} <nil>
	// <nil>
	// true
}

func ExampleReadWrite() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	rw, _ := lock.NewReadWrite(system, activeobject.Name("price list"))
	prices := map[string]int{} // guarded by rw
	var all sync.WaitGroup
	for i, fruit := range []string{"apple", "pear", "plum"} {
		all.Go(func() {
			rw.WithLock(ctx, func(context.Context) error { prices[fruit] = 10 + i; return nil })
		})
	}
	all.Wait()
	rw.WithRLock(ctx, func(context.Context) error {
		fmt.Println(prices["apple"], prices["pear"], prices["plum"])
		return nil
	})
	fmt.Println(rw.Unlock())
	// Output:
	// 10 11 12
	// sluice: price list: unlock of a lock that is not held for writing
}

func ExampleNewReadersFirst() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	ctx := context.Background()

	for _, build := range []struct {
		name string
		new  func(*actor.System) (*lock.ReadWrite, error)
	}{
		{"readers first", func(s *actor.System) (*lock.ReadWrite, error) { return lock.NewReadersFirst(s) }},
		{"writers first", func(s *actor.System) (*lock.ReadWrite, error) { return lock.NewWritersFirst(s) }},
		{"fair", func(s *actor.System) (*lock.ReadWrite, error) { return lock.NewReadWrite(s) }},
	} {
		rw, _ := build.new(system)
		rw.RLock(ctx)
		first := rw.SendLock(ctx)
		reader := rw.SendRLock(ctx)
		fmt.Println(build.name+": passes the writer who waits:", reader.Ready())
		second := rw.SendLock(ctx)
		for !first.Ready() {
			rw.RUnlock()
		}
		rw.Unlock()
		fmt.Println("  next is the writer who came later:", second.Ready() && !reader.Ready())
	}
	// Output:
	// readers first: passes the writer who waits: true
	//   next is the writer who came later: false
	// writers first: passes the writer who waits: false
	//   next is the writer who came later: true
	// fair: passes the writer who waits: false
	//   next is the writer who came later: false
}
