package activeobject_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// A place is an object whose visits do what they are told, and so may call other
// places, or come back.
type place struct{ visits int }

type visit func(ctx context.Context) error

type places struct {
	*activeobject.Type[place]
	visit *activeobject.Operation[place, visit, None]
	touch *activeobject.Operation[place, None, None] // a leaf
	enter *activeobject.Operation[place, None, None] // waits for ever
}

func newPlaces() places {
	t := activeobject.NewType[place]("place")
	return places{
		Type: t,
		visit: activeobject.ProcedureCtx(t, "visit", func(p *place, ctx context.Context, v visit) (None, error) {
			p.visits++
			if v == nil {
				return nil, nil
			}
			return nil, v(ctx)
		}),
		touch: activeobject.Procedure(t, "touch", activeobject.Plain(func(p *place) { p.visits++ })),
		enter: activeobject.Entry(t, "enter", activeobject.Plain(func(*place) {})).When("open", func(*place) bool { return false }),
	}
}

// at makes a place with a name.
func (ps places) at(t *testing.T, s *scene, name string) *activeobject.Object[place] {
	return newObject(t, s, ps.Type, &place{}, activeobject.Name(name))
}

// requireCircle requires a DeadlockError with the circle.
func requireCircle(t *testing.T, err error, text string, circle ...string) {
	t.Helper()
	var d *activeobject.DeadlockError
	require.ErrorAs(t, err, &d)
	var got []string
	for _, l := range d.Circle {
		got = append(got, l.Body, l.For)
	}
	require.Equal(t, circle, got)
	require.EqualError(t, err, "sluice: deadlock: "+text)
}

func TestACallThatComesBackFails(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		home := ps.at(t, s, "home")
		ways := map[string]func(ctx context.Context) error{
			"call": func(ctx context.Context) error { _, err := ps.visit.Call(ctx, home, nil); return err },
			"try":  func(ctx context.Context) error { _, err := ps.visit.Try(ctx, home, nil); return err },
			"send and await": func(ctx context.Context) error {
				f := ps.visit.Send(ctx, home, nil)
				_, err := f.Await(ctx)
				if !f.Withdraw() {
					t.Error("the request is still there to be withdrawn")
				}
				return err
			},
		}
		for name, back := range ways {
			_, err := ps.visit.Call(background, home, back)
			requireCircle(t, err, "home.visit waits for home.visit", "home.visit", "home.visit")
			_, err = ps.visit.Send(background, home, back).Await(background)
			requireCircle(t, err, "home.visit waits for home.visit", "home.visit", "home.visit")
			require.Zero(t, ps.visit.Waiting(home), name)
		}
		// Leaf operations are no exception.
		_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
			_, err := ps.touch.Call(ctx, home, nil)
			return err
		})
		requireCircle(t, err, "home.visit waits for home.touch", "home.visit", "home.touch")
		// The body may get over it.
		_, err = ps.visit.Call(background, home, func(ctx context.Context) error {
			if _, err := ps.touch.Call(ctx, home, nil); err == nil {
				t.Error("it came back")
			}
			return nil
		})
		require.NoError(t, err)
	})
}

func TestATellToOnesOwnObjectIsNoDeadlock(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &place{}
		home := newObject(t, s, ps.Type, state)
		var f activeobject.Future[None]
		_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
			f = ps.touch.Send(ctx, home, nil)
			return ps.touch.Tell(ctx, home, nil)
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
		_, err = ps.touch.Call(background, home, nil)
		require.NoError(t, err)
		<-home.Stop()
		require.Equal(t, 4, state.visits)
	})
}

func TestACallThatComesBackThroughOthersFails(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b, c := ps.at(t, s, "a"), ps.at(t, s, "b"), ps.at(t, s, "c")
		go_ := func(o *activeobject.Object[place], then visit) visit {
			return func(ctx context.Context) error { _, err := ps.visit.Call(ctx, o, then); return err }
		}
		_, err := ps.visit.Call(background, a, go_(b, go_(a, nil)))
		requireCircle(t, err, "a.visit waits for b.visit, b.visit waits for a.visit", "a.visit", "b.visit", "b.visit", "a.visit")
		// A caller that is inside more objects than those of the circle names the circle only.
		_, err = ps.visit.Call(background, a, go_(b, go_(c, go_(b, nil))))
		requireCircle(t, err, "b.visit waits for c.visit, c.visit waits for b.visit", "b.visit", "c.visit", "c.visit", "b.visit")
		for _, o := range []*activeobject.Object[place]{a, b, c} {
			_, err := ps.touch.Call(background, o, nil)
			require.NoError(t, err)
		}
	})
}

// crossing sends one body into each object, and when all are inside has each go
// on to the next. The last to close the circle fails; then the others pass.
func crossing(t *testing.T, s *scene, ps places, objects []*activeobject.Object[place], step func(ctx context.Context, to *activeobject.Object[place]) error) []error {
	t.Helper()
	n := len(objects)
	var inside sync.WaitGroup
	inside.Add(n)
	results := make([]<-chan outcome[None], n)
	for i, o := range objects {
		results[i] = calling(background, o, ps.visit, func(ctx context.Context) error {
			inside.Done()
			inside.Wait()
			return step(ctx, objects[(i+1)%n])
		})
	}
	errs := make([]error, n)
	for i, c := range results {
		errs[i] = soon(t, s.system, c).err
	}
	return errs
}

