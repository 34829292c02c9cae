package synchronizer_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

type None = activeobject.None

var (
	none       None
	background = context.Background()
	quiet      = slog.New(slog.DiscardHandler)
)

// patience is how long something may take before the test fails.
const patience = 20 * time.Second

func newSystem(t testing.TB) *actor.System {
	t.Helper()
	system := actor.NewSystem(actor.Logger(quiet))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		require.NoError(t, system.Close(ctx))
	})
	return system
}

func newPool(t testing.TB, s *actor.System, n int) *synchronizer.Pool {
	t.Helper()
	pool, err := synchronizer.NewPool(s, n)
	require.NoError(t, err)
	return pool
}

// soon returns what comes out of c.
func soon[R any](t testing.TB, c <-chan R) (r R) {
	t.Helper()
	select {
	case r = <-c:
	case <-time.After(patience):
		t.Fatal("this hangs")
	}
	return r
}

// everyThread runs a test for every way to assign threads.
func everyThread(t *testing.T, test func(t *testing.T, s *actor.System, options ...activeobject.Option)) {
	type options = []activeobject.Option
	for name, some := range map[string]func(t *testing.T, s *actor.System) options{
		"callers": func(*testing.T, *actor.System) options { return options{synchronizer.Callers()} },
		"spawned": func(*testing.T, *actor.System) options { return options{synchronizer.Goroutines()} },
		"pool":    func(t *testing.T, s *actor.System) options { return options{synchronizer.Workers(newPool(t, s, 8))} },
		"actors":  func(*testing.T, *actor.System) options { return options{synchronizer.Actors(8)} },
		"monitor": func(*testing.T, *actor.System) options { return options{synchronizer.Monitor()} },
		"monitor spawned": func(*testing.T, *actor.System) options {
			return options{synchronizer.Monitor(), synchronizer.Goroutines()}
		},
		// With fewer threads than requests that may wait it would stand still: see Monitor.
		"monitor pool": func(t *testing.T, s *actor.System) options {
			return options{synchronizer.Workers(newPool(t, s, 64)), synchronizer.Monitor()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			test(t, s, some(t, s)...)
		})
	}
}

// A room has operations that do what their argument says; which of them conflict is up to
// the test.
type room struct{ open bool }

func (r *room) isOpen() bool { return r.open }

func visit(_ *room, ctx context.Context, f func(context.Context) error) (None, error) {
	return none, f(ctx)
}

type rooms struct {
	*activeobject.Type[room]
	a, b, c *activeobject.Operation[room, func(context.Context) error, None]
	read    *activeobject.Operation[room, func(context.Context) error, None]
	pass    *activeobject.Operation[room, None, None]
	set     *activeobject.Operation[room, bool, None]
}

// newRooms declares rooms: a, b and c are procedures, read is a function, pass waits until
// the room is open.
func newRooms() rooms {
	t := activeobject.NewType[room]("room")
	return rooms{
		Type: t,
		a:    activeobject.ProcedureCtx(t, "a", visit),
		b:    activeobject.ProcedureCtx(t, "b", visit),
		c:    activeobject.ProcedureCtx(t, "c", visit),
		read: activeobject.FunctionCtx(t, "read", visit),
		pass: activeobject.Entry(t, "pass", activeobject.Plain(func(*room) {})).When("open", (*room).isOpen),
		set:  activeobject.Procedure(t, "set", activeobject.Arg(func(r *room, open bool) { r.open = open })),
	}
}

// free is the table of a room in which the visits conflict with nothing.
func (rs rooms) free() guards.Table {
	return rs.Conflicts().Compatible(rs.a, rs.a, rs.b, rs.c, rs.read).Compatible(rs.b, rs.b, rs.c, rs.read).Compatible(rs.c, rs.c, rs.read)
}

func newRoom(t testing.TB, s *actor.System, rs rooms, table guards.Table, options ...activeobject.Option) *activeobject.Object[room] {
	t.Helper()
	o, err := synchronizer.New(s, rs.Type, &room{}, append(options, synchronizer.Conflicts(table))...)
	require.NoError(t, err)
	return o
}

// call makes a call on another goroutine.
func call[T, A, R any](op *activeobject.Operation[T, A, R], o *activeobject.Object[T], arg A) <-chan error {
	return callWith(background, op, o, arg)
}

func callWith[T, A, R any](ctx context.Context, op *activeobject.Operation[T, A, R], o *activeobject.Object[T], arg A) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := op.Call(ctx, o, arg)
		done <- err
	}()
	return done
}

// until waits, awake, until the condition holds.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		runtime.Gosched()
	}
}

// finish waits until all goroutines have ended, or says what the objects are at.
func finish[T any](t testing.TB, all *sync.WaitGroup, objects []*activeobject.Object[T]) {
	t.Helper()
	finished := make(chan None)
	go func() { all.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(patience):
		for _, o := range objects {
			t.Log(o.Explain())
		}
		t.Fatal("this hangs")
	}
}

// toggle opens and shuts each of the objects, over and over, until stop is closed. It may find
// them stopped, or full.
func toggle[T any](t testing.TB, objects []*activeobject.Object[T], stop <-chan None, set func(o *activeobject.Object[T], open bool) error) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, o := range objects {
		all.Go(func() {
			for open := true; ; open = !open {
				if err := set(o, open); err != nil && !errors.Is(err, activeobject.ErrStopped) && !errors.Is(err, activeobject.ErrFull) {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	return &all
}

// newRoomOf makes a room of another type.
func newRoomOf(t testing.TB, s *actor.System, typ *activeobject.Type[room], table guards.Table, options ...activeobject.Option) *activeobject.Object[room] {
	t.Helper()
	o, err := synchronizer.New(s, typ, &room{}, append(options, synchronizer.Conflicts(table))...)
	require.NoError(t, err)
	return o
}
