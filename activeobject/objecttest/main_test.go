package objecttest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
)

type None = activeobject.None

var (
	background = context.Background()
	none       None
)

// play is a test within a test, or within an example: what it says is kept.
type play struct {
	testing.TB
	deadline time.Duration // 0 is none
	ctx      context.Context
	cancel   context.CancelFunc

	mu       sync.Mutex
	cleanups []func()
	said     strings.Builder
	failures []string
}

// played runs a test to its end, on a goroutine of its own, and returns it.
func played(test func(t *play)) *play { return playedWithin(0, test) }

func playedWithin(d time.Duration, test func(t *play)) *play {
	t := &play{deadline: d}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.end()
		test(t)
	}()
	<-done
	return t
}

func (t *play) end() {
	t.Context()
	t.cancel()
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
	t.cleanups = nil
}

func (t *play) Context() context.Context {
	if t.ctx == nil {
		t.ctx, t.cancel = context.WithCancel(background)
	}
	return t.ctx
}

func (t *play) Helper()           {}
func (t *play) Cleanup(f func())  { t.cleanups = append(t.cleanups, f) }
func (t *play) Output() io.Writer { return t }

func (t *play) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.Write(p)
}

// log returns what has been written so far.
func (t *play) log() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String()
}

func (t *play) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

func (t *play) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

func (t *play) Deadline() (time.Time, bool) {
	return time.Now().Add(t.deadline), t.deadline > 0
}
