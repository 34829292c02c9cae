// Package object holds the shared objects that are compared. Each is plain
// sequential Go, declared once as a Type: its operations with their guards, which
// every model is made from; how it would be written with a mutex and conditions by
// hand; and who calls it, with books in which lost, doubled and torn updates show.
package object

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/examples/compare/internal/trace"
)

// Type is the declaration of a kind of shared object, whose state is a T.
type Type[T any] struct {
	Name       string
	About      string // what its operations do and wait for
	Operations []Operation[T]
	// Keyed says that operations with different keys touch different parts of the state.
	Keyed bool
	// New makes the state of an object.
	New func(Setting) *T
	// ByHand is the object under a mutex and conditions. Run runs the body of an
	// operation, without excluding anybody.
	ByHand func(state *T, run Run) Hand
	// Callers are those who share the objects.
	Callers func(Setting) []Caller
	// Check says what is wrong with a setting; nil if nothing is.
	Check func(Setting) *SettingError
	// Audit compares the objects with their callers' books after the end, and says
	// what is wrong.
	Audit func([]*T, []Caller) error
}

// Guarded reports whether some operation waits for a guard.
func (t *Type[T]) Guarded() bool {
	return slices.ContainsFunc(t.Operations, func(op Operation[T]) bool { return op.Holds != nil })
}

// Operation is a declared operation: a function if it reads, an entry if it has a
// guard, else a procedure.
type Operation[T any] struct {
	Name  string
	Reads bool
	Body  func(*T, Request) (int64, error)
	Guard string
	Holds func(*T, Request) bool // nil if it is always open
}

// Run runs the body, and lets the trace know.
func (op *Operation[T]) Run(state *T, r Request) (int64, error) {
	r.Span.Start()
	value, err := op.Body(state, r)
	r.Span.End()
	return value, err
}

// Request is the argument of every operation.
type Request struct {
	Key   int
	Value int64
	Work  Work        // what the body does besides
	Span  *trace.Span // nil if the run is not traced
}

// Call makes a request of one operation of one object, and waits for the result.
type Call func(context.Context, Request) (int64, error)

// Run is how a Hand runs bodies.
type Run func(op int, r Request) (int64, error)

// Hand is an object that is written by hand.
type Hand interface {
	Call(op int, r Request) (int64, error)
	// Stop makes the calls that wait, and those that would, fail with ErrStopped.
	// What it fails has not run and never will.
	Stop()
}

// Setting is how objects are used.
type Setting struct {
	Callers int
	Objects int
	Keys    int
	Shares  []float64 // of the operations, in the order of their declaration; they add up to 1
	Work    []Work    // of the bodies, likewise
}

// shareError is how far sums of shares may be off: they are written in decimals.
const shareError = 1e-6

// SettingError says that objects cannot be used as a setting says.
type SettingError struct {
	Field   string // as in a workload file
	Problem string
}

// Error implements error.
func (e *SettingError) Error() string { return e.Field + " " + e.Problem }

// anySetting is the Check of objects that can be used in all ways.
func anySetting(Setting) *SettingError { return nil }

// Caller is one of those who share the objects. It is used by one goroutine.
type Caller interface {
	// Next returns the call to make next.
	Next() Step
	// Done enters the result of that call into the books. An error says what cannot
	// be right about it.
	Done(s Step, value int64) error
}

// Step is a call of an operation of an object, both by number.
type Step struct {
	Object, Op int
	Request
}
