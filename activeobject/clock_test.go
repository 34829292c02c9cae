package activeobject_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// limiter lets one request pass in each interval.
type limiter struct {
	activeobject.Clock
	interval time.Duration
	next     time.Time
	passed   []int
}

func (l *limiter) ready() bool { return l.Reached(l.next) }

func (l *limiter) pass(n int) {
	l.next = l.Now().Add(l.interval)
	l.passed = append(l.passed, n)
}

type limiterType struct {
	*activeobject.Type[limiter]
	pass  *activeobject.Operation[limiter, int, None]
	await *activeobject.Operation[limiter, None, None] // a function that waits for the same
	reset *activeobject.Operation[limiter, time.Duration, None]
	seen  *activeobject.Operation[limiter, None, []int]
}

func newLimiters() *limiterType {
	t := activeobject.NewType[limiter]("limiter")
	return &limiterType{
		Type:  t,
		pass:  activeobject.Entry(t, "pass", activeobject.Arg((*limiter).pass)).WhenTime("it is time", (*limiter).ready),
		await: activeobject.Function(t, "await", activeobject.Plain(func(*limiter) {})).WhenTime("it is time to see", (*limiter).ready),
		reset: activeobject.Procedure(t, "reset", activeobject.Arg(func(l *limiter, d time.Duration) { l.next = l.Now().Add(d) })),
		seen:  activeobject.Function(t, "seen", activeobject.Result(func(l *limiter) []int { return append([]int(nil), l.passed...) })),
	}
}

// Requests that wait for a time start when it has come, in order of arrival.
func TestAGuardIsEvaluatedWhenItsTimeHasCome(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		ls := newLimiters()
		o := newObject(t, s, ls.Type, &limiter{interval: time.Minute})
		start := time.Now()
		var calls []<-chan outcome[None]
		for n := range 5 {
			calls = append(calls, calling(background, o, ls.pass, n))
			synctest.Wait()
		}
		for n, c := range calls {
			require.NoError(t, (<-c).err)
			require.Equal(t, time.Duration(n)*time.Minute, time.Since(start))
		}
		seen, err := ls.seen.Call(background, o, nil)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 3, 4}, seen)
	})
}

// A state that changes meanwhile may put the time off, or bring it forward.
func TestTheTimeOfAGuardMayChangeWhileItIsWaitedFor(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		ls := newLimiters()
		for _, to := range []time.Duration{time.Second, time.Hour, 90 * time.Minute} {
			o := newObject(t, s, ls.Type, &limiter{interval: time.Minute, next: time.Now().Add(time.Hour)})
			start := time.Now()
			call := calling(background, o, ls.pass, 1)
			synctest.Wait()
			view := calling(background, o, ls.await, nil)
			synctest.Wait()
			require.Equal(t, 2, ls.pass.Waiting(o)+ls.await.Waiting(o))
			_, err := ls.reset.Call(background, o, to)
			require.NoError(t, err)
			require.NoError(t, (<-call).err)
			require.Equal(t, to, time.Since(start))
			require.NoError(t, (<-view).err)
			require.Equal(t, to+time.Minute, time.Since(start), "it stands behind, and the entry has put the time off")
		}
	})
}

// The end of a context, and of the object, come before the time.
func TestAWaitForATimeEndsLikeAnyOther(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		ls := newLimiters()
		o := newObject(t, s, ls.Type, &limiter{next: time.Now().Add(time.Hour)})
		requireWaits(t, o, ls.pass, 1, "it is time")
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		start := time.Now()
		_, err := ls.pass.Call(ctx, o, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		call := calling(background, o, ls.pass, 2)
		synctest.Wait()
		<-o.Stop()
		require.ErrorIs(t, (<-call).err, activeobject.ErrStopped)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// A guard over time can be a part of others; an ad-hoc one is refused.
func TestGuardsOverTimeCanBeCombined(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		ls := newLimiters()
		seen := guards.When("one has passed", func(l *limiter) bool { return len(l.passed) > 0 })
		due := guards.WhenTime("due", (*limiter).ready)
		either := activeobject.Function(ls.Type, "either", activeobject.Plain(func(*limiter) {})).Guard(guards.Or(seen, due))
		both := activeobject.Function(ls.Type, "both", activeobject.Plain(func(*limiter) {})).Guard(guards.And(seen, due))
		at := activeobject.Function(ls.Type, "at", activeobject.Arg(func(*limiter, time.Time) {})).
			Guard(guards.Of("its time has come", guards.AtArgument|guards.AtTime, func(l *limiter, at time.Time) string {
				if l.Reached(at) {
					return ""
				}
				return "its time has come"
			}))
		o := newObject(t, s, ls.Type, &limiter{next: time.Now().Add(time.Hour)})
		start := time.Now()
		one, two := calling(background, o, either, nil), calling(background, o, both, nil)
		late, early := calling(background, o, at, start.Add(2*time.Hour)), calling(background, o, at, start.Add(time.Minute))
		require.NoError(t, (<-early).err)
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, (<-one).err)
		require.Equal(t, time.Hour, time.Since(start))
		_, err := ls.pass.Call(background, o, 1)
		require.NoError(t, err)
		require.NoError(t, (<-two).err)
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, (<-late).err)
		require.Equal(t, 2*time.Hour, time.Since(start))

		var wrong *activeobject.ArgumentError
		require.ErrorAs(t, o.Until(background, due), &wrong)
		require.ErrorAs(t, o.DoWhen(background, due, func(*limiter) error { return nil }), &wrong)
	})
}

