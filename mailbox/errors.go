package mailbox

import (
	"errors"
	"fmt"
	"strings"
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

// StateLostError is why a transaction has been rolled back, or a suspended body does not go on: its object was stopped or
// restarted. What the transaction had done there was undone before; what the body had done was lost with the state.
type StateLostError struct {
	Object string
	What   string // has happened: it was "stopped", or "restarted"
}

// Error implements error.
func (e *StateLostError) Error() string {
	return fmt.Sprintf("sluice: %s was %s, and its state is lost", e.Object, e.What)
}

// WaitError fails a request of a transaction whose context has ended while it waited. It has left its queue
// and never ran; the transaction goes on, and holds what it holds. It wraps the context's error.
type WaitError struct {
	Object, Operation string
	Transaction       string
	Reason            Reason   // why it waited
	KeepsWaiting      []string // requests that waited for the transaction meanwhile; some of them, if they are many
	Cause             error    // the context's error
}

// Error implements error.
func (e *WaitError) Error() string {
	s := fmt.Sprintf("sluice: %s.%s in transaction %s: %v: it waited (%v)", e.Object, e.Operation, e.Transaction, e.Cause, e.Reason)
	if len(e.KeepsWaiting) > 0 {
		s += "; the transaction keeps waiting " + strings.Join(e.KeepsWaiting, ", ")
	}
	return s
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Cause }

// ErrRefused is matched by the error of a Try that would have had to wait.
var ErrRefused = errors.New("sluice: the request would have to wait")

// RefusedError is the answer to a Try that would have had to wait: for its guard, or behind
// another request, or, if neither is named, for a thread. The request did not run and has left
// no trace. It matches ErrRefused.
type RefusedError struct {
	Object    string
	Operation string
	// Guard is the part of the guard that was false, if the guard refused.
	Guard string
	// Behind is the operation of the request that came first, if one did.
	Behind string
}

// Error implements error.
func (e *RefusedError) Error() string {
	switch {
	case e.Guard != "":
		return fmt.Sprintf("%s%s would wait: guard %q is false", of(e.Object), e.Operation, e.Guard)
	case e.Behind != "":
		return fmt.Sprintf("%s%s would wait: %s comes first", of(e.Object), e.Operation, e.Behind)
	}
	return fmt.Sprintf("%s%s would wait: there is no thread for it", of(e.Object), e.Operation)
}

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
func (e *PanicError) Unwrap() error { return asError(e.Value) }

// ContextPanicError fails a request whose context panicked when it was asked, or called
// runtime.Goexit; then the value is nil. It was asked why it had ended, the request having been
// posted; or on the way to another object. A call's context that panics does so out of the call.
type ContextPanicError struct {
	Request string // object and operation, or the address of the actor
	Value   any
	Stack   []byte
}

// Error implements error.
func (e *ContextPanicError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("sluice: the context of %s ended its goroutine (runtime.Goexit)", e.Request)
	}
	return fmt.Sprintf("sluice: the context of %s panicked: %v", e.Request, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *ContextPanicError) Unwrap() error { return asError(e.Value) }

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
func (e *GuardError) Unwrap() error { return asError(e.Value) }

// ErrFull is matched by the error of a request that was turned away from a full
// waiting queue.
var ErrFull = errors.New("sluice: waiting queue is full")

// FullError fails a request that would have had to wait in a full queue, or was dropped from it
// to make room. It did not run. It matches ErrFull.
type FullError struct {
	Object    string
	Operation string // that the request was for
	// Max is how many may wait; if Entry is set, for the operation alone.
	Max   int
	Entry bool
	// Dropped says that the request had been waiting, and made room for another.
	Dropped bool
}

// Error implements error.
func (e *FullError) Error() string {
	what := "the object's waiting queue"
	if e.Entry {
		what = "its waiting queue"
	}
	if e.Dropped {
		return fmt.Sprintf("%s%s was dropped: %s is full (%d), and it was the oldest there", of(e.Object), e.Operation, what, e.Max)
	}
	return fmt.Sprintf("%s%s would wait: %s is full (%d)", of(e.Object), e.Operation, what, e.Max)
}

// Is reports that a FullError matches ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// UndeclaredError fails requests of a family that were found open, though what has run cannot
// have opened their key by its declaration. It is a mistake of the declaration, found only at
// objects that check it; at others these requests would go on waiting.
type UndeclaredError struct {
	Object    string
	Operation string // that opened the key
	Family    string
	Key       any
}

// Error implements error.
func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("%s%s opened key %v of %s, which it does not declare that it can open", of(e.Object), e.Operation, e.Key, e.Family)
}

// of returns the beginning of an error's text. A scheduler knows no name of its object.
func of(object string) string {
	if object == "" {
		return ""
	}
	return "sluice: " + object + ": "
}

// Named returns an error of a Scheduler, which knows no names, with the name of its object; and
// every other error as it is, without asking for the name.
func Named(err error, object func() string) error {
	switch e := err.(type) {
	case *RefusedError:
		named := *e
		named.Object = object()
		return &named
	case *FullError:
		named := *e
		named.Object = object()
		return &named
	case *UndeclaredError:
		named := *e
		named.Object = object()
		return &named
	case *ChoiceError:
		return &PolicyError{Object: object(), Policy: e.Policy, Value: e}
	}
	return err
}

// PolicyError fails the requests that a policy was asked about when it panicked,
// or chose what it was not offered. None of them ran.
type PolicyError struct {
	Object string
	Policy string
	Value  any    // of the panic; a *ChoiceError, of a choice
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
func (e *PolicyError) Unwrap() error { return asError(e.Value) }

// ChoiceError says that a policy chose what it was not offered.
type ChoiceError struct {
	Policy string
	// Index is what the policy returned, and Eligible how many it was offered.
	Index, Eligible int
}

// Error implements error.
func (e *ChoiceError) Error() string {
	return fmt.Sprintf("policy %q chose number %d of %d eligible requests", e.Policy, e.Index, e.Eligible)
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
func (e *ConflictError) Unwrap() error { return asError(e.Value) }

// PriorityError says that a request could not be given another priority. Nothing has
// changed.
type PriorityError struct{ Problem string }

// Error implements error.
func (e *PriorityError) Error() string { return "sluice: set priority: " + e.Problem }

// asError returns the value of a panic if it is an error, or nil.
func asError(value any) error {
	err, _ := value.(error)
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

// RequeuedError fails a request that has been requeued, and did not run again. The
// bodies that had run are listed; what they did is done.
type RequeuedError struct {
	// Ran are the last of them, 64 at most, as object and operation, in the order in
	// which they ran; Earlier is how many ran before these.
	Ran     []string
	Earlier int
	Cause   error
}

// Error implements error.
func (e *RequeuedError) Error() string {
	earlier := ""
	if e.Earlier > 0 {
		earlier = fmt.Sprintf("%d others and ", e.Earlier)
	}
	return fmt.Sprintf("%v (after %s%s had run)", e.Cause, earlier, strings.Join(e.Ran, ", "))
}

// Unwrap returns the cause.
func (e *RequeuedError) Unwrap() error { return e.Cause }
