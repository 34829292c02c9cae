package activeobject_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// dam is the object of many tests: its guard counts its evaluations, and
// its bodies write down that they ran. Nothing in it is synchronized: that is
// what the objects are for, and the race detector watches.
type dam struct {
	activeobject.Queues
	level int
	asked int
	log   []string
}

func (d *dam) wet() bool { d.asked++; return d.level > 0 }

func (d *dam) reaches(n int) bool { d.asked++; return d.level >= n }

func (d *dam) drain() { d.level-- }

func (d *dam) fill(n int) { d.level += n }

func (d *dam) note(s string) { d.log = append(d.log, s) }

func TestGuardsAreReconsideredAfterAProcedureNotAfterAFunction(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	drain := activeobject.Entry(dams, "drain", activeobject.Plain((*dam).drain)).When("wet", (*dam).wet)
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))
	asked := activeobject.Function(dams, "asked", activeobject.Result(func(d *dam) int { return d.asked }))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{level: -20})
		drained := calling(background, o, drain, nil)
		waiting(t, o, drain, 1)

		before, _ := asked.Call(background, o, nil)
		for range 10 {
			after, _ := asked.Call(background, o, nil)
			require.Equal(t, before, after, "a function had the guard asked")
		}
		for i := range 10 {
			fill.Call(background, o, 1)
			after, _ := asked.Call(background, o, nil)
			require.Equal(t, before+i+1, after, "a procedure has the guard asked once")
		}
		fill.Call(background, o, 100)
		require.NoError(t, soon(t, s.system, drained).err)
	})
}

func TestAStateGuardIsEvaluatedOncePerReconsiderationHoweverManyWait(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	drain := activeobject.Entry(dams, "drain", activeobject.Plain((*dam).drain)).When("wet", (*dam).wet)
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))
	asked := activeobject.Function(dams, "asked", activeobject.Result(func(d *dam) int { return d.asked }))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{level: -1})
		const waiters = 1000
		for range waiters {
			drain.Send(background, o, nil)
		}
		waiting(t, o, drain, waiters)

		before, _ := asked.Call(background, o, nil)
		fill.Call(background, o, 1) // to 0: shut still
		after, _ := asked.Call(background, o, nil)
		require.Equal(t, 1, after-before, "a pass that opens nothing")

		before = after
		fill.Call(background, o, 3)
		waiting(t, o, drain, waiters-3)
		after, _ = asked.Call(background, o, nil)
		require.Equal(t, 4, after-before, "three that start, and the answer that shuts the gate again")
	})
}

func TestAnArgumentGuardIsEvaluatedOncePerWaiterAndReconsideration(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	swim := activeobject.Entry(dams, "swim", func(*dam, int) (None, error) { return nil, nil }).WhenArg("deep enough", (*dam).reaches)
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))
	asked := activeobject.Function(dams, "asked", activeobject.Result(func(d *dam) int { return d.asked }))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		const waiters = 100
		for i := range waiters {
			swim.Send(background, o, 1000+i)
		}
		waiting(t, o, swim, waiters)
		for range 3 {
			before, _ := asked.Call(background, o, nil)
			fill.Call(background, o, 1)
			after, _ := asked.Call(background, o, nil)
			require.Equal(t, waiters, after-before)
		}
	})
}

func TestAWaiterWhoseOwnGuardIsFalseBlocksNoOther(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	swim := activeobject.Entry(dams, "swim", func(*dam, int) (None, error) { return nil, nil }).WhenArg("deep enough", (*dam).reaches)

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{level: 5})
		swim.Send(background, o, 10)
		waiting(t, o, swim, 1)
		_, err := swim.Call(background, o, 5)
		require.NoError(t, err)
		_, err = swim.Try(background, o, 4)
		require.NoError(t, err)
		require.Equal(t, 1, swim.Waiting(o))
	})
}

// All of And's parts must hold; added guards are joined by and.
func TestAddedGuardsMustAllHold(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	swim := activeobject.Entry(dams, "swim", func(*dam, int) (None, error) { return nil, nil }).
		When("wet", (*dam).wet).
		WhenArg("deep enough", (*dam).reaches)
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		f := swim.Send(background, o, 5)
		for range 4 {
			fill.Call(background, o, 1)
		}
		require.False(t, f.Ready())
		require.Equal(t, 1, swim.Waiting(o))
		fill.Call(background, o, 1)
		require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
	})
}

