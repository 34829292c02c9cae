package activeobject_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// The examples by which the inheritance anomaly is usually shown extend a bounded
// buffer: by an operation that takes two items (the states are partitioned anew),
// by one that may not run right after put (it depends on the history), and by a
// lock (all states are modified). Slots is that buffer.
type slots struct {
	items    []int
	capacity int
}

func (s *slots) put(n int)      { s.items = append(s.items, n) }
func (s *slots) notFull() bool  { return len(s.items) < s.capacity }
func (s *slots) notEmpty() bool { return len(s.items) > 0 }
func (s *slots) two() bool      { return len(s.items) >= 2 }
func (s *slots) length() int    { return len(s.items) }
func (s *slots) clear()         { s.items = nil }

func (s *slots) get() int {
	n := s.items[0]
	s.items = s.items[1:]
	return n
}

func (s *slots) fill(_ context.Context, n int) (int, error) {
	for range n {
		s.put(n)
	}
	return len(s.items), nil
}

// a buffer is the declaration of slots, for one test.
type buffer struct {
	*activeobject.Type[slots]
	put    *activeobject.Operation[slots, int, None]
	get    *activeobject.Operation[slots, None, int]
	fill   *activeobject.Operation[slots, int, int] // takes a context, and waits for room for its argument
	clear  *activeobject.Operation[slots, None, None]
	length *activeobject.Operation[slots, None, int]
	hold   *activeobject.Operation[slots, *brake, None]
}

func newBuffer() *buffer {
	t := activeobject.NewType[slots]("buffer")
	return &buffer{
		Type:   t,
		put:    activeobject.Entry(t, "put", activeobject.Arg((*slots).put)).When("not full", (*slots).notFull),
		get:    activeobject.Entry(t, "get", activeobject.Result((*slots).get)).When("not empty", (*slots).notEmpty),
		fill:   activeobject.EntryCtx(t, "fill", (*slots).fill).WhenArg("room", func(s *slots, n int) bool { return len(s.items)+n <= s.capacity }),
		clear:  activeobject.Procedure(t, "clear", activeobject.Plain((*slots).clear)),
		length: activeobject.Function(t, "length", activeobject.Result((*slots).length)),
		hold:   hold(t),
	}
}

// unchanged checks that an object of the base knows nothing of what is derived.
func (b *buffer) unchanged(t *testing.T, s *scene) {
	t.Helper()
	require.Equal(t, []string{"put", "get", "fill", "clear", "length", "hold"}, b.Operations())
	o := newObject(t, s, b.Type, &slots{capacity: 3})
	_, err := b.put.Call(background, o, 7)
	require.NoError(t, err)
	n, err := b.get.Try(background, o, nil)
	require.Equal(t, outcome[int]{7, nil}, outcome[int]{n, err})
	n, err = b.fill.Try(background, o, 3)
	require.Equal(t, outcome[int]{3, nil}, outcome[int]{n, err})
	_, err = b.clear.Try(background, o, nil)
	require.NoError(t, err)
	requireWaits(t, o, b.get, nil, "not empty")
}

// requireWaits requires that the operation would wait for the named guard, both
// by what Try and by what Explain says.
func requireWaits[T, A, R any](t *testing.T, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], arg A, guard string) {
	t.Helper()
	_, err := op.Try(background, o, arg)
	var r *activeobject.RefusedError
	require.ErrorAs(t, err, &r)
	require.Equal(t, guard, r.Guard)

	before := op.Waiting(o)
	f := op.Send(background, o, arg)
	require.Equal(t, before+1, op.Waiting(o))
	explained := func() (parts []string) {
		for _, w := range o.Explain().Waiting {
			if w.Operation == op.Name() && !w.Outside {
				parts = append(parts, w.Reason.Guard)
			}
		}
		return parts
	}
	eventually(t, "all are inside", func() bool { return len(explained()) == before+1 })
	require.Contains(t, explained(), guard)
	require.True(t, f.Withdraw())
}

func TestADerivedTypeCanTakeTwoAtOnce(t *testing.T) {
	b := newBuffer()
	pairs := activeobject.Derive(b.Type, "pair buffer", activeobject.Same)
	get2 := activeobject.Entry(pairs, "get2", activeobject.Result(func(s *slots) [2]int { return [2]int{s.get(), s.get()} })).
		When("two", (*slots).two)

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, pairs, &slots{capacity: 3})
		two := get2.Send(background, o, nil)
		_, err := b.put.Call(background, o, 1)
		require.NoError(t, err)
		require.False(t, two.Ready())
		one := b.get.Send(background, o, nil) // takes the one that two cannot use
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, one)))
		b.put.Call(background, o, 2)
		b.put.Call(background, o, 3)
		require.Equal(t, outcome[[2]int]{[2]int{2, 3}, nil}, soon(t, s.system, awaiting(background, two)))
		require.Equal(t, []string{"put", "get", "fill", "clear", "length", "hold", "get2"}, pairs.Operations())
		b.unchanged(t, s)
	})
}

