package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// worker returns the address of one of the object's worker actors.
func worker[T any](o *activeobject.Object[T], i int) *actor.PID {
	return proto.NewPID(o.PID().Address, fmt.Sprintf("%s/worker-%d", o.PID().Id, i))
}

// lives reports whether there is an actor at the address.
func lives(s *actor.System, pid *actor.PID) bool {
	_, ok := s.Actors().ProcessRegistry.GetLocal(pid.Id)
	return ok
}

// workers returns the numbers of the object's worker actors, up to one that there never was.
func workers[T any](s *actor.System, o *activeobject.Object[T], below int) (all []int) {
	for i := 1; i < below; i++ {
		if lives(s, worker(o, i)) {
			all = append(all, i)
		}
	}
	return all
}

// meet has n bodies meet, so that they run at once, and lets no further one start.
func meet(t testing.TB, rs rooms, o *activeobject.Object[room], n int) {
	t.Helper()
	here, leave := make(chan None), make(chan None)
	var all []<-chan error
	for range n {
		all = append(all, call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil }))
	}
	for range n {
		soon(t, here)
	}
	_, err := rs.b.Try(background, o, func(context.Context) error { return nil })
	require.ErrorIs(t, err, activeobject.ErrRefused)
	close(leave)
	for _, c := range all {
		require.NoError(t, soon(t, c))
	}
}

func restarting() activeobject.Option {
	return activeobject.Supervisor(proto.NewOneForOneStrategy(1<<30, time.Hour, func(any) proto.Directive { return proto.RestartDirective }))
}

// However many requests come, and wait for each other, there are as many workers as asked for.
func TestWorkersAreSoManyChildrenOfTheObject(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(3))
	require.Empty(t, workers(s, o, 10), "they are made when they are needed")
	var all sync.WaitGroup
	var ran atomic.Int32
	for c := range 8 {
		all.Go(func() {
			for k := range 200 {
				if (c+k)%5 == 0 { // conflicts with all
					_, err := rs.set.Call(background, o, true)
					require.NoError(t, err)
					continue
				}
				_, err := rs.a.Call(background, o, func(context.Context) error {
					if ran.Add(1)%3 == 0 {
						runtime.Gosched()
					}
					return nil
				})
				require.NoError(t, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 8*160, ran.Load())
	meet(t, rs, o, 3)
	require.Equal(t, []int{1, 2, 3}, workers(s, o, 10))
	// Nor has there been another one meanwhile: the next number is that of the next one made.
	s.Stop(worker(o, 2))
	until(t, "stopped", func() bool { return !lives(s, worker(o, 2)) })
	meet(t, rs, o, 3)
	require.Equal(t, []int{1, 3, 4}, workers(s, o, 10))
}

// However a worker is stopped, and whenever: what it runs returns, and another one replaces it.
func TestAWorkerThatIsStoppedIsReplaced(t *testing.T) {
	for name, stop := range map[string]func(s *actor.System, pid *actor.PID){"stop": (*actor.System).Stop, "poison": (*actor.System).Poison} {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(1))
			here, leave := make(chan None), make(chan None)
			one := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
			soon(t, here)
			var running atomic.Bool
			running.Store(true)
			heard := make(chan bool, 1)
			s.AfterEnd(worker(o, 1), func() { heard <- running.Load() })
			stop(s, worker(o, 1))
			next := call(rs.b, o, func(context.Context) error { return nil })
			objecttest.Waiting(t, o, rs.b, 1) // its turn is still to come: there is one thread
			running.Store(false)
			close(leave)
			require.NoError(t, soon(t, one))
			require.NoError(t, soon(t, next))
			require.False(t, soon(t, heard), "it ends after its body")
			require.Equal(t, []int{2}, workers(s, o, 10))
			stop(s, worker(o, 2)) // now it has nothing to do
			until(t, "ended", func() bool { return !lives(s, worker(o, 2)) })
			meet(t, rs, o, 1)
			require.Equal(t, []int{3}, workers(s, o, 10))
		})
	}
}

func TestABodyThatPanicsOrEndsItsGoroutineCostsNoWorker(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(2))
	for range 5 {
		_, err := rs.a.Call(background, o, func(context.Context) error { panic("cause") })
		require.ErrorAs(t, err, new(*activeobject.PanicError))
		_, err = rs.a.Call(background, o, func(context.Context) error { runtime.Goexit(); return nil })
		require.ErrorAs(t, err, new(*activeobject.ExitError))
	}
	meet(t, rs, o, 2)
	require.Equal(t, []int{1, 2}, workers(s, o, 10))
}

// Bodies that wait for each other's objects, and for their own, take no turn; the workers that
// were made for that end.
func TestAWorkerWhoseBodyWaitsIsReplacedForThatTime(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(1))
	var down func(n int) func(context.Context) error
	down = func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			if n == 0 {
				require.Len(t, workers(s, o, 20), 6)
				return nil
			}
			_, err := rs.a.Send(background, o, down(n-1)).Await(ctx)
			return err
		}
	}
	require.NoError(t, soon(t, call(rs.a, o, down(5))))
	until(t, "there is one again", func() bool { return len(workers(s, o, 20)) == 1 })
	meet(t, rs, o, 1)
}

