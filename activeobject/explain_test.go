package activeobject_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

func TestAnExplanationNamesTheGuardThatIsFalse(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	wet := guards.When("wet", (*dam).wet)
	deep := guards.WhenArg("deep enough", (*dam).reaches)
	even := guards.When("even", func(d *dam) bool { return d.level%2 == 0 })
	body := func(*dam, int) (None, error) { return nil, nil }
	// The state is 1: wet, odd, and less deep than 5.
	want := map[*activeobject.Operation[dam, int, None]]string{
		activeobject.Entry(dams, "one", body).When("dry", func(d *dam) bool { return d.level == 0 }):                                                                 "dry",
		activeobject.Entry(dams, "argument", body).Guard(deep):                                                                                                       "deep enough",
		activeobject.Entry(dams, "and", body).Guard(guards.And(guards.Over[int](wet), deep)):                                                                         "deep enough",
		activeobject.Entry(dams, "and state", body).Guard(guards.Over[int](guards.And(wet, even))):                                                                   "even",
		activeobject.Entry(dams, "or", body).Guard(guards.Or(guards.Over[int](even), deep)):                                                                          "(even or deep enough)",
		activeobject.Entry(dams, "not", body).Guard(guards.Over[int](guards.Not(wet))):                                                                               "not wet",
		activeobject.Entry(dams, "added", body).When("wet", (*dam).wet).WhenArg("deep enough", (*dam).reaches):                                                       "deep enough",
		activeobject.Entry(dams, "mixed", body).Guard(guards.And(guards.Over[int](wet), guards.Or(guards.Over[int](even), guards.Not(guards.Over[int](wet))), deep)): "(even or not wet)",
	}
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{level: 1})
		for op := range want {
			op.Send(background, o, 5)
			waiting(t, o, op, 1)
		}
		got := map[string]string{}
		eventually(t, "all are inside", func() bool {
			return !slices.ContainsFunc(o.Explain().Waiting, func(w mailbox.Waiting) bool { return w.Outside })
		})
		for _, w := range o.Explain().Waiting {
			require.Equal(t, mailbox.GuardFalse, w.Reason.Cause)
			require.False(t, w.Outside)
			got[w.Operation] = w.Reason.Guard
		}
		for op, guard := range want {
			require.Equal(t, guard, got[op.Name()], op.Name())
			_, err := op.Try(background, o, 5)
			var r *activeobject.RefusedError
			require.ErrorAs(t, err, &r)
			require.Equal(t, guard, r.Guard)
		}
	})
}

func TestAnExplanationNamesWhatRunsInTheWay(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		ts.drain.Send(background, o, nil)
		waiting(t, o, ts.drain, 1)
		release := braked(t, s, o, ts.hold)
		ts.drain.Send(background, o, nil)
		ts.fill.Send(background, o, 1)
		snap := o.Explain()
		require.Len(t, snap.Running, 1)
		require.Equal(t, "hold", snap.Running[0].Operation)
		require.Len(t, snap.Waiting, 3)
		for _, w := range snap.Waiting {
			require.Equal(t, mailbox.Conflict, w.Reason.Cause)
			require.Equal(t, []string{"hold"}, w.Reason.Conflicts)
			inside := w.Operation == "drain" && w.Arrival < 3
			require.Equal(t, !inside, w.Outside)
			if inside {
				require.Equal(t, "wet", w.Reason.Guard, "what it said last")
			}
		}
		release()
	})
}

func TestPositionsAreThoseWithinAnEntry(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		release := braked(t, s, o, ts.hold)
		for range 3 {
			ts.fill.Send(background, o, 1)
			ts.runs.Send(background, o, nil)
		}
		next := map[string]int{}
		for _, w := range o.Explain().Waiting {
			next[w.Operation]++
			require.Equal(t, next[w.Operation], w.Position)
		}
		require.Equal(t, map[string]int{"fill": 3, "runs": 3}, next)
		release()
	})
}

