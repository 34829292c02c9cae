package leaderfollowers

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/internal/poll"
)

var (
	// ErrClosed is the error of what is done with a pool, or one of its handles, that has been closed.
	ErrClosed = errors.New("sluice: leaderfollowers: closed")
	// ErrRegistered is the error of adding what the handle set has already. The set is as before.
	ErrRegistered = errors.New("sluice: leaderfollowers: the handle set has a handle for it already")
	// ErrWouldBlock is the error of an operation that would have to wait: leave the rest to the next
	// event of the handle. What has been done until then the result says.
	ErrWouldBlock = errors.New("sluice: leaderfollowers: the operation would block")
	// ErrBusy is the error of File.Begin while an operation of the file is under way.
	ErrBusy = errors.New("sluice: leaderfollowers: an operation of the file is under way")
	// ErrInside is the error of Pool.Close and Shutdown from inside one of the pool's handlers, whose
	// thread cannot end before it returns. The end has begun, and comes when the handler has returned.
	ErrInside = errors.New("sluice: leaderfollowers: the pool ends when the handler has returned from which it is closed")
)

// HandleError says that something cannot be a handle: readiness says nothing about it. Nothing has
// been added, and it is still open. For a regular file the cause is a *poll.NotPollableError: such a
// file is always ready, and epoll refuses it; HandleSet.File has a worker for it.
type HandleError struct {
	What  string // its type, or name
	Cause error
}

// Error implements error.
func (e *HandleError) Error() string {
	return fmt.Sprintf("sluice: leaderfollowers: %s cannot be a handle: %v", e.What, e.Cause)
}

// Unwrap returns the cause.
func (e *HandleError) Unwrap() error { return e.Cause }

// NotPollableError is the cause of a HandleError for a regular file or a directory.
type NotPollableError = poll.NotPollableError

// HandlerError says that an event handler has panicked, ended its goroutine, or returned an error.
type HandlerError struct {
	Handle string // its name, or "" for a task of a dispatcher
	Value  any    // what the handler has panicked with; nil if it has not
	Exited bool   // it has ended its goroutine, by runtime.Goexit
	Err    error  // what it has returned
	Stack  []byte // of a panic
}

// Error implements error.
func (e *HandlerError) Error() string {
	of := "the handler of " + e.Handle
	if e.Handle == "" {
		of = "a task"
	}
	switch {
	case e.Exited:
		return "sluice: leaderfollowers: " + of + " has ended its goroutine"
	case e.Value != nil:
		return fmt.Sprintf("sluice: leaderfollowers: %s has panicked: %v", of, e.Value)
	}
	return fmt.Sprintf("sluice: leaderfollowers: %s: %v", of, e.Err)
}

// Unwrap returns the error that the handler has returned, or has panicked with.
func (e *HandlerError) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	err, _ := e.Value.(error)
	return err
}

// ExhaustedError is the error of Listener.Accept when the process, or the system, has no descriptors
// left. If it comes with a connection, that took a descriptor which the listener keeps in reserve:
// refuse the client, and close the connection soon. Without one the client waits, and the listener is
// looked at again after a pause.
type ExhaustedError struct{ Cause error }

// Error implements error.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("sluice: leaderfollowers: accept: no descriptors are left: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *ExhaustedError) Unwrap() error { return e.Cause }
