package semaphore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

type None = activeobject.None

var (
	background = context.Background()
	quiet      = actor.Logger(slog.New(slog.DiscardHandler))
)

// maker is New or NewBarging.
type maker func(*actor.System, int, ...activeobject.Option) (*semaphore.Semaphore, error)

var kinds = map[string]maker{"fair": semaphore.New, "barging": semaphore.NewBarging}

// each runs a test for semaphores of both kinds.
func each(t *testing.T, test func(t *testing.T, build func(permits int, options ...activeobject.Option) *semaphore.Semaphore)) {
	t.Helper()
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			system := objecttest.NewSystem(t, objecttest.AllowWaiting())
			test(t, func(permits int, options ...activeobject.Option) *semaphore.Semaphore {
				return made(t)(make(system, permits, options...))
			})
		})
	}
}

// made returns a semaphore that has been made without error.
func made(t *testing.T) func(*semaphore.Semaphore, error) *semaphore.Semaphore {
	return func(s *semaphore.Semaphore, err error) *semaphore.Semaphore {
		require.NoError(t, err)
		return s
	}
}

// counts requires so many permits to be free and held, and so many to wait.
func counts(t *testing.T, s *semaphore.Semaphore, available, held, waiting int) {
	t.Helper()
	a, err := s.Available()
	require.NoError(t, err)
	h, err := s.Held()
	require.NoError(t, err)
	require.Equal(t, [3]int{available, held, waiting}, [3]int{a, h, s.Waiting()}, "available, held, waiting")
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
