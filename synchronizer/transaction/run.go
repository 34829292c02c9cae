package transaction

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

// Run runs f in a transaction: it begins one, and commits it if f returns nil. If f returns an error, panics or
// ends its goroutine, the transaction is rolled back, and Run returns f's error, or does not return. What f
// has done outside of the transaction it has to undo itself.
//
// If the transaction is rolled back because of a deadlock, f is called again after a pause, as often as
// Attempts allows, in a transaction that is as old as the first: so f must be good for that. F's context is
// that of the transaction: what f calls with another one is no part of it, and may wait for the transaction.
//
// Inside a transaction of the same manager f becomes a part of that: nothing ends with f, and if f returns an
// error the whole can only be rolled back.
//
// The errors of the end are those of Commit, and of the beginning those of Begin.
func (m *Manager) Run(ctx context.Context, f func(ctx context.Context) error) error {
	if outer := From(ctx); outer != nil && outer.manager == m && outer.tx.Ended() == nil { // or else begin says why not
		err := f(ctx)
		if err != nil {
			outer.tx.Doom(err)
		}
		return err
	}
	age := uint64(0)
	for attempt := 1; ; attempt++ {
		inner, t, err := m.begin(ctx, age)
		if err != nil {
			return err
		}
		age = t.tx.Age
		err = t.run(inner, ctx, f)
		if err == nil {
			return nil
		}
		var deadlock *mailbox.DeadlockError
		if !errors.As(t.tx.Cause(), &deadlock) || attempt == m.attempts {
			return err
		}
		if pause(ctx, attempt) != nil {
			return err
		}
	}
}

// run calls f and ends the transaction.
func (t *Transaction) run(inner, outer context.Context, f func(ctx context.Context) error) error {
	returned := false
	defer func() {
		if !returned {
			_ = t.rollback(&EndedError{Transaction: t.id})
		}
	}()
	err := f(inner)
	returned = true
	if err == nil {
		return t.Commit(outer)
	}
	if failed := t.rollback(err); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// pause waits before the next attempt: longer each time, and not all for the same time.
func pause(ctx context.Context, attempt int) error {
	const first, longest = 100 * time.Microsecond, 20 * time.Millisecond
	most := min(first<<min(attempt, 16), longest)
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
