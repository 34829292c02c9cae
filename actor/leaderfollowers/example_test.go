package leaderfollowers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// A server that sends back what comes, with a handle for each connection and two threads for all.
func Example() {
	ctx, system := context.Background(), actor.NewSystem(quiet)
	defer func() { _ = system.Close(ctx) }()
	pool, err := leaderfollowers.New(system, 2)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		panic(err)
	}
	listener, err := pool.Handles().Listen(l)
	if err != nil {
		panic(err)
	}
	accept := func(context.Context, leaderfollowers.Event) error {
		c, err := listener.Accept()
		if err != nil {
			return nil // the client has gone, or waits until there are descriptors again
		}
		conn, err := pool.Handles().Conn(c)
		if err != nil {
			return c.Close()
		}
		return conn.Activate(leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
			var p [512]byte
			n, err := conn.Read(p[:])
			if errors.Is(err, leaderfollowers.ErrWouldBlock) {
				return nil
			} else if err != nil {
				return conn.Close()
			}
			_, err = conn.Write(p[:n])
			return err
		}), leaderfollowers.Read)
	}
	if err := listener.Activate(leaderfollowers.HandlerFunc(accept), leaderfollowers.Read); err != nil {
		panic(err)
	}

	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	fmt.Fprint(client, "hello")
	answer := make([]byte, 5)
	_, err = io.ReadFull(client, answer)
	fmt.Println(string(answer), err)
	fmt.Println(pool.Close(ctx))
	// Output:
	// hello <nil>
	// <nil>
}

// An object whose requests run on the threads of a pool.
func ExamplePool_Dispatcher() {
	ctx, system := context.Background(), actor.NewSystem(quiet)
	defer func() { _ = system.Close(ctx) }()
	pool, err := leaderfollowers.New(system, 2)
	if err != nil {
		panic(err)
	}
	object, err := activeobject.New(system, counters, &counter{}, activeobject.Dispatcher(pool.Dispatcher()))
	if err != nil {
		panic(err)
	}
	fmt.Println(add.Call(ctx, object, 3))
	// Output: 3 <nil>
}
