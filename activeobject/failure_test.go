package activeobject_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// mines are objects with bodies and guards that fail.
type mine struct {
	armed  any // what the guard panics with, if it is not nil
	open   bool
	exits  bool // the guard ends its goroutine
	blasts int
}

type mines struct {
	*activeobject.Type[mine]
	blast, blastCtx *activeobject.Operation[mine, any, None]  // panic with their argument
	leave, leaveCtx *activeobject.Operation[mine, None, None] // end their goroutine
	enter, enterCtx *activeobject.Operation[mine, int, int]   // wait for a guard over the state
	dig             *activeobject.Operation[mine, int, int]   // waits for a guard over state and argument; even numbers panic
	tread           *activeobject.Operation[mine, None, None] // opens the guard, and arms nothing
	arm             *activeobject.Operation[mine, any, None]  // makes the guards panic
	look            *activeobject.Operation[mine, None, int]
	hold            *activeobject.Operation[mine, *brake, None]
	wait, waitCtx   *activeobject.Operation[mine, None, None] // end their goroutine, once the mine is open
}

func newMines() mines {
	t := activeobject.NewType[mine]("mine")
	guard := func(m *mine) bool {
		if m.exits {
			m.exits = false
			runtime.Goexit()
		}
		if m.armed != nil {
			panic(m.armed)
		}
		return m.open
	}
	blast := func(m *mine, v any) (None, error) { m.blasts++; panic(v) }
	leave := func(m *mine) { m.blasts++; runtime.Goexit() }
	same := func(_ *mine, n int) (int, error) { return n, nil }
	return mines{
		Type:     t,
		blast:    activeobject.Procedure(t, "blast", blast),
		blastCtx: activeobject.ProcedureCtx(t, "blast-ctx", func(m *mine, _ context.Context, v any) (None, error) { return blast(m, v) }),
		leave:    activeobject.Procedure(t, "leave", activeobject.Plain(leave)),
		leaveCtx: activeobject.ProcedureCtx(t, "leave-ctx", func(m *mine, _ context.Context, _ None) (None, error) { leave(m); return nil, nil }),
		enter:    activeobject.Entry(t, "enter", same).When("open", guard),
		enterCtx: activeobject.EntryCtx(t, "enter-ctx", func(m *mine, _ context.Context, n int) (int, error) { return same(m, n) }).When("open too", guard),
		dig: activeobject.Entry(t, "dig", same).WhenArg("soft", func(m *mine, n int) bool {
			if m.armed != nil && n%2 == 0 {
				panic(m.armed)
			}
			return m.open
		}),
		tread:   activeobject.Procedure(t, "tread", activeobject.Plain(func(m *mine) { m.open = true })),
		arm:     activeobject.Procedure(t, "arm", activeobject.Arg(func(m *mine, v any) { m.armed = v })),
		look:    activeobject.Function(t, "look", activeobject.Result(func(m *mine) int { return m.blasts })),
		hold:    hold(t),
		wait:    activeobject.Entry(t, "wait", activeobject.Plain(leave)).When("open", func(m *mine) bool { return m.open }),
		waitCtx: activeobject.EntryCtx(t, "wait-ctx", func(m *mine, _ context.Context, _ None) (None, error) { leave(m); return nil, nil }).When("open", func(m *mine) bool { return m.open }),
	}
}

