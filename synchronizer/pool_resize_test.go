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

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// assignments are the options of objects on a pool: threads on start, or on arrival.
var assignments = map[string][]activeobject.Option{"on start": nil, "on arrival": {synchronizer.Monitor()}}

// Requests of several objects wait for a thread, and get those that are added at once. When threads are taken
// away, bodies go on to their ends, and what waits begins when there is a thread for it again.
func TestAPoolIsResizedWhileItsThreadsRun(t *testing.T) {
	for name, model := range assignments {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			pool := newPool(t, s, 1)
			options := append([]activeobject.Option{synchronizer.Workers(pool)}, model...)
			var rooms [3]*activeobject.Object[room]
			for i := range rooms {
				rooms[i] = newRoom(t, s, rs, rs.free(), options...)
			}
			const n = 9
			here, leave := make(chan None, n), make(chan None)
			body := func(context.Context) error { here <- none; <-leave; return nil }
			var all []<-chan error
			for i := range n {
				all = append(all, call(rs.a, rooms[i%3], body))
			}
			waiting := func() (sum int) {
				for _, o := range rooms {
					sum += rs.a.Waiting(o)
				}
				return sum
			}
			until(t, "they do not wait", func() bool { return waiting() == n-1 })
			soon(t, here)
			require.Empty(t, here)

			require.NoError(t, pool.Resize(5))
			require.Equal(t, 5, pool.Size())
			for range 4 {
				soon(t, here)
			}
			until(t, "they wait", func() bool { return waiting() == n-5 })
			require.Equal(t, 5, pool.Busy())
			require.Empty(t, here)

			require.NoError(t, pool.Resize(2))
			require.Equal(t, 5, pool.Busy())
			for range 3 {
				leave <- none
			}
			until(t, "threads do not go", func() bool { return pool.Busy() == 2 })
			require.Empty(t, here)
			require.Equal(t, n-5, waiting())
			for range n - 5 {
				leave <- none
				soon(t, here)
				require.Equal(t, 2, pool.Busy())
			}
			close(leave)
			for _, e := range all {
				require.NoError(t, soon(t, e))
			}
			until(t, "idle", func() bool { return pool.Busy() == 0 })

			// No pool has no threads.
			for _, n := range []int{0, -3} {
				var wrong *activeobject.ArgumentError
				require.ErrorAs(t, pool.Resize(n), &wrong)
				require.Equal(t, "n", wrong.Argument)
				require.ErrorContains(t, wrong, fmt.Sprintf("Pool.Resize: n is %d", n))
				require.Equal(t, 2, pool.Size())
			}
			require.NoError(t, soon(t, call(rs.b, rooms[0], func(context.Context) error { return nil })))
		})
	}
}

// The same for active objects whose turns take the pool's threads.
func TestAPoolOfActiveObjectsIsResized(t *testing.T) {
	type thing struct{}
	s := newSystem(t)
	pool := newPool(t, s, 1)
	typ := activeobject.NewType[thing]("thing")
	here, leave := make(chan None, 4), make(chan None)
	work := activeobject.Procedure(typ, "work", activeobject.Plain(func(*thing) { here <- none; <-leave }))
	var futures []actor.Future[activeobject.None]
	for range 4 {
		o, err := activeobject.New(s, typ, &thing{}, activeobject.Dispatcher(pool))
		require.NoError(t, err)
		futures = append(futures, work.Send(background, o, nil))
	}
	soon(t, here)
	require.Empty(t, here)
	require.NoError(t, pool.Resize(3))
	soon(t, here)
	soon(t, here)
	require.Equal(t, 3, pool.Busy())
	require.NoError(t, pool.Resize(1))
	close(leave)
	for _, f := range futures {
		_, err := f.Await(background)
		require.NoError(t, err)
	}
	until(t, "idle", func() bool { return pool.Busy() == 0 })
}

