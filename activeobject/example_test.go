package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// A stock is the object of the examples: so many pieces on a shelf.
type Stock struct{ pieces int }

func (s *Stock) Deliver(n int) (int, error) { s.pieces += n; return s.pieces, nil }
func (s *Stock) Order(n int) (int, error)   { s.pieces -= n; return s.pieces, nil }
func (s *Stock) Has(n int) bool             { return s.pieces >= n }
func (s *Stock) Any() bool                  { return s.pieces > 0 }
func (s *Stock) Count() int                 { return s.pieces }

var (
	stocks       = activeobject.NewType[Stock]("stock")
	stockDeliver = activeobject.Procedure(stocks, "deliver", (*Stock).Deliver)
	stockOrder   = activeobject.Entry(stocks, "order", (*Stock).Order).WhenArg("in stock", (*Stock).Has)
	stockCount   = activeobject.Function(stocks, "count", activeobject.Result((*Stock).Count))
)

func ExampleNewType() {
	// Declare the operations of a plain Go type once, as package-level variables.
	stocks := activeobject.NewType[Stock]("stock")
	deliver := activeobject.Procedure(stocks, "deliver", (*Stock).Deliver)
	order := activeobject.Entry(stocks, "order", (*Stock).Order).WhenArg("in stock", (*Stock).Has)

	// Then every object of it is shared: one request runs at a time.
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts, err := activeobject.New(system, stocks, &Stock{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(deliver.Call(ctx, bolts, 10))
	fmt.Println(order.Call(ctx, bolts, 4))
	// Output:
	// 10 <nil>
	// 6 <nil>
}

func ExampleType_Default() {
	// Every depot is served by a goroutine of its own, and its operations in turn.
	depots := activeobject.NewType[Stock]("depot").Default(activeobject.DedicatedThread(), activeobject.ByRotation())
	deliver := activeobject.Procedure(depots, "deliver", (*Stock).Deliver)

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, depots, &Stock{}))
	nuts := activeobject.Must(activeobject.New(system, depots, &Stock{}, activeobject.CallerThreads())) // rotates, on its callers' goroutines
	ctx := context.Background()
	fmt.Println(deliver.Call(ctx, bolts, 10))
	fmt.Println(deliver.Call(ctx, nuts, 20))
	// Output:
	// 10 <nil>
	// 20 <nil>
}

// A sealed stock is a stock under a seal. Its declaration knows the stock's
// operations, and the stock's knows nothing of seals.
type SealedStock struct {
	Stock
	sealed bool
}

func (s *SealedStock) Seal()        { s.sealed = true }
func (s *SealedStock) Break()       { s.sealed = false }
func (s *SealedStock) Broken() bool { return !s.sealed }

func ExampleDerive() {
	sealedStocks := activeobject.Derive(stocks, "sealed stock", func(s *SealedStock) *Stock { return &s.Stock }).
		Strengthen("seal broken", (*SealedStock).Broken) // for all that is inherited
	seal := activeobject.Procedure(sealedStocks, "seal", activeobject.Plain((*SealedStock).Seal))
	breakSeal := activeobject.Procedure(sealedStocks, "break seal", activeobject.Plain((*SealedStock).Break))
	order := activeobject.In(sealedStocks, stockOrder) // the inherited operation

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, sealedStocks, &SealedStock{Stock: Stock{pieces: 10}}, activeobject.Name("bolts")))

	ctx := context.Background()
	seal.Call(ctx, bolts, nil)
	waiting := order.Send(ctx, bolts, 4)
	_, err := order.Try(ctx, bolts, 2)
	fmt.Println(err)
	breakSeal.Call(ctx, bolts, nil)
	fmt.Println(waiting.Await(ctx))
	// Output:
	// sluice: bolts: order would wait: guard "seal broken" is false
	// 6 <nil>
}

func ExampleSame() {
	// A rationed stock hands out three at most, and can be emptied. It has no
	// state of its own, so that the handles of the stock are its handles too.
	rationed := activeobject.Derive(stocks, "rationed stock", activeobject.Same)
	activeobject.In(rationed, stockOrder).WhenArg("within ration", func(_ *Stock, n int) bool { return n <= 3 })
	empty := activeobject.Procedure(rationed, "empty", activeobject.Plain(func(s *Stock) { s.pieces = 0 }))

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bread := activeobject.Must(activeobject.New(system, rationed, &Stock{pieces: 10}, activeobject.Name("bread")))

	ctx := context.Background()
	fmt.Println(stockOrder.Call(ctx, bread, 3))
	_, err := stockOrder.Try(ctx, bread, 4)
	fmt.Println(err)
	empty.Call(ctx, bread, nil)
	_, err = stockOrder.Try(ctx, bread, 1)
	fmt.Println(err)
	// Output:
	// 7 <nil>
	// sluice: bread: order would wait: guard "within ration" is false
	// sluice: bread: order would wait: guard "in stock" is false
}

