package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// A desk is an object whose requests are missions, that may send their caller on to
// another operation or another desk.
type desk struct {
	activeobject.Queues
	open, second bool
	ran          []string
}

type mission func(d *desk) (int, error)

type missionCtx func(ctx context.Context, d *desk) (int, error)

type desks struct {
	*activeobject.Type[desk]
	do    *activeobject.Operation[desk, mission, int]
	doCtx *activeobject.Operation[desk, missionCtx, int]
	wait  *activeobject.Operation[desk, mission, int]    // when open
	late  *activeobject.Operation[desk, mission, int]    // when second is set
	block *activeobject.Operation[desk, missionCtx, int] // when open
	text  *activeobject.Operation[desk, None, string]
	hold  *activeobject.Operation[desk, *brake, None]
}

func newDesks(name string) desks {
	t := activeobject.NewType[desk](name)
	run := func(d *desk, e mission) (int, error) { return e(d) }
	runCtx := func(d *desk, ctx context.Context, e missionCtx) (int, error) { return e(ctx, d) }
	open := func(d *desk) bool { return d.open }
	return desks{
		Type:  t,
		do:    activeobject.Procedure(t, "do", run),
		doCtx: activeobject.ProcedureCtx(t, "do-ctx", runCtx),
		wait:  activeobject.Entry(t, "wait", run).When("open", open),
		late:  activeobject.Entry(t, "late", run).When("second", func(d *desk) bool { return d.second }),
		block: activeobject.EntryCtx(t, "block", runCtx).When("open", open),
		text:  activeobject.Procedure(t, "text", func(*desk, None) (string, error) { return "text", nil }),
		hold:  hold(t),
	}
}

// set changes a desk.
func (ds desks) set(t *testing.T, o *activeobject.Object[desk], change func(d *desk)) {
	t.Helper()
	_, err := ds.do.Call(background, o, func(d *desk) (int, error) { change(d); return 0, nil })
	require.NoError(t, err)
}

// answers is a mission that ends with a number.
func answers(n int) mission {
	return func(d *desk) (int, error) { d.ran = append(d.ran, fmt.Sprint(n)); return n, nil }
}

// ways are the ways of making a request whose result is waited for.
func ways[A any](op *activeobject.Operation[desk, A, int], o *activeobject.Object[desk]) map[string]func(ctx context.Context, arg A) (int, error) {
	return map[string]func(ctx context.Context, arg A) (int, error){
		"call": func(ctx context.Context, arg A) (int, error) { return op.Call(ctx, o, arg) },
		"try":  func(ctx context.Context, arg A) (int, error) { return op.Try(ctx, o, arg) },
		"send": func(ctx context.Context, arg A) (int, error) { return op.Send(ctx, o, arg).Await(background) },
		"begin": func(ctx context.Context, arg A) (int, error) {
			ticket := op.Begin(ctx, o, arg)
			return ticket.Await(background)
		},
		"select": func(ctx context.Context, arg A) (int, error) {
			c := op.Case(o, arg)
			if i, err := activeobject.Select(ctx, c); i < 0 {
				return 0, err
			}
			return c.Result()
		},
	}
}

// patient leaves out those ways of making a request that do not wait, also in later turns.
func patient[W any](ways map[string]W) map[string]W {
	delete(ways, "try")
	return ways
}

func TestARequestGoesToAnotherEntry(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{})
		for name, way := range patient(ways(ds.do, o)) {
			c := async(func() (int, error) {
				return way(background, func(*desk) (int, error) { return ds.wait.Requeue(answers(7)) })
			})
			waiting(t, o, ds.wait, 1)
			ds.set(t, o, func(d *desk) { d.open = true })
			require.Equal(t, outcome[int]{result: 7}, soon(t, s.system, c), name)
			ds.set(t, o, func(d *desk) { d.open = false })
		}
	})
}

func TestARequestGoesToTheSameEntryAgain(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{open: true})
		for name, way := range patient(ways(ds.wait, o)) {
			c := async(func() (int, error) {
				return way(background, func(d *desk) (int, error) { d.open = false; return ds.wait.Requeue(answers(8)) })
			})
			waiting(t, o, ds.wait, 1)
			ds.set(t, o, func(d *desk) { d.open = true })
			require.Equal(t, outcome[int]{result: 8}, soon(t, s.system, c), name)
		}
	})
}

