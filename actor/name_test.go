package actor_test

import (
	"strings"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

func TestANameThatCannotBeAnAddressIsRefusedBeforeAnythingIsMade(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		parent, err := activeobject.New(s, locks, &lock{}, activeobject.Name("the parent"))
		require.NoError(t, err)
		for _, name := range []string{"a\x00b", "a\nb", "\x7f", "a\u0085b", "a/b", "/", "a\xffb", "$3", "$0", "future$1a", "guardian$+~"} {
			for _, options := range [][]activeobject.Option{
				{activeobject.Name(name)},
				{activeobject.Name(name), activeobject.Supervisor(proto.NewRestartingStrategy())},
				{activeobject.Name(name), activeobject.Parent(parent)},
			} {
				o, err := activeobject.NewFrom(s, locks, func() (*lock, error) {
					t.Error("the factory is called")
					return &lock{}, nil
				}, options...)
				require.Nil(t, o)
				var refused *actor.NameError
				require.ErrorAs(t, err, &refused, "%q", name)
				require.Equal(t, name, refused.Name)
				require.ErrorIs(t, err, actor.ErrBadName)
				require.NotContains(t, err.Error(), "\n")
			}
			_, err := s.Spawn(name, newMember(s))
			require.ErrorIs(t, err, actor.ErrBadName)
		}
		_, err = parent.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "a/b")
		require.ErrorIs(t, err, actor.ErrBadName)
		for _, name := range []string{"café 7", "US$100", "$", "a$", "$a.b", "future$", "myfuture$1", `"\`} {
			o, err := activeobject.New(s, locks, &lock{}, activeobject.Name(name))
			require.NoError(t, err)
			require.Equal(t, name, o.PID().Id)
			_, err = activeobject.New(s, locks, &lock{}, activeobject.Name(name))
			require.ErrorIs(t, err, proto.ErrNameExists)
			require.NotErrorIs(t, err, actor.ErrBadName)
		}
	})
}

// An actor of protoactor's own may have any name, such as one that is made up next.
func TestAnAutomaticNameThatIsTakenIsPassedOver(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		root, registry := s.Actors().Root, s.Actors().ProcessRegistry
		parent, err := activeobject.New(s, locks, &lock{}, activeobject.Name("parent"))
		require.NoError(t, err)
		last := registry.NextId()
		digits := "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ~+"
		n := strings.Index(digits, last[1:])
		require.GreaterOrEqual(t, n, 0, last)
		for _, prefix := range []string{"", "parent/"} {
			for _, digit := range digits[n+1:] {
				taken, err := root.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), prefix+"$"+string(digit))
				require.NoError(t, err)
				defer root.Stop(taken)
			}
		}
		make := func(options ...activeobject.Option) *activeobject.Object[lock] {
			o, err := activeobject.NewFrom(s, locks, func() (*lock, error) { return &lock{}, nil }, options...)
			require.NoError(t, err)
			return o
		}
		for _, o := range []*activeobject.Object[lock]{
			make(), make(activeobject.Supervisor(proto.NewRestartingStrategy())), make(activeobject.Parent(parent)),
		} {
			open, err := actor.Ask[bool](background, s, o.PID(), "set", true)
			require.NoError(t, err)
			require.True(t, open)
		}
	})
}

func TestThePIDOfAnyObjectCanBeSentTo(t *testing.T) {
	for name, end := range map[string]func(*actor.System, *activeobject.Object[lock]) error{
		"system closed": func(s *actor.System, _ *activeobject.Object[lock]) error { return s.Close(background) },
		"object stops":  func(_ *actor.System, o *activeobject.Object[lock]) error { o.Stop(); return nil },
		"object ended":  func(_ *actor.System, o *activeobject.Object[lock]) error { return o.Close(background) },
	} {
		for _, addressed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				homes(t, func(t *testing.T, s *actor.System) {
					o, err := activeobject.New(s, locks, &lock{})
					require.NoError(t, err)
					if addressed {
						o.PID()
					}
					require.NoError(t, end(s, o))
					pid := o.PID()
					require.NotNil(t, pid)
					require.Equal(t, pid, o.PID())
					root := s.Actors().Root
					dead := deadLetters(t, s)
					told := &actor.Invoke{Operation: "set", Argument: true}
					root.Send(pid, told)
					require.Same(t, told, soon(t, dead))
					_, err = s.Request(background, pid, told).Await(background)
					require.Error(t, err)
					ended, stop := s.Watch(pid)
					soon(t, ended)
					stop()
					require.NoError(t, root.StopFuture(pid).Wait())
					require.NoError(t, root.PoisonFuture(pid).Wait())
				})
			})
		}
	}
}

func TestThePIDOfAnObjectOfAClosedSystemMakesNoActorSystem(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	o, err := activeobject.New(s, locks, &lock{})
	require.NoError(t, err)
	require.NoError(t, s.Close(background))
	pid := o.PID()
	require.Equal(t, o.Name(), pid.Id)
	other := newForeign(t)
	other.Root.Send(pid, "it is at home nowhere")
}
