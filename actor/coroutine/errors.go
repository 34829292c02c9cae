package coroutine

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

var (
	// ErrClosed ends the waits of routines when their scheduler is closed, and refuses new routines
	// after that.
	ErrClosed = errors.New("sluice: the scheduler of coroutines is closed")
	// ErrWithdrawn is the outcome of a task that was withdrawn. It has not run.
	ErrWithdrawn = errors.New("sluice: the task was withdrawn")
)

// RoutineError is the outcome of a routine whose function has not returned: it panicked, or called
// runtime.Goexit. Other routines are not concerned, and the worker, or one in its place, goes on.
type RoutineError struct {
	Function string // the name of the function in the program
	Value    any    // what it panicked with; nil if it ended its goroutine by runtime.Goexit
	Stack    []byte // of the panic
}

// Error implements error.
func (e *RoutineError) Error() string { return failed("routine", e.Function, e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *RoutineError) Unwrap() error { return asError(e.Value) }

// BlockerError ends the waits of all routines in the line of a blocker whose condition has not
// returned: it panicked, or called runtime.Goexit. None of them has gone on before.
type BlockerError struct {
	Function string // the name of the condition in the program
	Value    any    // what it panicked with; nil if it ended its goroutine by runtime.Goexit
	Stack    []byte // of the panic
}

// Error implements error.
func (e *BlockerError) Error() string { return failed("blocker", e.Function, e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *BlockerError) Unwrap() error { return asError(e.Value) }

// CloseError says that routines were left when the context of Close had ended. Their waits have
// ended with ErrClosed, and they go on until they return.
type CloseError struct {
	Left  int   // routines that have not ended; 0 if goroutines of the scheduler are still about to end
	Cause error // of the context
}

// Error implements error.
func (e *CloseError) Error() string {
	if e.Left == 0 {
		return fmt.Sprintf("sluice: close of a scheduler: all routines have ended, but not its goroutines: %v", e.Cause)
	}
	return fmt.Sprintf("sluice: close of a scheduler: %d routines have not ended: %v", e.Left, e.Cause)
}

// Unwrap returns the cause.
func (e *CloseError) Unwrap() error { return e.Cause }

// wrong returns the error of an argument or an option that makes no sense.
func wrong(call, argument, problem string) error {
	return &activeobject.ArgumentError{Call: "coroutine." + call, Argument: argument, Problem: problem}
}

func failed(kind, function string, value any) string {
	if value == nil {
		return fmt.Sprintf("sluice: %s %s ended its goroutine (runtime.Goexit)", kind, function)
	}
	return fmt.Sprintf("sluice: %s %s panicked: %v", kind, function, value)
}

func asError(value any) error {
	err, _ := value.(error)
	return err
}
