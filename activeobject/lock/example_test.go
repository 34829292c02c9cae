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
	one, two := link.Requests().Send(ctx, nil), link.Requests().Send(ctx, nil)
	fmt.Println(one.Ready(), two.Ready())
	fmt.Println(link.Request(ctx)) // the third: all pass
	one.Await(ctx)
	two.Await(ctx)

	four := link.Requests().Send(ctx, nil)
	fmt.Println(four.Ready())
	link.Grant() // it has waited for long enough
	fmt.Println(four.Await(ctx))

	link.Grant() // no request waits: it is kept for the next one
	_, err := link.Requests().Try(ctx, nil)
	fmt.Println(err)
	_, err = link.Requests().Try(ctx, nil)
	fmt.Println(err != nil)
	// Output:
	// false false
	// <nil>
	// false
	// <nil> <nil>
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

	for _, kind := range []struct {
		name string
		new  func(*actor.System, ...activeobject.Option) (*lock.ReadWrite, error)
	}{
		{"readers first", lock.NewReadersFirst},
		{"writers first", lock.NewWritersFirst},
		{"fair", lock.NewReadWrite},
	} {
		rw, _ := kind.new(system)
		rw.RLock(ctx)
		first := rw.Locks().Send(ctx, lock.ToWrite)
		reader := rw.Locks().Send(ctx, lock.ToRead)
		fmt.Println(kind.name+": passes the writer that waits:", reader.Ready())
		second := rw.Locks().Send(ctx, lock.ToWrite)
		for !first.Ready() {
			rw.RUnlock()
		}
		rw.Unlock()
		fmt.Println("  next is the writer that came later:", second.Ready() && !reader.Ready())
	}
	// Output:
	// readers first: passes the writer that waits: true
	//   next is the writer that came later: false
	// writers first: passes the writer that waits: false
	//   next is the writer that came later: true
	// fair: passes the writer that waits: false
	//   next is the writer that came later: false
}
