package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/coroutine"
)

// total is the sum over all clients: a shared object.
type total struct{ sum int64 }

func (t *total) Add(n int64) int64 { t.sum += n; return t.sum }

var (
	totals = activeobject.NewType[total]("total")
	add    = activeobject.Procedure(totals, "add", activeobject.ArgResult((*total).Add))
)

// maxLine is how long a line may be. A longer one ends its connection.
const maxLine = 1000

// errTooLong ends the connection of a client whose line is too long.
var errTooLong = errors.New("sums: the line is too long")

// Server keeps a sum for each client: that is a local variable of the client's coroutine.
type Server struct {
	listener  net.Listener
	scheduler *coroutine.Scheduler
	selector  *coroutine.Selector
	total     *activeobject.Object[total]
	accepts   chan struct{} // closed when no more clients are accepted
}

// Serve starts a server with some workers for all its clients.
func Serve(system *actor.System, l net.Listener, workers int) (*Server, error) {
	s := &Server{listener: l, accepts: make(chan struct{})}
	var err error
	if s.total, err = activeobject.New(system, totals, &total{}); err != nil {
		return nil, err
	}
	if s.scheduler, err = coroutine.NewScheduler(coroutine.Workers(workers)); err != nil {
		return nil, err
	}
	if s.selector, err = coroutine.NewSelector(s.scheduler); err != nil {
		return nil, err
	}
	go s.accept()
	return s, nil
}

// accept makes a coroutine for each client.
func (s *Server) accept() {
	defer close(s.accepts)
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files: a client less
			continue
		}
		c, err := s.selector.Add(conn.(*net.TCPConn))
		if err != nil {
			conn.Close()
			continue
		}
		_, err = s.scheduler.Go(context.Background(), func(co *coroutine.Coroutine) error {
			defer c.Close()
			return s.serve(co, c)
		})
		if err != nil {
			c.Close()
		}
	}
}

// serve is a client's conversation, from the first line to the last.
func (s *Server) serve(co *coroutine.Coroutine, c *coroutine.Connection) error {
	var sum int64 // of this client
	for lines := (reader{c: c}); ; {
		line, err := lines.next(co)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := "not a number\n"
		if n, err := strconv.ParseInt(line, 10, 32); err == nil {
			// The coroutine waits for the object without its worker.
			all, err := coroutine.Await(co, add.Send(co.Context(), s.total, n))
			if err != nil {
				return err
			}
			sum += n
			answer = fmt.Sprintf("you %d, all %d\n", sum, all)
		}
		if _, err := c.Write(co, []byte(answer)); err != nil {
			return err
		}
	}
}

// Workers changes how many workers there are.
func (s *Server) Workers(n int) error { return s.scheduler.Resize(n) }

// Close ends the server: it accepts no more clients, and closes the connections of those that it has.
func (s *Server) Close(ctx context.Context) error {
	err := s.listener.Close()
	<-s.accepts
	return errors.Join(err, s.selector.Close(), s.scheduler.Close(ctx))
}

// reader takes a connection apart into lines.
type reader struct {
	c    *coroutine.Connection
	rest []byte // what has come after the last line
}

// next returns the next line, without its end. What comes after the last newline is a line, too.
func (r *reader) next(co *coroutine.Coroutine) (string, error) {
	for {
		if i := bytes.IndexByte(r.rest, '\n'); i >= 0 {
			line := string(bytes.TrimSuffix(r.rest[:i], []byte("\r")))
			r.rest = r.rest[i+1:]
			return line, nil
		}
		if len(r.rest) > maxLine {
			return "", errTooLong
		}
		var part [256]byte
		n, err := r.c.Read(co, part[:])
		r.rest = append(r.rest, part[:n]...)
		if err == io.EOF && len(r.rest) > 0 {
			line := string(r.rest)
			r.rest = nil
			return line, nil
		}
		if err != nil {
			return "", err
		}
	}
}
