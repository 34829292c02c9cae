package activeobject_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

func TestARequeueIsRefusedByAFullQueueThatCallsWouldWaitFor(t *testing.T) {
	type depot struct{ open bool }
	for _, elsewhere := range []bool{false, true} {
		var there *activeobject.Object[depot]
		typ := activeobject.NewType[depot]("depot")
		take := activeobject.Entry(typ, "take", activeobject.Get(func(*depot) int { return 1 })).
			When("open", func(d *depot) bool { return d.open }).Bounded(0, activeobject.Wait)
		ask := activeobject.Procedure(typ, "ask", func(*depot, None) (int, error) {
			if elsewhere {
				return take.RequeueTo(there, None{})
			}
			return take.Requeue(None{})
		})
		everywhere(t, func(t *testing.T, s *scene) {
			here := newObject(t, s, typ, &depot{})
			there = newObject(t, s, typ, &depot{})
			for how, ended := range map[string]<-chan outcome[int]{
				"call": calling(background, here, ask, None{}),
				"send": awaiting(background, ask.Send(background, here, None{})),
			} {
				err := soon(t, s.system, ended).err
				var requeued *activeobject.RequeuedError
				require.ErrorAs(t, err, &requeued, how)
				require.ErrorIs(t, err, activeobject.ErrFull, how)
			}
		})
	}
}
