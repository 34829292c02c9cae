package lock_test

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/lock"
)

func TestEachOperationHasAllForms(t *testing.T) {
	patterntest.Convention[*lock.Burst](t)
	patterntest.Convention[*lock.ReadWrite](t)
}
