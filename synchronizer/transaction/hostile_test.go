package transaction_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// What is undone is what bodies have done, whatever interceptors make of their errors.
func TestInterceptorsDoNotChangeWhatIsUndone(t *testing.T) {
	fails := activeobject.NewType[Account]("failing")
	failing := activeobject.Procedure(fails, "deposit", activeobject.ArgError(func(*Account, int) error { return errBroken })).
		Undo(func(a *Account, n int, _ guards.None) { a.balance -= n })
	read := activeobject.Function(fails, "balance", activeobject.Result((*Account).Balance))
	for name, run := range map[string]func(body func() error) error{
		"a success becomes an error": func(body func() error) error { _ = body(); return errBroken },
		"an error becomes a success": func(body func() error) error { _ = body(); return nil },
		"the body does not run":      func(func() error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			intercepted := activeobject.Interceptors(activeobject.Interceptor{
				Run: func(_ context.Context, r activeobject.Intercepted, body func() error) error {
					if r.Operation == "balance" {
						return body()
					}
					return run(body)
				}})
			right := activeobject.Must(activeobject.New(b.system, accounts, &Account{}, intercepted))
			wrong := activeobject.Must(activeobject.New(b.system, fails, &Account{}, intercepted))
			require.ErrorIs(t, b.manager.Run(ctx, func(ctx context.Context) error {
				_ = deposit.Do(ctx, right, 10)
				_ = failing.Do(ctx, wrong, 10)
				return errBroken
			}), errBroken)
			b.holds(right, 0)
			n, err := read.Call(ctx, wrong, nil)
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

// Two that are sent, and wait for each other's transactions, are a deadlock when both transactions are to end.
func TestADeadlockOfWhatWasSentIsFoundByCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, b *fixture) {
		one, other := b.account(0), b.account(0)
		older, first, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		younger, second, err := b.manager.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, deposit.Do(older, one, 1))
		require.NoError(t, deposit.Do(younger, other, 2))
		deposit.Send(older, other, 1)
		require.NoError(t, deposit.Tell(younger, one, 2))
		ended := make(chan error)
		go func() { ended <- first.Commit(ctx) }()
		err = second.Commit(ctx)
		require.ErrorIs(t, err, transaction.ErrRolledBack)
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		require.NoError(t, <-ended)
		b.holds(one, 1)
		b.holds(other, 1)
	})
}

// A commit that waits for a request which may wait for ever is ended by a rollback from elsewhere.
func TestACommitThatWaitsIsRolledBack(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	withdraw.Send(inner, account, 5)
	objecttest.Waiting(t, account, withdraw, 1)
	ended := make(chan error)
	go func() { ended <- tx.Commit(ctx) }()
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, b.manager.Close(over), context.Canceled)
	require.ErrorAs(t, <-ended, new(*transaction.ClosedError))
}

// What a body calls that is to end before the commit belongs to the transaction, too.
func TestACommitWaitsForWhatItsBodiesCall(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	outers := activeobject.NewType[Account]("outer")
	entered, proceed := make(chan struct{}), make(chan struct{})
	nest := activeobject.ProcedureCtx(outers, "nest", func(_ *Account, ctx context.Context, _ guards.None) (guards.None, error) {
		close(entered)
		<-proceed
		return nil, deposit.Do(ctx, account, 1)
	}).Undo(func(*Account, guards.None, guards.None) {})
	o := activeobject.Must(activeobject.New(b.system, outers, &Account{}, activeobject.PooledThreads()))
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	nest.Send(inner, o, nil)
	<-entered
	ended := make(chan error)
	go func() { ended <- tx.Commit(ctx) }()
	for tx.Explain().Ended == nil { // until it waits
		runtime.Gosched()
	}
	close(proceed)
	require.NoError(t, <-ended)
	b.holds(account, 1)
}

