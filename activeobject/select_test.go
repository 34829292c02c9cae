package activeobject_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// choosing makes a selection on a goroutine of its own.
func choosing(ctx context.Context, cases ...activeobject.Alternative) <-chan outcome[int] {
	return async(func() (int, error) { return activeobject.Select(ctx, cases...) })
}

func TestSelectRunsTheFirstThatCan(t *testing.T) {
	ds, others := newDesks("desk"), newDesks("other")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, others.Type, &desk{})
		x, y := ds.wait.Case(a, answers(1)), others.wait.Case(b, func(d *desk) (int, error) {
			d.open = false
			if n := ds.wait.Waiting(a) + others.wait.Waiting(b); n != 0 || d.Waiting(others.wait) != 0 {
				t.Errorf("%d wait while the chosen body runs", n)
			}
			return 2, nil
		})
		for range 50 { // the cases can be used again
			c := choosing(background, x, y)
			waiting(t, a, ds.wait, 1)
			waiting(t, b, others.wait, 1)
			others.set(t, b, func(d *desk) { d.open = true })
			require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, c))
			r, err := y.Result()
			require.NoError(t, err)
			require.Equal(t, 2, r)
		}
		ds.set(t, a, func(d *desk) { d.open = true })
		i, err := activeobject.Select(background, x, y)
		require.NoError(t, err)
		require.Zero(t, i)
	})
}

func TestSelectPrefersTheCaseThatIsListedFirst(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		if !s.onCallers() {
			return // Select does not wait for the object's thread before it hands in the next case
		}
		a := newObject(t, s, ds.Type, &desk{open: true})
		b := newObject(t, s, ds.Type, &desk{open: true}, activeobject.NoFastPath())
		leaf := func(o *activeobject.Object[desk]) activeobject.Alternative { return ds.wait.Case(o, answers(1)) }
		ctx := func(o *activeobject.Object[desk]) activeobject.Alternative {
			return ds.block.Case(o, func(context.Context, *desk) (int, error) { return 1, nil })
		}
		shut := func(o *activeobject.Object[desk]) activeobject.Alternative { return ds.late.Case(o, answers(1)) }
		for _, cases := range [][]activeobject.Alternative{
			{leaf(a), leaf(b)}, {leaf(b), leaf(a)}, {ctx(a), leaf(b)}, {ctx(b), leaf(a)}, {ctx(a), leaf(a)},
			{shut(a), leaf(b), leaf(a)}, {shut(b), ctx(a), leaf(b)},
		} {
			for _, otherwise := range []bool{false, true} {
				want := 0
				if len(cases) == 3 {
					want = 1
				}
				if otherwise {
					cases = append(cases, activeobject.Otherwise)
				}
				i, err := activeobject.Select(background, cases...)
				require.NoError(t, err)
				require.Equal(t, want, i)
			}
		}
	})
}

func TestOtherwiseIsChosenIfNothingElseCanRunAtOnce(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		x, y := ds.wait.Case(a, answers(1)), ds.wait.Case(b, answers(2))
		i, err := activeobject.Select(background, x, y, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 2, i)
		ds.set(t, b, func(d *desk) { d.open = true })
		i, err = activeobject.Select(background, x, y, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 1, i)
		r, err := y.Result()
		require.NoError(t, err)
		require.Equal(t, 2, r)
		// A body that has been refused itself has run nevertheless.
		ran := 0
		z := ds.doCtx.Case(b, func(ctx context.Context, _ *desk) (int, error) {
			ran++
			_, err := ds.wait.Try(ctx, a, answers(1))
			return 0, err
		})
		i, err = activeobject.Select(background, z, y, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 0, i)
		require.Equal(t, 1, ran)
		_, err = z.Result()
		require.ErrorIs(t, err, activeobject.ErrRefused)
		i, err = activeobject.Select(background, activeobject.Otherwise)
		require.NoError(t, err)
		require.Zero(t, i)
	})
}

