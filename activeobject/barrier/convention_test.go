package barrier

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
)

func TestEachOperationHasAllForms(t *testing.T) {
	patterntest.Convention[*Squad](t)
	patterntest.Convention[*Auto](t)
	patterntest.Convention[*Latch](t)
	patterntest.Convention[*Cyclic](t, "Await")
	patterntest.Convention[*Phaser](t, "ArriveAndAwait")
}