// A failure to undo is reported though the transaction was rolled back before that was asked for.
func TestAHeuristicOutcomeIsReportedLate(t *testing.T) {
	b := newFixture(t)
	bad := activeobject.NewType[Account]("bad")
	add := activeobject.Procedure(bad, "add", activeobject.Arg((*Account).Deposit)).Undo(func(*Account, int, guards.None) { panic("no way back") })
	exit := activeobject.Procedure(bad, "exit", activeobject.Arg((*Account).Deposit)).Undo(func(*Account, int, guards.None) { runtime.Goexit() })
	for _, op := range []*activeobject.Operation[Account, int, guards.None]{add, exit} {
		o := activeobject.Must(activeobject.New(b.system, bad, &Account{}))
		other := b.account(0)
		require.ErrorIs(t, b.manager.Run(ctx, func(ctx context.Context) error {
			require.NoError(t, op.Do(ctx, o, 1))
			err := smash.Do(ctx, other, nil)
			<-transaction.From(ctx).Done()
			return err
		}), transaction.ErrHeuristic)
	}
}

// Run with the context of a transaction that can only be rolled back begins no other one.
func TestARunInsideATransactionThatHasEndedFails(t *testing.T) {
	b := newFixture(t)
	account := b.account(0)
	inner, tx, err := b.manager.Begin(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, b.manager.Run(inner, func(context.Context) error { return errBroken }), errBroken)
	require.ErrorIs(t, b.manager.Run(inner, func(ctx context.Context) error { return deposit.Do(ctx, account, 1) }), errBroken)
	require.ErrorIs(t, tx.Commit(ctx), errBroken)
	require.ErrorIs(t, b.manager.Run(inner, func(ctx context.Context) error { return deposit.Do(ctx, account, 1) }), errBroken)
	b.holds(account, 0)
}

// A derived type takes part as its base does, also if that knows only a part of its state.
func TestDerivedTypesTakePart(t *testing.T) {
	type more struct {
		Account
		count int
	}
	for name, declare := range map[string]func() (*activeobject.Type[Account], *activeobject.Operation[Account, int, guards.None]){
		"Copies": func() (*activeobject.Type[Account], *activeobject.Operation[Account, int, guards.None]) {
			base := activeobject.NewType[Account]("base").Copies(func(a *Account) *Account { c := *a; return &c })
			return base, activeobject.Procedure(base, "deposit", activeobject.Arg((*Account).Deposit))
		},
		"Undo": func() (*activeobject.Type[Account], *activeobject.Operation[Account, int, guards.None]) {
			base := activeobject.NewType[Account]("base")
			return base, activeobject.Procedure(base, "deposit", activeobject.Arg((*Account).Deposit)).
				Undo(func(a *Account, n int, _ guards.None) { a.balance -= n })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			base, op := declare()
			derived := activeobject.Derive(base, "derived", func(m *more) *Account { return &m.Account })
			count := activeobject.Procedure(derived, "count", activeobject.Plain(func(m *more) { m.count++ }))
			state := &more{}
			o := activeobject.Must(activeobject.New(b.system, derived, state))
			require.ErrorIs(t, b.manager.Run(ctx, func(ctx context.Context) error {
				require.NoError(t, activeobject.In(derived, op).Do(ctx, o, 1))
				require.NoError(t, activeobject.OperationAt[int, guards.None](b.system, o.PID(), "deposit").Do(ctx, 2))
				require.ErrorAs(t, count.Do(ctx, o, nil), new(*activeobject.NotUndoableError))
				return errBroken
			}), errBroken)
			require.NoError(t, o.Close(ctx))
			require.Zero(t, state.balance)
		})
	}
}

// foreign is a context whose Done calls a function.
type foreign struct {
	context.Context
	done func()
}

func (f foreign) Done() <-chan struct{} { f.done(); return f.Context.Done() }

