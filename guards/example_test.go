package guards_test

import (
	"fmt"

	"github.com/sluice-go/sluice/guards"
)

type account struct {
	balance int
	frozen  bool
}

var (
	frozen  = guards.When("frozen", func(a *account) bool { return a.frozen })
	covered = guards.WhenArg("covered", func(a *account, amount int) bool { return a.balance >= amount })
)

// A guard answers with the name of what is false, so that the request that waits for it
// can report why.
func ExampleWhenArg() {
	savings := &account{balance: 50}
	fmt.Printf("%q\n", covered.Ask(savings, 30))
	fmt.Printf("%q\n", covered.Ask(savings, 100))
	// Output:
	// ""
	// "covered"
}

// Of several conditions the first that is false explains the wait. Over lifts
// one over the state alone, so that it can stand beside one over the argument.
func ExampleAnd() {
	open := guards.And(guards.Not(guards.Over[int](frozen)), covered)
	fmt.Println(open.Name())

	savings := &account{balance: 50, frozen: true}
	fmt.Println(open.Ask(savings, 100))
	savings.frozen = false
	fmt.Println(open.Ask(savings, 100))
	// Output:
	// (not frozen and covered)
	// not frozen
	// covered
}

// Where any one of several conditions would do, all of them are the reason.
func ExampleOr() {
	rich := guards.When("rich", func(a *account) bool { return a.balance > 1000 })
	either := guards.Or(frozen, rich)
	fmt.Println(either.Ask(&account{}, nil))
	// Output: (frozen or rich)
}

// Readers may run beside each other, a writer runs alone.
func ExampleTable() {
	const deposit, balance = 0, 1
	table := guards.NewExclusive("deposit", "balance").Allow(balance, balance)
	fmt.Println(table.Between(deposit, balance), table.Between(balance, balance))
	fmt.Print(table)
	// Output:
	// true false
	//          deposit  balance
	// deposit  •        •
	// balance  •
}
