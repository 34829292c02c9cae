// Command keyvalue is a key-value server, served by Leader/Followers: a few threads take turns at
// waiting for thousands of connections. On Linux they wait by epoll.
//
//	clients ──► connections, listener, timers ──► leader ──promotes a follower──► session ──► Store
//	             (handles)                         │                                (handler)   (a Synchronizer)
//	                                               └── one of the pool's threads
//
// The state is a Synchronizer: requests for different keys run at once, on the threads of the sessions.
// A session never waits for its client. Where it waits for the store, the pool has another thread in
// the place of its own.
//
// The protocol is of lines: GET key, SET key value, DEL key, WAIT milliseconds key, LEN; the answer is
// OK with a value, or ERR with a problem.
//
//	go run ./examples/keyvalue -listen localhost:4004
//	printf 'SET a 1\nGET a\n' | nc -q1 localhost 4004
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// server is the server: a pool whose handles are a listener, and two for each connection.
type server struct {
	pool     *leaderfollowers.Pool
	listener *leaderfollowers.Listener
	store    Store
	patience time.Duration // for a client to send a line, or to read answers
	max      int64         // connections at once
	open     atomic.Int64
	refused  atomic.Int64
}

// serve starts a server of so many threads on the listener, which it owns from then on.
func serve(system *actor.System, l net.Listener, threads, max int, patience time.Duration) (*server, error) {
	store, err := NewStore(system)
	if err != nil {
		return nil, err
	}
	pool, err := leaderfollowers.New(system, threads)
	if err != nil {
		return nil, err
	}
	s := &server{pool: pool, store: store, patience: patience, max: int64(max)}
	if s.listener, err = pool.Handles().Listen(l); err != nil {
		return nil, errors.Join(err, pool.Close(context.Background()))
	}
	return s, s.listener.Activate(leaderfollowers.HandlerFunc(s.accept), leaderfollowers.Read)
}

// accept is the handler of the listener. It refuses what there is no room for, so that its failures
// do not end the listener.
func (s *server) accept(context.Context, leaderfollowers.Event) error {
	c, err := s.listener.Accept()
	switch _, exhausted := errors.AsType[*leaderfollowers.ExhaustedError](err); {
	case exhausted && c != nil, err == nil && s.open.Load() >= s.max:
		s.refused.Add(1)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // there is room for a line in a new connection
		_, _ = c.Write([]byte("ERR busy\n"))
		_ = c.Close() // what it has sent is not read: it may be reset before it has read the answer
		return nil
	case exhausted, errors.Is(err, leaderfollowers.ErrWouldBlock):
		return nil
	case err != nil:
		return nil // the client has gone before it was accepted
	}
	if err := s.begin(c); err != nil { // no memory, or the server is about to end
		_ = c.Close()
	}
	return nil
}

// begin makes a connection a handle with a session and a timer.
func (s *server) begin(c net.Conn) error {
	timer, err := s.pool.Handles().Timer()
	if err != nil {
		return err
	}
	conn, err := s.pool.Handles().Conn(counted{c.(*net.TCPConn), s, timer})
	if err != nil {
		return errors.Join(err, timer.Close())
	}
	s.open.Add(1)
	n := &session{server: s, conn: conn, timer: timer}
	n.progress()
	if err = timer.Activate(leaderfollowers.HandlerFunc(n.late), 0); err == nil {
		err = conn.Activate(n, leaderfollowers.Read)
	}
	if err != nil {
		_ = conn.Close()
	}
	return nil
}

// counted is a connection that counts while it is open, and has a timer.
type counted struct {
	*net.TCPConn
	server *server
	timer  *leaderfollowers.Timer
}

// Close implements net.Conn. The handle calls it once.
func (c counted) Close() error {
	c.server.open.Add(-1)
	return errors.Join(c.timer.Close(), c.TCPConn.Close())
}

// close ends the server: sessions finish what they are about.
func (s *server) close(ctx context.Context) error { return s.pool.Close(ctx) }

func main() {
	listen := flag.String("listen", "localhost:4004", "address to listen at")
	threads := flag.Int("threads", runtime.GOMAXPROCS(0), "threads of the pool")
	most := flag.Int("connections", 10_000, "connections at once")
	patience := flag.Duration("patience", time.Minute, "how long a client may take for a line")
	flag.Parse()
	if err := run(*listen, *threads, *most, *patience); err != nil {
		fmt.Fprintln(os.Stderr, "keyvalue:", err)
		os.Exit(1)
	}
}

func run(listen string, threads, most int, patience time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	system := actor.NewSystem()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s, err := serve(system, l, threads, most, patience)
	if err != nil {
		return err
	}
	fmt.Println("listening at", s.listener.Addr())
	<-ctx.Done()
	limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(s.close(limit), system.Close(limit))
}
