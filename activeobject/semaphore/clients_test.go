package semaphore_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
)

const clients = 50

func TestSemaphoresServeActorsByMessage(t *testing.T) {
	system := objecttest.NewSystem(t)
	b, err := semaphore.NewBinary(system)
	require.NoError(t, err)
	binary := patterntest.Of(b)
	var inside atomic.Int64
	binary.Clients(t, system, clients, func(_ int, ask patterntest.Ask) {
		for range 5 {
			_, err := ask("acquire", nil)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, inside.Add(1))
			held, err := ask("held", nil)
			assert.NoError(t, err)
			assert.Equal(t, true, held)
			inside.Add(-1)
			_, err = ask("release", nil)
			assert.NoError(t, err)
		}
	})
	binary.Complete(t, system)

	table := []*patterntest.Object{binary, nil}
	for _, build := range kinds {
		const size = 4
		s := made(t)(build(system, size))
		object := patterntest.Of(s)
		object.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
			for round := range 5 {
				n := 1 + (client+round)%size
				_, err := ask([]string{"acquire", "acquire in line"}[round%2], n)
				assert.NoError(t, err)
				assert.LessOrEqual(t, inside.Add(int64(n)), int64(size))
				held, err := ask("held", nil)
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, held, n)
				free, err := ask("available", nil)
				assert.NoError(t, err)
				assert.LessOrEqual(t, free, size-n)
				inside.Add(int64(-n))
				_, err = ask("release", n)
				assert.NoError(t, err)
			}
		})
		object.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
			n, err := ask("drain", nil)
			assert.NoError(t, err)
			assert.Equal(t, size, n, "all have been released")
			_, err = ask("release", size+1)
			assert.ErrorAs(t, err, new(*semaphore.ReleaseError))
			_, err = ask("resize", size+1)
			assert.NoError(t, err)
			n, err = ask("size", nil)
			assert.NoError(t, err)
			assert.Equal(t, size+1, n)
			_, err = ask("acquire", size+2)
			assert.ErrorAs(t, err, new(*semaphore.SizeError))
		})
		object.Complete(t, system)
		table[1] = object // either: they have the same operations
	}
	patterntest.Table(t, "semaphore", table...)
}
