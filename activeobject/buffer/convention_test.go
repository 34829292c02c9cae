package buffer_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
)

func TestEachOperationHasAPlainMethodAndABoundOne(t *testing.T) {
	reads := map[string]string{"Len": patterntest.Reads, "Peak": patterntest.Reads, "Dropped": patterntest.Reads, "Initialized": patterntest.Reads}
	patterntest.Convention[*buffer.Bounded[int]](t, reads)
	patterntest.Convention[*buffer.Overwriting[int]](t, reads)
	patterntest.Convention[*buffer.Unbounded[int]](t, reads)
	patterntest.Convention[*buffer.ReadAny[int]](t, reads)
	patterntest.Convention[*buffer.ReadNew[int]](t, map[string]string{"GetAfter": "GetsAfter", "Register": "Registers"})
	patterntest.Convention[*buffer.ReadWriteNew[int]](t, reads)
}
