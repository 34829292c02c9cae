package transaction_test

import (
	"context"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

var ctx = context.Background()

func TestWhatIsCommittedStays(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		from, to := b.account(100), b.account(0)
		require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
			require.NoError(t, withdraw.Do(ctx, from, 30))
			return deposit.Do(ctx, to, 30)
		}))
		b.holds(from, 70)
		b.holds(to, 30)
	})
}

func TestWhatIsRolledBackIsUndone(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		from, to := b.account(100), b.account(0)
		require.ErrorIs(t, b.manager.Run(ctx, func(ctx context.Context) error {
			require.NoError(t, withdraw.Do(ctx, from, 30))
			require.NoError(t, deposit.Do(ctx, to, 30))
			require.NoError(t, deposit.Do(ctx, to, 5))
			return errBroken
		}), errBroken)
		b.holds(from, 100)
		b.holds(to, 0)
	})
}

func TestNothingSeesWhatIsNotCommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(100)
		inner, tx, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(inner, account, 30))
		seen := balance.Send(ctx, account, nil)
		objecttest.Waiting(t, account, balance, 1)
		n, err := balance.Call(inner, account, nil) // which passes the one that waits
		require.NoError(t, err)
		require.Equal(t, 130, n)
		explained := account.Explain().String()
		require.Contains(t, explained, "held     deposit by transaction "+tx.ID().String())
		require.Contains(t, explained, "balance (no. 1 in its queue")
		require.Contains(t, explained, "conflicts with deposit, held by transaction "+tx.ID().String())
		require.NoError(t, tx.Rollback(ctx))
		n, err = seen.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 100, n)
	})
}

func TestWhatIsReadStays(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(100)
		inner, tx, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		n, err := balance.Call(inner, account, nil)
		require.NoError(t, err)
		require.Equal(t, 100, n)
		b.holds(account, 100) // which may be read
		changed := deposit.Send(ctx, account, 1)
		objecttest.Waiting(t, account, deposit, 1)
		require.NoError(t, deposit.Do(inner, account, 5), "an upgrade passes what waits")
		require.NoError(t, tx.Commit(ctx))
		_, err = changed.Await(ctx)
		require.NoError(t, err)
		b.holds(account, 106)
	})
}

func TestGuardsSeeWhatTheTransactionHasDone(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(0)
		require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
			sent := withdraw.Send(ctx, account, 30)
			objecttest.Waiting(t, account, withdraw, 1)
			require.NoError(t, deposit.Do(ctx, account, 30))
			_, err := sent.Await(ctx)
			return err
		}))
		b.holds(account, 0)
	})
}

func TestADeadlockRollsTheYoungestBack(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		one, other := b.account(0), b.account(0)
		older, first, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		younger, second, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(older, one, 1))
		require.NoError(t, deposit.Do(younger, other, 2))
		waits := make(chan error)
		go func() { waits <- deposit.Do(younger, one, 2) }()
		objecttest.Waiting(t, one, deposit, 1)
		require.NoError(t, deposit.Do(older, other, 1), "it closes the circle, and goes on")
		var deadlock *activeobject.DeadlockError
		require.ErrorAs(t, <-waits, &deadlock)
		require.ElementsMatch(t, []mailbox.Link{
			{Body: first.String(), For: other.Name() + ".deposit"},
			{Body: second.String(), For: one.Name() + ".deposit"},
		}, deadlock.Circle)
		<-second.Done()
		require.NoError(t, first.Commit(ctx))
		err = second.Commit(ctx)
		require.ErrorIs(t, err, transaction.ErrRolledBack)
		require.ErrorAs(t, err, &deadlock)
		b.holds(one, 1)
		b.holds(other, 1)
	})
}

func TestALeaseEndsATransaction(t *testing.T) {
	b := newFixture(t)
	manager, err := transaction.NewManager(b.system, transaction.Lease(time.Millisecond))
	require.NoError(t, err)
	account := b.account(0)
	inner, tx, err := manager.Begin(ctx)
	require.NoError(t, err)
	if err := deposit.Do(inner, account, 1); err != nil {
		require.ErrorAs(t, err, new(*transaction.LeaseError))
	}
	<-tx.Done()
	require.ErrorAs(t, deposit.Do(inner, account, 1), new(*transaction.LeaseError))
	require.ErrorAs(t, tx.Commit(ctx), new(*transaction.LeaseError))
	b.holds(account, 0)
}