func TestAPanicFailsItsOwnRequestAndTheObjectGoesOn(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, blast := range []*activeobject.Operation[mine, any, None]{ms.blast, ms.blastCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			check := func(err error) {
				t.Helper()
				var p *activeobject.PanicError
				require.ErrorAs(t, err, &p)
				require.Equal(t, o.Name(), p.Object)
				require.Equal(t, blast.Name(), p.Operation)
				require.Equal(t, io.ErrUnexpectedEOF, p.Value)
				require.Contains(t, string(p.Stack), "failure_test.go", "the stack shows the body")
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a panic with an error wraps it")
				require.EqualError(t, err, "sluice: "+o.Name()+"."+blast.Name()+" panicked: unexpected EOF")
			}
			_, err := blast.Call(background, o, io.ErrUnexpectedEOF)
			check(err)
			_, err = blast.Try(background, o, io.ErrUnexpectedEOF)
			check(err)
			_, err = blast.Send(background, o, io.ErrUnexpectedEOF).Await(background)
			check(err)
			require.NoError(t, blast.Tell(background, o, io.ErrUnexpectedEOF))

			// One that has waited, too, and the next in line has its turn.
			release := braked(t, s, o, ms.hold)
			called := calling(background, o, blast, any(io.ErrUnexpectedEOF))
			waiting(t, o, blast, 1)
			next := calling(background, o, ms.look, nil)
			waiting(t, o, ms.look, 1)
			release()
			check(soon(t, s.system, called).err)
			require.Equal(t, outcome[int]{5, nil}, soon(t, s.system, next))

			_, err = blast.Call(background, o, "words")
			require.NoError(t, errors.Unwrap(err))
			require.ErrorContains(t, err, "panicked: words")
		}
	})
}

func TestAPanicInABodyThatWasServedFailsItsOwnCallerOnly(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ms.Type, &mine{})
		release := braked(t, s, o, ms.hold)
		var bad []<-chan outcome[None]
		var good []<-chan outcome[int]
		for i := range 10 {
			bad = append(bad, calling(background, o, ms.blast, any(i)))
			good = append(good, calling(background, o, ms.look, nil))
		}
		waiting(t, o, ms.blast, len(bad))
		waiting(t, o, ms.look, len(good))
		release()
		for i, c := range bad {
			var p *activeobject.PanicError
			require.ErrorAs(t, soon(t, s.system, c).err, &p)
			require.Equal(t, i, p.Value)
		}
		for _, c := range good {
			require.NoError(t, soon(t, s.system, c).err)
		}
	})
}

func TestAGuardThatPanicsFailsAllThatItGuardsAndNamesItself(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, enter := range []*activeobject.Operation[mine, int, int]{ms.enter, ms.enterCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			var guarded []<-chan outcome[int]
			for i := range 5 {
				guarded = append(guarded, calling(background, o, enter, i), awaiting(background, enter.Send(background, o, i)))
				waiting(t, o, enter, 2*i+2)
			}
			odd, even := calling(background, o, ms.dig, 1), calling(background, o, ms.dig, 2)
			waiting(t, o, ms.dig, 2)

			_, err := ms.arm.Call(background, o, io.ErrClosedPipe)
			require.NoError(t, err, "the request that lets a guard fail is not to blame")
			check := func(err error, operation, guard string) {
				t.Helper()
				var g *activeobject.GuardError
				require.ErrorAs(t, err, &g)
				require.Equal(t, o.Name(), g.Object)
				require.Equal(t, operation, g.Operation)
				require.Equal(t, guard, g.Guard)
				require.Equal(t, io.ErrClosedPipe, g.Value)
				require.Contains(t, string(g.Stack), "failure_test.go")
				require.ErrorIs(t, err, io.ErrClosedPipe)
				require.EqualError(t, err, "sluice: guard \""+guard+"\" of "+o.Name()+"."+operation+" panicked: io: read/write on closed pipe")
			}
			name := map[string]string{"enter": "open", "enter-ctx": "open too"}[enter.Name()]
			for _, c := range guarded {
				check(soon(t, s.system, c).err, enter.Name(), name)
			}
			check(soon(t, s.system, even).err, "dig", "soft")
			require.Equal(t, 1, ms.dig.Waiting(o), "the others of an argument guard are not touched")

			// Newcomers fail one by one, however they are made.
			_, err = enter.Call(background, o, 1)
			check(err, enter.Name(), name)
			_, err = enter.Try(background, o, 1)
			check(err, enter.Name(), name)
			_, err = enter.Send(background, o, 1).Await(background)
			check(err, enter.Name(), name)
			_, err = ms.dig.Try(background, o, 2)
			check(err, "dig", "soft")
			require.NoError(t, enter.Tell(background, o, 1))

			// The object goes on, and the guard may recover.
			_, err = ms.arm.Call(background, o, nil)
			require.NoError(t, err)
			_, err = ms.tread.Call(background, o, nil)
			require.NoError(t, err)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, odd))
			got, err := enter.Call(background, o, 7)
			require.NoError(t, err)
			require.Equal(t, 7, got)
		}
	})
}

