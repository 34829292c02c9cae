package barrier

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var background = context.Background()

// patience is how long something that must happen may take before a test gives up on
// it. A test that passes never waits for it.
const patience = 20 * time.Second

// ways are all the ways to run an object. Whatever a test finds must be so in each.
var ways = map[string][]activeobject.Option{
	"borrowed":          nil,
	"without fast path": {activeobject.NoFastPath()},
	"pooled":            {activeobject.PooledThreads()},
	"dedicated":         {activeobject.DedicatedThread()},
	"latest first":      {activeobject.ByLatest()},
	"rotating":          {activeobject.ByRotation()},
}

// inOrder are the ways that serve requests in the order of arrival.
var inOrder = []string{"borrowed", "without fast path", "pooled", "dedicated"}

// everyWay runs the test in each of the ways.
func everyWay(t *testing.T, test func(t *testing.T, system *actor.System, options []activeobject.Option)) {
	for name, options := range ways {
		t.Run(name, func(t *testing.T) { test(t, objecttest.NewSystem(t), options) })
	}
}

// newTestCyclic is newCyclic without an option for the order if there is an action, which has
// an order of its own.
func newTestCyclic(system *actor.System, parties int, action func(context.Context) error, options []activeobject.Option) (*Cyclic, error) {
	b, err := newCyclic("test", system, parties, action, options)
	if wrong, ok := errors.AsType[*activeobject.OptionError](err); ok && action != nil && wrong.Option == "an order of requests" {
		return newCyclic("test", system, parties, action, nil)
	}
	return b, err
}

// outcome is the kind of a request's end.
type outcome string

const (
	passed   outcome = "passed"
	broken   outcome = "broken"
	reset    outcome = "broken by a reset"
	never    outcome = "withdrawn before it ran"
	left     outcome = "withdrawn while it waited inside"
	misused  outcome = "misuse"
	stopped  outcome = "stopped"
	waits    outcome = "waits"
	nonsense outcome = "some other error"
)

func outcomeOf(err error) outcome {
	var b *BrokenError
	var m *MisuseError
	var r *activeobject.RequeuedError
	switch {
	case err == nil:
		return passed
	case errors.As(err, &b) && b.Reset:
		return reset
	case errors.As(err, &b):
		return broken
	case errors.As(err, &m):
		return misused
	case errors.Is(err, activeobject.ErrStopped):
		return stopped
	case errors.Is(err, context.Canceled) && errors.As(err, &r):
		return left
	case errors.Is(err, context.Canceled):
		return never
	}
	return nonsense
}

// result returns what has come of a request, as a test expects it to.
func result[R any](t require.TestingT, f activeobject.Future[R]) (R, outcome) {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	r, err := f.Await(ctx)
	if ctx.Err() != nil {
		return r, waits
	}
	o := outcomeOf(err)
	if o == nonsense {
		require.NoError(t, err)
	}
	return r, o
}

// try makes an attempt, and returns the error.
func try[A, R any](p activeobject.LocalProxy[A, R], arg A) error {
	_, err := p.Try(background, arg)
	return err
}

// calling calls f on a goroutine of its own.
func calling(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func soon(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		require.FailNow(t, "it still waits")
		return nil
	}
}

// braked keeps the object busy until the returned function is called, and so has
// requests pile up behind it.
func braked[T any](o *activeobject.Object[T]) (release func()) {
	running, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		o.Do(background, func(*T) error {
			close(running)
			<-goOn
			return nil
		})
	}()
	<-running
	return func() {
		close(goOn)
		<-over
	}
}
