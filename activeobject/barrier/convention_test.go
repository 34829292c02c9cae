package barrier_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/barrier"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
)

func TestEachOperationHasAPlainMethodAndABoundOne(t *testing.T) {
	waits := map[string]string{"WaitForLeader": "WaitsForLeader", "WaitForHerd": "WaitsForHerd"}
	patterntest.Convention[*barrier.Squad](t, waits)
	patterntest.Convention[*barrier.Auto](t, waits)
	patterntest.Convention[*barrier.Cyclic](t, map[string]string{"Broken": patterntest.Reads})
	patterntest.Convention[*barrier.Phaser](t, map[string]string{
		"ArriveAndLeave": "ArrivesAndLeaves", "ArriveAndAwait": "ArrivesAndAwaits", "AwaitPhase": "Awaits", "Status": patterntest.Reads,
	})
	patterntest.Convention[*barrier.Latch](t, map[string]string{"Count": patterntest.Reads})
}
