package buffer_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
)

func TestEachOperationHasAllForms(t *testing.T) {
	patterntest.Convention[*buffer.Bounded[int]](t)
	patterntest.Convention[*buffer.Overwriting[int]](t)
	patterntest.Convention[*buffer.Unbounded[int]](t)
	patterntest.Convention[*buffer.ReadAny[int]](t)
	patterntest.Convention[*buffer.ReadNew[int]](t)
	patterntest.Convention[*buffer.Reader[int]](t)
	patterntest.Convention[*buffer.ReadWriteNew[int]](t)
}
