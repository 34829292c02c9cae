package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// maxWait is how long a bid stays open, unless the request says less.
const maxWait = 30 * time.Second

var errRequest = errors.New("bad request")

// Handler returns the handler of the service.
func Handler(e *Exchange) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := do(r)
			if err != nil {
				w.WriteHeader(status(err))
				answer = map[string]string{"error": err.Error()}
			}
			json.NewEncoder(w).Encode(answer)
		})
	}
	handle("PUT /customers/{name}", func(r *http.Request) (any, error) {
		var c struct{ Money int }
		if err := read(r, &c); err != nil {
			return nil, err
		}
		return c, e.Join(r.PathValue("name"), c.Money)
	})
	handle("GET /customers/{name}", func(r *http.Request) (any, error) {
		money, err := e.Balance(r.Context(), r.PathValue("name"))
		return map[string]int{"money": money}, err
	})
	handle("DELETE /customers/{name}", func(r *http.Request) (any, error) {
		return struct{}{}, e.Leave(r.Context(), r.PathValue("name"))
	})
	handle("GET /markets/{symbol}", func(r *http.Request) (any, error) {
		return e.Quote(r.Context(), r.PathValue("symbol"))
	})
	handle("POST /markets/{symbol}/offers", func(r *http.Request) (any, error) {
		var o Offer
		if err := read(r, &o); err != nil {
			return nil, err
		}
		return o, e.Offer(r.Context(), r.PathValue("symbol"), o)
	})
	handle("POST /markets/{symbol}/bids", func(r *http.Request) (any, error) {
		b := Bid{Market: r.PathValue("symbol")}
		if err := read(r, &b); err != nil {
			return nil, err
		}
		wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
		if err != nil || wait > maxWait {
			wait = maxWait
		}
		return e.Bid(r.Context(), b, time.Now().Add(wait))
	})
	handle("GET /debug/waits", func(*http.Request) (any, error) { return e.Waits(), nil })
	return mux
}

func read(r *http.Request, v any) error {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return errors.Join(errRequest, err)
	}
	return nil
}

// status returns the status of an answer that says err.
func status(err error) int {
	var taken *actor.NameError
	var panicked *activeobject.PanicError
	switch {
	case errors.Is(err, errNoMarket), errors.Is(err, errNoCustomer):
		return http.StatusNotFound
	case errors.Is(err, errPoor), errors.Is(err, errRequest):
		return http.StatusBadRequest
	case errors.As(err, &taken):
		return http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded): // no offer within the time
		return http.StatusGatewayTimeout
	case errors.Is(err, activeobject.ErrStopped), errors.Is(err, actor.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.As(err, &panicked):
		return http.StatusInternalServerError
	}
	return http.StatusBadGateway
}
