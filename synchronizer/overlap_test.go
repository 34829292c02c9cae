package synchronizer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// Leaf bodies, which start by the fast path, past the scheduler, meet inside like others: of
// every kind of operation, of which neither knows which will be first.
func TestEveryCompatiblePairOfLeafBodiesOverlaps(t *testing.T) {
	type hall struct{}
	type meet = func()
	halls := activeobject.NewType[hall]("hall")
	in := func(_ *hall, m meet) (None, error) { m(); return none, nil }
	ops := []*activeobject.Operation[hall, meet, None]{
		activeobject.Procedure(halls, "procedure", in),
		activeobject.Procedure(halls, "other procedure", in),
		activeobject.Entry(halls, "entry", in).When("always", func(*hall) bool { return true }),
		activeobject.Function(halls, "function", in),
	}
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		for i, first := range ops {
			for j, second := range ops {
				// No other operations are compatible: so they are admitted because of this pair.
				table := guards.NewExclusive(halls.Operations()...).Allow(i, j)
				o, err := synchronizer.New(s, halls, &hall{}, append(options, synchronizer.Conflicts(table))...)
				require.NoError(t, err)
				for range 5 {
					here := make(chan None)
					one, other := call(first, o, func() { here <- none }), call(second, o, func() { <-here })
					require.NoError(t, soon(t, one), "%s and %s", first.Name(), second.Name())
					require.NoError(t, soon(t, other))
				}
				<-o.Stop()
			}
		}
	})
}
