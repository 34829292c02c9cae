package synchronizer_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
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

func Example() {
	// The declaration is that of an active object. What changes is how many requests run
	// at once: here, all balances; and a deposit or a withdrawal alone.
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	savings, err := synchronizer.New(system, accounts, &Account{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	paid := withdraw.Send(ctx, savings, 30) // waits until it is covered
	deposit.Call(ctx, savings, 100)
	paid.Await(ctx)
	fmt.Println(balance.Call(ctx, savings, nil))
	fmt.Print(accounts.Conflicts())
	// Output:
	// 70 <nil>
	//           deposit  withdraw  balance
	// deposit   •        •         •
	// withdraw  •        •         •
	// balance   •        •
}

// The table of the text, declared as there: from one without conflicts.
func ExampleConflicts() {
	table := guards.NewTable(accounts.Operations()...).
		Exclusive(deposit, withdraw).
		Conflict(balance, deposit, withdraw)

	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	_, err := synchronizer.New(system, accounts, &Account{}, synchronizer.Conflicts(table))
	fmt.Println(err)

	_, err = synchronizer.New(system, accounts, &Account{}, synchronizer.Conflicts(table.Exclusive(guards.Name("withdrawal"))))
	fmt.Println(err)
	// Output:
	// <nil>
	// sluice: new account: Table is wrong: sluice: conflict table: "withdrawal" is no operation of the table, nor a group: it has deposit, withdraw, balance
}

// Three objects share two threads.
func ExampleWorkers() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	pool, err := synchronizer.NewPool(system, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var all []*activeobject.Object[Account]
	for range 3 {
		all = append(all, activeobject.Must(synchronizer.New(system, accounts, &Account{x: 10}, synchronizer.Workers(pool))))
	}
	sum := int64(0)
	for _, a := range all {
		x, _ := balance.Call(context.Background(), a, nil)
		sum += x
	}
	fmt.Println(sum)
	// Output: 30
}

// A call that comes back to an object that it is inside of is an error, which names the
// chain, and not a hang.
func ExampleNew_circle() {
	type branch struct{}
	branches := activeobject.NewType[branch]("branch")
	var report *activeobject.Operation[branch, *activeobject.Object[branch], int64]
	report = activeobject.FunctionCtx(branches, "report", func(_ *branch, ctx context.Context, other *activeobject.Object[branch]) (int64, error) {
		if other == nil {
			return 0, nil
		}
		return report.Call(ctx, other, nil)
	})
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	north := activeobject.Must(synchronizer.New(system, branches, &branch{}, activeobject.Name("north")))
	_, err := report.Call(context.Background(), north, north)
	fmt.Println(errors.As(err, new(*activeobject.DeadlockError)), err)
	// Output: true sluice: deadlock: north.report waits for north.report
}

// Readers pass a writer that waits for another reader, as in the text; here, no more than one.
func ExampleAllCompatible() {
	type page struct{}
	pages := activeobject.NewType[page]("page")
	read := activeobject.FunctionCtx(pages, "read", func(_ *page, ctx context.Context, turn func()) (activeobject.None, error) {
		turn()
		return nil, nil
	})
	write := activeobject.Procedure(pages, "write", activeobject.Plain(func(*page) {}))

	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	notes := activeobject.Must(synchronizer.New(system, pages, &page{}, synchronizer.AllCompatible(), activeobject.MaxBypass(1)))
	ctx := context.Background()
	begun, end := make(chan bool), make(chan bool)
	stay := func() { begun <- true; <-end }
	first := read.Send(ctx, notes, stay)
	<-begun
	written := write.Send(ctx, notes, nil)
	second := read.Send(ctx, notes, stay)
	<-begun // it has passed the writer
	third := read.Send(ctx, notes, func() {})
	for _, w := range notes.Explain().Waiting {
		fmt.Printf("%s (passed: %d): %s\n", w.Operation, w.Bypassed, w.Reason)
	}
	close(end)
	for _, f := range []activeobject.Future[activeobject.None]{first, second, written, third} {
		f.Await(ctx)
	}
	// Output:
	// write (passed: 1): conflicts with read, running
	// read (passed: 0): write comes first
}

// Requests run in worker actors, which are children of the object's.
func ExampleActors() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	savings := activeobject.Must(synchronizer.New(system, accounts, &Account{}, activeobject.Name("savings"), synchronizer.Actors(2)))
	deposit.Call(context.Background(), savings, 100)
	fmt.Println(balance.Call(context.Background(), savings, nil))
	_, lives := system.Actors().ProcessRegistry.GetLocal("savings/worker-1")
	fmt.Println(lives)
	// Output:
	// 100 <nil>
	// true
}

// In the thread-per-request model a request that waits holds a thread. Here there is one thread, and
// the request that could open the guard has none.
func ExampleMonitor() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	pool, err := synchronizer.NewPool(system, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	savings := activeobject.Must(synchronizer.New(system, accounts, &Account{}, synchronizer.Monitor(), synchronizer.Workers(pool)))
	ctx, cancel := context.WithCancel(context.Background())
	paid := withdraw.Send(ctx, savings, 30)
	saved := deposit.Send(context.Background(), savings, 100)
	for _, w := range savings.Explain().Waiting {
		fmt.Printf("%s (holds a thread: %v) %s\n", w.Operation, w.Thread, w.Reason)
	}
	cancel() // the only way out
	_, err = paid.Await(context.Background())
	fmt.Println(err)
	_, err = saved.Await(context.Background())
	fmt.Println(err)
	// Output:
	// deposit (holds a thread: false) waits for a thread: every thread of the pool (1) is held by a request that waits
	// withdraw (holds a thread: true) guard "covered" was false at step 2
	// context canceled
	// <nil>
}