// recalling is a buffer that knows whether its last operation was a put.
type recalling struct {
	slots
	justPut bool
}

func (r *recalling) put(n int)        { r.slots.put(n); r.justPut = true }
func (r *recalling) get() int         { r.justPut = false; return r.slots.get() }
func (r *recalling) notJustPut() bool { return !r.justPut }

func TestADerivedTypeCanDependOnTheHistory(t *testing.T) {
	b := newBuffer()
	typ := activeobject.Derive(b.Type, "recalling buffer", func(r *recalling) *slots { return &r.slots })
	put := activeobject.In(typ, b.put).Override(activeobject.Arg((*recalling).put))
	get := activeobject.In(typ, b.get).Override(activeobject.Result((*recalling).get))
	gget := activeobject.Entry(typ, "gget", activeobject.Result((*recalling).get)).
		When("not empty", func(r *recalling) bool { return r.notEmpty() }).
		When("not just put", (*recalling).notJustPut)

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &recalling{slots: slots{capacity: 3}})
		requireWaits(t, o, gget, nil, "not empty")
		for n := range 3 {
			put.Call(background, o, n)
		}
		requireWaits(t, o, put, 3, "not full")
		requireWaits(t, o, gget, nil, "not just put")
		last := gget.Send(background, o, nil)
		n, err := get.Call(background, o, nil)
		require.Equal(t, outcome[int]{0, nil}, outcome[int]{n, err})
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, awaiting(background, last)))
		b.unchanged(t, s)
	})
}

// locked adds a lock to a state of any type, of which it knows nothing.
type locked[T any] struct {
	of   T
	held bool
}

func (l *locked[T]) lock()      { l.held = true }
func (l *locked[T]) unlock()    { l.held = false }
func (l *locked[T]) free() bool { return !l.held }

// a lockable is a type with a lock.
type lockable[T any] struct {
	*activeobject.Type[locked[T]]
	lock, unlock *activeobject.Operation[locked[T], None, None]
}

func withLock[T any](base *activeobject.Type[T]) *lockable[T] {
	t := activeobject.Derive(base, "locked "+base.Name(), func(l *locked[T]) *T { return &l.of })
	return &lockable[T]{
		Type:   t.Strengthen("not locked", (*locked[T]).free),
		lock:   activeobject.Entry(t, "lock", activeobject.Plain((*locked[T]).lock)).When("not locked", (*locked[T]).free),
		unlock: activeobject.Procedure(t, "unlock", activeobject.Plain((*locked[T]).unlock)),
	}
}

func TestALockCanBeAddedToEveryType(t *testing.T) {
	b := newBuffer()
	l := withLock(b.Type)
	put, get, fill, clear := activeobject.In(l.Type, b.put), activeobject.In(l.Type, b.get), activeobject.In(l.Type, b.fill), activeobject.In(l.Type, b.clear)
	counters := withLock(counters)

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &locked[slots]{of: slots{capacity: 3}})
		put.Call(background, o, 1)
		_, err := l.lock.Call(background, o, nil)
		require.NoError(t, err)
		requireWaits(t, o, put, 2, "not locked")
		requireWaits(t, o, get, nil, "not locked")
		requireWaits(t, o, fill, 1, "not locked")
		requireWaits(t, o, fill, 5, "room")
		requireWaits(t, o, clear, nil, "not locked")
		requireWaits(t, o, l.lock, nil, "not locked")
		n, err := activeobject.In(l.Type, b.length).Try(background, o, nil)
		require.Equal(t, outcome[int]{1, nil}, outcome[int]{n, err}, "a function does not wait")

		putting, filling, clearing := put.Send(background, o, 2), fill.Send(background, o, 1), clear.Send(background, o, nil)
		waiting(t, o, clear, 1)
		l.unlock.Call(background, o, nil)
		require.NoError(t, soon(t, s.system, awaiting(background, putting)).err)
		require.Equal(t, outcome[int]{3, nil}, soon(t, s.system, awaiting(background, filling)))
		require.NoError(t, soon(t, s.system, awaiting(background, clearing)).err)
		b.unchanged(t, s)

		c := newObject(t, s, counters.Type, &locked[Counter]{})
		counters.lock.Call(background, c, nil)
		_, err = activeobject.In(counters.Type, counterAdd).Try(background, c, 1)
		require.ErrorIs(t, err, activeobject.ErrRefused)
	})
}