// A caller's context is the caller's code: no lock of the manager is held while it is asked.
func TestContextsAreAskedWithoutALock(t *testing.T) {
	b := newFixture(t)
	require.Panics(t, func() { _, _, _ = b.manager.Begin(foreign{ctx, func() { panic("broken") }}) })
	_, tx, err := b.manager.Begin(foreign{ctx, func() {
		for range b.manager.Transactions() {
			t.Error("one is open")
		}
	}})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(ctx))
}

// A predicate that has found a conflict between two bodies of a transaction finds none when the first is retained.
func TestAPredicateDoesNotHoldUpItsOwnTransaction(t *testing.T) {
	pairs := activeobject.NewType[[4]int]("pair")
	entered, proceed := make(chan struct{}, 2), make(chan struct{})
	set := activeobject.Procedure(pairs, "set", activeobject.Arg(func(p *[4]int, i int) {
		entered <- struct{}{}
		<-proceed
		p[i]++
	})).Undo(func(p *[4]int, i int, _ guards.None) { p[i]-- })
	table := guards.NewTable(pairs.Operations()...).Exclusive(set).OnlyIf(guards.Pair(set, set, func(a, b int) bool { return a/2 == b/2 }))
	b := newFixture(t)
	o := activeobject.Must(activeobject.New(b.system, pairs, &[4]int{}, synchronizer.Goroutines(), synchronizer.Conflicts(table)))
	require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
		one := set.Send(ctx, o, 1)
		<-entered
		other := set.Send(ctx, o, 0)
		objecttest.Waiting(t, o, set, 1)
		close(proceed)
		_, err := one.Await(ctx)
		require.NoError(t, err)
		_, err = other.Await(ctx)
		return err
	}))
}

// A request of a transaction passes a head of line that waits for the transaction.
func TestATransactionPassesAHeadOfLine(t *testing.T) {
	headed := activeobject.NewType[Account]("headed")
	take := activeobject.Entry(headed, "take", activeobject.Arg((*Account).Withdraw)).WhenArg("covered", (*Account).Covers).HeadOfLine().
		Undo(func(a *Account, n int, _ guards.None) { a.balance += n })
	put := activeobject.Procedure(headed, "put", activeobject.Arg((*Account).Deposit)).Undo(func(a *Account, n int, _ guards.None) { a.balance -= n })
	b := newFixture(t)
	o := activeobject.Must(activeobject.New(b.system, headed, &Account{10}))
	first := take.Send(ctx, o, 11)
	objecttest.Waiting(t, o, take, 1)
	require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
		require.NoError(t, put.Do(ctx, o, 2))
		return take.Do(ctx, o, 1)
	}))
	_, err := first.Await(ctx)
	require.NoError(t, err)
}

// The counters of a Synchronizer stay closed while a body of a transaction runs, which will be retained.
func TestNothingSeesWhatABodyOfATransactionIsDoing(t *testing.T) {
	for name, options := range models {
		t.Run(name, func(t *testing.T) {
			slows := activeobject.NewType[Account]("slow")
			entered, proceed := make(chan struct{}), make(chan struct{})
			slow := activeobject.Procedure(slows, "slow", activeobject.Arg(func(a *Account, n int) {
				close(entered)
				<-proceed
				a.balance += n
			})).Undo(func(a *Account, n int, _ activeobject.None) { a.balance -= n })
			read := activeobject.Function(slows, "read", activeobject.Result((*Account).Balance))
			b := newFixture(t)
			o := activeobject.Must(activeobject.New(b.system, slows, &Account{}, options...))
			inner, tx, err := b.manager.Begin(ctx)
			require.NoError(t, err)
			done := make(chan error)
			go func() { done <- slow.Do(inner, o, 1) }()
			<-entered
			close(proceed)
			require.NoError(t, <-done)
			seen := make(chan int)
			go func() {
				n, _ := read.Call(ctx, o, nil)
				seen <- n
			}()
			objecttest.Waiting(t, o, read, 1)
			require.NoError(t, tx.Rollback(ctx))
			require.Zero(t, <-seen)
		})
	}
}