func TestARequestGoesToAnObjectOfAnotherType(t *testing.T) {
	ds, others := newDesks("desk"), newDesks("other desk")
	type key struct{}
	everywhere(t, func(t *testing.T, s *scene) {
		state := &desk{}
		o, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, others.Type, state)
		ctx := context.WithValue(background, key{}, "kept")
		for name, way := range patient(ways(ds.do, o)) {
			c := async(func() (int, error) {
				return way(ctx, func(*desk) (int, error) {
					return others.block.RequeueTo(other, func(ctx context.Context, d *desk) (int, error) {
						require.Equal(t, "kept", ctx.Value(key{}))
						return ds.do.RequeueTo(o, answers(9))
					})
				})
			})
			waiting(t, other, others.block, 1)
			others.set(t, other, func(d *desk) { d.open = true })
			require.Equal(t, outcome[int]{result: 9}, soon(t, s.system, c), name)
			others.set(t, other, func(d *desk) { d.open = false })
		}
	})
}

func TestARequeuedRequestIsBehindThoseInsideAndBeforeThoseThatArrived(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		state := &desk{}
		o := newObject(t, s, ds.Type, state)
		inside := ds.wait.Send(background, o, answers(1))
		b := newBrake()
		requeued := ds.doCtx.Send(background, o, func(_ context.Context, d *desk) (int, error) {
			close(b.entered)
			<-b.let
			d.open = true
			return ds.wait.Requeue(answers(2))
		})
		soon(t, s.system, b.entered)
		arrived := ds.wait.Send(background, o, answers(3))
		close(b.let)
		for _, f := range []activeobject.Future[int]{inside, requeued, arrived} {
			require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
		}
		<-o.Stop()
		require.Equal(t, []string{"1", "2", "3"}, state.ran)
	})
}

func TestARequestKeepsItsPlaceIfItIsToldTo(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, how := range [][]activeobject.Requeuing{nil, {activeobject.KeepPlace}} {
			state := &desk{}
			o := newObject(t, s, ds.Type, state)
			first := ds.wait.Send(background, o, func(d *desk) (int, error) {
				d.second = true
				return ds.late.Requeue(answers(1), how...)
			})
			second := ds.late.Send(background, o, answers(2))
			ds.set(t, o, func(d *desk) { d.open = true })
			for _, f := range []activeobject.Future[int]{first, second} {
				require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
			}
			<-o.Stop()
			want := []string{"2", "1"}
			if how != nil {
				want = []string{"1", "2"}
			}
			require.Equal(t, want, state.ran)
		}
	})
}

// Any number of requeues in a row runs in the same few frames, on whatever goroutine.
func TestNoStackGrowsByRequeues(t *testing.T) {
	turns := size(100_000, 20_000, 2_000)
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		for name, to := range map[string]func(n int) *activeobject.Object[desk]{
			"one object":  func(int) *activeobject.Object[desk] { return nil },
			"two objects": func(n int) *activeobject.Object[desk] { return []*activeobject.Object[desk]{a, b}[n%2] },
		} {
			left, deepest := 0, 0
			var done chan struct{}
			var turn mission
			turn = func(*desk) (int, error) {
				var pcs [200]uintptr
				deepest = max(deepest, runtime.Callers(0, pcs[:]))
				if left--; left == 0 {
					close(done)
					return 42, nil
				}
				return ds.do.RequeueTo(to(left), turn)
			}
			for way, begin := range map[string]func(){
				"call": func() { ds.do.Call(background, a, turn) },
				"send": func() { ds.do.Send(background, a, turn) },
				"tell": func() { ds.do.Tell(background, a, turn) },
			} {
				left, deepest, done = turns, 0, make(chan struct{})
				go begin()
				soon(t, s.system, done)
				require.Less(t, deepest, 60, "%s, %s", name, way)
			}
		}
	})
}

func TestASenderIsNotKeptByWhatFollows(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{open: true})
		b := newBrake()
		f := ds.do.Send(background, o, func(*desk) (int, error) { // a leaf, which Send may run
			return ds.do.Requeue(func(*desk) (int, error) {
				return ds.block.Requeue(func(context.Context, *desk) (int, error) { close(b.entered); <-b.let; return 1, nil })
			})
		})
		soon(t, s.system, b.entered)
		close(b.let)
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, awaiting(background, f)))
	})
}

