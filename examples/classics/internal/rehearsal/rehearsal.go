// Package rehearsal is the test that all classical problems have in common.
package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/timeline"
)

// Play is a classical problem: n times, and its invariants checked.
type Play func(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error

// Of plays n times, on one processor and on four, and while it is recorded, and compares what is
// printed with the text. Then it has the play ended before it begins, and while it goes on.
func Of(t *testing.T, play Play, n int, want string) {
	for _, procs := range []int{1, 4} {
		t.Run(fmt.Sprintf("on %d processors", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var out bytes.Buffer
			if err := play(t.Context(), &out, n); err != nil {
				t.Error(err)
			}
			if out.String() != want {
				t.Errorf("got\n%swant\n%s", &out, want)
			}
		})
	}
	t.Run("recorded", func(t *testing.T) {
		recording := timeline.New()
		var out, page bytes.Buffer
		if err := errors.Join(play(t.Context(), &out, n, recording.Option()), recording.WritePage(&page, "play")); err != nil {
			t.Error(err)
		}
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", &out, want)
		}
		if len(recording.Panels()) == 0 || !bytes.Contains(page.Bytes(), []byte("data-lanes")) {
			t.Error("nothing is recorded")
		}
	})
	t.Run("that does not begin", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := play(ctx, io.Discard, n); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("that is ended", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := play(ctx, io.Discard, math.MaxInt); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
	})
}
