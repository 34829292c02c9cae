package barrier

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestAPhaseIsOverWhenEveryPartyHasArrived(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		p, err := NewPhaser(system, 2, options...)
		require.NoError(t, err)
		phase, err := p.Arrive()
		require.NoError(t, err)
		require.Zero(t, phase)
		require.ErrorIs(t, try(p.Awaits(), 0), activeobject.ErrRefused)
		zero, one := p.Awaits().Send(background, 0), p.Awaits().Send(background, 1)
		objecttest.Waiting(t, p.o, phaserAwait.Operation, 2)
		phase, err = p.Join()
		require.NoError(t, err)
		require.Zero(t, phase)
		phase, err = p.Arrive()
		require.NoError(t, err)
		require.Zero(t, phase)
		require.False(t, zero.Ready(), "a party that has joined is waited for")
		phase, err = p.ArriveAndAwait(background)
		require.NoError(t, err)
		require.Zero(t, phase)
		phase, o := result(t, zero)
		require.Equal(t, passed, o)
		require.Zero(t, phase)
		require.NoError(t, p.AwaitPhase(background, 0))
		require.False(t, one.Ready())

		for range 2 {
			phase, err = p.ArriveAndLeave()
			require.NoError(t, err)
			require.Equal(t, 1, phase)
		}
		status, err := p.Status()
		require.NoError(t, err)
		require.Equal(t, PhaserStatus{Phase: 1, Parties: 1}, status)
		_, err = p.ArriveAndLeave()
		require.NoError(t, err)
		phase, o = result(t, one)
		require.Equal(t, passed, o, "the last party has left")
		require.Equal(t, 1, phase)
		for _, arrive := range []func() (int, error){p.Arrive, p.ArriveAndLeave, func() (int, error) { return p.ArriveAndAwait(background) }} {
			_, err = arrive()
			require.Equal(t, misused, outcomeOf(err))
			require.ErrorContains(t, err, p.o.Name())
		}
		phase, err = p.Join()
		require.NoError(t, err)
		require.Equal(t, 2, phase)
		phase, err = p.ArriveAndAwait(background)
		require.NoError(t, err)
		require.Equal(t, 2, phase)
	})
}

func TestAPartyThatIsCanceledHasArrived(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		p, err := NewPhaser(system, 2, options...)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(background)
		one := calling(func() error { _, err := p.ArriveAndAwait(ctx); return err })
		objecttest.Waiting(t, p.o, phaserAwait.Operation, 1)
		cancel()
		require.Equal(t, left, outcomeOf(soon(t, one)))
		_, err = p.ArriveAndAwait(ctx)
		require.Equal(t, never, outcomeOf(err))
		status, err := p.Status()
		require.NoError(t, err)
		require.Equal(t, PhaserStatus{Parties: 2, Arrived: 1}, status)
		phase, err := p.ArriveAndAwait(background)
		require.NoError(t, err, "no party is waited for in vain")
		require.Zero(t, phase)
	})
}

func TestPartiesOfAPhaserKeepStep(t *testing.T) {
	const parties, phases = 4, 100
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		p, err := NewPhaser(system, 0, options...)
		require.NoError(t, err)
		for range parties {
			_, err := p.Join()
			require.NoError(t, err)
		}
		var arrived [phases]atomic.Int64
		var all sync.WaitGroup
		for i := range parties {
			all.Go(func() {
				last := phases - i*phases/parties // they leave one after the other
				for n := range last {
					arrived[n].Add(1)
					if n == last-1 {
						p.ArriveAndLeave()
						return
					}
					phase, err := p.ArriveAndAwait(background)
					if err != nil || phase != n {
						t.Errorf("phase %d instead of %d: %v", phase, n, err)
						return
					}
					want := int64(0)
					for j := range parties {
						if n < phases-j*phases/parties {
							want++
						}
					}
					if got := arrived[n].Load(); got != want {
						t.Errorf("phase %d was over when %d of %d had arrived", n, got, want)
					}
				}
			})
		}
		all.Wait()
		status, err := p.Status()
		require.NoError(t, err)
		require.Equal(t, PhaserStatus{Phase: phases}, status)
	})
}

// awaiting is a request of the phaser test that may wait.
type awaiting struct {
	future  activeobject.Future[int]
	phase   int
	arrives bool
	left    bool
}

