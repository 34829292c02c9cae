// Package buffer has the shared objects that hand values from producers to consumers.
//
//	orders, err := buffer.NewBounded[Order](system, 16)
//
//	err = orders.Put(ctx, order)              // waits while 16 are in it
//	for order, err := range orders.All(ctx) { // until it is closed, and empty
//		…
//	}
//
// Which one to take is a question of what may get lost, and of which side may wait:
//
//	                Put waits          Get waits          values
//	Bounded         while it is full   while it is empty  every one, once
//	Overwriting     never              while it is empty  the latest few, each once
//	Unbounded       never              while it is empty  every one, once
//	ReadAny         never              never              the latest, any number of times
//	ReadNew         never              for a new one      the latest, once (or once for each reader)
//	ReadWriteNew    until it is read   for a new one      every one, once
//
// Values come out in the order in which they were put, where some are lost with gaps. Any
// number of goroutines may put and get.
//
// A method calls its operation and waits for the result; one that never waits takes no context.
// For everything else, Puts, Gets and Closes return the operation itself, bound to the buffer:
//
//	f := orders.Puts().Send(ctx, order)                            // a future
//	order, err := orders.Gets().Try(ctx, nil)                      // refuses to wait
//	i, err := activeobject.Select(ctx, orders.Gets().Case(nil), …) // or something else
//	produce(orders.Puts())                                         // for code that knows a Proxy only
//
// If a context ends while its request waits, that request never runs: a Get has taken nothing,
// a Put has put nothing.
//
// A buffer can be closed. Put fails then, also if it waits, with a *ClosedError;
// Get does so once there is nothing left to get. Stopping a buffer, through its Object,
// is harder: what is in it is lost, and everything fails with activeobject.ErrStopped.
//
// # Where they come from
//
// These are the buffer patterns of a text on shared data in Ada, as protected types. What
// differs: a Bounded holds exactly its capacity (the array 0..Max of the text holds Max+1
// items); an Overwriting says what it has dropped; an Unbounded allocates for 64 items at
// once, and not for each; a ReadNew has both of the answers for several readers that the
// text gives in words; all can be closed, and so ranged over. Docs/patterns.md has a table.
//
// The text advises single-element buffers where they will do, since they beat bounded
// ones, and those unbounded ones. That was measured, and is not so here. Put and Get by one
// goroutine cost the same in all of them, to 2 %; only a list with a node for each item,
// which is the text's unbounded buffer, costs a fifth more. Between goroutines what counts
// is how often they wait: through a ReadWriteNew, two times for three items, which makes
// it ten times slower than a Bounded with room for 1024 or an Unbounded, and still a third
// slower if one side takes a microsecond for each item. (A Bounded with room for one is a
// ReadWriteNew, at the same price.) So take a single-element buffer for what it means, and
// not for its speed; those that skip values, ReadAny and ReadNew, save their readers the
// work.
package buffer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/sluice-go/sluice/activeobject"
)

type none = activeobject.None

// ErrClosed is matched by the errors of requests to a buffer that has been closed.
var ErrClosed = errors.New("sluice: buffer is closed")

// ClosedError fails a Put to a buffer that has been closed, a Get from one that has
// nothing left, and a second Close. Nothing has changed.
type ClosedError struct {
	Buffer string
	Reader uint64 // the Reader of a ReadNew that has been closed; 0 if it is the buffer
}

// Error implements error.
func (e *ClosedError) Error() string {
	if e.Reader != 0 {
		return fmt.Sprintf("sluice: reader %d of %s is closed", e.Reader, e.Buffer)
	}
	return "sluice: " + e.Buffer + " is closed"
}

// Is reports that a ClosedError matches ErrClosed.
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

// end is the part of all states that says whether more is to come.
type end struct {
	activeobject.Queues
	closed bool
}

func (e *end) close(none) (none, error) {
	if e.closed {
		return nil, e.passed()
	}
	e.closed = true
	return nil, nil
}

// passed is the error of a request that comes too late.
func (e *end) passed() error { return &ClosedError{Buffer: e.ObjectName()} }

// all ranges over what get returns. A buffer that is closed and drained ends it
// silently; any other error is its last.
func all[T any](ctx context.Context, get func(context.Context) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			item, err := get(ctx)
			if errors.Is(err, ErrClosed) || !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// typeName tells the buffers of one type of item from those of another.
func typeName[T any](kind string) string { return kind + "[" + reflect.TypeFor[T]().String() + "]" }

func checkCapacity(call string, capacity int) error {
	if capacity < 1 {
		return &activeobject.ArgumentError{Call: call, Argument: "capacity", Problem: fmt.Sprintf("is %d: there must be room for at least one item", capacity)}
	}
	return nil
}
