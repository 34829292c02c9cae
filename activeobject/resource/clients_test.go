package resource_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/resource"
)

// D is the type of the clients' data in the table.
type D int

func TestASchedulerServesActorsByMessage(t *testing.T) {
	const clients, rounds = 50, 5
	system := objecttest.NewSystem(t)
	s, err := resource.New(system, resource.FIFO[D]())
	require.NoError(t, err)
	scheduler := patterntest.Of(s)
	var inside atomic.Int64
	scheduler.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
		for range rounds {
			grant, err := ask("enter", resource.Request[D]{Data: D(client)})
			assert.NoError(t, err)
			assert.EqualValues(t, 1, inside.Add(1))
			inside.Add(-1)
			_, err = ask("done", grant)
			assert.NoError(t, err)
		}
	})
	scheduler.Complete(t, system)
	patterntest.Table(t, "resource", scheduler)
}
