package transaction

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Outcome is how a transaction has ended.
type Outcome uint8

const (
	// InDoubt means that it is not known whether the transaction has been committed.
	InDoubt Outcome = iota
	// Committed means that all participants commit.
	Committed
	// RolledBack means that all participants roll back.
	RolledBack
)

// String returns "in doubt", "committed" or "rolled back".
func (o Outcome) String() string {
	switch o {
	case Committed:
		return "committed"
	case RolledBack:
		return "rolled back"
	default:
		return "in doubt"
	}
}

// Errors that the end of a transaction is compared with by errors.Is. An *OutcomeError
// is one or several of them.
var (
	// ErrRolledBack means that the transaction has been rolled back. It can be run again.
	ErrRolledBack = errors.New("sluice: transaction: rolled back")
	// ErrInDoubt means that it is not known whether the transaction has been committed.
	// Its participants have been told nothing, and hold what they hold.
	ErrInDoubt = errors.New("sluice: transaction: in doubt")
	// ErrUnfinished means that the outcome is known, but that a resource has not confirmed
	// it. The resource is told again by recovery.
	ErrUnfinished = errors.New("sluice: transaction: unfinished")
)

// Errors that resources and logs return, or that name the cause of an outcome.
var (
	// ErrNotCommitted is returned by a log or a resource that was to decide, and knows that it
	// has not committed, and never will. It is meant to be wrapped.
	ErrNotCommitted = errors.New("sluice: transaction: not committed")
	// ErrHeuristic is returned by a resource whose outcome differs from that of the transaction,
	// or is unknown, and will stay so: recovery cannot mend it. It is meant to be wrapped.
	ErrHeuristic = errors.New("sluice: transaction: heuristic outcome")
	// ErrNoLog is the cause if a log was needed: of a transaction with two resources that outlive
	// the process and no log, which is rolled back; and of a branch that recovery leaves
	// in doubt because the log that has the decision was not given.
	ErrNoLog = errors.New("sluice: transaction: no log")
	// ErrNoResource is the cause if recovery finds a decision for a resource that was not
	// given. The decision is kept.
	ErrNoResource = errors.New("sluice: transaction: no such resource")
)

// OutcomeError says that a transaction did not end as it was asked to, or that not all
// participants have confirmed the end.
//
//   - It is ErrRolledBack if the transaction has been rolled back.
//   - It is ErrInDoubt if the outcome is not known.
//   - It is ErrUnfinished if a failure can be mended by recovery.
//   - It is ErrHeuristic if the outcome of a participant differs from that of the transaction.
//
// It wraps the cause and the failures.
type OutcomeError struct {
	Transaction uuid.UUID
	Outcome     Outcome
	Cause       error            // why it has been rolled back, or is in doubt
	Failures    []*ResourceError // participants that failed when they were told the outcome
}

// Error implements error.
func (e *OutcomeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sluice: transaction %v: %v", e.Transaction, e.Outcome)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	for i, f := range e.Failures {
		separator := "; "
		if i == 0 {
			separator = ", but "
		}
		fmt.Fprintf(&b, "%s%v", separator, f)
		if f.heuristic() {
			b.WriteString(" (heuristic)")
		} else {
			b.WriteString(" (unfinished)")
		}
	}
	return b.String()
}

// Is reports whether the target is ErrRolledBack, ErrInDoubt or ErrUnfinished, and the
// transaction has ended so.
func (e *OutcomeError) Is(target error) bool {
	switch target {
	case ErrRolledBack:
		return e.Outcome == RolledBack
	case ErrInDoubt:
		return e.Outcome == InDoubt
	case ErrUnfinished:
		for _, f := range e.Failures {
			if !f.heuristic() {
				return true
			}
		}
	}
	return false
}

// Unwrap returns the cause, if there is one, and the failures.
func (e *OutcomeError) Unwrap() []error {
	var all []error
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	for _, f := range e.Failures {
		all = append(all, f)
	}
	return all
}

// ResourceError says that a call to a resource or a log has failed.
type ResourceError struct {
	Resource string
	Call     string // such as "prepare", "commit" or "rollback"
	Err      error  // what it returned, a *mailbox.PanicError, a *mailbox.ExitError, or why it was not waited for
}

// Error implements error.
func (e *ResourceError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Resource, e.Call, e.Err) }

// Unwrap returns the error of the call.
func (e *ResourceError) Unwrap() error { return e.Err }

func (e *ResourceError) heuristic() bool { return errors.Is(e.Err, ErrHeuristic) }

// RegistrationError says that a resource or a log cannot take part in a transaction or in
// recovery. Nothing has changed, and the resource has been told nothing.
type RegistrationError struct {
	Transaction uuid.UUID // zero for recovery
	Resource    string
	Problem     string
}

// Error implements error.
func (e *RegistrationError) Error() string {
	if e.Transaction == uuid.Nil {
		return fmt.Sprintf("sluice: recovery: %q %s", e.Resource, e.Problem)
	}
	return fmt.Sprintf("sluice: transaction %v: %q %s", e.Transaction, e.Resource, e.Problem)
}