func TestACaseThatFailsIsChosen(t *testing.T) {
	ds := newDesks("desk")
	bad := activeobject.Entry(ds.Type, "bad", func(*desk, None) (int, error) { return 0, nil }).When("good", func(d *desk) bool {
		if d.second {
			panic("guard")
		}
		return false
	})
	everywhere(t, func(t *testing.T, s *scene) {
		shut := newObject(t, s, ds.Type, &desk{})
		stops, panics := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		x := ds.wait.Case(shut, answers(1))

		y := ds.wait.Case(stops, answers(1))
		c := choosing(background, x, y)
		waiting(t, stops, ds.wait, 1)
		stops.Stop()
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, c))
		_, err := y.Result()
		require.ErrorIs(t, err, activeobject.ErrStopped)
		i, err := activeobject.Select(background, x, y) // stopped already
		require.NoError(t, err)
		require.Equal(t, 1, i)

		z, zz := bad.Case(panics, nil), bad.Case(panics, nil) // two that fail at once
		c = choosing(background, x, z, zz)
		waiting(t, panics, bad, 2)
		ds.set(t, panics, func(d *desk) { d.second = true })
		out := soon(t, s.system, c)
		require.NoError(t, out.err)
		_, err = []interface{ Result() (int, error) }{x, z, zz}[out.result].Result()
		require.ErrorAs(t, err, new(*activeobject.GuardError))

		foreign := newDesks("foreign")
		i, err = activeobject.Select(background, x, foreign.wait.Case(shut, answers(1)))
		require.NoError(t, err)
		require.Equal(t, 1, i)
		require.Zero(t, ds.wait.Waiting(shut))
	})
}

func TestNoCaseRunsOnceTheContextHasEnded(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		x, y := ds.wait.Case(a, answers(1)), ds.wait.Case(b, answers(1))
		ctx, cancel := context.WithCancel(background)
		c := choosing(ctx, x, y)
		waiting(t, b, ds.wait, 1)
		cancel()
		require.Equal(t, outcome[int]{result: -1, err: context.Canceled}, soon(t, s.system, c))
		require.Zero(t, ds.wait.Waiting(a)+ds.wait.Waiting(b))
		ds.set(t, a, func(d *desk) { d.open = true })
		for _, cases := range [][]activeobject.Alternative{{x, y}, {x, y, activeobject.Otherwise}} {
			i, err := activeobject.Select(ctx, cases...)
			require.Equal(t, -1, i)
			require.Equal(t, context.Canceled, err)
		}
		_, err := ds.do.Call(background, a, func(d *desk) (int, error) { require.Empty(t, d.ran); return 0, nil })
		require.NoError(t, err)
	})
}

func TestSenselessCasesChangeNothing(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{open: true})
		x := ds.wait.Case(o, func(*desk) (int, error) { t.Error("it runs"); return 0, nil })
		var none *activeobject.Case[int]
		for _, cases := range [][]activeobject.Alternative{
			{}, {x, nil}, {x, none}, {x, ds.wait.Case(nil, answers(1))}, {x, x}, {activeobject.Otherwise, x}, {activeobject.Otherwise, activeobject.Otherwise},
		} {
			i, err := activeobject.Select(background, cases...)
			require.Equal(t, -1, i)
			require.ErrorAs(t, err, new(*activeobject.SelectError))
		}
	})
}

func TestSelectOfTheSameObjectTwice(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{})
		x, y := ds.wait.Case(o, answers(1)), ds.late.Case(o, answers(2))
		for i, change := range []func(*desk){func(d *desk) { d.open = true }, func(d *desk) { d.open, d.second = false, true }} {
			c := choosing(background, x, y)
			if i == 0 {
				waiting(t, o, ds.late, 1)
			}
			ds.set(t, o, change)
			out := soon(t, s.system, c)
			require.NoError(t, out.err)
			if i == 0 {
				require.Zero(t, out.result)
				ds.set(t, o, func(d *desk) { d.open = false })
			}
			require.Zero(t, ds.wait.Waiting(o)+ds.late.Waiting(o))
		}
	})
}

func TestTheBodyOfACaseMayBeRequeued(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, ended := range []bool{false, true} {
			for _, away := range []bool{false, true} {
				for _, atOnce := range []bool{false, true} {
					a, b := newObject(t, s, ds.Type, &desk{open: atOnce}), newObject(t, s, ds.Type, &desk{})
					to := (*activeobject.Object[desk])(nil)
					if away {
						to = b
					}
					runs := 0
					x := ds.wait.Case(a, func(*desk) (int, error) { runs++; return ds.late.RequeueTo(to, answers(3)) })
					y := ds.wait.Case(b, answers(1))
					ctx, cancel := context.WithCancel(background)
					c := choosing(ctx, x, y)
					if !atOnce {
						waiting(t, b, ds.wait, 1)
						ds.set(t, a, func(d *desk) { d.open = true })
					}
					eventually(t, "it is requeued", func() bool { return ds.late.Waiting(a)+ds.late.Waiting(b) == 1 })
					require.Zero(t, ds.wait.Waiting(b))
					if ended {
						cancel()
					} else {
						ds.set(t, a, func(d *desk) { d.second = true })
						ds.set(t, b, func(d *desk) { d.second = true })
					}
					require.Equal(t, outcome[int]{result: 0}, soon(t, s.system, c))
					require.Equal(t, 1, runs)
					r, err := x.Result()
					if ended {
						require.ErrorAs(t, err, new(*activeobject.RequeuedError))
						require.ErrorIs(t, err, context.Canceled)
					} else {
						require.NoError(t, err)
						require.Equal(t, 3, r)
					}
					cancel()
				}
			}
		}
	})
}

