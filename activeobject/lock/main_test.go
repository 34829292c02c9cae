package lock_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

type None = activeobject.None

var (
	background = context.Background()
	quiet      = actor.Logger(slog.New(slog.DiscardHandler))
)

// kinds are the three read-write locks.
var kinds = map[string]func(*actor.System, ...activeobject.Option) (*lock.ReadWrite, error){
	"fair": lock.NewReadWrite, "readers-first": lock.NewReadersFirst, "writers-first": lock.NewWritersFirst,
}

// each runs a test for read-write locks of all three kinds.
func each(t *testing.T, test func(t *testing.T, l *lock.ReadWrite)) {
	t.Helper()
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			l, err := build(objecttest.NewSystem(t, objecttest.AllowWaiting()), activeobject.Name("table"))
			require.NoError(t, err)
			test(t, l)
		})
	}
}

// patience is how long something that must happen may take before a test gives up on
// it. A test that passes never waits for it.
const patience = 5 * time.Second

// over waits until a future has its result, and returns the error.
func over(t testingT, f activeobject.Future[None]) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	_, err := f.Await(ctx)
	require.NoError(t, ctx.Err(), "it still waits")
	return err
}

// try makes an attempt, and returns the error.
func try[A any](p activeobject.LocalProxy[A, None], arg A) error {
	_, err := p.Try(background, arg)
	return err
}

// testingT is a *testing.T or a *rapid.T.
type testingT interface {
	require.TestingT
	Helper()
}
