package synchronizer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// Two chains of calls cross at two objects. In a circle they are only if their requests
// conflict, or come behind somebody who conflicts.
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
			x, y := newRoom(t, s, rs, rs.Conflicts(), options...), newRoom(t, s, rs, rs.Conflicts(), options...)
			inside, go1, go2 := make(chan None), make(chan None), make(chan None)
			reader := call(rs.read, x, func(ctx context.Context) error { // reads x, and then y
				inside <- none
				<-go1
				_, err := rs.a.Call(ctx, y, nothing)
				return err
			})
			soon(t, inside)
			writer := call(rs.a, x, nothing) // waits for that
			objecttest.Waiting(t, x, rs.a, 1)
			other := call(rs.a, y, func(ctx context.Context) error { // has y, and reads x, behind the writer
				inside <- none
				<-go2
				_, err := rs.read.Call(ctx, x, nothing)
				return err
			})
			soon(t, inside)
			close(go1)
			objecttest.Waiting(t, y, rs.a, 1)
			close(go2)
			one, two := soon(t, other), soon(t, reader)
			if one == nil {
				one, two = two, one
			}
			require.NoError(t, two, "whose wait is drawn last ends the circle")
			require.ErrorAs(t, one, new(*activeobject.DeadlockError))
			require.NoError(t, soon(t, writer))
		})
		t.Run("a guard that anybody may open", func(t *testing.T) {
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