func TestWhatInHasNotReturnedIsInheritedToo(t *testing.T) {
	b := newBuffer()
	l := withLock(b.Type)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &locked[slots]{of: slots{capacity: 3}})
		invoke := func(operation string, argument any) outcome[any] {
			value, err := ask(t, s, o.PID(), &actor.Invoke{Operation: operation, Argument: argument})
			return outcome[any]{value, err}
		}
		require.Equal(t, outcome[any]{nil, nil}, invoke("put", 8))
		require.Equal(t, outcome[any]{3, nil}, invoke("fill", 2))
		require.Equal(t, outcome[any]{8, nil}, invoke("get", nil))
		require.Equal(t, outcome[any]{2, nil}, invoke("get", nil))
		require.Equal(t, outcome[any]{1, nil}, invoke("length", nil))
		require.EqualError(t, invoke("put", "a word").err, "sluice: "+o.Name()+`: operation "put" does not take an argument of type string`)
		require.EqualError(t, invoke("put", nil).err, "sluice: "+o.Name()+`: operation "put" does not take an argument of type <nil>`)
		require.EqualError(t, invoke("get", 1).err, "sluice: "+o.Name()+`: operation "get" does not take an argument of type int`)

		// It waits, with its guard, and with calls of a handle that came later.
		invoke("clear", nil)
		got := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "get"}, patience)
		get := activeobject.In(l.Type, b.get)
		waiting(t, o, get, 1)
		second := get.Send(background, o, nil)
		require.Equal(t, outcome[any]{2, nil}, invoke("fill", 2))
		answer, err := got.Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 2}, answer)
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, awaiting(background, second)))

		l.lock.Call(background, o, nil)
		requireWaits(t, o, get, nil, "not empty")
		requireWaits(t, o, activeobject.In(l.Type, b.clear), nil, "not locked")
		require.Same(t, get, activeobject.In(l.Type, b.get))
	})
}

func TestAHandleOfTheBaseObeysTheGuardsOfTheObjectsType(t *testing.T) {
	b := newBuffer()
	typ := activeobject.Derive(b.Type, "careful buffer", activeobject.Same)
	activeobject.In(typ, b.put).WhenArg("even", func(_ *slots, n int) bool { return n%2 == 0 })
	activeobject.In(typ, b.clear).When("two", (*slots).two)

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &slots{capacity: 3})
		_, err := b.put.Call(background, o, 2)
		require.NoError(t, err)
		_, err = b.put.Try(background, o, 4)
		require.NoError(t, err)
		requireWaits(t, o, b.put, 1, "even")
		require.NoError(t, b.put.Tell(background, o, 6))
		eventually(t, "it is told", func() bool { n, _ := b.length.Call(background, o, nil); return n == 3 })
		requireWaits(t, o, b.put, 8, "not full")
		requireWaits(t, o, b.fill, 1, "room")
		_, err = b.clear.Send(background, o, nil).Await(background)
		require.NoError(t, err)
		requireWaits(t, o, b.clear, nil, "two")
		n, err := b.fill.Call(background, o, 3)
		require.Equal(t, outcome[int]{3, nil}, outcome[int]{n, err})
		b.clear.Call(background, o, nil)

		ctx, cancel := context.WithCancel(background)
		odd := calling(ctx, o, b.put, 1)
		waiting(t, o, b.put, 1)
		cancel()
		require.Equal(t, context.Canceled, soon(t, s.system, odd).err)
		_, err = b.length.Call(ctx, o, nil)
		require.Equal(t, context.Canceled, err)

		release := braked(t, s, o, b.hold)
		late := calling(background, o, b.put, 2)
		waiting(t, o, b.put, 1)
		release()
		require.NoError(t, soon(t, s.system, late).err)

		_, err = ask(t, s, o.PID(), &actor.Invoke{Operation: "put", Argument: 4})
		require.NoError(t, err)
		o.Stop()
		_, err = b.put.Call(background, o, 2)
		require.ErrorIs(t, err, activeobject.ErrStopped)
		require.ErrorIs(t, b.put.Tell(background, o, 2), activeobject.ErrStopped)
		b.unchanged(t, s)
	})
}

func TestAHandleOfADerivedTypeIsNotForItsBase(t *testing.T) {
	b := newBuffer()
	one := activeobject.Derive(b.Type, "one", activeobject.Same)
	other := activeobject.Derive(b.Type, "other", activeobject.Same)
	put := activeobject.In(one, b.put)
	everywhere(t, func(t *testing.T, s *scene) {
		for _, typ := range []*activeobject.Type[slots]{b.Type, other} {
			o := newObject(t, s, typ, &slots{capacity: 1})
			_, err := put.Call(background, o, 1)
			require.Equal(t, &activeobject.TypeError{Object: o.Name(), Type: typ.Name(), Operation: "put", Declared: "one"}, err)
			require.Zero(t, put.Waiting(o))
		}
	})
}

