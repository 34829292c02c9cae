package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// counted is a thread that counts the waits on it.
type counted struct{ parked, all atomic.Int32 }

func (c *counted) Park()   { c.parked.Add(1); c.all.Add(1) }
func (c *counted) Unpark() { c.parked.Add(-1) }

// A context that says which thread it belongs to is tame, and so is one that is derived from it; and
// the thread is found in all contexts that are derived from it, those of strangers included.
func TestAContextSaysWhichThreadItBelongsTo(t *testing.T) {
	var c counted
	ctx := engine.OnThread(background, &c)
	require.Nil(t, engine.ThreadOf(background))
	derived, cancel := context.WithCancel(ctx)
	defer cancel()
	require.True(t, engine.Tamed(derived))
	require.Equal(t, &c, engine.ThreadOf(derived))
	require.Equal(t, &c, engine.ThreadOf(engine.Tame(strange{derived})))
}
