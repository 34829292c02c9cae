package actor_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var (
	background = context.Background()
	quiet      = slog.New(slog.DiscardHandler)
)

// quietly is for protoactor systems that log nothing.
func quietly(*proto.ActorSystem) *slog.Logger { return quiet }

// soon waits for c.
func soon[R any](t *testing.T, c <-chan R) (r R) {
	t.Helper()
	select {
	case r = <-c:
	case <-time.After(20 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("this hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return r
}
