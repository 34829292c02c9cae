package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// ask sends a message by protoactor and waits for the answer.
func ask(t *testing.T, s *scene, to *actor.PID, message any) (value any, err error) {
	t.Helper()
	answer, err := s.system.Actors().Root.RequestFuture(to, message, patience).Result()
	require.NoError(t, err)
	require.IsType(t, &actor.Reply{}, answer)
	r := answer.(*actor.Reply)
	return r.Value, r.Err
}

// deadLetters returns a channel of the messages that could not be delivered.
func deadLetters(t *testing.T, s *scene) <-chan any {
	t.Helper()
	c := make(chan any, 100)
	events := s.system.Actors().EventStream
	sub := events.Subscribe(func(event any) {
		if d, ok := event.(*proto.DeadLetterEvent); ok {
			c <- d.Message
		}
	})
	t.Cleanup(func() { events.Unsubscribe(sub) })
	return c
}

// requireDead requires that the message becomes a dead letter.
func requireDead(t *testing.T, dead <-chan any, want any) {
	t.Helper()
	for {
		select {
		case got := <-dead:
			if got == want {
				return
			}
		case <-after():
			t.Fatalf("no dead letter: %v is lost silently", want)
		}
	}
}

// batch is a message of several.
type batch []any

func (b batch) GetMessages() []any { return b }

func TestAMessageIsARequestLikeAnyOther(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 1})
			value, err := ask(t, s, o.PID(), &actor.Invoke{Operation: drain.Name()})
			require.Equal(t, outcome[any]{1, nil}, outcome[any]{value, err})
			value, err = ask(t, s, o.PID(), &actor.Invoke{Operation: "fill", Argument: 1})
			require.Equal(t, outcome[any]{nil, nil}, outcome[any]{value, err})
			value, err = ask(t, s, o.PID(), &actor.Invoke{Operation: drain.Name(), Argument: nil})
			require.Equal(t, outcome[any]{2, nil}, outcome[any]{value, err})
			s.system.Actors().Root.Send(o.PID(), &actor.Invoke{Operation: "fill", Argument: 5})
			s.system.Actors().Root.Send(o.PID(), &actor.Invoke{Operation: drain.Name()})
			eventually(t, "both have run", func() bool { return ts.ran(o) == 3 })
		}
	})
}

func TestAMessageWaitsForItsGuard(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			f := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: drain.Name(), Argument: nil}, patience)
			waiting(t, o, drain, 1)
			value, err := ask(t, s, o.PID(), &actor.Invoke{Operation: "fill", Argument: 1})
			require.Equal(t, outcome[any]{nil, nil}, outcome[any]{value, err})
			answer, err := f.Result()
			require.NoError(t, err)
			require.Equal(t, &actor.Reply{Value: 1}, answer)
		}
	})
}

func TestAMessageFailsLikeACall(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ms.Type, &mine{})
		for _, name := range []string{"blast", "blast-ctx"} {
			value, err := ask(t, s, o.PID(), &actor.Invoke{Operation: name, Argument: "bang"})
			require.Nil(t, value)
			var p *activeobject.PanicError
			require.ErrorAs(t, err, &p)
			require.Equal(t, "bang", p.Value)
		}
		ms.arm.Call(background, o, "bang")
		_, err := ask(t, s, o.PID(), &actor.Invoke{Operation: "enter", Argument: 1})
		var g *activeobject.GuardError
		require.ErrorAs(t, err, &g)
	})
}

