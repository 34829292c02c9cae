package activeobject_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

var (
	stress = flag.Duration("stress", time.Second, "how long a stress test runs")
	long   = flag.Bool("long", false, "run crowded tests in full size")
	update = flag.Bool("update", false, "write the golden files instead of comparing with them")
)

// size returns how many of something a crowded test has: full with -long, and else a
// number that shows the same property sooner.
func size(full, usual, short int) int {
	switch {
	case *long:
		return full
	case testing.Short() || raced:
		return short
	}
	return usual
}

func TestMain(m *testing.M) { objecttest.Main(m) }

// None saves the tests a selector.
type None = activeobject.None

var (
	background = context.Background()
	quiet      = slog.New(slog.DiscardHandler)
)

// patience is how long something that must happen may take before a test gives
// up on it. A test that passes never waits for it.
const patience = 20 * time.Second

// scene is where a test plays: a system, and how its objects are configured.
type scene struct {
	name    string
	system  *actor.System
	options []activeobject.Option
}

// onCallers reports whether the scene's bodies run on the goroutines of callers.
func (s *scene) onCallers() bool {
	return s.name != "pooled" && s.name != "dedicated" && s.name != "workers"
}

// parallel reports whether compatible requests run at once.
func (s *scene) parallel() bool {
	return s.name == "synchronizer" || s.name == "monitor" || s.name == "workers"
}

// helpsLeaves reports whether leaf bodies run on the goroutines of other callers, too.
func (s *scene) helpsLeaves() bool { return s.onCallers() && !s.parallel() }

// everywhere runs a test for objects of every configuration. All of them keep
// the same promises.
func everywhere(t *testing.T, test func(t *testing.T, s *scene)) {
	t.Helper()
	for _, c := range []scene{
		{name: "default"},
		{name: "without fast path", options: []activeobject.Option{activeobject.NoFastPath()}},
		{name: "pooled", options: []activeobject.Option{activeobject.PooledThreads()}},
		{name: "dedicated", options: []activeobject.Option{activeobject.DedicatedThread()}},
		{name: "synchronizer", options: []activeobject.Option{parallel}},
		{name: "monitor", options: []activeobject.Option{parallel, synchronizer.Monitor()}},
		{name: "workers", options: []activeobject.Option{parallel, synchronizer.Actors(8)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.system = newSystem(t)
			test(t, &c)
		})
	}
}

// parallel makes the object a Synchronizer.
var parallel = synchronizer.Callers()

// newSystem returns a system that is closed when the test ends.
func newSystem(t *testing.T, options ...actor.Option) *actor.System {
	t.Helper()
	system := actor.NewSystem(append([]actor.Option{actor.Logger(quiet)}, options...)...)
	t.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- system.Close(background) }()
		require.NoError(t, soon(t, system, closed))
	})
	return system
}

// make makes an object of the scene.
func newObject[T any](t *testing.T, s *scene, typ *activeobject.Type[T], state *T, more ...activeobject.Option) *activeobject.Object[T] {
	t.Helper()
	o, err := activeobject.New(s.system, typ, state, append(more, s.options...)...)
	require.NoError(t, err)
	return o
}

// soon returns what comes out of c. If nothing comes it fails the test, and
// shows what waits for what.
func soon[R any](t *testing.T, system *actor.System, c <-chan R) (r R) {
	t.Helper()
	select {
	case r = <-c:
	case <-time.After(patience):
		t.Fatalf("this hangs\n%s", state(system))
	}
	return r
}

// after is a clock for what may hang because of a defect that the test is about.
func after() <-chan time.Time { return time.After(patience / 4) }

// state describes what a system is doing: its objects and all goroutines.
func state(system *actor.System) string {
	explained := make(chan string, 1)
	go func() {
		var b strings.Builder
		for _, snapshot := range system.Explain() {
			b.WriteString(snapshot.String())
		}
		explained <- b.String()
	}()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	select {
	case s := <-explained:
		return s + string(stacks)
	case <-after():
		return "the system cannot be explained: an object is wedged\n" + string(stacks)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("this never comes true: %s", what)
		}
	}
}

// waiting waits until n requests wait for the operation.
func waiting[T, A, R any](t *testing.T, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], n int) {
	t.Helper()
	eventually(t, op.Name()+" has its waiters", func() bool { return op.Waiting(o) == n })
}

// outcome is what a call returned.
type outcome[R any] struct {
	result R
	err    error
}

// errEnded is the outcome of a call whose goroutine has ended by runtime.Goexit.
var errEnded = errors.New("the caller's goroutine has ended")

// async does something on a goroutine of its own.
func async[R any](do func() (R, error)) <-chan outcome[R] {
	c := make(chan outcome[R], 1)
	go func() {
		out := outcome[R]{err: errEnded}
		defer func() { c <- out }()
		r, err := do()
		out = outcome[R]{r, err}
	}()
	return c
}

// calling makes a call on a goroutine of its own.
func calling[T, A, R any](ctx context.Context, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], arg A) <-chan outcome[R] {
	return async(func() (R, error) { return op.Call(ctx, o, arg) })
}

// trying is calling with Try.
func trying[T, A, R any](ctx context.Context, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], arg A) <-chan outcome[R] {
	return async(func() (R, error) { return op.Try(ctx, o, arg) })
}

// awaiting waits for a future on a goroutine of its own.
func awaiting[R any](ctx context.Context, f activeobject.Future[R]) <-chan outcome[R] {
	return async(func() (R, error) { return f.Await(ctx) })
}

// brake is a request whose body runs until the test releases it.
type brake struct{ entered, let chan struct{} }

func newBrake() *brake { return &brake{entered: make(chan struct{}), let: make(chan struct{})} }

// hold declares the operation of brakes.
func hold[T any](typ *activeobject.Type[T]) *activeobject.Operation[T, *brake, None] {
	return activeobject.ProcedureCtx(typ, "hold", func(_ *T, _ context.Context, b *brake) (None, error) {
		close(b.entered)
		<-b.let
		return nil, nil
	})
}

// braked makes the object busy until the returned function is called, which
// waits until the body has ended.
func braked[T any](t *testing.T, s *scene, o *activeobject.Object[T], op *activeobject.Operation[T, *brake, None]) (release func()) {
	t.Helper()
	b := newBrake()
	done := calling(background, o, op, b)
	soon(t, s.system, b.entered)
	released := false
	release = func() {
		if !released {
			released = true
			close(b.let)
			<-done
		}
	}
	t.Cleanup(release)
	return release
}

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	var b [64]byte
	return string(bytes.Fields(b[:runtime.Stack(b[:], false)])[1])
}