func TestAWaiterWhoseGuardHasOpenedGoesBeforeNewcomers(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	drain := activeobject.Entry(dams, "drain", func(d *dam, name string) (None, error) { d.drain(); d.note(name); return nil, nil }).
		When("wet", (*dam).wet)
	note := activeobject.Procedure(dams, "note", activeobject.Arg((*dam).note))
	// fill opens the guard, but not before the test says so.
	fill := activeobject.ProcedureCtx(dams, "fill", func(d *dam, _ context.Context, b *brake) (None, error) {
		close(b.entered)
		<-b.let
		d.level++
		return nil, nil
	})
	log := activeobject.Function(dams, "log", activeobject.Result(func(d *dam) []string { return d.log }))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		waiter := drain.Send(background, o, "waiter")
		waiting(t, o, drain, 1)

		b := newBrake()
		filled := calling(background, o, fill, b)
		soon(t, s.system, b.entered)
		// These come while the gate is being opened. They find a closed door.
		first := calling(background, o, note, "newcomer")
		waiting(t, o, note, 1)
		second := calling(background, o, drain, "newcomer to the entry")
		waiting(t, o, drain, 2)
		close(b.let)
		soon(t, s.system, filled)
		soon(t, s.system, first)
		soon(t, s.system, awaiting(background, waiter))

		l, _ := log.Call(background, o, nil)
		require.Equal(t, []string{"waiter", "newcomer"}, l)
		require.Equal(t, 1, drain.Waiting(o), "the water was the waiter's")
		o.Stop()
		require.ErrorIs(t, soon(t, s.system, second).err, activeobject.ErrStopped)
	})
}

// turnstile lets the requests pass that wait when it is released, and no others.
type turnstile struct {
	activeobject.Queues
	open   bool
	passed int
}

// newTurnstiles declares a type of turnstile for one test.
func newTurnstiles() (typ *activeobject.Type[turnstile], pass *activeobject.Operation[turnstile, None, int], release *activeobject.Operation[turnstile, *brake, None]) {
	typ = activeobject.NewType[turnstile]("turnstile")
	pass = activeobject.Entry(typ, "pass", activeobject.ResultError(func(s *turnstile) (int, error) {
		if s.Waiting(pass) == 0 {
			s.open = false // the last one shuts it
		}
		s.passed++
		return s.passed, nil
	})).When("open", func(s *turnstile) bool { return s.open })
	release = activeobject.ProcedureCtx(typ, "release", func(s *turnstile, _ context.Context, b *brake) (None, error) {
		if b != nil {
			close(b.entered)
			<-b.let
		}
		s.open = s.Waiting(pass) > 0
		return nil, nil
	})
	return typ, pass, release
}

func TestABurstPassesWholeAndLatecomersStayOut(t *testing.T) {
	typ, pass, release := newTurnstiles()
	passed := activeobject.Function(typ, "passed", activeobject.Result(func(s *turnstile) int { return s.passed }))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &turnstile{})
		const burst, late = 50, 20
		for range burst {
			pass.Send(background, o, nil)
		}
		waiting(t, o, pass, burst)
		b := newBrake()
		released := calling(background, o, release, b)
		soon(t, s.system, b.entered)
		var latecomers []activeobject.Future[int]
		for range late {
			latecomers = append(latecomers, pass.Send(background, o, nil))
		}
		require.Equal(t, burst+late, pass.Waiting(o))
		close(b.let)
		soon(t, s.system, released)
		waiting(t, o, pass, late)
		n, _ := passed.Call(background, o, nil)
		require.Equal(t, burst, n)
		for _, f := range latecomers {
			require.False(t, f.Ready())
		}
		_, err := release.Call(background, o, nil)
		require.NoError(t, err)
		for i, f := range latecomers {
			require.Equal(t, outcome[int]{burst + i + 1, nil}, soon(t, s.system, awaiting(background, f)))
		}
		// Nothing waits, so that a release opens for no request.
		release.Call(background, o, nil)
		_, err = pass.Try(background, o, nil)
		require.ErrorIs(t, err, activeobject.ErrRefused)
	})
}