func TestACaseThatFailsHasNoResultOfAnEarlierSelect(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for name, otherwise := range map[string][]activeobject.Alternative{"waiting": nil, "otherwise": {activeobject.Otherwise}} {
			o := newObject(t, s, ds.Type, &desk{})
			fails := false
			x := ds.do.Case(o, func(*desk) (int, error) {
				if fails {
					panic("it fails")
				}
				return 7, nil
			})
			cases := append([]activeobject.Alternative{x}, otherwise...)
			i, err := activeobject.Select(background, cases...)
			require.NoError(t, err, name)
			require.Zero(t, i)
			r, err := x.Result()
			require.NoError(t, err)
			require.Equal(t, 7, r)

			fails = true
			i, err = activeobject.Select(background, cases...)
			require.NoError(t, err, name)
			require.Zero(t, i)
			r, err = x.Result()
			require.ErrorAs(t, err, new(*activeobject.PanicError), name)
			require.Zero(t, r, name)

			<-o.Stop()
			i, err = activeobject.Select(background, cases...)
			require.NoError(t, err, name)
			require.Zero(t, i)
			r, err = x.Result()
			require.ErrorIs(t, err, activeobject.ErrStopped, name)
			require.Zero(t, r, name)
		}
	})
}

func TestACaseWhoseBodyAnInterceptorLeavesOutHasNoResult(t *testing.T) {
	ds := newDesks("desk")
	skips, refuses := false, error(nil)
	between := activeobject.Interceptors(activeobject.Interceptor{
		Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) { return ctx, refuses },
		Run: func(_ context.Context, _ activeobject.Intercepted, body func() error) error {
			if skips {
				return nil
			}
			return body()
		},
	})
	everywhere(t, func(t *testing.T, s *scene) {
		for name, otherwise := range map[string][]activeobject.Alternative{"waiting": nil, "otherwise": {activeobject.Otherwise}} {
			o := newObject(t, s, ds.Type, &desk{}, between)
			x := ds.do.Case(o, answers(7))
			choose := func() (int, error) {
				t.Helper()
				i, err := activeobject.Select(background, append([]activeobject.Alternative{x}, otherwise...)...)
				require.NoError(t, err, name)
				require.Zero(t, i, name)
				return x.Result()
			}
			r, err := choose()
			require.NoError(t, err)
			require.Equal(t, 7, r)
			skips = true
			r, err = choose()
			require.NoError(t, err)
			require.Zero(t, r, name)
			skips, refuses = false, errors.New("refused")
			r, err = choose()
			require.ErrorIs(t, err, refuses)
			require.Zero(t, r, name)
			refuses = nil
		}
	})
}

func TestACaseWhoseGoroutineHasEndedCanBeUsedAgain(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for name, otherwise := range map[string][]activeobject.Alternative{"waiting": nil, "otherwise": {activeobject.Otherwise}} {
			a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{second: true})
			ends := true
			x := ds.do.Case(a, func(*desk) (int, error) {
				return ds.late.RequeueTo(b, func(*desk) (int, error) {
					if ends {
						runtime.Goexit()
					}
					return 5, nil
				})
			})
			cases := append([]activeobject.Alternative{x}, otherwise...)
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = activeobject.Select(background, cases...)
			}()
			<-over
			ends = false
			objecttest.Idle(t, a)
			objecttest.Idle(t, b)
			i, err := activeobject.Select(background, cases...)
			require.NoError(t, err, name)
			require.Zero(t, i)
			r, err := x.Result()
			require.NoError(t, err, name)
			require.Equal(t, 5, r, name)
		}
	})
}

