package conflicttest_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

// Account is that of the text.
type Account struct{ x int64 }

func (a *Account) Deposit(l int64)     { a.x += l }
func (a *Account) Withdraw(l int64)    { a.x -= l }
func (a *Account) Covers(l int64) bool { return a.x >= l }
func (a *Account) Balance() int64      { return a.x }

var (
	accounts = activeobject.NewType[Account]("account")
	deposit  = activeobject.Procedure(accounts, "deposit", activeobject.Put((*Account).Deposit))
	withdraw = activeobject.Entry(accounts, "withdraw", activeobject.Put((*Account).Withdraw)).WhenArg("covered", (*Account).Covers)
	balance  = activeobject.Function(accounts, "balance", activeobject.Get((*Account).Balance))
)

func accountStates(t *rapid.T) func() *Account {
	x := rapid.Int64Range(0, 100).Draw(t, "x")
	return func() *Account { return &Account{x: x} }
}

var amounts = rapid.Int64Range(1, 100)

func TestTheTableOfTheTextIsRight(t *testing.T) {
	table := guards.Free(accounts.Operations()...).
		Exclusive(deposit, withdraw).
		Conflict(balance, deposit, withdraw)
	conflicttest.Check(t, accounts, table, accountStates)
	conflicttest.Check(t, accounts, table, accountStates, conflicttest.Commuting())
}

// The wrong table that the text warns of: x += l beside x -= l.
func TestADataRaceIsFound(t *testing.T) {
	p := played(t, func(t testing.TB) {
		conflicttest.Check(t, accounts, accounts.Conflicts().Compatible(deposit, withdraw), accountStates,
			conflicttest.Arguments(deposit, amounts), conflicttest.Arguments(withdraw, amounts))
	})
	t.Log(p.said(), p.logs)
	require.Len(t, p.failures, 1)
}

// Vault is an account without data races.
type Vault struct{ x atomic.Int64 }

var (
	vaults = activeobject.NewType[Vault]("vault")
	store  = activeobject.Procedure(vaults, "store", activeobject.Put(func(v *Vault, l int64) { v.x.Add(l) }))
	take   = activeobject.Entry(vaults, "take", activeobject.Put(func(v *Vault, l int64) { v.x.Add(-l) })).
		WhenArg("covered", func(v *Vault, l int64) bool { return v.x.Load() >= l })
)

func vaultStates(t *rapid.T) func() *Vault {
	x := rapid.Int64Range(0, 100).Draw(t, "x")
	return func() *Vault {
		v := &Vault{}
		v.x.Store(x)
		return v
	}
}

func TestAGuardThatIsClosedBehindTheCheckIsFound(t *testing.T) {
	p := played(t, func(t testing.TB) {
		conflicttest.Check(t, vaults, vaults.Conflicts().Compatible(take, take), vaultStates, conflicttest.Arguments(take, amounts))
	})
	t.Log(p.said(), p.logs)
	require.Len(t, p.failures, 1)
}