// A Commit may wait, too, for what was sent and may never start.
func TestALeaseEndsACommitThatWaits(t *testing.T) {
	b := newFixture(t)
	manager, err := transaction.NewManager(b.system, transaction.Lease(10*time.Millisecond))
	require.NoError(t, err)
	account := b.account(0)
	inner, tx, err := manager.Begin(ctx)
	require.NoError(t, err)
	withdraw.Send(inner, account, 1)
	require.ErrorAs(t, tx.Commit(ctx), new(*transaction.LeaseError))
	b.holds(account, 0)
}

func TestAnOperationThatCannotBeUndoneIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(1)
		require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
			require.ErrorAs(t, reset.Do(ctx, account, nil), new(*activeobject.NotUndoableError))
			return nil
		}))
		b.holds(account, 1)
	})
}

func TestABodyThatPanicsRollsTheTransactionBack(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		one, other := b.account(1), b.account(1)
		err := b.manager.Run(ctx, func(ctx context.Context) error {
			require.NoError(t, deposit.Do(ctx, one, 1))
			_ = smash.Do(ctx, other, nil)
			return nil
		})
		require.ErrorIs(t, err, transaction.ErrRolledBack)
		require.ErrorAs(t, err, new(*activeobject.PanicError))
		b.holds(one, 1)
	})
}

func TestAWaitInATransactionIsExplained(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		one, other := b.account(0), b.account(0)
		inner, tx, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(inner, one, 1))
		another, second, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		kept := deposit.Send(another, one, 1)
		objecttest.Waiting(t, one, deposit, 1)

		limited, cancel := context.WithCancel(inner)
		waits := make(chan error)
		go func() { waits <- withdraw.Do(limited, other, 5) }()
		objecttest.Waiting(t, other, withdraw, 1)
		text := tx.Explain().String()
		require.Contains(t, text, "  holds    "+one.Name()+".deposit\n")
		require.Contains(t, text, "  waits for "+other.Name()+`.withdraw: guard "covered" was false`)
		require.Contains(t, text, "  keeps waiting "+one.Name()+".deposit of transaction "+second.ID().String())
		cancel()
		var wait *activeobject.WaitError
		require.ErrorAs(t, <-waits, &wait)
		require.ErrorIs(t, wait, context.Canceled)
		require.Equal(t, "covered", wait.Reason.Guard)
		require.Equal(t, []string{one.Name() + ".deposit of transaction " + second.ID().String()}, wait.KeepsWaiting)

		require.NoError(t, tx.Commit(ctx))
		_, err = kept.Await(ctx)
		require.NoError(t, err)
		require.NoError(t, second.Rollback(ctx))
		b.holds(one, 1)
	})
}

func TestAStoppedObjectRollsItsTransactionsBack(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		one, other := b.account(0), b.account(0)
		inner, tx, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(inner, one, 1))
		require.NoError(t, deposit.Do(inner, other, 1))
		<-other.Stop()
		<-tx.Done()
		var lost *activeobject.StateLostError
		require.ErrorAs(t, deposit.Do(inner, one, 1), &lost)
		require.ErrorAs(t, tx.Commit(ctx), &lost)
		require.ErrorIs(t, tx.Commit(ctx), transaction.ErrRolledBack)
		b.holds(one, 0)
	})
}

func TestACloseWaitsForWhatIsHeld(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(0)
		inner, tx, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(inner, account, 1))
		waits := balance.Send(ctx, account, nil)
		objecttest.Waiting(t, account, balance, 1)
		closed := make(chan error)
		go func() { closed <- account.Close(ctx) }()
		require.ErrorAs(t, account.Close(inner), new(*activeobject.DeadlockError))
		require.NoError(t, tx.Rollback(ctx))
		n, err := waits.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, 0, n)
		require.NoError(t, <-closed)
	})
}

