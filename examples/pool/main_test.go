package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func newPool(t *testing.T, limit int) Pool {
	t.Helper()
	pool, err := New(objecttest.NewSystem(t), limit, objecttest.Checked(t))
	require.NoError(t, err)
	return pool
}

func get(t *testing.T, p Pool) *Conn {
	t.Helper()
	c, err := p.Get(t.Context())
	require.NoError(t, err)
	return c
}

func TestAnIdleConnectionIsReused(t *testing.T) {
	pool := newPool(t, 2)
	first := get(t, pool)
	require.NoError(t, pool.Put(first))
	assert.Same(t, first, get(t, pool))
}

func TestNoMoreConnectionsThanTheLimit(t *testing.T) {
	pool := newPool(t, 2)
	a, b := get(t, pool), get(t, pool)
	assert.NotSame(t, a, b)

	third := lend.Send(t.Context(), pool.object, nil)
	objecttest.Waiting(t, pool.object, lend, 1)
	require.NoError(t, pool.Put(b))
	c, err := third.Await(t.Context())
	require.NoError(t, err)
	assert.Same(t, b, c)
}

func TestARequestThatIsCanceledGetsNoConnection(t *testing.T) {
	pool := newPool(t, 1)
	only := get(t, pool)

	ctx, cancel := context.WithCancel(t.Context())
	waiter := lend.Send(ctx, pool.object, nil)
	objecttest.Waiting(t, pool.object, lend, 1)
	cancel()
	_, err := waiter.Await(t.Context())
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, pool.Put(only))
	assert.Same(t, only, get(t, pool))
}

func TestCloseWaitsForConnectionsThatAreLent(t *testing.T) {
	pool := newPool(t, 1)
	only := get(t, pool)
	waiter := lend.Send(t.Context(), pool.object, nil)
	objecttest.Waiting(t, pool.object, lend, 1)

	end := closing.Send(t.Context(), pool.object, nil)
	objecttest.Waiting(t, pool.object, drain, 1)
	_, err := waiter.Await(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	assert.False(t, end.Ready())

	require.NoError(t, pool.Put(only))
	_, err = end.Await(t.Context())
	require.NoError(t, err)
	_, err = pool.Get(t.Context())
	assert.ErrorIs(t, err, ErrClosed)
}

func TestAPoolStaysClosedWhenCloseIsCanceled(t *testing.T) {
	pool := newPool(t, 1)
	only := get(t, pool)

	ctx, cancel := context.WithCancel(t.Context())
	end := closing.Send(ctx, pool.object, nil)
	objecttest.Waiting(t, pool.object, drain, 1)
	cancel()
	_, err := end.Await(t.Context())
	require.ErrorIs(t, err, context.Canceled)

	_, err = pool.Get(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, pool.Put(only))
	assert.NoError(t, pool.Close(t.Context()))
}
