package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
)

func TestDoAndViewNeedNoDeclaration(t *testing.T) {
	ts := newTanks()
	failed := errors.New("failed")
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		require.NoError(t, o.Do(background, func(d *dam) error { d.level = 7; return nil }))
		level := 0
		require.NoError(t, o.View(background, func(d *dam) error { level = d.level; return nil }))
		require.Equal(t, 7, level)
		require.Equal(t, failed, o.Do(background, func(*dam) error { return failed }))
		require.ErrorAs(t, o.Do(background, func(*dam) error { panic("boom") }), new(*activeobject.PanicError))
		ctx, cancel := context.WithCancel(background)
		cancel()
		require.ErrorIs(t, o.Do(ctx, func(*dam) error { t.Error("ran"); return nil }), context.Canceled)
		<-o.Stop()
		requireStopped(t, o.Name(), o.Do(background, func(*dam) error { return nil }))
	})
}

func TestDoOpensWhatOthersWaitFor(t *testing.T) {
	ts := newTanks()
	wet := guards.When("wet", (*dam).wet)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		drained := calling(background, o, ts.drain, nil)
		done := async(func() (None, error) {
			return nil, o.DoWhen(background, wet, func(d *dam) error { d.level--; return nil })
		})
		eventually(t, "both wait", func() bool { return len(o.Explain().Waiting) == 2 })
		for range 2 {
			require.NoError(t, o.Do(background, func(d *dam) error { d.level++; return nil }))
		}
		require.NoError(t, soon(t, s.system, drained).err)
		require.NoError(t, soon(t, s.system, done).err)
	})
}

func TestAnArgumentThatMakesNoSenseIsAnErrorAndNothingHappens(t *testing.T) {
	ts := newTanks()
	counts := guards.WhenWaiting("counts", func(*dam) bool { return true })
	none, f := guards.Guard[dam, None]{}, func(*dam) error { return nil }
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		for _, err := range []error{
			o.Do(background, nil), o.View(background, nil), o.DoWhen(background, none, f), o.DoWhen(background, counts, nil),
			o.DoWhen(background, counts, f), o.Until(background, none), o.Until(background, counts), o.Until(background, guards.Not(counts)),
		} {
			require.ErrorAs(t, err, new(*activeobject.ArgumentError))
		}
	})
}

func TestAnyNumberOfWatchersOfOneGuardCostOneQuestionPerChange(t *testing.T) {
	const watchers = 10_000
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		asked, again := 0, 0
		condition := func(n *int) func(d *dam) bool { return func(d *dam) bool { *n++; return d.level > 100 } }
		deep, twin := guards.When("deep", condition(&asked)), guards.When("deep", condition(&again))
		o := newObject(t, s, ts.Type, &dam{})
		results := make(chan error, watchers+1)
		for range watchers {
			copied := deep
			go func() { results <- o.Until(background, copied) }()
		}
		go func() { results <- o.Until(background, twin) }()
		eventually(t, "they wait", func() bool { return len(o.Explain().Waiting) == watchers+1 })
		count := func() (n, m int) {
			require.NoError(t, o.View(background, func(*dam) error { n, m = asked, again; return nil }))
			return n, m
		}
		count() // after it the requests in the entry queue are admitted
		require.NoError(t, o.Do(background, func(*dam) error { return nil }))
		n, m := count()
		for range 10 {
			require.NoError(t, o.Do(background, func(d *dam) error { d.level++; return nil }))
			count() // a view changes nothing, and causes no question
		}
		n2, m2 := count()
		require.Equal(t, 10, n2-n)
		require.Equal(t, 10, m2-m, "a guard that is made twice is asked twice")
		require.Equal(t, "deep", o.Explain().Waiting[0].Reason.Guard)
		require.NoError(t, o.Do(background, func(d *dam) error { d.level = 101; return nil }))
		for range watchers + 1 {
			require.NoError(t, soon(t, s.system, results))
		}
	})
}

func TestAnUntilReturnsOnCancelAndStop(t *testing.T) {
	ts := newTanks()
	wet := guards.When("wet", (*dam).wet)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		until := func(ctx context.Context) <-chan outcome[None] {
			return async(func() (None, error) { return nil, o.Until(ctx, wet) })
		}
		ctx, cancel := context.WithCancel(background)
		gone, stays := until(ctx), until(background)
		eventually(t, "they wait", func() bool { return len(o.Explain().Waiting) == 2 })
		cancel()
		require.ErrorIs(t, soon(t, s.system, gone).err, context.Canceled)
		o.Stop()
		requireStopped(t, o.Name(), soon(t, s.system, stays).err)
	})
}

// As t.FailNow does in a test.
func TestGoexitInDoEndsThatGoroutineOnly(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		drained := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		for _, busy := range []bool{false, true} {
			release := func() {}
			if busy {
				release = braked(t, s, o, ts.hold)
			}
			exits := async(func() (None, error) {
				return nil, o.Do(background, func(*dam) error { runtime.Goexit(); return nil })
			})
			if busy {
				eventually(t, "it waits", func() bool { return len(o.Explain().Waiting) == 2 })
			}
			release()
			err := soon(t, s.system, exits).err
			if err != errEnded { // on another thread
				require.ErrorAs(t, err, new(*activeobject.ExitError))
			}
			require.Equal(t, s.onCallers(), err == errEnded)
		}
		require.NoError(t, o.Do(background, func(d *dam) error { d.level++; return nil }), "the object is free")
		require.NoError(t, soon(t, s.system, drained).err)
	})
}

func TestTwoPartsThatAreLikeEachOtherAreNotMixedUp(t *testing.T) {
	type pair struct{ left, right dam }
	typ := activeobject.NewType[pair]("pair")
	wet := guards.When("wet", (*dam).wet)
	left := guards.Part(wet, func(p *pair) *dam { return &p.left })
	right := guards.Part(wet, func(p *pair) *dam { return &p.right })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &pair{})
		l := async(func() (None, error) { return nil, o.Until(background, left) })
		eventually(t, "it waits", func() bool { return len(o.Explain().Waiting) == 1 })
		r := async(func() (None, error) { return nil, o.Until(background, right) })
		eventually(t, "it waits", func() bool { return len(o.Explain().Waiting) == 2 })
		o.Do(background, func(p *pair) error { p.right.level = 1; return nil })
		require.NoError(t, soon(t, s.system, r).err)
		require.Len(t, o.Explain().Waiting, 1)
		o.Do(background, func(p *pair) error { p.left.level = 1; return nil })
		require.NoError(t, soon(t, s.system, l).err)
	})
}
