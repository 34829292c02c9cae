package conflicttest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

// Account is the shared object of the text: plain sequential Go.
type Account struct{ x int64 }

func (a *Account) Deposit(l int64)     { a.x += l }
func (a *Account) Withdraw(l int64)    { a.x -= l }
func (a *Account) Covers(l int64) bool { return a.x >= l }
func (a *Account) Balance() int64      { return a.x }

var (
	accounts = activeobject.NewType[Account]("account")
	deposit  = activeobject.Procedure(accounts, "deposit", activeobject.Arg((*Account).Deposit))
	withdraw = activeobject.Entry(accounts, "withdraw", activeobject.Arg((*Account).Withdraw)).WhenArg("covered", (*Account).Covers)
	balance  = activeobject.Function(accounts, "balance", activeobject.Result((*Account).Balance))
)

// The table of the text.
var table = guards.NewTable(accounts.Operations()...).
	Exclusive(deposit, withdraw).
	Conflict(balance, deposit, withdraw)

func accountStates(t *rapid.T) func() *Account {
	x := rapid.Int64Range(0, 100).Draw(t, "x")
	return func() *Account { return &Account{x: x} }
}

var amounts = rapid.Int64Range(1, 100)

// The test that a program has of its table.
func TestConflicts(t *testing.T) {
	conflicttest.Check(t, accounts, table, accountStates,
		conflicttest.Arguments(deposit, amounts),
		conflicttest.Arguments(withdraw, amounts))
}

// Tickets are sold by an atomic variable, so that sales do not race.
type Tickets struct{ left atomic.Int64 }

func (t *Tickets) Any() bool { return t.left.Load() > 0 }
func (t *Tickets) Sell()     { t.left.Add(-1) }

var (
	tickets = activeobject.NewType[Tickets]("tickets")
	sell    = activeobject.Entry(tickets, "sell", activeobject.Plain((*Tickets).Sell)).When("any left", (*Tickets).Any)
)

// Two sales do not race; and yet they must not run at once.
func ExampleCheck() {
	t := &play{name: "ExampleCheck"} // in a test, its *testing.T

	table := tickets.Conflicts().Compatible(sell, sell)
	conflicttest.Check(t, tickets, table, func(t *rapid.T) func() *Tickets {
		left := rapid.Int64Range(0, 100).Draw(t, "left")
		return func() *Tickets {
			s := &Tickets{}
			s.left.Store(left)
			return s
		}
	})
	fmt.Println(t.said())
	// Output:
	// table of tickets: sell and sell are declared compatible, but sell closes guard "any left" of sell behind the check
	// 	state:     .left.v = 1
	// 	requests:  sell(), sell()
	// 	checked:   sell(): the guard holds, so it starts
	// 	meanwhile: sell(): done; then the state is .left.v = 0
	// 	then:      sell(): done, though the guard is false; then the state is .left.v = -1
}

// Both additions return the sum, which tells one order from the other: that is fine for
// a Synchronizer, and not under transactions.
func ExampleCommuting() {
	counters := activeobject.NewType[atomic.Int64]("counter")
	add := activeobject.Procedure(counters, "add", func(c *atomic.Int64, n int64) (int64, error) { return c.Add(n), nil })
	zero := func(*rapid.T) func() *atomic.Int64 { return func() *atomic.Int64 { return &atomic.Int64{} } }

	t := &play{name: "ExampleCommuting"}
	conflicttest.Check(t, counters, counters.Conflicts().Compatible(add, add), zero,
		conflicttest.Arguments(add, rapid.Int64Range(1, 100)),
		conflicttest.Commuting())
	fmt.Println(t.said())
	// Output:
	// table of counter: add and add are declared compatible, but do not commute
	// 	state:         .v = 0
	// 	requests:      add(1), add(1)
	// 	in this order: add(1): 1; add(1): 2; then the state is .v = 2
	// 	in the other:  add(1): 2; add(1): 1; then the state is .v = 2
}