func ExampleOperation_Override() {
	// A counted stock also knows how often it was ordered from.
	type Counted struct {
		Stock
		orders int
	}
	counted := activeobject.Derive(stocks, "counted stock", func(c *Counted) *Stock { return &c.Stock })
	order := activeobject.In(counted, stockOrder).Override(func(c *Counted, n int) (int, error) {
		c.orders++
		return c.Stock.Order(n)
	})
	orders := activeobject.Function(counted, "orders", activeobject.Result(func(c *Counted) int { return c.orders }))

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, counted, &Counted{Stock: Stock{pieces: 10}}))
	ctx := context.Background()
	fmt.Println(order.Call(ctx, bolts, 4))
	fmt.Println(orders.Call(ctx, bolts, nil))
	// Output:
	// 6 <nil>
	// 1 <nil>
}

func ExampleProcedure() {
	stocks := activeobject.NewType[Stock]("stock")
	deliver := activeobject.Procedure(stocks, "deliver", (*Stock).Deliver)
	// Methods without argument, result or error are adapted.
	burn := activeobject.Procedure(stocks, "burn", activeobject.Plain(func(s *Stock) { s.pieces = 0 }))

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}))
	ctx := context.Background()
	fmt.Println(deliver.Call(ctx, bolts, 10))
	burn.Call(ctx, bolts, nil)
	fmt.Println(deliver.Call(ctx, bolts, 1))
	// Output:
	// 10 <nil>
	// 1 <nil>
}

func ExampleEntry() {
	stocks := activeobject.NewType[Stock]("stock")
	deliver := activeobject.Procedure(stocks, "deliver", (*Stock).Deliver)
	takeAll := activeobject.Entry(stocks, "take all", activeobject.Result(func(s *Stock) int {
		n := s.pieces
		s.pieces = 0
		return n
	})).When("any left", (*Stock).Any)

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}))
	ctx := context.Background()
	taken := takeAll.Send(ctx, bolts, nil) // waits: the shelf is empty
	deliver.Call(ctx, bolts, 7)
	fmt.Println(taken.Await(ctx))
	// Output: 7 <nil>
}

func ExampleFunction() {
	stocks := activeobject.NewType[Stock]("stock")
	count := activeobject.Function(stocks, "count", activeobject.Result((*Stock).Count))

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 3}))
	fmt.Println(count.Call(context.Background(), bolts, nil))
	// Output: 3 <nil>
}

func ExampleOperation_Call() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 10}))

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(stockOrder.Call(ctx, bolts, 4))
	_, err := stockOrder.Call(ctx, bolts, 100) // waits until the context ends, and never runs
	fmt.Println(err)
	fmt.Println(stockCount.Call(context.Background(), bolts, nil))
	// Output:
	// 6 <nil>
	// context deadline exceeded
	// 6 <nil>
}

func ExampleOperation_Send() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}))

	ctx := context.Background()
	small, large := stockOrder.Send(ctx, bolts, 2), stockOrder.Send(ctx, bolts, 1000)
	stockDeliver.Call(ctx, bolts, 10)
	fmt.Println(small.Await(ctx))
	fmt.Println(large.Ready(), large.Withdraw())
	fmt.Println(large.Await(ctx))
	// Output:
	// 8 <nil>
	// false true
	// 0 context canceled
}

func ExampleOperation_Begin() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}))

	// A ticket is a future for one, and costs no allocation.
	ctx := context.Background()
	ordered := stockOrder.Begin(ctx, bolts, 2)
	stockDeliver.Call(ctx, bolts, 10)
	fmt.Println(ordered.Await(ctx))
	_, err := ordered.Await(ctx)
	fmt.Println(err)
	// Output:
	// 8 <nil>
	// sluice: the ticket has been used
}

func ExampleOperation_Try() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 3}, activeobject.Name("bolts")))

	ctx := context.Background()
	fmt.Println(stockOrder.Try(ctx, bolts, 2))
	_, err := stockOrder.Try(ctx, bolts, 2)
	fmt.Println(errors.Is(err, activeobject.ErrRefused), err)
	// Output:
	// 1 <nil>
	// true sluice: bolts: order would wait: guard "in stock" is false
}