func TestARequestThatIsCanceledAfterARequeueSaysWhatRan(t *testing.T) {
	ds, others := newDesks("desk"), newDesks("other")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{}, activeobject.Name("a"))
		other := newObject(t, s, others.Type, &desk{}, activeobject.Name("b"))
		for name, way := range patient(ways(ds.do, o)) {
			for _, to := range []func() (int, error){
				func() (int, error) { return ds.wait.Requeue(answers(1)) },
				func() (int, error) { return others.wait.RequeueTo(other, answers(1)) },
			} {
				ctx, cancel := context.WithCancel(background)
				c := async(func() (int, error) {
					return way(ctx, func(*desk) (int, error) {
						return ds.do.Requeue(func(*desk) (int, error) { return to() })
					})
				})
				eventually(t, "it waits", func() bool { return ds.wait.Waiting(o)+others.wait.Waiting(other) == 1 })
				cancel()
				err := soon(t, s.system, c).err
				var requeued *activeobject.RequeuedError
				require.ErrorAs(t, err, &requeued, name)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, []string{"a.do", "a.do"}, requeued.Ran)
				require.EqualError(t, err, "context canceled (after a.do, a.do had run)")
				require.Zero(t, ds.wait.Waiting(o)+others.wait.Waiting(other))
			}
		}
	})
}

// Wherever a request fails, all bodies are listed that have run for it, at whichever
// objects, in order.
func TestARequestThatFailsAtAnotherObjectSaysWhatRanAtTheFirst(t *testing.T) {
	ds, others := newDesks("desk"), newDesks("other")
	fragile := activeobject.Entry(others.Type, "fragile", func(*desk, int) (int, error) { return 0, nil }).
		When("sound", func(*desk) bool { panic("cracked") })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{}, activeobject.Name("a"))
		other := newObject(t, s, others.Type, &desk{}, activeobject.Name("b"))
		third := newObject(t, s, ds.Type, &desk{}, activeobject.Name("c"))
		gone := newObject(t, s, ds.Type, &desk{}, activeobject.Name("gone"))
		<-gone.Stop()
		foreign := newDesks("foreign")
		for name, way := range ways(ds.do, o) {
			for end, last := range map[string]struct {
				turn  mission
				ran   []string
				waits bool
				cause any
			}{
				"waits where it is":  {func(*desk) (int, error) { return others.wait.Requeue(answers(1)) }, []string{"a.do", "b.do", "b.do"}, true, nil},
				"waits at a third":   {func(*desk) (int, error) { return ds.wait.RequeueTo(third, answers(1)) }, []string{"a.do", "b.do", "b.do"}, true, nil},
				"goes to a stopped":  {func(*desk) (int, error) { return ds.do.RequeueTo(gone, answers(1)) }, []string{"a.do", "b.do", "b.do"}, false, new(*activeobject.StoppedError)},
				"its guard panics":   {func(*desk) (int, error) { return fragile.Requeue(1) }, []string{"a.do", "b.do", "b.do"}, false, new(*activeobject.GuardError)},
				"is of another type": {func(*desk) (int, error) { return foreign.do.RequeueTo(other, answers(1)) }, []string{"a.do", "b.do", "b.do"}, false, new(*activeobject.TypeError)},
				"has no such turn":   {func(*desk) (int, error) { return foreign.do.Requeue(answers(1)) }, []string{"a.do", "b.do", "b.do"}, false, new(*activeobject.TypeError)},
				"a third, and waits": {func(*desk) (int, error) {
					return ds.do.RequeueTo(third, func(*desk) (int, error) { return ds.wait.Requeue(answers(1)) })
				}, []string{"a.do", "b.do", "b.do", "c.do"}, true, nil},
			} {
				ctx, cancel := context.WithCancel(background)
				c := async(func() (int, error) {
					return way(ctx, func(*desk) (int, error) {
						return others.do.RequeueTo(other, func(*desk) (int, error) { return others.do.Requeue(last.turn) })
					})
				})
				waits := last.waits && name != "try" // which does not
				if waits {
					eventually(t, "it waits", func() bool {
						return others.wait.Waiting(other)+ds.wait.Waiting(third) == 1
					})
					cancel()
				}
				err := soon(t, s.system, c).err
				var requeued *activeobject.RequeuedError
				require.ErrorAs(t, err, &requeued, "%s, %s", name, end)
				require.Equal(t, last.ran, requeued.Ran, "%s, %s", name, end)
				require.Zero(t, requeued.Earlier)
				switch {
				case waits:
					require.ErrorIs(t, err, context.Canceled)
				case last.waits:
					require.ErrorIs(t, err, activeobject.ErrRefused, end)
				default:
					require.ErrorAs(t, err, last.cause, "%s, %s", name, end)
				}
				require.NotErrorAs(t, requeued.Cause, new(*activeobject.RequeuedError))
				cancel()
			}
		}
	})
}

