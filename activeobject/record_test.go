package activeobject_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
	"github.com/sluice-go/sluice/mailbox"
)

// minutes is a recorder that keeps what it is told.
type minutes struct {
	object     string
	operations []string
	events     []activeobject.Event
	waits      []engine.RecordedWait
}

func (m *minutes) Event(e activeobject.Event) { m.events = append(m.events, e) }

func (m *minutes) Waits(all iter.Seq[*engine.RecordedWait]) {
	for w := range all {
		m.waits = append(m.waits, *w)
		break // it need not look at all
	}
}

// A recorder hears of every request, also of one that finds the object idle, and why one waits. A
// function that the log is passed to hears of the same.
func TestARecorderIsToldOfEveryRequest(t *testing.T) {
	basins := activeobject.NewType[basin]("basin")
	fill := activeobject.Procedure(basins, "fill", (*basin).Fill)
	draw := activeobject.Entry(basins, "draw", (*basin).Draw).WhenArg("enough", (*basin).Holds)
	var m minutes
	var log []activeobject.Event
	o := activeobject.Must(activeobject.New(newSystem(t), basins, &basin{}, activeobject.Name("tub"),
		activeobject.Log(func(e activeobject.Event) { log = append(log, e) }),
		settings.Recorded[activeobject.Option](func(object string, operations []string) engine.Recorder {
			m.object, m.operations = object, operations
			return &m
		})))
	fill.Call(context.Background(), o, 1)
	drawn := draw.Send(context.Background(), o, 2)
	fill.Call(context.Background(), o, 1)
	_, err := drawn.Await(context.Background())
	require.NoError(t, err)

	require.Equal(t, "tub", m.object)
	require.Equal(t, []string{"fill", "draw"}, m.operations[:2])
	require.Equal(t, log, m.events)
	starts := 0
	for _, e := range m.events {
		if e.Kind == mailbox.Started {
			starts++
			require.NotZero(t, e.Arrival)
		}
	}
	require.Equal(t, 3, starts)
	closed := false
	for _, w := range m.waits {
		closed = closed || w.Op == 1 && w.Reason.Cause == mailbox.GuardFalse && w.Reason.Guard == "enough"
	}
	require.True(t, closed, "%+v", m.waits)
}
