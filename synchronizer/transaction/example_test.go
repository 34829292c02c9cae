package transaction_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// A Hotel has rooms, plain Go as ever.
type Hotel struct{ free int }

func (h *Hotel) Book(rooms int)           { h.free -= rooms }
func (h *Hotel) Cancel(rooms int)         { h.free += rooms }
func (h *Hotel) Vacant(rooms int) bool    { return h.free >= rooms }
func (h *Hotel) Free() int                { return h.free }
func (h *Hotel) Close() (rooms int)       { rooms, h.free = h.free, 0; return rooms }
func (h *Hotel) Reopen(_ None, rooms int) { h.free = rooms }

type None = activeobject.None

// Beside each operation stands how it is undone.
var (
	hotels = activeobject.NewType[Hotel]("hotel")
	book   = activeobject.Entry(hotels, "book", activeobject.Arg((*Hotel).Book)).
		WhenArg("vacant", (*Hotel).Vacant).
		Undo(func(h *Hotel, rooms int, _ None) { h.Cancel(rooms) })
	closing = activeobject.Procedure(hotels, "close", activeobject.Result((*Hotel).Close)).Undo((*Hotel).Reopen)
	free    = activeobject.Function(hotels, "free", activeobject.Result((*Hotel).Free))
)

// A trip needs rooms at two hotels, or none at all.
func Example() {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	manager, err := transaction.NewManager(system)
	if err != nil {
		panic(err)
	}
	coast := activeobject.Must(synchronizer.New(system, hotels, &Hotel{free: 5}, activeobject.Name("coast")))
	hills := activeobject.Must(activeobject.New(system, hotels, &Hotel{free: 1}, activeobject.Name("hills")))

	trip := func(rooms int) error {
		return manager.Run(ctx, func(ctx context.Context) error {
			if err := book.Do(ctx, coast, rooms); err != nil {
				return err
			}
			if _, err := book.Try(ctx, hills, rooms); err != nil {
				return fmt.Errorf("the hills: %w", err) // the coast has its rooms back
			}
			return nil
		})
	}
	fmt.Println(trip(1))
	fmt.Println(trip(2))
	fmt.Println(free.Call(ctx, coast, nil))
	// Output:
	// <nil>
	// the hills: sluice: hills: book would wait: guard "vacant" is false
	// 4 <nil>
}

// Begin, Commit and Rollback are for a transaction that is no function.
func ExampleManager_Begin() {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	manager, _ := transaction.NewManager(system, transaction.Lease(time.Minute))
	hotel := activeobject.Must(activeobject.New(system, hotels, &Hotel{free: 3}))

	inside, t, _ := manager.Begin(ctx)
	fmt.Println(closing.Call(inside, hotel, nil))
	fmt.Println(free.Call(inside, hotel, nil))
	fmt.Println(t.Rollback(ctx))
	fmt.Println(free.Call(ctx, hotel, nil))

	var ended *transaction.EndedError
	fmt.Println(errors.As(t.Commit(ctx), &ended))
	// Output:
	// 3 <nil>
	// 0 <nil>
	// <nil>
	// 3 <nil>
	// true
}

// Copies instead of Undo: the state is copied before a transaction changes it.
func ExampleManager_Run() {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	manager, _ := transaction.NewManager(system)
	type ledger map[string]int
	ledgers := activeobject.NewType[ledger]("ledger").Copies(func(l *ledger) *ledger {
		c := ledger{}
		for name, n := range *l {
			c[name] = n
		}
		return &c
	})
	enter := activeobject.Procedure(ledgers, "enter", activeobject.Arg(func(l *ledger, name string) { (*l)[name]++ }))
	names := activeobject.Function(ledgers, "names", activeobject.Result(func(l *ledger) int { return len(*l) }))
	book := activeobject.Must(activeobject.New(system, ledgers, &ledger{}))

	err := manager.Run(ctx, func(ctx context.Context) error {
		enter.Do(ctx, book, "ann")
		enter.Do(ctx, book, "ben")
		fmt.Println(names.Call(ctx, book, nil))
		return errors.New("on second thought")
	})
	fmt.Println(err)
	fmt.Println(names.Call(ctx, book, nil))
	// Output:
	// 2 <nil>
	// on second thought
	// 0 <nil>
}

// What a transaction holds, what it waits for, and what waits for it.
func ExampleTransaction_Explain() {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	manager, _ := transaction.NewManager(system)
	coast := activeobject.Must(activeobject.New(system, hotels, &Hotel{free: 1}, activeobject.Name("coast")))

	inside, t, _ := manager.Begin(ctx)
	book.Do(inside, coast, 1)
	late := book.Send(ctx, coast, 1) // which waits for the transaction
	e := t.Explain()
	for _, at := range e.Holds {
		fmt.Println("holds", at.Object, at.Operation)
	}
	for _, w := range e.KeepsWaiting {
		fmt.Println("keeps waiting", w.Object, w.Operation, w.Reason.Held[0].Operation)
	}
	t.Rollback(ctx)
	fmt.Println(late.Await(ctx))
	// Output:
	// holds coast book
	// keeps waiting coast book book
	// <nil> <nil>
}
