package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

const (
	maxLine = 4096    // bytes of a line, its end not counted
	maxOut  = 1 << 16 // bytes of answers that a client has not read, from which on it is not read from
)

// session is the concrete event handler of a connection. The pool has one event of a connection
// processed at a time, so a session needs no lock.
//
// It reads what is there, answers the lines that are complete, and writes what there is room for. If
// a client does not read its answers, the session waits for it to, and reads no more requests
// meanwhile. If a client sends only the beginning of a line, the session keeps that. In both cases no
// thread waits; and the timer closes the connection if it goes on for too long.
type session struct {
	server *server
	conn   *leaderfollowers.Conn
	timer  *leaderfollowers.Timer
	buffer [maxLine]byte
	in     []byte // what has come of lines
	out    []byte // answers that have not been written
	last   bool   // no more requests: close when the answers are written
	unread bool   // there is more to come that will not be answered
	closed bool   // the client has been told that there will be no more answers
}

// HandleEvent implements leaderfollowers.EventHandler.
func (s *session) HandleEvent(ctx context.Context, _ leaderfollowers.Event) error {
	if s.closed {
		return s.linger()
	}
	before := len(s.out)
	err := s.flush()
	if len(s.out) < before {
		s.progress()
	}
	if err == nil && !s.last && len(s.out) < maxOut {
		err = s.read(ctx)
	}
	if err == nil {
		err = s.flush()
	}
	switch {
	case err != nil: // the client has gone: there is no one to tell
		return s.conn.Close()
	case len(s.out) == 0 && s.last && s.unread:
		return s.linger()
	case len(s.out) == 0 && s.last:
		return s.conn.Close()
	case len(s.out) == 0:
		return s.conn.Await(leaderfollowers.Read)
	case s.last || len(s.out) >= maxOut:
		return s.conn.Await(leaderfollowers.Write)
	}
	return s.conn.Await(leaderfollowers.Read | leaderfollowers.Write)
}

// read reads once, so that one connection does not keep a thread, and answers the lines that are
// complete. If there is more, that is the next event.
func (s *session) read(ctx context.Context) error {
	n, err := s.conn.Read(s.buffer[:])
	s.in = append(s.in, s.buffer[:n]...)
	for {
		line, rest, complete := bytes.Cut(s.in, []byte("\n"))
		if !complete {
			break
		}
		if len(line) > maxLine {
			s.refuse("line too long")
			return nil
		}
		s.answer(s.command(ctx, strings.TrimSuffix(string(line), "\r")))
		s.in = rest
		s.progress()
	}
	s.in = append([]byte(nil), s.in...) // the answered part can be collected
	switch {
	case errors.Is(err, leaderfollowers.ErrWouldBlock):
		return nil
	case errors.Is(err, io.EOF): // half closed: the client may still read its answers
		if len(s.in) > 0 {
			s.refuse("the last line has no end")
		}
		s.last, s.unread = true, false
		return nil
	case err != nil:
		return err
	case len(s.in) > maxLine:
		s.refuse("line too long")
	}
	return nil
}

// refuse answers with an error, after which the connection is closed.
func (s *session) refuse(problem string) {
	s.answer("ERR " + problem)
	s.in, s.last, s.unread = nil, true, true
}

// linger drops what the client still sends, until it stops, or the timer ends it. A connection that is
// closed with something unread is reset, and the client might lose the answer.
func (s *session) linger() error {
	if !s.closed {
		s.closed = true
		if err := s.conn.CloseWrite(); err != nil {
			return s.conn.Close() // the client has gone
		}
	}
	if _, err := s.conn.Read(s.buffer[:]); err != nil && !errors.Is(err, leaderfollowers.ErrWouldBlock) {
		return s.conn.Close()
	}
	return s.conn.Await(leaderfollowers.Read)
}

func (s *session) answer(line string) { s.out = append(append(s.out, line...), '\n') }

// flush writes what there is room for.
func (s *session) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	n, err := s.conn.Write(s.out)
	if s.out = s.out[n:]; len(s.out) == 0 {
		s.out = nil
	}
	if errors.Is(err, leaderfollowers.ErrWouldBlock) {
		return nil
	}
	return err
}

// progress gives the client time for the next line, or for the rest of the answers.
func (s *session) progress() { _ = s.timer.Reset(s.server.patience) } // it may have been closed

// command does what a line says, and returns the answer.
func (s *session) command(ctx context.Context, line string) string {
	name, rest, _ := strings.Cut(line, " ")
	store := s.server.store
	var value string
	var err error
	switch strings.ToUpper(name) {
	case "GET":
		value, err = store.Get(ctx, rest)
	case "SET":
		key, v, ok := strings.Cut(rest, " ")
		if !ok {
			return "ERR SET takes a key and a value"
		}
		err = store.Set(ctx, key, v)
	case "DEL":
		err = store.Delete(ctx, rest)
	case "WAIT":
		value, err = s.wait(ctx, rest)
	case "LEN":
		var n int64
		n, err = store.Len(ctx)
		value = strconv.FormatInt(n, 10)
	default:
		return "ERR there is no such command: GET key, SET key value, DEL key, WAIT milliseconds key, LEN"
	}
	switch {
	case err != nil:
		return "ERR " + err.Error()
	case value == "":
		return "OK"
	}
	return "OK " + value
}

// wait waits for a key. The thread waits with it; the pool has another one in its place.
func (s *session) wait(ctx context.Context, rest string) (string, error) {
	limit, key, ok := strings.Cut(rest, " ")
	ms, err := strconv.Atoi(limit)
	if !ok || err != nil || ms < 1 || ms > 60_000 {
		return "", errors.New("WAIT takes up to 60000 milliseconds and a key")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	value, err := s.server.store.Wait(ctx, key)
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("%w after %d ms", errMissing, ms)
	}
	return value, err
}

// late is the handler of the timer: the client has been too slow.
func (s *session) late(context.Context, leaderfollowers.Event) error { return s.conn.Close() }
