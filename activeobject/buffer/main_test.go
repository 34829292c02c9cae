package buffer_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var background = context.Background()

// everywhere runs a test for buffers of every configuration. All keep the same promises.
func everywhere(t *testing.T, test func(t *testing.T, system *actor.System, options ...activeobject.Option)) {
	for name, options := range map[string][]activeobject.Option{
		"default":           nil,
		"without fast path": {activeobject.NoFastPath()},
		"pooled":            {activeobject.PooledThreads()},
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

// fates are the contexts of clients, which strike cancels now and then.
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