// Of very many bodies the last are listed, and the others counted.
func TestOfVeryManyTurnsTheLastAreListed(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a := newObject(t, s, ds.Type, &desk{}, activeobject.Name("a"))
		b := newObject(t, s, ds.Type, &desk{}, activeobject.Name("b"))
		gone := newObject(t, s, ds.Type, &desk{})
		<-gone.Stop()
		for name, way := range ways(ds.do, a) {
			for _, there := range []int{1, 100, 200, 1000} {
				left := there
				var turn mission
				turn = func(*desk) (int, error) {
					if left--; left > 0 {
						return ds.do.Requeue(turn)
					}
					return ds.do.RequeueTo(gone, answers(1))
				}
				_, err := way(background, func(*desk) (int, error) { return ds.do.RequeueTo(b, turn) })
				var requeued *activeobject.RequeuedError
				require.ErrorAs(t, err, &requeued, name)
				require.Equal(t, there+1, requeued.Earlier+len(requeued.Ran), name)
				require.LessOrEqual(t, len(requeued.Ran), 64)
				require.Equal(t, "b.do", requeued.Ran[len(requeued.Ran)-1])
			}
		}
	})
}

// If a body fails after the requeue of a tell, that is logged, as no caller waits.
func TestATellDoesNotHearOfAFailureAfterARequeue(t *testing.T) {
	ds := newDesks("desk")
	broken := activeobject.Entry(ds.Type, "broken", func(*desk, int) (int, error) { return 0, nil }).
		When("sound", func(*desk) bool { panic("cracked") })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{})
		for _, turn := range []mission{
			func(*desk) (int, error) { return ds.do.Requeue(func(*desk) (int, error) { panic("burst") }) },
			func(*desk) (int, error) { return broken.Requeue(1) },
		} {
			require.NoError(t, ds.do.Tell(background, o, turn))
		}
	})
}

// What is committed is so for one wait, also where the caller goes to another object.
func TestWhatFollowsACommittedWaitElsewhereCanBeWithdrawn(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		for name, way := range patient(ways(ds.do, o)) {
			ctx, cancel := context.WithCancel(background)
			c := async(func() (int, error) {
				return way(ctx, func(*desk) (int, error) {
					return ds.do.RequeueTo(other, func(*desk) (int, error) { return ds.wait.Requeue(answers(1)) }, activeobject.Commit)
				})
			})
			waiting(t, other, ds.wait, 1)
			cancel()
			require.ErrorIs(t, soon(t, s.system, c).err, context.Canceled, name)
		}
	})
}

func TestACommittedRequestCannotBeWithdrawn(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{})
		for name, way := range patient(ways(ds.do, o)) {
			ctx, cancel := context.WithCancel(background)
			c := async(func() (int, error) {
				return way(ctx, func(*desk) (int, error) { return ds.wait.Requeue(answers(5), activeobject.Commit) })
			})
			waiting(t, o, ds.wait, 1)
			cancel()
			ds.set(t, o, func(d *desk) { require.Equal(t, 1, d.Waiting(ds.wait)); d.open = true })
			require.Equal(t, outcome[int]{result: 5}, soon(t, s.system, c), name)
			ds.set(t, o, func(d *desk) { d.open = false })
		}
		f := ds.do.Send(background, o, func(*desk) (int, error) { return ds.wait.Requeue(answers(6), activeobject.Commit) })
		waiting(t, o, ds.wait, 1)
		require.False(t, f.Withdraw())
		// What follows may be withdrawn again.
		g := ds.do.Send(background, o, func(*desk) (int, error) {
			return ds.wait.Requeue(func(*desk) (int, error) { return ds.late.Requeue(answers(7)) }, activeobject.Commit)
		})
		ds.set(t, o, func(d *desk) { d.open = true })
		waiting(t, o, ds.late, 1)
		require.True(t, g.Withdraw())
		_, err := g.Await(background)
		require.ErrorAs(t, err, new(*activeobject.RequeuedError))
		require.Equal(t, outcome[int]{result: 6}, soon(t, s.system, awaiting(background, f)))
	})
}

