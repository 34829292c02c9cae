package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

func TestTryRunsWhenTheObjectIsIdle(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 5})
			for i := range 5 {
				n, err := drain.Try(background, o, nil)
				require.NoError(t, err)
				require.Equal(t, i+1, n)
			}
		}
	})
}

func TestTryIsRefusedByItsGuard(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			_, err := drain.Try(background, o, nil)
			require.ErrorIs(t, err, activeobject.ErrRefused)
			require.EqualError(t, err, "sluice: "+o.Name()+": "+drain.Name()+` would wait: guard "wet" is false`)
			require.Zero(t, drain.Waiting(o), "it leaves no trace")
		}
	})
}

func TestTryWaitsForWhatRunsAndThenDecides(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			for level, refused := range map[int]bool{0: true, 1: false} {
				o := newObject(t, s, ts.Type, &dam{level: level})
				release := braked(t, s, o, ts.hold)
				tried := trying(background, o, drain, nil)
				waiting(t, o, drain, 1)
				require.Empty(t, tried)
				release()
				require.Equal(t, refused, errors.Is(soon(t, s.system, tried).err, activeobject.ErrRefused))
				require.Zero(t, drain.Waiting(o))
			}
		}
	})
}

func TestTryIsRefusedBehindOneThatComesFirst(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 10}, activeobject.Name("tank-of-"+drain.Name()))
			release := braked(t, s, o, ts.hold)
			first := calling(background, o, ts.fill, 1)
			waiting(t, o, ts.fill, 1)
			tried := trying(background, o, drain, nil)
			waiting(t, o, drain, 1)
			release()
			require.NoError(t, soon(t, s.system, first).err)
			err := soon(t, s.system, tried).err
			require.ErrorIs(t, err, activeobject.ErrRefused)
			require.EqualError(t, err, "sluice: "+o.Name()+": "+drain.Name()+" would wait: fill comes first")
		}
	})
}

func TestAWaiterWithAShutGuardDoesNotStandInATrysWay(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		n, err := ts.runs.Try(background, o, nil)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = ts.fill.Try(background, o, 1)
		require.NoError(t, err)
		waiting(t, o, ts.drain, 0)
	})
}

func TestAFutureWakesAllThatAwaitIt(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			f := drain.Send(background, o, nil)
			waiting(t, o, drain, 1)
			require.False(t, f.Ready())
			select {
			case <-f.Done():
				t.Fatal("done")
			default:
			}
			var all []<-chan outcome[int]
			for range 20 {
				all = append(all, awaiting(background, f))
			}
			over, cancel := context.WithCancel(background)
			cancel()
			_, err := f.Await(over)
			require.ErrorIs(t, err, context.Canceled, "the end of a wait")
			require.Equal(t, 1, drain.Waiting(o), "is not the end of the request")

			ts.fill.Call(background, o, 1)
			for _, c := range all {
				require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, c))
			}
			soon(t, s.system, f.Done())
			require.True(t, f.Ready())
			require.False(t, f.Withdraw(), "it has ended")
			n, err := f.Await(over)
			require.NoError(t, err, "a result that is there is returned, whatever the context")
			require.Equal(t, 1, n)
		}
	})
}

func TestWithdrawTakesBackARequestThatWaits(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			f := drain.Send(background, o, nil)
			waiting(t, o, drain, 1)
			require.True(t, f.Withdraw())
			require.False(t, f.Withdraw(), "only once")
			require.True(t, f.Ready())
			_, err := f.Await(background)
			require.ErrorIs(t, err, context.Canceled)
			ts.fill.Call(background, o, 1)
			require.Zero(t, ts.ran(o))
		}
	})
}

func TestWithdrawDoesNotTouchARequestThatRuns(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		b := newBrake()
		f := ts.hold.Send(background, o, b)
		soon(t, s.system, b.entered)
		require.False(t, f.Withdraw())
		require.False(t, f.Ready())
		close(b.let)
		require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
	})
}

func TestTheZeroFutureIsReady(t *testing.T) {
	var f activeobject.Future[int]
	require.True(t, f.Ready())
	require.False(t, f.Withdraw())
	<-f.Done()
	n, err := f.Await(background)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestTellForgetsTheResult(t *testing.T) {
	ts, ms := newTanks(), newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		require.NoError(t, ts.drain.Tell(background, o, nil))
		require.NoError(t, ts.fill.Tell(background, o, 1))
		eventually(t, "it has run", func() bool { return ts.ran(o) == 1 })

		m := newObject(t, s, ms.Type, &mine{})
		require.NoError(t, ms.blast.Tell(background, m, "bang"), "a body that fails has been taken")
		require.NoError(t, ms.blastCtx.Tell(background, m, "bang"))
		eventually(t, "both have run", func() bool { n, _ := ms.look.Call(background, m, nil); return n == 2 })
	})
}

