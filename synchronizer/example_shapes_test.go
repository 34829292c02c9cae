package synchronizer_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// Scheduled is the text's inheritance: the struct embeds its synchronizer object, whose
// methods it has (Stop, PID, Explain, …), and adds those of its operations.
type Scheduled struct {
	*activeobject.Object[Account]
}

func (s Scheduled) Deposit(ctx context.Context, l int64) error {
	_, err := deposit.Call(ctx, s.Object, l)
	return err
}

func (s Scheduled) Balance(ctx context.Context) (int64, error) {
	return balance.Call(ctx, s.Object, nil)
}

func Example_inheritance() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	ctx := context.Background()

	savings := Scheduled{activeobject.Must(synchronizer.New(system, accounts, &Account{}, activeobject.Name("savings")))}
	savings.Deposit(ctx, 100)
	fmt.Println(savings.Balance(ctx))
	fmt.Println(savings.Name(), "has", len(savings.Explain().Waiting), "waiting")
	// Output:
	// 100 <nil>
	// savings has 0 waiting
}

// Delegating is the text's delegation: the struct has a synchronizer object and shows of it
// what it wants to, by client proxies. It could have another one tomorrow, or a Fake.
type Delegating struct {
	deposit activeobject.Proxy[int64, activeobject.None]
	balance activeobject.Proxy[activeobject.None, int64]
}

func NewDelegating(system *actor.System) (*Delegating, error) {
	o, err := synchronizer.New(system, accounts, &Account{})
	if err != nil {
		return nil, err
	}
	return &Delegating{deposit: activeobject.At(deposit, o), balance: activeobject.At(balance, o)}, nil
}

func (d *Delegating) Deposit(ctx context.Context, l int64) error {
	_, err := d.deposit.Call(ctx, l)
	return err
}

func (d *Delegating) Balance(ctx context.Context) (int64, error) {
	return d.balance.Call(ctx, nil)
}

func Example_delegation() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	ctx := context.Background()

	savings, err := NewDelegating(system)
	if err != nil {
		fmt.Println(err)
		return
	}
	savings.Deposit(ctx, 100)
	fmt.Println(savings.Balance(ctx))
	// Output: 100 <nil>
}

// The text's filter asks each object whether it wants to be synchronized, and passes the
// requests of others through. Here the caller does not see a difference: the operations are
// the same at an object that fans out by a table, at one without a table, which goes by the
// declaration, and at an active object, which has one request at a time.
func Example_withoutATable() {
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(context.Background())
	ctx := context.Background()

	table := accounts.Conflicts().Exclusive(deposit, withdraw, balance)
	for _, account := range []*activeobject.Object[Account]{
		activeobject.Must(synchronizer.New(system, accounts, &Account{}, synchronizer.Conflicts(table))),
		activeobject.Must(synchronizer.New(system, accounts, &Account{})),
		activeobject.Must(activeobject.New(system, accounts, &Account{})),
	} {
		deposit.Call(ctx, account, 100)
		withdraw.Call(ctx, account, 30)
		fmt.Println(balance.Call(ctx, account, nil))
	}
	// Output:
	// 70 <nil>
	// 70 <nil>
	// 70 <nil>
}
