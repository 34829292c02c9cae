package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

func ExampleOperation_Requeue() {
	// An order that is delivered in parts: what is missing is asked for again.
	type Rest struct{ pieces, parts int }
	shelves := activeobject.NewType[Stock]("shelf")
	deliver := activeobject.Procedure(shelves, "deliver", (*Stock).Deliver)
	var order *activeobject.Operation[Stock, Rest, int] // its body names it
	order = activeobject.Entry(shelves, "order", func(s *Stock, rest Rest) (parts int, err error) {
		taken := min(rest.pieces, s.pieces)
		s.pieces -= taken
		rest.pieces, rest.parts = rest.pieces-taken, rest.parts+1
		if rest.pieces > 0 {
			return order.Requeue(rest, activeobject.KeepPlace) // no later job gets ahead
		}
		return rest.parts, nil
	}).When("any left", (*Stock).Any)

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, shelves, &Stock{}, activeobject.Name("bolts")))
	ctx := context.Background()
	first, second := order.Send(ctx, bolts, Rest{pieces: 10}), order.Send(ctx, bolts, Rest{pieces: 10})
	for range 3 {
		deliver.Call(ctx, bolts, 6)
	}
	fmt.Println(first.Await(ctx))

	second.Withdraw()
	_, err := second.Await(ctx)
	var requeued *activeobject.RequeuedError
	fmt.Println(errors.As(err, &requeued), err)
	// Output:
	// 2 <nil>
	// true context canceled (after bolts.order, bolts.order had run)
}

func ExampleOperation_RequeueTo() {
	// A shop that has too few of a thing sends the customer on to its depot.
	type Shop struct {
		Stock
		depot *activeobject.Object[Stock]
	}
	shops := activeobject.NewType[Shop]("shop")
	buy := activeobject.Procedure(shops, "buy", func(s *Shop, n int) (int, error) {
		if !s.Has(n) {
			return stockOrder.RequeueTo(s.depot, n) // the shop is free again, at once
		}
		return s.Order(n)
	})

	system := actor.NewSystem()
	defer system.Close(context.Background())
	depot := activeobject.Must(activeobject.New(system, stocks, &Stock{}))
	shop := activeobject.Must(activeobject.New(system, shops, &Shop{Stock{pieces: 5}, depot}))
	ctx := context.Background()
	large := buy.Send(ctx, shop, 100)
	fmt.Println(buy.Call(ctx, shop, 2))
	stockDeliver.Call(ctx, depot, 150)
	fmt.Println(large.Await(ctx))
	// Output:
	// 3 <nil>
	// 50 <nil>
}

func ExampleSelect() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	north := activeobject.Must(activeobject.New(system, stocks, &Stock{}))
	south := activeobject.Must(activeobject.New(system, stocks, &Stock{}))

	// Whichever depot has the bolts first; the other one never hears of it.
	ctx := context.Background()
	fromNorth, fromSouth := stockOrder.Case(north, 10), stockOrder.Case(south, 10)
	go stockDeliver.Call(ctx, south, 12)
	switch i, err := activeobject.Select(ctx, fromNorth, fromSouth); i {
	case 0:
		fmt.Println(fromNorth.Result())
	case 1:
		fmt.Println(fromSouth.Result())
	default:
		fmt.Println(err)
	}
	fmt.Println(stockOrder.Waiting(north), "wait in the north")
	// Output:
	// 2 <nil>
	// 0 wait in the north
}

func ExampleSelect_otherwise() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	north := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 3}))
	south := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 4}))

	ctx := context.Background()
	fromNorth, fromSouth := stockOrder.Case(north, 10), stockOrder.Case(south, 10)
	i, err := activeobject.Select(ctx, fromNorth, fromSouth, activeobject.Otherwise)
	fmt.Println(i, err) // neither has ten
	// Output: 2 <nil>
}

// A Lift stops at the floors with waiting requests, one stop at a time.
type Lift struct{ floor int }

func (l *Lift) At(floor int) bool { return l.floor == floor }
func (l *Lift) Move(floor int)    { l.floor = floor }
func (l *Lift) Enter(floor int) (string, error) {
	return fmt.Sprintf("in, on floor %d", floor), nil
}

func ExampleEntryFamily() {
	lifts := activeobject.NewType[Lift]("lift")
	enter := activeobject.EntryFamily(lifts, "enter", (*Lift).Enter, func(floor int) int { return floor }).
		WhenKey("the lift is there", (*Lift).At)
	move := activeobject.Procedure(lifts, "move", activeobject.Arg((*Lift).Move))
	// A move lets in only those on the floor it goes to: no other guard is evaluated.
	activeobject.Opens(move, enter, func(floor int) int { return floor })

	system := actor.NewSystem()
	defer system.Close(context.Background())
	lift := activeobject.Must(activeobject.New(system, lifts, &Lift{}))
	ctx := context.Background()
	third, fourth := enter.Send(ctx, lift, 3), enter.Send(ctx, lift, 4)
	move.Call(ctx, lift, 4)
	fmt.Println(fourth.Await(ctx))
	fmt.Println(third.Ready(), enter.WaitingAt(lift, 3), "on floor 3")
	// Output:
	// in, on floor 4 <nil>
	// false 1 on floor 3
}