// Whatever ends an object ends its workers, after the last body, and before its watchers
// hear of it.
func TestWorkersEndWithTheObject(t *testing.T) {
	for name, end := range map[string]func(s *actor.System, o *activeobject.Object[room]){
		"stop":      func(_ *actor.System, o *activeobject.Object[room]) { o.Stop() },
		"close":     func(_ *actor.System, o *activeobject.Object[room]) { o.Close(background) },
		"actor":     func(s *actor.System, o *activeobject.Object[room]) { s.Stop(o.PID()) },
		"poison":    func(s *actor.System, o *activeobject.Object[room]) { s.Poison(o.PID()) },
		"system":    func(s *actor.System, _ *activeobject.Object[room]) { s.Close(background) },
		"shut down": func(s *actor.System, _ *activeobject.Object[room]) { s.Shutdown(background) },
	} {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(2))
			pid := o.PID()
			here, leave := make(chan None), make(chan None)
			stay := func(context.Context) error { here <- none; <-leave; return nil }
			one, other := call(rs.a, o, stay), call(rs.a, o, stay)
			soon(t, here)
			soon(t, here)
			var running atomic.Bool
			running.Store(true)
			heard := make(chan string, 1)
			// Protoactor tells watchers when the children have ended.
			s.AfterEnd(pid, func() {
				heard <- fmt.Sprint(running.Load())
			})
			ended := make(chan None)
			go func() { end(s, o); close(ended) }()
			until(t, "it takes no more", func() bool {
				_, err := rs.read.Try(background, o, func(context.Context) error { return nil })
				return errors.Is(err, activeobject.ErrStopped)
			})
			require.Len(t, workers(s, o, 10), 2)
			if name != "system" && name != "shut down" { // then no supervisor is told any more
				running.Store(false)
			}
			close(leave)
			require.NoError(t, soon(t, one))
			require.NoError(t, soon(t, other))
			soon(t, ended)
			if got := soon(t, heard); name != "system" && name != "shut down" {
				require.Equal(t, "false", got)
			}
			until(t, "no worker is left", func() bool { return !lives(s, pid) && len(workers(s, o, 10)) == 0 })
		})
	}
}

// A restart ends the workers, and the new state has new ones; requests that wait are kept.
func TestARestartReplacesTheWorkers(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o, err := synchronizer.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil },
		synchronizer.Actors(2), synchronizer.Conflicts(rs.free()), restarting())
	require.NoError(t, err)
	meet(t, rs, o, 2)
	waits := call(rs.pass, o, none)
	objecttest.Waiting(t, o, rs.pass, 1)
	require.ErrorAs(t, soon(t, call(rs.b, o, func(context.Context) error { panic("cause") })), new(*activeobject.PanicError))
	_, err = rs.set.Call(background, o, true)
	require.NoError(t, err)
	require.NoError(t, soon(t, waits))
	meet(t, rs, o, 2)
	require.Equal(t, []int{3, 4}, workers(s, o, 10))
}

// A worker takes nothing but from its object; and what is called like one is left alone.
func TestAWorkerTakesNoMessages(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o := newRoom(t, s, rs, rs.free(), synchronizer.Actors(1))
	_, err := o.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "worker-1")
	require.NoError(t, err)
	meet(t, rs, o, 1)
	require.Equal(t, []int{1, 2}, workers(s, o, 10))
	reply, err := s.Actors().Root.RequestFuture(worker(o, 2), &actor.Invoke{Operation: "a"}, patience).Result()
	require.NoError(t, err)
	require.ErrorContains(t, reply.(*actor.Reply).Err, "takes no messages")
	s.Tell(worker(o, 2), "nonsense")
	meet(t, rs, o, 1)
}

func TestWorkersAreRefusedWhereTheyMakeNoSense(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	_, err := synchronizer.New(s, rs.Type, &room{}, synchronizer.Actors(0))
	require.EqualError(t, err, "sluice: new room: Actors is less than 1")
	_, err = synchronizer.New(s, rs.Type, &room{}, synchronizer.Actors(1), synchronizer.Monitor())
	require.ErrorAs(t, err, new(*activeobject.OptionError))
	require.ErrorContains(t, err, "sluice: new room: Monitor gives requests their threads when they arrive")
	for _, other := range []activeobject.Option{synchronizer.Callers(), synchronizer.Goroutines(), synchronizer.Workers(newPool(t, s, 1))} {
		_, err = synchronizer.New(s, rs.Type, &room{}, synchronizer.Actors(1), synchronizer.Monitor(), other)
		require.NoError(t, err)
	}
	typ := activeobject.NewType[room]("default")
	visiting := activeobject.ProcedureCtx(typ, "a", visit)
	typ.Default(synchronizer.Actors(2))
	for range 2 { // each has its own
		o, err := synchronizer.New(s, typ, &room{})
		require.NoError(t, err)
		require.NoError(t, soon(t, call(visiting, o, func(context.Context) error { return nil })))
		require.Equal(t, []int{1}, workers(s, o, 10))
	}
	plain, err := activeobject.New(s, typ, &room{})
	require.NoError(t, err)
	require.NoError(t, soon(t, call(visiting, plain, func(context.Context) error { return nil })))
	require.Empty(t, workers(s, plain, 10))
}

