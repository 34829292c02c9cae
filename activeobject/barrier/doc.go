// Package barrier has the shared objects at which goroutines wait for each other.
//
//	rounds, err := barrier.NewCyclic(system, 4)
//
//	for !done { // each of the four
//		compute(part)
//		err := rounds.Await(ctx) // until the other three have come as well
//		…
//	}
//
// Which one to take is a question of what waits for what:
//
//	         waits                         for
//	Cyclic   each of a fixed number        all others, in each round
//	Phaser   any caller                    all that have joined and not left, in each phase
//	Latch    any caller                    so many events, once
//	Squad    a leader, then the herd       enough of the herd, then the leader's word
//	Auto     a leader and the herd         each other
//
// A method calls its operation and waits for the result; one that never waits takes no context. For
// everything else the operation itself is returned, bound to the barrier, by the method with its
// name in the plural:
//
//	f := rounds.Awaits().Send(ctx, nil)                              // a future
//	_, err = done.Awaits().Try(ctx, nil)                             // refuses to wait
//	i, err := activeobject.Select(ctx, done.Awaits().Case(nil), …)   // or something else
//	done.CountDowns().Tell(ctx, nil)                                 // from a body that must not wait
//
// If a context ends while a request waits, it never runs; what that
// means for the others is said of each type.
// When a barrier is stopped, through its Object, everything fails with
// activeobject.ErrStopped.
//
// # Where they come from
//
// Squad and Auto are the squad locks of the patterns for Ada's protected types, Barrier
// and Autobarrier there; the others are from java.util.concurrent. What differs is said
// of each type, and in docs/patterns.md.
package barrier

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

type none = activeobject.None

// The arguments of the operations that only a barrier's own bodies ask for, by a requeue. No
// other package can make one, and so no message can name such an operation.
type (
	closing struct{} // by a leader, of the gate
	acting  struct{} // by the last party, of the action
)

// ErrBroken is matched by the error of a party at a Cyclic that is broken.
var ErrBroken = errors.New("sluice: barrier is broken")

// MisuseError says that a barrier was asked for what it cannot do as things are.
// Nothing has changed.
type MisuseError struct {
	Barrier   string
	Operation string
	Problem   string
}

// Error implements error.
func (e *MisuseError) Error() string {
	return fmt.Sprintf("sluice: %s.%s: %s", e.Barrier, e.Operation, e.Problem)
}

func atLeastOne(call, argument string, n int) error {
	if n < 1 {
		return &activeobject.ArgumentError{Call: call, Argument: argument, Problem: fmt.Sprintf("is %d: there must be at least one", n)}
	}
	return nil
}

// roomFor stops an object that lets fewer wait than have to meet, and returns the error that
// says so.
func roomFor[T any](call string, o *activeobject.Object[T], meet int, parties string) error {
	n, _, bounded := o.Bound()
	if !bounded || n >= meet {
		return nil
	}
	o.Stop()
	return &activeobject.ArgumentError{Call: call, Argument: "options", Problem: fmt.Sprintf("let no more than %d requests wait, so that %s never meet: leave out Bounded, or give it room for all of them", n, parties)}
}

// roomForSquad is roomFor a leader, which may come first, and the least herd.
func roomForSquad[T any](call string, o *activeobject.Object[T], trigger int) error {
	return roomFor(call, o, trigger+1, fmt.Sprintf("a leader and a herd of %d", trigger))
}