func TestBurstsUnderContentionLoseAndInventNoRequest(t *testing.T) {
	typ, pass, release := newTurnstiles()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &turnstile{}
		o := newObject(t, s, typ, state)
		const callers, rounds = 8, 200
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range rounds {
					pass.Call(background, o, nil)
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for released := false; !released; {
			select {
			case <-done:
				released = true
			default:
				release.Call(background, o, nil)
				runtime.Gosched()
			}
		}
		<-o.Stop()
		require.Equal(t, callers*rounds, state.passed)
	})
}

func TestTheArrivingRequestCountsItself(t *testing.T) {
	// One that comes alone finds itself waiting, whatever way it comes.
	var alone, empty *activeobject.Operation[dam, None, None]
	dams := activeobject.NewType[dam]("dam")
	alone = activeobject.Entry(dams, "alone", activeobject.Plain(func(*dam) {})).
		WhenWaiting("one waits", func(d *dam) bool { return d.Waiting(alone) == 1 })
	empty = activeobject.Entry(dams, "empty", activeobject.Plain(func(*dam) {})).
		WhenWaiting("none waits", func(d *dam) bool { return d.Waiting(empty) == 0 })

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		require.NoError(t, soon(t, s.system, calling(background, o, alone, nil)).err)

		f := empty.Send(background, o, nil)
		require.False(t, f.Ready(), "the request did not count itself: Send")
		c := calling(background, o, empty, nil)
		eventually(t, "the call waits, or has returned", func() bool { return len(c) > 0 || empty.Waiting(o) == 2 })
		require.Empty(t, c, "the request did not count itself: Call")
	})
}

func TestATryDoesNotCountItself(t *testing.T) {
	var empty *activeobject.Operation[dam, None, None]
	dams := activeobject.NewType[dam]("dam")
	empty = activeobject.Entry(dams, "empty", activeobject.Plain(func(*dam) {})).
		WhenWaiting("none waits", func(d *dam) bool { return d.Waiting(empty) == 0 })

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		_, err := empty.Try(background, o, nil)
		require.NoError(t, err)
	})
}

func TestBodiesCountThoseInsideAndNotThemselves(t *testing.T) {
	var drain *activeobject.Operation[dam, None, int]
	dams := activeobject.NewType[dam]("dam")
	drain = activeobject.Entry(dams, "drain", activeobject.Result(func(d *dam) int { d.level--; return d.Waiting(drain) })).
		When("wet", (*dam).wet)
	var count *activeobject.Operation[dam, *brake, int]
	count = activeobject.ProcedureCtx(dams, "count", func(d *dam, _ context.Context, b *brake) (int, error) {
		close(b.entered)
		<-b.let
		return 100*d.Waiting(count) + d.Waiting(drain), nil
	})
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))

	everywhere(t, func(t *testing.T, s *scene) {
		require.Zero(t, (&dam{}).Waiting(drain), "before New no request waits")
		o := newObject(t, s, dams, &dam{})
		a, b := drain.Send(background, o, nil), drain.Send(background, o, nil)
		waiting(t, o, drain, 2)
		br := newBrake()
		counted := calling(background, o, count, br)
		soon(t, s.system, br.entered)
		late := drain.Send(background, o, nil)
		require.Equal(t, 3, drain.Waiting(o), "from outside, all that wait are seen")
		close(br.let)
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, counted), "from inside, only those inside")
		waiting(t, o, drain, 3)
		fill.Call(background, o, 3)
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, awaiting(background, a)))
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, b)))
		require.Equal(t, outcome[int]{0, nil}, soon(t, s.system, awaiting(background, late)))
	})
}