func TestAMessageThatIsNoRequestIsAnsweredOrADeadLetter(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{}
		o := newObject(t, s, ts.Type, state, activeobject.Name("tank"))
		dead := deadLetters(t, s)
		for _, c := range []struct {
			message any
			problem string
		}{
			{"fill", "a message of type string is no request: send an *actor.Invoke"},
			{actor.Invoke{Operation: "fill", Argument: 1}, "a message of type actor.Invoke is no request: send an *actor.Invoke"},
			{(*actor.Invoke)(nil), "a message of type *actor.Invoke is no request: send an *actor.Invoke"},
			{&actor.Invoke{Operation: "spill", Argument: 1}, `type "tank" has no operation "spill"`},
			{&actor.Invoke{}, `type "tank" has no operation ""`},
			{&actor.Invoke{Operation: "fill", Argument: "much"}, `operation "fill" does not take an argument of type string`},
			{&actor.Invoke{Operation: "fill", Argument: int64(1)}, `operation "fill" does not take an argument of type int64`},
			{&actor.Invoke{Operation: "fill"}, `operation "fill" does not take an argument of type <nil>`},
			{&actor.Invoke{Operation: "runs", Argument: 1}, `operation "runs" does not take an argument of type int`},
		} {
			value, err := ask(t, s, o.PID(), c.message)
			require.Nil(t, value)
			var m *activeobject.MessageError
			require.ErrorAs(t, err, &m)
			require.Equal(t, activeobject.MessageError{Object: "tank", Problem: c.problem}, *m)
			require.EqualError(t, err, "sluice: tank: "+c.problem)

			s.system.Actors().Root.Send(o.PID(), c.message)
			requireDead(t, dead, c.message)
		}
		s.system.Actors().Root.Send(o.PID(), nil)
		requireDead(t, dead, nil)
		<-o.Stop()
		require.Zero(t, state.level)
	})
}

func TestTheMessagesOfABatchAreRequestsOneByOne(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{}
		o := newObject(t, s, ts.Type, state)
		dead := deadLetters(t, s)
		s.system.Actors().Root.Send(o.PID(), batch{
			&actor.Invoke{Operation: "fill", Argument: 1},
			batch{&actor.Invoke{Operation: "drain"}, "odd"},
			&actor.Invoke{Operation: "fill", Argument: 2},
		})
		requireDead(t, dead, "odd")
		eventually(t, "the drain has run", func() bool { return ts.ran(o) == 1 })
		<-o.Stop()
		require.Equal(t, 2, state.level)
	})
}

func TestAnInvokeThatWaitsWhenItsObjectStopsIsNotLostSilently(t *testing.T) {
	ts := newTanks()
	for name, stop := range map[string]func(s *scene, o *activeobject.Object[dam]){
		"stop":       func(_ *scene, o *activeobject.Object[dam]) { o.Stop() },
		"actor stop": func(s *scene, o *activeobject.Object[dam]) { s.system.Actors().Root.Stop(o.PID()) },
		"poison":     func(s *scene, o *activeobject.Object[dam]) { s.system.Actors().Root.Poison(o.PID()) },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := newObject(t, s, ts.Type, &dam{})
				pid := o.PID()
				dead := deadLetters(t, s)
				asked := s.system.Actors().Root.RequestFuture(pid, &actor.Invoke{Operation: "drain"}, patience)
				told := &actor.Invoke{Operation: "drain"}
				s.system.Actors().Root.Send(pid, told)
				waiting(t, o, ts.drain, 2)
				stop(s, o)
				answer, err := asked.Result()
				require.NoError(t, err)
				requireStopped(t, o.Name(), answer.(*actor.Reply).Err)
				requireDead(t, dead, told)
			})
		})
	}
}

func TestAnInvokeOfAnObjectThatHasStoppedIsNotLostSilently(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 20 {
			o := newObject(t, s, ts.Type, &dam{level: 1})
			pid := o.PID()
			dead := deadLetters(t, s)
			// While a body runs the actor is still there, and takes messages.
			release := braked(t, s, o, ts.hold)
			o.Stop()
			told := &actor.Invoke{Operation: "drain"}
			s.system.Actors().Root.Send(pid, told)
			requireDead(t, dead, told)
			_, err := ask(t, s, pid, &actor.Invoke{Operation: "drain"})
			requireStopped(t, o.Name(), err)
			release()
			late := &actor.Invoke{Operation: "drain"}
			s.system.Actors().Root.Send(pid, late)
			requireDead(t, dead, late)
		}
	})
}