// runtime.Goexit ends the goroutine that runs the body; nothing can be done about
// that. With borrowed threads it is the caller's own; or, for the leaf body of a request that
// waits, that of the caller that serves it. Else it is a worker's. The goroutine that waits for
// the request is told, and the object goes on.
func TestABodyThatEndsItsGoroutineFailsItsRequest(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		requireExit := func(o *activeobject.Object[mine], operation string, err error) {
			t.Helper()
			var x *activeobject.ExitError
			require.ErrorAs(t, err, &x)
			require.Equal(t, activeobject.ExitError{Object: o.Name(), Operation: operation}, *x)
			require.EqualError(t, err, "sluice: "+o.Name()+"."+operation+" ended its goroutine (runtime.Goexit)")
		}
		// requireEnd requires that the caller has died of its body, or else been told.
		requireEnd := func(o *activeobject.Object[mine], operation string, err error, died bool) {
			t.Helper()
			if died {
				require.Equal(t, errEnded, err)
			} else {
				requireExit(o, operation, err)
			}
		}
		alive := func(o *activeobject.Object[mine]) {
			t.Helper()
			require.NoError(t, soon(t, s.system, calling(background, o, ms.look, nil)).err)
			require.Empty(t, o.Explain().Running)
		}
		for _, leave := range []*activeobject.Operation[mine, None, None]{ms.leave, ms.leaveCtx} {
			leaf := leave == ms.leave
			t.Run("own/"+leave.Name(), func(t *testing.T) {
				o := newObject(t, s, ms.Type, &mine{})
				for _, call := range []func() <-chan outcome[None]{
					func() <-chan outcome[None] { return calling(background, o, leave, nil) },
					func() <-chan outcome[None] { return trying(background, o, leave, nil) },
				} {
					requireEnd(o, leave.Name(), soon(t, s.system, call()).err, s.onCallers())
					alive(o)
				}
			})
			t.Run("send/"+leave.Name(), func(t *testing.T) {
				o := newObject(t, s, ms.Type, &mine{})
				sent := async(func() (None, error) { return leave.Send(background, o, nil).Await(background) })
				// A leaf body runs on its sender if the object is idle.
				requireEnd(o, leave.Name(), soon(t, s.system, sent).err, s.helpsLeaves() && leaf)
				alive(o)
			})
			t.Run("served/"+leave.Name(), func(t *testing.T) {
				o := newObject(t, s, ms.Type, &mine{})
				release := braked(t, s, o, ms.hold)
				called := calling(background, o, leave, nil)
				waiting(t, o, leave, 1)
				sent := leave.Send(background, o, nil)
				waiting(t, o, leave, 2)
				release()
				// The caller that owned the object serves leaf bodies, and its goroutine ends with them.
				requireEnd(o, leave.Name(), soon(t, s.system, called).err, s.onCallers() && !(s.helpsLeaves() && leaf))
				requireExit(o, leave.Name(), soon(t, s.system, awaiting(background, sent)).err)
				alive(o)
			})
		}
		for _, wait := range []*activeobject.Operation[mine, None, None]{ms.wait, ms.waitCtx} {
			t.Run("guarded/"+wait.Name(), func(t *testing.T) {
				o := newObject(t, s, ms.Type, &mine{})
				called := calling(background, o, wait, nil)
				waiting(t, o, wait, 1)
				sent := wait.Send(background, o, nil)
				opener := calling(background, o, ms.tread, nil)
				leaf := wait == ms.wait
				requireEnd(o, wait.Name(), soon(t, s.system, called).err, s.onCallers() && !(s.helpsLeaves() && leaf))
				// The opener served the waiter, and died of it.
				require.Equal(t, s.helpsLeaves() && leaf, soon(t, s.system, opener).err == errEnded)
				requireExit(o, wait.Name(), soon(t, s.system, awaiting(background, sent)).err)
				alive(o)
			})
		}
	})
}

