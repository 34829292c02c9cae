package main

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func newTable(t *testing.T) *activeobject.Object[Table] {
	t.Helper()
	table, err := activeobject.New(objecttest.NewSystem(t), tables, NewTable(), objecttest.Checked(t))
	require.NoError(t, err)
	return table
}

func TestSeatsThatShareNoForkEatAtOnce(t *testing.T) {
	table := newTable(t)
	require.NoError(t, take.Do(t.Context(), table, 0))
	_, err := take.Try(t.Context(), table, 2)
	require.NoError(t, err)
	for _, seat := range []int{1, 3, 4} {
		_, err := take.Try(t.Context(), table, seat)
		require.ErrorIs(t, err, activeobject.ErrRefused, "seat %d", seat)
	}
}

func TestExplainSaysWhichForkASeatWaitsFor(t *testing.T) {
	table := newTable(t)
	require.NoError(t, take.Do(t.Context(), table, 0))
	require.NoError(t, take.Do(t.Context(), table, 2))
	one, four := take.Send(t.Context(), table, 1), take.Send(t.Context(), table, 4)
	objecttest.Waiting(t, table, take, 2)
	assert.Equal(t, []string{
		"seat 1 waits for fork 1, which seat 0 has",
		"seat 4 waits for fork 0, which seat 0 has",
	}, waits(table))

	require.NoError(t, putDown.Do(t.Context(), table, 0))
	_, err := four.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"seat 1 waits for fork 2, which seat 2 has"}, waits(table))

	require.NoError(t, putDown.Do(t.Context(), table, 2))
	_, err = one.Await(t.Context())
	require.NoError(t, err)
	assert.Empty(t, waits(table))
}

func TestARequestThatIsCanceledTakesNoFork(t *testing.T) {
	table := newTable(t)
	require.NoError(t, take.Do(t.Context(), table, 0))
	ctx, cancel := context.WithCancel(t.Context())
	one := take.Send(ctx, table, 1)
	objecttest.Waiting(t, table, take, 1)
	cancel()
	_, err := one.Await(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	assert.NoError(t, take.Do(t.Context(), table, 2), "shares fork 2 with seat 1")
}

func TestNeighborsNeverEatAtOnceAndEverySeatEats(t *testing.T) {
	table := newTable(t)
	var eating [seats]atomic.Bool
	require.NoError(t, dine(t.Context(), table, 20, func(seat int) {
		eating[seat].Store(true)
		defer eating[seat].Store(false)
		assert.False(t, eating[(seat+1)%seats].Load() || eating[(seat+seats-1)%seats].Load(), "a neighbor of seat %d", seat)
	}))
	eaten, err := meals.Call(t.Context(), table, nil)
	require.NoError(t, err)
	assert.Equal(t, [seats]int{20, 20, 20, 20, 20}, eaten)
}
