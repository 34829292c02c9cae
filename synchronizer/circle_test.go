package synchronizer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// Two chains of calls cross at two objects. In a circle they are only if their requests
// conflict, or come behind a request that conflicts.
func TestACircleOfWaitingIsFoundWhereRequestsConflictAndOnlyThere(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		nothing := func(context.Context) error { return nil }
		// cross runs x.a, and within it y.a; and the other way round; each when both are inside.
		cross := func(x, y *activeobject.Object[room], first, second *activeobject.Operation[room, func(context.Context) error, None]) (one, other error) {
			in := make(chan None)
			chain := func(from, to *activeobject.Object[room], meet func()) <-chan error {
				return call(first, from, func(ctx context.Context) error {
					meet()
					_, err := second.Call(ctx, to, nothing)
					return err
				})
			}
			a, b := chain(x, y, func() { in <- none }), chain(y, x, func() { <-in })
			return soon(t, a), soon(t, b)
		}
		t.Run("compatible", func(t *testing.T) {
			x, y := newRoom(t, s, rs, rs.free(), options...), newRoom(t, s, rs, rs.free(), options...)
			one, other := cross(x, y, rs.a, rs.b)
			require.NoError(t, one)
			require.NoError(t, other)
		})
		t.Run("conflicting", func(t *testing.T) {
			table := rs.free().Conflict(rs.a, rs.b)
			x, y := newRoom(t, s, rs, table, options...), newRoom(t, s, rs, table, options...)
			one, other := cross(x, y, rs.a, rs.b)
			if one == nil {
				one, other = other, one
			}
			require.NoError(t, other, "one of the two ends the circle")
			require.ErrorAs(t, one, new(*activeobject.DeadlockError))
			require.ErrorContains(t, one, x.Name()+".a waits for "+y.Name()+".b")
			require.ErrorContains(t, one, y.Name()+".a waits for "+x.Name()+".b")
		})
		t.Run("behind a writer", func(t *testing.T) {
			other, reader, writer := aroundAWriter(t, s, rs, options...)
			one, two := soon(t, other), soon(t, reader)
			if one == nil {
				one, two = two, one
			}
			require.NoError(t, two, "the wait that is drawn last ends the circle")
			require.ErrorAs(t, one, new(*activeobject.DeadlockError))
			require.NoError(t, soon(t, writer))
		})
		t.Run("a guard that any request may open", func(t *testing.T) {
			x, y := newRoom(t, s, rs, rs.free(), options...), newRoom(t, s, rs, rs.free().Compatible(rs.pass, rs.a), options...)
			inside := make(chan None)
			stays := call(rs.a, y, func(ctx context.Context) error { // in y, waits for x
				inside <- none
				_, err := rs.pass.Call(ctx, x, none)
				return err
			})
			soon(t, inside)
			objecttest.Waiting(t, x, rs.pass, 1)
			waits := call(rs.a, x, func(ctx context.Context) error { // in x, waits for a guard of y
				_, err := rs.pass.Call(ctx, y, none)
				return err
			})
			objecttest.Waiting(t, y, rs.pass, 1)
			// What is free may open y: set conflicts with a, which stays there, and so waits.
			opened := call(rs.set, y, true)
			objecttest.Waiting(t, y, rs.set, 1)
			closes := callWith(background, rs.set, x, true) // conflicts with a, in x, likewise
			objecttest.Waiting(t, x, rs.set, 1)
			x.Stop()
			require.ErrorIs(t, soon(t, stays), activeobject.ErrStopped)
			require.ErrorIs(t, soon(t, closes), activeobject.ErrStopped)
			require.NoError(t, soon(t, opened))
			require.NoError(t, soon(t, waits))
		})
	})
}

// aroundAWriter has a reader of x call y, where the other request is inside, which in turn reads x:
// behind a writer that waits for the reader, unless all compatible requests start. It returns what
// the three get.
func aroundAWriter(t *testing.T, s *actor.System, rs rooms, options ...activeobject.Option) (other, reader, writer <-chan error) {
	t.Helper()
	nothing := func(context.Context) error { return nil }
	x, y := newRoom(t, s, rs, rs.Conflicts(), options...), newRoom(t, s, rs, rs.Conflicts(), options...)
	inside, go1, go2 := make(chan None), make(chan None), make(chan None)
	reader = call(rs.read, x, func(ctx context.Context) error {
		inside <- none
		<-go1
		_, err := rs.a.Call(ctx, y, nothing)
		return err
	})
	soon(t, inside)
	writer = call(rs.a, x, nothing)
	objecttest.Waiting(t, x, rs.a, 1)
	other = call(rs.a, y, func(ctx context.Context) error {
		inside <- none
		<-go2
		_, err := rs.read.Call(ctx, x, nothing)
		return err
	})
	soon(t, inside)
	close(go1)
	objecttest.Waiting(t, y, rs.a, 1)
	close(go2)
	return other, reader, writer
}

