package resource_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/resource"
)

func TestEachOperationHasAPlainMethodAndABoundOne(t *testing.T) {
	patterntest.Convention[*resource.Scheduler[int]](t, map[string]string{"Enter": "Enters"})
}
