package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// Whenever its context ends, as long as no body has run, the selection ends with it, and has
// chosen nothing.
func TestASelectionEndsWithItsContextWheneverThatIs(t *testing.T) {
	for kind, own := range map[string]func(ctx context.Context) context.Context{
		"of the context package": func(ctx context.Context) context.Context { return ctx },
		"of the caller's":        func(ctx context.Context) context.Context { return strange{ctx} },
	} {
		for _, at := range []string{"before it is added", "before it is handed in", "while its guard is evaluated"} {
			r := newRoom(engine.Config{})
			r.open.Store(true)
			ctx, cancel := context.WithCancel(background)
			end := func(point string) {
				if point == at {
					cancel()
				}
			}
			v := r.visit(pass, "v")
			var s engine.Selection
			s.Begin()
			end("before it is added")
			s.Add(own(ctx), &v.Request, &r.Mailbox, engine.Now(), false)
			end("before it is handed in")
			r.asking = func() { end("while its guard is evaluated") }
			i, err := s.Select(own(ctx))
			require.ErrorIs(t, err, context.Canceled, "%s, %s", kind, at)
			require.Equal(t, -1, i, "%s, %s", kind, at)
			require.Zero(t, v.ran, "%s, %s", kind, at)
			cancel()
		}
	}
}
