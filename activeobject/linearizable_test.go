package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// Every history of a shared object must be that of a sequential one: each request
// takes effect at one moment between its call and its return. A request that was
// withdrawn has taken no effect, so it is left out of the history; were it needed
// to explain the others, the check would fail.

// step is what a client asked for, and answer what it got.
type step struct {
	operation string
	argument  int
}

type answer struct {
	value   int
	refused string // the guard that refused a Try; "" if it ran
	behind  bool   // a Try was refused as another request came first
}

// model is a sequential object over the states S, which must be comparable: next
// says whether the operation can run in the state, and then what it gives.
func model[S comparable](init S, next func(s S, in step) (after S, value int, open bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return init },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(step), output.(answer)
			after, value, open := next(state.(S), in)
			switch {
			case out.behind:
				return true, state // says nothing about the state
			case out.refused != "":
				return !open, state
			}
			return open && value == out.value, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

// doer performs a step in one of the ways of making a request.
type doer func(ctx context.Context, way int, in step) (answer, error)

// do makes a request in the given way.
func do[T, A, R any](ctx context.Context, way int, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], arg A, value func(R) int) (answer, error) {
	var r R
	var err error
	switch way {
	case 0:
		r, err = op.Call(ctx, o, arg)
	case 1:
		r, err = op.Try(ctx, o, arg)
	default:
		r, err = op.Send(ctx, o, arg).Await(background)
	}
	if refused, ok := errors.AsType[*activeobject.RefusedError](err); ok {
		return answer{refused: refused.Guard, behind: refused.Behind != ""}, nil
	}
	return answer{value: value(r)}, err
}

const (
	clients = 8
	steps   = 22 // of each client
)

