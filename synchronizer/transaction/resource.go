package transaction

import (
	"context"

	"github.com/google/uuid"
)

// Resource takes part in transactions: it is registered with one, and told how it ends.
//
// The calls for one transaction are made one after the other, on goroutines of any kind.
// A call that has not returned in time is left behind, and the next one is made only when
// it has returned. A panic counts as an error.
//
// Prepare is called at most once in a transaction. Commit and Rollback may be called again, by
// recovery too: a resource that does not know the transaction, or no longer, has nothing
// to do and returns nil.
type Resource interface {
	// Name says which resource it is in errors and in the log. Two resources in one
	// transaction have different names. The name of a Recoverable resource outlives the
	// process: it is the same after a restart, and no other process uses it.
	Name() string

	// Prepare ensures that the resource can commit later, whatever happens to the process
	// meanwhile; or it returns an error, and the transaction is rolled back. The context
	// is that of the caller that commits.
	Prepare(ctx context.Context, branch Branch) (Vote, error)

	// Commit makes the changes of the transaction permanent. If it returns an error, the
	// branch stays prepared, and Commit is called again by recovery; unless the error is
	// ErrHeuristic: then the resource has decided otherwise, and is told nothing more.
	Commit(ctx context.Context, id uuid.UUID) error

	// Rollback undoes the changes of the transaction. It is called whether or not Prepare
	// has been called, or has failed. If it returns an error it is called again by
	// recovery, unless the error is ErrHeuristic, as with Commit.
	Rollback(ctx context.Context, id uuid.UUID) error
}

// Branch is the part of one resource in a transaction. A resource that prepares durably
// keeps both fields with what it has prepared.
type Branch struct {
	Transaction uuid.UUID
	Log         string // the name of the log that has the decision, if there is one; "" if no log is used
}

// Vote is the answer of a resource that has been asked to prepare. The zero vote is invalid.
type Vote uint8

const (
	// Prepared means that the resource will commit or roll back, as it is told.
	Prepared Vote = iota + 1
	// ReadOnly means that the resource has changed nothing. It has released what it holds,
	// and is told nothing more.
	ReadOnly
)

// OnePhase is a resource that can commit without having prepared. It is used when no other
// resource has something to commit, so that its outcome is that of the transaction.
type OnePhase interface {
	Resource

	// CommitOnePhase commits. An error that is ErrNotCommitted means that nothing has been
	// committed, nor will be. After any other error the outcome is in doubt, and
	// CommitOnePhase is called again, to find it out.
	CommitOnePhase(ctx context.Context, id uuid.UUID) error
}

// Recoverable is a resource whose prepared branches outlive the process.
type Recoverable interface {
	Resource

	// InDoubt returns the prepared branches that have been told neither to commit nor to
	// roll back. What is prepared after the call may be missing.
	InDoubt(ctx context.Context) ([]Branch, error)
}

// LastResource is a resource that cannot prepare. At most one takes part in a transaction.
// It commits when all others have prepared, so its outcome is the decision; and it
// records the decision with its own changes, in one step, so that it is the log of its
// transactions.
type LastResource interface {
	Log

	// Rollback undoes the changes of the transaction, as that of a Resource.
	Rollback(ctx context.Context, id uuid.UUID) error
}

// Registrar is what resources are registered with: a transaction that has not ended.
type Registrar interface {
	// ID identifies the transaction.
	ID() uuid.UUID

	// Register adds a resource to the transaction. To add the same one again does
	// nothing. It returns a *RegistrationError if the resource cannot take part; then it
	// is told nothing.
	Register(r Resource) error

	// RegisterLast adds the one resource that cannot prepare. It returns a
	// *RegistrationError if there is another, or if it cannot take part.
	RegisterLast(r LastResource) error
}