// watch spawns an actor that watches, and returns a channel of what it hears.
func watch(t *testing.T, s *scene, pid *actor.PID) <-chan *actor.PID {
	t.Helper()
	watching, heard := make(chan struct{}), make(chan *actor.PID, 1)
	root := s.system.Actors().Root
	watcher := root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
		switch m := ctx.Message().(type) {
		case *proto.Started:
			ctx.Watch(pid)
			close(watching)
		case *proto.Terminated:
			heard <- m.Who
		}
	}))
	soon(t, s.system, watching)
	t.Cleanup(func() { _ = root.StopFuture(watcher).Wait() })
	return heard
}

func TestAWatcherHearsOfTheEndAfterTheLastBody(t *testing.T) {
	ts := newTanks()
	for name, stop := range map[string]func(s *scene, o *activeobject.Object[dam], pid *actor.PID){
		"object": func(_ *scene, o *activeobject.Object[dam], _ *actor.PID) { o.Stop() },
		"stop":   func(s *scene, _ *activeobject.Object[dam], pid *actor.PID) { s.system.Actors().Root.Stop(pid) },
		"poison": func(s *scene, _ *activeobject.Object[dam], pid *actor.PID) { s.system.Actors().Root.Poison(pid) },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := newObject(t, s, ts.Type, &dam{})
				pid := o.PID()
				heard := watch(t, s, pid)
				waits := calling(background, o, ts.drain, nil)
				waiting(t, o, ts.drain, 1)
				b := newBrake()
				held := calling(background, o, ts.hold, b)
				soon(t, s.system, b.entered)
				stop(s, o, pid)
				if name != "poison" { // which serves what it can before it fails the rest
					requireStopped(t, o.Name(), soon(t, s.system, waits).err)
				}
				require.Empty(t, heard, "a body runs")
				close(b.let)
				require.NoError(t, soon(t, s.system, held).err)
				require.Equal(t, pid.Id, soon(t, s.system, heard).Id)
				if name == "poison" {
					requireStopped(t, o.Name(), soon(t, s.system, waits).err)
				}
				// A watcher that comes too late hears at once.
				require.Equal(t, pid.Id, soon(t, s.system, watch(t, s, pid)).Id)
			})
		})
	}
}

func TestPoisonServesWhatCanStartAndFailsTheRest(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			heard := watch(t, s, o.PID())
			inside := calling(background, o, drain, nil)
			waiting(t, o, drain, 1)
			release := braked(t, s, o, ts.hold)
			var outside []<-chan outcome[int]
			for i := range 3 {
				outside = append(outside, calling(background, o, drain, nil))
				waiting(t, o, drain, i+2)
			}
			filled := calling(background, o, ts.fill, 2)
			waiting(t, o, ts.fill, 1)
			s.system.Actors().Root.Poison(o.PID())
			eventually(t, "it takes no more", func() bool { return errors.Is(ts.fill.Tell(background, o, 0), activeobject.ErrStopped) })
			require.Equal(t, 4, drain.Waiting(o), "those that wait go on waiting")
			release()
			require.NoError(t, soon(t, s.system, filled).err)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, inside))
			require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, outside[0]))
			for _, c := range outside[1:] {
				requireStopped(t, o.Name(), soon(t, s.system, c).err)
			}
			soon(t, s.system, heard)
		}
	})
}

func TestPIDIsAlwaysTheSameAndMadeOnce(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		var pids [8]*actor.PID
		var wg sync.WaitGroup
		for i := range pids {
			wg.Go(func() { pids[i] = o.PID() })
		}
		wg.Wait()
		for _, pid := range pids {
			require.Same(t, pids[0], pid)
		}
	})
}

func TestThePIDOfAnObjectThatHasStoppedLeadsNowhere(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for i := range 50 {
			for _, options := range [][]activeobject.Option{nil, {activeobject.Name(fmt.Sprint("tank", i))}} {
				o := newObject(t, s, ts.Type, &dam{}, options...)
				if i%2 == 0 {
					o.PID()
				}
				o.Stop()
				var pid *actor.PID
				require.NotPanics(t, func() { pid = o.PID() })
				answer, err := s.system.Actors().Root.RequestFuture(pid, &actor.Invoke{Operation: "runs"}, patience).Result()
				if err == nil { // the actor is still there, though the object is not
					requireStopped(t, o.Name(), answer.(*actor.Reply).Err)
				} else {
					require.ErrorIs(t, err, proto.ErrDeadLetter)
				}
			}
		}
	})
}

