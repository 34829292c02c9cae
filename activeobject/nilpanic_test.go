package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// shop is an object whose bodies and guards do what the test says.
type shop struct{ before func() }

type shops struct {
	*activeobject.Type[shop]
	do, doCtx, enter, dig *activeobject.Operation[shop, func(), None]
	hold                  *activeobject.Operation[shop, *brake, None]
}

func newShops() shops {
	t := activeobject.NewType[shop]("shop")
	do := func(_ *shop, f func()) (None, error) { f(); return nil, nil }
	return shops{
		Type:  t,
		do:    activeobject.Procedure(t, "do", do),
		doCtx: activeobject.ProcedureCtx(t, "do-ctx", func(s *shop, _ context.Context, f func()) (None, error) { return do(s, f) }),
		enter: activeobject.Entry(t, "enter", do).When("open", func(s *shop) bool { s.before(); return true }),
		dig:   activeobject.Entry(t, "dig", do).WhenArg("soft", func(_ *shop, f func()) bool { f(); return true }),
		hold:  hold(t),
	}
}

func nothing() {}

// alive requires that the object serves its callers.
func (ss shops) alive(t *testing.T, s *scene, o *activeobject.Object[shop]) {
	t.Helper()
	require.NoError(t, soon(t, s.system, calling(background, o, ss.do, nothing)).err)
	require.NoError(t, soon(t, s.system, calling(background, o, ss.doCtx, nothing)).err)
	require.Empty(t, o.Explain().Running)
	require.Empty(t, o.Explain().Waiting)
}

// Where the program asks for it panic(nil) has the value nil; it is no runtime.Goexit all
// the same: the request fails with *PanicError or *GuardError, and the goroutine goes on
// serving.
func TestAPanicWithNilIsAPanic(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	ss := newShops()
	var errNil *runtime.PanicNilError
	panics := func() { panic(nil) }
	everywhere(t, func(t *testing.T, s *scene) {
		for _, op := range []*activeobject.Operation[shop, func(), None]{ss.do, ss.doCtx, ss.dig} {
			requireNil := func(err error) {
				t.Helper()
				if op == ss.dig {
					require.IsType(t, &activeobject.GuardError{}, err)
				} else {
					require.IsType(t, &activeobject.PanicError{}, err)
				}
				require.ErrorAs(t, err, &errNil)
			}
			o := newObject(t, s, ss.Type, &shop{before: nothing})
			requireNil(soon(t, s.system, calling(background, o, op, panics)).err)
			requireNil(soon(t, s.system, trying(background, o, op, panics)).err)
			ss.alive(t, s, o)

			release := braked(t, s, o, ss.hold)
			called := calling(background, o, op, panics)
			eventually(t, "the call waits", func() bool { return len(o.Explain().Waiting) == 1 })
			sent := op.Send(background, o, panics)
			release()
			requireNil(soon(t, s.system, called).err)
			requireNil(soon(t, s.system, awaiting(background, sent)).err)
			ss.alive(t, s, o)
		}
		o := newObject(t, s, ss.Type, &shop{before: panics})
		err := soon(t, s.system, calling(background, o, ss.enter, nothing)).err
		require.IsType(t, &activeobject.GuardError{}, err)
		require.ErrorAs(t, err, &errNil)
		ss.alive(t, s, o)
	})
	t.Run("factory", func(t *testing.T) {
		_, err := activeobject.NewFrom(newSystem(t), ss.Type, func() (*shop, error) { panic(nil) })
		require.ErrorAs(t, err, &errNil)
	})
	t.Run("continuation", func(t *testing.T) {
		_, err := actor.Then(actor.Settled(1, nil), func(int, error) (int, error) { panic(nil) }).Await(background)
		require.ErrorAs(t, err, &errNil)
	})
	t.Run("interceptor", func(t *testing.T) {
		o := activeobject.Must(activeobject.New(newSystem(t), ss.Type, &shop{before: nothing}, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(context.Context, activeobject.Intercepted) (context.Context, error) { panic(nil) },
		})))
		_, err := ss.do.Call(background, o, nothing)
		require.ErrorAs(t, err, &errNil)
	})
	t.Run("policy", func(t *testing.T) {
		s := &scene{system: newSystem(t)}
		o := newObject(t, s, ss.Type, &shop{before: nothing}, activeobject.ByChoice(func(eligible []*activeobject.Candidate) int {
			if len(eligible) > 1 {
				panic(nil)
			}
			return 0
		}))
		release := braked(t, s, o, ss.hold)
		one, other := calling(background, o, ss.do, nothing), calling(background, o, ss.doCtx, nothing)
		eventually(t, "both wait", func() bool { return len(o.Explain().Waiting) == 2 })
		release()
		require.ErrorAs(t, errors.Join(soon(t, s.system, one).err, soon(t, s.system, other).err), &errNil)
		require.Empty(t, o.Explain().Running)
	})
}

// A panic of a deferred function while the goroutine ends by runtime.Goexit does not keep it
// from ending. Nor is the object lost with it.
func TestAPanicWhileTheGoroutineEndsDoesNotWedgeTheObject(t *testing.T) {
	ss := newShops()
	ends := func() {
		defer func() { panic("too late") }()
		runtime.Goexit()
	}
	everywhere(t, func(t *testing.T, s *scene) {
		for _, op := range []*activeobject.Operation[shop, func(), None]{ss.do, ss.doCtx, ss.dig, ss.enter} {
			once := ends
			o := newObject(t, s, ss.Type, &shop{before: func() {
				if op == ss.enter {
					f := once
					once = nothing
					f()
				}
			}})
			release := braked(t, s, o, ss.hold)
			called := calling(background, o, op, ends)
			eventually(t, "the call waits", func() bool { return len(o.Explain().Waiting) == 1 })
			sent := ss.do.Send(background, o, ends)
			release()
			require.Error(t, soon(t, s.system, called).err)
			require.Error(t, soon(t, s.system, awaiting(background, sent)).err)
			ss.alive(t, s, o)
		}
	})
}
