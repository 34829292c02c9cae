package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// journal is what interceptors saw.
type journal struct {
	mu    sync.Mutex
	steps []string
}

func (tr *journal) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.steps = append(tr.steps, fmt.Sprintf(format, args...))
}

func (tr *journal) read() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]string{}, tr.steps...)
}

func (tr *journal) named(name string) activeobject.Interceptor {
	type key struct{ string }
	return activeobject.Interceptor{
		Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
			tr.add("queue %s", name)
			return context.WithValue(ctx, key{name}, r.Argument), nil
		},
		Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
			tr.add("run %s %v", name, ctx.Value(key{name}) == r.Argument)
			defer tr.add("ran %s", name)
			return body()
		},
		Done: func(ctx context.Context, r activeobject.Intercepted, err error) {
			tr.add("done %s %v %v", name, ctx.Value(key{name}) == r.Argument, err)
		},
	}
}

func TestInterceptorsAreCalledInOrderWithTheContextOfTheRequest(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		tr := &journal{}
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Interceptors(tr.named("a")), activeobject.Interceptors(tr.named("b"), activeobject.Interceptor{}))
		want := []string{"queue a", "queue b", "run a true", "run b true", "ran b", "ran a", "done b true <nil>", "done a true <nil>"}
		_, err := ts.fill.Call(background, o, 1)
		require.NoError(t, err)
		require.Equal(t, want, tr.read())
		for _, send := range []func(){
			func() { ts.fill.Try(background, o, 1) },
			func() { ts.fill.Send(background, o, 1) },
			func() { ts.fill.Begin(background, o, 1) },
			func() { ts.fill.Tell(background, o, 1) },
			func() { s.system.Actors().Root.Send(o.PID(), &actor.Invoke{Operation: "fill", Argument: 1}) },
		} {
			tr.steps = nil
			send()
			eventually(t, "it is done", func() bool { return len(tr.read()) >= len(want) })
			require.Equal(t, want, tr.read())
		}
	})
}

func TestTheContextFollowsARequestThatWaits(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		tr := &journal{}
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Interceptors(tr.named("a")))
		drained := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		ts.fill.Call(background, o, 1)
		require.NoError(t, soon(t, s.system, drained).err)
		require.NotContains(t, fmt.Sprint(tr.read()), "false")
	})
}

func TestARequestThatQueueRefusesNeverArrives(t *testing.T) {
	ts := newTanks()
	denied := errors.New("denied")
	everywhere(t, func(t *testing.T, s *scene) {
		tr := &journal{}
		guard := activeobject.Interceptor{
			Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
				require.Equal(t, "fill", r.Operation)
				require.Equal(t, 3, r.Argument)
				if r.Client != "ann" {
					return nil, denied
				}
				return ctx, nil
			},
			Done: func(context.Context, activeobject.Intercepted, error) { tr.add("never for the denied") },
		}
		state := &dam{}
		o := newObject(t, s, ts.Type, state, activeobject.Interceptors(tr.named("outer"), guard))
		_, err := ts.fill.Call(background, o, 3)
		require.Equal(t, denied, err)
		require.Equal(t, []string{"queue outer", "done outer true denied"}, tr.read())
		_, err = ts.fill.Try(background, o, 3)
		require.Equal(t, denied, err)
		_, err = ts.fill.Send(background, o, 3).Await(background)
		require.Equal(t, denied, err)
		require.Equal(t, denied, ts.fill.Tell(background, o, 3))
		_, err = ask(t, s, o.PID(), &actor.Invoke{Operation: "fill", Argument: 3})
		require.Equal(t, denied, err)
		_, err = ts.fill.Call(activeobject.WithClient(background, "ann"), o, 3)
		require.NoError(t, err)
		<-o.Stop()
		require.Equal(t, 3, state.level)
	})
}

func TestRunMayReplaceTheBodyAndItsError(t *testing.T) {
	ts := newTanks()
	busy, worse := errors.New("busy"), errors.New("worse")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, ran := range []bool{true, false} {
			state := &dam{}
			o := newObject(t, s, ts.Type, state, activeobject.Interceptors(activeobject.Interceptor{
				Run: func(_ context.Context, _ activeobject.Intercepted, body func() error) error {
					if ran {
						body()
						return worse
					}
					return busy
				},
			}))
			_, err := ts.fill.Call(background, o, 1)
			require.Equal(t, map[bool]error{true: worse, false: busy}[ran], err)
			<-o.Stop()
			require.Equal(t, map[bool]int{true: 1, false: 0}[ran], state.level)
		}
	})
}

