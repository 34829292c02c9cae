// Command sums is a server that adds up the numbers that each client sends, one a line.
//
//	$ go run ./examples/sums -listen localhost:7000 &
//	$ printf '1\n2\nx\n' | nc -N localhost 7000
//	you 1, all 1
//	you 3, all 3
//	not a number
//
// Each client has a coroutine, which keeps its sum in a local variable, and all coroutines share a few workers. One thread does all
// reads and another all writes. The sum over all clients is a shared object, for which a coroutine waits without its worker.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/sluice-go/sluice/actor"
)

func main() {
	listen := flag.String("listen", "localhost:7000", "the `address` to listen at")
	workers := flag.Int("workers", 2, "how many workers run the coroutines")
	flag.Parse()
	if err := run(*listen, *workers); err != nil {
		log.Fatal(err)
	}
}

func run(listen string, workers int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	system := actor.NewSystem()
	s, err := Serve(system, l, workers)
	if err != nil {
		return err
	}
	fmt.Println("listening at", l.Addr())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		return err
	}
	return system.Close(ctx)
}
