package barrier

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestTheHerdWaitsForTheLeaderAndPassesWhole(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s, err := NewSquad(system, 3, options...)
		require.NoError(t, err)
		for range 5 {
			var herd []activeobject.Future[none]
			for i := range 5 { // a larger one than the leader waits for
				require.Equal(t, i, s.Gathered())
				if i < 3 {
					require.ErrorIs(t, try(s.WaitsForHerd(), nil), activeobject.ErrRefused)
				}
				herd = append(herd, s.WaitsForLeader().Send(background, nil))
				objecttest.Waiting(t, s.o, squadWaitForLeader, i+1)
				err := try(s.WaitsForLeader(), nil)
				require.ErrorIs(t, err, activeobject.ErrRefused)
				require.ErrorContains(t, err, "leader is done")
			}
			require.NoError(t, s.WaitForHerd(background))
			require.Equal(t, 5, s.Gathered(), "they wait for the leader")
			for _, f := range herd {
				require.False(t, f.Ready())
			}
			gone, err := s.LeaderDone()
			require.NoError(t, err)
			require.Equal(t, 5, gone)
			require.Zero(t, s.Gathered())
			for _, f := range herd {
				_, o := result(t, f)
				require.Equal(t, passed, o)
			}
			// The next turn has not begun.
			late := s.WaitsForLeader().Send(background, nil)
			objecttest.Waiting(t, s.o, squadWaitForLeader, 1)
			require.False(t, late.Ready())
			require.True(t, late.Withdraw())
		}
	})
}

func TestTheLeaderWaitsForTheHerd(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s, err := NewSquad(system, 2, options...)
		require.NoError(t, err)
		leader := s.WaitsForHerd().Send(background, nil)
		one := s.WaitsForLeader().Send(background, nil)
		objecttest.Waiting(t, s.o, squadWaitForLeader, 1)
		require.False(t, leader.Ready())
		require.True(t, one.Withdraw(), "a request that leaves does not count")
		two := s.WaitsForLeader().Send(background, nil)
		objecttest.Waiting(t, s.o, squadWaitForLeader, 1)
		require.False(t, leader.Ready())
		three := s.WaitsForLeader().Send(background, nil)
		_, o := result(t, leader)
		require.Equal(t, passed, o)
		require.True(t, three.Withdraw())
		gone, err := s.LeaderDone()
		require.NoError(t, err)
		require.Equal(t, 1, gone, "the leader had seen enough of them")
		_, o = result(t, two)
		require.Equal(t, passed, o)
	})
}

func TestALeaderThatHasNotSeenTheHerdIsNotDone(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s, err := NewSquad(system, 1, append(options, activeobject.Name("squad"))...)
		require.NoError(t, err)
		f := s.WaitsForLeader().Send(background, nil)
		objecttest.Waiting(t, s.o, squadWaitForLeader, 1)
		_, err = s.LeaderDone()
		require.EqualError(t, err, "sluice: squad.leader done: the leader has not waited for the herd")
		require.NoError(t, s.WaitForHerd(background))
		require.True(t, f.Withdraw())
		gone, err := s.LeaderDone()
		require.NoError(t, err)
		require.Zero(t, gone, "and nothing is left of it for those that come later")
		f = s.WaitsForLeader().Send(background, nil)
		objecttest.Waiting(t, s.o, squadWaitForLeader, 1)
		_, err = s.LeaderDone()
		require.Equal(t, misused, outcomeOf(err))
		require.False(t, f.Ready())
		<-s.Object().Stop()
		_, o := result(t, f)
		require.Equal(t, stopped, o)
		_, err = s.LeaderDone()
		require.ErrorIs(t, err, activeobject.ErrStopped)
	})
}

func TestOfSeveralLeadersTheFirstThatIsDoneLetsTheHerdGo(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s, err := NewSquad(system, 2, options...)
		require.NoError(t, err)
		herd := func(n int) (all []activeobject.Future[none]) {
			for i := range n {
				all = append(all, s.WaitsForLeader().Send(background, nil))
				objecttest.Waiting(t, s.o, squadWaitForLeader, i+1)
			}
			return all
		}
		done := func(want int, went []activeobject.Future[none]) {
			t.Helper()
			gone, err := s.LeaderDone()
			require.NoError(t, err)
			require.Equal(t, want, gone)
			for _, f := range went {
				_, o := result(t, f)
				require.Equal(t, passed, o)
			}
		}
		for range 3 {
			first := herd(3)
			for range 3 {
				require.NoError(t, s.WaitForHerd(background))
			}
			done(3, first)
			done(0, nil)
			second := herd(2)
			done(0, nil) // of the first herd
			_, err = s.LeaderDone()
			require.Equal(t, misused, outcomeOf(err), "none is left that has waited")
			require.Equal(t, 2, s.Gathered(), "they wait for a leader of their own")
			require.NoError(t, s.WaitForHerd(background))
			done(2, second)
			_, err = s.LeaderDone()
			require.Equal(t, misused, outcomeOf(err))
		}
	})
}

