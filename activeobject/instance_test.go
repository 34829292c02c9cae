package activeobject_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

type cell[T any] struct{ item T }

func (c *cell[T]) Set(item T) { c.item = item }

type cells[T any] struct {
	typ *activeobject.Type[cell[T]]
	set *activeobject.Operation[cell[T], T, None]
}

// declared counts how often, in this process, which may run the test more than once.
var declared atomic.Int32

func TestAnInstanceIsDeclaredOnceForEachType(t *testing.T) {
	number := func() *cells[int32] {
		declared.Add(1)
		typ := activeobject.NewType[cell[int32]]("cell")
		return &cells[int32]{typ, activeobject.Procedure(typ, "set", activeobject.Arg((*cell[int32]).Set))}
	}
	var all sync.WaitGroup
	made := make([]*cells[int32], 8)
	for i := range made {
		all.Go(func() { made[i] = activeobject.Instance(number) })
	}
	all.Wait()
	require.EqualValues(t, 1, declared.Load())
	for _, m := range made {
		require.Same(t, made[0], m)
	}
	other := activeobject.Instance(func() *cells[int64] { return &cells[int64]{} })
	require.Nil(t, other.typ, "another type has its own")
	require.Zero(t, testing.AllocsPerRun(100, func() { activeobject.Instance(number) }))
}

func TestAnInstanceThatCannotBeDeclaredIsSaidEveryTime(t *testing.T) {
	type never struct{}
	for range 2 {
		require.PanicsWithValue(t, "cause", func() { activeobject.Instance(func() *never { panic("cause") }) })
	}
	type nothing struct{}
	require.PanicsWithValue(t, "sluice: Instance: the function has declared nothing: return what it has made",
		func() { activeobject.Instance(func() *nothing { return nil }) })
}
