package semaphore_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
)

func TestEachOperationHasAPlainMethodAndABoundOne(t *testing.T) {
	patterntest.Convention[*semaphore.Binary](t, map[string]string{"Held": patterntest.Reads})
	patterntest.Convention[*semaphore.Semaphore](t, map[string]string{
		"Available": patterntest.Reads, "Held": patterntest.Reads, "Size": patterntest.Reads,
	})
}
