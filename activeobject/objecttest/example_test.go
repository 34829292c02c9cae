package objecttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/guards"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

// Buffer is the object under test of most examples.
type Buffer struct{ items []string }

func (b *Buffer) Put(item string) { b.items = append(b.items, item) }
func (b *Buffer) Get() string     { item := b.items[0]; b.items = b.items[1:]; return item }
func (b *Buffer) Any() bool       { return len(b.items) > 0 }

var (
	buffers = activeobject.NewType[Buffer]("buffer")
	put     = activeobject.Procedure(buffers, "put", activeobject.Arg((*Buffer).Put))
	get     = activeobject.Entry(buffers, "get", activeobject.Result((*Buffer).Get)).When("any", (*Buffer).Any)
)

func ExampleWaiting() {
	t := new(play) // in a test, its *testing.T
	defer t.end()
	ctx := context.Background()

	buffer := activeobject.Must(activeobject.New(objecttest.NewSystem(t), buffers, &Buffer{}))
	got := make(chan string)
	for range 2 {
		go func() {
			item, _ := get.Call(ctx, buffer, none)
			got <- item
		}()
		objecttest.Waiting(t, buffer, get, 1) // now it does, and no sooner
		put.Call(ctx, buffer, "hello")
		fmt.Println(<-got)
	}
	objecttest.Idle(t, buffer)
	// Output:
	// hello
	// hello
}

// Depot has some pieces left. Shops have none: they requeue every order to the depot.
type (
	Depot struct{ left int }
	Shop  struct{ depot *activeobject.Object[Depot] }
)

var errSoldOut = errors.New("sold out")

func (d *Depot) Sell(customer string) (string, error) {
	if d.left == 0 {
		return "", errSoldOut
	}
	d.left--
	return "one for " + customer, nil
}

var (
	depots = activeobject.NewType[Depot]("depot")
	sell   = activeobject.Procedure(depots, "sell", (*Depot).Sell)
	shops  = activeobject.NewType[Shop]("shop")
	order  = activeobject.Procedure(shops, "order", func(s *Shop, customer string) (string, error) {
		return sell.RequeueTo(s.depot, customer)
	})
)

func ExampleStepper() {
	// Ann and Bob order the last piece, in two shops. Who gets it?
	ctx := context.Background()
	for _, first := range []int{0, 1} {
		t := new(play) // in a test, its *testing.T
		system, stepper := objecttest.NewSystem(t), objecttest.NewStepper(t)
		depot := activeobject.Must(activeobject.New(system, depots, &Depot{left: 1}, activeobject.Dispatcher(stepper)))
		north := activeobject.Must(activeobject.New(system, shops, &Shop{depot}, activeobject.Dispatcher(stepper)))
		south := activeobject.Must(activeobject.New(system, shops, &Shop{depot}, activeobject.Dispatcher(stepper)))

		ann, bob := order.Send(ctx, north, "Ann"), order.Send(ctx, south, "Bob")
		fmt.Println(stepper.Len(), "shops can go on")
		stepper.StepAt(first)
		fmt.Println(stepper.Run(), "more steps")
		fmt.Println(ann.Await(ctx))
		fmt.Println(bob.Await(ctx))
		t.end()
	}
	// Output:
	// 2 shops can go on
	// 3 more steps
	// one for Ann <nil>
	//  sold out
	// 2 shops can go on
	// 3 more steps
	//  sold out
	// one for Bob <nil>
}

// Turnstile lets so many pass. Its guard counts them, which is not a guard's business.
type Turnstile struct{ free int }

func (t *Turnstile) Admit() bool {
	t.free--
	return t.free >= 0
}

var (
	turnstiles = activeobject.NewType[Turnstile]("turnstile")
	pass       = activeobject.Entry(turnstiles, "pass", activeobject.Plain(func(*Turnstile) {})).When("free", (*Turnstile).Admit)
)

func ExampleChecked() {
	t := new(play) // in a test, its *testing.T
	defer t.end()
	ctx := context.Background()

	gate := activeobject.Must(activeobject.New(objecttest.NewSystem(t), turnstiles, &Turnstile{free: 10},
		objecttest.Checked(t)))
	_, err := pass.Call(ctx, gate, none)
	var impure *activeobject.ImpureError
	fmt.Println(errors.As(err, &impure))
	fmt.Println(impure.Guard, "of", impure.Operation+":", impure.Problem)
	fmt.Println(impure.Diff)
	// Output:
	// true
	// free of pass: it changed the state
	// - .free = 10
	// + .free = 8
}

// BoxOffice sells tickets; it knows the object that has them as a proxy.
type BoxOffice struct {
	reserve activeobject.Proxy[int, string]
}

// Sell returns what to tell the customer.
func (b *BoxOffice) Sell(ctx context.Context, seats int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch ticket, err := b.reserve.Call(ctx, seats); {
	case err == nil:
		return ticket
	case errors.Is(err, activeobject.ErrFull):
		return "come back later"
	case errors.Is(err, context.Canceled):
		return "" // the customer has gone
	default:
		return "sorry: " + err.Error()
	}
}

func ExampleFake() {
	t := new(play) // in a test, its *testing.T
	defer t.end()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	seats := objecttest.NewFake[int, string](t, "seats")
	office := BoxOffice{reserve: seats} // in the program, activeobject.At(reserve, hall)

	seats.Return("row 3, seats 7 and 8").Fail(activeobject.ErrFull)
	fmt.Println(office.Sell(ctx, 2))
	fmt.Println(office.Sell(ctx, 5))

	held := seats.Hold()
	told := make(chan string)
	go func() { told <- office.Sell(ctx, 4) }()
	fmt.Println("asked for", held.Made().Argument)
	cancel()
	fmt.Printf("told %q\n", <-told)
	fmt.Println("too late:", !held.Return("row 9"))
	fmt.Println(seats.Arguments())
	// Output:
	// row 3, seats 7 and 8
	// come back later
	// asked for 4
	// told ""
	// too late: true
	// [2 5 4]
}

func ExampleNewSystem() {
	t := new(play) // in a test, its *testing.T
	system := objecttest.NewSystem(t)
	buffer := activeobject.Must(activeobject.New(system, buffers, &Buffer{}))
	get.Send(context.Background(), buffer, none) // and no request will ever put anything
	t.end()
	fmt.Println(len(t.failures), "failure")
	// Output:
	// 1 failure
}

// An hour in a bubble takes no time.
func TestAnHourAtABuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buffer := activeobject.Must(activeobject.New(objecttest.NewSystem(t), buffers, &Buffer{}))
		start := time.Now()

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := get.Call(ctx, buffer, none)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("after %v: %v", time.Since(start), err)
		}

		empty := guards.When("empty", func(b *Buffer) bool { return !b.Any() })
		put.Call(t.Context(), buffer, "hello")
		time.AfterFunc(time.Minute, func() { get.Send(t.Context(), buffer, none) })
		if err := buffer.Until(t.Context(), empty); err != nil || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func ExampleDump() {
	type node struct {
		name string
		next *node
	}
	ring := &node{name: "a", next: &node{name: "b"}}
	ring.next.next = ring
	fmt.Println(objecttest.Dump(ring))
	// Output:
	// .name = "a"
	// .next.name = "b"
	// .next.next = .
}
