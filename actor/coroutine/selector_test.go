package coroutine_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	. "github.com/sluice-go/sluice/actor/coroutine"
	"github.com/sluice-go/sluice/internal/poll"
)

// newSelector makes a selector that has ended when the test has, before its scheduler.
func newSelector(t testing.TB, s *Scheduler) *Selector {
	t.Helper()
	n, err := NewSelector(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// connected makes a connection over loopback: the end of a coroutine, and that of a client.
func connected(t testing.TB, n *Selector) (*Connection, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	conn, err := l.Accept()
	require.NoError(t, err)
	c, err := n.Add(conn.(*net.TCPConn))
	require.NoError(t, err)
	require.Equal(t, client.LocalAddr(), c.Conn().RemoteAddr())
	return c, client.(*net.TCPConn)
}

// overBoth runs a test with epoll, and with what is used elsewhere.
func overBoth(t *testing.T, test func(t *testing.T)) {
	t.Run("epoll", test)
	t.Run("portable", func(t *testing.T) {
		poll.Portable.Store(true)
		defer poll.Portable.Store(false)
		test(t)
	})
}

// Clients of all speeds are answered, each by a coroutine of its own, by one thread that reads and
// one that writes.
func TestASelectorReadsAndWritesForManyCoroutines(t *testing.T) {
	overBoth(t, func(t *testing.T) {
		for name, options := range map[string][]Option{"one worker": {Workers(1)}, "workers": {Workers(3)}} {
			t.Run(name, func(t *testing.T) {
				s := newScheduler(t, options...)
				n := newSelector(t, s)
				const clients = 40
				var all sync.WaitGroup
				var served []*Coroutine
				for i := range clients {
					c, client := connected(t, n)
					served = append(served, started(t, s, func(co *Coroutine) error { // it echoes
						defer c.Close()
						buffer := make([]byte, 1000)
						for {
							k, err := c.Read(co, buffer)
							if errors.Is(err, io.EOF) {
								return nil
							}
							if err != nil {
								return err
							}
							if _, err := c.Write(co, buffer[:k]); err != nil {
								return err
							}
						}
					}))
					r := rand.New(rand.NewPCG(1, uint64(i)))
					sent := make([]byte, r.IntN(300_000))
					for k := range sent {
						sent[k] = byte(r.Uint32())
					}
					all.Go(func() {
						for p := sent; len(p) > 0; {
							k := min(len(p), 1+r.IntN(20_000))
							if _, err := client.Write(p[:k]); err != nil {
								t.Error(err)
								return
							}
							p = p[k:]
						}
						if err := client.CloseWrite(); err != nil { // half-closed: the rest still comes
							t.Error(err)
						}
					})
					all.Go(func() {
						got, err := io.ReadAll(client)
						if err != nil || !bytes.Equal(sent, got) {
							t.Errorf("%d bytes of %d came back: %v", len(got), len(sent), err)
						}
					})
				}
				all.Wait()
				for _, c := range served {
					require.NoError(t, awaited(t, c))
				}
			})
		}
	})
}

// A client that does not read keeps its own coroutine waiting, and no other.
func TestASlowReaderKeepsItsOwnCoroutineWaitingOnly(t *testing.T) {
	s := newScheduler(t, Workers(1))
	n := newSelector(t, s)
	slow, reader := connected(t, n)
	fast, client := connected(t, n)
	const size = 20 << 20
	writes := started(t, s, func(co *Coroutine) error {
		defer slow.Close()
		k, err := slow.Write(co, make([]byte, size))
		if err == nil && k != size {
			err = fmt.Errorf("%d bytes are written", k)
		}
		return err
	})
	answers := started(t, s, func(co *Coroutine) error {
		_, err := fast.Write(co, []byte("well\n"))
		return err
	})
	line, err := bufio.NewReader(client).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "well\n", line)
	require.NoError(t, awaited(t, answers))
	require.Equal(t, 1, s.Stats().Live)
	got, err := io.Copy(io.Discard, reader)
	require.NoError(t, err)
	require.EqualValues(t, size, got)
	require.NoError(t, awaited(t, writes))
}

// What ends the wait of a coroutine, be it its context, the close of the connection, the selector
// or the scheduler, ends its read; and what comes afterwards is for the next read.
func TestAReadEndsWhenItsWaitDoes(t *testing.T) {
	overBoth(t, func(t *testing.T) {
		s := newScheduler(t, Workers(2))
		n := newSelector(t, s)
		c, client := connected(t, n)
		ctx, cancel := context.WithCancel(background)
		read := func(co *Coroutine) error {
			k, err := c.Read(co, make([]byte, 10))
			if err == nil {
				err = fmt.Errorf("%d bytes", k)
			}
			return err
		}
		canceled, err := s.Go(ctx, read)
		require.NoError(t, err)
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 1 })
		next := started(t, s, read) // waits for its turn
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 2 })
		cancel()
		require.ErrorIs(t, awaited(t, canceled), context.Canceled)
		_, err = client.Write([]byte("abc"))
		require.NoError(t, err)
		require.EqualError(t, awaited(t, next), "3 bytes")

		closes := started(t, s, read)
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 1 })
		require.NoError(t, c.Close())
		require.ErrorIs(t, awaited(t, closes), net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		require.ErrorIs(t, awaited(t, started(t, s, read)), net.ErrClosed)

		c, client = connected(t, n)
		reset := started(t, s, read)
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 1 })
		require.NoError(t, client.SetLinger(0))
		require.NoError(t, client.Close())
		require.Error(t, awaited(t, reset))
		require.NotErrorIs(t, awaited(t, reset), net.ErrClosed)

		c, _ = connected(t, n)
		stops := started(t, s, read)
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 1 })
		require.NoError(t, n.Close())
		require.ErrorIs(t, awaited(t, stops), net.ErrClosed)
		require.NoError(t, n.Close())

		n = newSelector(t, s)
		c, _ = connected(t, n)
		ends := started(t, s, read)
		until(t, "it does not wait", func() bool { return s.Stats().Blocked == 1 })
		closed(t, s)
		require.ErrorIs(t, awaited(t, ends), ErrClosed)
	})
}

