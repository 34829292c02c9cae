package transaction_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// plainAccounts take no part in transactions.
var (
	plainAccounts = activeobject.NewType[Account]("plain account")
	plainDeposit  = activeobject.Procedure(plainAccounts, "deposit", activeobject.Arg((*Account).Deposit))
)

func benchmarked(b *testing.B) (*actor.System, *transaction.Manager) {
	system := actor.NewSystem()
	b.Cleanup(func() { system.Close(ctx) })
	manager, err := transaction.NewManager(system)
	if err != nil {
		b.Fatal(err)
	}
	return system, manager
}

// A transaction over two objects, against two calls that go through the scheduler, two mutexes, and the same in a
// database.
func BenchmarkTwoObjects(b *testing.B) {
	system, manager := benchmarked(b)
	b.Run("transaction", func(b *testing.B) {
		one, other := activeobject.Must(activeobject.New(system, accounts, &Account{})), activeobject.Must(activeobject.New(system, accounts, &Account{}))
		f := func(ctx context.Context) error {
			if err := deposit.Do(ctx, one, 1); err != nil {
				return err
			}
			return deposit.Do(ctx, other, 1)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := manager.Run(ctx, f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scheduler", func(b *testing.B) {
		one, other := activeobject.Must(activeobject.New(system, plainAccounts, &Account{}, activeobject.NoFastPath())), activeobject.Must(activeobject.New(system, plainAccounts, &Account{}, activeobject.NoFastPath()))
		b.ReportAllocs()
		for b.Loop() {
			_ = plainDeposit.Do(ctx, one, 1)
			_ = plainDeposit.Do(ctx, other, 1)
		}
	})
	b.Run("mutexes", func(b *testing.B) {
		var one, other struct {
			sync.Mutex
			Account
		}
		for b.Loop() {
			one.Lock()
			other.Lock()
			one.Deposit(1)
			other.Deposit(1)
			other.Unlock()
			one.Unlock()
		}
	})
	for name, source := range map[string]string{"SQLite in memory": ":memory:", "SQLite in a file": filepath.Join(b.TempDir(), "db")} {
		b.Run(name, func(b *testing.B) { benchmarkSQLite(b, source) })
	}
}

// benchmarkSQLite changes two rows in each transaction, by prepared statements on one connection.
func benchmarkSQLite(b *testing.B, source string) {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("DROP TABLE IF EXISTS account; CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (1, 0), (2, 0)"); err != nil {
		b.Fatal(err)
	}
	add, err := db.Prepare("UPDATE account SET balance = balance + 1 WHERE id = ?")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range []int{1, 2} {
			if _, err := tx.Stmt(add).Exec(id); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

// What a call outside of transactions pays at an object that takes part, against one that does not.
func BenchmarkOutside(b *testing.B) {
	system, _ := benchmarked(b)
	cancelable, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
	}{{"background", ctx}, {"cancelable", cancelable}} {
		b.Run("takes part/"+c.name, func(b *testing.B) {
			o := activeobject.Must(activeobject.New(system, accounts, &Account{}))
			for b.Loop() {
				_ = deposit.Do(c.ctx, o, 1)
			}
		})
		b.Run("takes no part/"+c.name, func(b *testing.B) {
			o := activeobject.Must(activeobject.New(system, plainAccounts, &Account{}))
			for b.Loop() {
				_ = plainDeposit.Do(c.ctx, o, 1)
			}
		})
	}
}

// Transfers between accounts, of which the fewer there are the more conflict, against the same under one
// mutex. The work is done while the accounts are held.
func BenchmarkTransfers(b *testing.B) {
	for _, accountsOf := range []struct {
		name string
		n    uint64
	}{{"2", 2}, {"16", 16}, {"256", 256}} {
		b.Run(accountsOf.name+"/transactions", func(b *testing.B) {
			system, manager := benchmarked(b)
			all := make([]*activeobject.Object[Account], accountsOf.n)
			for i := range all {
				all[i] = activeobject.Must(activeobject.New(system, accounts, &Account{1 << 40}))
			}
			var next atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := next.Add(1) * 0x9e3779b97f4a7c15
					from, to := all[n>>8%accountsOf.n], all[n>>32%accountsOf.n]
					if err := manager.Run(ctx, func(ctx context.Context) error {
						if err := withdraw.Do(ctx, from, 1); err != nil {
							return err
						}
						return deposit.Do(ctx, to, 1)
					}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
		b.Run(accountsOf.name+"/one mutex", func(b *testing.B) {
			var mu sync.Mutex
			all := make([]Account, accountsOf.n)
			var next atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := next.Add(1) * 0x9e3779b97f4a7c15
					mu.Lock()
					all[n>>8%accountsOf.n].Withdraw(1)
					all[n>>32%accountsOf.n].Deposit(1)
					mu.Unlock()
				}
			})
		})
	}
}
