package synchronizer_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/resource"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// readyMade is an object of whatever state.
type readyMade interface {
	actor.Spawner
	PID() *actor.PID
	// View runs f as a function, without the state.
	View(ctx context.Context, f func()) error
}

// viewed is an object whose View does not mention the state.
type viewed[T any] struct{ *activeobject.Object[T] }

func (v viewed[T]) View(ctx context.Context, f func()) error {
	return v.Object.View(ctx, func(*T) error { f(); return nil })
}

// private is an object whose state only its package can name.
type private struct{ activeobject.AnyObject }

// View calls the method of that name, which takes a function of the state.
func (p private) View(ctx context.Context, f func()) error {
	view := reflect.ValueOf(p.AnyObject).MethodByName("View")
	body := reflect.MakeFunc(view.Type().In(1), func([]reflect.Value) []reflect.Value {
		f()
		return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
	})
	err, _ := view.Call([]reflect.Value{reflect.ValueOf(ctx), body})[0].Interface().(error)
	return err
}

// view makes the result of a constructor a readyMade.
func view(o interface{ Object() activeobject.AnyObject }, err error) (readyMade, error) {
	if err != nil {
		return nil, err
	}
	return private{o.Object()}, nil
}

// readyMades are the constructors of all ready-made objects.
var readyMades = map[string]func(*actor.System, ...activeobject.Option) (readyMade, error){
	"semaphore": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(semaphore.New(s, 1, o...))
	},
	"barging semaphore": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(semaphore.NewBarging(s, 1, o...))
	},
	"binary semaphore": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(semaphore.NewBinary(s, o...))
	},
	"burst lock": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(lock.NewBurst(s, 2, o...))
	},
	"read-write lock": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(lock.NewReadWrite(s, o...))
	},
	"squad lock": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(barrier.NewSquad(s, 1, o...))
	},
	"automatic squad lock": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(barrier.NewAuto(s, 1, o...))
	},
	"cyclic barrier": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(barrier.NewCyclic(s, 2, o...))
	},
	"latch": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(barrier.NewLatch(s, 1, o...))
	},
	"phaser": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(barrier.NewPhaser(s, 1, o...))
	},
	"bounded buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewBounded[int](s, 1, o...))
	},
	"overwriting buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewOverwriting[int](s, 1, o...))
	},
	"unbounded buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewUnbounded[int](s, o...))
	},
	"read-any buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewReadAny[int](s, o...))
	},
	"read-new buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewReadNew[int](s, o...))
	},
	"read-write-new buffer": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(buffer.NewReadWriteNew[int](s, o...))
	},
	"resource": func(s *actor.System, o ...activeobject.Option) (readyMade, error) {
		return view(resource.New(s, resource.FIFO[int](), o...))
	},
}

// models are the options by which an object becomes a Synchronizer.
func models(t *testing.T, s *actor.System) map[string]activeobject.Option {
	return map[string]activeobject.Option{
		"callers":        synchronizer.Callers(),
		"spawned":        synchronizer.Goroutines(),
		"pool":           synchronizer.Workers(newPool(t, s, 2)),
		"actors":         synchronizer.Actors(2),
		"monitor":        synchronizer.Monitor(),
		"limit":          synchronizer.Limit(2),
		"hard limit":     synchronizer.HardLimit(2),
		"all compatible": synchronizer.AllCompatible(),
		"reentrant":      synchronizer.Reentrant(),
	}
}

// requireSideBySide requires that two functions run at the object at one time.
func requireSideBySide(t *testing.T, o readyMade) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	here, one := make(chan None), make(chan error, 1)
	meet := func(c chan None, send bool) func() {
		return func() {
			if send {
				select {
				case c <- none:
				case <-ctx.Done():
				}
				return
			}
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
	}
	go func() { one <- o.View(ctx, meet(here, true)) }()
	require.NoError(t, o.View(ctx, meet(here, false)))
	require.NoError(t, soon(t, one))
	require.NoError(t, ctx.Err(), "the two have not met")
}

func TestFunctionsOfAReadyMadeObjectRunSideBySideIfItIsASynchronizer(t *testing.T) {
	for name, build := range readyMades {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			o, err := build(s, synchronizer.Callers())
			require.NoError(t, err)
			requireSideBySide(t, o)
		})
	}
	for name := range models(t, newSystem(t)) {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			o, err := readyMades["read-any buffer"](s, models(t, s)[name])
			require.NoError(t, err)
			requireSideBySide(t, o)
		})
	}
}

