package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// makings are the ways of making a request, including those that do not wait for its result. Each
// begins a request, and returns a function that waits for its error.
func makings(t *testing.T, s *scene, ds desks, o *activeobject.Object[desk]) map[string]func(ctx context.Context, arg mission) func() error {
	all := map[string]func(ctx context.Context, arg mission) func() error{}
	for name, way := range ways(ds.do, o) {
		all[name] = func(ctx context.Context, arg mission) func() error {
			c := async(func() (int, error) { return way(ctx, arg) })
			return func() error { return soon(t, s.system, c).err }
		}
	}
	all["tell"] = func(ctx context.Context, arg mission) func() error {
		require.NoError(t, ds.do.Tell(ctx, o, arg))
		return nil
	}
	all["message"] = func(_ context.Context, arg mission) func() error {
		f := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "do", Argument: arg}, patience)
		return func() error {
			answer, err := f.Result()
			require.NoError(t, err)
			return answer.(*actor.Reply).Err
		}
	}
	return all
}

// ticking adds a step for each of the interceptor's functions, and says whether its
// context is that of the request, with what all objects before have added.
func ticking(tr *journal, name string, before ...string) activeobject.Interceptor {
	type key struct{ string }
	seen := func(ctx context.Context) bool {
		for _, b := range before {
			if ctx.Value(passed(b)) != b {
				return false
			}
		}
		return true
	}
	return activeobject.Interceptor{
		Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
			tr.add("queue %s %s.%s %v", name, r.Object, r.Operation, seen(ctx))
			return context.WithValue(context.WithValue(ctx, passed(name), name), key{name}, 1), nil
		},
		Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
			tr.add("run %s %v", name, seen(ctx) && ctx.Value(key{name}) == 1)
			return body()
		},
		Done: func(ctx context.Context, r activeobject.Intercepted, err error) {
			tr.add("done %s %v %v", name, seen(ctx) && ctx.Value(key{name}) == 1, err)
		},
	}
}

// passed is the key under which an interceptor of that name leaves its name.
type passed string

func TestARequestThatIsRequeuedPassesTheInterceptorsOfEachObject(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, first := range []bool{true, false} { // does the first have any?
			tr := &journal{}
			var at []activeobject.Option
			var before []string
			if first {
				at, before = append(at, activeobject.Interceptors(ticking(tr, "a"))), append(before, "a")
			}
			a := newObject(t, s, ds.Type, &desk{}, append(at, activeobject.Name(fmt.Sprint("a", first)))...)
			b := newObject(t, s, ds.Type, &desk{open: true}, activeobject.Name(fmt.Sprint("b", first)),
				activeobject.Interceptors(ticking(tr, "outer", before...), ticking(tr, "inner", append(before, "outer")...)))
			plain := newObject(t, s, ds.Type, &desk{})
			c := newObject(t, s, ds.Type, &desk{}, activeobject.Name(fmt.Sprint("c", first)), activeobject.Interceptors(ticking(tr, "c", append(before, "outer", "inner")...)))
			want := []string{
				fmt.Sprintf("queue outer b%v.wait true", first), fmt.Sprintf("queue inner b%v.wait true", first), "run outer true", "run inner true",
				"run outer true", "run inner true", // a requeue where it is
				fmt.Sprintf("queue c c%v.do true", first), "run c true",
				"done c true <nil>", "done inner true <nil>", "done outer true <nil>",
			}
			if first {
				want = slices.Concat([]string{fmt.Sprintf("queue a a%v.do true", first), "run a true"}, want, []string{"done a true <nil>"})
			}
			for name, make := range makings(t, s, ds, a) {
				tr.steps = nil
				end := make(background, func(*desk) (int, error) {
					return ds.wait.RequeueTo(b, func(*desk) (int, error) {
						return ds.block.Requeue(func(context.Context, *desk) (int, error) {
							return ds.do.RequeueTo(plain, func(*desk) (int, error) { return ds.do.RequeueTo(c, answers(1)) })
						})
					})
				})
				if end != nil {
					require.NoError(t, end(), name)
				}
				eventually(t, "it is done", func() bool { return len(tr.read()) >= len(want) })
				require.Equal(t, want, tr.read(), name)
			}
		}
	})
}

