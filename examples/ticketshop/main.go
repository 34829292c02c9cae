// Ticketshop is a service that sells the seats of events. It shows Sluice inside a
// program that has HTTP in front, a protoactor system of its own, and a journal that
// has to be right.
//
//	buyers ─► handlers ─► client proxies ─► orders ─► halls ─► journal
//	          http.go                       order.go  hall.go  journal.go
//	                                        shop.go: the halls' supervisor, who has which name
//
// A seat is first put on hold, and then paid for. Who wants a seat that is on hold waits
// until it is given back or sold, or the time of the hold is over; who hangs up while he
// waits never gets it. A hall that fails is restarted from the journal: what was on hold
// is lost, and what was sold is sold. On SIGINT or SIGTERM all who wait are answered
// before the program ends.
//
//	go run ./examples/ticketshop
//
//	curl localhost:8080/events/gala
//	curl -d '{"buyer": "ann", "seat": "A1"}' localhost:8080/events/gala/orders   # {"order":"…","status":"on hold"}
//	curl -d '{"buyer": "bob", "seat": "A1"}' 'localhost:8080/events/gala/orders?wait=20s'   # waits
//	curl localhost:8080/debug/waits                 # and this says for what
//	curl -X POST localhost:8080/orders/…/pay        # or -X DELETE localhost:8080/orders/…
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/actor"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	file := flag.String("journal", "tickets.journal", "the file of what has been sold")
	hold := flag.Duration("hold", 2*time.Minute, "how long a seat may be on hold")
	grace := flag.Duration("grace", 10*time.Second, "how long the end may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		err = run(ctx, listener, *file, *hold, *grace, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ticketshop:", err)
		os.Exit(1)
	}
}

// run is the service, until ctx ends.
func run(ctx context.Context, listener net.Listener, file string, hold, grace time.Duration, log *slog.Logger) error {
	defer listener.Close()
	journal, err := OpenJournal(file, log)
	if err != nil {
		return err
	}
	defer journal.Close()
	actors := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return log }))
	defer actors.Shutdown()
	system := actor.NewSystem(actor.Actors(actors), actor.Logger(log))
	shop, err := NewShop(system, journal, map[string][]string{"gala": seats("ABCD", 10), "matinee": seats("AB", 5)}, hold)
	if err != nil {
		return errors.Join(err, system.Close(ctx))
	}
	log.Info("the shop is open", "address", listener.Addr())
	return serve(ctx, listener, Handler(shop, system.Explain, log), shop, grace)
}

// seats returns the names of the seats of some rows.
func seats(rows string, each int) (all []string) {
	for _, row := range rows {
		for n := range each {
			all = append(all, fmt.Sprintf("%c%d", row, n+1))
		}
	}
	return all
}

// serve serves until ctx ends, and then closes the shop. Every request that has been
// taken is answered.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, shop *Shop, grace time.Duration) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served, closed := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	// The server waits for its requests; of these some wait for seats, until the shop
	// answers them. So both end at the same time.
	go func() { closed <- server.Shutdown(end) }()
	return errors.Join(failed, shop.Close(end), <-closed)
}
