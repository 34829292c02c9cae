package actor_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := noLeaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// noLeaks returns an error if goroutines are left over. It is patient, as
// protoactor's throttle of dead letters leaves one that ends after a second.
func noLeaks() (err error) {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}

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