func TestCallersOfAllHandlesMeetAtOneObject(t *testing.T) {
	b := newBuffer()
	small := activeobject.Derive(b.Type, "small buffer", activeobject.Same)
	put := activeobject.In(small, b.put).When("less than two", func(s *slots) bool { return len(s.items) < 2 })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, small, &slots{capacity: 1000})
		const callers, rounds = 3, 200
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range rounds {
					b.put.Call(background, o, 1)
				}
			})
			all.Go(func() {
				for range rounds {
					put.Call(background, o, 1)
				}
			})
			all.Go(func() {
				for range rounds {
					b.get.Call(background, o, nil)
					if n, _ := b.length.Call(background, o, nil); n > 2 {
						t.Errorf("%d in a small buffer", n)
					}
					b.get.Call(background, o, nil)
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		soon(t, s.system, done)
		n, err := b.length.Call(background, o, nil)
		require.Equal(t, outcome[int]{0, nil}, outcome[int]{n, err})
	})
}

func TestACallOfADerivedTypeAllocatesNothing(t *testing.T) {
	b := newBuffer()
	same := activeobject.Derive(b.Type, "same", activeobject.Same)
	l := withLock(b.Type)
	put, get := activeobject.In(l.Type, b.put), activeobject.In(l.Type, b.get)
	s := &scene{system: newSystem(t)}
	o, locked := newObject(t, s, same, &slots{capacity: 1}), newObject(t, s, l.Type, &locked[slots]{of: slots{capacity: 1}})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.length.Call(background, o, nil)
		b.clear.Call(background, o, nil)
		activeobject.In(l.Type, b.clear).Call(background, locked, nil)
	}))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		put.Call(background, locked, 1<<40)
		get.Call(background, locked, nil)
	}), 1.0, "but for the buffer's own")
}

// A chain of types, of which every second has the state of its base.
func TestADerivedTypeCanBeDerivedFrom(t *testing.T) {
	b := newBuffer()
	even := activeobject.Derive(b.Type, "even buffer", activeobject.Same)
	activeobject.In(even, b.put).WhenArg("even", func(_ *slots, n int) bool { return n%2 == 0 })
	l := withLock(even)
	// Few exempts an operation of the base two steps below, and one of its own base.
	few := activeobject.Derive(l.Type, "locked buffer of few", activeobject.Same).
		Strengthen("few", func(l *locked[slots]) bool { return len(l.of.items) < 2 }, l.lock, l.unlock, b.get, b.clear)
	peek := activeobject.Entry(few, "peek", activeobject.Result(func(l *locked[slots]) int { return l.of.items[0] })).
		When("not empty", func(l *locked[slots]) bool { return l.of.notEmpty() })

	everywhere(t, func(t *testing.T, s *scene) {
		put, get := activeobject.In(l.Type, activeobject.In(even, b.put)), activeobject.In(l.Type, b.get)
		o := newObject(t, s, few, &locked[slots]{of: slots{capacity: 2}})
		require.Equal(t, []string{"put", "get", "fill", "clear", "length", "hold", "lock", "unlock", "peek"}, few.Operations())
		requireWaits(t, o, put, 3, "even")
		_, err := put.Call(background, o, 2)
		require.NoError(t, err)
		l.lock.Call(background, o, nil)
		requireWaits(t, o, put, 4, "not locked")
		requireWaits(t, o, activeobject.In(few, put), 4, "not locked")
		waiter := calling(background, o, put, 4)
		waiting(t, o, put, 1)
		require.Equal(t, 1, activeobject.In(few, put).Waiting(o))
		l.unlock.Call(background, o, nil)
		require.NoError(t, soon(t, s.system, waiter).err)
		requireWaits(t, o, put, 4, "not full")
		requireWaits(t, o, activeobject.In(l.Type, b.hold), nil, "few")
		n, err := peek.Call(background, o, nil)
		require.Equal(t, outcome[int]{2, nil}, outcome[int]{n, err})
		n, err = activeobject.In(few, get).Call(background, o, nil)
		require.Equal(t, outcome[int]{2, nil}, outcome[int]{n, err})

		// The types on the way are as they were.
		middle := newObject(t, s, l.Type, &locked[slots]{of: slots{capacity: 4}})
		for _, n := range []int{0, 2, 4} {
			_, err := put.Call(background, middle, n)
			require.NoError(t, err)
		}
		_, err = activeobject.In(few, put).Call(background, middle, 6)
		require.ErrorAs(t, err, new(*activeobject.TypeError))
		lower := newObject(t, s, even, &slots{capacity: 4})
		requireWaits(t, lower, b.put, 3, "even")
		b.unchanged(t, s)
	})
}