func TestARequestThatIsRefusedElsewhereFailsWithWhatHasRun(t *testing.T) {
	ds := newDesks("desk")
	denied := errors.New("denied")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, first := range []bool{true, false} {
			tr := &journal{}
			var at []activeobject.Option
			if first {
				at = append(at, activeobject.Interceptors(ticking(tr, "a")))
			}
			a := newObject(t, s, ds.Type, &desk{}, append(at, activeobject.Name(fmt.Sprint("a", first)))...)
			state := &desk{}
			b := newObject(t, s, ds.Type, state, activeobject.Interceptors(ticking(tr, "outer"), activeobject.Interceptor{
				Queue: func(context.Context, activeobject.Intercepted) (context.Context, error) { return nil, denied },
				Done:  func(context.Context, activeobject.Intercepted, error) { tr.add("never for the denied") },
			}))
			for name, make := range makings(t, s, ds, a) {
				tr.steps = nil
				end := make(background, func(*desk) (int, error) { return ds.do.RequeueTo(b, answers(1), activeobject.Commit) })
				if end != nil {
					err := end()
					var requeued *activeobject.RequeuedError
					require.ErrorAs(t, err, &requeued, name)
					require.Equal(t, denied, requeued.Cause, name)
					require.Equal(t, []string{fmt.Sprint("a", first, ".do")}, requeued.Ran)
				}
				last := "done outer"
				if first {
					last = "done a"
				}
				eventually(t, "it is done", func() bool {
					steps := tr.read()
					return len(steps) > 0 && strings.HasPrefix(steps[len(steps)-1], last)
				})
				done := 0
				for _, step := range tr.read() {
					require.NotContains(t, step, "never")
					require.NotContains(t, step, "run outer")
					if strings.HasPrefix(step, "done") {
						require.Contains(t, step, "denied (after")
						done++
					}
				}
				require.Equal(t, map[bool]int{true: 2, false: 1}[first], done, name)
			}
			<-b.Stop()
			require.Empty(t, state.ran)
		}
	})
}

// The client of a message is known at all objects that it comes to.
func TestTheSenderOfAMessageIsKnownWhereItIsRequeuedTo(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		clients := make(chan any, 1)
		a := newObject(t, s, ds.Type, &desk{})
		b := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
				clients <- r.Client
				return ctx, nil
			},
		}))
		err := makings(t, s, ds, a)["message"](background, func(*desk) (int, error) { return ds.do.RequeueTo(b, answers(1)) })()
		require.NoError(t, err)
		require.NotNil(t, soon(t, s.system, clients))
	})
}

// An object goes on while the interceptors of another one decide about its requeued request.
func TestNoObjectWaitsForAnArrivalElsewhere(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		entered, let := make(chan struct{}), make(chan struct{})
		a := newObject(t, s, ds.Type, &desk{})
		b := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
				entered <- struct{}{}
				<-let
				return ctx, nil
			},
		}))
		for name, make := range makings(t, s, ds, a) {
			end := make(background, func(*desk) (int, error) { return ds.do.RequeueTo(b, answers(1)) })
			soon(t, s.system, entered)
			for range 3 {
				require.Equal(t, outcome[int]{result: 2}, soon(t, s.system, calling(background, a, ds.do, answers(2))), name)
			}
			let <- struct{}{}
			if end != nil {
				require.NoError(t, end())
			}
		}
	})
}