// Workers are stopped and poisoned all the time, from outside, while bodies
// panic, end their goroutines, wait for each other, and their objects are restarted: every
// request ends once, and no worker is lost.
func TestNoRequestIsLostWhenWorkersAreStopped(t *testing.T) {
	for seed := range uint64(4) {
		s, rs := newSystem(t), newRooms()
		const n, callers, rounds = 2, 6, 80
		var all [2]*activeobject.Object[room]
		for i := range all {
			var err error
			all[i], err = synchronizer.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil },
				synchronizer.Actors(n), synchronizer.Conflicts(rs.free()), restarting())
			require.NoError(t, err)
			all[i].PID()
		}
		var ran, asked atomic.Int64
		stop := make(chan None)
		var killers sync.WaitGroup
		for i, o := range all {
			killers.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(100+i)))
				for below := 10; ; {
					select {
					case <-stop:
						return
					default:
					}
					pid := worker(o, 1+r.IntN(below))
					switch {
					case !lives(s, pid):
						if r.IntN(below) == 0 && below < 2000 {
							below += 10
						}
					case r.IntN(2) == 0:
						s.Stop(pid)
					default:
						s.Poison(pid)
					}
					runtime.Gosched()
				}
			})
		}
		var ends [5]atomic.Int64
		var users sync.WaitGroup
		for c := range uint64(callers) {
			users.Go(func() {
				r := rand.New(rand.NewPCG(seed, c))
				for range rounds {
					o, other := all[r.IntN(2)], all[r.IntN(2)]
					kind := r.IntN(12)
					ctx, cancel := context.WithCancel(background)
					body := func(ctx context.Context) error {
						ran.Add(1)
						switch kind {
						case 0:
							panic("cause")
						case 1:
							runtime.Goexit()
						case 2, 3, 4:
							asked.Add(1)
							_, err := rs.b.Send(background, other, func(context.Context) error { ran.Add(1); return nil }).Await(ctx)
							return err
						}
						runtime.Gosched()
						return nil
					}
					asked.Add(1)
					var err error
					switch kind {
					case 5:
						go cancel()
						_, err = rs.a.Call(ctx, o, body)
					case 6:
						_, err = rs.a.Send(background, o, body).Await(background)
					default:
						_, err = rs.a.Call(background, o, body)
					}
					cancel()
					switch {
					case err == nil:
						ends[0].Add(1)
					case errors.As(err, new(*activeobject.PanicError)):
						ends[1].Add(1)
					case errors.As(err, new(*activeobject.ExitError)):
						ends[2].Add(1)
					case errors.Is(err, context.Canceled):
						ends[3].Add(1)
						ran.Add(1) // it has not
					case errors.As(err, new(*activeobject.DeadlockError)): // the restart of an object, by which a body waits
						ends[4].Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		finish(t, &users, all[:])
		close(stop)
		killers.Wait()
		sum := int64(0)
		for i := range ends {
			sum += ends[i].Load()
		}
		require.EqualValues(t, callers*rounds, sum, "each has one end")
		for _, o := range all {
			objecttest.Idle(t, o)
		}
		require.Equal(t, asked.Load(), ran.Load(), "each has run once")
		for _, o := range all {
			meet(t, rs, o, n)
			until(t, "no more workers than asked for", func() bool { return len(workers(s, o, 3000)) <= n })
		}
	}
}

// A child may be stopped before its parent knows of it.
func TestAChildThatEndsWhileItIsMadeIsNotWaitedFor(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o, err := activeobject.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil }, restarting())
	require.NoError(t, err)
	for i := range 20 {
		stillborn := proto.PropsFromFunc(func(proto.Context) {}, proto.WithSpawnFunc(
			func(actors *proto.ActorSystem, id string, props *proto.Props, parent proto.SpawnerContext) (*actor.PID, error) {
				pid, err := proto.DefaultSpawner(actors, id, props, parent)
				s.Stop(pid)
				until(t, "it has ended", func() bool { return !lives(s, pid) })
				for range i {
					runtime.Gosched()
				}
				return pid, err
			}))
		_, err := o.SpawnNamed(stillborn, fmt.Sprint("child-", i))
		require.NoError(t, err)
		require.ErrorAs(t, soon(t, call(rs.a, o, func(context.Context) error { panic("cause") })), new(*activeobject.PanicError))
		require.NoError(t, soon(t, call(rs.set, o, true)), "it is restarted")
	}
}
