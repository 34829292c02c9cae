package mailbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// ErrStopped is matched by the errors of requests to an object that has stopped.
var ErrStopped = errors.New("sluice: object has stopped")

// StoppedError fails the requests that waited when their object stopped, and
// all that come later. None of them ran.
type StoppedError struct {
	Object string
	Cause  error // why it stopped; nil if it was asked to
}

// Error implements error.
func (e *StoppedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("sluice: %s has stopped: %v", e.Object, e.Cause)
	}
	return fmt.Sprintf("sluice: %s has stopped", e.Object)
}

// Is reports that a StoppedError matches ErrStopped.
func (e *StoppedError) Is(target error) bool { return target == ErrStopped }

// Unwrap returns why the object stopped.
func (e *StoppedError) Unwrap() error { return e.Cause }

// ErrRefused is matched by the error of a Try that would have had to wait.
var ErrRefused = errors.New("sluice: the request would have to wait")

// RefusedError is the answer to a Try that would have had to wait. The request
// did not run and has left no trace.
type RefusedError struct {
	Object string
	Reason kernel.Refused
}

// Error implements error.
func (e *RefusedError) Error() string { return "sluice: " + e.Object + ": " + e.Reason.Error() }

// Is reports that a RefusedError matches ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// RestartError says that an object that was to be restarted could not be given a new
// state. It is a failure of the object like any other: nothing starts at it until its
// supervisor has decided anew. The old state is still there.
type RestartError struct {
	Object string
	// Failure is what the object was restarted for; nil if it was for the sake of
	// others.
	Failure error
	Cause   error // what its factory returned, or a *PanicError or *ExitError of that
}

// Error implements error.
func (e *RestartError) Error() string {
	return fmt.Sprintf("sluice: %s cannot be restarted: %v", e.Object, e.Cause)
}

// Unwrap returns the cause and, if there is one, the failure.
func (e *RestartError) Unwrap() []error {
	if e.Failure == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Failure}
}

// PanicError fails a request whose body panicked. What becomes of the object is its
// supervisor's choice; without one it is kept as the body left it.
type PanicError struct {
	Object    string
	Operation string
	Value     any
	Stack     []byte
}

// Error implements error.
func (e *PanicError) Error() string {
	return fmt.Sprintf("sluice: %s.%s panicked: %v", e.Object, e.Operation, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ContextError fails a request whose context panicked when it was asked, or called
// runtime.Goexit; then the value is nil. It was asked why it had ended, the request having been
// posted; or on the way to another object. A call's context that panics does so out of the call.
type ContextError struct {
	Request string // object and operation, or the address of the actor
	Value   any
	Stack   []byte
}

// Error implements error.
func (e *ContextError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("sluice: the context of %s ended its goroutine (runtime.Goexit)", e.Request)
	}
	return fmt.Sprintf("sluice: the context of %s panicked: %v", e.Request, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *ContextError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// GuardError fails the requests whose guard panicked. None of them ran.
type GuardError struct {
	Object    string
	Operation string
	Guard     string
	Value     any
	Stack     []byte
}

// Error implements error.
func (e *GuardError) Error() string {
	return fmt.Sprintf("sluice: guard %q of %s.%s panicked: %v", e.Guard, e.Object, e.Operation, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *GuardError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrFull is matched by the error of a request that was turned away from a full
// waiting queue.
var ErrFull = errors.New("sluice: waiting queue is full")

// FullError fails a request that would have had to wait in a full queue, or was
// dropped from it to make room. It did not run.
type FullError struct {
	Object string
	Reason kernel.Full
}

// Error implements error.
func (e *FullError) Error() string { return "sluice: " + e.Object + ": " + e.Reason.Error() }

// Is reports that a FullError matches ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// UndeclaredError fails requests of a family that were found open, though what
// has run cannot have opened them by its declaration. It is a mistake of the
// declaration, found only at objects that check it.
type UndeclaredError struct {
	Object string
	Reason kernel.UndeclaredError
}

// Error implements error.
func (e *UndeclaredError) Error() string { return "sluice: " + e.Object + ": " + e.Reason.Error() }

// mayName reports whether Named has anything to do. The name of an object is
// made when it is asked for.
func mayName(err error) bool {
	switch err.(type) {
	case *kernel.Refused, *kernel.Full, *kernel.UndeclaredError, *kernel.ChoiceError:
		return true
	}
	return false
}

// Named returns an error of the kernel with the name of its object, and every
// other error as it is.
func Named(object string, err error) error {
	switch e := err.(type) {
	case *kernel.Refused:
		return &RefusedError{Object: object, Reason: *e}
	case *kernel.Full:
		return &FullError{Object: object, Reason: *e}
	case *kernel.UndeclaredError:
		return &UndeclaredError{Object: object, Reason: *e}
	case *kernel.ChoiceError:
		return &PolicyError{Object: object, Policy: e.Policy, Value: e}
	}
	return err
}

// PolicyError fails the requests that a policy was asked about when it panicked,
// or chose what it was not offered. None of them ran.
type PolicyError struct {
	Object string
	Policy string
	Value  any    // of the panic; a *kernel.ChoiceError, of a choice
	Stack  []byte // of the panic
}

// Error implements error.
func (e *PolicyError) Error() string {
	if e.Stack == nil {
		return fmt.Sprintf("sluice: %s: %v", e.Object, e.Value)
	}
	return fmt.Sprintf("sluice: %s: policy %q panicked: %v", e.Object, e.Policy, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PolicyError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ConflictError fails a request of which a conflict table's condition was to say whether it
// conflicts with another, and panicked. It did not run.
type ConflictError struct {
	Object string
	// Operation is that of the request, and With that of the other.
	Operation, With string
	Value           any    // of the panic
	Stack           []byte // of the panic
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("sluice: %s: the condition on which %s conflicts with %s panicked: %v", e.Object, e.Operation, e.With, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *ConflictError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// PriorityError says that a request could not be given another priority. Nothing has
// changed.
type PriorityError struct{ Problem string }

// Error implements error.
func (e *PriorityError) Error() string { return "sluice: set priority: " + e.Problem }

// ExitError fails a request whose body ended its goroutine by runtime.Goexit.
type ExitError struct {
	Object    string
	Operation string
}

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("sluice: %s.%s ended its goroutine (runtime.Goexit)", e.Object, e.Operation)
}

// DeadlockError fails a request that would wait for itself: it is in a circle
// of bodies that wait for each other. The request has left its queue and never
// ran; the others in the circle go on waiting, for the body that made it. It is
// the request that closes the circle; or, if that is done by the restart of an object,
// which waits for the end of its children, every one for that object in such a circle.
type DeadlockError struct {
	// Circle is who waits for what, beginning with the body that is furthest
	// out in the failed request's own chain of calls.
	Circle []Link
}

// Link says that a running body waits for a request to end; both are named by
// object and operation. Or it is "the restart of" an object that waits for the body of
// one of its children to end.
type Link struct {
	Body string `json:"body"`
	For  string `json:"for"`
}

// Error implements error.
func (e *DeadlockError) Error() string {
	links := make([]string, len(e.Circle))
	for i, l := range e.Circle {
		links[i] = l.Body + " waits for " + l.For
	}
	return "sluice: deadlock: " + strings.Join(links, ", ")
}