// A request that is withdrawn while it is under way to another object never arrives.
func TestARequestCanBeWithdrawnOnItsWay(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, how := range [][]activeobject.Requeuing{nil, {activeobject.Commit}} {
			entered, let := make(chan struct{}), make(chan struct{})
			tr := &journal{}
			a := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(ticking(tr, "a")))
			state := &desk{}
			b := newObject(t, s, ds.Type, state, activeobject.Interceptors(activeobject.Interceptor{
				Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
					entered <- struct{}{}
					<-let
					return ctx, nil
				},
				Done: func(context.Context, activeobject.Intercepted, error) { tr.add("done b") },
			}))
			goOn := func(*desk) (int, error) { return ds.do.RequeueTo(b, answers(1), how...) }
			check := func(name string, err error) {
				if how == nil {
					require.ErrorIs(t, err, context.Canceled, name)
					require.ErrorAs(t, err, new(*activeobject.RequeuedError))
				} else {
					require.NoError(t, err, name)
				}
			}
			// By the end of the context.
			for name, way := range ways(ds.do, a) {
				ctx, cancel := context.WithCancel(background)
				c := async(func() (int, error) { return way(ctx, goOn) })
				soon(t, s.system, entered)
				cancel()
				let <- struct{}{}
				check(name, soon(t, s.system, c).err)
			}
			// And by the future, or the ticket.
			f := ds.do.Send(background, a, goOn)
			soon(t, s.system, entered)
			eventually(t, "it is under way", func() bool { return how != nil || f.Withdraw() })
			require.False(t, f.Withdraw())
			let <- struct{}{}
			check("future", soon(t, s.system, awaiting(background, f)).err)
			ticket := ds.do.Begin(background, a, goOn)
			soon(t, s.system, entered)
			require.Equal(t, how == nil, ticket.Withdraw())
			let <- struct{}{}
			_, err := ticket.Await(background)
			check("ticket", err)
			<-b.Stop()
			all := len(ways(ds.do, a)) + 2
			require.Len(t, state.ran, map[bool]int{true: 0, false: all}[how == nil])
			eventually(t, "each is done once", func() bool {
				done := 0
				for _, step := range tr.read() {
					if step == "done b" {
						done++
					}
				}
				return done == all
			})
		}
	})
}

// What Queue returns is the request's context, also in that it may end.
func TestTheContextOfAnArrivalElsewhereEndsTheWait(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		cancels := make(chan context.CancelFunc, 1)
		a := newObject(t, s, ds.Type, &desk{})
		b := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
				ctx, cancel := context.WithCancel(ctx)
				cancels <- cancel
				return ctx, nil
			},
		}))
		for range 3 { // what was told has a record that is used again
			for name, make := range patient(makings(t, s, ds, a)) {
				end := make(background, func(*desk) (int, error) { return ds.wait.RequeueTo(b, answers(1)) })
				cancel := soon(t, s.system, cancels)
				waiting(t, b, ds.wait, 1)
				cancel()
				waiting(t, b, ds.wait, 0)
				if end != nil {
					require.ErrorIs(t, end(), context.Canceled, name)
				}
			}
		}
	})
}

func TestAQueueThatFailsOnAnArrivalElsewhereFailsItsRequestOnly(t *testing.T) {
	ds := newDesks("desk")
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		everywhere(t, func(t *testing.T, s *scene) {
			tr := &journal{}
			seen := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(ticking(tr, "a")))
			plain := newObject(t, s, ds.Type, &desk{})
			b := newObject(t, s, ds.Type, &desk{}, activeobject.Interceptors(ticking(tr, "outer"), activeobject.Interceptor{
				Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
					fail()
					return ctx, nil
				},
			}))
			for a, n := range map[*activeobject.Object[desk]]int{seen: 2, plain: 1} {
				for name, make := range makings(t, s, ds, a) {
					tr.steps = nil
					end := make(background, func(*desk) (int, error) { return ds.do.RequeueTo(b, answers(1)) })
					if end != nil {
						switch err := end(); {
						case how == "panic":
							require.ErrorAs(t, err, new(*activeobject.PanicError), name)
						case err != errEnded:
							require.ErrorAs(t, err, new(*activeobject.ExitError), name)
						}
					}
					eventually(t, "it is done", func() bool {
						done := 0
						for _, step := range tr.read() {
							if strings.HasPrefix(step, "done") {
								done++
							}
						}
						return done == n
					})
					require.NoError(t, soon(t, s.system, calling(background, a, ds.do, answers(1))).err)
				}
			}
		})
	}
}