// Queues are found where the base's state has them: promoted, in a field, or
// hidden by those of the derived state.
type (
	promoted struct{ dam }
	field    struct{ deep *dam }
	hidden   struct {
		activeobject.Queues
		dam
	}
)

func TestABaseCountsTheRequestsThatWaitInADerivedObject(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	var pair *activeobject.Operation[dam, None, int]
	pair = activeobject.Entry(dams, "pair", activeobject.Result(func(d *dam) int {
		d.level++
		return d.Waiting(pair)
	})).WhenWaiting("two", func(d *dam) bool { return d.level%2 == 1 || d.Waiting(pair) >= 2 })

	same := activeobject.Derive(dams, "same", activeobject.Same)
	again := activeobject.Derive(same, "again", activeobject.Same)
	proms := activeobject.Derive(dams, "promoted", func(p *promoted) *dam { return &p.dam })
	fields := activeobject.Derive(dams, "field", func(f *field) *dam { return f.deep })
	hiddens := activeobject.Derive(dams, "hidden", func(h *hidden) *dam { return &h.dam })
	others := activeobject.Entry(hiddens, "others", activeobject.Result(func(h *hidden) int { return h.Waiting(pair) })).
		WhenWaiting("one waits", func(h *hidden) bool { return h.Waiting(pair) == 1 })

	everywhere(t, func(t *testing.T, s *scene) {
		pairs(t, s, newObject(t, s, same, &dam{}), pair)
		pairs(t, s, newObject(t, s, again, &dam{}), pair)
		pairs(t, s, newObject(t, s, again, &dam{}), activeobject.In(same, pair))
		pairs(t, s, newObject(t, s, proms, &promoted{}), activeobject.In(proms, pair))
		pairs(t, s, newObject(t, s, fields, &field{&dam{}}), activeobject.In(fields, pair))

		o := newObject(t, s, hiddens, &hidden{})
		pairs(t, s, o, activeobject.In(hiddens, pair))
		activeobject.In(hiddens, pair).Send(background, o, nil)
		n, err := others.Call(background, o, nil)
		require.Equal(t, outcome[int]{1, nil}, outcome[int]{n, err})
	})
}

// pairs requires that an operation waits until two do, and sees the other wait.
func pairs[T any](t *testing.T, s *scene, o *activeobject.Object[T], pair *activeobject.Operation[T, None, int]) {
	t.Helper()
	first := calling(background, o, pair, nil)
	waiting(t, o, pair, 1)
	n, err := pair.Call(background, o, nil)
	other := soon(t, s.system, first)
	require.NoError(t, err)
	require.NoError(t, other.err)
	require.ElementsMatch(t, []int{0, 1}, []int{n, other.result})
}

func TestAProcedureThatGetsAGuardIsAnEntryOfTheDerivedType(t *testing.T) {
	b := newBuffer()
	tidy := activeobject.Derive(b.Type, "tidy buffer", activeobject.Same)
	require.Same(t, activeobject.In(tidy, b.clear), activeobject.In(tidy, b.clear).When("two", (*slots).two))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, tidy, &slots{capacity: 3})
		f := b.clear.Send(background, o, nil)
		b.put.Call(background, o, 1)
		require.False(t, f.Ready())
		b.put.Call(background, o, 2)
		require.NoError(t, soon(t, s.system, awaiting(background, f)).err)
	})
}

func TestABodyThatTakesAContextIsInherited(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	var again *activeobject.Operation[promoted, None, None]
	var o *activeobject.Object[promoted]
	loop := activeobject.ProcedureCtx(dams, "loop", func(_ *dam, ctx context.Context, _ None) (None, error) {
		return again.Call(ctx, o, nil)
	})
	look := activeobject.FunctionCtx(dams, "look", func(d *dam, ctx context.Context, _ None) (int, error) { return d.level, ctx.Err() })
	typ := activeobject.Derive(dams, "derived dam", func(p *promoted) *dam { return &p.dam })
	again = activeobject.In(typ, loop)

	everywhere(t, func(t *testing.T, s *scene) {
		o = newObject(t, s, typ, &promoted{dam{level: 4}})
		_, err := again.Call(background, o, nil)
		require.ErrorAs(t, err, new(*activeobject.DeadlockError), "the context carries the chain of calls")
		n, err := activeobject.In(typ, look).Call(background, o, nil)
		require.Equal(t, outcome[int]{4, nil}, outcome[int]{n, err})
	})
}

