package activeobject_test

import (
	"context"
	"errors"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// proxies returns the proxies of an operation at an object: bound to it, and by its PID.
func proxies[A, R any](s *scene, op *activeobject.Operation[dam, A, R], o *activeobject.Object[dam]) map[string]activeobject.Proxy[A, R] {
	return map[string]activeobject.Proxy[A, R]{
		"bound":   activeobject.At(op, o),
		"by PID":  op.To(s.system, o.PID()),
		"by name": activeobject.OperationAt[A, R](s.system, o.PID(), op.Name()),
	}
}

func TestAProxyDoesWhatTheOperationDoes(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, entry := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			for name, drain := range proxies(s, entry, o) {
				runs := ts.ran(o)
				_, err := drain.Try(background, nil)
				if name == "bound" {
					require.ErrorIs(t, err, activeobject.ErrRefused)
				} else {
					var wrong *activeobject.ArgumentError
					require.ErrorAs(t, err, &wrong, name)
				}
				waits := async(func() (int, error) { return drain.Call(background, nil) })
				waiting(t, o, entry, 1)
				sent := drain.Send(background, nil)
				waiting(t, o, entry, 2)
				ctx, cancel := context.WithCancel(background)
				given := async(func() (int, error) { return 0, drain.Do(ctx, nil) })
				waiting(t, o, entry, 3)
				cancel()
				require.ErrorIs(t, soon(t, s.system, given).err, context.Canceled, name)
				waiting(t, o, entry, 2)
				require.NoError(t, proxies(s, ts.fill, o)[name].Do(background, 2))
				require.Equal(t, outcome[int]{runs + 1, nil}, soon(t, s.system, waits), name)
				require.Equal(t, outcome[int]{runs + 2, nil}, soon(t, s.system, awaiting(background, sent)), name)
				require.NoError(t, proxies(s, ts.fill, o)[name].Tell(background, 1))
				n, err := drain.Call(background, nil)
				require.NoError(t, err, name)
				require.Equal(t, runs+3, n, name)
				require.ErrorIs(t, drain.Tell(ctx, nil), context.Canceled, name)
			}
		}
	})
}

func TestTheProxyOfAnObjectMakesTicketsAndCases(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{level: 1})
		drain, fill := activeobject.At(ts.drain, o), activeobject.At(ts.fill, o)
		require.Equal(t, o.Name()+".drain", drain.String())
		n, err := drain.Begin(background, nil).Await(background)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		waits, fills := drain.Case(nil), fill.Case(1)
		i, err := activeobject.Select(background, waits, fills)
		require.NoError(t, err)
		require.Equal(t, 1, i)
		i, err = activeobject.Select(background, waits, fills)
		require.NoError(t, err)
		if i == 0 {
			n, err = waits.Result()
			require.Equal(t, outcome[int]{2, nil}, outcome[int]{n, err})
		}
	})
}

func TestAProxyOfAPIDFailsWithTypedErrors(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{level: 3})
		other := activeobject.NewType[dam]("other")
		missing := activeobject.Procedure(other, "missing", activeobject.Plain(func(*dam) {}))
		var message *activeobject.MessageError
		require.ErrorAs(t, missing.To(s.system, o.PID()).Do(background, nil), &message)
		require.ErrorAs(t, activeobject.OperationAt[string, int](s.system, o.PID(), "fill").Do(background, "much"), &message)
		for how, drain := range map[string]func() error{
			"call": func() error {
				_, err := activeobject.OperationAt[None, string](s.system, o.PID(), "drain").Call(background, nil)
				return err
			},
			"send": func() error {
				_, err := activeobject.OperationAt[None, string](s.system, o.PID(), "drain").Send(background, nil).Await(background)
				return err
			},
		} {
			var result *actor.ResultError
			require.ErrorAs(t, drain(), &result, how)
			require.Equal(t, "string", result.Want)
			require.Equal(t, "drain", result.Operation)
		}
		var dead *actor.DeadLetterError
		require.ErrorAs(t, ts.fill.To(s.system, nil).Do(background, 1), &dead)
		require.ErrorAs(t, ts.fill.To(s.system, nil).Tell(background, 1), &dead)
		require.NoError(t, o.CloseActor(background))
		require.ErrorAs(t, ts.fill.To(s.system, o.PID()).Do(background, 1), &dead)
	})
}

func TestAProxyOfAPlainActorSendsTheArgumentItself(t *testing.T) {
	s := newSystem(t)
	fail := errors.New("not today")
	pid := s.Actors().Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		switch n := c.Message().(type) {
		case int:
			c.Respond(n * 2)
		case string:
			c.Respond(&actor.Reply{Err: fail})
		}
	}))
	double := activeobject.ActorAt[int, int](s, pid)
	n, err := double.Call(background, 21)
	require.NoError(t, err)
	require.Equal(t, 42, n)
	n, err = double.Send(background, 4).Await(background)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	_, err = double.Try(background, 5)
	var wrong *activeobject.ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, double.Tell(background, 1))
	require.ErrorIs(t, activeobject.ActorAt[string, int](s, pid).Do(background, "x"), fail)
	var result *actor.ResultError
	require.ErrorAs(t, activeobject.ActorAt[int, string](s, pid).Do(background, 1), &result)
}
