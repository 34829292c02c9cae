package activeobject_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// hatch is an object that is entered if it is open, and whose guard does to each request
// what its argument says.
type hatch struct {
	activeobject.Queues
	open bool
}

// ticket is the argument of a request: what its guard does instead of answering, if anything;
// and whether it wants the hatch closed.
type ticket struct {
	instead  atomic.Pointer[func()]
	contrary bool
}

type hatches struct {
	*activeobject.Type[hatch]
	enter *activeobject.Operation[hatch, *ticket, None]
	do    *activeobject.Operation[hatch, func(*hatch), None]
}

func newHatches() hatches {
	t := activeobject.NewType[hatch]("hatch")
	return hatches{
		Type: t,
		// The guard is said to look at waiting counts, so that it is evaluated for all that
		// wait when another request comes.
		enter: activeobject.Entry(t, "enter", func(*hatch, *ticket) (None, error) { return nil, nil }).
			WhenWaiting("counted", func(*hatch) bool { return true }).
			WhenArg("open", func(h *hatch, t *ticket) bool {
				if instead := t.instead.Load(); instead != nil {
					(*instead)()
				}
				return h.open != t.contrary
			}),
		do: activeobject.Procedure(t, "do", activeobject.Arg(func(h *hatch, what func(*hatch)) { what(h) })),
	}
}

// passing is how the youngest request goes first, and the guards of those that it passes are
// evaluated, since bypasses are counted.
func passing(s *scene) []activeobject.Option {
	return append([]activeobject.Option{activeobject.ByLatest(), activeobject.MaxBypass(3)}, s.options...)
}

// The guard of a request that would be bypassed fails in the decision to start a case, and
// the object is restarted. The other cases can still be chosen.
func TestACaseThatCouldNotStartAfterAllLeavesTheOthersTheirChance(t *testing.T) {
	hs := newHatches()
	everywhere(t, func(t *testing.T, s *scene) {
		first, err := activeobject.NewFrom(s.system, hs.Type, func() (*hatch, error) { return &hatch{}, nil },
			append(passing(s), activeobject.Supervisor(proto.NewRestartingStrategy()))...)
		require.NoError(t, err)
		second := newObject(t, s, hs.Type, &hatch{})
		bypassed := &ticket{}
		failed := hs.enter.Send(background, first, bypassed)
		waiting(t, first, hs.enter, 1)
		c := async(func() (int, error) {
			return activeobject.Select(background, hs.enter.Case(first, &ticket{}), hs.enter.Case(second, &ticket{}))
		})
		waiting(t, first, hs.enter, 2)
		waiting(t, second, hs.enter, 1)

		panics := func() { panic("bypassed") }
		_, err = hs.do.Call(background, first, func(h *hatch) {
			h.open = true
			bypassed.instead.Store(&panics)
		})
		require.NoError(t, err)
		require.ErrorAs(t, soon(t, s.system, awaiting(background, failed)).err, new(*activeobject.GuardError))
		_, err = hs.do.Call(background, first, func(h *hatch) { require.False(t, h.open) })
		require.NoError(t, err)
		require.Equal(t, 1, hs.enter.Waiting(first), "the case waits on")
		_, err = hs.do.Call(background, second, func(h *hatch) { h.open = true })
		require.NoError(t, err)
		require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, c))
		require.Zero(t, hs.enter.Waiting(first))
	})
}

// The guard ends the goroutine that decides about a case, which may be that of Select itself.
// No case stays behind.
func TestACaseThatCouldNotStartAfterAllLeavesNoneBehind(t *testing.T) {
	hs := newHatches()
	everywhere(t, func(t *testing.T, s *scene) {
		shut := newObject(t, s, hs.Type, &hatch{})
		open, err := activeobject.New(s.system, hs.Type, &hatch{open: true}, passing(s)...)
		require.NoError(t, err)
		bypassed := &ticket{contrary: true}
		failed := hs.enter.Send(background, open, bypassed)
		waiting(t, open, hs.enter, 1)
		exits := runtime.Goexit
		bypassed.instead.Store(&exits)
		c := async(func() (int, error) {
			return activeobject.Select(background, hs.enter.Case(shut, &ticket{}), hs.enter.Case(open, &ticket{}))
		})
		require.ErrorAs(t, soon(t, s.system, awaiting(background, failed)).err, new(*activeobject.GuardError))
		if out := soon(t, s.system, c); out.err != errEnded { // another goroutine has decided
			require.Equal(t, outcome[int]{result: 1}, out)
		}
		waiting(t, shut, hs.enter, 0)
		waiting(t, open, hs.enter, 0)
	})
}

// A case at the caller's own object cannot run, with Otherwise and without.
func TestSelectPassesOverACaseThatWaitsForTheCaller(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		home, other, away := ps.at(t, s, "home"), ps.at(t, s, "other"), ps.at(t, s, "away")
		// The body in other waits for home, too.
		inside, calls := make(chan struct{}), make(chan struct{})
		c := calling(background, other, ps.visit, func(ctx context.Context) error {
			close(inside)
			<-calls
			_, err := ps.visit.Call(ctx, home, nil)
			return err
		})
		soon(t, s.system, inside)
		_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
			close(calls)
			eventually(t, "the wait of the other is known", func() bool { return len(other.Explain().Running[0].Waits) == 1 })
			own, circle := ps.visit.Case(home, nil), ps.visit.Case(other, nil)
			_, err := activeobject.Select(ctx, own, circle)
			require.ErrorAs(t, err, new(*activeobject.DeadlockError))
			for _, last := range []activeobject.Alternative{ps.visit.Case(away, nil), activeobject.Otherwise} {
				i, err := activeobject.Select(ctx, own, circle, last)
				require.NoError(t, err)
				require.Equal(t, 2, i)
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, s.system, c).err)
	})
}