func TestABodyMayBeOverriddenByOneThatTakesAContextAndBack(t *testing.T) {
	b := newBuffer()
	typ := activeobject.Derive(b.Type, "overridden", activeobject.Same)
	activeobject.In(typ, b.get).OverrideCtx(func(s *slots, ctx context.Context, _ None) (int, error) { return -s.get(), ctx.Err() })
	activeobject.In(typ, b.fill).Override(func(s *slots, n int) (int, error) { s.put(n); return -1, nil })
	further := activeobject.Derive(typ, "further", activeobject.Same)
	everywhere(t, func(t *testing.T, s *scene) {
		for _, typ := range []*activeobject.Type[slots]{typ, further} {
			o := newObject(t, s, typ, &slots{capacity: 3})
			n, err := b.fill.Call(background, o, 3)
			require.Equal(t, outcome[int]{-1, nil}, outcome[int]{n, err})
			n, err = b.get.Call(background, o, nil)
			require.Equal(t, outcome[int]{-3, nil}, outcome[int]{n, err})
			requireWaits(t, o, b.get, nil, "not empty")
		}
		b.unchanged(t, s)
	})
}

func TestWhatTheBaseDeclaresAfterADerivationIsInherited(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	typ := activeobject.Derive(dams, "derived dam", activeobject.Same)
	twice := activeobject.Procedure(typ, "twice", activeobject.Plain(func(d *dam) { d.level *= 2 }))
	require.Equal(t, []string{"twice"}, typ.Operations())
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))
	drain := activeobject.Entry(dams, "drain", activeobject.Plain((*dam).drain))
	drain.When("wet", (*dam).wet)
	require.Equal(t, []string{"fill", "drain", "twice"}, typ.Operations())

	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &dam{level: 1})
		fill.Call(background, o, 1)
		twice.Call(background, o, nil)
		for range 4 {
			drain.Call(background, o, nil)
		}
		requireWaits(t, o, drain, nil, "wet")
	})
}

// An entry without a guard is for derived types to complete.
func TestABaseMayBeIncomplete(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	swim := activeobject.Entry(dams, "swim", activeobject.Plain(func(*dam) {}))
	typ := activeobject.Derive(dams, "derived dam", activeobject.Same)
	activeobject.In(typ, swim).When("wet", (*dam).wet)
	s := &scene{system: newSystem(t)}
	_, err := swim.Call(background, newObject(t, s, typ, &dam{level: 1}), nil)
	require.NoError(t, err)
	require.PanicsWithValue(t,
		`activeobject: entry "swim" of type "dam" has no guard: say when it is open with When, WhenArg, WhenWaiting, WhenTime or Guard, or declare it a Procedure`,
		func() { activeobject.New(s.system, dams, &dam{}) })
}

func TestADerivedTypeHasTheOptionsOfItsBaseUnlessItHasItsOwn(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	fill := activeobject.Procedure(dams, "fill", activeobject.Arg((*dam).fill))
	heir := activeobject.Derive(dams, "heir", activeobject.Same)
	grandchild := activeobject.Derive(heir, "grandchild", activeobject.Same)
	rebel := activeobject.Derive(dams, "rebel", activeobject.Same).Default()
	logged := 0
	dams.Default(activeobject.NoFastPath(), activeobject.Log(func(activeobject.Event) { logged++ }))

	s := &scene{system: newSystem(t)}
	for typ, want := range map[*activeobject.Type[dam]]bool{dams: true, heir: true, grandchild: true, rebel: false} {
		logged = 0
		fill.Call(background, newObject(t, s, typ, &dam{}), 1)
		require.Equal(t, want, logged > 0, typ.Name())
	}
}

func TestAStateWithoutItsBasesPartIsRefused(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	fields := activeobject.Derive(dams, "field", func(f *field) *dam { return f.deep })
	lockedFields := withLock(fields)
	s := &scene{system: newSystem(t)}
	o, err := activeobject.New(s.system, lockedFields.Type, &locked[field]{})
	require.Nil(t, o)
	require.Equal(t, &activeobject.OptionError{Type: "locked field", Option: "state", Problem: `has a nil part of type "dam": set it before New`}, err)
}

