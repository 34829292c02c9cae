//go:build unix

package leaderfollowers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// Servers that send back what comes, 64 bytes at a time, to clients in another process. Times are wall
// time per request, of all connections together; CPU time and switches are the server's alone.
func BenchmarkEcho(b *testing.B) {
	for _, count := range []int{1, 64, 2000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var sides []side
			for _, s := range []struct {
				name  string
				serve func(b *testing.B, l net.Listener)
			}{{"leaders", serveByLeaders}, {"goroutines", serveByGoroutines}, {"half-async", serveHalfAsync}} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(b, err)
				b.Cleanup(func() { _ = l.Close() })
				s.serve(b, l)
				r := startClients(b, l.Addr().String(), count)
				sides = append(sides, side{s.name, func(n int) time.Duration {
					_, p99 := r.send(b, n)
					return p99
				}})
			}
			compare(b, sides)
		})
	}
}

// serveByLeaders answers by Leader/Followers.
func serveByLeaders(b *testing.B, l net.Listener) {
	p := newPool(b, runtime.GOMAXPROCS(0))
	listener, err := p.Handles().Listen(l)
	require.NoError(b, err)
	require.NoError(b, listener.Activate(leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
		c, err := listener.Accept()
		if errors.Is(err, leaderfollowers.ErrWouldBlock) {
			return nil
		} else if err != nil {
			return err
		}
		conn, err := p.Handles().Conn(c)
		if err != nil {
			return err
		}
		return conn.Activate(answer(conn), leaderfollowers.Read)
	}), leaderfollowers.Read))
}

// answer sends back one request for each event.
func answer(c *leaderfollowers.Conn) leaderfollowers.EventHandler {
	buffer := make([]byte, 4096)
	return leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
		n, err := c.Read(buffer)
		switch {
		case errors.Is(err, leaderfollowers.ErrWouldBlock):
			return nil
		case err != nil:
			return c.Close()
		}
		_, err = c.Write(buffer[:n])
		return err
	})
}

// serveByGoroutines answers by a goroutine for each connection.
func serveByGoroutines(b *testing.B, l net.Listener) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				buffer := make([]byte, 4096)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					if _, err := c.Write(buffer[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	b.Cleanup(func() { _ = l.Close(); all.Wait() })
}

// serveHalfAsync answers by half-sync/half-async: the asynchronous half waits for what is ready, reads
// it, and hands it over, through a channel, to the threads of the synchronous half, which answer.
func serveHalfAsync(b *testing.B, l net.Listener) {
	type job struct {
		c net.Conn
		p [4096]byte
		n int
	}
	jobs := make(chan *job, 4096)
	kept := sync.Pool{New: func() any { return new(job) }}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				_, _ = j.c.Write(j.p[:j.n])
				kept.Put(j)
			}
		})
	}
	// The asynchronous half is the same event loop, of one thread.
	async := newPool(b, 1)
	listener, err := async.Handles().Listen(l)
	require.NoError(b, err)
	require.NoError(b, listener.Activate(leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
		c, err := listener.Accept()
		if errors.Is(err, leaderfollowers.ErrWouldBlock) {
			return nil
		} else if err != nil {
			return err
		}
		conn, err := async.Handles().Conn(c)
		if err != nil {
			return err
		}
		return conn.Activate(leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
			j := kept.Get().(*job)
			n, err := conn.Read(j.p[:])
			switch {
			case errors.Is(err, leaderfollowers.ErrWouldBlock):
				return nil
			case err != nil:
				if !errors.Is(err, io.EOF) {
					b.Error(err)
				}
				return conn.Close()
			}
			j.c, j.n = c, n
			jobs <- j
			return nil
		}), leaderfollowers.Read)
	}), leaderfollowers.Read))
	b.Cleanup(func() {
		closePool(b, async)
		close(jobs)
		workers.Wait()
	})
}