func TestAnAutomaticSquadGoesWhenLeaderAndHerdHaveCome(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		a, err := NewAuto(system, 2, options...)
		require.NoError(t, err)
		for range 5 {
			herd := []activeobject.Future[none]{a.WaitsForLeader().Send(background, nil), a.WaitsForLeader().Send(background, nil), a.WaitsForLeader().Send(background, nil)}
			objecttest.Waiting(t, a.o, autoWaitForLeader, 3)
			require.Equal(t, 3, a.Gathered())
			err = try(a.WaitsForLeader(), nil)
			require.ErrorIs(t, err, activeobject.ErrRefused)
			require.ErrorContains(t, err, "leader has come")
			gone, err := a.WaitForHerd(background)
			require.NoError(t, err)
			require.Equal(t, 3, gone)
			for _, f := range herd {
				_, o := result(t, f)
				require.Equal(t, passed, o)
			}
			err = try(a.WaitsForHerd(), nil)
			require.ErrorIs(t, err, activeobject.ErrRefused)

			// And the other way round: the last of the herd opens.
			leaders := []activeobject.Future[int]{a.WaitsForHerd().Send(background, nil), a.WaitsForHerd().Send(background, nil)}
			objecttest.Waiting(t, a.o, autoWaitForHerd, 2)
			one := a.WaitsForLeader().Send(background, nil)
			objecttest.Waiting(t, a.o, autoWaitForLeader, 1)
			require.NoError(t, a.WaitForLeader(background))
			_, o := result(t, one)
			require.Equal(t, passed, o)
			ended := 0
			for _, f := range leaders { // one leader for one herd
				if !f.Withdraw() {
					gone, o := result(t, f)
					require.Equal(t, passed, o)
					require.Equal(t, 2, gone)
					ended++
				}
			}
			require.Equal(t, 1, ended)
		}
	})
}

