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
		take := activeobject.Entry(typ, "take", activeobject.Result(func(*depot) int { return 1 })).
			When("open", func(d *depot) bool { return d.open }).Bound(0, activeobject.Wait)
		ask := activeobject.Procedure(typ, "ask", func(*depot, None) (int, error) {
			if elsewhere {
				return take.RequeueTo(there, nil)
			}
			return take.Requeue(nil)
		})
		everywhere(t, func(t *testing.T, s *scene) {
			here := newObject(t, s, typ, &depot{})
			there = newObject(t, s, typ, &depot{})
			for how, ended := range map[string]<-chan outcome[int]{
				"call": calling(background, here, ask, nil),
				"send": awaiting(background, ask.Send(background, here, nil)),
			} {
				err := soon(t, s.system, ended).err
				var requeued *activeobject.RequeuedError
				require.ErrorAs(t, err, &requeued, how)
				require.ErrorIs(t, err, activeobject.ErrFull, how)
			}
		})
	}
}