func TestPhaserDoesWhatTheModelDoes(t *testing.T) {
	for _, way := range inOrder {
		t.Run(way, func(t *testing.T) {
			system := objecttest.NewSystem(t)
			rapid.Check(t, func(t *rapid.T) {
				// The parties of the model have arrived or not.
				var parties []bool
				phase := 0
				for range rapid.IntRange(0, 3).Draw(t, "parties") {
					parties = append(parties, false)
				}
				p, err := NewPhaser(system, len(parties), ways[way]...)
				require.NoError(t, err)
				defer p.o.Stop()
				var all []*awaiting
				// arrive makes the first party arrive that has not, and reports false if
				// there is none at all.
				arrive := func(leaves bool) bool {
					for i, here := range parties {
						if !here {
							parties[i] = true
							if leaves {
								parties = append(parties[:i], parties[i+1:]...)
							}
							for _, here := range parties {
								if !here {
									return true
								}
							}
							phase++
							clear(parties)
							return true
						}
					}
					return false
				}
				agree := func(t *rapid.T) {
					for _, a := range all {
						switch {
						case a.left:
						case a.phase < phase:
							got, o := result(t, a.future)
							require.Equal(t, passed, o)
							require.Equal(t, a.phase, got)
						default:
							require.False(t, a.future.Ready())
						}
					}
					arrived := 0
					for _, here := range parties {
						if here {
							arrived++
						}
					}
					status, err := p.Status()
					require.NoError(t, err)
					require.Equal(t, PhaserStatus{phase, len(parties), arrived}, status)
				}
				step := func(t *rapid.T, f func() (int, error), leaves bool) {
					now := phase
					got, err := f()
					if !arrive(leaves) {
						require.Equal(t, misused, outcomeOf(err))
						return
					}
					require.NoError(t, err)
					require.Equal(t, now, got)
					agree(t)
				}
				t.Repeat(map[string]func(*rapid.T){
					"join": func(t *rapid.T) {
						got, err := p.Join()
						require.NoError(t, err)
						require.Equal(t, phase, got)
						parties = append(parties, false)
						agree(t)
					},
					"arrive": func(t *rapid.T) { step(t, p.Arrive, false) },
					"leave":  func(t *rapid.T) { step(t, p.ArriveAndLeave, true) },
					"arrive and await": func(t *rapid.T) {
						if len(parties) > 0 {
							a := &awaiting{phase: phase, arrives: true, future: p.ArrivesAndAwaits().Send(background, nil)}
							arrive(false)
							all = append(all, a)
							agree(t)
						}
					},
					"await": func(t *rapid.T) {
						n := phase + rapid.IntRange(-1, 2).Draw(t, "phase")
						all = append(all, &awaiting{phase: n, future: p.Awaits().Send(background, n)})
						agree(t)
					},
					"withdraw": func(t *rapid.T) {
						if len(all) > 0 {
							a := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
							waits := !a.left && a.phase >= phase
							require.Equal(t, waits, a.future.Withdraw())
							if waits {
								a.left = true
								_, o := result(t, a.future)
								require.Equal(t, map[bool]outcome{true: left, false: never}[a.arrives], o)
							}
							agree(t)
						}
					},
				})
			})
		})
	}
}

func TestALatchOpensForGoodWhenAllIsCounted(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		l, err := NewLatch(system, 2, options...)
		require.NoError(t, err)
		f := l.Awaits().Send(background, nil)
		objecttest.Waiting(t, l.o, latchAwait, 1)
		require.ErrorIs(t, try(l.Awaits(), nil), activeobject.ErrRefused)
		require.NoError(t, l.CountDown())
		n, err := l.Count()
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.False(t, f.Ready())
		require.NoError(t, l.CountDown())
		_, o := result(t, f)
		require.Equal(t, passed, o)
		require.NoError(t, l.Await(background))
		require.NoError(t, try(l.Awaits(), nil))
		i, err := activeobject.Select(background, l.Awaits().Case(nil))
		require.NoError(t, err)
		require.Zero(t, i)
		err = l.CountDown()
		require.Equal(t, misused, outcomeOf(err))
		require.ErrorContains(t, err, l.Object().Name()+".count down")
		_, o = result(t, l.CountDowns().Send(background, nil))
		require.Equal(t, misused, o)
		n, err = l.Count()
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestWhatMakesNoSenseIsNamed(t *testing.T) {
	system := objecttest.NewSystem(t)
	for want, f := range map[string]func() error{
		"sluice: barrier.NewCyclic: parties is 0: there must be at least one": func() error { _, err := NewCyclic(system, 0); return err },
		"sluice: barrier.NewCyclicAction: parties is -1: there must be at least one": func() error {
			_, err := NewCyclicAction(system, -1, func(context.Context) error { return nil })
			return err
		},
		"sluice: barrier.NewCyclicAction: action is nil: pass what the last party is to do, or use NewCyclic": func() error { _, err := NewCyclicAction(system, 1, nil); return err },
		"sluice: barrier.NewSquad: trigger is 0: there must be at least one":                                  func() error { _, err := NewSquad(system, 0); return err },
		"sluice: barrier.NewAuto: trigger is -3: there must be at least one":                                  func() error { _, err := NewAuto(system, -3); return err },
		"sluice: barrier.NewPhaser: parties is -1: there may be none at first, but not less":                  func() error { _, err := NewPhaser(system, -1); return err },
		"sluice: barrier.NewLatch: count is 0: there must be at least one":                                    func() error { _, err := NewLatch(system, 0); return err },
	} {
		err := f()
		require.EqualError(t, err, want)
		var a *activeobject.ArgumentError
		require.ErrorAs(t, err, &a)
	}
	for _, f := range []func() error{
		func() error { _, err := NewCyclic(nil, 1); return err },
		func() error { _, err := NewSquad(nil, 1); return err },
		func() error { _, err := NewAuto(nil, 1); return err },
		func() error { _, err := NewPhaser(nil, 1); return err },
		func() error { _, err := NewLatch(nil, 1); return err },
	} {
		var o *activeobject.OptionError
		require.ErrorAs(t, f(), &o)
	}
}
