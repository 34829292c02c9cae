package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/actor"
)

func Example() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	orders, err := buffer.NewBounded[string](system, 2, activeobject.Name("orders"))
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		defer orders.Close()
		for _, order := range []string{"soup", "bread", "cheese"} {
			if err := orders.Put(ctx, order); err != nil { // waits while there are two
				fmt.Println(err)
			}
		}
	}()
	for order, err := range orders.All(ctx) {
		fmt.Println(order, err)
	}
	_, err = orders.Get(ctx)
	fmt.Println(err)
	// Output:
	// soup <nil>
	// bread <nil>
	// cheese <nil>
	// sluice: orders is closed
}

func ExampleBounded() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	b, _ := buffer.NewBounded[int](system, 2, activeobject.Name("numbers"))
	b.Put(ctx, 1)
	b.Put(ctx, 2)
	_, err := b.Puts().Try(ctx, 3)
	fmt.Println(err)

	waiting := b.Puts().Send(ctx, 3) // a future, until there is room
	fmt.Println(b.Get(ctx))
	_, err = waiting.Await(ctx)
	n, _ := b.Len()
	fmt.Println(err, n, "of", b.Cap())
	// Output:
	// sluice: numbers: put would wait: guard "not full" is false
	// 1 <nil>
	// <nil> 2 of 2
}

// Several producers and consumers share the work, and end together.
func ExampleBounded_All() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	numbers, _ := buffer.NewBounded[int](system, 8)

	var producers, consumers sync.WaitGroup
	for p := range 3 {
		producers.Go(func() {
			for i := range 100 {
				numbers.Put(ctx, 100*p+i)
			}
		})
	}
	sums := make([]int, 2)
	for c := range sums {
		consumers.Go(func() {
			for n := range numbers.All(ctx) {
				sums[c] += n
			}
		})
	}
	producers.Wait()
	numbers.Close()
	consumers.Wait()
	fmt.Println(sums[0] + sums[1])
	// Output: 44850
}

func ExampleOverwriting() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	log, _ := buffer.NewOverwriting[string](system, 2)
	for _, line := range []string{"started", "listening", "ready"} {
		if dropped, _ := log.Put(line); dropped.Any {
			fmt.Println("dropped:", dropped.Item)
		}
	}
	log.Close()
	for line := range log.All(context.Background()) {
		fmt.Println(line)
	}
	// Output:
	// dropped: started
	// listening
	// ready
}

func ExampleUnbounded() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	jobs, _ := buffer.NewUnbounded[int](system)
	for i := range 1000 {
		jobs.Put(i) // never waits
	}
	for range 990 {
		jobs.Get(ctx)
	}
	n, _ := jobs.Len()
	peak, _ := jobs.Peak()
	fmt.Println(n, "left, of", peak)
	// Output: 10 left, of 1000
}

// A sensor is read at any time.
func ExampleReadAny() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	temperature, _ := buffer.NewReadAny[float64](system, activeobject.Name("temperature"))
	_, err := temperature.Get()
	fmt.Println(err)
	temperature.Put(20.5)
	temperature.Put(21)
	fmt.Println(temperature.Get())
	fmt.Println(temperature.Get())
	// Output:
	// sluice: temperature has no value yet
	// 21 <nil>
	// 21 <nil>
}

func ExampleReadNew() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	position, _ := buffer.NewReadNew[string](system)
	position.Put("a1")
	position.Put("a2")
	fmt.Println(position.Get(ctx))
	_, err := position.Gets().Try(ctx, nil) // nothing new
	fmt.Println(errors.Is(err, activeobject.ErrRefused))
	// Output:
	// a2 <nil>
	// true
}

// Each of several readers has a flag.
func ExampleReadNew_Register() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	position, _ := buffer.NewReadNew[string](system)
	map1, _ := position.Register()
	map2, _ := position.Register()
	position.Put("a1")
	fmt.Println(map1.Get(ctx))
	position.Put("a2")
	position.Close()
	for p := range map1.All(ctx) {
		fmt.Println("map 1:", p)
	}
	for p := range map2.All(ctx) {
		fmt.Println("map 2:", p)
	}
	// Output:
	// a1 <nil>
	// map 1: a2
	// map 2: a2
}

// Or each remembers the serial number of what it has read.
func ExampleReadNew_GetAfter() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	config, _ := buffer.NewReadNew[string](system)
	config.Put("red")
	config.Put("green")
	value, serial, err := config.GetAfter(ctx, 0)
	fmt.Println(value, serial, err)

	next := config.GetsAfter().Send(ctx, serial)
	config.Put("blue")
	s, err := next.Await(ctx)
	fmt.Println(s.Value, s.Serial, err)
	// Output:
	// green 2 <nil>
	// blue 3 <nil>
}

func ExampleReadWriteNew() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	tray, _ := buffer.NewReadWriteNew[string](system)
	tray.Put(ctx, "soup")
	second := tray.Puts().Send(ctx, "bread") // once the soup was taken
	fmt.Println(second.Ready())
	fmt.Println(tray.Get(ctx))
	second.Await(ctx)
	fmt.Println(tray.Get(ctx))
	// Output:
	// false
	// soup <nil>
	// bread <nil>
}

// A consumer takes what comes first, from whichever buffer.
func ExampleBounded_Gets() {
	system := actor.NewSystem()
	ctx := context.Background()
	defer system.Close(ctx)
	urgent, _ := buffer.NewUnbounded[string](system)
	normal, _ := buffer.NewBounded[string](system, 4)
	normal.Put(ctx, "letter")
	urgent.Put("telegram")
	for range 2 {
		first, second := urgent.Gets().Case(nil), normal.Gets().Case(nil)
		switch i, _ := activeobject.Select(ctx, first, second); i {
		case 0:
			fmt.Println(first.Result())
		case 1:
			fmt.Println(second.Result())
		}
	}
	// Output:
	// telegram <nil>
	// letter <nil>
}
