package engine_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// While a committed request of a caller has not run, the caller's goroutine runs no other bodies:
// one might end the goroutine, and the request could neither run nor be withdrawn.
func TestWhoIsCommittedIsNotLentBeforeHisRequestHasRun(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		v, g := r.visit(tidy, "first turn"), r.visit(tidy, "exits")
		v.ForCall(0)
		second := r.visit(pass, "second turn")
		g.during = func() { defer g.Exit(); runtime.Goexit() }
		v.during = func() {
			require.NoError(t, g.post(background))
			v.Requeue(&engine.Hop{Op: pass, Commit: true, Body: second, Board: func(engine.Body, *engine.Request, *engine.Mailbox) {}})
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer v.Forsake()
			r.Call(background, &v.Request, engine.Now())
		}()
		soon(t, g.Done())
		r.open.Store(true)
		soon(t, r.visit(tidy, "opener").call(background))
		soon(t, over)
		require.Equal(t, 1, second.ran, "what is committed runs")
	})
}
