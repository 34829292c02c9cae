package actor

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/mailbox"
)

// ErrClosed is returned by a system that has been closed, and for its objects.
var ErrClosed = errors.New("sluice: system is closed")

// ErrAwaited is the error of Await if the Ticket's request had to wait and its result has been handed
// out, or another goroutine waits for it.
var ErrAwaited = errors.New("sluice: the ticket has been used")

// NameError says that an object could not get the requested name: another actor has it, or it
// cannot be a part of an address (ErrBadName). The name of a stopped object is free when its actor
// has ended, which is a little after its last body has returned; System.Watch tells when.
type NameError struct {
	Name  string
	Cause error // protoactor's ErrNameExists, or ErrBadName
}

// Error implements error.
func (e *NameError) Error() string { return fmt.Sprintf("sluice: name %q: %v", e.Name, e.Cause) }

// Unwrap returns the cause.
func (e *NameError) Unwrap() error { return e.Cause }

// ErrBadName is the cause of a NameError for a name that no actor can have. The name is part of an
// address, in which a slash separates an actor from its children, and which must be valid UTF-8 on
// the wire. A control character could forge lines in logs. Names such as "$3" and "future$3" are
// reserved: protoactor gives them to its own processes.
var ErrBadName = errors.New("not the name of an actor: it contains a slash, a control character or invalid UTF-8, or is like protoactor's own")

// SpawnError says that an actor could not be made as a child of another one. No actor has been
// made.
type SpawnError struct {
	Parent string
	Cause  error // one that matches mailbox.ErrStopped; ErrRestarting or ErrElsewhere
}

// Error implements error.
func (e *SpawnError) Error() string {
	return fmt.Sprintf("sluice: spawn under %s: %v", e.Parent, e.Cause)
}

// Unwrap returns the cause.
func (e *SpawnError) Unwrap() error { return e.Cause }

var (
	// ErrRestarting is the cause of a SpawnError while the parent is being restarted, and waits
	// for the end of its children.
	ErrRestarting = errors.New("sluice: the actor is being restarted")
	// ErrElsewhere is the cause of a SpawnError if the parent belongs to another
	// protoactor system.
	ErrElsewhere = errors.New("sluice: the parent belongs to another actor system")
)

// DeadLetterError fails a request whose message could not be delivered, because no actor has the
// address, or none has it any more. It matches mailbox.ErrStopped, as an actor that has stopped
// cannot be distinguished from one that never existed.
//
// Nothing has run, with one exception: the target may have passed the message on to an actor that
// does not exist, which protoactor does not distinguish.
type DeadLetterError struct {
	Target *PID // nil if the request had no address
}

// Error implements error.
func (e *DeadLetterError) Error() string {
	if e.Target == nil {
		return "sluice: a message to nobody: the PID is nil"
	}
	return fmt.Sprintf("sluice: there is no actor at %s/%s", e.Target.Address, e.Target.Id)
}

// Is reports that a DeadLetterError matches mailbox.ErrStopped.
func (e *DeadLetterError) Is(target error) bool { return target == mailbox.ErrStopped }

// ResultError says that the result of an operation has another type than Ask's R. The operation
// has run.
type ResultError struct {
	Target    *PID
	Operation string
	Want      string // the type R
	Value     any    // the result
}

// Error implements error.
func (e *ResultError) Error() string {
	return fmt.Sprintf("sluice: %s of %s/%s gave a result of type %T, not %s", e.Operation, e.Target.Address, e.Target.Id, e.Value, e.Want)
}

// FutureError says that a function was given invalid arguments, such as no futures or one future
// twice. It has had no effect on them.
type FutureError struct {
	Function string // All, First, Then or OnDone
	Problem  string
}

// Error implements error.
func (e *FutureError) Error() string { return "sluice: " + e.Function + ": " + e.Problem }

// ContinuationError fails a future of Then or OnDone whose function has not returned: it panicked
// or called runtime.Goexit.
type ContinuationError struct {
	Function string // the continuation's name in the program
	Value    any    // what it panicked with; nil if it ended its goroutine by runtime.Goexit
	Stack    []byte
}

// Error implements error.
func (e *ContinuationError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("sluice: continuation %s ended its goroutine (runtime.Goexit)", e.Function)
	}
	return fmt.Sprintf("sluice: continuation %s panicked: %v", e.Function, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *ContinuationError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