// record has clients make random requests at an object and writes down the
// history. A canceller cancels some of those that wait, so that none waits for
// ever.
func record(t *testing.T, choose func() step, perform doer) (history []porcupine.Operation, withdrawn int) {
	t.Helper()
	var clock atomic.Int64
	var mu sync.Mutex
	var cancels [clients]atomic.Pointer[context.CancelFunc]
	var all sync.WaitGroup
	start := make(chan struct{})
	for client := range clients {
		all.Go(func() {
			<-start
			for range steps {
				ctx, cancel := context.WithCancel(background)
				cancels[client].Store(&cancel)
				in := choose()
				called := clock.Add(1)
				out, err := perform(ctx, rand.N(3), in)
				returned := clock.Add(1)
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
				case errors.Is(err, context.Canceled):
					withdrawn++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	close(start)
	for {
		select {
		case <-done:
			return history, withdrawn
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

// registers are objects whose operations always run.
type register struct{ value, before, reads int }

type registers struct {
	*activeobject.Type[register]
	write, swap, read *activeobject.Operation[register, int, int]
}

func newRegisters(read func(*register) int) registers {
	t := activeobject.NewType[register]("register")
	write := func(r *register, v int) (int, error) { r.before, r.value = r.value, v; return v, nil }
	return registers{
		Type:  t,
		write: activeobject.Procedure(t, "write", write),
		swap: activeobject.ProcedureCtx(t, "swap", func(r *register, _ context.Context, v int) (int, error) {
			old := r.value
			_, err := write(r, v)
			return old, err
		}),
		read: activeobject.Function(t, "read", func(r *register, _ int) (int, error) { return read(r), nil }),
	}
}

func (rs registers) history(t *testing.T, s *scene) ([]porcupine.Operation, int) {
	o := newObject(t, s, rs.Type, &register{})
	ops := []*activeobject.Operation[register, int, int]{rs.write, rs.swap, rs.read}
	return record(t,
		func() step { return step{ops[rand.N(3)].Name(), rand.N(1000)} },
		func(ctx context.Context, way int, in step) (answer, error) {
			i := slices.IndexFunc(ops, func(op *activeobject.Operation[register, int, int]) bool { return op.Name() == in.operation })
			return do(ctx, way, o, ops[i], in.argument, func(v int) int { return v })
		})
}

var registerModel = model(0, func(v int, in step) (int, int, bool) {
	switch in.operation {
	case "write":
		return in.argument, in.argument, true
	case "swap":
		return in.argument, v, true
	}
	return v, v, true
})

func accountHistory(t *testing.T, s *scene) ([]porcupine.Operation, int) {
	o := newObject(t, s, accounts, &Account{})
	value := func(v int64) int { return int(v) }
	return record(t,
		func() step {
			return step{[]string{"deposit", "withdraw", "withdraw", "balance"}[rand.N(4)], 1 + rand.N(20)}
		},
		func(ctx context.Context, way int, in step) (answer, error) {
			switch in.operation {
			case "deposit":
				return do(ctx, way, o, accountDeposit, int64(in.argument), value)
			case "withdraw":
				return do(ctx, way, o, accountWithdraw, int64(in.argument), value)
			}
			return do(ctx, way, o, accountBalance, nil, value)
		})
}

var accountModel = model(0, func(balance int, in step) (int, int, bool) {
	switch in.operation {
	case "deposit":
		return balance + in.argument, balance + in.argument, true
	case "withdraw":
		return balance - in.argument, balance - in.argument, balance >= in.argument
	}
	return balance, balance, true
})

func bufferHistory(t *testing.T, s *scene) ([]porcupine.Operation, int) {
	o := newObject(t, s, numberBuffers.Type, &Buffer[int]{capacity: 3})
	var item atomic.Int64
	return record(t,
		func() step {
			if rand.N(2) == 0 {
				return step{"take", 0}
			}
			return step{"put", int(item.Add(1))}
		},
		func(ctx context.Context, way int, in step) (answer, error) {
			if in.operation == "put" {
				return do(ctx, way, o, numberBuffers.Put, in.argument, func(None) int { return 0 })
			}
			return do(ctx, way, o, numberBuffers.Take, nil, func(v int) int { return v })
		})
}

var bufferModel = model([3]int{}, func(items [3]int, in step) ([3]int, int, bool) {
	if in.operation == "put" {
		i := slices.Index(items[:], 0)
		if i < 0 {
			return items, 0, false
		}
		items[i] = in.argument
		return items, 0, true
	}
	return [3]int{items[1], items[2]}, items[0], items[0] != 0
})

const elsewhere = 1_000_000 // is added to a result of the second account

// stepwise are accounts from which is withdrawn in two steps: the first reserves
// nothing and changes nothing, so that both together are one withdrawal, at the moment
// of the second.
type stepwise struct {
	*activeobject.Type[Account]
	deposit, ask, withdraw *activeobject.Operation[Account, int64, int64]
}

func newStepwise() stepwise {
	t := activeobject.NewType[Account]("stepwise account")
	withdraw := activeobject.Entry(t, "withdraw", (*Account).Withdraw).WhenArg("covered", (*Account).Covers)
	return stepwise{
		Type:     t,
		deposit:  activeobject.Procedure(t, "deposit", (*Account).Deposit),
		withdraw: withdraw,
		ask: activeobject.Procedure(t, "ask", func(_ *Account, amount int64) (int64, error) {
			return withdraw.Requeue(amount)
		}),
	}
}

// history is that of two accounts: "withdraw" is the two steps at one of them, and
// "either" withdraws from one of the two, by Select.
func (sw stepwise) history(t *testing.T, s *scene) ([]porcupine.Operation, int) {
	a, b := newObject(t, s, sw.Type, &Account{}), newObject(t, s, sw.Type, &Account{})
	value := func(v int64) int { return int(v) }
	objects := []*activeobject.Object[Account]{a, b}
	return record(t,
		func() step {
			return step{[]string{"deposit 0", "deposit 1", "withdraw 0", "withdraw 1", "either"}[rand.N(5)], 1 + rand.N(20)}
		},
		func(ctx context.Context, way int, in step) (answer, error) {
			amount := int64(in.argument)
			if in.operation == "either" {
				op := []*activeobject.Operation[Account, int64, int64]{sw.withdraw, sw.ask}[rand.N(2)]
				x, y := op.Case(a, amount), sw.withdraw.Case(b, amount)
				i, err := activeobject.Select(ctx, x, y)
				if i < 0 {
					return answer{}, err
				}
				r, err := []interface{ Result() (int64, error) }{x, y}[i].Result()
				return answer{value: elsewhere*i + int(r)}, err
			}
			o := objects[in.operation[len(in.operation)-1]-'0']
			if in.operation[0] == 'd' {
				return do(ctx, way, o, sw.deposit, amount, value)
			}
			if way == 1 {
				way = 0 // a Try that is requeued waits, and so is not refused
			}
			return do(ctx, way, o, sw.ask, amount, value)
		})
}

var stepwiseModel = porcupine.Model{
	Init: func() any { return [2]int{} },
	Step: func(state, input, output any) (bool, any) {
		accounts, in, out := state.([2]int), input.(step), output.(answer)
		if out.behind {
			return true, state
		}
		i, amount := 0, in.argument
		switch {
		case in.operation == "either":
			i = out.value / elsewhere
		default:
			i = int(in.operation[len(in.operation)-1] - '0')
		}
		if in.operation[0] == 'd' {
			amount = -amount
		}
		if accounts[i] -= amount; accounts[i] < 0 {
			return false, state
		}
		return accounts[i] == out.value%elsewhere, accounts
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

func TestEveryHistoryIsThatOfASequentialObject(t *testing.T) {
	rs := newRegisters(func(r *register) int { return r.value })
	for name, c := range map[string]struct {
		model   porcupine.Model
		history func(t *testing.T, s *scene) ([]porcupine.Operation, int)
	}{
		"register": {registerModel, rs.history},
		"account":  {accountModel, accountHistory},
		"buffer":   {bufferModel, bufferHistory},
		"stepwise": {stepwiseModel, newStepwise().history},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				requests, withdrawn, refused := 0, 0, 0
				for range 25 {
					history, w := c.history(t, s)
					require.LessOrEqual(t, len(history), 200)
					result, info := porcupine.CheckOperationsVerbose(c.model, history, time.Minute)
					if result != porcupine.Ok {
						f := t.ArtifactDir() + "/history.html"
						_ = porcupine.VisualizePath(c.model, info, f)
						t.Fatalf("the history is %s: see %s", result, f)
					}
					requests, withdrawn = requests+len(history), withdrawn+w
					for _, op := range history {
						if op.Output.(answer).refused != "" {
							refused++
						}
					}
				}
				t.Logf("%d requests explained, %d of them refusals; %d withdrawn", requests, refused, withdrawn)
			})
		})
	}
}

// The check can fail: these objects are broken.
func TestABrokenHistoryIsFoundOut(t *testing.T) {
	stale := newRegisters(func(r *register) int {
		if r.reads++; r.reads%5 == 0 { // a function that writes, and reads what has been overwritten
			r.value = r.before
		}
		return r.value
	})
	s := &scene{system: newSystem(t)}
	found := false
	for range 20 {
		history, _ := stale.history(t, s)
		result := porcupine.CheckOperationsTimeout(registerModel, history, time.Minute)
		require.NotEqual(t, porcupine.Unknown, result)
		found = found || result == porcupine.Illegal
	}
	require.True(t, found, "a register that forgets")

	// Two answers of a good history changed for each other. They may be alike, or
	// concurrent, once; not over and over.
	found = false
	for range 20 {
		history, _ := accountHistory(t, s)
		i, j := 0, len(history)-1
		for ; history[i].Output.(answer).value == history[j].Output.(answer).value && i < j; i++ {
		}
		history[i].Output, history[j].Output = history[j].Output, history[i].Output
		result := porcupine.CheckOperationsTimeout(accountModel, history, time.Minute)
		require.NotEqual(t, porcupine.Unknown, result)
		found = found || result == porcupine.Illegal
	}
	require.True(t, found, "answers that were swapped")
}