// Nothing is lost and nothing runs twice, whatever ends while requests go to and fro.
func TestDoneIsCalledOnceForEachArrivalWhateverRaces(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		var mu sync.Mutex
		queued, done := 0, 0
		count := func(n *int) { mu.Lock(); *n++; mu.Unlock() }
		counting := activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
				count(&queued)
				runtime.Gosched()
				return context.WithValue(ctx, passed("x"), 1), nil
			},
			Done: func(context.Context, activeobject.Intercepted, error) { count(&done) },
		})
		a, b := newObject(t, s, ds.Type, &desk{}, counting), newObject(t, s, ds.Type, &desk{}, counting)
		plain := newObject(t, s, ds.Type, &desk{})
		var turn func(n int) mission
		turn = func(n int) mission {
			return func(*desk) (int, error) {
				to := []*activeobject.Object[desk]{a, plain, b, nil}[n%4]
				if n > 10 {
					return ds.late.RequeueTo(to, answers(1)) // where it waits until it is withdrawn, or its object stops
				}
				return ds.do.RequeueTo(to, turn(n+1))
			}
		}
		var all sync.WaitGroup
		for _, o := range []*activeobject.Object[desk]{a, b, plain} {
			for _, way := range ways(ds.do, o) {
				all.Go(func() {
					for i := range 30 {
						ctx, cancel := context.WithCancel(background)
						c := async(func() (int, error) { return way(ctx, turn(i%4)) })
						for range i {
							runtime.Gosched()
						}
						cancel()
						if out := <-c; !errors.Is(out.err, context.Canceled) && !errors.Is(out.err, activeobject.ErrRefused) {
							t.Errorf("%v", out.err)
						}
						f := ds.do.Send(background, o, turn(i%4))
						for range i {
							runtime.Gosched()
						}
						f.Withdraw()
						ds.do.Tell(background, o, turn(i%4))
					}
				})
			}
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		soon(t, s.system, ended)
		for _, o := range []*activeobject.Object[desk]{a, b, plain} {
			<-o.Stop()
		}
		eventually(t, "each is done once", func() bool { mu.Lock(); defer mu.Unlock(); return done == queued && done > 90 })
	})
}

// A circle through an interceptor of an object that a leaf is requeued to is found.
func TestRunIsInsideTheObjectThatItsRequestIsRequeuedTo(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a := newObject(t, s, ds.Type, &desk{})
		var b *activeobject.Object[desk]
		found := make(chan error, 1)
		b = newObject(t, s, ds.Type, &desk{open: true}, activeobject.Interceptors(activeobject.Interceptor{
			Run: func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
				if r.Operation == "wait" {
					_, err := ds.do.Call(ctx, b, answers(1))
					found <- err
				}
				return body()
			},
		}))
		for name, make := range makings(t, s, ds, a) {
			for _, turn := range []mission{
				func(*desk) (int, error) { return ds.wait.RequeueTo(b, answers(1)) },
				func(*desk) (int, error) {
					return ds.do.RequeueTo(b, func(*desk) (int, error) { return ds.wait.Requeue(answers(1)) })
				},
			} {
				end := make(background, turn)
				require.ErrorAs(t, soon(t, s.system, found), new(*activeobject.DeadlockError), name)
				if end != nil {
					require.NoError(t, end())
				}
			}
		}
	})
}
