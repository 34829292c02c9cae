package barrier

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// A party that finds no room could not come inside, where it is counted, and all would wait
// for ever.
func TestACyclicBarrierHasRoomForAllOfItsParties(t *testing.T) {
	system := objecttest.NewSystem(t)
	_, err := NewCyclic(system, 3, activeobject.Named("rounds"), activeobject.Bounded(2, activeobject.Wait))
	var wrong *activeobject.ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "options", wrong.Argument)
	require.ErrorContains(t, err, "barrier.NewCyclic")

	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
		b, err := NewCyclic(system, 3, activeobject.Bounded(3, overflow))
		require.NoError(t, err)
		for _, busy := range []bool{false, true} {
			first, second := calling(func() error { return b.Await(background) }), calling(func() error { return b.Await(background) })
			objecttest.Waiting(t, b.o, cyclicAwait, 2)
			release := func() {}
			if busy {
				release = braked(b.o)
			}
			last := b.SendAwait(background)
			release()
			for _, c := range []<-chan error{first, second} {
				require.NoError(t, soon(t, c))
			}
			_, o := result(t, last)
			require.Equal(t, passed, o)
		}
	}
}