// A connection that other code has closed, behind the selector's back, is an error, and nothing is
// left of it.
func TestAConnectionThatOtherCodeHasClosedIsAnError(t *testing.T) {
	overBoth(t, func(t *testing.T) {
		s := newScheduler(t, Workers(1))
		n := newSelector(t, s)
		c, _ := connected(t, n)
		require.NoError(t, c.Conn().Close())
		read := started(t, s, func(co *Coroutine) error { _, err := c.Read(co, make([]byte, 1)); return err })
		require.ErrorIs(t, awaited(t, read), net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		_, err := n.Add(c.Conn())
		require.ErrorIs(t, err, net.ErrClosed)
		other, client := connected(t, n) // which may have the same descriptor
		_, err = client.Write([]byte("x"))
		require.NoError(t, err)
		read = started(t, s, func(co *Coroutine) error {
			k, err := other.Read(co, make([]byte, 2))
			if k != 1 {
				err = errors.Join(err, fmt.Errorf("%d bytes", k))
			}
			if k, nothing := other.Read(co, nil); k != 0 || nothing != nil {
				err = errors.Join(err, nothing)
			}
			return err
		})
		require.NoError(t, awaited(t, read))
		_, err = n.Add(other.Conn())
		require.ErrorIs(t, err, poll.ErrRegistered)
	})
}

func TestASelectorRefusesWhatMakesNoSense(t *testing.T) {
	_, err := NewSelector(nil)
	require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	s := newScheduler(t, Workers(1))
	n := newSelector(t, s)
	_, err = n.Add(nil)
	require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	c, _ := connected(t, n)
	_, err = c.Read(nil, make([]byte, 1))
	require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	require.NoError(t, n.Close())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	_, err = n.Add(client.(*net.TCPConn))
	require.ErrorIs(t, err, net.ErrClosed)
}
