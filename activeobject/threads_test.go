package activeobject_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// A hall notes on which goroutine each of its bodies ran.
type hall struct{ goroutines []string }

type halls struct {
	*activeobject.Type[hall]
	leaf *activeobject.Operation[hall, None, string]
	ctx  *activeobject.Operation[hall, None, string]
	wait *activeobject.Operation[hall, None, string]
	hold *activeobject.Operation[hall, *brake, None]
	open *activeobject.Operation[hall, None, string]
}

func newHalls() halls {
	t := activeobject.NewType[hall]("hall")
	leaf := func(h *hall) string { h.goroutines = append(h.goroutines, goroutine()); return goroutine() }
	return halls{
		Type: t,
		leaf: activeobject.Procedure(t, "leaf", activeobject.Result(leaf)),
		ctx:  activeobject.ProcedureCtx(t, "ctx", func(h *hall, _ context.Context, _ None) (string, error) { return leaf(h), nil }),
		wait: activeobject.EntryCtx(t, "wait", func(h *hall, _ context.Context, _ None) (string, error) { return leaf(h), nil }).
			When("entered before", func(h *hall) bool { return len(h.goroutines) > 0 }),
		hold: hold(t),
		open: activeobject.Procedure(t, "open", activeobject.Result(leaf)),
	}
}

func TestBodiesRunOnTheThreadsOfTheirConfiguration(t *testing.T) {
	hs := newHalls()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, hs.Type, &hall{})
		me := goroutine()
		seen := map[string]bool{}
		for range 20 {
			for _, op := range []*activeobject.Operation[hall, None, string]{hs.leaf, hs.ctx} {
				ran, err := op.Call(background, o, nil)
				require.NoError(t, err)
				require.Equal(t, s.onCallers(), ran == me)
				seen[ran] = true
			}
			ran, err := hs.ctx.Send(background, o, nil).Await(background)
			require.NoError(t, err)
			require.NotEqual(t, me, ran, "a body that may block does not run on its sender")
			if !s.onCallers() {
				seen[ran] = true
			}
		}
		if s.onCallers() || s.name == "dedicated" {
			require.Len(t, seen, 1)
		}
	})
}

func TestABodyThatMayBlockNeverRunsOnAnotherCallersGoroutine(t *testing.T) {
	hs := newHalls()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, hs.Type, &hall{})
		type ran struct{ caller, body string }
		waited := make(chan ran, 1)
		go func() {
			body, _ := hs.wait.Call(background, o, nil)
			waited <- ran{goroutine(), body}
		}()
		waiting(t, o, hs.wait, 1)
		opener, err := hs.open.Call(background, o, nil)
		require.NoError(t, err)
		got := soon(t, s.system, waited)
		if s.onCallers() {
			require.Equal(t, goroutine(), opener)
			require.Equal(t, got.caller, got.body)
		} else {
			require.NotEqual(t, got.caller, got.body)
			require.NotEqual(t, goroutine(), got.body)
		}
	})
}

func TestAGoroutineServesAtMostSoManyOthers(t *testing.T) {
	const most = 32
	hs := newHalls()
	for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}} {
		s := &scene{name: "default", system: newSystem(t), options: options}
		state := &hall{}
		o := newObject(t, s, hs.Type, state)
		release := braked(t, s, o, hs.hold)
		var results []<-chan outcome[string]
		for range 10 * most {
			results = append(results, calling(background, o, hs.leaf, nil))
		}
		waiting(t, o, hs.leaf, 10*most)
		release()
		for _, c := range results {
			require.NoError(t, soon(t, s.system, c).err)
		}
		<-o.Stop()
		served := map[string]int{}
		for _, id := range state.goroutines {
			served[id]++
		}
		for id, n := range served {
			require.LessOrEqual(t, n, most+1, "goroutine %s: its own and those of others", id)
		}
		require.Greater(t, len(served), 1)
		require.LessOrEqual(t, len(served), 10*most/2, "goroutines serve each other")
	}
}

func TestAGoroutineInsideAnObjectServesNoRequestOfAnother(t *testing.T) {
	hs, ps := newHalls(), newPlaces()
	for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}} {
		s := &scene{name: "default", system: newSystem(t), options: options}
		state := &hall{}
		o := newObject(t, s, hs.Type, state)
		p := newObject(t, s, ps.Type, &place{})
		// From inside p a body holds o while others queue there; it then goes on.
		b := newBrake()
		inside := make(chan string, 1)
		visited := calling(background, p, ps.visit, func(ctx context.Context) error {
			inside <- goroutine()
			_, err := hs.hold.Call(ctx, o, b)
			return err
		})
		visitor := soon(t, s.system, inside)
		soon(t, s.system, b.entered)
		var results []<-chan outcome[string]
		for range 20 {
			results = append(results, calling(background, o, hs.leaf, nil), awaiting(background, hs.leaf.Send(background, o, nil)))
		}
		waiting(t, o, hs.leaf, 40)
		close(b.let)
		require.NoError(t, soon(t, s.system, visited).err)
		for _, c := range results {
			require.NotEqual(t, visitor, soon(t, s.system, c).result)
		}
	}
}

func TestNothingWaitsForABody(t *testing.T) {
	// Arrival, withdrawal, count, explanation and stop all return while one runs.
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f := ts.drain.Send(background, o, nil)
			ts.drain.Tell(background, o, nil)
			ts.drain.Waiting(o)
			o.Explain()
			s.system.Explain()
			o.PID()
			f.Withdraw()
			newObject(t, s, ts.Type, &dam{}).Stop()
			o.Stop()
			o.Explain()
		}()
		within(t, release, done)
		release()
	})
}
