package conflicttest_test

import (
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
)

// Account is the shared object of the text: plain sequential Go.
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
