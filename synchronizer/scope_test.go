package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// A visit of a hall takes up a place in it, and does what it says.
type place struct {
	from, to int
	f        func(context.Context) error
}

type hall struct{}

type halls struct {
	*activeobject.Type[hall]
	sit, look *activeobject.Operation[hall, place, None]
	clear     *activeobject.Operation[hall, None, None]
}

func newHalls() halls {
	t := activeobject.NewType[hall]("hall")
	enter := func(_ *hall, ctx context.Context, p place) (None, error) { return none, p.f(ctx) }
	return halls{t,
		activeobject.ProcedureCtx(t, "sit", enter),
		activeobject.FunctionCtx(t, "look", enter),
		activeobject.Procedure(t, "clear", activeobject.Plain(func(*hall) {})),
	}
}

// scopes are the tables of a hall in which two visits conflict if they overlap by what
// they take up, in the three ways to say so.
func (hs halls) scopes() map[string]guards.Table {
	bounds := func(p place) (from, to int) { return p.from, p.to }
	overlap := func(a, b place) bool { return max(a.from, b.from) < min(a.to, b.to) }
	t := hs.Conflicts()
	return map[string]guards.Table{
		"keys": t.EqualKeys(
			guards.Key(hs.sit, func(p place) int { return p.from }),
			guards.Key(hs.look, func(p place) int { return p.from })),
		"intervals": t.Overlapping(guards.Interval(hs.sit, bounds), guards.Interval(hs.look, bounds)),
		"predicate": t.OnlyIf(guards.Pair(hs.sit, hs.sit, overlap), guards.Pair(hs.sit, hs.look, overlap)),
	}
}

func everyScope(t *testing.T, test func(t *testing.T, s *actor.System, hs halls, table guards.Table, options ...activeobject.Option)) {
	hs := newHalls()
	for name, table := range hs.scopes() {
		t.Run(name, func(t *testing.T) {
			everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
				test(t, s, hs, table, options...)
			})
		})
	}
}

func newHall(t testing.TB, s *actor.System, hs halls, table guards.Table, options ...activeobject.Option) *activeobject.Object[hall] {
	t.Helper()
	o, err := synchronizer.New(s, hs.Type, &hall{}, append(options, synchronizer.Conflicts(table))...)
	require.NoError(t, err)
	return o
}

// Requests that take up different places run at the same time: they meet. Of those at one
// place the second waits for the first, and the reason says so.
func TestRequestsThatDoNotOverlapRunAtOnce(t *testing.T) {
	everyScope(t, func(t *testing.T, s *actor.System, hs halls, table guards.Table, options ...activeobject.Option) {
		o := newHall(t, s, hs, table, options...)
		here, leave := make(chan None), make(chan None)
		first := call(hs.sit, o, place{0, 1, func(context.Context) error { here <- none; <-leave; return nil }})
		soon(t, here)
		var ran atomic.Bool
		same := call(hs.look, o, place{0, 1, func(context.Context) error { ran.Store(true); return nil }})
		until(t, "the second has not come", func() bool { return hs.look.Waiting(o) == 1 })
		require.NoError(t, soon(t, call(hs.sit, o, place{1, 2, func(context.Context) error { return nil }})))
		require.NoError(t, soon(t, call(hs.look, o, place{1, 2, func(context.Context) error { return nil }})))
		waiting := o.Explain().Waiting
		require.Len(t, waiting, 1)
		require.Equal(t, []string{"sit"}, waiting[0].Reason.Conflicts)
		require.False(t, ran.Load())
		close(leave)
		require.NoError(t, soon(t, first))
		require.NoError(t, soon(t, same))
	})
}

// A request that conflicts with everything waits for all of them, and no later request that
// conflicts with it passes, at whatever place.
func TestARequestThatConflictsWithAllWaitsForAllPlaces(t *testing.T) {
	everyScope(t, func(t *testing.T, s *actor.System, hs halls, table guards.Table, options ...activeobject.Option) {
		o := newHall(t, s, hs, table, options...)
		here, leave := make(chan None), make(chan None)
		var visits []<-chan error
		for i := range 3 {
			visits = append(visits, call(hs.sit, o, place{i, i + 1, func(context.Context) error { here <- none; <-leave; return nil }}))
			soon(t, here)
		}
		all := call(hs.clear, o, none)
		until(t, "clear has not come", func() bool { return hs.clear.Waiting(o) == 1 })
		late := call(hs.sit, o, place{9, 10, func(context.Context) error { return nil }})
		until(t, "the late one has not come", func() bool { return hs.sit.Waiting(o) == 1 })
		for _, w := range o.Explain().Waiting {
			if w.Operation == "sit" {
				require.Equal(t, "clear", w.Reason.Behind)
			}
		}
		close(leave)
		for _, v := range append(visits, all, late) {
			require.NoError(t, soon(t, v))
		}
	})
}

