package semaphore_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
)

func TestEachOperationHasAllForms(t *testing.T) {
	patterntest.Convention[*semaphore.Binary](t)
	patterntest.Convention[*semaphore.Semaphore](t)
}
