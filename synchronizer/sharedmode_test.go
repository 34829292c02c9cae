package synchronizer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// A yard has leaf operations, which come and go by the fast path: each notes which operations are
// inside with it.
type yard struct {
	inside [4]atomic.Int32
	ran    [4]atomic.Int64
	locked atomic.Bool // written under mu of its own table row only; atomic for the detector's sake
	clash  func(a, b int)
	last   [4]int64 // written without atomics by operations that conflict with themselves
}

func (y *yard) visit(i int, table guards.Table) {
	y.inside[i].Add(1)
	for j := range y.inside {
		n := y.inside[j].Load()
		if j == i {
			n--
		}
		if n > 0 && table.Between(i, j) {
			y.clash(i, j)
		}
	}
	if table.Between(i, i) {
		y.last[i]++
	}
	y.ran[i].Add(1)
	if y.ran[i].Load()%7 == 0 {
		runtime.Gosched()
	}
	y.inside[i].Add(-1)
}

type outcome uint8

const (
	plain outcome = iota
	panics
	exits
)

// Whatever the table, bodies of the fast path that conflict do not overlap, nor with those
// that come by the scheduler; while requests wait, are withdrawn and fail, the object is looked
// at, and restarted. Every request is accounted for.
func TestTheFastPathKeepsApartWhatConflicts(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		var table guards.Table
		typ := activeobject.NewType[yard]("yard")
		var ops [4]*activeobject.Operation[yard, outcome, None]
		for i, name := range []string{"a", "b", "c", "d"} {
			body := func(y *yard, e outcome) (None, error) {
				if e == plain {
					y.visit(i, table)
				}
				switch e {
				case panics:
					panic("cause")
				case exits:
					runtime.Goexit()
				}
				return none, nil
			}
			switch name {
			case "d":
				ops[i] = activeobject.Function(typ, name, body)
			default:
				ops[i] = activeobject.Procedure(typ, name, body)
			}
		}
		pass := activeobject.Entry(typ, "pass", activeobject.Plain(func(*yard) {})).When("unlocked", func(y *yard) bool { return !y.locked.Load() })
		lock := activeobject.Procedure(typ, "lock", activeobject.Arg(func(y *yard, on bool) { y.locked.Store(on) }))
		table = typ.Conflicts()
		for i := range ops {
			for j := i; j < len(ops); j++ {
				if random.IntN(2) == 0 {
					table = table.Compatible(ops[i], ops[j])
				}
			}
			if random.IntN(2) == 0 {
				table = table.Compatible(pass, ops[i], pass)
			}
		}
		s := newSystem(t)
		state := func() (*yard, error) {
			return &yard{clash: func(a, b int) { t.Errorf("%s and %s overlap\n%s", ops[a].Name(), ops[b].Name(), table) }}, nil
		}
		o, err := synchronizer.NewFrom(s, typ, state, synchronizer.Conflicts(table),
			activeobject.Supervisor(proto.NewOneForOneStrategy(1<<30, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))
		require.NoError(t, err)

		var made, ended, withdrawn, panicked, exited atomic.Int64
		var all sync.WaitGroup
		account := func(err error) {
			ended.Add(1)
			switch {
			case err == nil, errors.Is(err, activeobject.ErrRefused):
			case errors.Is(err, context.Canceled):
				withdrawn.Add(1)
			case errors.As(err, new(*activeobject.PanicError)):
				panicked.Add(1)
			case errors.As(err, new(*activeobject.ExitError)):
				exited.Add(1)
			default:
				t.Error(err)
			}
		}
		for c := range uint64(6) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, c+2))
				for range 400 {
					made.Add(1)
					op := ops[random.IntN(4)]
					switch random.IntN(24) {
					case 0:
						ctx, cancel := context.WithCancel(background)
						go cancel()
						_, err := pass.Call(ctx, o, none)
						account(err)
					case 1:
						_, err := lock.Call(background, o, random.IntN(3) == 0)
						account(err)
					case 2:
						_, err := op.Send(background, o, plain).Await(background)
						account(err)
					case 3:
						ended.Add(1)
						o.Explain()
					case 4:
						ended.Add(1)
						stop := o.Observe(func(activeobject.Load) bool { return random.IntN(2) == 0 })
						stop()
					case 5:
						if random.IntN(8) == 0 {
							_, err := op.Call(background, o, panics)
							account(err)
						} else {
							_, err := op.Try(background, o, plain)
							account(err)
						}
					case 6:
						if random.IntN(8) == 0 {
							_, err := op.Send(background, o, exits).Await(background)
							account(err)
						} else {
							account(o.View(background, func(*yard) error { return nil }))
						}
					default:
						_, err := op.Call(background, o, plain)
						account(err)
					}
				}
			})
		}
		all.Wait()
		require.Equal(t, made.Load(), ended.Load())
		require.NotZero(t, panicked.Load())
		require.NotZero(t, exited.Load())
		_, err = lock.Call(background, o, false)
		require.NoError(t, err)
		_, err = pass.Call(background, o, none)
		require.NoError(t, err)
		require.Empty(t, o.Explain().Running)
		require.Empty(t, o.Explain().Waiting)
		ctx, cancel := context.WithTimeout(background, patience)
		require.NoError(t, o.Close(ctx))
		cancel()
	}
}

// While bodies of the fast path run the object explains them, waits for them, and closes
// after them.
func TestBodiesOfTheFastPathAreRunningLikeOthers(t *testing.T) {
	type shed struct{ here, leave chan None }
	typ := activeobject.NewType[shed]("shed")
	stay := activeobject.Function(typ, "stay", activeobject.Plain(func(s *shed) { s.here <- none; <-s.leave }))
	write := activeobject.Procedure(typ, "write", activeobject.Plain(func(*shed) {}))
	s := newSystem(t)
	state := &shed{make(chan None), make(chan None)}
	o, err := synchronizer.New(s, typ, state)
	require.NoError(t, err)
	one, other := call(stay, o, none), call(stay, o, none)
	soon(t, state.here)
	soon(t, state.here)
	require.Equal(t, []string{"stay", "stay"}, running(o))
	writing := call(write, o, none)
	for write.Waiting(o) == 0 {
		runtime.Gosched()
	}
	require.Equal(t, []string{"stay", "stay"}, running(o), "the scheduler knows them now")
	require.Equal(t, "conflicts with stay, running", o.Explain().Waiting[0].Reason.String())
	state.leave <- none
	require.NoError(t, soon(t, either(one, other)))
	require.Equal(t, []string{"stay"}, running(o))
	ended := o.Stop()
	require.ErrorIs(t, soon(t, writing), activeobject.ErrStopped)
	select {
	case <-ended:
		t.Fatal("a body still runs")
	default:
	}
	state.leave <- none
	soon(t, ended)
}
