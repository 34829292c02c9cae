package barrier

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// What a barrier asks of itself cannot be asked of it by message, in none of its states.
func TestTheInternalOperationsOfABarrierCannotBeInvokedByMessage(t *testing.T) {
	system := objecttest.NewSystem(t)
	forged := []any{nil, nil, true, 1, "", struct{}{}}
	refused := func(pid *actor.PID, operation string) {
		t.Helper()
		for _, argument := range forged {
			_, err := patterntest.Invoke(t, system, pid, operation, argument)
			require.ErrorAs(t, err, new(*activeobject.MessageError), "%s(%v)", operation, argument)
		}
	}

	s, err := NewSquad(system, 2)
	require.NoError(t, err)
	refused(s.o.PID(), "close")
	one, two := s.WaitsForLeader().Send(background, nil), s.WaitsForLeader().Send(background, nil)
	refused(s.o.PID(), "close")
	require.NoError(t, s.WaitForHerd(background))
	refused(s.o.PID(), "close")
	gone, err := s.LeaderDone()
	require.NoError(t, err)
	require.Equal(t, 2, gone)
	for _, f := range []activeobject.Future[none]{one, two} {
		_, o := result(t, f)
		require.Equal(t, passed, o)
	}

	a, err := NewAuto(system, 1)
	require.NoError(t, err)
	refused(a.o.PID(), "close")
	one = a.WaitsForLeader().Send(background, nil)
	refused(a.o.PID(), "close")
	gone, err = a.WaitForHerd(background)
	require.NoError(t, err)
	require.Equal(t, 1, gone)
	_, o := result(t, one)
	require.Equal(t, passed, o)

	c, err := NewCyclic(system, 2)
	require.NoError(t, err)
	one = c.Awaits().Send(background, nil)
	refused(c.o.PID(), "act")
	require.NoError(t, c.Await(background))
	_, o = result(t, one)
	require.Equal(t, passed, o)
}