func TestSelectOfWhatAllWaitsForTheCallerIsADeadlock(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		home, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		_, err := ds.doCtx.Call(background, home, func(ctx context.Context, _ *desk) (int, error) {
			return activeobject.Select(ctx, ds.do.Case(home, answers(1)), ds.wait.Case(home, answers(2)))
		})
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		require.Zero(t, ds.do.Waiting(home)+ds.wait.Waiting(home))
		// One way out is enough.
		c := calling(background, home, ds.doCtx, func(ctx context.Context, _ *desk) (int, error) {
			return activeobject.Select(ctx, ds.do.Case(home, answers(1)), ds.wait.Case(other, answers(2)))
		})
		waiting(t, other, ds.wait, 1)
		ds.set(t, other, func(d *desk) { d.open = true })
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, c))
		require.Zero(t, ds.do.Waiting(home))
	})
}

// A selection that has been decided is held up if the chosen request is, whatever the
// others would have done.
func TestACircleThroughTheChosenCaseIsFound(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		home, a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		c := calling(background, home, ds.doCtx, func(ctx context.Context, _ *desk) (int, error) {
			x := ds.wait.Case(a, func(*desk) (int, error) { return ds.late.Requeue(answers(3)) })
			if _, err := activeobject.Select(ctx, x, ds.wait.Case(b, answers(1))); err != nil {
				return 0, err
			}
			return x.Result()
		})
		waiting(t, b, ds.wait, 1)
		ds.set(t, a, func(d *desk) { d.open = true })
		waiting(t, a, ds.late, 1)
		waiting(t, b, ds.wait, 0)
		_, err := ds.doCtx.Call(background, a, func(ctx context.Context, _ *desk) (int, error) { return ds.do.Call(ctx, home, answers(1)) })
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		ds.set(t, a, func(d *desk) { d.second = true })
		require.Equal(t, outcome[int]{result: 3}, soon(t, s.system, c))
	})
}

func TestSelectGoesThroughInterceptors(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		var mu sync.Mutex
		var log []string
		note := func(what string) { mu.Lock(); defer mu.Unlock(); log = append(log, what) }
		refused := errors.New("refused")
		refuse, expire := false, false
		filter := func(name string) activeobject.Option {
			return activeobject.Interceptors(activeobject.Interceptor{
				Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
					note("queue " + name)
					if refuse {
						return nil, refused
					}
					if expire {
						ctx, cancel := context.WithCancelCause(ctx)
						context.AfterFunc(ctx, func() {})
						go cancel(nil)
						return ctx, nil
					}
					return ctx, nil
				},
				Run: func(_ context.Context, _ activeobject.Intercepted, body func() error) error {
					note("run " + name)
					return body()
				},
				Done: func(_ context.Context, _ activeobject.Intercepted, err error) {
					what := "done "
					if errors.Is(err, activeobject.ErrNotChosen) {
						what = "not "
					}
					note(what + name)
				},
			})
		}
		a, b := newObject(t, s, ds.Type, &desk{}, filter("a")), newObject(t, s, ds.Type, &desk{}, filter("b"))
		x, y := ds.wait.Case(a, answers(1)), ds.wait.Case(b, answers(2))
		c := choosing(background, x, y)
		waiting(t, b, ds.wait, 1)
		require.NoError(t, b.Do(background, func(d *desk) error { d.open = true; return nil }))
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, c))
		r, err := y.Result()
		require.NoError(t, err)
		require.Equal(t, 2, r)
		mu.Lock()
		var seen []string
		for _, l := range log {
			if l == "queue a" || l == "not a" {
				seen = append(seen, l)
			}
		}
		require.Equal(t, []string{"queue a", "not a"}, seen)
		require.Contains(t, log, "run b")
		require.Contains(t, log, "done b")
		mu.Unlock()

		refuse = true
		i, err := activeobject.Select(background, x, y)
		require.NoError(t, err)
		require.Zero(t, i)
		_, err = x.Result()
		require.Equal(t, refused, err)

		refuse, expire = false, true
		out := soon(t, s.system, choosing(background, x, ds.late.Case(b, answers(1))))
		require.NoError(t, out.err)
		if out.result == 0 {
			_, err = x.Result()
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Zero(t, ds.wait.Waiting(a)+ds.late.Waiting(b))
	})
}

