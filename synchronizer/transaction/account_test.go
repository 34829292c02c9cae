package transaction_test

import (
	"context"
	"errors"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// Account is the shared object of most tests.
type Account struct{ balance int }

func (a *Account) Deposit(amount int)     { a.balance += amount }
func (a *Account) Withdraw(amount int)    { a.balance -= amount }
func (a *Account) Covers(amount int) bool { return a.balance >= amount }
func (a *Account) Balance() int           { return a.balance }

var errBroken = errors.New("broken")

var (
	accounts = activeobject.NewType[Account]("account")
	deposit  = activeobject.Procedure(accounts, "deposit", activeobject.Arg((*Account).Deposit)).
			Undo(func(a *Account, amount int, _ guards.None) { a.balance -= amount })
	withdraw = activeobject.Entry(accounts, "withdraw", activeobject.Arg((*Account).Withdraw)).
			WhenArg("covered", (*Account).Covers).
			Undo(func(a *Account, amount int, _ guards.None) { a.balance += amount })
	balance = activeobject.Function(accounts, "balance", activeobject.Result((*Account).Balance))
	smash   = activeobject.Procedure(accounts, "smash", activeobject.Error((*Account).Smash)).
		Undo(func(*Account, guards.None, guards.None) {})
	reset = activeobject.Procedure(accounts, "reset", activeobject.Plain(func(a *Account) { a.balance = 0 }))
)

func (a *Account) Smash() error { panic("smashed") }

// models are the ways in which the same objects take part.
var models = map[string][]activeobject.Option{
	"active object": nil,
	"no fast path":  {activeobject.NoFastPath()},
	"pooled":        {activeobject.PooledThreads()},
	"dedicated":     {activeobject.DedicatedThread()},
	"synchronizer":  {synchronizer.Callers()},
	"goroutines":    {synchronizer.Goroutines()},
	"monitor":       {synchronizer.Monitor()},
}

func everywhere(t *testing.T, f func(t *testing.T, b *fixture)) {
	for name, options := range models {
		t.Run(name, func(t *testing.T) { f(t, newFixture(t, options...)) })
	}
}

// fixture is a system with some accounts and a manager.
type fixture struct {
	t       *testing.T
	system  *actor.System
	manager *transaction.Manager
	options []activeobject.Option
}

func newFixture(t *testing.T, options ...activeobject.Option) *fixture {
	system := objecttest.NewSystem(t)
	manager, err := transaction.NewManager(system)
	require.NoError(t, err)
	return &fixture{t, system, manager, options}
}

func (b *fixture) account(balance int) *activeobject.Object[Account] {
	o, err := activeobject.New(b.system, accounts, &Account{balance}, b.options...)
	require.NoError(b.t, err)
	return o
}

// restarting returns an account that is restarted when it has failed, with the state that it had.
func (b *fixture) restarting(balance int) *activeobject.Object[Account] {
	state := &Account{balance}
	options := append(b.options[:len(b.options):len(b.options)], activeobject.Supervisor(proto.RestartingSupervisorStrategy()))
	o, err := activeobject.NewFrom(b.system, accounts, func() (*Account, error) { return state, nil }, options...)
	require.NoError(b.t, err)
	return o
}

func (b *fixture) holds(o *activeobject.Object[Account], expected int) {
	b.t.Helper()
	n, err := balance.Call(context.Background(), o, nil)
	require.NoError(b.t, err)
	require.Equal(b.t, expected, n)
}
