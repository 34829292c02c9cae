package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// Counter is the shop as its handlers see it: client proxies, and not the objects
// behind them. So a test of the handlers needs neither.
type Counter interface {
	Event(name string) (EventAt, error)
	Open(Ticket) error // makes the order whose seat is on hold
	Order(id string) (OrderAt, error)
}

// EventAt is what can be asked of an event.
type EventAt struct {
	Hold, Release activeobject.Proxy[Ticket, none]
	Plan          activeobject.Proxy[none, map[string][]string]
}

// OrderAt is what can be asked of an order.
type OrderAt struct {
	Pay, Status activeobject.Proxy[none, Status]
	End         activeobject.Proxy[Status, Status]
}

// Answer is the body of an answer about an order.
type Answer struct {
	Order  string `json:"order,omitempty"`
	Status Status `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// maxWait is how long a buyer waits for a seat, unless he wants to wait less.
const maxWait = 30 * time.Second

var (
	errRequest = errors.New("bad request")
	errNoEvent = errors.New("there is no such event")
	errNoOrder = errors.New("there is no such order, or its time is over")
)

// Handler returns the handler of the service. Explain says who waits, and for what.
func Handler(c Counter, explain func() []mailbox.Snapshot, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := do(r)
			status := code(err)
			if err != nil {
				body = Answer{Error: err.Error()}
			}
			if status >= http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "1")
			}
			log.Info(pattern, "url", r.URL, "status", status, "error", err)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(body)
		})
	}
	ask := func(pattern string, call func(context.Context, OrderAt) (Status, error)) {
		handle(pattern, func(r *http.Request) (any, error) {
			o, err := c.Order(r.PathValue("order"))
			if err != nil {
				return nil, err
			}
			is, err := call(r.Context(), o)
			return Answer{Order: r.PathValue("order"), Status: is}, err
		})
	}
	handle("POST /events/{event}/orders", func(r *http.Request) (any, error) { return order(c, r) })
	ask("GET /orders/{order}", func(ctx context.Context, o OrderAt) (Status, error) { return o.Status.Call(ctx, nil) })
	ask("POST /orders/{order}/pay", func(ctx context.Context, o OrderAt) (Status, error) { return o.Pay.Call(ctx, nil) })
	ask("DELETE /orders/{order}", func(ctx context.Context, o OrderAt) (Status, error) { return o.End.Call(ctx, Canceled) })
	handle("GET /events/{event}", func(r *http.Request) (any, error) {
		event, err := c.Event(r.PathValue("event"))
		if err != nil {
			return nil, err
		}
		return event.Plan.Call(r.Context(), nil)
	})
	mux.HandleFunc("GET /debug/waits", func(w http.ResponseWriter, r *http.Request) {
		for _, object := range explain() {
			fmt.Fprint(w, object)
		}
	})
	return mux
}

// order waits until the seat is not on hold, and puts it on hold for the buyer.
func order(c Counter, r *http.Request) (a Answer, err error) {
	// All of the body is read: the server does not notice before that if a buyer hangs up.
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<10))
	t, wait := Ticket{}, maxWait
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if s := r.FormValue("wait"); s != "" && err == nil {
		wait, err = time.ParseDuration(s)
	}
	if err != nil {
		return a, fmt.Errorf("%w: %w", errRequest, err)
	}
	t.Order, t.Event = rand.Text(), r.PathValue("event")
	event, err := c.Event(t.Event)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(activeobject.WithClient(r.Context(), t.Buyer), min(wait, maxWait))
	defer cancel()
	if _, err := event.Hold.Call(ctx, t); err != nil {
		return a, err
	}
	if err = r.Context().Err(); err == nil {
		err = c.Open(t)
	}
	if err != nil { // so nobody will pay for it
		event.Release.Tell(context.WithoutCancel(ctx), t)
	}
	return Answer{Order: t.Order, Status: Held}, err
}

// code returns the status of an answer. Who gets 503 or more may try again later.
func code(err error) int {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return http.StatusOK
	case is(errRequest):
		return http.StatusBadRequest
	case is(errNoEvent), is(errNoOrder), is(errNoSeat):
		return http.StatusNotFound
	case is(errSold):
		return http.StatusConflict
	case is(context.Canceled): // for the log: the buyer has gone
		return 499
	case is(activeobject.ErrFull), is(activeobject.ErrStopped), is(actor.ErrClosed):
		return http.StatusServiceUnavailable
	case is(context.DeadlineExceeded): // he said how long he would wait
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}