func TestAgesAreTimesSinceArrival(t *testing.T) {
	ts := newTanks()
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}))
		for range 3 {
			ts.drain.Send(background, o, nil)
			time.Sleep(time.Minute) // in the bubble: no time passes
		}
		b := newBrake()
		held := calling(background, o, ts.hold, b)
		<-b.entered
		time.Sleep(time.Hour)
		snap := o.Explain()
		require.Len(t, snap.Waiting, 3)
		for i, w := range snap.Waiting {
			require.Equal(t, i+1, w.Position)
			require.Equal(t, time.Hour+time.Duration(3-i)*time.Minute, w.Age)
		}
		require.Equal(t, time.Hour, snap.Running[0].Age)
		close(b.let)
		<-held
		require.NoError(t, system.Close(background))
	})
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// The scene of the golden files: office's body waits at vault for a key that
// safe holds; others wait behind each.
func TestAnExplanationFollowsTheWaitToItsEnd(t *testing.T) {
	ps := newPlaces()
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem(actor.Logger(quiet))
		at := func(name string) *activeobject.Object[place] {
			return activeobject.Must(activeobject.New(system, ps.Type, &place{}, activeobject.Name(name), activeobject.NoFastPath()))
		}
		office, vault, safe := at("office"), at("vault"), at("safe")
		var results []<-chan outcome[None]
		visit := func(o *activeobject.Object[place], v visit) {
			results = append(results, calling(background, o, ps.visit, v))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithCancel(background)
		visit(safe, func(context.Context) error { <-ctx.Done(); return nil })
		visit(vault, func(ctx context.Context) error { _, err := ps.touch.Call(ctx, safe, nil); return err })
		entered := ps.enter.Send(background, office, nil)
		time.Sleep(1500 * time.Millisecond)
		visit(office, func(ctx context.Context) error { _, err := ps.visit.Call(ctx, vault, nil); return err })
		visit(office, nil)

		snap := office.Explain()
		require.Equal(t, []mailbox.Far{{
			Request: "vault.visit",
			Reason:  mailbox.Reason{Cause: mailbox.Conflict, Conflicts: []string{"visit"}},
			Behind: []mailbox.Far{{
				Request: "safe.touch",
				Reason:  mailbox.Reason{Cause: mailbox.Conflict, Conflicts: []string{"visit"}},
			}},
		}}, snap.Running[0].Waits)
		golden(t, "explain.txt", []byte(snap.String()))
		j, err := snap.JSON()
		require.NoError(t, err)
		golden(t, "explain.json", append(j, '\n'))
		var back mailbox.Snapshot
		require.NoError(t, json.Unmarshal(j, &back))
		require.Equal(t, snap, back)
		require.Len(t, system.Explain(), 3)

		cancel()
		for _, c := range results {
			require.NoError(t, (<-c).err)
		}
		require.True(t, entered.Withdraw())
		require.Empty(t, system.Explain(), "nothing runs or waits")
		require.NoError(t, system.Close(background))
	})
}

func TestAnIdleObjectExplainsItselfInFewWords(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Name("lake"))
		require.Equal(t, "lake: 0 running, 0 waiting\n", o.Explain().String())
		j, err := o.Explain().JSON()
		require.NoError(t, err)
		require.JSONEq(t, `{"object":"lake","step":0,"running":[],"waiting":[]}`, string(j))
		<-o.Stop()
		require.Equal(t, "lake (stopped): 0 running, 0 waiting\n", o.Explain().String())
	})
}

func TestAFarWaitForAGuardIsExplained(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := ps.at(t, s, "a"), ps.at(t, s, "b")
		ctx, cancel := context.WithCancel(background)
		visited := calling(ctx, a, ps.visit, func(ctx context.Context) error { _, err := ps.enter.Call(ctx, b, nil); return err })
		waiting(t, b, ps.enter, 1)
		eventually(t, "the guard has been asked", func() bool {
			w := b.Explain().Waiting
			return len(w) == 1 && w[0].Reason.Cause == mailbox.GuardFalse
		})
		var waits []mailbox.Far
		eventually(t, "the edge is drawn", func() bool { waits = a.Explain().Running[0].Waits; return len(waits) == 1 })
		require.Equal(t, "b.enter", waits[0].Request)
		require.Equal(t, mailbox.GuardFalse, waits[0].Reason.Cause)
		require.Equal(t, "open", waits[0].Reason.Guard)
		cancel()
		require.ErrorIs(t, soon(t, s.system, visited).err, context.Canceled)
		require.Empty(t, a.Explain().Running)
	})
}

func TestExplainingManyWaitersDelaysNoCall(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	swim := activeobject.Entry(dams, "swim", func(*dam, int) (None, error) { return nil, nil }).WhenArg("deep enough", (*dam).reaches)
	drain := activeobject.Entry(dams, "drain", activeobject.Plain((*dam).drain)).When("wet", (*dam).wet)
	note := activeobject.Function(dams, "note", activeobject.Plain(func(*dam) {}))

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		waiters := size(100_000, 30_000, 5_000)
		// Every tenth is going to leave during the inspection.
		var leaving []activeobject.Future[None]
		for i := range waiters {
			if i%10 == 5 {
				leaving = append(leaving, drain.Send(background, o, nil))
			} else {
				swim.Send(background, o, 1_000_000)
			}
		}
		waiting(t, o, swim, waiters-len(leaving))
		waiting(t, o, drain, len(leaving))
		var stayed []uint64
		for _, w := range o.Explain().Waiting {
			if w.Operation == "swim" {
				stayed = append(stayed, w.Arrival)
			}
		}
		require.Len(t, stayed, waiters-len(leaving))

		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, f := range leaving {
				select {
				case <-stop:
					return
				default:
					f.Withdraw()
					runtime.Gosched()
				}
			}
		})
		calls := 0
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					note.Call(background, o, nil)
					f := swim.Send(background, o, 1_000_000)
					f.Withdraw()
					calls++
					runtime.Gosched()
				}
			}
		})
		for range 2 {
			seen := map[uint64]int{}
			for _, w := range o.Explain().Waiting {
				seen[w.Arrival]++
			}
			for _, arrival := range stayed {
				require.Equal(t, 1, seen[arrival], "arrival %d", arrival)
			}
			for arrival, n := range seen {
				require.Equal(t, 1, n, "arrival %d", arrival)
			}
		}
		close(stop)
		wg.Wait()
		require.NotZero(t, calls, "calls go on meanwhile")
		soon(t, s.system, o.Stop())
	})
}
