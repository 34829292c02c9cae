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

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// Requests run at once, and yet every history must be that of an object that runs one after
// the other: each takes effect at one moment between its call and its return. What was
// withdrawn has taken no effect and is left out of the history.

// step is what a client asked for, and reply what it got.
type step struct {
	operation     string
	key, argument int
}

type reply struct {
	value   int
	closed  bool // a Try was refused by the guard
	nothing bool // it was refused for what says nothing about the state
}

// sequential is the model of an object with the states S, which must be comparable: next
// says whether the operation can run in the state, and then what it gives.
func sequential[S comparable](init S, next func(s S, in step) (after S, value int, open bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return init },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(step), output.(reply)
			after, value, open := next(state.(S), in)
			switch {
			case out.nothing:
				return true, state
			case out.closed:
				return !open, state
			}
			return open && value == out.value, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

// perform makes a request in one of several ways.
func perform[T, A, R any](ctx context.Context, way int, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], arg A, value func(R) int) (reply, error) {
	var r R
	var err error
	switch way {
	case 0:
		r, err = op.Try(ctx, o, arg)
	case 1:
		r, err = op.Send(ctx, o, arg).Await(background)
	default:
		r, err = op.Call(ctx, o, arg)
	}
	if refused, ok := errors.AsType[*activeobject.RefusedError](err); ok {
		closed := refused.Guard != ""
		return reply{closed: closed, nothing: !closed}, nil
	}
	return reply{value: value(r)}, err
}

// recorded has clients make random requests, some of which are canceled, so that none
// waits for ever, and returns the history.
func recorded(t *testing.T, choose func() step, do func(ctx context.Context, way int, in step) (reply, error)) (history []porcupine.Operation) {
	t.Helper()
	const clients, steps = 8, 25
	var (
		clock    atomic.Int64
		mu       sync.Mutex
		cancels  [clients]atomic.Pointer[context.CancelFunc]
		all      sync.WaitGroup
		finished = make(chan None)
	)
	for client := range clients {
		all.Go(func() {
			for range steps {
				ctx, cancel := context.WithCancel(background)
				cancels[client].Store(&cancel)
				in := choose()
				called := clock.Add(1)
				out, err := do(ctx, rand.N(4), in)
				returned := clock.Add(1)
				cancel()
				switch {
				case errors.Is(err, context.Canceled):
				case err != nil:
					t.Error(err)
				default:
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
					mu.Unlock()
				}
			}
		})
	}
	go func() { all.Wait(); close(finished) }()
	for late := time.After(patience); ; {
		select {
		case <-finished:
			return history
		case <-late:
			t.Fatal("this hangs")
		default:
			for range rand.N(100) {
				runtime.Gosched()
			}
			if cancel := cancels[rand.N(clients)].Load(); cancel != nil {
				(*cancel)()
			}
		}
	}
}

func same(v int) int { return v }

// accountHistory is that of an account whose balances run beside each other.
func accountHistory(t *testing.T, s *actor.System, options []activeobject.Option) []porcupine.Operation {
	type account struct{ x int }
	typ := activeobject.NewType[account]("account")
	deposit := activeobject.Procedure(typ, "deposit", func(a *account, n int) (int, error) { a.x += n; runtime.Gosched(); return a.x, nil })
	withdraw := activeobject.Entry(typ, "withdraw", func(a *account, n int) (int, error) { a.x -= n; runtime.Gosched(); return a.x, nil }).
		WhenArg("covered", func(a *account, n int) bool { return a.x >= n })
	balance := activeobject.Function(typ, "balance", func(a *account, _ int) (int, error) { x := a.x; runtime.Gosched(); return x, nil })
	ops := map[string]*activeobject.Operation[account, int, int]{"deposit": deposit, "withdraw": withdraw, "balance": balance}
	o, err := synchronizer.New(s, typ, &account{}, options...)
	require.NoError(t, err)
	return recorded(t,
		func() step {
			return step{[]string{"deposit", "withdraw", "balance", "balance"}[rand.N(4)], 0, 1 + rand.N(20)}
		},
		func(ctx context.Context, way int, in step) (reply, error) {
			return perform(ctx, way, o, ops[in.operation], in.argument, same)
		})
}

