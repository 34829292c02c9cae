package activeobject_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
)

// lift is at one floor at a time; the requests that wait there may get in.
type lift struct {
	floor int
	asked map[int]int
}

func (l *lift) at(floor int) bool {
	l.asked[floor]++
	return l.floor == floor
}

type lifts struct {
	*activeobject.Type[lift]
	stop  *activeobject.Family[lift, int, int, int]
	move  *activeobject.Operation[lift, int, None]
	cheat *activeobject.Operation[lift, int, None]
}

func newLifts() lifts {
	t := activeobject.NewType[lift]("lift")
	move := func(l *lift, to int) { l.floor = to }
	same := func(floor int) int { return floor }
	ls := lifts{
		Type:  t,
		stop:  activeobject.EntryFamily(t, "stop", func(l *lift, floor int) (int, error) { return l.floor, nil }, same).WhenKey("at the floor", (*lift).at),
		move:  activeobject.Procedure(t, "move", activeobject.Arg(move)),
		cheat: activeobject.Procedure(t, "cheat", activeobject.Arg(move)),
	}
	activeobject.Opens(ls.move, ls.stop, same)
	activeobject.Opens(ls.stop.Operation, ls.stop, same)
	activeobject.Opens(ls.cheat, ls.stop, func(floor int) int { return floor + 1 })
	return ls
}

func TestAFamilyIsOneEntryForEachKey(t *testing.T) {
	ls := newLifts()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &lift{asked: map[int]int{}}
		o := newObject(t, s, ls.Type, state)
		var all [10][]<-chan outcome[int]
		for floor := 1; floor < 10; floor++ {
			for range 5 {
				all[floor] = append(all[floor], calling(background, o, ls.stop.Operation, floor))
			}
		}
		waiting(t, o, ls.stop.Operation, 45)
		eventually(t, "all are inside", func() bool { return ls.stop.WaitingAt(o, 7) == 5 && ls.stop.WaitingAt(o, 3) == 5 })
		require.Zero(t, ls.stop.WaitingAt(o, 77))
		_, err := ls.stop.Try(background, o, 7)
		require.ErrorIs(t, err, activeobject.ErrRefused)
		_, err = ls.move.Call(background, o, 7)
		require.NoError(t, err)
		for _, c := range all[7] {
			out := soon(t, s.system, c)
			require.NoError(t, out.err)
			require.Equal(t, 7, out.result)
		}
		require.Zero(t, ls.stop.WaitingAt(o, 7))
		require.Equal(t, 40, ls.stop.Waiting(o))
		at, err := ls.stop.Try(background, o, 7)
		require.NoError(t, err)
		require.Equal(t, 7, at)
		<-o.Stop()
		for _, floor := range []int{1, 2, 3} {
			for _, c := range all[floor] {
				requireStopped(t, o.Name(), soon(t, s.system, c).err)
			}
		}
	})
}

// named is a key with a text of its own.
type named int

func (n named) String() string { return [...]string{"cellar", "roof"}[n] }

func TestAWaitingRequestOfAFamilyIsExplainedWithItsKey(t *testing.T) {
	ls, rooms := newLifts(), activeobject.NewType[lift]("rooms")
	enter := activeobject.EntryFamily(rooms, "enter", func(*lift, named) (None, error) { return nil, nil }, func(n named) named { return n }).
		When("open", func(*lift) bool { return false })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lift{asked: map[int]int{}})
		ls.stop.Send(background, o, 3)
		waiting(t, o, ls.stop.Operation, 1)
		never := guards.When("never", func(*lift) bool { return false })
		ctx, cancel := context.WithCancel(background)
		until := async(func() (None, error) { return nil, o.Until(ctx, never) })
		waitsFor(t, o, 2)
		ls.stop.Send(background, o, 5)
		waitsFor(t, o, 3)
		var keys []string
		for _, w := range o.Explain().Waiting {
			keys = append(keys, w.Operation+"["+w.Key+"]")
		}
		require.ElementsMatch(t, []string{"stop[3]", "stop[5]", "until[]"}, keys)
		require.Contains(t, o.Explain().String(), "  waiting  stop[5] (no. ")
		cancel()
		require.ErrorIs(t, soon(t, s.system, until).err, context.Canceled)

		p := newObject(t, s, rooms, &lift{})
		enter.Send(background, p, 1)
		waiting(t, p, enter.Operation, 1)
		require.Equal(t, "roof", p.Explain().Waiting[0].Key)
	})
}

