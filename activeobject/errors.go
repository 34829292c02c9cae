package activeobject

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// The errors of requests, as the package mailbox describes them.
type (
	StoppedError      = mailbox.StoppedError
	RefusedError      = mailbox.RefusedError
	PanicError        = mailbox.PanicError
	ContextPanicError = mailbox.ContextPanicError
	GuardError        = mailbox.GuardError
	ExitError         = mailbox.ExitError
	DeadlockError     = mailbox.DeadlockError
	RequeuedError     = mailbox.RequeuedError
	FullError         = mailbox.FullError
	PolicyError       = mailbox.PolicyError
	ConflictError     = mailbox.ConflictError
	PriorityError     = mailbox.PriorityError
	RestartError      = mailbox.RestartError
	WaitError         = mailbox.WaitError
	StateLostError    = mailbox.StateLostError

	UndeclaredError = mailbox.UndeclaredError
)

// Errors to compare with errors.Is.
var (
	ErrStopped = mailbox.ErrStopped
	ErrRefused = mailbox.ErrRefused
	ErrFull    = mailbox.ErrFull
	ErrAwaited = actor.ErrAwaited
)

// TypeError says that an operation was called at an object of another type.
// Nothing has happened.
type TypeError struct {
	Object    string
	Type      string // of the object
	Operation string
	Declared  string // the type that the operation belongs to
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("sluice: %s is of type %q; operation %q belongs to another type %q", e.Object, e.Type, e.Operation, e.Declared)
}

// OptionError says that an object could not be made because of an option. No
// object is left behind.
type OptionError struct {
	Type    string
	Option  string
	Problem string
}

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("sluice: new %s: %s %s", e.Type, e.Option, e.Problem)
}

// FactoryError says that an object could not be made, as its factory has failed. There
// is no object.
type FactoryError struct {
	Type  string
	Cause error // what the factory returned, or a *PanicError
}

// Error implements error.
func (e *FactoryError) Error() string { return fmt.Sprintf("sluice: new %s: %v", e.Type, e.Cause) }

// Unwrap returns the cause.
func (e *FactoryError) Unwrap() error { return e.Cause }

// ArgumentError says that an argument of a call makes no sense: of Do, DoWhen, View or
// Until; or of an operation of a ready-made object, such as an acquire of no permits.
// Nothing has changed.
type ArgumentError struct {
	Call     string
	Argument string
	Problem  string
}

// Error implements error.
func (e *ArgumentError) Error() string {
	return "sluice: " + e.Call + ": " + e.Argument + " " + e.Problem
}

// MessageError says that a message to an object's PID was not a request that the
// object understands. Nothing has happened.
type MessageError struct {
	Object  string
	Problem string
}

// Error implements error.
func (e *MessageError) Error() string { return fmt.Sprintf("sluice: %s: %s", e.Object, e.Problem) }

// KeyError fails a request whose key could not be found out: that of its family, or its key or
// interval in the conflict table. It did not run.
type KeyError struct {
	Object    string
	Operation string
	Value     any    // what the function panicked with, or what is wrong with the key or interval
	Stack     []byte // of the panic
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Stack == nil {
		return fmt.Sprintf("sluice: %s.%s: %v", e.Object, e.Operation, e.Value)
	}
	return fmt.Sprintf("sluice: key of %s.%s panicked: %v", e.Object, e.Operation, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *KeyError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// SelectError says that the cases of a Select make no sense. No call has been made.
type SelectError struct{ Problem string }

// Error implements error.
func (e *SelectError) Error() string { return "sluice: select: " + e.Problem }

// ErrNotChosen is the error that Interceptor.Done gets for a call that Select has not
// chosen, and that has not run.
var ErrNotChosen = errors.New("sluice: select: another case was chosen")

// BadRequeueError says that a body asked for a requeue that is not possible. The body
// has run.
type BadRequeueError struct {
	Object    string // in which the body ran
	Operation string // that it asked for
	Problem   string
}

// Error implements error.
func (e *BadRequeueError) Error() string {
	return fmt.Sprintf("sluice: %s: requeue to %s: %s", e.Object, e.Operation, e.Problem)
}

// ImpureError fails a request whose guard, function or key function is not what it
// is taken for, as an object that is Audited has found out. Of a function the body
// has run, and the state is as it left it; of the others the body has not run.
type ImpureError struct {
	Object    string
	Operation string
	Guard     string // empty if it is about the body, or a key
	Problem   string // what was found
	Diff      string // what has changed in the state, if that has been found
}

// Error implements error.
func (e *ImpureError) Error() string {
	guard := ""
	if e.Guard != "" {
		guard = fmt.Sprintf("guard %q of ", e.Guard)
	}
	s := fmt.Sprintf("sluice: %s%s.%s is impure: %s", guard, e.Object, e.Operation, e.Problem)
	if e.Diff != "" {
		s += "\n" + e.Diff
	}
	return s
}