// cellHistory is that of cells with an atomic number, in which only takers keep apart from
// each other.
func cellHistory(t *testing.T, s *actor.System, options []activeobject.Option) []porcupine.Operation {
	typ := activeobject.NewType[atomic.Int64]("cell")
	add := activeobject.ProcedureCtx(typ, "deposit", func(c *atomic.Int64, _ context.Context, n int) (int, error) {
		runtime.Gosched()
		return int(c.Add(int64(n))), nil
	})
	take := activeobject.Entry(typ, "withdraw", func(c *atomic.Int64, n int) (int, error) { return int(c.Add(int64(-n))), nil }).
		WhenArg("covered", func(c *atomic.Int64, n int) bool { return c.Load() >= int64(n) })
	read := activeobject.Function(typ, "balance", func(c *atomic.Int64, _ int) (int, error) { return int(c.Load()), nil })
	ops := map[string]*activeobject.Operation[atomic.Int64, int, int]{"deposit": add, "withdraw": take, "balance": read}
	table := guards.NewTable(typ.Operations()...).Conflict(take, take)
	o, err := synchronizer.New(s, typ, &atomic.Int64{}, append(options, synchronizer.Conflicts(table))...)
	require.NoError(t, err)
	return recorded(t,
		func() step {
			return step{[]string{"deposit", "withdraw", "withdraw", "balance"}[rand.N(4)], 0, 1 + rand.N(20)}
		},
		func(ctx context.Context, way int, in step) (reply, error) {
			return perform(ctx, way, o, ops[in.operation], in.argument, same)
		})
}

var accountModel = sequential(0, func(x int, in step) (int, int, bool) {
	switch in.operation {
	case "deposit":
		return x + in.argument, x + in.argument, true
	case "withdraw":
		return x - in.argument, x - in.argument, x >= in.argument
	}
	return x, x, true
})

// shelfHistory is that of a shelf whose places are kept apart by the key of requests.
func shelfHistory(t *testing.T, s *actor.System, options []activeobject.Option) []porcupine.Operation {
	type shelf struct{ places [4]int }
	type item struct{ place, value int }
	typ := activeobject.NewType[shelf]("shelf")
	swap := activeobject.Procedure(typ, "swap", func(s *shelf, i item) (int, error) {
		old := s.places[i.place]
		runtime.Gosched()
		s.places[i.place] = i.value
		return old, nil
	})
	look := activeobject.Function(typ, "look", func(s *shelf, place int) (int, error) { return s.places[place], nil })
	table := typ.Conflicts().EqualKeys(guards.Key(swap, func(i item) int { return i.place }), guards.Key(look, func(place int) int { return place }))
	o, err := synchronizer.New(s, typ, &shelf{}, append(options, synchronizer.Conflicts(table))...)
	require.NoError(t, err)
	return recorded(t,
		func() step { return step{[]string{"swap", "look"}[rand.N(2)], rand.N(4), rand.N(1000)} },
		func(ctx context.Context, way int, in step) (reply, error) {
			if in.operation == "swap" {
				return perform(ctx, way, o, swap, item{in.key, in.argument}, same)
			}
			return perform(ctx, way, o, look, in.key, same)
		})
}

var shelfModel = sequential([4]int{}, func(places [4]int, in step) ([4]int, int, bool) {
	old := places[in.key]
	if in.operation == "swap" {
		places[in.key] = in.argument
	}
	return places, old, true
})

func TestEveryHistoryIsThatOfASequentialObject(t *testing.T) {
	for name, c := range map[string]struct {
		model   porcupine.Model
		history func(t *testing.T, s *actor.System, options []activeobject.Option) []porcupine.Operation
	}{
		"functions at once": {accountModel, accountHistory},
		"changes at once":   {accountModel, cellHistory},
		"keys apart":        {shelfModel, shelfHistory},
	} {
		t.Run(name, func(t *testing.T) {
			everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
				for range 5 {
					history := c.history(t, s, options)
					require.NotEmpty(t, history)
					require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(c.model, history, patience))
				}
			})
		})
	}
}

// A history that no sequential object has is found to be one: two that withdraw what was
// there once.
func TestAHistoryThatNoSequentialObjectHasIsRefused(t *testing.T) {
	ask := func(client int, call, back int64, operation string, value int) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: step{operation, 0, 10}, Call: call, Output: reply{value: value}, Return: back}
	}
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(accountModel, []porcupine.Operation{
		ask(1, 1, 2, "deposit", 10), ask(1, 3, 6, "withdraw", 0),
	}, patience))
	require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(accountModel, []porcupine.Operation{
		ask(1, 1, 2, "deposit", 10), ask(1, 3, 6, "withdraw", 0), ask(2, 4, 5, "withdraw", 0),
	}, patience))
}
