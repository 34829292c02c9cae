package activeobject

import (
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
	var c request[int, int, int]
	require.LessOrEqual(t, unsafe.Sizeof(c), uintptr(384))
	require.Equal(t, uintptr(4), (unsafe.Offsetof(c.pending)+unsafe.Offsetof(c.pending.Err))/64)
	require.Zero(t, (unsafe.Offsetof(c.pending)+unsafe.Offsetof(c.pending.Err)+unsafe.Sizeof(c.pending.Err))%64)
}

func TestObjectsWithTheSameOptionsShareTheirClass(t *testing.T) {
	one, other := actor.NewSystem(), actor.NewSystem()
	defer one.Close(t.Context())
	defer other.Close(t.Context())
	typ := NewType[int]("number")
	in := func(system *actor.System, options ...Option) *class {
		return Must(New(system, typ, new(int), options...)).class
	}
	require.Same(t, in(one), in(one, Named("pi")))
	require.NotSame(t, in(one), in(other))
	require.NotSame(t, in(one), in(one, Rotating()))
}

func TestObjectsWithTheOptionsOfTheirTypeShareTheirClass(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	log := Logged(func(Event) {})
	typ := NewType[int]("number").Default(Rotating(), Pooled(), log)
	in := func(options ...Option) *class { return Must(New(system, typ, new(int), options...)).class }
	require.Same(t, in(), in())
	require.Same(t, in(), in(Named("pi"), Rotating(), log), "what is said twice")
	require.Same(t, in(), in(Borrowed(), Pooled()), "the last one counts")
	require.NotSame(t, in(), in(ByArrival()))
}

func TestObjectsWithAGoroutineOfTheirOwnDoNotShareIt(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	typ := NewType[int]("number").Default(Dedicated())
	one, other := Must(New(system, typ, new(int))), Must(New(system, typ, new(int)))
	require.NotSame(t, one.box.Dispatcher(), other.box.Dispatcher())
}

// A derived type's operation is made from its base's: whoever adds a field to an
// operation says here what becomes of it, and sees to it in copy, lift and erase.
func TestNothingOfAnOperationIsForgottenByDerivation(t *testing.T) {
	const (
		carried = "copied, with all that is in it" // by lift and erase
		lifted  = "applied to a part of the state" // by lift, and by erase to an argument of any type
		settled = "found when the type is sealed"  // by settle
		remade  = "made anew"                      // by newOperation
		own     = "what the derived type adds"
	)
	want := map[string]string{
		"forms": carried,
		"leaf":  lifted, "blocks": lifted, "guarded": lifted, "single": settled, "inherited": lifted,
		"simple": settled, "plain": settled, "askState": settled,
		"typ": remade, "pools": remade,
		"parts": own,

		// Of the traits.
		"idle": settled, "mark": settled, "index": settled, "leafed": settled,
		"species": remade, "self": remade,
		"taker": own,
		"name":  carried, "kind": carried, "guard": settled, "looks": settled, "changed": carried, "argument": carried,
		"family": carried, "keyed": carried, "opens": carried, "headOfLine": carried, "own": carried, "bound": carried,
	}
	got := map[string]string{}
	for _, typ := range []reflect.Type{reflect.TypeFor[Operation[int, int, int]](), reflect.TypeFor[operation[int]](), reflect.TypeFor[traits]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Name, "[")
			if name != "operation" && name != "traits" { // the second and the third of them
				got[name] = want[name]
			}
		}
	}
	require.Equal(t, want, got)
}
