package barrier

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestNoPartyLeavesARoundBeforeAllHaveArrived(t *testing.T) {
	const parties, rounds = 5, 200
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		var acted atomic.Int64
		for _, action := range []func(context.Context) error{nil, func(context.Context) error { acted.Add(1); return nil }} {
			b, err := newTestCyclic(system, parties, action, options)
			require.NoError(t, err)
			var arrived [rounds]atomic.Int64
			var all sync.WaitGroup
			for range parties {
				all.Go(func() {
					for round := range rounds {
						arrived[round].Add(1)
						if err := b.Await(background); err != nil {
							t.Error(err)
							return
						}
						if n := arrived[round].Load(); n != parties {
							t.Errorf("one left round %d when %d had arrived", round, n)
						}
						if a := acted.Load(); action != nil && (a < int64(round)+1 || a > int64(round)+2) {
							t.Errorf("after round %d the action has run %d times", round, a)
						}
					}
				})
			}
			all.Wait()
			require.Zero(t, b.Waiting())
		}
		require.EqualValues(t, rounds, acted.Load())
	})
}

func TestACanceledPartyBreaksTheRoundForAllInTheSameStep(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		b, err := NewCyclic(system, 3, options...)
		require.NoError(t, err)
		for range 20 {
			ctx, cancel := context.WithCancel(background)
			one := calling(func() error { return b.Await(ctx) })
			objecttest.Waiting(t, b.o, cyclicAwait, 1)
			other := calling(func() error { return b.Await(background) })
			objecttest.Waiting(t, b.o, cyclicAwait, 2)
			cancel()
			err := soon(t, one)
			require.Equal(t, never, outcomeOf(err))
			// A party that comes after that has happened finds it broken.
			is, err := b.Broken()
			require.NoError(t, err)
			require.True(t, is)
			require.ErrorIs(t, b.Await(background), ErrBroken)
			err = soon(t, other)
			require.Equal(t, broken, outcomeOf(err))
			require.ErrorContains(t, err, b.o.Name()+" is broken: a party has left that had arrived")
			require.ErrorIs(t, b.Await(background), ErrBroken, "until it is reset")

			require.NoError(t, b.Reset())
			is, err = b.Broken()
			require.NoError(t, err)
			require.False(t, is)
			round := []<-chan error{calling(func() error { return b.Await(background) }), calling(func() error { return b.Await(background) })}
			require.NoError(t, b.Await(background))
			for _, c := range round {
				require.NoError(t, soon(t, c))
			}
		}
	})
}

func TestTheOnlyOneThatWaitsBreaksTheRoundAsWell(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		b, err := NewCyclic(system, 2, options...)
		require.NoError(t, err)
		f := b.Awaits().Send(background, nil)
		objecttest.Waiting(t, b.o, cyclicAwait, 1)
		require.True(t, f.Withdraw())
		is, err := b.Broken()
		require.NoError(t, err)
		require.True(t, is)
		require.ErrorIs(t, b.Await(background), ErrBroken)
	})
}

func TestAContextThatHasEndedNeverArrives(t *testing.T) {
	b, err := NewCyclic(objecttest.NewSystem(t), 2)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(background)
	cancel()
	require.Equal(t, never, outcomeOf(b.Await(ended)))
	f := b.Awaits().Send(background, nil)
	require.Equal(t, never, outcomeOf(b.Await(ended)))
	require.NoError(t, b.Await(background))
	_, o := result(t, f)
	require.Equal(t, passed, o)
}

func TestAResetFailsThoseThatWait(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		b, err := NewCyclic(system, 3, options...)
		require.NoError(t, err)
		require.NoError(t, b.Reset(), "it does no harm")
		for range 3 {
			f, g := b.Awaits().Send(background, nil), b.Awaits().Send(background, nil)
			objecttest.Waiting(t, b.o, cyclicAwait, 2)
			require.NoError(t, b.Reset())
			for _, one := range []activeobject.Future[none]{f, g} {
				_, o := result(t, one)
				require.Equal(t, reset, o)
			}
			f, g = b.Awaits().Send(background, nil), b.Awaits().Send(background, nil)
			require.NoError(t, b.Await(background))
			for _, one := range []activeobject.Future[none]{f, g} {
				_, o := result(t, one)
				require.Equal(t, passed, o)
			}
		}
	})
}

