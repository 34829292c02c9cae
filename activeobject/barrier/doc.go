// Package barrier has the shared objects at which goroutines wait for each other.
//
//	rounds, err := barrier.NewCyclic(system, 4)
//
//	for !done { // each of the four
//		compute(part)
//		err := rounds.Await(ctx) // until the other three have come as well
//		…
//	}
package barrier

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

type none = activeobject.None

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
