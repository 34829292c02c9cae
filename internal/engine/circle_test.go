package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// do calls the room, and runs the body there, which may call others.
func (r *room) do(ctx context.Context, body func(ctx context.Context)) error {
	v := r.visit(tidy, "")
	v.Leaf = false
	v.ForCall(0)
	v.Inside(ctx, &r.Mailbox)
	v.during = func() { body(v.BodyContext()); v.Left() }
	r.Call(ctx, &v.Request, engine.Now())
	return v.err
}

// drawn waits until n bodies wait for a request each.
func drawn(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(patience); edges() != n; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d wait, not %d", edges(), n)
		}
	}
}

func edges() int {
	n, _, _ := engine.Edges()
	return n
}

// looks returns how much is looked at when the body with the context begins to wait for v, and
// fails at once, since the wait's context has ended, or with the error of the circle.
func looks(t *testing.T, ctx context.Context, v *visitor) (n int, err error) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	before := engine.Looked()
	err = v.Await(ended)
	return engine.Looked() - before, err
}

// nested runs the body in the innermost of n bodies, each of which was called by the one before.
func nested(ctx context.Context, n int, body func(ctx context.Context)) {
	if n == 0 {
		body(ctx)
		return
	}
	newRoom(engine.Config{}).do(ctx, func(ctx context.Context) { nested(ctx, n-1, body) })
}

// row is n rooms, each kept by a body that waits for the next one; the last waits for the given
// room, if that is not nil, and else for the end of the test.
func row(t *testing.T, n int, last *room) (first *room) {
	t.Helper()
	rooms := make([]*room, n)
	for i := range rooms {
		rooms[i] = newRoom(engine.Config{})
	}
	before := edges()
	inside, goOn, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	left := make(chan struct{}, n)
	for i, r := range rooms {
		next := last
		if i+1 < n {
			next = rooms[i+1]
		}
		go func() {
			r.do(background, func(ctx context.Context) {
				inside <- struct{}{}
				<-goOn
				if next == nil {
					<-end
				} else {
					next.do(ctx, func(context.Context) {})
				}
			})
			left <- struct{}{}
		}()
	}
	for range rooms {
		soon(t, inside)
	}
	close(goOn)
	t.Cleanup(func() {
		close(end)
		for range rooms {
			soon(t, left)
		}
	})
	if last == nil {
		n--
	}
	drawn(t, before+n)
	return rooms[0]
}

// post posts a request that waits in the room.
func (r *room) posted(t *testing.T) *visitor {
	v := r.visit(tidy, "posted")
	require.NoError(t, v.post(background))
	return v
}

// requireNoEdges requires that nothing is left of any wait.
func requireNoEdges(t *testing.T) {
	t.Helper()
	drawn(t, 0)
	_, loose, restarts := engine.Edges()
	require.Zero(t, loose)
	require.Zero(t, restarts)
}

// What a wait costs does not depend on how deep its chain is, if it leads nowhere.
func TestAWaitLooksAtNoMoreOfADeepChain(t *testing.T) {
	t.Cleanup(func() { requireNoEdges(t) })
	v := row(t, 1, nil).posted(t)
	for _, depth := range []int{1, 50, 400} {
		nested(background, depth, func(ctx context.Context) {
			for range 3 {
				n, err := looks(t, ctx, v)
				require.ErrorIs(t, err, context.Canceled)
				require.Less(t, n, 50, "depth %d", depth)
			}
		})
	}
}

// Nor on what it leads to, if nothing waits for the chain.
func TestAWaitIsNotWalkedIfNothingWaitsForItsChain(t *testing.T) {
	t.Cleanup(func() { requireNoEdges(t) })
	for _, length := range []int{2, 400} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			v := row(t, length, nil).posted(t)
			nested(background, 5, func(ctx context.Context) {
				n, err := looks(t, ctx, v)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 5, n, "its own chain")
			})
		})
	}
}

// Otherwise it is linear in the chain, whether that leads back or not.
func TestTheSearchForCirclesIsLinear(t *testing.T) {
	t.Cleanup(func() { requireNoEdges(t) })
	const most = 8 // for each object and body
	for _, back := range []bool{false, true} {
		for _, length := range []int{100, 400} {
			t.Run(fmt.Sprint(length, back), func(t *testing.T) {
				home := newRoom(engine.Config{})
				err := home.do(background, func(ctx context.Context) {
					last := (*room)(nil)
					if back {
						last = home
					} else {
						row(t, 1, home) // waits for home, and nothing for it
					}
					v := row(t, length, last).posted(t)
					n, err := looks(t, ctx, v)
					require.GreaterOrEqual(t, n, length)
					require.LessOrEqual(t, n, most*length)
					if !back {
						require.ErrorIs(t, err, context.Canceled)
						return
					}
					var d *mailbox.DeadlockError
					require.ErrorAs(t, err, &d)
					require.Len(t, d.Circle, length+1)
				})
				require.NoError(t, err)
			})
		}
	}
}