func TestACallerThatDiesOfItsBodyHandsTheObjectOnOnce(t *testing.T) {
	if !alone(t) {
		return
	}
	ms := newMines()
	for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}} {
		synctest.Test(t, func(t *testing.T) {
			system := actor.NewSystem()
			o := activeobject.Must(activeobject.New(system, ms.Type, &mine{}, options...))
			first := newBrake()
			held := calling(background, o, ms.hold, first)
			<-first.entered
			left := calling(background, o, ms.leaveCtx, nil) // is granted the object, and dies
			synctest.Wait()
			var brakes []*brake
			for range 3 {
				b := newBrake()
				ms.hold.Send(background, o, b)
				brakes = append(brakes, b)
			}
			close(first.let)
			<-held
			require.Error(t, (<-left).err)
			for i := range brakes {
				looked := calling(background, o, ms.look, nil)
				synctest.Wait()
				require.Empty(t, looked, "two bodies run at a time")
				for j, b := range brakes {
					select {
					case <-b.entered:
						require.LessOrEqual(t, j, i, "two bodies run at a time")
					default:
						require.Greater(t, j, i, "the object does not go on")
					}
				}
				close(brakes[i].let)
			}
			require.NoError(t, system.Close(background))
		})
	}
}

func TestObjectsGoOnThoughManyGoroutinesEndInThem(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &mine{}
		o := newObject(t, s, ms.Type, state)
		const callers, rounds = 8, 100
		var wg sync.WaitGroup
		for i := range callers {
			for range rounds {
				wg.Go(func() {
					switch i % 4 {
					case 0:
						ms.leave.Call(background, o, nil)
					case 1:
						ms.leaveCtx.Call(background, o, nil)
					case 2:
						ms.blast.Call(background, o, i)
					default:
						ms.leaveCtx.Send(background, o, nil).Await(background)
					}
				})
			}
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		soon(t, s.system, done)
		soon(t, s.system, o.Stop())
		// A goroutine that died serving another could not make its own call.
		require.LessOrEqual(t, state.blasts, callers*rounds)
		require.NotZero(t, state.blasts)
		t.Logf("%d bodies of %d", state.blasts, callers*rounds)
	})
}

func TestAGuardThatEndsItsGoroutineDoesNotWedgeTheObject(t *testing.T) {
	// A failed assertion in a guard is enough for that.
	ms := newMines()
	sabotage := activeobject.Procedure(ms.Type, "sabotage", activeobject.Plain(func(m *mine) { m.exits = true }))
	everywhere(t, func(t *testing.T, s *scene) {
		system := actor.NewSystem() // not to be closed if it is wedged
		o := activeobject.Must(activeobject.New(system, ms.Type, &mine{}, s.options...))
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		called := calling(ctx, o, ms.enter, 1)
		waiting(t, o, ms.enter, 1)
		sabotaged := calling(background, o, sabotage, nil) // may die of the guard
		alive := make(chan struct{})
		go func() {
			ms.tread.Call(background, o, nil)
			ms.look.Call(background, o, nil)
			close(alive)
		}()
		select {
		case <-alive:
		case <-after():
			t.Fatal("the object is wedged")
		}
		select {
		case <-called:
		case <-after():
			t.Fatal("the waiter is lost")
		}
		select {
		case <-sabotaged:
		case <-after():
			t.Fatal("the caller of the request before is lost")
		}
		require.NoError(t, system.Close(background))
	})
}