func TestARequeueToAStoppedObjectFails(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o, gone := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		<-gone.Stop()
		for name, way := range ways(ds.do, o) {
			_, err := way(background, func(*desk) (int, error) { return ds.do.RequeueTo(gone, answers(1)) })
			require.ErrorIs(t, err, activeobject.ErrStopped, name)
			require.ErrorAs(t, err, new(*activeobject.RequeuedError))
		}
		// And one that waits, of an object that stops.
		for name, way := range patient(ways(ds.do, o)) {
			last := newObject(t, s, ds.Type, &desk{})
			c := async(func() (int, error) {
				return way(background, func(*desk) (int, error) { return ds.wait.RequeueTo(last, answers(1), activeobject.Commit) })
			})
			waiting(t, last, ds.wait, 1)
			last.Stop()
			require.ErrorIs(t, soon(t, s.system, c).err, activeobject.ErrStopped, name)
		}
	})
}

func TestTheResultOfATargetMustFit(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ds.Type, &desk{})
		for name, way := range ways(ds.do, o) {
			_, err := way(background, func(*desk) (int, error) { _, err := ds.text.Requeue(nil); return 0, err })
			var wrong *activeobject.BadRequeueError
			require.ErrorAs(t, err, &wrong, name)
			_, err = way(background, func(*desk) (int, error) {
				_, err := ds.do.Requeue(answers(1))
				return 3, fmt.Errorf("wrapped: %w", err)
			})
			require.ErrorContains(t, err, "wrapped: sluice: a requeue to do, which a body is to return as it is", name)
		}
		require.NoError(t, ds.do.Tell(background, o, func(*desk) (int, error) { _, err := ds.text.Requeue(nil); return 0, err }))
		foreign := newDesks("foreign")
		_, err := ds.do.Call(background, o, func(*desk) (int, error) { return foreign.do.Requeue(answers(1)) })
		require.ErrorAs(t, err, new(*activeobject.TypeError))
	})
}

func TestARequeueThatIsAskedForTwiceIsTwo(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		n := 0
		_, again := ds.wait.Requeue(func(*desk) (int, error) { n++; return n, nil })
		send := func(o *activeobject.Object[desk]) activeobject.Future[int] {
			return ds.do.Send(background, o, func(*desk) (int, error) { return 0, again })
		}
		a, b, c := send(o), send(o), send(other)
		waiting(t, o, ds.wait, 2)
		waiting(t, other, ds.wait, 1)
		ds.set(t, o, func(d *desk) { d.open = true })
		ra, rb := soon(t, s.system, awaiting(background, a)), soon(t, s.system, awaiting(background, b))
		require.Equal(t, []int{1, 2}, []int{ra.result, rb.result})
		ds.set(t, other, func(d *desk) { d.open = true })
		require.Equal(t, 3, soon(t, s.system, awaiting(background, c)).result)
	})
}

type annex struct {
	desk desk
}

func TestARequeueObeysTheDerivedType(t *testing.T) {
	ds := newDesks("desk")
	same := activeobject.Derive(ds.Type, "strict desk", activeobject.Same[desk]).Strengthen("second", func(d *desk) bool { return d.second }, ds.do)
	other := activeobject.Derive(ds.Type, "annex", func(a *annex) *desk { return &a.desk })
	do := activeobject.In(other, ds.do)
	// No handle of wait has been made for the annex.
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, same, &desk{open: true})
		c := calling(background, o, ds.do, func(*desk) (int, error) { return ds.wait.Requeue(answers(1)) })
		waiting(t, o, ds.wait, 1)
		_, err := ds.do.Call(background, o, func(d *desk) (int, error) { d.second = true; return 0, nil })
		require.NoError(t, err)
		require.Equal(t, 1, soon(t, s.system, c).result)

		a := newObject(t, s, other, &annex{})
		left := 1000
		var turn mission
		turn = func(*desk) (int, error) {
			if left--; left > 0 {
				return ds.wait.Requeue(turn)
			}
			return 11, nil
		}
		c = calling(background, a, do, func(*desk) (int, error) { return ds.wait.Requeue(turn) })
		eventually(t, "it waits", func() bool { return len(a.Explain().Waiting) == 1 })
		_, err = do.Call(background, a, func(d *desk) (int, error) { d.open = true; return 0, nil })
		require.NoError(t, err)
		require.Equal(t, outcome[int]{result: 11}, soon(t, s.system, c))
		require.Zero(t, left)

		answer, err := s.system.Actors().Root.RequestFuture(a.PID(), &actor.Invoke{Operation: "do", Argument: mission(func(*desk) (int, error) { return ds.wait.Requeue(answers(12)) })}, patience).Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 12}, answer)
	})
}

