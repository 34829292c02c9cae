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