func TestARequestThatHasJoinedStaysCountedWhenItIsWithdrawn(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	drain := activeobject.Entry(dams, "drain", activeobject.Plain((*dam).drain)).When("wet", (*dam).wet)
	count := activeobject.ProcedureCtx(dams, "count", func(d *dam, _ context.Context, b *brake) (int, error) {
		if b != nil {
			close(b.entered)
			<-b.let
		}
		return 10*int(d.Joined(drain)) + d.Waiting(drain), nil
	})
	everywhere(t, func(t *testing.T, s *scene) {
		require.Zero(t, (&dam{}).Joined(drain), "before New no request waits")
		o := newObject(t, s, dams, &dam{})
		first, second := drain.Send(background, o, nil), drain.Send(background, o, nil)
		waiting(t, o, drain, 2)
		br := newBrake()
		counted := calling(background, o, count, br)
		soon(t, s.system, br.entered)
		late := drain.Send(background, o, nil)
		require.True(t, first.Withdraw())
		close(br.let)
		require.Equal(t, outcome[int]{21, nil}, soon(t, s.system, counted), "a request that arrives while a body runs is in the entry queue")
		waiting(t, o, drain, 2)
		n, err := count.Call(background, o, nil)
		require.NoError(t, err)
		require.Equal(t, 32, n)
		require.True(t, second.Withdraw() && late.Withdraw())
	})
}

func TestAWithdrawalOpensAGuardOverWaitingCounts(t *testing.T) {
	var high, low *activeobject.Operation[dam, None, None]
	dams := activeobject.NewType[dam]("dam")
	high = activeobject.Entry(dams, "high", activeobject.Plain(func(*dam) {})).When("wet", (*dam).wet)
	low = activeobject.Entry(dams, "low", activeobject.Plain(func(*dam) {})).
		WhenWaiting("no high waits", func(d *dam) bool { return d.Waiting(high) == 0 })

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		ctx, cancel := context.WithCancel(background)
		h := calling(ctx, o, high, nil)
		waiting(t, o, high, 1)
		h2 := high.Send(background, o, nil)
		waiting(t, o, high, 2)
		l := calling(background, o, low, nil)
		waiting(t, o, low, 1)
		cancel()
		require.ErrorIs(t, soon(t, s.system, h).err, context.Canceled)
		require.Equal(t, 1, low.Waiting(o))
		require.True(t, h2.Withdraw())
		require.NoError(t, soon(t, s.system, l).err)
	})
}

func TestTheLastArrivalRunsTheRequestsThatItOpensFor(t *testing.T) {
	var meet *activeobject.Operation[dam, None, string]
	dams := activeobject.NewType[dam]("dam")
	meet = activeobject.Entry(dams, "meet", activeobject.Result(func(d *dam) string {
		d.level = d.Waiting(meet)
		return goroutine()
	})).WhenWaiting("three are here", func(d *dam) bool { return d.level > 0 || d.Waiting(meet) == 3 })

	s := &scene{system: newSystem(t)} // whose bodies run on the goroutines of callers
	o := newObject(t, s, dams, &dam{})
	first := calling(background, o, meet, nil)
	waiting(t, o, meet, 1)
	second := calling(background, o, meet, nil)
	waiting(t, o, meet, 2)
	last, err := meet.Call(background, o, nil)
	require.NoError(t, err)
	require.Equal(t, goroutine(), last)
	require.Equal(t, outcome[string]{last, nil}, soon(t, s.system, first), "no other goroutine is woken to run")
	require.Equal(t, outcome[string]{last, nil}, soon(t, s.system, second))
}

func TestAnArrivalOpensAGuardOverWaitingCounts(t *testing.T) {
	var meet *activeobject.Operation[dam, int, int]
	dams := activeobject.NewType[dam]("dam")
	meet = activeobject.Entry(dams, "meet", func(d *dam, n int) (int, error) {
		d.level = d.Waiting(meet) // let all that are here pass
		return n, nil
	}).WhenWaiting("three are here", func(d *dam) bool { return d.level > 0 || d.Waiting(meet) == 3 })

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		for round := range 3 {
			var here []<-chan outcome[int]
			for i := range 2 {
				here = append(here, calling(background, o, meet, i))
				waiting(t, o, meet, i+1)
			}
			here = append(here, calling(background, o, meet, 2))
			for i, c := range here {
				require.Equal(t, outcome[int]{i, nil}, soon(t, s.system, c), fmt.Sprint("round ", round))
			}
		}
	})
}