// served returns the arguments of requests in the order in which an object took
// them, which waited until it had what they wanted.
func served(t *activeobject.Type[Stock], options ...activeobject.Option) []int {
	order := []int{}
	take := activeobject.Entry(t, "take", activeobject.Arg(func(_ *Stock, n int) { order = append(order, n) })).
		When("any left", (*Stock).Any)
	deliver := activeobject.Procedure(t, "deliver", (*Stock).Deliver)
	system := actor.NewSystem()
	defer system.Close(context.Background())
	stock := activeobject.Must(activeobject.New(system, t, &Stock{}, options...))
	ctx := context.Background()
	all := []activeobject.Future[None]{}
	for _, n := range []int{1, 3, 2} {
		all = append(all, take.Send(activeobject.WithPriority(ctx, n), stock, n))
	}
	deliver.Call(ctx, stock, 1)
	actor.All(all...).Await(ctx)
	return order
}

func ExampleLIFO() {
	// A customer who has just come may still be there; one who came long ago has left.
	desks := activeobject.NewType[Stock]("desk").Default(activeobject.ByLatest())
	fmt.Println(served(desks)) // they came as 1, 3, 2
	// Output: [2 3 1]
}

func ExampleByPriority() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}, activeobject.ByPriority()))

	ctx := context.Background()
	hobby := stockOrder.Send(ctx, bolts, 5)
	urgent := stockOrder.Send(activeobject.WithPriority(ctx, 7), bolts, 5)
	stockDeliver.Call(ctx, bolts, 5)
	fmt.Println(hobby.Ready(), urgent.Ready())

	worse := stockOrder.Send(activeobject.WithPriority(ctx, 8), bolts, 5)
	fmt.Println(hobby.SetPriority(9)) // while it waits
	stockDeliver.Call(ctx, bolts, 5)
	fmt.Println(hobby.Ready(), worse.Ready())
	// Output:
	// false true
	// <nil>
	// true false
}

func ExampleOrdered() {
	// Small orders first.
	smallest := activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
		return a.Argument.(int) < b.Argument.(int)
	})
	fmt.Println(served(activeobject.NewType[Stock]("shop"), smallest)) // they came as 1, 3, 2
	// Output: [1 2 3]
}

func ExampleChoosing() {
	// A regular customer goes first, among those who can be served now.
	regulars := activeobject.ByChoice(func(eligible []*activeobject.Candidate) int {
		i := slices.IndexFunc(eligible, func(c *activeobject.Candidate) bool { return c.Client == "ann" })
		return max(i, 0) // or the first that came
	})
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}, regulars))

	ctx := context.Background()
	bob := stockOrder.Send(activeobject.WithClient(ctx, "bob"), bolts, 5)
	ann := stockOrder.Send(activeobject.WithClient(ctx, "ann"), bolts, 5)
	stockDeliver.Call(ctx, bolts, 5)
	fmt.Println(ann.Ready(), bob.Ready())
	// Output: true false
}

func ExampleOperation_HeadOfLine() {
	// Without HeadOfLine small orders could keep the shelf too empty for a large one.
	fair := activeobject.NewType[Stock]("fair shop")
	deliver := activeobject.Procedure(fair, "deliver", (*Stock).Deliver)
	order := activeobject.Entry(fair, "order", (*Stock).Order).WhenArg("in stock", (*Stock).Has).HeadOfLine()

	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, fair, &Stock{}))
	ctx := context.Background()
	large, small := order.Send(ctx, bolts, 20), order.Send(ctx, bolts, 1)
	deliver.Call(ctx, bolts, 5)
	fmt.Println(small.Ready()) // the large one comes first
	deliver.Call(ctx, bolts, 16)
	fmt.Println(large.Ready(), small.Ready())
	// Output:
	// false
	// true true
}

func ExampleBounded() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 1},
		activeobject.Name("bolts"), activeobject.Bound(1, activeobject.Refuse)))

	ctx := context.Background()
	stockOrder.Send(ctx, bolts, 20)             // waits
	_, err := stockOrder.Call(ctx, bolts, 30)   // would be the second
	fmt.Println(stockOrder.Call(ctx, bolts, 1)) // need not wait
	fmt.Println(errors.Is(err, activeobject.ErrFull), err)
	// Output:
	// 0 <nil>
	// true sluice: bolts: order would wait: the object's waiting queue is full (1)
}

