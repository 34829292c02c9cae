package activeobject_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// entering makes a call whose body has begun when it returns, and goes on when the returned
// function is called.
func (ps places) entering(t *testing.T, s *scene, o *activeobject.Object[place], then visit) (goOn func(), out <-chan outcome[None]) {
	t.Helper()
	inside, let := make(chan struct{}), make(chan struct{})
	out = calling(background, o, ps.visit, func(ctx context.Context) error {
		close(inside)
		<-let
		return then(ctx)
	})
	soon(t, s.system, inside)
	return func() { close(let) }, out
}

// waits waits until it is known that the only body that runs in the object waits.
func waits(t *testing.T, o *activeobject.Object[place]) {
	t.Helper()
	eventually(t, "its wait is known", func() bool {
		running := o.Explain().Running
		return len(running) == 1 && len(running[0].Waits) == 1
	})
}

func TestABodyThatClosesAnObjectWhichWaitsForItIsInACircle(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		x, y, z := ps.at(t, s, "x"), ps.at(t, s, "y"), ps.at(t, s, "z")
		calls := func(o *activeobject.Object[place]) visit {
			return func(ctx context.Context) error { _, err := ps.visit.Call(ctx, o, nil); return err }
		}
		// Y waits for z, and z for x. Nothing has been done when Close fails.
		goOn, inX := ps.entering(t, s, x, y.Close)
		toZ, inY := ps.entering(t, s, y, calls(z))
		toX, inZ := ps.entering(t, s, z, calls(x))
		toZ()
		waits(t, y)
		toX()
		waits(t, z)
		goOn()
		requireCircle(t, soon(t, s.system, inX).err, "x.visit waits for the end of y, y.visit waits for z.visit, z.visit waits for x.visit",
			"x.visit", "the end of y", "y.visit", "z.visit", "z.visit", "x.visit")
		require.NoError(t, soon(t, s.system, inZ).err)
		require.NoError(t, soon(t, s.system, inY).err)
		_, err := ps.touch.Call(background, y, nil)
		require.NoError(t, err)
		// Its own object, by way of another one.
		_, err = ps.visit.Call(background, y, func(ctx context.Context) error {
			_, err := ps.visit.Call(ctx, z, y.Close)
			return err
		})
		requireCircle(t, err, "y.visit waits for z.visit, z.visit waits for the end of y", "y.visit", "z.visit", "z.visit", "the end of y")
		// The other way round: y's body finds that x waits for its end.
		goOn, inX = ps.entering(t, s, x, y.Close)
		toX, inY = ps.entering(t, s, y, calls(x))
		goOn()
		waits(t, x)
		require.Equal(t, "the end of y", x.Explain().Running[0].Waits[0].Request)
		toX()
		requireCircle(t, soon(t, s.system, inY).err, "y.visit waits for x.visit, x.visit waits for the end of y",
			"y.visit", "x.visit", "x.visit", "the end of y")
		require.NoError(t, soon(t, s.system, inX).err)
		require.True(t, y.Explain().Stopped)
	})
}

// An object that is closed while it is restarted ends only after that; and the restart waits for the
// object's children.
func TestABodyThatClosesAnObjectHearsThatItsRestartWaitsForTheBody(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		made := func() (*place, error) { return &place{}, nil }
		j := newJudge()
		parent, err := activeobject.NewFrom(s.system, ps.Type, made, append(s.options, activeobject.Name("parent"), activeobject.Supervisor(j))...)
		require.NoError(t, err)
		child, err := activeobject.NewFrom(s.system, ps.Type, made, append(s.options, activeobject.Name("child"), activeobject.Parent(parent))...)
		require.NoError(t, err)
		x := ps.at(t, s, "x")
		_, err = ps.visit.Call(background, parent, func(context.Context) error { panic("failed") })
		require.ErrorAs(t, err, new(*activeobject.PanicError))
		failed := soon(t, s.system, j.cases)
		goOn, inX := ps.entering(t, s, x, parent.Close)
		toX, inChild := ps.entering(t, s, child, func(ctx context.Context) error { _, err := ps.visit.Call(ctx, x, nil); return err })
		toX()
		waits(t, child)
		goOn()
		waits(t, x)
		failed.supervisor.RestartChildren(failed.child)
		requireCircle(t, soon(t, s.system, inX).err, "x.visit waits for the end of parent, the restart of parent waits for child.visit, child.visit waits for x.visit",
			"x.visit", "the end of parent", "the restart of parent", "child.visit", "child.visit", "x.visit")
		require.NoError(t, soon(t, s.system, inChild).err)
		require.NoError(t, parent.Close(background))
	})
}