func TestCommitIsTheEnd(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, deposit.Do(inner, account, 1))
	require.NoError(t, tx.Commit(ctx))
	for _, err := range []error{tx.Commit(ctx), deposit.Do(inner, account, 1)} {
		require.ErrorAs(t, err, new(*transaction.EndedError))
	}
	_, err = deposit.Send(inner, account, 1).Await(ctx)
	require.ErrorAs(t, err, new(*transaction.EndedError))
	require.ErrorAs(t, deposit.Tell(inner, account, 1), new(*transaction.EndedError))
	require.NoError(t, tx.Rollback(ctx))
	b.holds(account, 1)
}

func TestOnlyParticipantsAreCalled(t *testing.T) {
	b := newFixture(t)
	plain := activeobject.Must(activeobject.New(b.system, plainAccounts, &Account{}))
	strict := activeobject.Must(activeobject.New(b.system, plainAccounts, &Account{}, transaction.OnlyParticipants()))
	account := activeobject.Must(activeobject.New(b.system, accounts, &Account{}, transaction.OnlyParticipants()))
	require.ErrorIs(t, b.manager.Run(ctx, func(ctx context.Context) error {
		require.NoError(t, plainDeposit.Do(ctx, plain, 1))
		require.NoError(t, deposit.Do(ctx, account, 1))
		var none *activeobject.NoPartError
		require.ErrorAs(t, plainDeposit.Do(ctx, strict, 1), &none)
		_, err := plainDeposit.Send(ctx, strict, 1).Await(ctx)
		require.ErrorAs(t, err, &none)
		require.ErrorAs(t, plainDeposit.Tell(ctx, strict, 1), &none)
		one := plainDeposit.Case(strict, 1)
		_, err = activeobject.Select(ctx, one)
		require.NoError(t, err)
		_, err = one.Result()
		require.ErrorAs(t, err, &none)
		return errBroken
	}), errBroken)
	require.NoError(t, plainDeposit.Do(ctx, strict, 2))
	for o, expected := range map[*activeobject.Object[Account]]int{plain: 1, strict: 2, account: 0} {
		require.NoError(t, o.View(ctx, func(a *Account) error { require.Equal(t, expected, a.balance); return nil }))
	}
}

// A request by message belongs to the transaction of the context that it was made with.
func TestTransactionsReachObjectsByPID(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(1)
		for _, fails := range []error{errBroken, nil} {
			require.Equal(t, fails, b.manager.Run(ctx, func(ctx context.Context) error {
				require.NoError(t, deposit.To(b.system, account.PID()).Do(ctx, 1))
				n, err := balance.To(b.system, account.PID()).Send(ctx, nil).Await(ctx)
				require.NoError(t, err)
				require.Equal(t, 2, n)
				require.ErrorAs(t, deposit.To(b.system, account.PID()).Tell(ctx, 1), new(*activeobject.ArgumentError))
				return fails
			}))
		}
		b.holds(account, 2)
	})
}

func TestEverythingThatIsMadeInATransactionIsAPartOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		account := b.account(10)
		for _, fails := range []error{errBroken, nil} {
			require.Equal(t, fails, b.manager.Run(ctx, func(ctx context.Context) error {
				require.NoError(t, deposit.Tell(ctx, account, 1))
				_, err := withdraw.Begin(ctx, account, 2).Await(ctx)
				require.NoError(t, err)
				_, err = activeobject.Select(ctx, deposit.Case(account, 4), withdraw.Case(account, 100))
				require.NoError(t, err)
				_, err = deposit.Try(ctx, account, 8)
				require.NoError(t, err)
				deposit.Send(ctx, account, 16)
				return fails
			}))
		}
		b.holds(account, 10+1-2+4+8+16)
	})
}

func TestARunInsideIsAPartOfTheWhole(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	err := b.manager.Run(ctx, func(ctx context.Context) error {
		require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error { return deposit.Do(ctx, account, 1) }))
		require.ErrorIs(t, b.manager.Run(ctx, func(context.Context) error { return errBroken }), errBroken)
		require.ErrorIs(t, deposit.Do(ctx, account, 2), errBroken)
		return nil
	})
	require.ErrorIs(t, err, transaction.ErrRolledBack)
	require.ErrorIs(t, err, errBroken)
	b.holds(account, 0)

	other, err := transaction.NewManager(b.system)
	require.NoError(t, err)
	var nested *transaction.NestedError
	require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
		require.ErrorAs(t, other.Run(ctx, nil), &nested)
		require.True(t, nested.Foreign)
		_, _, err := b.manager.Begin(ctx)
		require.ErrorAs(t, err, &nested)
		require.False(t, nested.Foreign)
		return nil
	}))
}

