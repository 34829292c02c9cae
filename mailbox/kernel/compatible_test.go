package kernel_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Who waits for what runs is in nobody's way, and so is nothing that it waits for, where all start
// that are compatible; until it is at its bound.
func TestNobodyWaitsForWhatAnotherOneWaitsForUnlessThatIsAtItsBound(t *testing.T) {
	const write, read = 0, 1
	k := kernel.New(&kernel.Rules{
		Operations:    []kernel.Operation{{Name: "write"}, {Name: "read", Kind: kernel.Function}},
		Conflicts:     guards.Exclusive("write", "read").Allow(read, read),
		AllCompatible: true,
		MaxBypass:     1,
	}, always{})
	arrives := func(op int) *kernel.Request {
		r := &kernel.Request{Op: op}
		k.Arrive(r)
		return r
	}
	next := func(want *kernel.Request) {
		r, err := k.Next()
		require.NoError(t, err)
		require.Same(t, want, r)
	}
	first := arrives(read)
	next(first)
	writer := arrives(write)
	require.Equal(t, []*kernel.Request{first}, slices.Collect(k.InTheWay(writer)))
	second := arrives(read)
	require.Empty(t, slices.Collect(k.InTheWay(second)))
	require.Empty(t, slices.Collect(k.Holding(second, 2)))
	require.False(t, k.Found())
	next(second)
	require.True(t, k.Found(), "now the writer is in the way of all whom it conflicts with")

	third := arrives(read)
	require.Equal(t, []*kernel.Request{first, second}, slices.Collect(k.InTheWay(third)))
	require.Equal(t, []*kernel.Request{second, first}, slices.Collect(k.Holding(third, 2)))
	next(nil)
	require.Equal(t, kernel.Reason{Cause: kernel.Order, Behind: "write"}, k.Why(third))
	k.Complete(first)
	k.Complete(second)
	next(writer)
}