func TestTheModelIsAnOptionOfNew(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	for name, model := range models(t, s) {
		o, err := activeobject.New(s, rs.Type, &room{}, model)
		require.NoError(t, err, name)
		requireSideBySide(t, viewed[room]{o})
		o, err = activeobject.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil }, model)
		require.NoError(t, err, name)
		requireSideBySide(t, viewed[room]{o})
		_, err = activeobject.New(s, rs.Type, &room{}, model, activeobject.DedicatedThread())
		require.ErrorAs(t, err, new(*activeobject.OptionError), name)
	}
}

func TestEveryReadyMadeObjectCanBeSupervised(t *testing.T) {
	strategy := proto.NewOneForOneStrategy(10, time.Second, proto.DefaultDecider)
	for name, build := range readyMades {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			parent, err := build(s, activeobject.Supervisor(strategy))
			require.NoError(t, err)
			child, err := build(s, activeobject.Parent(parent), synchronizer.Callers())
			require.NoError(t, err)
			restart(t, s, child)
			ended, stop := s.Watch(child.PID())
			defer stop()
			require.NoError(t, child.View(background, func() {}))
			s.Stop(parent.PID())
			soon(t, ended)
		})
	}
}

// restart restarts an object, as its supervisor would, and returns when it has a new state: its
// children end after that.
func restart(t *testing.T, s *actor.System, o interface {
	actor.Spawner
	PID() *actor.PID
}) {
	t.Helper()
	child, err := o.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "child")
	require.NoError(t, err)
	ended, stop := s.Watch(child)
	defer stop()
	process, _ := s.Actors().ProcessRegistry.GetLocal(o.PID().Id)
	process.SendSystemMessage(o.PID(), &proto.Restart{})
	soon(t, ended)
}

// What an object held is not known after a restart; the requests that wait go on waiting for
// an object that is as it was made.
func TestARestartedReadyMadeObjectServesThoseThatWait(t *testing.T) {
	supervised := activeobject.Supervisor(proto.NewOneForOneStrategy(10, time.Second, proto.DefaultDecider))
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	t.Run("semaphore", func(t *testing.T) {
		s := newSystem(t)
		o, err := semaphore.New(s, 1, supervised)
		require.NoError(t, err)
		require.NoError(t, o.Acquire(ctx, 1))
		next := o.Acquires().Send(ctx, 1)
		restart(t, s, o.Object())
		_, err = next.Await(ctx)
		require.NoError(t, err)
	})
	t.Run("cyclic barrier", func(t *testing.T) {
		s := newSystem(t)
		o, err := barrier.NewCyclic(s, 2, supervised)
		require.NoError(t, err)
		for range 3 { // so that the counts are not those of a new one
			first := o.Awaits().Send(ctx, nil)
			restart(t, s, o.Object())
			require.NoError(t, o.Await(ctx))
			_, err = first.Await(ctx)
			require.NoError(t, err)
		}
	})
	t.Run("phaser", func(t *testing.T) {
		s := newSystem(t)
		o, err := barrier.NewPhaser(s, 1, supervised)
		require.NoError(t, err)
		for range 3 {
			_, err := o.Arrive()
			require.NoError(t, err)
		}
		end := o.Awaits().Send(ctx, 3)
		restart(t, s, o.Object())
		phase, err := o.ArriveAndAwait(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, phase)
		_, err = end.Await(ctx)
		require.NoError(t, err)
	})
	t.Run("bounded buffer", func(t *testing.T) {
		s := newSystem(t)
		o, err := buffer.NewBounded[string](s, 1, supervised)
		require.NoError(t, err)
		require.NoError(t, o.Put(ctx, "lost"))
		next := o.Puts().Send(ctx, "next")
		restart(t, s, o.Object())
		_, err = next.Await(ctx)
		require.NoError(t, err)
		item, err := o.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, "next", item)
	})
}

func TestAnOrderThatWouldHaveNoEffectIsRefused(t *testing.T) {
	s := newSystem(t)
	for name, build := range map[string]func(...activeobject.Option) error{
		"resource": func(o ...activeobject.Option) error {
			_, err := resource.New(s, resource.FIFO[int](), o...)
			return err
		},
		"read-write lock": func(o ...activeobject.Option) error { _, err := lock.NewReadersFirst(s, o...); return err },
		"cyclic barrier": func(o ...activeobject.Option) error {
			_, err := barrier.NewCyclicAction(s, 2, func(context.Context) error { return nil }, o...)
			return err
		},
	} {
		require.NoError(t, build(), name)
		for _, order := range []activeobject.Option{activeobject.ByArrival(), activeobject.ByLatest(), activeobject.ByRotation()} {
			require.ErrorAs(t, build(order), new(*activeobject.OptionError), name)
		}
	}
}
