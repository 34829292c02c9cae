package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// strange is a context that is not the context package's.
type strange struct{ context.Context }

// Contexts of the context package are tame as they are, and cost nothing; if they are derived
// from no others.
func TestTheContextsOfTheContextPackageAreTame(t *testing.T) {
	type key struct{}
	room := newRoom(engine.Config{})
	frame := room.visit(tidy, "frame").Inside(background, &room.Mailbox)
	wrong := room.visit(tidy, "frame").Inside(strange{background}, &room.Mailbox)
	for name, derive := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"itself":     func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"WithCancel": context.WithCancel,
		"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		},
		"WithTimeoutCause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Hour, nil)
		},
		"WithValue": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, key{}, 1), func() {}
		},
		"WithoutCancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithoutCancel(ctx), func() {}
		},
		"WithPriority": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return engine.WithPriority(ctx, 1), func() {}
		},
		"some": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.WithValue(ctx, key{}, 1))
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
			return context.WithValue(ctx, key{}, 2), func() { stop(); cancel(nil) }
		},
	} {
		for _, root := range []context.Context{background, context.TODO(), t.Context(), frame} {
			ctx, cancel := derive(root)
			require.True(t, engine.Tamed(ctx), "%s of %v", name, root)
			require.True(t, ctx == engine.Tame(ctx), name)
			require.Zero(t, testing.AllocsPerRun(10, func() { engine.Tame(ctx) }), name)
			require.Equal(t, root != frame, engine.Outside(ctx), name)
			cancel()
		}
		for _, root := range []context.Context{strange{background}, wrong} {
			ctx, cancel := derive(root)
			require.False(t, engine.Tamed(ctx), name)
			require.False(t, engine.Outside(ctx), name)
			cancel()
		}
	}
}

// A tame context ends when that does for which it stands, in the same step, and is watched
// over without a goroutine if that can be.
func TestATameContextEndsWithTheOneForWhichItStands(t *testing.T) {
	ctx, cancel := context.WithTimeout(engine.WithPriority(background, 3), time.Hour)
	defer cancel()
	want, _ := ctx.Deadline()
	tame := engine.Tame(strange{ctx})
	require.True(t, tame == engine.Tame(tame))
	got, ok := tame.Deadline()
	require.True(t, ok)
	require.Equal(t, want, got)
	require.Equal(t, engine.ByPriority(ctx), engine.ByPriority(tame))
	require.NoError(t, tame.Err())
	stopped, told := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(tame, func() { close(stopped) })
	context.AfterFunc(tame, func() { close(told) })
	require.True(t, stop())
	cancel()
	require.Error(t, tame.Err())
	soon(t, told)
	select {
	case <-stopped:
		t.Error("it was told though it had been stopped")
	default:
	}
}