func TestABodyOfACaseThatEndsItsGoroutine(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		x := ds.wait.Case(a, func(*desk) (int, error) { runtime.Goexit(); return 0, nil })
		y := ds.wait.Case(b, answers(1))
		c := choosing(background, x, y)
		waiting(t, b, ds.wait, 1)
		ds.set(t, b, func(*desk) {})
		go ds.do.Call(background, a, func(d *desk) (int, error) { d.open = true; return 0, nil }) // this goroutine may have to run it
		out := soon(t, s.system, c)
		if out.err == nil {
			_, err := x.Result()
			require.ErrorAs(t, err, new(*activeobject.ExitError))
		}
		waiting(t, b, ds.wait, 0)
		ds.set(t, a, func(*desk) {})
	})
}

func TestSelectObeysTheDerivedType(t *testing.T) {
	ds := newDesks("desk")
	strict := activeobject.Derive(ds.Type, "strict desk", activeobject.Same[desk]).Strengthen("second", func(d *desk) bool { return d.second }, ds.do)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, strict, &desk{open: true})
		x := ds.wait.Case(o, answers(4))
		i, err := activeobject.Select(background, x, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 1, i)
		c := choosing(background, x)
		waiting(t, o, ds.wait, 1)
		ds.set(t, o, func(d *desk) { d.second = true })
		require.Equal(t, outcome[int]{result: 0}, soon(t, s.system, c))
	})
}

// Selectors over several objects, some of which stop, whose guards fail at times, and
// whose contexts end: of each selection one body has run at most, and exactly one if
// Select says so.
func TestExactlyOneBodyOfEachSelectionRuns(t *testing.T) {
	type pot struct{ n int }
	typ := activeobject.NewType[pot]("pot")
	put := activeobject.Procedure(typ, "put", func(p *pot, n int) (int, error) { p.n += n; return p.n, nil })
	take := func(p *pot, ran *atomic.Int32) (int, error) { p.n--; ran.Add(1); return p.n, nil }
	some := func(p *pot) bool {
		if p.n == 7 {
			panic("seven")
		}
		return p.n > 0
	}
	leaf := activeobject.Entry(typ, "take", take).When("some", some)
	blocks := activeobject.EntryCtx(typ, "take-ctx", func(p *pot, _ context.Context, ran *atomic.Int32) (int, error) { return take(p, ran) }).When("some", some)
	hops := activeobject.Entry(typ, "take-later", func(p *pot, ran *atomic.Int32) (int, error) { return leaf.Requeue(ran) }).When("some", some)
	takes := []*activeobject.Operation[pot, *atomic.Int32, int]{leaf, blocks, hops}
	everywhere(t, func(t *testing.T, s *scene) {
		var objects []*activeobject.Object[pot]
		for i := range 4 {
			var more []activeobject.Option
			if i == 2 {
				more = append(more, activeobject.Bound(3, activeobject.DropOldest))
			}
			objects = append(objects, newObject(t, s, typ, &pot{}, more...))
		}
		over, end := context.WithCancel(background)
		var selectors, fillers sync.WaitGroup
		var chosen, ended atomic.Int64
		for range 16 {
			selectors.Go(func() {
				for i := range 150 {
					ctx, cancel := context.WithCancel(over)
					var ran [3]atomic.Int32
					cases := make([]activeobject.Alternative, 3)
					results := make([]func() (int, error), 3)
					for j := range cases {
						c := takes[rand.N(3)].Case(objects[rand.N(len(objects))], &ran[j])
						cases[j], results[j] = c, c.Result
					}
					if i%4 == 0 {
						go cancel()
					}
					n, err := activeobject.Select(ctx, cases...)
					cancel()
					if n >= 0 {
						_, err = results[n]()
						chosen.Add(1)
					} else {
						ended.Add(1)
					}
					for j := range ran {
						want := int32(0)
						if j == n && err == nil {
							want = 1
						}
						if got := ran[j].Load(); got != want {
							t.Errorf("case %d of a selection that chose %d, %v: it ran %d times", j, n, err, got)
						}
					}
					if n < 0 && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		}
		for range 2 {
			fillers.Go(func() {
				for over.Err() == nil {
					put.Call(background, objects[rand.N(len(objects))], rand.N(3))
					runtime.Gosched()
				}
			})
		}
		done := make(chan struct{})
		go func() { selectors.Wait(); close(done) }()
		soon(t, s.system, done)
		end()
		fillers.Wait()
		for _, o := range objects {
			require.Zero(t, leaf.Waiting(o)+blocks.Waiting(o)+hops.Waiting(o))
		}
		t.Logf("%d chosen, %d ended", chosen.Load(), ended.Load())
	})
}
