package activeobject

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

// Objects are allocated in steps of 112, 128, 144 bytes.
func TestAnObjectTakesNoMoreThan128Bytes(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Object[int]{}), uintptr(128))
}

// Records are allocated in steps of 352, 384, 416 bytes, and fetched from memory in lines
// of 64: one among very many is withdrawn by looking at the first two and at the one with
// the error.
func TestTheRecordOfARequestTakesNoMoreThanSixLines(t *testing.T) {
	var c record[int, int, int]
	pending := unsafe.Offsetof(c.request) + unsafe.Offsetof(c.request.pending)
	require.LessOrEqual(t, unsafe.Sizeof(c), uintptr(384))
	require.Equal(t, uintptr(4), (pending+unsafe.Offsetof(c.request.pending.Err))/64)
	require.Zero(t, (pending+unsafe.Offsetof(c.request.pending.Err)+unsafe.Sizeof(c.request.pending.Err))%64)
}

func TestObjectsWithTheSameOptionsShareTheirClass(t *testing.T) {
	one, other := actor.NewSystem(), actor.NewSystem()
	defer one.Close(t.Context())
	defer other.Close(t.Context())
	typ := NewType[int]("number")
	in := func(system *actor.System, options ...Option) *objectConfig {
		return Must(New(system, typ, new(int), options...)).config
	}
	require.Same(t, in(one), in(one, Name("pi")))
	require.NotSame(t, in(one), in(other))
	require.NotSame(t, in(one), in(one, ByRotation()))
}

func TestObjectsWithTheOptionsOfTheirTypeShareTheirClass(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	log := Log(func(Event) {})
	typ := NewType[int]("number").Default(ByRotation(), PooledThreads(), log)
	in := func(options ...Option) *objectConfig { return Must(New(system, typ, new(int), options...)).config }
	require.Same(t, in(), in())
	require.Same(t, in(), in(Name("pi"), ByRotation(), log), "what is said twice")
	require.Same(t, in(), in(CallerThreads(), PooledThreads()), "the last one counts")
	require.NotSame(t, in(), in(ByArrival()))
}

func TestObjectsWithAGoroutineOfTheirOwnDoNotShareIt(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	typ := NewType[int]("number").Default(DedicatedThread())
	one, other := Must(New(system, typ, new(int))), Must(New(system, typ, new(int)))
	require.NotSame(t, one.box.Dispatcher(), other.box.Dispatcher())
}

// An operation of a base does not pass a guard of a derived type by taking the object on the
// fast path, however many objects have been made: only types draw tags.
func TestTagsOfTypesAreNotUsedUpByObjects(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	base := NewType[bool]("base")
	enter := Procedure(base, "enter", Plain(func(*bool) {}))
	derived := Derive(base, "derived", Same[bool]).Strengthen("open", func(open *bool) bool { return *open })
	before := types.Load()
	defer types.Store(before)
	for _, options := range [][]Option{{}, {Counters()}, {Counters(), ByRotation()}} {
		types.Store(uint64(base.tag) - 1) // what a counter of 32 bits comes to in the end
		for range 3 {
			_, err := enter.Try(t.Context(), Must(New(system, derived, new(bool), options...)), nil)
			require.ErrorIs(t, err, ErrRefused)
		}
	}
}

// When there are no tags left, types work all the same, and are told apart.
func TestTypesWithoutATagWork(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	before := types.Load()
	defer types.Store(before)
	types.Store(math.MaxUint32)
	one, other := NewType[int]("one"), NewType[int]("other")
	require.Zero(t, one.tag)
	require.Zero(t, other.tag)
	inc := Procedure(one, "inc", Plain(func(n *int) { *n++ }))
	dec := Procedure(other, "dec", Plain(func(n *int) { *n-- }))
	for _, options := range [][]Option{{}, {Counters()}} {
		n := 0
		o, p := Must(New(system, one, &n, options...)), Must(New(system, other, new(int), options...))
		require.NotSame(t, o.config, p.config)
		for range 3 {
			_, err := inc.Call(t.Context(), o, nil)
			require.NoError(t, err)
			_, err = inc.Call(t.Context(), p, nil)
			require.IsType(t, &TypeError{}, err)
			_, err = dec.Call(t.Context(), o, nil)
			require.IsType(t, &TypeError{}, err)
		}
		require.Equal(t, 3, n)
	}
}

// A derived type's operation is made from its base's. If you add a field to an operation, say here
// what becomes of it, and handle it in copy, inheritOperation and erase.
func TestNothingOfAnOperationIsForgottenByDerivation(t *testing.T) {
	const (
		carried = "copied, with all that is in it" // by inheritOperation and erase
		applied = "applied to a part of the state" // by inheritOperation, and by erase to an argument of any type
		sealed  = "found when the type is sealed"  // by completeOperation
		remade  = "made anew"                      // by newOperation
		own     = "what the derived type adds"
	)
	want := map[string]string{
		"forms": carried,
		"leaf":  applied, "blocks": applied, "guarded": applied, "single": sealed, "inherited": applied,
		"simple": sealed, "plain": sealed, "evaluateState": sealed,
		"typ":   remade, // and of operationInfo
		"parts": own, "undo": applied,

		// Of what is known whatever the types.
		"idle": sealed, "unasked": sealed, "alone": sealed, "mark": sealed, "index": sealed, "leafed": sealed, "restOf": sealed,
		"self": remade, "prototype": remade, "resultPtr": remade, "pools": remade,
		"handedTo": own,
		"name":     carried, "kind": carried, "guard": sealed, "looks": sealed, "changed": carried, "argument": carried, "result": carried,
		"family": carried, "keyed": carried, "opens": carried, "headOfLine": carried, "own": carried, "bound": carried, "undoes": carried, "suspends": carried, "copied": carried,
	}
	got := map[string]string{}
	for _, typ := range []reflect.Type{reflect.TypeFor[Operation[int, int, int]](), reflect.TypeFor[operation[int]](), reflect.TypeFor[operationInfo]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Name, "[")
			if name != "operation" && name != "info" { // the second and the third of them
				got[name] = want[name]
			}
		}
	}
	require.Equal(t, want, got)
}
