package buffer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
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

var background = context.Background()

// everywhere runs a test for buffers of every configuration. All keep the same promises.
func everywhere(t *testing.T, test func(t *testing.T, system *actor.System, options ...activeobject.Option)) {
	for name, options := range map[string][]activeobject.Option{
		"default":           nil,
		"without fast path": {activeobject.WithoutFastPath()},
		"pooled":            {activeobject.Pooled()},
	} {
		t.Run(name, func(t *testing.T) { test(t, objecttest.NewSystem(t), options...) })
	}
}

// must returns b, for tests in which it cannot fail.
func must[B any](t testing.TB) func(b B, err error) B {
	return func(b B, err error) B {
		t.Helper()
		require.NoError(t, err)
		return b
	}
}

// fates are the contexts of clients, which somebody cancels now and then.
type fates []atomic.Pointer[context.CancelFunc]

// next returns the context for a client's next request.
func (f fates) next(client int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(background)
	f[client].Store(&cancel)
	return ctx, cancel
}

// strike cancels at random until done is closed.
func (f fates) strike(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			for range rand.N(100) {
				runtime.Gosched()
			}
			if cancel := f[rand.N(len(f))].Load(); cancel != nil {
				(*cancel)()
			}
		}
	}
}
