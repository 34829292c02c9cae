package resource_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/resource"
)

func TestEachOperationHasAllForms(t *testing.T) {
	patterntest.Convention[*resource.Scheduler[int]](t)
	patterntest.Convention[*resource.Grant[int]](t)
}
