package transaction

import (
	"context"

	"github.com/google/uuid"
)

// Log keeps decisions to commit. A transaction that is not in the log has been rolled back
// or will be (presumed abort), so a decision to roll back is not recorded.
//
// The calls for one transaction are made one after the other; those for different
// transactions may overlap.
type Log interface {
	// Name identifies the log. Resources keep it with what they prepare: recovery rolls back
	// only what this log could have decided. Two logs never have the same name.
	Name() string

	// Commit records that a transaction is to be committed by the named participants. When it
	// returns nil, the record survives a crash of the machine. An error that is
	// ErrNotCommitted means that there is no record, nor will be. After any other error the
	// decision is in doubt, until Committed returns it.
	Commit(ctx context.Context, id uuid.UUID, participants []string) error

	// Committed reports whether a transaction is to be committed. The answer is final: after
	// false a record of this transaction is not written any more.
	Committed(ctx context.Context, id uuid.UUID) (bool, error)

	// Unfinished returns the transactions that are to be committed and are not done.
	Unfinished(ctx context.Context) ([]Record, error)

	// Done says that all participants have been told the decision, so that its record is not
	// needed. The record may be removed later, for instance with the next one that is written:
	// recovery finds it, and has nothing left to do.
	Done(ctx context.Context, id uuid.UUID) error
}

// Record is a decision to commit.
type Record struct {
	Transaction  uuid.UUID
	Participants []string // the names of the resources that had prepared
}
