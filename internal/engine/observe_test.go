package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Whenever the object has no owner, the last load that an observer was told is the present one.
func TestAnObserverIsNotLeftWithAnOldLoad(t *testing.T) {
	s := &shelf{}
	watch := func(r *room) *mailbox.Load {
		last := &mailbox.Load{}
		r.Observe(func(l mailbox.Load) bool { *last = l; return false })
		return last
	}
	t.Run("the turn is over", func(t *testing.T) {
		r := newRoom(engine.Config{Dispatcher: s, Turn: 1})
		last := watch(r)
		first, second := r.visit(tidy, "first"), r.visit(tidy, "second")
		first.during = func() { second.post(background) }
		first.post(background)
		require.Equal(t, mailbox.Load{Waiting: 1, Deciding: true}, *last)
		s.next()
		require.Equal(t, mailbox.Load{Waiting: 1, Deciding: true}, *last)
		s.run()
		require.True(t, last.Idle())
	})
	t.Run("a body has left", func(t *testing.T) {
		r := newRoom(engine.Config{Workers: s})
		last := watch(r)
		v := r.visit(tidy, "leaves")
		v.during = func() { defer v.Exit(); runtime.Goexit() }
		soon(t, v.call(background))
		require.Equal(t, mailbox.Load{Deciding: true}, *last)
		s.run()
		require.True(t, last.Idle())
	})
	t.Run("it goes on", func(t *testing.T) {
		r := newRoom(engine.Config{Workers: s})
		last := watch(r)
		r.Suspend()
		v := r.visit(tidy, "waits")
		v.post(background)
		require.Equal(t, mailbox.Load{Waiting: 1}, *last)
		r.Resume()
		require.Equal(t, mailbox.Load{Waiting: 1, Deciding: true}, *last)
		s.run()
		require.True(t, last.Idle())
	})
	t.Run("it is drained", func(t *testing.T) {
		r := newRoom(engine.Config{Workers: s})
		last := watch(r)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		v := r.visit(pass, "waits")
		v.post(ctx)
		require.Equal(t, mailbox.Load{Waiting: 1}, *last)
		r.Drain(errors.New("drained"))
		require.Equal(t, mailbox.Load{Waiting: 1, Deciding: true}, *last)
		s.run()
		require.True(t, last.Idle())
	})
}

// Room is made before the lock is taken; between the two the object says its name.
func TestAnExplanationHasRoomForThoseWhoComeMeanwhile(t *testing.T) {
	for _, n := range []int{0, 1, 16, 17, 300, 1000} {
		r := newRoom(engine.Config{})
		come := func(n int) {
			for range n {
				require.NoError(t, r.visit(pass, "waits").post(background))
			}
		}
		come(3)
		r.named = func() { come(n) }
		require.Len(t, r.Explain().Waiting, 3+n)
		soon(t, r.Close(errors.New("over")))
	}
}