// Where all compatible requests start, none waits behind a writer that waits for a reader.
func TestWhereAllCompatibleStartAWriterThatWaitsIsInNoCircle(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		other, reader, writer := aroundAWriter(t, s, rs, append(options, synchronizer.AllCompatible())...)
		require.NoError(t, soon(t, other))
		require.NoError(t, soon(t, reader))
		require.NoError(t, soon(t, writer))
	})
}

// But with a bound on bypasses the writer may come to be at it, and then blocks a request that waits
// already: the circle is closed by the start of another request, which waits for nothing.
func TestACircleIsFoundThroughARequestThatHasComeToItsBound(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		nothing := func(context.Context) error { return nil }
		table := rs.Conflicts().Compatible(rs.pass, rs.read)
		options = append(options, synchronizer.AllCompatible(), activeobject.MaxBypass(1))
		x, y := newRoom(t, s, rs, table, options...), newRoom(t, s, rs, table, options...)
		inside, go1 := make(chan None), make(chan None)
		reader := call(rs.read, x, func(ctx context.Context) error { // reads x, and then has y
			inside <- none
			<-go1
			_, err := rs.a.Call(ctx, y, nothing)
			return err
		})
		soon(t, inside)
		other := call(rs.a, y, func(ctx context.Context) error { // has y, and waits for a guard of x
			inside <- none
			_, err := rs.pass.Call(ctx, x, none)
			return err
		})
		soon(t, inside)
		objecttest.Waiting(t, x, rs.pass, 1)
		writer := call(rs.a, x, nothing) // waits for the reader, and blocks no other request
		objecttest.Waiting(t, x, rs.a, 1)
		close(go1)
		objecttest.Waiting(t, y, rs.a, 1)
		require.NoError(t, soon(t, call(rs.read, x, nothing))) // passes the writer
		select {
		case err := <-reader:
			if err != nil {
				require.ErrorAs(t, err, new(*activeobject.DeadlockError))
				require.NoError(t, soon(t, call(rs.set, x, true)))
				require.NoError(t, soon(t, other))
			} else {
				require.ErrorAs(t, soon(t, other), new(*activeobject.DeadlockError))
			}
		case err := <-other:
			require.ErrorAs(t, err, new(*activeobject.DeadlockError))
			require.NoError(t, soon(t, reader))
		case <-time.After(patience):
			t.Fatal("no request fails")
		}
		require.NoError(t, soon(t, writer))
	})
}

// A request waits for all that come before it.
func TestACircleThroughAnyOfThoseInFrontIsFound(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	nothing := func(context.Context) error { return nil }
	for _, swap := range []bool{false, true} {
		// set is behind b and c, which do not conflict, and each of which waits for a body of its own.
		typ := activeobject.NewType[room]("o")
		x1, x2 := activeobject.ProcedureCtx(typ, "x1", visit), activeobject.ProcedureCtx(typ, "x2", visit)
		y1, y2 := activeobject.ProcedureCtx(typ, "y1", visit), activeobject.ProcedureCtx(typ, "y2", visit)
		z := activeobject.ProcedureCtx(typ, "z", visit)
		table := typ.Conflicts().Compatible(x1, y1, y2, x2, z).Compatible(x2, y1, y2, z).Compatible(y1, y1, y2, z).Compatible(y2, y2).
			Conflict(x1, y1).Conflict(x2, y2).Compatible(y2, z).Compatible(z, z).
			Conflict(z, y1, y2)
		o := newRoomOf(t, s, typ, table)
		p := newRoom(t, s, rs, rs.Conflicts())
		go1, go2, here := make(chan None), make(chan None), make(chan None)
		free := func(ctx context.Context) error { here <- none; <-go2; return nil }
		needs := func(ctx context.Context) error {
			here <- none
			<-go1
			_, err := rs.b.Call(ctx, p, nothing)
			return err
		}
		if swap {
			free, needs = needs, free
		}
		r1 := call(x1, o, free)
		soon(t, here)
		r2 := call(x2, o, needs)
		soon(t, here)
		w1 := call(y1, o, nothing)
		objecttest.Waiting(t, o, y1, 1)
		w2 := call(y2, o, nothing)
		objecttest.Waiting(t, o, y2, 1)
		f := call(rs.a, p, func(ctx context.Context) error {
			_, err := z.Call(ctx, o, nothing) // behind y1 and y2
			return err
		})
		objecttest.Waiting(t, o, z, 1)
		close(go1)
		circle, goes := r2, r1
		if swap {
			circle, goes = r1, r2
		}
		deadlocked := func(err error) bool { return errors.As(err, new(*activeobject.DeadlockError)) }
		first := soon(t, either(circle, f)) // the wait that is drawn last ends the circle
		require.True(t, first == nil || deadlocked(first), first)
		close(go2)
		require.NoError(t, soon(t, goes))
		require.NoError(t, soon(t, w1))
		require.NoError(t, soon(t, w2))
		second := soon(t, either(circle, f))
		require.True(t, (first == nil) != (second == nil) && (deadlocked(first) || deadlocked(second)), "%v, %v", first, second)
	}
}