// A monitor whose threads are all held by requests that wait for a guard stands still, until there is
// one more thread, for the request that opens the guard.
func TestAMonitorThatStandsStillGoesOnWithOneMoreThread(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	pool := newPool(t, s, 2)
	o := newRoom(t, s, rs, rs.free(), synchronizer.Workers(pool), synchronizer.Monitor())
	var waits []<-chan error
	for i := range 2 {
		waits = append(waits, call(rs.pass, o, none))
		objecttest.Waiting(t, o, rs.pass, i+1)
	}
	opens := call(rs.set, o, true)
	objecttest.Waiting(t, o, rs.set, 1)
	require.ErrorContains(t, errors.New(o.Explain().String()), "every thread of the pool (2) is held by a request that waits")
	require.NoError(t, pool.Resize(1)) // they keep their threads
	require.Equal(t, 2, pool.Busy())
	require.NoError(t, pool.Resize(3))
	require.NoError(t, soon(t, opens))
	for _, e := range waits {
		require.NoError(t, soon(t, e))
	}
	until(t, "idle", func() bool { return pool.Busy() == 0 })
}

// A body may resize the pool that it runs on, and a guard that it is asked by.
func TestAPoolIsResizedFromInside(t *testing.T) {
	for name, model := range assignments {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			pool := newPool(t, s, 1)
			o := newRoom(t, s, rs, rs.free(), append([]activeobject.Option{synchronizer.Workers(pool)}, model...)...)
			here, leave := make(chan None), make(chan None)
			first := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return pool.Resize(2) })
			soon(t, here)
			second := call(rs.b, o, func(context.Context) error { here <- none; <-leave; return nil })
			third := call(rs.c, o, func(context.Context) error { here <- none; <-leave; return nil })
			objecttest.Waiting(t, o, rs.c, 1)
			leave <- none
			soon(t, here)
			soon(t, here)
			close(leave)
			for _, e := range []<-chan error{first, second, third} {
				require.NoError(t, soon(t, e))
			}

			typ := activeobject.NewType[room]("room")
			grows := activeobject.Entry(typ, "grows", activeobject.Plain(func(*room) {})).When("open", func(r *room) bool {
				require.NoError(t, pool.Resize(pool.Size()+1))
				return r.open
			})
			opens := activeobject.Procedure(typ, "opens", activeobject.Plain(func(r *room) { r.open = true }))
			require.NoError(t, pool.Resize(2))
			g, err := synchronizer.New(s, typ, &room{}, append([]activeobject.Option{synchronizer.Workers(pool)}, model...)...)
			require.NoError(t, err)
			waits := call(grows, g, none)
			objecttest.Waiting(t, g, grows, 1)
			require.NoError(t, soon(t, call(opens, g, none)))
			require.NoError(t, soon(t, waits))
			until(t, "idle", func() bool { return pool.Busy() == 0 })
		})
	}
}