func TestAMistakenDerivationSaysWhatToDo(t *testing.T) {
	body := func(*dam, int) (None, error) { return nil, nil }
	holds := func(*dam) bool { return true }
	type lake = activeobject.Type[dam]
	swims := func(lakes *lake) *activeobject.Operation[dam, int, None] {
		return activeobject.Entry(lakes, "swim", body).When("open", holds)
	}
	ponds := func(lakes *lake) *lake { return activeobject.Derive(lakes, "pond", activeobject.Same) }
	for text, declare := range map[string]func(lakes *lake){
		`activeobject: type "pond" is derived from nil: pass a type made by NewType or Derive; if it is assigned in init, derive from it there`: func(*lake) {
			ponds(nil)
		},
		`activeobject: a type derived from "lake" has no name: pass one to Derive, such as "checked account"`: func(lakes *lake) {
			activeobject.Derive(lakes, "", activeobject.Same)
		},
		`activeobject: type "pond" is derived from "lake" without a part: pass the function that returns the base's state in that of the derived type, or Same`: func(lakes *lake) {
			activeobject.Derive[promoted](lakes, "pond", nil)
		},
		`activeobject: procedure "swim" of type "pond" has the name of one that its type inherits from "lake": give it another name, or take the inherited one with In`: func(lakes *lake) {
			swims(lakes)
			activeobject.Procedure(activeobject.Derive(ponds(lakes), "pond", activeobject.Same), "deep", body)
			activeobject.Procedure(ponds(lakes), "swim", body)
		},
		`activeobject: procedure "swim" of type "puddle" has the name of one that its type inherits from "pond": give it another name, or take the inherited one with In`: func(lakes *lake) {
			puddles := activeobject.Derive(ponds(lakes), "puddle", activeobject.Same)
			activeobject.Procedure(puddles, "swim", body)
			swims(lakes) // later: it shows when the first object is made
			activeobject.New(newSystem(t), puddles, &dam{})
		},
		`activeobject: procedure "fill" of type "lake" is declared after the first object was made: declare it in a package-level variable or in init`: func(lakes *lake) {
			activeobject.New(newSystem(t), ponds(lakes), &dam{}) // it is a lake too
			activeobject.Procedure(lakes, "fill", body)
		},
		`activeobject: entry "swim" of type "pond" gets a guard after the first object was made: add it where the entry is declared`: func(lakes *lake) {
			swim, ponds := swims(lakes), ponds(lakes)
			activeobject.New(newSystem(t), ponds, &dam{})
			activeobject.In(ponds, swim).When("deep", holds)
		},
		`activeobject: entry "swim" of type "lake" gets a guard after In has handed it on to type "pond": add it before that`: func(lakes *lake) {
			swim := swims(lakes)
			activeobject.In(ponds(lakes), swim)
			swim.When("deep", holds)
		},
		`activeobject: entry "swim" of type "lake" is not inherited: pass its body where it is declared, or Override it in a derived type, as In(derived, operation)`: func(lakes *lake) {
			swims(lakes).Override(body)
		},
		`activeobject: entry "swim" of type "pond" is overridden without a body: pass the function that carries it out`: func(lakes *lake) {
			activeobject.In(ponds(lakes), swims(lakes)).OverrideCtx(nil)
		},
		`activeobject: entry "swim" of type "pond" gets another body after the first object was made: add it where the entry is declared`: func(lakes *lake) {
			swim, ponds := swims(lakes), ponds(lakes)
			activeobject.New(newSystem(t), ponds, &dam{})
			activeobject.In(ponds, swim).Override(body)
		},
		`activeobject: type "lake" does not inherit operation "swim" of type "pond": pass an operation of its base, or derive it from that type`: func(lakes *lake) {
			swim := activeobject.In(ponds(lakes), swims(lakes))
			activeobject.In(lakes, swim)
		},
		`activeobject: type "locked pond" does not inherit operation "swim" of type "sea": pass an operation of its base, or derive it from that type`: func(lakes *lake) {
			activeobject.In(withLock(ponds(lakes)).Type, swims(activeobject.NewType[dam]("sea")))
		},
		`activeobject: type "puddle" inherits operation "swim" of type "lake" through a type with another state: pass its handle in the base, which In returns too`: func(lakes *lake) {
			proms := activeobject.Derive(lakes, "promoted", func(p *promoted) *dam { return &p.dam })
			puddles := activeobject.Derive(proms, "puddle", activeobject.Same)
			activeobject.In(puddles, swims(lakes))
		},
		`activeobject: In("pond") of a nil operation: if it is assigned in init, call In there, after that`: func(lakes *lake) {
			var swim *activeobject.Operation[dam, int, None]
			activeobject.In(ponds(lakes), swim)
		},
		`activeobject: In of a nil type: if it is assigned in init, call In there, after that`: func(lakes *lake) {
			activeobject.In[dam](nil, swims(lakes))
		},
		`activeobject: type "lake" is strengthened but inherits nothing: derive it with Derive, or give its entries their guards`: func(lakes *lake) {
			lakes.Strengthen("open", holds)
		},
		`activeobject: type "pond" is strengthened after the first object was made: call Strengthen where the type is declared`: func(lakes *lake) {
			ponds := ponds(lakes)
			activeobject.New(newSystem(t), ponds, &dam{})
			ponds.Strengthen("open", holds)
		},
		`guards: guard "open" has no condition: pass a func that reports whether it holds`: func(lakes *lake) {
			ponds(lakes).Strengthen("open", nil)
		},
		`activeobject: type "pond" is strengthened except for operation "fill", which it does not inherit: pass operations of its bases`: func(lakes *lake) {
			ponds := ponds(lakes)
			ponds.Strengthen("open", holds, swims(lakes), activeobject.Procedure(ponds, "fill", body))
		},
		`activeobject: type "pond" is strengthened except for operation "swim", which it does not inherit: pass operations of its bases`: func(lakes *lake) {
			ponds(lakes).Strengthen("open", holds, swims(activeobject.NewType[dam]("sea")))
		},
	} {
		t.Run(text, func(t *testing.T) {
			lakes := activeobject.NewType[dam]("lake")
			require.PanicsWithValue(t, text, func() { declare(lakes) })
		})
	}
}