func TestANameIsTakenOnce(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		first := newObject(t, s, ts.Type, &dam{level: 1}, activeobject.Name("tank"))
		require.Equal(t, "tank", first.Name())
		require.Equal(t, "tank", first.PID().Id)
		second, err := activeobject.New(s.system, ts.Type, &dam{}, append([]activeobject.Option{activeobject.Name("tank")}, s.options...)...)
		require.Nil(t, second)
		var n *actor.NameError
		require.ErrorAs(t, err, &n)
		require.Equal(t, "tank", n.Name)
		require.ErrorIs(t, err, proto.ErrNameExists)
		require.EqualError(t, err, `sluice: name "tank": spawn: name exists`)
		value, err := ask(t, s, first.PID(), &actor.Invoke{Operation: "drain"})
		require.NoError(t, err, "the first is not touched")
		require.Equal(t, 1, value)

		// When the object has ended and its watchers know, its name is free.
		heard := watch(t, s, first.PID())
		first.Stop()
		soon(t, s.system, heard)
		newObject(t, s, ts.Type, &dam{}, activeobject.Name("tank"))
	})
}

func TestASenderThatKnowsTheNameMaySendWhileTheObjectIsMade(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		root := s.system.Actors().Root
		const rounds = 200
		var name atomic.Value
		name.Store("tank-0")
		ctx, cancel := context.WithCancel(background)
		var senders sync.WaitGroup
		for range 2 {
			senders.Go(func() {
				for ctx.Err() == nil {
					pid := s.system.Actors().NewLocalPID(name.Load().(string))
					root.Send(pid, &actor.Invoke{Operation: "fill", Argument: 1})
					answer, err := root.RequestFuture(pid, &actor.Invoke{Operation: "runs"}, patience).Result()
					if err == nil {
						if r := answer.(*actor.Reply); r.Err != nil && !errors.Is(r.Err, activeobject.ErrStopped) {
							t.Error(r.Err)
						}
					} else if !errors.Is(err, proto.ErrDeadLetter) {
						t.Error(err)
					}
				}
			})
		}
		for i := range rounds {
			n := fmt.Sprint("tank-", i)
			name.Store(n)
			o := newObject(t, s, ts.Type, &dam{}, activeobject.Name(n))
			_, err := ask(t, s, o.PID(), &actor.Invoke{Operation: "runs"})
			require.NoError(t, err)
			heard := watch(t, s, o.PID())
			o.Stop()
			soon(t, s.system, heard)
		}
		cancel()
		senders.Wait()
	})
}

func TestObjectsOfAForeignActorSystem(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		foreign := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return quiet }))
		system := actor.NewSystem(actor.Actors(foreign))
		o, err := activeobject.New(system, ts.Type, &dam{level: 1}, append([]activeobject.Option{activeobject.Name("tank")}, s.options...)...)
		require.NoError(t, err)
		require.Same(t, foreign, system.Actors())
		heard := watch(t, &scene{system: system}, o.PID())
		answer, err := foreign.Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "drain"}, patience).Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 1}, answer)
		require.NoError(t, system.Close(background))
		require.Equal(t, "tank", soon(t, system, heard).Id)
		require.False(t, foreign.IsStopped(), "it goes on")
		foreign.Shutdown()
	})
}

func TestAMessageThatHasTimedOutAtItsSenderTakesNothing(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		_, err := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "drain"}, time.Millisecond).Result()
		require.ErrorIs(t, err, proto.ErrTimeout)
		ts.fill.Call(background, o, 1)
		value, err := ask(t, s, o.PID(), &actor.Invoke{Operation: "drain"})
		require.Equal(t, outcome[any]{1, nil}, outcome[any]{value, err})
		require.Equal(t, 1, ts.ran(o), "the first has not run")
	})
}