func TestTheActionOfALastPartyCanBreakTheRound(t *testing.T) {
	failure := errors.New("no more work")
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		var act func() error
		b, err := newTestCyclic(system, 2, func(context.Context) error { return act() }, options)
		require.NoError(t, err)
		for _, c := range []struct {
			name string
			act  func() error
			last func(error)
			says string
		}{
			{"returns an error", func() error { return failure },
				func(err error) { require.ErrorIs(t, err, failure); require.ErrorIs(t, err, ErrBroken) },
				"its action has failed: no more work"},
			{"panics", func() error { panic("at the disco") },
				func(err error) {
					var p *activeobject.PanicError
					require.ErrorAs(t, err, &p)
					require.Equal(t, "at the disco", p.Value)
				}, "its action has panicked"},
			{"works", func() error { return nil }, func(err error) { require.NoError(t, err) }, ""},
		} {
			act = c.act
			f := b.Awaits().Send(background, nil)
			objecttest.Waiting(t, b.o, cyclicAwait, 1)
			c.last(b.Await(background))
			_, o := result(t, f)
			if c.says == "" {
				require.Equal(t, passed, o)
				continue
			}
			require.Equal(t, broken, o, c.name)
			_, err = f.Await(background)
			require.ErrorContains(t, err, c.says)
			require.ErrorIs(t, b.Await(background), ErrBroken)
			require.NoError(t, b.Reset())
		}
	})
}

func TestAnActionThatEndsItsGoroutineBreaksTheRound(t *testing.T) {
	b, err := NewCyclicAction(objecttest.NewSystem(t), 2, func(context.Context) error { runtime.Goexit(); return nil })
	require.NoError(t, err)
	f := b.Awaits().Send(background, nil)
	objecttest.Waiting(t, b.o, cyclicAwait, 1)
	var last sync.WaitGroup
	last.Go(func() { b.Await(background) })
	last.Wait()
	_, o := result(t, f)
	require.Equal(t, broken, o)
	require.ErrorIs(t, b.Await(background), ErrBroken)
}

func TestAnActionThatComesBackToItsBarrierIsADeadlock(t *testing.T) {
	var b *Cyclic
	var inner error
	b, err := NewCyclicAction(objecttest.NewSystem(t), 1, func(ctx context.Context) error {
		inner = b.Await(ctx)
		return inner
	})
	require.NoError(t, err)
	require.ErrorIs(t, b.Await(background), ErrBroken)
	var d *activeobject.DeadlockError
	require.ErrorAs(t, inner, &d)
}

func TestOnceTheActionHasBegunTheRoundIsComplete(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		acting, goOn := make(chan struct{}), make(chan struct{})
		b, err := newTestCyclic(system, 3, func(context.Context) error {
			acting <- struct{}{}
			<-goOn
			return nil
		}, options)
		require.NoError(t, err)
		f, g := b.Awaits().Send(background, nil), b.Awaits().Send(background, nil)
		objecttest.Waiting(t, b.o, cyclicAwait, 2)
		last := calling(func() error { return b.Await(background) })
		<-acting
		require.True(t, f.Withdraw())
		next := b.Awaits().Send(background, nil) // of the next round
		goOn <- struct{}{}
		require.NoError(t, soon(t, last))
		_, o := result(t, g)
		require.Equal(t, passed, o)
		_, o = result(t, f)
		require.Equal(t, never, o)
		is, err := b.Broken()
		require.NoError(t, err)
		require.False(t, is)
		require.False(t, next.Ready())
		require.NoError(t, b.Reset())
		_, o = result(t, next)
		require.Equal(t, reset, o)
	})
}

func TestAPartyThatLeavesBeforeTheActionBeginsBreaksTheRound(t *testing.T) {
	// A stepper lets the test come between the last party and its action.
	stepper := objecttest.NewStepper(t)
	acted := false
	b, err := NewCyclicAction(objecttest.NewSystem(t), 2, func(context.Context) error { acted = true; return nil }, activeobject.Dispatcher(stepper))
	require.NoError(t, err)
	for who, fails := range []outcome{never, left} {
		both := []activeobject.Future[none]{b.Awaits().Send(background, nil), b.Awaits().Send(background, nil)}
		for cyclicAct.Waiting(b.o) == 0 {
			require.True(t, stepper.Step())
		}
		require.True(t, both[who].Withdraw())
		stepper.Run()
		_, o := result(t, both[who])
		require.Equal(t, fails, o)
		_, o = result(t, both[1-who])
		require.Equal(t, broken, o)
		require.False(t, acted)
		f := b.Resets().Send(background, nil)
		stepper.Run()
		_, o = result(t, f)
		require.Equal(t, passed, o)
	}
}

func TestAStoppedBarrierFailsAll(t *testing.T) {
	b, err := NewCyclic(objecttest.NewSystem(t), 2, activeobject.Name("rounds"))
	require.NoError(t, err)
	f := b.Awaits().Send(background, nil)
	objecttest.Waiting(t, b.o, cyclicAwait, 1)
	<-b.Object().Stop()
	_, o := result(t, f)
	require.Equal(t, stopped, o)
	require.ErrorIs(t, b.Await(background), activeobject.ErrStopped)
	require.ErrorIs(t, b.Reset(), activeobject.ErrStopped)
	_, err = b.Broken()
	require.ErrorIs(t, err, activeobject.ErrStopped)
}