// Under load no two that overlap are inside at once, and every request is answered: done, or
// withdrawn and never run.
func TestNoTwoThatOverlapAreInsideAtOnce(t *testing.T) {
	everyScope(t, func(t *testing.T, s *actor.System, hs halls, table guards.Table, options ...activeobject.Option) {
		const places, callers, rounds = 5, 12, 60
		o := newHall(t, s, hs, table, options...)
		var sitting, looking [places]atomic.Int32
		var ran, done, withdrawn atomic.Int32
		body := func(at int, mine, other *[places]atomic.Int32, alone bool) func(context.Context) error {
			return func(context.Context) error {
				n := mine[at].Add(1)
				if alone && n > 1 || other[at].Load() > 0 {
					t.Errorf("two overlap at %d", at)
				}
				if ran.Add(1)%4 == 0 {
					runtime.Gosched()
				}
				mine[at].Add(-1)
				return nil
			}
		}
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range rounds {
					at := (c*7 + i*3) % places
					ctx, cancel := context.WithCancel(background)
					if i%5 == 4 {
						go cancel()
					}
					var err error
					if (c+i)%3 == 0 {
						_, err = hs.sit.Call(ctx, o, place{at, at + 1, body(at, &sitting, &looking, true)})
					} else {
						_, err = hs.look.Call(ctx, o, place{at, at + 1, body(at, &looking, &sitting, false)})
					}
					cancel()
					switch {
					case err == nil:
						done.Add(1)
					case errors.Is(err, context.Canceled):
						withdrawn.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, done.Load(), ran.Load(), "what was withdrawn never ran")
		require.EqualValues(t, callers*rounds, done.Load()+withdrawn.Load())
	})
}

// A request whose key or interval cannot be found out fails, and names the operation; so
// does one about which a condition panics, or ends its goroutine. No other request is affected.
func TestFailuresOfAScopeFailTheRequestAlone(t *testing.T) {
	hs := newHalls()
	bad := func(p place) int {
		if p.from < 0 {
			panic("no such place")
		}
		return p.from
	}
	fine := place{1, 2, func(context.Context) error { return nil }}
	for name, c := range map[string]struct {
		table guards.Table
		want  string
	}{
		"key panics": {hs.Conflicts().EqualKeys(guards.Key(hs.sit, bad)), ".sit panicked: no such place"},
		"reversed": {hs.Conflicts().Overlapping(guards.Interval(hs.sit, func(p place) (int, int) { return p.to, p.from - 1 })),
			"interval from"},
		"condition panics": {hs.Conflicts().OnlyIf(guards.Pair(hs.sit, hs.sit, func(a, b place) bool { return bad(a) == bad(b) })),
			"the condition on which sit conflicts with sit panicked: no such place"},
		"condition exits": {hs.Conflicts().OnlyIf(guards.Pair(hs.sit, hs.sit, func(a, b place) bool {
			if a.from < 0 || b.from < 0 {
				runtime.Goexit()
			}
			return a.from == b.from
		})), "ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
				o := newHall(t, s, hs, c.table, options...)
				if name == "reversed" {
					_, err := hs.sit.Call(background, o, fine)
					require.ErrorContains(t, err, "interval from 2 to 0 has no direction")
					require.NoError(t, soon(t, call(hs.clear, o, none)))
					return
				}
				here, leave := make(chan None), make(chan None)
				// Sent, so that no caller's goroutine is left here that might evaluate the condition, and end by it.
				first := hs.sit.Send(background, o, place{5, 6, func(context.Context) error { here <- none; <-leave; return nil }})
				soon(t, here)
				ran := errors.New("it has run")
				answer := make(chan error, 1)
				go func() {
					err := errors.New("ended its goroutine") // which evaluates the condition, if it is the owner
					defer func() { answer <- err }()
					_, err = hs.sit.Call(background, o, place{-1, 0, func(context.Context) error { return ran }})
				}()
				err := soon(t, answer)
				require.ErrorContains(t, err, c.want)
				switch name {
				case "key panics":
					require.ErrorAs(t, err, new(*activeobject.KeyError))
				case "condition panics":
					require.ErrorAs(t, err, new(*activeobject.ConflictError))
				}
				require.NoError(t, soon(t, call(hs.sit, o, fine)))
				close(leave)
				_, err = first.Await(background)
				require.NoError(t, err)
				require.NoError(t, soon(t, call(hs.clear, o, none)))
			})
		})
	}
}