// An express is a lift that can also leap, and stops only when it has been told to.
type express struct {
	lift  lift
	stops bool
}

func TestADerivedTypeOpensKeysOfAnInheritedFamily(t *testing.T) {
	ls := newLifts()
	same := func(floor int) int { return floor }
	for name, declare := range map[string]func() (*activeobject.Type[express], *activeobject.Family[express, int, int, int]){
		"the family as it is": func() (*activeobject.Type[express], *activeobject.Family[express, int, int, int]) {
			typ := activeobject.Derive(ls.Type, "express", func(e *express) *lift { return &e.lift })
			return typ, activeobject.InFamily(typ, ls.stop)
		},
		"a stronger one": func() (*activeobject.Type[express], *activeobject.Family[express, int, int, int]) {
			typ := activeobject.Derive(ls.Type, "express", func(e *express) *lift { return &e.lift })
			return typ, activeobject.InFamily(typ, ls.stop).WhenKey("stops", func(e *express, floor int) bool { return e.stops && floor > 0 })
		},
	} {
		typ, stop := declare()
		leap := activeobject.Procedure(typ, "leap", activeobject.Arg(func(e *express, to int) { e.lift.floor = to }))
		activeobject.Opens(leap, stop, same)
		cheat := activeobject.Procedure(typ, "leap short", activeobject.Arg(func(e *express, to int) { e.lift.floor = to }))
		activeobject.Opens(cheat, stop, func(floor int) int { return floor + 1 })
		move := activeobject.In(typ, ls.move)
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, typ, &express{lift: lift{asked: map[int]int{}}, stops: true}, activeobject.CheckOpens())
			for floor := 1; floor <= 100; floor++ {
				stop.Send(background, o, floor)
			}
			eventually(t, "all are inside", func() bool { return stop.WaitingAt(o, 7) == 1 && stop.WaitingAt(o, 100) == 1 })
			for i, op := range []*activeobject.Operation[express, int, None]{leap, move} {
				_, err := op.Call(background, o, 7+i)
				require.NoError(t, err)
				eventually(t, "the floor is served", func() bool { return stop.WaitingAt(o, 7+i) == 0 })
			}
			waiting(t, o, stop.Operation, 98)
			f := stop.Send(background, o, 33)
			_, err := cheat.Call(background, o, 33)
			require.NoError(t, err)
			require.ErrorAs(t, soon(t, s.system, awaiting(background, f)).err, new(*activeobject.UndeclaredError), name)
		})
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, typ, &express{lift: lift{asked: map[int]int{}}, stops: true}, activeobject.Counters())
			for floor := 1; floor <= 100; floor++ {
				stop.Send(background, o, floor)
			}
			eventually(t, "all are inside", func() bool { return stop.WaitingAt(o, 100) == 1 })
			require.NoError(t, o.Do(background, func(*express) error { return nil })) // after which all guards have been evaluated
			require.NoError(t, o.View(background, func(*express) error { return nil }))
			before := stop.Stats(o).Evaluations
			_, err := leap.Call(background, o, 7)
			require.NoError(t, err)
			eventually(t, "the floor is served", func() bool { return stop.WaitingAt(o, 7) == 0 })
			require.NoError(t, o.View(background, func(*express) error { return nil }))
			require.LessOrEqual(t, stop.Stats(o).Evaluations-before, activeobject.Count(8), "no other floor is asked")
		})
	}
	own := activeobject.InFamily(ls.Type, ls.stop)
	require.Same(t, ls.stop.Operation, own.Operation)
	require.PanicsWithValue(t, `activeobject: In("lift") of a nil operation: if it is assigned in init, call In there, after that`, func() {
		activeobject.InFamily(ls.Type, (*activeobject.Family[lift, int, int, int])(nil))
	})
}
