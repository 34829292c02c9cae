package barrier

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestBarriersServeActorsByMessage(t *testing.T) {
	const clients, rounds = 50, 5
	system := objecttest.NewSystem(t)

	s, err := NewSquad(system, clients-1)
	require.NoError(t, err)
	squad := patterntest.Of(s)
	squad.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
		for range rounds {
			if client > 0 {
				_, err := ask("wait for leader", nil)
				assert.NoError(t, err)
				continue
			}
			_, err := ask("wait for herd", nil)
			assert.NoError(t, err)
			gone, err := ask("leader done", nil)
			assert.NoError(t, err)
			assert.Equal(t, clients-1, gone)
		}
	})
	squad.Complete(t, system)

	a, err := NewAuto(system, clients-1)
	require.NoError(t, err)
	auto := patterntest.Of(a)
	auto.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
		for range rounds {
			if client > 0 {
				_, err := ask("wait for leader", nil)
				assert.NoError(t, err)
				continue
			}
			gone, err := ask("wait for herd", nil)
			assert.NoError(t, err)
			assert.Equal(t, clients-1, gone)
		}
	})
	auto.Complete(t, system)

	c, err := NewCyclic(system, clients)
	require.NoError(t, err)
	cyclic := patterntest.Of(c)
	var arrived atomic.Int64
	cyclic.Clients(t, system, clients, func(_ int, ask patterntest.Ask) {
		for round := range rounds {
			arrived.Add(1)
			_, err := ask("await", nil)
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, arrived.Load(), int64(clients*(round+1)))
		}
	})
	cyclic.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
		broken, err := ask("broken", nil)
		assert.NoError(t, err)
		assert.Equal(t, false, broken)
		_, err = ask("reset", nil)
		assert.NoError(t, err)
	})
	cyclic.Complete(t, system)

	p, err := NewPhaser(system, 0)
	require.NoError(t, err)
	phases := patterntest.Of(p)
	phases.Clients(t, system, clients, func(_ int, ask patterntest.Ask) {
		next, err := ask("join", nil)
		assert.NoError(t, err)
		arrived := func(phase any, err error) {
			assert.NoError(t, err)
			assert.Equal(t, next, phase, "no phase is over without its parties")
			next = phase.(int) + 1
		}
		for range rounds {
			arrived(ask("arrive and await", nil))
		}
		phase, err := ask("arrive", nil)
		arrived(phase, err)
		over, err := ask("await phase", phase)
		assert.NoError(t, err)
		assert.Equal(t, phase, over)
		arrived(ask("arrive and leave", nil))
	})
	phases.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
		status, err := ask("status", nil)
		assert.NoError(t, err)
		assert.Zero(t, status.(PhaserStatus).Parties)
		_, err = ask("arrive", nil)
		assert.ErrorAs(t, err, new(*MisuseError))
	})
	phases.Complete(t, system)

	l, err := NewLatch(system, clients)
	require.NoError(t, err)
	latch := patterntest.Of(l)
	latch.Clients(t, system, clients, func(_ int, ask patterntest.Ask) {
		_, err := ask("count down", nil)
		assert.NoError(t, err)
		_, err = ask("await", nil)
		assert.NoError(t, err)
		left, err := ask("count", nil)
		assert.NoError(t, err)
		assert.Equal(t, 0, left)
	})
	latch.Complete(t, system)

	patterntest.Table(t, "barrier", squad, auto, cyclic, phases, latch)
}
