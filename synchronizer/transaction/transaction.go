package transaction

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sluice-go/sluice/internal/engine"
)

// Transaction is the transaction object: what is done with its context becomes one whole. Its methods may be
// called from any goroutine.
type Transaction struct {
	manager *Manager
	id      uuid.UUID
	began   time.Time
	tx      engine.Transaction
	parts   participants
	objects [1]Resource   // the coordinator
	place   *list.Element // in Manager.began
	over    EndedError    // of requests that come too late

	mu     sync.Mutex
	ending bool          // Commit has been called, or it is being rolled back
	ended  bool          // and has come
	done   chan struct{} // closed then; nil as long as nothing waits for it
	err    error         // of its end
	// committing says that the end is that of Commit. It is not changed once it has come.
	committing bool
}

var _ Registrar = (*Transaction)(nil)

// From returns the innermost transaction that requests made with ctx belong to, or nil. It may have ended.
func From(ctx context.Context) *Transaction {
	tx := engine.TransactionOf(ctx)
	if tx == nil {
		return nil
	}
	c, _ := tx.Owner.(*coordinator)
	return (*Transaction)(c)
}

// ID returns the transaction identifier: a UUID of version 7, so that later ones are greater.
func (t *Transaction) ID() uuid.UUID { return t.id }

// String implements fmt.Stringer.
func (t *Transaction) String() string { return t.tx.String() }

// Register implements Registrar. It fails with a *RegistrationError also if the transaction has ended, or is
// ending.
func (t *Transaction) Register(r Resource) error { return t.parts.register(r, false) }

// RegisterLast implements Registrar.
func (t *Transaction) RegisterLast(r LastResource) error { return t.parts.registerLast(r) }

// Commit ends the transaction: what has been done in it stays. It waits for the requests that were made in
// it and have not ended yet; if ctx ends before they have, the transaction is rolled back.
//
// It returns nil if all has been committed, and else an *OutcomeError, which says what has become of it; or
// an *EndedError if the transaction had ended before, and an *InsideError if ctx is that of a body which the
// transaction has called.
func (t *Transaction) Commit(ctx context.Context) error {
	if !t.tx.Outermost(ctx) {
		return &InsideError{Transaction: t.id, Call: "Commit"}
	}
	if !t.begin() {
		<-t.Done() // it is being rolled back, which takes no longer than its bodies
		return t.late()
	}
	t.committing = true
	defer t.end()
	if err := t.tx.Quiesce(ctx, &t.over); err != nil {
		t.tx.Doom(fmt.Errorf("requests had not ended: %w", err))
		_ = t.tx.Quiesce(context.Background(), nil)
	}
	t.err = t.parts.commit(ctx)
	return t.err
}

// late returns the error of a Commit that comes too late.
func (t *Transaction) late() error {
	var asked *EndedError
	if err := t.rolled(); err != nil {
		return err
	}
	if cause := t.tx.Cause(); cause != nil && !t.committing && !errors.As(cause, &asked) {
		return &OutcomeError{Transaction: t.id, Outcome: RolledBack, Cause: cause}
	}
	return &EndedError{Transaction: t.id, Err: t.err}
}

// Rollback ends the transaction: what has been done in it is undone, in reverse order, and the resources roll
// back. Requests that wait leave their queues; Rollback waits for bodies that run, until ctx ends: then the transaction
// is rolled back all the same, and Rollback returns the context's error. If it has ended nothing is done.
//
// It returns an *OutcomeError if something could not be undone, or a resource has failed, also before Rollback was
// called; and an *InsideError if ctx is that of a body which the transaction has called.
func (t *Transaction) Rollback(ctx context.Context) error {
	if !t.tx.Outermost(ctx) {
		return &InsideError{Transaction: t.id, Call: "Rollback"}
	}
	t.tx.Doom(&EndedError{Transaction: t.id}) // which has it rolled back on another goroutine
	done := ctx.Done()
	if engine.TransactionOf(ctx) == &t.tx {
		done = nil // it has ended with that, and says nothing
	}
	select {
	case <-t.Done():
		return t.rolled()
	case <-done:
	}
	select {
	case <-t.Done():
		return t.rolled()
	default:
		return ctx.Err()
	}
}

