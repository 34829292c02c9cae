package soak_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

var (
	length   = flag.Duration("soak.for", 0, "how long to soak; 0 is a miniature, bounded by the number of requests")
	patience = flag.Duration("soak.patience", 2*time.Minute, "how long a round may take before it is taken to hang")
	seeded   = flag.Uint64("soak.seed", 0, "the seed of the choices; 0 takes that of SLUICE_SOAK_SEED, or one of its own")
)

var (
	background = context.Background()
	quiet      = slog.New(slog.DiscardHandler)
)

func TestMain(m *testing.M) {
	slog.SetDefault(quiet) // continuations of futures that are ready, and so of no system, fail by the hundred
	objecttest.Main(m)
}

// seed returns the seed of the test, and has it said if the test fails.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seeded
	if s == 0 {
		s, _ = strconv.ParseUint(os.Getenv("SLUICE_SOAK_SEED"), 10, 64)
	}
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: -soak.seed=%d", s)
		}
	})
	return s
}

// rounds yields the numbers of rounds: so many, or as many as there is time for.
func rounds(few int, share int) func(func(int) bool) {
	return func(yield func(int) bool) {
		end := time.Now().Add(*length / time.Duration(share))
		for i := 0; i < few || *length > 0 && time.Now().Before(end); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// hangs ends the process with an explanation unless it is called off.
func hangs(t *testing.T, system *actor.System, more func() string) (calledOff func()) {
	return hangsAfter(*patience, t, system, more)
}

func hangsAfter(long time.Duration, t *testing.T, system *actor.System, more func() string) (calledOff func()) {
	began := t.Name()
	watchdog := time.AfterFunc(long, func() {
		fmt.Fprintf(os.Stderr, "%s hangs\n%s\n%s", began, more(), state(system))
		os.Exit(1)
	})
	return func() { watchdog.Stop() }
}

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
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	select {
	case s := <-explained:
		return s + string(stacks)
	case <-time.After(5 * time.Second):
		return "the system cannot be explained: an object is wedged\n" + string(stacks)
	}
}