func ExampleOperation_Bound() {
	// Of the readings that have not been fetched only the newest counts.
	meters := activeobject.NewType[Stock]("meter")
	note := activeobject.Entry(meters, "note", (*Stock).Deliver).When("free", func(s *Stock) bool { return s.pieces == 0 }).
		Bound(1, activeobject.DropOldest)

	system := actor.NewSystem()
	defer system.Close(context.Background())
	meter := activeobject.Must(activeobject.New(system, meters, &Stock{}, activeobject.Name("meter")))
	ctx := context.Background()
	note.Call(ctx, meter, 10)
	old, newest := note.Send(ctx, meter, 20), note.Send(ctx, meter, 30)
	_, err := old.Await(ctx)
	fmt.Println(err)
	fmt.Println(newest.Ready())
	// Output:
	// sluice: meter: note was dropped: its waiting queue is full (1), and it was the oldest there
	// false
}

// empty is made once, so that all that wait for it share one evaluation.
var empty = guards.When("empty", func(s *Stock) bool { return s.pieces == 0 })

func ExampleObject_Until() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}))

	ctx := context.Background()
	sold := make(chan error)
	for range 3 {
		go func() { sold <- bolts.Until(ctx, empty) }()
	}
	stockOrder.Call(ctx, bolts, 5)
	fmt.Println(<-sold, <-sold, <-sold)
	// Output: <nil> <nil> <nil>
}

func ExampleObject_Do() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}))

	// What is needed once need not be declared.
	ctx := context.Background()
	fmt.Println(bolts.Do(ctx, func(s *Stock) error { s.pieces *= 2; return nil }))
	bolts.View(ctx, func(s *Stock) error { fmt.Println(s.pieces, "pieces"); return nil })

	refilled := make(chan error)
	go func() { refilled <- bolts.DoWhen(ctx, empty, func(s *Stock) error { s.pieces = 100; return nil }) }()
	stockOrder.Call(ctx, bolts, 10)
	fmt.Println(<-refilled)
	fmt.Println(stockCount.Call(ctx, bolts, nil))
	// Output:
	// <nil>
	// 10 pieces
	// <nil>
	// 100 <nil>
}

func ExampleInterceptors() {
	guarded := activeobject.Interceptors(activeobject.Interceptor{
		Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
			if r.Client == nil {
				return nil, errors.New("who are you?")
			}
			return ctx, nil
		},
		Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
			fmt.Println(r.Client, "begins", r.Operation, r.Argument)
			return body()
		},
		Done: func(ctx context.Context, r activeobject.Intercepted, err error) {
			fmt.Println(r.Client, "ends with", err)
		},
	})
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{pieces: 5}, guarded))

	ctx := context.Background()
	_, err := stockOrder.Call(ctx, bolts, 2)
	fmt.Println(err)
	stockOrder.Call(activeobject.WithClient(ctx, "ann"), bolts, 2)
	// Output:
	// who are you?
	// ann begins order 2
	// ann ends with <nil>
}

func ExampleObject_Stats() {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{}, activeobject.Counters()))

	ctx := context.Background()
	waiting := stockOrder.Send(ctx, bolts, 5)
	for range 3 {
		stockDeliver.Call(ctx, bolts, 2)
	}
	waiting.Await(ctx)
	for _, s := range bolts.Stats() {
		fmt.Println(s.Operation, s.Starts, "started,", s.Waits, "waited,", s.WaitingTimes.Count(), "measured")
	}
	// Output:
	// deliver 3 started, 0 waited, 0 measured
	// order 1 started, 1 waited, 1 measured
	// count 0 started, 0 waited, 0 measured
}

func ExampleWatchdog() {
	lines := make(lineByLine, 1)
	system := actor.NewSystem(actor.Logger(lines.logger()))
	defer system.Close(context.Background())
	bolts := activeobject.Must(activeobject.New(system, stocks, &Stock{},
		activeobject.Name("bolts"), activeobject.Watchdog(10*time.Millisecond)))

	stockOrder.Send(context.Background(), bolts, 5)
	fmt.Print(<-lines)
	// Output: level=WARN msg="sluice: a request waits for long" object=bolts operation=order request=1 position=1 because="guard \"in stock\" was false at step 1"
}

// lineByLine is a log whose lines can be waited for.
type lineByLine chan string

func (l lineByLine) Write(line []byte) (int, error) { l <- string(line); return len(line), nil }

// logger writes what does not depend on the time.
func (l lineByLine) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "age" || a.Key == "running" {
			return slog.Attr{}
		}
		return a
	}}))
}
