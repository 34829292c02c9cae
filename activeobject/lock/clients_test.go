package lock_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

const clients = 50

func TestLocksServeActorsByMessage(t *testing.T) {
	system := objecttest.NewSystem(t)
	b, err := lock.NewBurst(system, 5)
	require.NoError(t, err)
	burst := patterntest.Of(b)
	var working atomic.Int64
	working.Store(clients - 1)
	burst.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
		if client == 0 { // lets pass those that are too few for a burst
			for working.Load() > 0 {
				_, err := ask("grant", nil)
				assert.NoError(t, err)
			}
			return
		}
		defer working.Add(-1)
		for range 5 {
			_, err := ask("request", nil)
			assert.NoError(t, err)
		}
	})
	burst.Complete(t, system)

	var table []*patterntest.Object
	for name, build := range kinds {
		l, err := build(system)
		require.NoError(t, err)
		object := patterntest.Of(l)
		var readers, writers atomic.Int64
		object.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
			for round := range 5 {
				mode, holders, others := lock.ToRead, &readers, &writers
				if (client+round)%5 == 0 {
					mode, holders, others = lock.ToWrite, &writers, &readers
				}
				_, err := ask("lock", mode)
				assert.NoError(t, err)
				n := holders.Add(1)
				assert.True(t, others.Load() == 0 && (mode == lock.ToRead || n == 1), "%s: %v with %d others", name, mode, n)
				reading, err := ask("readers", nil)
				assert.NoError(t, err)
				writing, err := ask("writing", nil)
				assert.NoError(t, err)
				assert.Equal(t, mode == lock.ToWrite, writing)
				assert.Equal(t, mode == lock.ToRead, reading.(int) > 0)
				holders.Add(-1)
				_, err = ask("unlock", mode)
				assert.NoError(t, err)
			}
		})
		_, err = l.Readers()
		require.NoError(t, err)
		object.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
			_, err := ask("unlock", lock.ToWrite)
			assert.Equal(t, &lock.UnlockError{Lock: l.Object().Name(), Writing: true}, err)
		})
		object.Complete(t, system)
		table = []*patterntest.Object{burst, object}
	}
	patterntest.Table(t, "lock", table...)
}
