// Exchange is a service that trades shares. It shows protoactor actors and Sluice objects side by
// side, called by handle and by PID, with HTTP in front.
//
//	HTTP ─► brokers ──────PID──────► accounts
//	http.go actors, broker.go        objects, account.go
//	             └──────handle─────► markets
//	                                 objects, market.go
//
// A bid waits at its market until there is an offer within its limit, or its time is over: then it
// never trades, and the buyer has the money back. A market that fails is restarted, and its bids
// wait on. On SIGINT or SIGTERM every request is answered before the program ends.
//
//	go run ./examples/exchange
//
//	curl -X PUT -d '{"money": 100}' localhost:8080/customers/ann
//	curl -X PUT -d '{"money": 100}' localhost:8080/customers/bob
//	curl -d '{"buyer": "ann", "limit": 12}' 'localhost:8080/markets/acme/bids?wait=20s' &
//	curl localhost:8080/debug/waits                                              # what the bid waits for
//	curl -d '{"seller": "bob", "price": 10}' localhost:8080/markets/acme/offers   # and it trades
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
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	grace := flag.Duration("grace", 10*time.Second, "how long the end may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		err = serve(ctx, listener, *grace, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "exchange:", err)
		os.Exit(1)
	}
}

// serve is the service, until ctx ends.
func serve(ctx context.Context, listener net.Listener, grace time.Duration, log *slog.Logger) error {
	exchange, err := NewExchange(log, 10*time.Second, "acme", "wayne")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: Handler(exchange), ReadHeaderTimeout: 10 * time.Second}
	served, closed := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("the exchange is open", "address", listener.Addr())
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	// The server waits for its requests; of these some wait for offers, until the exchange
	// answers them. So both end at the same time.
	go func() { closed <- server.Shutdown(end) }()
	return errors.Join(failed, exchange.Close(end), <-closed)
}
