package lock_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/lock"
)

func TestEachOperationHasAPlainMethodAndABoundOne(t *testing.T) {
	patterntest.Convention[*lock.Burst](t, nil)
	patterntest.Convention[*lock.ReadWrite](t, map[string]string{
		"Lock": "Locks", "RLock": "Locks", "Unlock": "Unlocks", "RUnlock": "Unlocks",
		"Readers": patterntest.Reads, "Writing": patterntest.Reads,
	})
}
