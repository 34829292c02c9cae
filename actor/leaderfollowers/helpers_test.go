package leaderfollowers_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

var background = context.Background()

// quiet has a system log nothing.
var quiet = actor.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

func newSystem(t testing.TB) *actor.System {
	s := actor.NewSystem(quiet)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		require.NoError(t, s.Close(ctx))
	})
	return s
}

func newPool(t testing.TB, n int, options ...leaderfollowers.Option) *leaderfollowers.Pool {
	p, err := leaderfollowers.New(newSystem(t), n, options...)
	require.NoError(t, err)
	t.Cleanup(func() { closePool(t, p) })
	return p
}

func closePool(t testing.TB, p *leaderfollowers.Pool) {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	require.NoError(t, p.Close(ctx))
}

// soon returns what comes from the channel.
func soon[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-c:
		return v
	case <-timer.C:
		t.Fatal("nothing has come")
		return v
	}
}

// until waits until the condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// connections returns a connection over loopback: its two ends.
func connections(t testing.TB) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	var both sync.WaitGroup
	both.Go(func() { there, _ = net.Dial("tcp", l.Addr().String()) })
	here, err = l.Accept()
	require.NoError(t, err)
	both.Wait()
	require.NotNil(t, there)
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return here, there
}
