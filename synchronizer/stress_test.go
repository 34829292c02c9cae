package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// A mill has operations whose bodies do what their argument says, with all that a body may
// do.
type mill struct {
	open   bool
	inside [3]atomic.Int32
}

type order struct {
	run func(m *mill, ctx context.Context) (int, error)
}

type mills struct {
	*activeobject.Type[mill]
	grind [3]*activeobject.Operation[mill, order, int]
	leaf  *activeobject.Operation[mill, order, int]
	pass  *activeobject.Operation[mill, order, int]
	set   *activeobject.Operation[mill, bool, None]
}

func newMills() *mills {
	ms := &mills{Type: activeobject.NewType[mill]("mill")}
	for i := range ms.grind {
		ms.grind[i] = activeobject.ProcedureCtx(ms.Type, fmt.Sprintf("grind-%d", i), func(m *mill, ctx context.Context, o order) (int, error) {
			m.inside[i].Add(1)
			defer m.inside[i].Add(-1)
			if i == 2 && m.inside[2].Load() > 1 {
				panic("two at once that conflict")
			}
			return o.run(m, ctx)
		})
	}
	ms.leaf = activeobject.Function(ms.Type, "leaf", func(m *mill, o order) (int, error) { return o.run(m, background) })
	ms.pass = activeobject.EntryCtx(ms.Type, "pass", func(m *mill, ctx context.Context, o order) (int, error) { return o.run(m, ctx) }).
		When("open", func(m *mill) bool { return m.open })
	ms.set = activeobject.Procedure(ms.Type, "set", activeobject.Arg(func(m *mill, open bool) { m.open = open }))
	return ms
}

// Several objects share a pool, and whatever can happen to a request does. Each request ends
// once, the limit of each object is kept, and in the end no thread is taken.
func TestWhateverHappensNoThreadIsLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		options func(p *synchronizer.Pool) []activeobject.Option
	}{
		{"pool", func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p)}
		}},
		{"pool and limit", func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p), synchronizer.Limit(2)}
		}},
		{"bounded", func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p), activeobject.Bound(3, activeobject.DropOldest)}
		}},
		{"last in first out", func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p), activeobject.ByLatest(), activeobject.MaxBypass(3)}
		}},
		{"callers", func(*synchronizer.Pool) []activeobject.Option { return nil }},
		{"all compatible", func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p), synchronizer.AllCompatible(), activeobject.MaxBypass(2)}
		}},
		{"spawned and limit", func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Goroutines(), synchronizer.Limit(3)}
		}},
		{"actors", func(*synchronizer.Pool) []activeobject.Option { return []activeobject.Option{synchronizer.Actors(2)} }},
		{"actors and limit", func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Actors(3), synchronizer.Limit(2), activeobject.Bound(3, activeobject.Wait)}
		}},
		{"monitor", func(*synchronizer.Pool) []activeobject.Option { return []activeobject.Option{synchronizer.Monitor()} }},
		{"monitor spawned", func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Goroutines(), synchronizer.Monitor(), activeobject.Bound(3, activeobject.DropOldest)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(6) {
				s := newSystem(t)
				pool := newPool(t, s, 1+int(seed%3))
				grindAll(t, s, pool, seed, c.options(pool))
			}
		})
	}
}