func TestALeaderWhoseContextEndsLeavesNothing(t *testing.T) {
	a, err := NewAuto(objecttest.NewSystem(t), 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	leader := calling(func() error { _, err := a.WaitForHerd(ctx); return err })
	objecttest.Waiting(t, a.o, autoWaitForHerd, 1)
	cancel()
	require.Equal(t, never, outcomeOf(soon(t, leader)))
	f := a.WaitsForLeader().Send(background, nil)
	objecttest.Waiting(t, a.o, autoWaitForLeader, 1)
	require.False(t, f.Ready())
	gone, err := a.WaitForHerd(background)
	require.NoError(t, err)
	require.Equal(t, 1, gone)
}

func TestSquadsCanBeSelected(t *testing.T) {
	s, err := NewSquad(objecttest.NewSystem(t), 1)
	require.NoError(t, err)
	a, err := NewAuto(objecttest.NewSystem(t), 1)
	require.NoError(t, err)
	selected := make(chan int, 1)
	go func() {
		i, _ := activeobject.Select(background, s.WaitsForLeader().Case(nil), a.WaitsForLeader().Case(nil))
		selected <- i
	}()
	leader := a.WaitsForHerd().Case(nil)
	i, err := activeobject.Select(background, s.WaitsForHerd().Case(nil), leader)
	require.NoError(t, err)
	if i == 1 {
		require.Equal(t, 1, <-selected)
		gone, err := leader.Result()
		require.NoError(t, err)
		require.Equal(t, 1, gone)
		return
	}
	_, err = s.LeaderDone()
	require.NoError(t, err)
	require.Zero(t, <-selected)
}

// squadModel is what a squad lock is to do, told naively.
type squadModel struct {
	trigger int
	auto    bool
	seen    int // leaders that have seen the herd
	behind  int // leaders whose herd has gone
	herd    []int
	leaders []int
	ended   map[int]outcome
	gone    map[int]int // with so many of the herd, by leader
}

func (m *squadModel) settle() {
	for len(m.herd) >= m.trigger && len(m.leaders) > 0 {
		i := m.leaders[0]
		m.leaders, m.ended[i] = m.leaders[1:], passed
		m.seen++
		if m.auto {
			m.done(i)
		}
	}
}

func (m *squadModel) done(i int) {
	switch {
	case m.seen > 0:
		m.behind += m.seen - 1
		m.seen = 0
	case m.behind > 0:
		m.behind--
		m.ended[i], m.gone[i] = passed, 0
		return
	default:
		m.ended[i] = misused
		return
	}
	m.ended[i], m.gone[i] = passed, len(m.herd)
	for _, one := range m.herd {
		m.ended[one] = passed
	}
	m.herd = nil
}

func (m *squadModel) withdraw(i int) bool {
	for _, queue := range []*[]int{&m.herd, &m.leaders} {
		if at := slices.Index(*queue, i); at >= 0 {
			*queue, m.ended[i] = slices.Delete(*queue, at, at+1), never
			return true
		}
	}
	return false
}

func TestSquadsDoWhatTheModelDoes(t *testing.T) {
	for _, way := range inOrder {
		t.Run(way, func(t *testing.T) {
			system := objecttest.NewSystem(t)
			rapid.Check(t, func(t *rapid.T) {
				m := &squadModel{trigger: rapid.IntRange(1, 3).Draw(t, "trigger"), auto: rapid.Bool().Draw(t, "automatic"), ended: map[int]outcome{}, gone: map[int]int{}}
				s, err := NewSquad(system, m.trigger, ways[way]...)
				require.NoError(t, err)
				defer s.o.Stop()
				a, err := NewAuto(system, m.trigger, ways[way]...)
				require.NoError(t, err)
				defer a.o.Stop()
				var all []func(t *rapid.T) (int, outcome)
				var withdraw []func() bool
				agree := func(t *rapid.T) {
					m.settle()
					for i := range all {
						if want, ok := m.ended[i]; ok {
							gone, got := all[i](t)
							require.Equal(t, want, got, "request %d", i)
							if n, ok := m.gone[i]; ok {
								require.Equal(t, n, gone)
							}
						}
					}
					require.Equal(t, len(m.herd), s.Gathered()+a.Gathered())
				}
				add := func(queue *[]int, f activeobject.Future[none]) {
					*queue = append(*queue, len(all))
					all = append(all, func(t *rapid.T) (int, outcome) { _, o := result(t, f); return 0, o })
					withdraw = append(withdraw, f.Withdraw)
				}
				count := func(f activeobject.Future[int]) {
					all = append(all, func(t *rapid.T) (int, outcome) { return result(t, f) })
					withdraw = append(withdraw, f.Withdraw)
				}
				t.Repeat(map[string]func(*rapid.T){
					"one of the herd": func(t *rapid.T) {
						if m.auto {
							add(&m.herd, a.WaitsForLeader().Send(background, nil))
						} else {
							add(&m.herd, s.WaitsForLeader().Send(background, nil))
						}
						agree(t)
					},
					"leader": func(t *rapid.T) {
						if m.auto {
							m.leaders = append(m.leaders, len(all))
							count(a.WaitsForHerd().Send(background, nil))
						} else {
							add(&m.leaders, s.WaitsForHerd().Send(background, nil))
						}
						agree(t)
					},
					"done": func(t *rapid.T) {
						if !m.auto {
							m.done(len(all))
							count(s.LeaderDones().Send(background, nil))
							agree(t)
						}
					},
					"withdraw": func(t *rapid.T) {
						if len(all) > 0 {
							i := rapid.IntRange(max(0, len(all)-6), len(all)-1).Draw(t, "which")
							require.Equal(t, m.withdraw(i), withdraw[i]())
							agree(t)
						}
					},
				})
			})
		})
	}
}

func TestAHerdThatIsCanceledAsItGoesLeavesTheGateClosed(t *testing.T) {
	// A stepper lets the test come between the leader and the herd.
	stepper := objecttest.NewStepper(t)
	s, err := NewSquad(objecttest.NewSystem(t), 2, activeobject.Dispatcher(stepper))
	require.NoError(t, err)
	for passing := range 3 {
		herd := []activeobject.Future[none]{s.WaitsForLeader().Send(background, nil), s.WaitsForLeader().Send(background, nil)}
		leader := s.WaitsForHerd().Send(background, nil)
		stepper.Run()
		require.True(t, leader.Ready())
		done := s.LeaderDones().Send(background, nil)
		for range 1 + passing {
			require.True(t, stepper.Step())
		}
		late := s.WaitsForLeader().Send(background, nil)
		for _, f := range herd {
			f.Withdraw()
		}
		stepper.Run()
		gone, o := result(t, done)
		require.Equal(t, passed, o)
		require.LessOrEqual(t, gone, 2)
		passes := 0
		for _, f := range herd {
			if _, o := result(t, f); o == passed {
				passes++
			}
		}
		require.Equal(t, passes, gone)
		require.False(t, late.Ready(), "it has come after the leader was done")
		require.True(t, late.Withdraw())
		stepper.Run()
	}
}
