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

// PanicError fails a request whose body panicked. The object is kept as the body
// left it.
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

// ExitError fails a request whose body ended its goroutine by runtime.Goexit.
type ExitError struct {
	Object    string
	Operation string
}

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("sluice: %s.%s ended its goroutine (runtime.Goexit)", e.Object, e.Operation)
}

// DeadlockError fails a request that would wait for itself: it closes a circle
// of bodies that wait for each other. The request has left its queue and never
// ran; the others in the circle go on waiting, for the body that made it.
type DeadlockError struct {
	// Circle is who waits for what, beginning with the body that is furthest
	// out in the failed request's own chain of calls.
	Circle []Link
}

// Link says that a running body waits for a request to end; both are named by
// object and operation.
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
