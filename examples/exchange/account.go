package main

import (
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

// Account is the money of one customer.
type Account struct{ balance int }

// Deposit pays in.
func (a *Account) Deposit(n int) { a.balance += n }

// Withdraw pays out, or says that there is not enough.
func (a *Account) Withdraw(n int) error {
	if n > a.balance {
		return fmt.Errorf("%w: the balance is %d, and the limit %d", errPoor, a.balance, n)
	}
	a.balance -= n
	return nil
}

// Balance returns how much there is.
func (a *Account) Balance() int { return a.balance }

var (
	accounts = activeobject.NewType[Account]("account")
	deposit  = activeobject.Procedure(accounts, "deposit", activeobject.Arg((*Account).Deposit))
	withdraw = activeobject.Procedure(accounts, "withdraw", activeobject.ArgError((*Account).Withdraw))
	balance  = activeobject.Function(accounts, "balance", activeobject.Result((*Account).Balance))
)
