// Command pool lends a bounded number of connections.
//
// An idle connection is lent before a new one is made. A request whose context ends while it waits never runs, so no connection is lost
// with it. Close fails the requests that wait, and returns when every connection is back.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// ErrClosed fails a request that arrives after Close, or waits when Close is called.
var ErrClosed = errors.New("pool: closed")

// Conn is a connection.
type Conn struct{ ID int }

// state is what the object owns: plain Go, without a lock.
type state struct {
	limit  int // of connections
	made   int // lent ones and idle ones
	idle   []*Conn
	closed bool
}

func (s *state) canLend() bool { return s.closed || len(s.idle) > 0 || s.made < s.limit }
func (s *state) allBack() bool { return len(s.idle) == s.made }

func (s *state) lend() (*Conn, error) {
	if s.closed {
		return nil, ErrClosed
	}
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, nil
	}
	s.made++
	return &Conn{ID: s.made}, nil
}

func (s *state) takeBack(c *Conn) { s.idle = append(s.idle, c) }

// close opens the guard of lend, whose requests fail then. Its own request goes on at drain: Close is one call with two bodies.
func (s *state) close() (activeobject.None, error) {
	s.closed = true
	return drain.Requeue(nil)
}

func (s *state) drain() { s.made, s.idle = 0, nil }

var (
	pools = activeobject.NewType[state]("pool")
	lend  = activeobject.Entry(pools, "lend", activeobject.ResultError((*state).lend)).
		When("a connection is idle or may be made", (*state).canLend)
	takeBack = activeobject.Procedure(pools, "take back", activeobject.Arg((*state).takeBack))
	closing  = activeobject.Procedure(pools, "close", activeobject.ResultError((*state).close))
	drain    = activeobject.Entry(pools, "drain", activeobject.Plain((*state).drain)).
			When("every connection is back", (*state).allBack)
)

// Pool is the client side: a handle, which may be copied.
type Pool struct{ object *activeobject.Object[state] }

// New makes a pool of at most limit connections.
func New(system *actor.System, limit int, options ...activeobject.Option) (Pool, error) {
	object, err := activeobject.New(system, pools, &state{limit: limit}, options...)
	return Pool{object}, err
}

// Get waits for a connection. After an error there is none to put back.
func (p Pool) Get(ctx context.Context) (*Conn, error) { return lend.Call(ctx, p.object, nil) }

// Put gives a connection back. It takes no context: with one that has ended the request would not run, and the connection be lost.
func (p Pool) Put(c *Conn) error { return takeBack.Do(context.Background(), p.object, c) }

// Close closes the pool and waits until every connection is back. If ctx ends before, the pool is closed all the same, and Close can
// be called again.
func (p Pool) Close(ctx context.Context) error { return closing.Do(ctx, p.object, nil) }

func main() {
	ctx, system := context.Background(), actor.NewSystem()
	defer func() { _ = system.Close(ctx) }()
	pool, err := New(system, 2)
	if err != nil {
		panic(err)
	}
	a, _ := pool.Get(ctx)
	b, _ := pool.Get(ctx)
	third := lend.Send(ctx, pool.object, nil)
	fmt.Print(pool.object.Explain())

	_ = pool.Put(a)
	c, err := third.Await(ctx)
	fmt.Println("the third request got connection", c.ID, err)

	_, _ = pool.Put(b), pool.Put(c)
	fmt.Println("closed:", pool.Close(ctx))
	_, err = pool.Get(ctx)
	fmt.Println("after that:", err)
}