// rolled returns what could not be done as the transaction, which has ended, was rolled back; nil if it was not, or all
// could be.
func (t *Transaction) rolled() error {
	if t.committing {
		return nil
	}
	return t.err
}

// rollback rolls the transaction back for the reason, and waits for its end.
func (t *Transaction) rollback(cause error) error {
	t.tx.Doom(cause)
	if !t.begin() {
		<-t.Done()
		return t.rolled()
	}
	defer t.end()
	_ = t.tx.Quiesce(context.Background(), cause)
	t.err = t.parts.rollback(context.Background(), t.tx.Cause())
	return t.err
}

// begin reports whether the caller is to end the transaction.
func (t *Transaction) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.ending
	t.ending = true
	return first
}

// end says that the transaction has ended.
func (t *Transaction) end() {
	t.manager.forget(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended = true; t.done != nil {
		close(t.done)
	}
}

// Done returns a channel that is closed when the transaction has ended.
func (t *Transaction) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		if t.done = make(chan struct{}); t.ended {
			close(t.done)
		}
	}
	return t.done
}

// coordinator is the resource of a transaction that stands for its objects: it takes what they hold out of
// their running queues. It is volatile: objects can always commit.
type coordinator Transaction

// String implements engine.Owner: it returns the transaction identifier.
func (c *coordinator) String() string { return c.id.String() }

// Choose implements engine.Owner.
func (c *coordinator) Choose(circle []*engine.Transaction) *engine.Transaction {
	return c.manager.choose(circle)
}

// Doomed implements engine.Owner.
func (c *coordinator) Doomed(cause error) {
	t := (*Transaction)(c)
	if err := t.rollback(cause); err != nil {
		t.manager.log(t, "could not be rolled back completely", err)
	}
}

// Name implements Resource.
func (c *coordinator) Name() string { return "objects" }

// Prepare implements Resource. It fails if a request has left an object in a state in which the transaction
// cannot be committed.
func (c *coordinator) Prepare(context.Context, Branch) (Vote, error) {
	if err := c.tx.Freeze(); err != nil {
		return 0, err
	}
	return Prepared, nil
}

// Commit implements Resource.
func (c *coordinator) Commit(context.Context, uuid.UUID) error {
	c.tx.Release(false)
	return nil
}

// Rollback implements Resource. What could not be undone is a heuristic outcome.
func (c *coordinator) Rollback(context.Context, uuid.UUID) error {
	changed := c.tx.Steps() > 0
	failed := c.tx.Undone()
	c.tx.Release(changed)
	if failed == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrHeuristic, errors.Join(failed...))
}

// EndedError fails what is done with a transaction that has ended, or is ending. It has not been done.
type EndedError struct {
	Transaction uuid.UUID
	Err         error // how it has ended: nil, or an *OutcomeError
}

// Error implements error.
func (e *EndedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("sluice: transaction %v has ended: %v", e.Transaction, e.Err)
	}
	return fmt.Sprintf("sluice: transaction %v has ended", e.Transaction)
}

// Unwrap returns how the transaction has ended.
func (e *EndedError) Unwrap() error { return e.Err }

// InsideError fails a call that ends a transaction and is made from inside a body that the transaction has
// called: the end would wait for the body. The transaction goes on.
type InsideError struct {
	Transaction uuid.UUID
	Call        string
}

// Error implements error.
func (e *InsideError) Error() string {
	return fmt.Sprintf("sluice: %s of transaction %v is called from inside a body that runs in it: call it where the transaction was begun", e.Call, e.Transaction)
}