func ExampleOperation_Tell() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}, activeobject.Name("bolts")))

	ctx := context.Background()
	for range 3 {
		stockDeliver.Tell(ctx, bolts, 5) // does not wait for the result
	}
	fmt.Println(stockCount.Call(ctx, bolts, nil))
	bolts.Stop()
	fmt.Println(stockDeliver.Tell(ctx, bolts, 5))
	// Output:
	// 15 <nil>
	// sluice: bolts has stopped
}

func ExampleOperation_WhenArg() {
	// Each request waits for its own guard: if that is false, it blocks no other request.
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}))

	ctx := context.Background()
	large := stockOrder.Send(ctx, bolts, 20)
	fmt.Println(stockOrder.Call(ctx, bolts, 5))
	stockDeliver.Call(ctx, bolts, 20)
	fmt.Println(large.Await(ctx))
	// Output:
	// 0 <nil>
	// 0 <nil>
}

func ExampleOperation_Guard() {
	type Shop struct {
		Stock
		open bool
	}
	shops := activeobject.NewType[Shop]("shop")
	open := guards.When("open", func(s *Shop) bool { return s.open })
	inStock := guards.WhenArg("in stock", func(s *Shop, n int) bool { return s.Has(n) })
	buy := activeobject.Entry(shops, "buy", func(s *Shop, n int) (int, error) { return s.Order(n) }).
		Guard(guards.And(guards.Over[int](open), inStock))

	system := actor.NewSystem()
	defer system.Close(context.Background())
	shop := activeobject.Must(activeobject.New(system, shops, &Shop{open: true}, activeobject.Name("shop")))
	_, err := buy.Try(context.Background(), shop, 1)
	fmt.Println(err) // the part that is false
	// Output: sluice: shop: buy would wait: guard "in stock" is false
}

func ExampleQueues() {
	// A BurstLock embeds Queues, so that its body sees how many wait for pass: the
	// last of a burst closes the door again. See BurstLock in objects_test.go.
	system := actor.NewSystem()
	defer system.Close(context.Background())
	lock := activeobject.Must(activeobject.New(system, bursts, &BurstLock{}))

	ctx := context.Background()
	first, second := burstPass.Send(ctx, lock, nil), burstPass.Send(ctx, lock, nil)
	burstRelease.Call(ctx, lock, nil)
	late := burstPass.Send(ctx, lock, nil)
	fmt.Println(first.Ready(), second.Ready(), late.Ready())
	// Output: true true false
}

func ExampleObject_Explain() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}, activeobject.Name("bolts")))

	ctx := context.Background()
	stockOrder.Send(ctx, bolts, 20)
	for _, w := range bolts.Explain().Waiting {
		fmt.Printf("%s waits in place %d: %q is false\n", w.Operation, w.Position, w.Reason.Guard)
	}
	// Output: order waits in place 1: "in stock" is false
}

func ExampleProcedureCtx() {
	// A body that calls other objects takes a context and hands it on. So the
	// runtime knows which body waits for which, and a circle is an error.
	type Warehouse struct{ bolts *activeobject.Object[Stock] }
	warehouses := activeobject.NewType[Warehouse]("warehouse")
	ship := activeobject.ProcedureCtx(warehouses, "ship", func(w *Warehouse, ctx context.Context, n int) (string, error) {
		left, err := stockOrder.Call(ctx, w.bolts, n)
		return fmt.Sprintf("%d shipped, %d left", n, left), err
	})

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}))
	warehouse := activeobject.Must(activeobject.New(system, warehouses, &Warehouse{bolts}))
	fmt.Println(ship.Call(context.Background(), warehouse, 2))
	// Output: 2 shipped, 3 left <nil>
}

func ExampleObject_PID() {
	// An object is an actor: protoactor messages to it wait in the same queue.
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}, activeobject.Name("bolts")))

	root := system.Actors().Root
	ordered := root.RequestFuture(bolts.PID(), &actor.Invoke{Operation: "order", Argument: 3}, time.Minute)
	for stockOrder.Waiting(bolts) == 0 {
		runtime.Gosched()
	}
	root.Send(bolts.PID(), &actor.Invoke{Operation: "deliver", Argument: 10})
	answer, _ := ordered.Result()
	reply := answer.(*actor.Reply)
	fmt.Println(reply.Value, reply.Err)
	// Output: 7 <nil>
}

func ExampleOperation_Waiting() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}))
	stockOrder.Send(context.Background(), bolts, 1)
	stockOrder.Send(context.Background(), bolts, 2)
	fmt.Println(stockOrder.Waiting(bolts), "wait")
	// Output: 2 wait
}