// A function of another argument than the operation takes is told when the object is made.
func TestATableOfOtherArgumentsIsRefused(t *testing.T) {
	hs, s := newHalls(), newSystem(t)
	table := hs.Conflicts().EqualKeys(guards.Key(hs.sit, func(name string) string { return name }))
	_, err := synchronizer.New(s, hs.Type, &hall{}, synchronizer.Conflicts(table))
	var e *activeobject.OptionError
	require.ErrorAs(t, err, &e)
	require.ErrorContains(t, err, `"sit" takes a synchronizer_test.place, and is given a function of a string`)
}

// A requeue takes up what its new argument says, and nothing of the old.
func TestARequeueTakesUpAnotherPlace(t *testing.T) {
	type seats struct{}
	typ := activeobject.NewType[seats]("seats")
	sit := activeobject.ProcedureCtx(typ, "sit", func(_ *seats, ctx context.Context, p place) (None, error) { return none, p.f(ctx) })
	move := activeobject.ProcedureCtx(typ, "move", func(_ *seats, ctx context.Context, p place) (None, error) {
		return sit.Requeue(place{p.to, p.to, p.f})
	})
	at := func(p place) int { return p.from }
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		o, err := synchronizer.New(s, typ, &seats{}, append(options, synchronizer.Conflicts(typ.Conflicts().EqualKeys(guards.Key(sit, at), guards.Key(move, at))))...)
		require.NoError(t, err)
		here, leave := make(chan None), make(chan None)
		taken := call(sit, o, place{2, 2, func(context.Context) error { here <- none; <-leave; return nil }})
		soon(t, here)
		moved := call(move, o, place{1, 2, func(context.Context) error { return nil }})
		until(t, "the requeued one waits at 2", func() bool { return sit.Waiting(o) == 1 })
		require.NoError(t, soon(t, call(sit, o, place{1, 1, func(context.Context) error { return nil }})), "place 1 is free again")
		close(leave)
		require.NoError(t, soon(t, taken))
		require.NoError(t, soon(t, moved))
	})
}

// By default a call that comes back is refused with the chain; with Reentrant it runs in
// the middle of those that wait for it, through whatever objects it comes, and before others
// that wait for these.
func TestACallThatComesBackIsLetInIfThatIsAllowed(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		strict := newRoom(t, s, rs, rs.Conflicts(), options...)
		open := newRoom(t, s, rs, rs.Conflicts(), append(options, synchronizer.Reentrant())...)
		between := newRoom(t, s, rs, rs.Conflicts())

		// a of the room calls b of another, which calls c of the first.
		chain := func(o *activeobject.Object[room], inside func() error) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := rs.b.Call(ctx, between, func(ctx context.Context) error {
					_, err := rs.c.Call(ctx, o, func(context.Context) error { return inside() })
					return err
				})
				return err
			}
		}
		err := soon(t, call(rs.a, strict, chain(strict, func() error { return nil })))
		var deadlock *activeobject.DeadlockError
		require.ErrorAs(t, err, &deadlock)
		require.Len(t, deadlock.Circle, 2)

		var order []string
		waits := make(chan (<-chan error), 1)
		err = soon(t, call(rs.a, open, func(ctx context.Context) error {
			order = append(order, "a begins")
			waits <- call(rs.b, open, func(context.Context) error { order = append(order, "b"); return nil })
			for rs.b.Waiting(open) == 0 {
				runtime.Gosched()
			}
			defer func() { order = append(order, "a ends") }()
			return chain(open, func() error { order = append(order, "c"); return nil })(ctx)
		}))
		require.NoError(t, err)
		require.NoError(t, soon(t, <-waits))
		require.Equal(t, []string{"a begins", "c", "a ends", "b"}, order)
	})
}

// A reentrant call conflicts with all but its own chain: it waits for other requests that run.
func TestAReentrantCallWaitsForRequestsOfOtherChains(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		table := rs.free().Conflict(rs.c, rs.b)
		o := newRoom(t, s, rs, table, append(options, synchronizer.Reentrant())...)
		here, leave := make(chan None), make(chan None)
		unrelated := call(rs.b, o, func(context.Context) error { here <- none; <-leave; return nil })
		soon(t, here)
		outer := call(rs.a, o, func(ctx context.Context) error {
			_, err := rs.c.Call(ctx, o, func(context.Context) error { return nil })
			return err
		})
		until(t, "c waits", func() bool { return rs.c.Waiting(o) == 1 })
		require.Equal(t, []string{"b"}, o.Explain().Waiting[0].Reason.Conflicts)
		close(leave)
		require.NoError(t, soon(t, unrelated))
		require.NoError(t, soon(t, outer))
	})
}