// A call does not come back by a requeue either.
func TestARequeueThatComesBackIsRefused(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	nothing := func(context.Context) error { return nil }
	o := newRoom(t, s, rs, rs.free(), activeobject.Name("o"))
	typ := activeobject.NewType[room]("far")
	back := activeobject.ProcedureCtx(typ, "back", func(*room, context.Context, None) (None, error) { return rs.b.RequeueTo(o, nothing) })
	far := newRoomOf(t, s, typ, typ.Conflicts())
	_, err := rs.a.Call(background, o, func(ctx context.Context) error {
		_, err := back.Call(ctx, far, none)
		return err
	})
	require.ErrorAs(t, err, new(*activeobject.DeadlockError))
}

// A request that waits for its guard alone does not wait for those that come behind it.
func TestARequestThatWaitsForItsGuardIsNotHeldUpByThoseBehind(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	nothing := func(context.Context) error { return nil }
	typ := activeobject.NewType[room]("o")
	pass := activeobject.Entry(typ, "pass", activeobject.Plain(func(*room) {})).When("open", (*room).isOpen)
	other := activeobject.Entry(typ, "other", activeobject.Plain(func(*room) {})).When("never", func(*room) bool { return false })
	stay := activeobject.ProcedureCtx(typ, "stay", visit)
	set := activeobject.Procedure(typ, "set", activeobject.Arg(func(r *room, open bool) { r.open = open }))
	// stay keeps other out, but neither pass nor set, which opens that.
	o := newRoomOf(t, s, typ, typ.Conflicts().Compatible(set, stay, other).Compatible(stay, pass))
	p := newRoom(t, s, rs, rs.Conflicts())
	f := call(rs.a, p, func(ctx context.Context) error {
		_, err := pass.Call(ctx, o, none)
		return err
	})
	objecttest.Waiting(t, o, pass, 1)
	behind := call(other, o, none)
	objecttest.Waiting(t, o, other, 1)
	y := call(stay, o, func(ctx context.Context) error {
		_, err := rs.b.Call(ctx, p, nothing)
		return err
	})
	until(t, "waits", func() bool { return rs.b.Waiting(p) == 1 || len(y) > 0 })
	opened := call(set, o, true)
	require.NoError(t, soon(t, f))
	require.NoError(t, soon(t, y))
	require.NoError(t, soon(t, opened))
	o.Stop()
	require.ErrorIs(t, soon(t, behind), activeobject.ErrStopped)
}

// A body waits for a request of its own object that can run beside it; a restart of the
// object, for which another body has failed, comes between.
func TestARestartThatClosesACircleEndsAWaitInIt(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		o, err := synchronizer.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil },
			append(options, synchronizer.Conflicts(rs.free().Compatible(rs.pass, rs.a, rs.b)),
				activeobject.Supervisor(proto.NewOneForOneStrategy(10, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))...)
		require.NoError(t, err)
		waits := call(rs.a, o, func(ctx context.Context) error {
			_, err := rs.pass.Send(background, o, none).Await(ctx)
			return err
		})
		objecttest.Waiting(t, o, rs.pass, 1)
		require.ErrorAs(t, soon(t, call(rs.b, o, func(context.Context) error { panic("cause") })), new(*activeobject.PanicError))
		err = soon(t, waits)
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		_, err = rs.set.Call(background, o, true)
		require.NoError(t, err)
		objecttest.Idle(t, o)
	})
}