func TestAnInterceptorThatPanicsOrExitsFailsItsRequestOnly(t *testing.T) {
	ts := newTanks()
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		everywhere(t, func(t *testing.T, s *scene) {
			for _, where := range []string{"queue", "run", "done", "nil context"} {
				tr, armed := &journal{}, true
				at := func(place string) {
					if armed && place == where {
						fail()
					}
				}
				o := newObject(t, s, ts.Type, &dam{}, activeobject.Interceptors(tr.named("outer"), activeobject.Interceptor{
					Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
						at("queue")
						if armed && where == "nil context" {
							return nil, nil
						}
						return ctx, nil
					},
					Run:  func(_ context.Context, _ activeobject.Intercepted, body func() error) error { at("run"); return body() },
					Done: func(context.Context, activeobject.Intercepted, error) { at("done") },
				}))
				err := soon(t, s.system, calling(background, o, ts.fill, 1)).err
				if where == "nil context" || how == "panic" && where != "done" {
					require.ErrorAs(t, err, new(*activeobject.PanicError))
				}
				if how == "panic" || where != "done" {
					done := 0
					eventually(t, "outer is done", func() bool {
						done = 0
						for _, step := range tr.read() {
							if step[:4] == "done" {
								done++
							}
						}
						return done > 0
					})
					require.Equal(t, 1, done, "%s in %s: %v", how, where, tr.read())
				}
				armed = false
				_, err = ts.fill.Call(background, o, 1)
				require.NoError(t, err, "the object goes on after %s in %s", how, where)
			}
		})
	}
}

func TestDoneIsCalledOnceHoweverARequestEnds(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		var mu sync.Mutex
		queued, done := 0, 0
		count := func(n *int) { mu.Lock(); *n++; mu.Unlock() }
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Bound(20, activeobject.Refuse), activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
				count(&queued)
				return ctx, nil
			},
			Done: func(context.Context, activeobject.Intercepted, error) { count(&done) },
		}))
		ctx, cancel := context.WithCancel(background)
		var all sync.WaitGroup
		for i := range 60 {
			ctx := ctx
			if i%2 == 0 {
				ctx = background
			}
			all.Go(func() { ts.drain.Call(ctx, o, nil) })
			ts.drain.Send(ctx, o, nil)
			ts.drain.Tell(ctx, o, nil)
			ts.drain.Begin(ctx, o, nil)
			ts.drain.Try(ctx, o, nil)
			s.system.Actors().Root.Send(o.PID(), &actor.Invoke{Operation: "drain"})
		}
		cancel()
		ts.fill.Call(background, o, 5)
		<-o.Stop()
		all.Wait()
		eventually(t, "each is done once", func() bool { mu.Lock(); defer mu.Unlock(); return done == queued && done > 5*60 })
	})
}

// A circle through an interceptor is found like one through a body.
func TestRunIsInsideItsObject(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, after := range []bool{false, true} {
			var o *activeobject.Object[dam]
			var found error
			o = newObject(t, s, ts.Type, &dam{}, activeobject.Interceptors(activeobject.Interceptor{
				Run: func(ctx context.Context, _ activeobject.Intercepted, body func() error) error {
					if after {
						body()
					}
					_, found = ts.fill.Call(ctx, o, 1)
					return nil
				},
			}))
			require.NoError(t, soon(t, s.system, calling(background, o, ts.fill, 1)).err)
			require.ErrorAs(t, found, new(*activeobject.DeadlockError))
		}
	})
}

// A record that has been used has no result of its life before.
func TestARequestThatFailsOrIsLeftOutHasNoResultOfAnother(t *testing.T) {
	ds := newDesks("desk")
	skips := false
	run := activeobject.Interceptors(activeobject.Interceptor{
		Run: func(_ context.Context, _ activeobject.Intercepted, body func() error) error {
			if skips {
				return nil
			}
			return body()
		},
	})
	everywhere(t, func(t *testing.T, s *scene) {
		o, intercepted := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{open: true}, run)
		for range 20 {
			ticket := ds.wait.Begin(background, o, answers(42))
			ds.set(t, o, func(d *desk) { d.open = true })
			r, err := ticket.Await(background)
			require.NoError(t, err)
			require.Equal(t, 42, r)
			ds.set(t, o, func(d *desk) { d.open = false })

			ctx, cancel := context.WithCancel(background)
			c := async(func() (int, error) { return ds.wait.Call(ctx, o, answers(1)) })
			waiting(t, o, ds.wait, 1)
			cancel()
			require.Equal(t, outcome[int]{err: context.Canceled}, soon(t, s.system, c))

			ticket = ds.wait.Begin(background, intercepted, answers(42))
			_, err = ticket.Await(background)
			require.NoError(t, err)
			skips = true
			r, err = ds.wait.Call(background, intercepted, answers(1))
			skips = false
			require.NoError(t, err)
			require.Zero(t, r)
		}
	})
}