func TestACloseRollsOpenTransactionsBack(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, deposit.Do(inner, account, 1))
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, b.manager.Close(over), context.Canceled)
	var closed *transaction.ClosedError
	require.ErrorAs(t, tx.Commit(ctx), &closed)
	require.ErrorAs(t, b.manager.Run(ctx, nil), &closed)
	require.NoError(t, b.manager.Close(ctx))
	b.holds(account, 0)
}

// A body that is called in a transaction cannot end it.
func TestATransactionIsNotEndedFromInside(t *testing.T) {
	b := newFixture(t)
	type agent struct{}
	type ending = func(context.Context) error
	for _, takesPart := range []bool{false, true} {
		agents := activeobject.NewType[agent]("agent")
		call := activeobject.ProcedureCtx(agents, "end", func(_ *agent, ctx context.Context, end ending) (activeobject.None, error) {
			return nil, end(ctx)
		})
		if takesPart {
			call.Undo(func(*agent, ending, activeobject.None) {})
		}
		o := activeobject.Must(activeobject.New(b.system, agents, &agent{}))
		for _, end := range []func(*transaction.Transaction, context.Context) error{(*transaction.Transaction).Commit, (*transaction.Transaction).Rollback} {
			inner, tx, err := b.manager.Begin(ctx)
			require.NoError(t, err)
			bound := func(ctx context.Context) error { return end(tx, ctx) }
			require.ErrorAs(t, call.Do(inner, o, bound), new(*transaction.InsideError))
			require.NoError(t, bound(inner))
		}
	}
}

func TestAnUndoThatPanicsIsAHeuristicOutcome(t *testing.T) {
	b := newFixture(t)
	type broken struct{ n int }
	brokens := activeobject.NewType[broken]("broken")
	add := activeobject.Procedure(brokens, "add", activeobject.Plain(func(b *broken) { b.n++ })).
		Undo(func(*broken, activeobject.None, activeobject.None) { panic("no way back") })
	o := activeobject.Must(activeobject.New(b.system, brokens, &broken{}))
	account := b.account(0)
	err := b.manager.Run(ctx, func(ctx context.Context) error {
		require.NoError(t, deposit.Do(ctx, account, 1))
		require.NoError(t, add.Do(ctx, o, nil))
		return errBroken
	})
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, transaction.ErrHeuristic)
	var undo *activeobject.UndoError
	require.ErrorAs(t, err, &undo)
	require.Equal(t, "add", undo.Operation)
	b.holds(account, 0)
	require.NoError(t, o.View(ctx, func(b *broken) error { require.Equal(t, 1, b.n); return nil }), "the object is kept")
}

// An object that is restarted has lost what transactions have done there.
func TestARestartRollsTransactionsBack(t *testing.T) {
	b := newFixture(t)
	restarts := activeobject.NewType[Account]("restarting account")
	add := activeobject.Procedure(restarts, "deposit", activeobject.Arg((*Account).Deposit)).
		Undo(func(a *Account, amount int, _ activeobject.None) { a.balance -= amount })
	fail := activeobject.FunctionCtx(restarts, "fail", func(*Account, context.Context, activeobject.None) (activeobject.None, error) { panic("broken") })
	read := activeobject.Function(restarts, "balance", activeobject.Result((*Account).Balance))
	o := activeobject.Must(activeobject.NewFrom(b.system, restarts, func() (*Account, error) { return &Account{100}, nil },
		activeobject.Supervisor(proto.RestartingSupervisorStrategy())))
	account := b.account(0)
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, deposit.Do(inner, account, 1))
	_, err = read.Call(inner, o, nil)
	require.NoError(t, err)
	_ = fail.Do(ctx, o, nil) // beside what the transaction has read
	<-tx.Done()
	var lost *activeobject.StateLostError
	require.ErrorAs(t, tx.Commit(ctx), &lost)
	require.Equal(t, "restarted", lost.What)
	n, err := read.Call(ctx, o, nil)
	require.NoError(t, err)
	require.Equal(t, 100, n)
	require.NoError(t, add.Do(ctx, o, 1))
	b.holds(account, 0)
}
