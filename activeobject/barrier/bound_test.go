package barrier

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// A party that finds no room could not come inside, where it is counted, and all would wait
// for ever.
func TestACyclicBarrierHasRoomForAllOfItsParties(t *testing.T) {
	system := objecttest.NewSystem(t)
	_, err := NewCyclic(system, 3, activeobject.Name("rounds"), activeobject.Bound(2, activeobject.Wait))
	var wrong *activeobject.ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "options", wrong.Argument)
	require.ErrorContains(t, err, "barrier.NewCyclic")

	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
		b, err := NewCyclic(system, 3, activeobject.Bound(3, overflow))
		require.NoError(t, err)
		for _, busy := range []bool{false, true} {
			first, second := calling(func() error { return b.Await(background) }), calling(func() error { return b.Await(background) })
			objecttest.Waiting(t, b.o, cyclicAwait, 2)
			release := func() {}
			if busy {
				release = braked(b.o)
			}
			last := b.Awaits().Send(background, nil)
			release()
			for _, c := range []<-chan error{first, second} {
				require.NoError(t, soon(t, c))
			}
			_, o := result(t, last)
			require.Equal(t, passed, o)
		}
	}
}

// A squad with less room would wait for ever if the leader comes first.
func TestASquadHasRoomForItsLeaderAndTheHerd(t *testing.T) {
	const trigger = 2
	system := objecttest.NewSystem(t)
	type squadLock interface {
		WaitForLeader(context.Context) error
		WaitForHerd(context.Context) error
		Gathered() int
	}
	for name, build := range map[string]func(...activeobject.Option) (squadLock, func() (int, error), error){
		"barrier.NewSquad": func(options ...activeobject.Option) (squadLock, func() (int, error), error) {
			s, err := NewSquad(system, trigger, options...)
			return s, func() (int, error) { return s.LeaderDone() }, err
		},
		"barrier.NewAuto": func(options ...activeobject.Option) (squadLock, func() (int, error), error) {
			a, err := NewAuto(system, trigger, options...)
			return autoSquad{a}, func() (int, error) { return trigger, nil }, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := build(activeobject.Bound(trigger, activeobject.Wait))
			var wrong *activeobject.ArgumentError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "options", wrong.Argument)
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, "a leader and a herd of 2")

			for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
				s, done, err := build(activeobject.Bound(trigger+1, overflow))
				require.NoError(t, err)
				leader := calling(func() error { return s.WaitForHerd(background) })
				var herd []<-chan error
				for range trigger {
					herd = append(herd, calling(func() error { return s.WaitForLeader(background) }))
				}
				require.NoError(t, soon(t, leader))
				n, err := done()
				require.NoError(t, err)
				require.Equal(t, trigger, n)
				for _, h := range herd {
					require.NoError(t, soon(t, h))
				}
			}
		})
	}
}

// autoSquad is an Auto whose leader does not ask how many have gone.
type autoSquad struct{ *Auto }

func (a autoSquad) WaitForHerd(ctx context.Context) error {
	_, err := a.Auto.WaitForHerd(ctx)
	return err
}