func TestAMessageIsAnsweredAfterARequeue(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{open: true})
		for _, e := range []mission{
			func(*desk) (int, error) { return ds.late.Requeue(answers(1)) },
			func(*desk) (int, error) {
				return ds.wait.RequeueTo(other, func(*desk) (int, error) { return ds.late.RequeueTo(o, answers(1)) })
			},
		} {
			f := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "do", Argument: e}, patience)
			waiting(t, o, ds.late, 1)
			ds.set(t, o, func(d *desk) { d.second = true })
			answer, err := f.Result()
			require.NoError(t, err)
			require.Equal(t, &actor.Reply{Value: 1}, answer)
			ds.set(t, o, func(d *desk) { d.second = false })
		}
	})
}

func TestABodyThatFailsAfterARequeueFailsItsRequest(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		o, other := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		for name, way := range ways(ds.do, o) {
			for _, to := range []*activeobject.Object[desk]{nil, other} {
				_, err := way(background, func(*desk) (int, error) {
					return ds.do.RequeueTo(to, func(*desk) (int, error) { panic("burst") })
				})
				require.ErrorAs(t, err, new(*activeobject.PanicError), name)
				out := soon(t, s.system, async(func() (int, error) {
					return way(background, func(*desk) (int, error) {
						return ds.doCtx.RequeueTo(to, func(context.Context, *desk) (int, error) { runtime.Goexit(); return 0, nil })
					})
				}))
				if out.err != errEnded {
					require.ErrorAs(t, out.err, new(*activeobject.ExitError), name)
				}
				ds.set(t, o, func(*desk) {})
				ds.set(t, other, func(*desk) {})
			}
		}
	})
}

// The keys that a body can have opened are its own, not those of what it asks for.
func TestABodyThatIsRequeuedOpensWhatItDeclares(t *testing.T) {
	type stops struct{ at int }
	typ := activeobject.NewType[stops]("lift")
	stop := activeobject.EntryFamily(typ, "stop", func(_ *stops, floor int) (int, error) { return floor, nil }, func(floor int) int { return floor }).
		WhenKey("there", func(s *stops, floor int) bool { return s.at == floor })
	rest := activeobject.Procedure(typ, "rest", func(s *stops, _ None) (int, error) { return s.at, nil })
	move := activeobject.ProcedureCtx(typ, "move", func(s *stops, _ context.Context, floor int) (int, error) {
		s.at = floor
		return rest.Requeue(nil)
	})
	leap := activeobject.Procedure(typ, "leap", func(s *stops, floor int) (int, error) { s.at = floor; return rest.Requeue(nil) })
	for _, op := range []*activeobject.Operation[stops, int, int]{move, leap} {
		activeobject.Opens(op, stop, func(floor int) int { return floor })
	}
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &stops{}, activeobject.CheckOpens())
		for i, op := range []*activeobject.Operation[stops, int, int]{move, leap} {
			floor := 10 + i
			f := stop.Send(background, o, floor)
			waiting(t, o, stop.Operation, 1)
			at, err := op.Call(background, o, floor)
			require.NoError(t, err)
			require.Equal(t, floor, at)
			require.Equal(t, outcome[int]{result: floor}, soon(t, s.system, awaiting(background, f)))
		}
	})
}