// waitsFor waits until n requests wait at the object.
func waitsFor[T any](t *testing.T, o *activeobject.Object[T], n int) {
	t.Helper()
	enough := make(chan struct{})
	stop := o.Observe(func(l activeobject.Load) bool {
		if l.Waiting < n {
			return false
		}
		close(enough)
		return true
	})
	defer stop()
	select {
	case <-enough:
	case <-time.After(patience):
		t.Fatalf("%d requests do not wait: %v", n, o.Explain())
	}
}

func TestOpeningOneKeyEvaluatesNoOtherGuard(t *testing.T) {
	ls := newLifts()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &lift{asked: map[int]int{}}
		o := newObject(t, s, ls.Type, state, activeobject.Counters())
		for floor := 1; floor <= 100; floor++ {
			for range 3 {
				ls.stop.Send(background, o, floor)
			}
		}
		waiting(t, o, ls.stop.Operation, 300)
		settle := func() map[int]int {
			asked := map[int]int{}
			require.NoError(t, o.Do(background, func(l *lift) error { return nil }))
			require.NoError(t, o.View(background, func(l *lift) error {
				for k, n := range l.asked {
					asked[k] = n
				}
				return nil
			}))
			return asked
		}
		settle()
		before := ls.stop.Stats(o).Evaluations
		ls.move.Call(background, o, 7)
		eventually(t, "floor 7 is served", func() bool { return ls.stop.WaitingAt(o, 7) == 0 })
		// Those of the key, and what its own bodies may have opened.
		require.LessOrEqual(t, ls.stop.Stats(o).Evaluations-before, activeobject.Count(8))
		<-o.Stop()
	})
}

func TestAnUndeclaredOpeningIsFoundWhereItIsChecked(t *testing.T) {
	ls := newLifts()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lift{asked: map[int]int{}}, activeobject.CheckOpens())
		five := calling(background, o, ls.stop.Operation, 5)
		waiting(t, o, ls.stop.Operation, 1)
		eventually(t, "it is inside", func() bool { return ls.stop.WaitingAt(o, 5) == 1 })
		ls.cheat.Call(background, o, 5)
		err := soon(t, s.system, five).err
		var undeclared *activeobject.UndeclaredError
		require.ErrorAs(t, err, &undeclared)
		require.Equal(t, "cheat", undeclared.Operation)
		require.Equal(t, "stop", undeclared.Family)
		require.Equal(t, 5, undeclared.Key)
		_, err = ls.move.Call(background, o, 1)
		require.NoError(t, err)
	})
}

func TestAKeyThatCannotBeOneFailsItsRequestOnly(t *testing.T) {
	typ := activeobject.NewType[dam]("dam")
	body := func(*dam, any) (None, error) { return nil, nil }
	broken := activeobject.EntryFamily(typ, "broken", body, func(arg any) any {
		switch arg {
		case "panic":
			panic("no key")
		case "exit":
			runtime.Goexit()
		case "slice":
			return []int{1}
		case "nan":
			return math.NaN()
		}
		return arg
	}).WhenKey("open", func(d *dam, key any) bool { return d.level >= 0 })
	state := activeobject.EntryFamily(typ, "of a float", func(*dam, float64) (None, error) { return nil, nil }, func(f float64) float64 { return f }).When("wet", (*dam).wet)
	everywhere(t, func(t *testing.T, s *scene) {
		for _, level := range []int{-1, 1} { // whether its guard holds or not
			o := newObject(t, s, typ, &dam{level: level})
			for _, arg := range []any{"panic", "slice", "nan"} {
				var failed *activeobject.KeyError
				_, err := broken.Call(background, o, arg)
				require.ErrorAs(t, err, &failed, arg)
				_, err = broken.Try(background, o, arg)
				require.ErrorAs(t, err, &failed, arg)
				_, err = broken.Send(background, o, arg).Await(background)
				require.ErrorAs(t, err, &failed, arg)
				require.ErrorAs(t, broken.Tell(background, o, arg), &failed, arg)
				require.Equal(t, "broken", failed.Operation)
			}
			require.Equal(t, errEnded, soon(t, s.system, calling(background, o, broken.Operation, any("exit"))).err)
			_, err := state.Call(background, o, math.NaN())
			require.ErrorAs(t, err, new(*activeobject.KeyError))
			require.NoError(t, o.Do(background, func(*dam) error { return nil }), "the object is free")
			require.Empty(t, o.Explain().Waiting)
		}
	})
}