// A body waits for a request that runs beside it, and is then requeued for an operation that
// cannot.
func TestARequeueThatClosesACircleEndsAWaitInIt(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		typ := activeobject.NewType[room]("room")
		a := activeobject.ProcedureCtx(typ, "a", visit)
		c := activeobject.Procedure(typ, "c", activeobject.Plain(func(*room) {}))
		first := activeobject.ProcedureCtx(typ, "first", func(_ *room, _ context.Context, on chan None) (None, error) {
			<-on
			return c.Requeue(none)
		})
		o := newRoomOf(t, s, typ, typ.Conflicts().Compatible(a, first), options...)
		on, result := make(chan None), make(chan error, 1)
		waits := call(a, o, func(ctx context.Context) error {
			f := first.Send(background, o, on)
			go func() {
				until(t, "waits", func() bool { x := o.Explain().Running; return len(x) > 0 && len(x[0].Waits) > 0 })
				close(on)
			}()
			_, err := f.Await(ctx)
			result <- err
			return nil
		})
		require.ErrorAs(t, soon(t, result), new(*activeobject.DeadlockError))
		require.NoError(t, soon(t, waits))
		objecttest.Idle(t, o)
	})
}

// A request conflicts with two that run, by a condition, which is evaluated for them one after
// the other. Only when the first has ended does it turn out that the second conflicts too, which
// waits for the caller of the request.
func TestACircleThatAConditionFindsOutLaterEndsAWaitInIt(t *testing.T) {
	hs := newHalls()
	table := hs.scopes()["predicate"]
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		o := newHall(t, s, hs, table, options...)
		rs := newRooms()
		other, err := activeobject.New(s, rs.Type, &room{})
		require.NoError(t, err)
		here, ask, leave := make(chan None), make(chan None), make(chan None)
		asks := call(rs.a, other, func(ctx context.Context) error {
			here <- none
			<-ask
			_, err := hs.sit.Call(ctx, o, place{0, 10, func(context.Context) error { return nil }})
			return err
		})
		soon(t, here)
		first := call(hs.sit, o, place{0, 2, func(context.Context) error { here <- none; <-leave; return nil }})
		soon(t, here)
		second := call(hs.sit, o, place{8, 10, func(ctx context.Context) error {
			_, err := rs.b.Call(ctx, other, func(context.Context) error { return nil })
			return err
		}})
		objecttest.Waiting(t, other, rs.b, 1)
		close(ask)
		objecttest.Waiting(t, o, hs.sit, 1)
		close(leave)
		require.NoError(t, soon(t, first))
		oneIsTold(t, asks, second)
	})
}

// A request waits for others that wait for different ones: all of these block it.
func TestACircleThroughAnyOfThoseThatComeBeforeIsFound(t *testing.T) {
	hs := newHalls()
	table := hs.scopes()["intervals"]
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		o := newHall(t, s, hs, table, options...)
		rs := newRooms()
		other, err := activeobject.New(s, rs.Type, &room{})
		require.NoError(t, err)
		nothing := func(context.Context) error { return nil }
		here, ask, leave := make(chan None), make(chan None), make(chan None)
		asks := call(rs.a, other, func(ctx context.Context) error {
			here <- none
			<-ask
			_, err := hs.sit.Call(ctx, o, place{2, 8, nothing})
			return err
		})
		soon(t, here)
		first := call(hs.sit, o, place{0, 2, func(context.Context) error { here <- none; <-leave; return nil }})
		soon(t, here)
		second := call(hs.sit, o, place{8, 10, func(ctx context.Context) error {
			_, err := rs.b.Call(ctx, other, nothing)
			return err
		}})
		objecttest.Waiting(t, other, rs.b, 1)
		left := call(hs.sit, o, place{1, 3, nothing})
		objecttest.Waiting(t, o, hs.sit, 1)
		right := call(hs.sit, o, place{7, 9, nothing})
		objecttest.Waiting(t, o, hs.sit, 2)
		close(ask)
		var told error
		for told == nil { // the other ends by that; or only when the first has left
			select {
			case told = <-asks:
				asks = nil
			case told = <-second:
				second = nil
			case <-time.After(patience):
				t.Fatal("this hangs")
			}
		}
		require.ErrorAs(t, told, new(*activeobject.DeadlockError))
		close(leave)
		for _, c := range []<-chan error{first, asks, second, left, right} {
			if c != nil {
				require.NoError(t, soon(t, c))
			}
		}
	})
}

// oneIsTold checks that one of two waits that close a circle ends: the one that comes last.
func oneIsTold(t *testing.T, a, b <-chan error) {
	t.Helper()
	first, second := soon(t, a), soon(t, b)
	if first == nil {
		first, second = second, first
	}
	require.ErrorAs(t, first, new(*activeobject.DeadlockError))
	require.NoError(t, second)
}