// A body that waits for a request that is then requeued to the body's own object must not wait for
// ever.
func TestARequestThatIsRequeuedToTheObjectThatAwaitsItIsADeadlock(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		home := newObject(t, s, ds.Type, &desk{}, activeobject.Name("home"))
		away := newObject(t, s, ds.Type, &desk{}, activeobject.Name("away"))
		back := func(*desk) (int, error) { return ds.do.RequeueTo(home, answers(1)) }
		awaits := map[string]func(ctx context.Context) error{
			"await": func(ctx context.Context) error {
				_, err := ds.wait.Send(ctx, away, back).Await(ctx)
				return err
			},
			"redeem": func(ctx context.Context) error {
				ticket := ds.wait.Begin(ctx, away, back)
				_, err := ticket.Await(ctx)
				return err
			},
			"all": func(ctx context.Context) error {
				_, err := actor.All(ds.wait.Send(ctx, away, back), ds.wait.Send(ctx, away, back)).Await(ctx)
				return err
			},
			"call": func(ctx context.Context) error { _, err := ds.wait.Call(ctx, away, back); return err },
			"committed call": func(ctx context.Context) error {
				_, err := ds.wait.Call(ctx, away, func(*desk) (int, error) {
					return ds.do.RequeueTo(home, answers(1), activeobject.Commit)
				})
				return err
			},
			"select": func(ctx context.Context) error {
				c := ds.wait.Case(away, back)
				if i, err := activeobject.Select(ctx, c); i < 0 {
					return err
				}
				_, err := c.Result()
				return err
			},
		}
		for name, await := range awaits {
			ds.set(t, away, func(d *desk) { d.open = false })
			c := calling(background, home, ds.doCtx, func(ctx context.Context, _ *desk) (int, error) { return 0, await(ctx) })
			eventually(t, "it waits", func() bool {
				return ds.wait.Waiting(away) > 0 && len(home.Explain().Running) == 1 && len(home.Explain().Running[0].Waits) > 0
			})
			ds.set(t, away, func(d *desk) { d.open = true })
			err := soon(t, s.system, c).err
			require.ErrorAs(t, err, new(*activeobject.DeadlockError), name)
			ds.set(t, home, func(*desk) {})
		}
	})
}

// A requeue may close several circles at once: here one of a body that waits for itself, and one of two bodies.
func TestARequeueThatClosesTwoCirclesBreaksBoth(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		home := newObject(t, s, ds.Type, &desk{}, activeobject.Name("home"))
		there := newObject(t, s, ds.Type, &desk{}, activeobject.Name("there"))
		away := newObject(t, s, ds.Type, &desk{}, activeobject.Name("away"))
		f := ds.wait.Send(background, away, func(*desk) (int, error) { return ds.do.RequeueTo(there, answers(1)) })
		waits := func(o *activeobject.Object[desk], n int) {
			eventually(t, "it waits", func() bool {
				running := o.Explain().Running
				return len(running) == 1 && len(running[0].Waits) == n
			})
		}
		await := func(ctx context.Context, _ *desk) (int, error) { return f.Await(ctx) }
		first := calling(background, home, ds.doCtx, await)
		waits(home, 1)
		second := calling(background, there, ds.doCtx, func(ctx context.Context, d *desk) (int, error) {
			awaits := async(func() (int, error) { return await(ctx, d) })
			waits(there, 1)
			_, err := ds.do.Call(ctx, home, answers(2))
			return 0, errors.Join(err, (<-awaits).err)
		})
		waits(there, 2)
		ds.set(t, away, func(d *desk) { d.open = true })
		require.ErrorAs(t, soon(t, s.system, first).err, new(*activeobject.DeadlockError))
		require.ErrorAs(t, soon(t, s.system, second).err, new(*activeobject.DeadlockError))
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, awaiting(background, f)))
	})
}

func TestARequeueToAFullQueueIsRefused(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.Wait} {
			o := newObject(t, s, ds.Type, &desk{})
			full := newObject(t, s, ds.Type, &desk{}, activeobject.Bound(1, overflow))
			first := ds.wait.Send(background, full, answers(1))
			waiting(t, full, ds.wait, 1)
			for name, way := range patient(ways(ds.do, o)) {
				_, err := way(background, func(*desk) (int, error) { return ds.wait.RequeueTo(full, answers(2)) })
				require.ErrorIs(t, err, activeobject.ErrFull, name)
				require.ErrorAs(t, err, new(*activeobject.RequeuedError))
			}
			_, err := ds.do.Call(background, full, func(*desk) (int, error) { return ds.wait.Requeue(answers(2)) })
			require.ErrorIs(t, err, activeobject.ErrFull)
			ds.set(t, full, func(d *desk) { d.open = true })
			require.Equal(t, 1, soon(t, s.system, awaiting(background, first)).result)
		}
	})
}