func grindAll(t *testing.T, s *actor.System, pool *synchronizer.Pool, seed uint64, options []activeobject.Option) {
	ms := newMills()
	// Nothing keeps out a request that opens the guard, but those that have passed it, which call no
	// other: so none waits for ever.
	table := ms.Conflicts().Compatible(ms.grind[0], ms.grind[0], ms.grind[1], ms.grind[2], ms.leaf, ms.pass, ms.set).
		Compatible(ms.grind[1], ms.grind[1], ms.leaf, ms.pass, ms.set).Compatible(ms.grind[2], ms.pass, ms.set).
		Compatible(ms.pass, ms.pass, ms.leaf).Compatible(ms.leaf, ms.set)
	options = append(options, synchronizer.Conflicts(table),
		activeobject.Supervisor(proto.NewOneForOneStrategy(1<<30, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))
	var all [4]*activeobject.Object[mill]
	for i := range all {
		var err error
		all[i], err = synchronizer.NewFrom(s, ms.Type, func() (*mill, error) { return &mill{}, nil }, options...)
		require.NoError(t, err)
	}
	var made, ended atomic.Int64
	var behind atomic.Int64 // goroutines that bodies leave behind
	account := func(err error) {
		var panicked *activeobject.PanicError
		switch {
		case err == nil, errors.Is(err, context.Canceled), errors.Is(err, activeobject.ErrRefused), errors.Is(err, activeobject.ErrFull),
			errors.Is(err, activeobject.ErrStopped), errors.As(err, new(*activeobject.DeadlockError)), errors.As(err, new(*activeobject.ExitError)):
		case errors.As(err, &panicked) && panicked.Value == "cause":
		default:
			t.Error(err)
		}
	}
	nothing := order{run: func(*mill, context.Context) (int, error) { runtime.Gosched(); return 0, nil }}
	stopOpening := make(chan None)
	var body func(r *rand.Rand, depth int) order
	one := func(r *rand.Rand, chain context.Context, depth int) {
		made.Add(1)
		defer ended.Add(1) // also if a body that runs here ends the goroutine
		o := all[r.IntN(len(all))]
		op, arg := ms.grind[r.IntN(3)], body(r, depth)
		ctx, cancel := context.WithCancel(chain)
		defer cancel()
		var err error
		switch r.IntN(12) {
		case 0:
			go cancel()
			_, err = op.Call(ctx, o, arg)
		case 1:
			_, err = op.Try(ctx, o, arg)
		case 2:
			_, err = op.Send(background, o, arg).Await(chain)
		case 3:
			f := op.Send(ctx, o, arg)
			go cancel()
			_, err = f.Await(chain)
		case 4:
			_, err = ms.pass.Call(ctx, o, nothing)
		case 5:
			go cancel()
			_, err = ms.pass.Call(ctx, o, nothing)
		case 6:
			c := []activeobject.Alternative{op.Case(o, arg), ms.pass.Case(all[r.IntN(len(all))], nothing), ms.grind[2].Case(all[r.IntN(len(all))], body(r, depth))}
			if r.IntN(2) == 0 {
				go cancel()
			}
			_, err = activeobject.Select(ctx, c...)
		case 7:
			_, err = ms.leaf.Call(ctx, o, nothing)
		case 8:
			ticket := op.Begin(background, o, arg)
			_, err = ticket.Await(chain)
		case 9:
			o.Explain()
			op.Stats(o)
		default:
			_, err = op.Call(ctx, o, arg)
		}
		account(err)
	}
	body = func(r *rand.Rand, depth int) order {
		n, where := r.IntN(16), all[r.IntN(len(all))]
		sub := rand.New(rand.NewPCG(r.Uint64(), seed))
		var mu sync.Mutex // a turn may be taken again
		again := 0
		return order{run: func(_ *mill, ctx context.Context) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if again++; depth > 2 || again > 2 {
				return 0, nil
			}
			switch n {
			case 0:
				panic("cause")
			case 1:
				runtime.Goexit()
			case 2:
				return ms.grind[sub.IntN(3)].Requeue(body(sub, depth+1))
			case 3:
				return ms.grind[sub.IntN(3)].RequeueTo(where, body(sub, depth+1))
			case 4, 5, 6:
				one(sub, ctx, depth+1)
			case 7, 8: // leaves a goroutine behind, and goes on
				behind.Add(1)
				other := rand.New(rand.NewPCG(sub.Uint64(), seed))
				started := make(chan None)
				go func() {
					defer behind.Add(-1)
					close(started)
					one(other, ctx, depth+1)
				}()
				<-started
				runtime.Gosched()
				if n == 8 {
					return ms.grind[sub.IntN(3)].Requeue(body(sub, depth+1))
				}
			case 9:
				runtime.Gosched()
			}
			return 0, nil
		}}
	}
	openers := toggle(t, all[:], stopOpening, func(o *activeobject.Object[mill], open bool) error {
		_, err := ms.set.Call(background, o, open)
		return err
	})
	var callers sync.WaitGroup
	for c := range uint64(6) {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(seed, c))
			for k := range 60 {
				done := make(chan None)
				go func() { // which a body may end
					defer close(done)
					one(r, background, 0)
				}()
				<-done
				if c == 0 && k == 50 && seed%2 == 0 {
					all[3].Stop()
				}
			}
		})
	}
	finish(t, &callers, all[:])
	// What no caller waits for any more may still run, and leave a goroutine behind.
	until(t, "a call is lost", func() bool { return made.Load() == ended.Load() && behind.Load() == 0 })
	close(stopOpening)
	openers.Wait()
	for _, o := range all {
		until(t, "something still runs or waits", func() bool { x := o.Explain(); return len(x.Running)+len(x.Waiting) == 0 })
	}
	until(t, "a thread stands still", func() bool { return standing() == 0 })
	until(t, "a thread is lost", func() bool { return pool.Busy() == 0 })
	until(t, "a call is lost", func() bool { return made.Load() == ended.Load() && behind.Load() == 0 })
}