func TestAWaitAtABarrierIsExplained(t *testing.T) {
	b, err := NewCyclic(objecttest.NewSystem(t, objecttest.AllowWaiting()), 2)
	require.NoError(t, err)
	b.Awaits().Send(background, nil)
	objecttest.Waiting(t, b.o, cyclicAwait, 1)
	require.Equal(t, 1, b.Waiting())
	require.Equal(t, 2, b.Parties())
	w := b.Object().Explain().Waiting[0]
	require.Equal(t, "await", w.Operation)
	require.Contains(t, w.Reason.String(), "all have arrived")
}

// cyclicModel is what a cyclic barrier is to do, told naively: who waits inside, who
// stands outside behind a busy object, and what has become of the others.
type cyclicModel struct {
	parties int
	busy    bool
	broken  bool
	inside  []int
	outside []int // -1 is a reset
	ended   map[int]outcome
}

func (m *cyclicModel) await(i int) {
	switch {
	case m.busy:
		m.outside = append(m.outside, i)
	case i < 0:
		m.all(reset)
		m.broken = false
	case m.broken:
		m.ended[i] = broken
	default:
		if m.inside = append(m.inside, i); len(m.inside) == m.parties {
			m.all(passed)
		}
	}
}

func (m *cyclicModel) all(o outcome) {
	for _, i := range m.inside {
		m.ended[i] = o
	}
	m.inside = nil
}

func (m *cyclicModel) withdraw(i int) bool {
	if at := slices.Index(m.outside, i); at >= 0 {
		m.outside, m.ended[i] = slices.Delete(m.outside, at, at+1), never
		return true
	}
	if at := slices.Index(m.inside, i); at >= 0 {
		m.inside, m.ended[i] = slices.Delete(m.inside, at, at+1), never
		if m.broken = true; !m.busy { // else they have yet to hear of it
			m.all(broken)
		}
		return true
	}
	return false
}

func (m *cyclicModel) release() {
	if m.busy = false; m.broken {
		m.all(broken)
	}
	for _, i := range m.outside {
		m.await(i)
	}
	m.outside = nil
}

func TestCyclicDoesWhatTheModelDoes(t *testing.T) {
	for _, way := range inOrder {
		t.Run(way, func(t *testing.T) {
			system := objecttest.NewSystem(t)
			rapid.Check(t, func(t *rapid.T) {
				parties := rapid.IntRange(1, 4).Draw(t, "parties")
				var action func(context.Context) error
				if rapid.Bool().Draw(t, "with an action") {
					action = func(context.Context) error { return nil }
				}
				b, err := newTestCyclic(system, parties, action, ways[way])
				require.NoError(t, err)
				defer b.o.Stop()
				m := &cyclicModel{parties: parties, ended: map[int]outcome{}}
				var all, resets []activeobject.Future[none]
				release := func() {}
				defer func() { release() }()
				// agree waits for those that are to end, so that the next step finds the
				// barrier as the model has it.
				agree := func(t *rapid.T) {
					if m.busy {
						return
					}
					for i := range all {
						if want, ok := m.ended[i]; ok {
							_, got := result(t, all[i])
							require.Equal(t, want, got, "party %d", i)
						}
					}
					for _, f := range resets {
						_, got := result(t, f)
						require.Equal(t, passed, got)
					}
					is, err := b.Broken()
					require.NoError(t, err)
					require.Equal(t, m.broken, is)
					require.Equal(t, len(m.inside), b.Waiting())
				}
				t.Repeat(map[string]func(*rapid.T){
					"await": func(t *rapid.T) {
						all = append(all, b.Awaits().Send(background, nil))
						m.await(len(all) - 1)
						agree(t)
					},
					"withdraw": func(t *rapid.T) {
						if len(all) > 0 {
							i := rapid.IntRange(max(0, len(all)-2*parties), len(all)-1).Draw(t, "which")
							require.Equal(t, m.withdraw(i), all[i].Withdraw())
							agree(t)
						}
					},
					"reset": func(t *rapid.T) {
						resets = append(resets, b.Resets().Send(background, nil))
						m.await(-1)
						agree(t)
					},
					"keep busy": func(t *rapid.T) {
						if !m.busy {
							m.busy, release = true, braked(b.o)
						}
					},
					"let go": func(t *rapid.T) {
						if m.busy {
							release()
							release = func() {}
							m.release()
							agree(t)
						}
					},
				})
				release()
				release = func() {}
				m.release()
				agree(t)
				<-b.o.Stop()
				m.all(stopped)
				for i := range all {
					_, got := result(t, all[i])
					require.Equal(t, m.ended[i], got, "party %d", i)
				}
			})
		})
	}
}