// A tell that a full queue turns away is over before Tell returns, and its record in
// use again.
func TestManyTellsToAFullQueue(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest} {
			o := newObject(t, s, ds.Type, &desk{}, activeobject.Bound(2, overflow))
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 200 {
						ds.wait.Tell(background, o, answers(1))
						ds.wait.Send(background, o, answers(2))
						ds.do.Call(background, o, func(d *desk) (int, error) { d.open = !d.open; return 0, nil })
					}
				})
			}
			all.Wait()
			o.Stop()
		}
	})
}

func TestRequeuesAndTheEndOfTheirContextRace(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ds.Type, &desk{}), newObject(t, s, ds.Type, &desk{})
		var turn func(n int) mission
		turn = func(n int) mission {
			return func(*desk) (int, error) {
				to := []*activeobject.Object[desk]{a, b, nil}[n%3]
				if n > 20 {
					return ds.late.RequeueTo(to, answers(1)) // where it waits for ever
				}
				return ds.do.RequeueTo(to, turn(n+1))
			}
		}
		var all sync.WaitGroup
		for _, o := range []*activeobject.Object[desk]{a, b} {
			for name, way := range ways(ds.do, o) {
				all.Go(func() {
					for i := range 60 {
						ctx, cancel := context.WithTimeout(background, time.Duration(i)*time.Microsecond)
						if _, err := way(ctx, turn(i%3)); !errors.Is(err, context.DeadlineExceeded) && !(name == "try" && errors.Is(err, activeobject.ErrRefused)) {
							t.Errorf("%s: %v", name, err)
						}
						cancel()
					}
				})
			}
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		soon(t, s.system, done)
		require.Zero(t, ds.late.Waiting(a)+ds.late.Waiting(b)+ds.do.Waiting(a)+ds.do.Waiting(b))
	})
}

type origin struct{ n int }

type destination struct{}

// A request that is requeued to another object is carried there by the owner of the first. The
// guards at the second are evaluated by another goroutine: one that ends the goroutine leaves the
// first object as it is.
func TestTheGuardAtTheDestinationOfARequeueEndsNoOwnerOfTheOrigin(t *testing.T) {
	for _, leaf := range []bool{true, false} {
		t.Run(fmt.Sprintf("leaf %v", leaf), func(t *testing.T) {
			there := activeobject.NewType[destination]("destination")
			entry := activeobject.Entry(there, "entry", func(*destination, None) (None, error) { return nil, nil }).
				When("exits", func(*destination) bool { runtime.Goexit(); return true })
			here := activeobject.NewType[origin]("origin")
			started, release := make(chan struct{}), make(chan struct{})
			hold := activeobject.Procedure(here, "hold", func(*origin, None) (None, error) { close(started); <-release; return nil, nil })
			next := activeobject.Procedure(here, "next", func(o *origin, _ None) (None, error) { o.n++; return nil, nil })
			system := actor.NewSystem(actor.Logger(quiet))
			defer system.Close(background)
			b := activeobject.Must(activeobject.New(system, there, &destination{}))
			var away *activeobject.Operation[origin, None, None]
			if leaf {
				away = activeobject.Procedure(here, "away", func(*origin, None) (None, error) { return entry.RequeueTo(b, nil) })
			} else {
				away = activeobject.ProcedureCtx(here, "away", func(*origin, context.Context, None) (None, error) { return entry.RequeueTo(b, nil) })
			}
			a := activeobject.Must(activeobject.New(system, here, &origin{}))
			go hold.Call(background, a, nil)
			<-started
			moved := away.Send(background, a, nil)
			follows := next.Send(background, a, nil)
			close(release)
			ctx, cancel := context.WithTimeout(background, patience)
			defer cancel()
			_, err := follows.Await(ctx)
			require.NoError(t, err)
			_, err = moved.Await(ctx)
			require.ErrorAs(t, err, new(*mailbox.GuardError))
		})
	}
}