func TestABodysErrorIsItsResult(t *testing.T) {
	cause := errors.New("no")
	dams := activeobject.NewType[dam]("dam")
	refuse := activeobject.Procedure(dams, "refuse", func(d *dam, n int) (int, error) { d.level++; return n, cause })
	refuseCtx := activeobject.FunctionCtx(dams, "refuse-ctx", func(d *dam, _ context.Context, n int) (int, error) { return n, cause })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		for _, op := range []*activeobject.Operation[dam, int, int]{refuse, refuseCtx} {
			n, err := op.Call(background, o, 7)
			require.Equal(t, outcome[int]{7, cause}, outcome[int]{n, err})
			n, err = op.Send(background, o, 7).Await(background)
			require.Equal(t, outcome[int]{7, cause}, outcome[int]{n, err})
			n, err = op.Try(background, o, 7)
			require.Equal(t, outcome[int]{7, cause}, outcome[int]{n, err})
			require.NoError(t, op.Tell(background, o, 7))
		}
	})
}

func TestAnOperationOfAnotherTypeIsRefused(t *testing.T) {
	// The state may even be of the same Go type.
	ts, others := newTanks(), activeobject.NewType[dam]("lake")
	swim := activeobject.Procedure(others, "swim", activeobject.Arg((*dam).fill))
	swimCtx := activeobject.ProcedureCtx(others, "swim-ctx", func(d *dam, _ context.Context, n int) (None, error) { d.fill(n); return nil, nil })
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{}
		o := newObject(t, s, ts.Type, state, activeobject.Name("tank"))
		for _, op := range []*activeobject.Operation[dam, int, None]{swim, swimCtx} {
			check := func(err error) {
				t.Helper()
				var e *activeobject.TypeError
				require.ErrorAs(t, err, &e)
				require.Equal(t, activeobject.TypeError{Object: "tank", Type: "tank", Operation: op.Name(), Declared: "lake"}, *e)
				require.EqualError(t, err, `sluice: tank is of type "tank"; operation "`+op.Name()+`" belongs to another type "lake"`)
			}
			_, err := op.Call(background, o, 1)
			check(err)
			_, err = op.Try(background, o, 1)
			check(err)
			_, err = op.Send(background, o, 1).Await(background)
			check(err)
			check(op.Tell(background, o, 1))
			require.Zero(t, op.Waiting(o))
		}
		require.Zero(t, state.Waiting(swim))
		<-o.Stop()
		require.Zero(t, state.level)
	})
}

// A record that a call has used goes to a pool. One collection must free what it
// held, though the pool keeps the record until the next.
func TestPooledRecordsPinNothing(t *testing.T) {
	type box struct{ bytes [64]byte }
	type key struct{}
	type empty struct{ open bool }
	empties := activeobject.NewType[empty]("empty")
	pass := activeobject.Entry(empties, "pass", func(_ *empty, b *box) (*box, error) { return &box{bytes: b.bytes}, nil }).When("open", func(e *empty) bool { return e.open })
	passCtx := activeobject.EntryCtx(empties, "pass-ctx", func(_ *empty, _ context.Context, b *box) (*box, error) { return &box{bytes: b.bytes}, nil }).When("open", func(e *empty) bool { return e.open })
	open := activeobject.Procedure(empties, "open", activeobject.Arg(func(e *empty, open bool) { e.open = open }))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, empties, &empty{})
		for _, op := range []*activeobject.Operation[empty, *box, *box]{pass, passCtx} {
			open.Call(background, o, false)
			pinned := func() (a, r, c weak.Pointer[box]) {
				arg, value := &box{}, &box{}
				ctx, cancel := context.WithCancel(context.WithValue(background, key{}, value))
				defer cancel()
				called := calling(ctx, o, op, arg)
				waiting(t, o, op, 1)
				open.Call(background, o, true)
				out := soon(t, s.system, called)
				require.NoError(t, out.err)
				a, r, c = weak.Make(arg), weak.Make(out.result), weak.Make(value)
				runtime.KeepAlive(arg)
				runtime.KeepAlive(value)
				return a, r, c
			}
			a, r, c := pinned()
			open.Call(background, o, false) // the object's goroutine has moved on
			runtime.GC()
			require.Nil(t, a.Value(), "%s: the argument", op.Name())
			require.Nil(t, r.Value(), "%s: the result", op.Name())
			require.Nil(t, c.Value(), "%s: the context", op.Name())
		}
	})
}