func TestAFamilyThatMakesNoSenseIsAPanicThatHelps(t *testing.T) {
	ls, others := newLifts(), newLifts()
	same := func(floor int) int { return floor }
	text := func(f func()) (text any) {
		defer func() { text = recover() }()
		f()
		return nil
	}
	for want, f := range map[string]func(){
		"use WhenKey": func() { ls.stop.WhenArg("deep", (*lift).at) },
		"without keys": func() {
			activeobject.EntryFamily[lift, int](ls.Type, "x", func(*lift, int) (None, error) { return nil, nil }, nil)
		},
		"by a nil func":  func() { activeobject.Opens(ls.move, ls.stop, nil) },
		"nil family":     func() { activeobject.Opens[lift, int](ls.move, (*activeobject.Family[lift, int, int, int])(nil), same) },
		"declares twice": func() { activeobject.Opens(ls.move, ls.stop, same) },
		"both must be":   func() { activeobject.Opens(ls.move, others.stop, same) },
		"condition":      func() { ls.stop.WhenKey("nothing", nil) },
		"head of line":   func() { ls.stop.HeadOfLine() },
		"":               func() {},
	} {
		if want != "" {
			require.Contains(t, text(f), want)
		}
	}
	activeobject.Must(activeobject.New(newSystem(t), others.Type, &lift{asked: map[int]int{}}))
	require.Contains(t, text(func() { activeobject.Opens(activeobject.In(others.Type, others.stop.Operation), others.stop, same) }), "after the first object")
}

func TestKeysWithoutWaitersCostNothing(t *testing.T) {
	ls := newLifts()
	s := &scene{system: newSystem(t)}
	o := newObject(t, s, ls.Type, &lift{asked: map[int]int{}}, activeobject.NoFastPath())
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	o.Do(background, func(*lift) error { return nil })
	before := memory()
	ctx, cancel := context.WithCancel(background)
	cancel()
	for floor := range 200_000 {
		ls.stop.Call(ctx, o, floor)
		f := ls.stop.Send(background, o, floor+1)
		f.Withdraw()
		if floor%1000 == 0 {
			o.Do(background, func(l *lift) error { clear(l.asked); return nil })
		}
	}
	o.Do(background, func(l *lift) error { l.asked = map[int]int{}; return nil })
	require.Less(t, int64(memory())-int64(before), int64(4<<20))
	runtime.KeepAlive(o)
}

func TestTwoTypesDerivedFromOneKeepTheirOwnOpens(t *testing.T) {
	typ := activeobject.NewType[lift]("lift")
	same := func(floor int) int { return floor }
	body := func(l *lift, floor int) (int, error) { return floor, nil }
	family := func(t *activeobject.Type[lift], name string) *activeobject.Family[lift, int, int, int] {
		return activeobject.EntryFamily(t, name, body, same).WhenKey("at", (*lift).at)
	}
	move := activeobject.Procedure(typ, "move", activeobject.Arg(func(l *lift, to int) { l.floor = to }))
	for _, name := range []string{"one", "two", "three"} { // there is room for one more behind three
		activeobject.Opens(move, family(typ, name), same)
	}
	first := activeobject.Derive(typ, "first", activeobject.Same[lift])
	second := activeobject.Derive(typ, "second", activeobject.Same[lift])
	in1, in2 := activeobject.In(first, move), activeobject.In(second, move)
	red, blue := family(first, "red"), family(second, "blue")
	activeobject.Opens(in1, red, same)
	activeobject.Opens(in2, blue, func(int) int { return -1 })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, first, &lift{asked: map[int]int{}})
		newObject(t, s, second, &lift{asked: map[int]int{}})
		waits := calling(background, o, red.Operation, 5)
		eventually(t, "it waits", func() bool { return red.WaitingAt(o, 5) == 1 })
		move.Call(background, o, 5)
		require.NoError(t, soon(t, s.system, waits).err)
	})
}
