package activeobject

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

// An object is allocated in steps of 112, 128, 144 bytes; one more pointer, for
// what only some objects have, is to fit.
func TestAnObjectHasRoomForAnotherPointer(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Object[int]{})+unsafe.Sizeof(uintptr(0)), uintptr(128))
}

func TestObjectsWithTheSameOptionsShareTheirClass(t *testing.T) {
	one, other := actor.NewSystem(), actor.NewSystem()
	defer one.Close(t.Context())
	defer other.Close(t.Context())
	typ := NewType[int]("number")
	in := func(system *actor.System, options ...Option) *class[int] {
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
	in := func(options ...Option) *class[int] { return Must(New(system, typ, new(int), options...)).class }
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