// The time may come while the guard is being evaluated, by a caller that has found the object idle.
func TestATimeThatComesDuringTheEvaluationIsNotMissed(t *testing.T) {
	for name, waited := range map[string]bool{"the first request to wait": false, "others have waited before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				typ, slow := activeobject.NewType[limiter]("limiter"), false
				pass := activeobject.Entry(typ, "pass", activeobject.Arg((*limiter).pass)).WhenTime("it is time", func(l *limiter) bool {
					ready := l.ready()
					if slow { // once: then without the scheduler's mutex
						slow = false
						time.Sleep(time.Minute)
					}
					return ready
				})
				system := actor.NewSystem(actor.Logger(quiet))
				l := &limiter{}
				o := activeobject.Must(activeobject.New(system, typ, l))
				if waited {
					l.next = time.Now().Add(time.Second)
					_, err := pass.Call(background, o, 0)
					require.NoError(t, err)
				}
				for name, way := range map[string]func() error{
					"call":   func() error { _, err := pass.Call(background, o, 1); return err },
					"send":   func() error { _, err := pass.Send(background, o, 1).Await(background); return err },
					"select": func() error { _, err := activeobject.Select(background, pass.Case(o, 1)); return err },
				} {
					l.next, slow = time.Now().Add(time.Second), true
					start := time.Now()
					ctx, cancel := context.WithTimeout(background, time.Hour)
					done := async(func() (None, error) { return nil, way() })
					select {
					case out := <-done:
						require.NoError(t, out.err, name)
					case <-ctx.Done():
						t.Fatal(name, " has missed its time")
					}
					cancel()
					require.Equal(t, time.Minute, time.Since(start), name)
				}
				require.NoError(t, system.Close(background))
			})
		})
	}
}

// The clocks of an object that has ended keep nothing: also that of a part of its state.
func TestAnObjectThatHasEndedIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type part struct{ of limiter }
		ls := newLimiters()
		parts := activeobject.Derive(ls.Type, "part", func(p *part) *limiter { return &p.of })
		system := actor.NewSystem(actor.Logger(quiet))
		o := activeobject.Must(activeobject.New(system, parts, &part{limiter{next: time.Now().Add(time.Hour)}}))
		call := calling(background, o, activeobject.In(parts, ls.pass), 1)
		synctest.Wait()
		<-o.Stop()
		require.ErrorIs(t, (<-call).err, activeobject.ErrStopped)
		require.NoError(t, system.Close(background))
		time.Sleep(2 * time.Hour)
	})
}

// Without an object a Clock tells the time, and no more.
func TestAStateWithAClockIsPlainGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{interval: time.Second}
		require.True(t, l.ready())
		l.pass(1)
		require.False(t, l.ready())
		time.Sleep(time.Second)
		require.True(t, l.ready())
	})
}

// A rate limiter: no more than one request in ten milliseconds.
func ExampleClock() {
	system := actor.NewSystem()
	defer system.Close(context.Background())

	limiters := activeobject.NewType[limiter]("limiter")
	pass := activeobject.Entry(limiters, "pass", activeobject.Arg((*limiter).pass)).WhenTime("it is time", (*limiter).ready)

	ctx, o := context.Background(), activeobject.Must(activeobject.New(system, limiters, &limiter{interval: 10 * time.Millisecond}))
	start := time.Now()
	for n := range 4 {
		pass.Call(ctx, o, n)
	}
	fmt.Println(time.Since(start) >= 30*time.Millisecond)
	// Output: true
}