// A pool runs as many requests as a naive model says: those that have come first, up to its size, and after it
// has been made smaller no more until enough have ended.
func TestAResizedPoolRunsWhatANaiveModelRuns(t *testing.T) {
	for name, model := range assignments {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			rapid.Check(t, func(rt *rapid.T) {
				size := rapid.IntRange(1, 4).Draw(rt, "size")
				pool, err := synchronizer.NewPool(s, size)
				require.NoError(rt, err)
				o, err := synchronizer.New(s, rs.Type, &room{}, append([]activeobject.Option{synchronizer.Workers(pool), synchronizer.Conflicts(rs.free())}, model...)...)
				require.NoError(rt, err)
				type request struct {
					begun, leave chan None
					ended        <-chan error
				}
				var running, waiting []*request // as the model has it
				begin := func() {
					for len(running) < size && len(waiting) > 0 {
						running, waiting = append(running, waiting[0]), waiting[1:]
					}
					for _, r := range running {
						soon(t, r.begun) // closed when its body has begun
					}
					for _, r := range waiting {
						select {
						case <-r.begun:
							t.Fatal("a request has begun without a thread")
						default:
						}
					}
					until(t, "threads are lost", func() bool { return pool.Busy() == len(running) })
					require.Equal(rt, len(waiting), rs.a.Waiting(o))
				}
				end := func(i int) {
					close(running[i].leave)
					require.NoError(rt, soon(t, running[i].ended))
					running = append(running[:i:i], running[i+1:]...)
					begin()
				}
				rt.Repeat(map[string]func(*rapid.T){
					"request": func(*rapid.T) {
						r := &request{begun: make(chan None), leave: make(chan None)}
						before := o.Explain()
						r.ended = call(rs.a, o, func(context.Context) error { close(r.begun); <-r.leave; return nil })
						until(t, "it does not arrive", func() bool {
							now := o.Explain()
							return len(now.Waiting)+len(now.Running) > len(before.Waiting)+len(before.Running)
						})
						waiting = append(waiting, r)
						begin()
					},
					"end": func(rt *rapid.T) {
						if len(running) > 0 {
							end(rapid.IntRange(0, len(running)-1).Draw(rt, "request"))
						}
					},
					"resize": func(rt *rapid.T) {
						size = rapid.IntRange(1, 4).Draw(rt, "size")
						require.NoError(rt, pool.Resize(size))
						begin()
					},
				})
				for len(running) > 0 {
					end(0)
				}
				require.Empty(rt, waiting)
				o.Stop()
				soon(t, o.Retire())
			})
		})
	}
}

// Several objects of both models share a pool that is resized all the time. Every request is accounted for, and no
// thread is lost.
func TestAPoolThatIsResizedUnderLoadLosesNothing(t *testing.T) {
	for name, model := range assignments {
		t.Run(name, func(t *testing.T) {
			s, rs := newSystem(t), newRooms()
			pool := newPool(t, s, 1)
			options := append([]activeobject.Option{synchronizer.Workers(pool)}, model...)
			var rooms [3]*activeobject.Object[room]
			for i := range rooms {
				var err error
				rooms[i], err = synchronizer.New(s, rs.Type, &room{}, append(options, synchronizer.Conflicts(rs.free().Conflict(rs.b, rs.b)))...)
				require.NoError(t, err)
			}
			const callers, rounds = 8, 150
			var users sync.WaitGroup
			var ended atomic.Int64
			for u := range uint64(callers) {
				users.Go(func() {
					r := rand.New(rand.NewPCG(7, u))
					nothing := func(context.Context) error { runtime.Gosched(); return nil }
					for range rounds {
						o, err := rooms[r.IntN(3)], error(nil)
						switch r.IntN(8) {
						case 0:
							_, err = rs.a.Send(background, o, nothing).Await(background)
						case 1:
							_, err = rs.a.Try(background, o, nothing)
						case 2:
							_, err = rs.a.Call(background, o, func(ctx context.Context) error {
								_, err := rs.b.Call(ctx, rooms[(u+1)%3], nothing)
								return err
							})
						case 3:
							_, err = rs.a.Call(background, o, func(context.Context) error { panic("cause") })
						case 4:
							_, err = rs.c.Call(background, o, func(context.Context) error { return pool.Resize(1 + r.IntN(6)) })
						default:
							_, err = rs.b.Call(background, o, nothing)
						}
						if err != nil && !errors.Is(err, activeobject.ErrRefused) && !errors.As(err, new(*activeobject.PanicError)) && !errors.As(err, new(*activeobject.DeadlockError)) {
							t.Error(err)
						}
						ended.Add(1)
						if u == 0 {
							require.NoError(t, pool.Resize(1+r.IntN(6)))
						}
					}
				})
			}
			done := make(chan None)
			go func() { users.Wait(); close(done) }()
			soon(t, done)
			require.EqualValues(t, callers*rounds, ended.Load())
			for _, o := range rooms {
				objecttest.Idle(t, o)
			}
			until(t, "a thread is lost", func() bool { return pool.Busy() == 0 && standing() == 0 })
		})
	}
}