// Two chains that are inside and each want what the other excludes are a circle, which is
// told to the one that closes it.
func TestReentrantCallsInACircleAreTold(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		table := rs.free().Conflict(rs.c, rs.a)
		o := newRoom(t, s, rs, table, append(options, synchronizer.Reentrant())...)
		var both sync.WaitGroup
		both.Add(2)
		outer := func(ctx context.Context) error {
			both.Done()
			both.Wait()
			_, err := rs.c.Call(ctx, o, func(context.Context) error { return nil })
			return err
		}
		one, other := call(rs.a, o, outer), call(rs.a, o, outer)
		errs := []error{soon(t, one), soon(t, other)}
		var deadlock *activeobject.DeadlockError
		require.ErrorAs(t, errors.Join(errs...), &deadlock)
		require.True(t, errs[0] == nil || errs[1] == nil, "the other one goes on: %v", errs)
	})
}

// What comes back and goes deeper is admitted at every depth.
func TestReentrantCallsNest(t *testing.T) {
	rs, s := newRooms(), newSystem(t)
	o := newRoom(t, s, rs, rs.Conflicts(), synchronizer.Reentrant())
	deepest := 0
	var down func(depth int) func(context.Context) error
	down = func(depth int) func(context.Context) error {
		return func(ctx context.Context) error {
			if deepest = depth; depth == 50 {
				_, err := rs.set.Call(ctx, o, true) // a leaf
				return err
			}
			op := []*activeobject.Operation[room, func(context.Context) error, None]{rs.a, rs.b, rs.read}[depth%3]
			_, err := op.Call(ctx, o, down(depth+1))
			return err
		}
	}
	require.NoError(t, soon(t, call(rs.a, o, down(0))))
	require.Equal(t, 50, deepest)
	require.NoError(t, soon(t, call(rs.pass, o, none)))
}

// A store is a map whose values are boxes: operations on two keys touch two boxes.
type store struct{ boxes map[string]*int }

func ExampleConflicts_keys() {
	stores := activeobject.NewType[store]("store")
	type addition struct {
		key string
		n   int
	}
	add := activeobject.Procedure(stores, "add", func(s *store, a addition) (int, error) {
		*s.boxes[a.key] += a.n
		return *s.boxes[a.key], nil
	})
	get := activeobject.Function(stores, "get", func(s *store, key string) (int, error) { return *s.boxes[key], nil })

	// Without a word all additions conflict; now only those to one key do, with each other
	// and with what reads it.
	table := stores.Conflicts().EqualKeys(
		guards.Key(add, func(a addition) string { return a.key }),
		guards.Key(get, func(key string) string { return key }))
	fmt.Print(table)

	system := actor.NewSystem()
	defer system.Close(context.Background())
	shop, err := synchronizer.New(system, stores, &store{map[string]*int{"apples": new(int), "pears": new(int)}}, synchronizer.Conflicts(table))
	if err != nil {
		panic(err)
	}
	add.Call(context.Background(), shop, addition{"apples", 3})
	n, _ := get.Call(context.Background(), shop, "apples")
	fmt.Println(n)
	// Output:
	//      add  get
	// add  =    =
	// get  =
	// = if their keys are equal
	// 3
}

// Of an operation that conflicts with everything no key is evaluated, though it has been in a
// scope: its guard is found false on the fast path, and it waits like any other.
func TestAReplacedScopeIsNoMatterOnTheFastPath(t *testing.T) {
	s := newSystem(t)
	typ := activeobject.NewType[room]("room")
	enter := activeobject.Entry(typ, "enter", activeobject.Arg(func(*room, int) {})).When("open", (*room).isOpen)
	open := activeobject.Procedure(typ, "open", activeobject.Plain(func(r *room) { r.open = true }))
	table := typ.Conflicts().EqualKeys(guards.Key(enter, func(int) int { panic("evaluated") })).Exclusive(enter)
	o, err := synchronizer.New(s, typ, &room{}, synchronizer.Conflicts(table), synchronizer.Reentrant())
	require.NoError(t, err)
	entered := call(enter, o, 1)
	until(t, "it has not come", func() bool { return enter.Waiting(o) == 1 || len(entered) > 0 })
	opened := call(open, o, none)
	require.NoError(t, soon(t, entered))
	require.NoError(t, soon(t, opened))
}
