package objecttest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// Option adjusts what NewSystem makes.
type Option func(*systemSettings)

type systemSettings struct {
	waiting bool
	actor   []actor.Option
}

// AllowWaiting says that requests may still wait when the test ends.
func AllowWaiting() Option { return func(s *systemSettings) { s.waiting = true } }

// With passes options to actor.NewSystem.
func With(options ...actor.Option) Option {
	return func(s *systemSettings) { s.actor = append(s.actor, options...) }
}

// NewSystem returns a system for the test, which logs to the test's log and is closed
// when that ends. The test fails if requests still wait then for a guard, or for room
// in a queue, as nothing is left that could let them start; with the explanations of their
// objects, and unless AllowWaiting is given. (A request whose context has ended does
// not count; and what still runs, or is about to, gets a second to let them start.) It also
// fails if the system cannot be closed since a body does not return, after as long as
// Idle would wait.
func NewSystem(t testing.TB, options ...Option) *actor.System {
	var s systemSettings
	for _, o := range options {
		o(&s)
	}
	log := &testLog{t: t}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	system := actor.NewSystem(append([]actor.Option{actor.Logger(logger)}, s.actor...)...)
	t.Cleanup(func() {
		defer log.end()
		if !s.waiting {
			// A request that waits for a thread is not stuck, but closing would fail it.
			if len(waiting(system, remaining)) > 0 {
				awaitRunning(system, min(patience(t), time.Second))
			}
			for _, snapshot := range waiting(system, stuck) {
				t.Errorf("objecttest: requests still wait at the end of the test:\n%s", snapshot)
			}
		}
		patience := patience(t)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Errorf("objecttest: the system is not closed after %v, as bodies still run:", patience)
			for _, snapshot := range system.Explain() {
				t.Errorf("%s", snapshot)
			}
		}
	})
	return system
}

// waiting returns the objects at which such requests wait.
func waiting(system *actor.System, such func(mailbox.Waiting) bool) []mailbox.Snapshot {
	return slices.DeleteFunc(system.Explain(), func(s mailbox.Snapshot) bool { return !slices.ContainsFunc(s.Waiting, such) })
}

// awaitRunning waits for what is under way in the system, such as the last turns of a
// Stepper, as that may let requests start that wait. It does not wait for long: a body may
// run until the system is closed.
func awaitRunning(system *actor.System, within time.Duration) {
	var all []activeobject.AnyObject
	for m := range system.Objects() {
		if o, ok := m.(activeobject.AnyObject); ok {
			all = append(all, o)
		}
	}
	reached(within, all, func(l activeobject.Load) bool { return l.Running == 0 && !l.Deciding })
}

// remaining reports whether a request has not been withdrawn.
func remaining(w mailbox.Waiting) bool { return !w.Leaving }

// stuck reports whether a request waits for what no request or body is about to do.
func stuck(w mailbox.Waiting) bool {
	return remaining(w) && (w.Reason.Cause == mailbox.GuardFalse || w.Reason.Cause == mailbox.NoRoom)
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// testLog writes to the log of a test until that ends: later it would be a panic.
type testLog struct {
	t    testing.TB
	mu   sync.Mutex
	over bool
}

// Write implements io.Writer.
func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return len(p), nil
	}
	return l.t.Output().Write(p)
}

// errorf fails the test, unless that has ended.
func (l *testLog) errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.t.Errorf(format, args...)
	}
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}