func TestACircleOfSeveralChainsFailsTheOneThatClosesIt(t *testing.T) {
	ps := newPlaces()
	steps := map[string]func(ctx context.Context, to *activeobject.Object[place]) error{
		"call": func(ctx context.Context, to *activeobject.Object[place]) error {
			_, err := ps.visit.Call(ctx, to, nil)
			return err
		},
		"call of a leaf": func(ctx context.Context, to *activeobject.Object[place]) error {
			_, err := ps.touch.Call(ctx, to, nil)
			return err
		},
		"try": func(ctx context.Context, to *activeobject.Object[place]) error {
			_, err := ps.visit.Try(ctx, to, nil)
			return err
		},
		"await": func(ctx context.Context, to *activeobject.Object[place]) error {
			f := ps.visit.Send(ctx, to, nil)
			_, err := f.Await(ctx)
			f.Withdraw()
			return err
		},
	}
	everywhere(t, func(t *testing.T, s *scene) {
		a, b, c := ps.at(t, s, "a"), ps.at(t, s, "b"), ps.at(t, s, "c")
		for name, step := range steps {
			for _, objects := range [][]*activeobject.Object[place]{{a, b}, {a, b, c}} {
				for range 20 {
					failed := 0
					for i, err := range crossing(t, s, ps, objects, step) {
						if err == nil {
							continue
						}
						failed++
						var d *activeobject.DeadlockError
						require.ErrorAs(t, err, &d, name)
						require.Len(t, d.Circle, len(objects))
						for j, l := range d.Circle {
							to := objects[(i+j+1)%len(objects)].Name() + ".visit"
							if name == "call of a leaf" {
								to = objects[(i+j+1)%len(objects)].Name() + ".touch"
							}
							require.Equal(t, objects[(i+j)%len(objects)].Name()+".visit", l.Body)
							require.Equal(t, to, l.For)
						}
					}
					require.Equal(t, 1, failed, "%s: one fails so that the others can pass", name)
				}
			}
		}
	})
}

func TestTheWaitAtTheEndOfAChainIsNoDeadlock(t *testing.T) {
	// a's body waits at b for a guard, and c's for a. That is long, but no circle: a
	// newcomer may open b. If b's own body went for c, it would be one, as then
	// nothing could get into b.
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b, c := ps.at(t, s, "a"), ps.at(t, s, "b"), ps.at(t, s, "c")
		first := calling(background, a, ps.visit, func(ctx context.Context) error { _, err := ps.enter.Call(ctx, b, nil); return err })
		waiting(t, b, ps.enter, 1)
		second := calling(background, c, ps.visit, func(ctx context.Context) error { _, err := ps.visit.Call(ctx, a, nil); return err })
		waiting(t, a, ps.visit, 1)
		for _, o := range []*activeobject.Object[place]{a, c} {
			eventually(t, "its wait is known", func() bool { return len(o.Explain().Running[0].Waits) == 1 })
		}
		_, err := ps.visit.Call(background, b, func(ctx context.Context) error { _, err := ps.touch.Call(ctx, c, nil); return err })
		requireCircle(t, err, "b.visit waits for c.touch, c.visit waits for a.visit, a.visit waits for b.enter",
			"b.visit", "c.touch", "c.visit", "a.visit", "a.visit", "b.enter")
		b.Stop()
		requireStopped(t, "b", soon(t, s.system, first).err)
		require.NoError(t, soon(t, s.system, second).err)
	})
}

// A wait that is over must not count: two objects call each other's leaf
// operations in turn for ever, but never both at a time with the other held.
func TestThereAreNoPhantomDeadlocks(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := ps.at(t, s, "a"), ps.at(t, s, "b")
		const rounds = 300
		var wg sync.WaitGroup
		// Visitors of a go on to b, and of nothing else. Those of b touch nothing;
		// but b's callers have just been in a.
		for range 4 {
			wg.Go(func() {
				for range rounds {
					_, err := ps.visit.Call(background, a, func(ctx context.Context) error {
						_, err := ps.visit.Call(ctx, b, nil)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				for range rounds {
					// A future of a request at a, awaited from inside b only when
					// it has ended: the edge is gone when the reply is sent.
					f := ps.touch.Send(background, a, nil)
					<-f.Done()
					_, err := ps.visit.Call(background, b, func(ctx context.Context) error {
						_, err := f.Await(ctx)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		soon(t, s.system, done)
	})
}

func TestTheChainTravelsInTheContext(t *testing.T) {
	type key struct{}
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := ps.at(t, s, "a"), ps.at(t, s, "b")
		ctx := context.WithValue(background, key{}, "value")
		_, err := ps.visit.Call(ctx, a, func(ctx context.Context) error {
			require.Equal(t, "value", ctx.Value(key{}))
			ctx, cancel := context.WithCancel(ctx) // a context of the body's own carries it on
			defer cancel()
			_, err := ps.visit.Call(ctx, b, func(ctx context.Context) error {
				_, err := ps.touch.Call(ctx, a, nil)
				return err
			})
			return err
		})
		requireCircle(t, err, "a.visit waits for b.visit, b.visit waits for a.touch", "a.visit", "b.visit", "b.visit", "a.touch")
	})
}
