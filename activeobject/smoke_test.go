package activeobject_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type Acc struct{ balance int64 }

//go:noinline
func (a *Acc) Deposit(n int64) (int64, error) { a.balance += n; return a.balance, nil }

//go:noinline
func (a *Acc) Withdraw(n int64) (int64, error) { a.balance -= n; return a.balance, nil }
func (a *Acc) Covers(n int64) bool             { return a.balance >= n }
func (a *Acc) Balance() int64                  { return a.balance }

//go:noinline
func (a *Acc) Open() bool { return a.balance >= 0 }

var (
	accs     = activeobject.NewType[Acc]("acc")
	deposit  = activeobject.Procedure(accs, "deposit", (*Acc).Deposit)
	add      = activeobject.Entry(accs, "add", (*Acc).Deposit).When("open", (*Acc).Open)
	withdraw = activeobject.Entry(accs, "withdraw", (*Acc).Withdraw).WhenArg("covered", (*Acc).Covers)
	balance  = activeobject.Function(accs, "balance", activeobject.Get((*Acc).Balance))
)

func TestSmoke(t *testing.T) {
	sys := actor.NewSystem()
	ctx := context.Background()
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
	deposit.Call(ctx, o, 5)
	var wg sync.WaitGroup
	wg.Go(func() {
		v, err := withdraw.Call(ctx, o, 10)
		t.Log(v, err)
	})
	for withdraw.Waiting(o) == 0 {
	}
	t.Log(o.Explain())
	_, err := withdraw.Try(ctx, o, 100)
	t.Log(err)
	c2, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = withdraw.Call(c2, o, 1000)
	t.Log(err)
	deposit.Call(ctx, o, 7)
	wg.Wait()
	b, _ := balance.Call(ctx, o, activeobject.None{})
	t.Log(b)
	f := withdraw.Send(ctx, o, 50)
	deposit.Tell(ctx, o, 60)
	t.Log(f.Await(ctx))
	f = withdraw.Send(ctx, o, 500)
	if err := sys.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = f.Await(ctx)
	if !errors.Is(err, activeobject.ErrStopped) {
		t.Fatal(err)
	}
	t.Log(err)
}

func TestContended(t *testing.T) {
	sys := actor.NewSystem()
	ctx := context.Background()
	for _, opts := range [][]activeobject.Option{{}, {activeobject.WithoutFastPath()}, {activeobject.Pooled()}, {activeobject.Dedicated()}} {
		o := activeobject.Must(activeobject.New(sys, accs, &Acc{}, opts...))
		var wg sync.WaitGroup
		const n, g = 5000, 16
		for range g {
			wg.Go(func() {
				for i := range n {
					if i%2 == 0 {
						deposit.Call(ctx, o, 1)
					} else {
						withdraw.Call(ctx, o, 1)
					}
				}
			})
		}
		wg.Wait()
		b, _ := balance.Call(ctx, o, activeobject.None{})
		if b != 0 {
			t.Fatal(b)
		}
	}
	sys.Close(ctx)
}

func BenchmarkMutex(b *testing.B) {
	var mu sync.Mutex
	a := &Acc{}
	for b.Loop() {
		mu.Lock()
		if a.Open() {
			a.Deposit(1)
		}
		mu.Unlock()
	}
}
func BenchmarkCall(b *testing.B) {
	sys := actor.NewSystem()
	ctx := context.Background()
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
	b.ReportAllocs()
	for b.Loop() {
		add.Call(ctx, o, 1)
	}
}
func BenchmarkCallCancel(b *testing.B) {
	sys := actor.NewSystem()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
	b.ReportAllocs()
	for b.Loop() {
		add.Call(ctx, o, 1)
	}
}
func BenchmarkSend(b *testing.B) {
	sys := actor.NewSystem()
	ctx := context.Background()
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
	b.ReportAllocs()
	for b.Loop() {
		f := add.Send(ctx, o, 1)
		f.Await(ctx)
	}
}
func BenchmarkTell(b *testing.B) {
	sys := actor.NewSystem()
	ctx := context.Background()
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
	b.ReportAllocs()
	for b.Loop() {
		add.Tell(ctx, o, 1)
	}
}
func BenchmarkWaiters(b *testing.B) {
	sys := actor.NewSystem()
	ctx, cancel := context.WithCancel(context.Background())
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{balance: -1 << 60}))
	for range 100000 {
		add.Send(context.Background(), o, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		deposit.Call(ctx, o, 1)
	}
	cancel()
}
func BenchmarkPass(b *testing.B) {
	sys := actor.NewSystem()
	ctx, cancel := context.WithCancel(context.Background())
	o := activeobject.Must(activeobject.New(sys, accs, &Acc{balance: -1 << 60}))
	b.ReportAllocs()
	for b.Loop() {
		deposit.Call(ctx, o, 1)
	}
	cancel()
}

func contend(b *testing.B, callers int, f func()) {
	var wg sync.WaitGroup
	n := b.N / callers
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for range n {
				f()
			}
		})
	}
	wg.Wait()
}

func BenchmarkContended(b *testing.B) {
	sys := actor.NewSystem()
	ctx := context.Background()
	for _, n := range []int{2, 8, 64} {
		b.Run("mutex", func(b *testing.B) {
			var mu sync.Mutex
			a := &Acc{}
			contend(b, n, func() {
				mu.Lock()
				if a.Open() {
					a.Deposit(1)
				}
				mu.Unlock()
			})
		})
		b.Run("sluice", func(b *testing.B) {
			o := activeobject.Must(activeobject.New(sys, accs, &Acc{}))
			contend(b, n, func() { add.Call(ctx, o, 1) })
		})
	}
}
