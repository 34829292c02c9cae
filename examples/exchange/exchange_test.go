package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

var quiet = slog.New(slog.DiscardHandler)

// open returns an exchange with a market and customers who have 100 each.
func open(t *testing.T, customers ...string) *Exchange {
	e, err := NewExchange(quiet, time.Minute, "acme")
	require.NoError(t, err)
	for _, name := range customers {
		require.NoError(t, e.Join(name, 100))
	}
	return e
}

func (e *Exchange) money(t *testing.T, name string) int {
	n, err := e.Balance(t.Context(), name)
	require.NoError(t, err)
	return n
}

// bid bids on a goroutine of its own, and returns when the bid waits.
func bid(t *testing.T, e *Exchange, b Bid, until time.Time) <-chan error {
	market, err := e.Market(b.Market)
	require.NoError(t, err)
	before, done := buy.Waiting(market), make(chan error, 1)
	go func() {
		_, err := e.Bid(t.Context(), b, until)
		done <- err
	}()
	objecttest.Waiting(t, market, buy, before+1)
	return done
}

func TestABidWaitsForAnOfferWithinItsLimitAndPaysThePrice(t *testing.T) {
	e := open(t, "ann", "bob")
	done := bid(t, e, Bid{"acme", "ann", 30}, time.Now().Add(time.Hour))
	require.Equal(t, 70, e.money(t, "ann"), "the limit is withdrawn while the bid waits")
	require.Contains(t, fmt.Sprint(e.Waits()), "an offer is within the limit")
	require.NoError(t, e.Offer(t.Context(), "acme", Offer{"bob", 31}))
	require.NoError(t, e.Offer(t.Context(), "acme", Offer{"bob", 20}))
	require.NoError(t, <-done)
	require.NoError(t, e.Close(t.Context()))
	q, err := e.Quote(t.Context(), "acme")
	require.ErrorIs(t, err, activeobject.ErrStopped, "%v", q)
}

func TestABidWhoseTimeIsOverNeverTradesAndHasItsMoneyBack(t *testing.T) {
	e := open(t, "ann", "bob")
	_, err := e.Bid(t.Context(), Bid{"acme", "ann", 30}, time.Now().Add(time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, e.Offer(t.Context(), "acme", Offer{"bob", 1}))
	q, err := e.Quote(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, Quote{Offers: 1, Best: 1}, q)
	ann, err := e.customer("ann")
	require.NoError(t, err)
	money, err := balance.To(e.system, ann.account.PID()).Call(t.Context(), nil) // behind the refund, which is a message
	require.NoError(t, err)
	require.Equal(t, 100, money)
	require.NoError(t, e.Close(t.Context()))
}

func TestTheHighestLimitIsServedFirst(t *testing.T) {
	e := open(t, "ann", "bob", "eve")
	until := time.Now().Add(time.Hour)
	low, high := bid(t, e, Bid{"acme", "ann", 20}, until), bid(t, e, Bid{"acme", "eve", 40}, until)
	require.NoError(t, e.Offer(t.Context(), "acme", Offer{"bob", 10}))
	require.NoError(t, <-high)
	require.Empty(t, low)
	require.NoError(t, e.Close(t.Context()))
	require.ErrorIs(t, <-low, activeobject.ErrStopped)
}

func TestAMarketThatFailsIsRestartedAndItsBidsWaitOn(t *testing.T) {
	e := open(t, "ann", "bob")
	done := bid(t, e, Bid{"acme", "ann", 20}, time.Now().Add(time.Hour))
	var panicked *activeobject.PanicError
	require.ErrorAs(t, e.Offer(t.Context(), "acme", Offer{"bob", 0}), &panicked)
	require.NoError(t, e.Offer(t.Context(), "acme", Offer{"bob", 15}))
	require.NoError(t, <-done)
	require.NoError(t, e.Close(t.Context()))
}

// Bids and offers, some of them in vain, and customers that come and go: in the end nothing is made
// or lost, and every bid has been answered.
func TestNoMoneyIsMadeOrLost(t *testing.T) {
	e := open(t, "ann", "bob", "eve", "joe")
	names := []string{"ann", "bob", "eve", "joe"}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			name, price := names[i%4], 1+rand.IntN(30)
			if i%2 == 0 {
				require.NoError(t, e.Offer(t.Context(), "acme", Offer{name, price}))
				return
			}
			_, err := e.Bid(t.Context(), Bid{"acme", name, price}, time.Now().Add(time.Duration(rand.IntN(50))*time.Millisecond))
			require.True(t, err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errPoor), "%v", err)
		})
	}
	all.Wait()
	sum := 0
	for _, name := range names { // payments and refunds are on their way to the accounts, in order
		c, err := e.customer(name)
		require.NoError(t, err)
		require.NoError(t, activeobject.ActorAt[finish, activeobject.None](e.system, c.pid).Do(t.Context(), finish{}))
	}
	for _, name := range names {
		c, _ := e.customer(name)
		n, err := balance.To(e.system, c.account.PID()).Call(t.Context(), nil) // behind the refunds, which came by messages
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, 400, sum)
	require.NoError(t, e.Close(t.Context()))
}

func TestANameIsFreeWhenItsCustomerHasLeft(t *testing.T) {
	e := open(t)
	for range 10 {
		require.NoError(t, e.Join("ann", 1))
		require.Error(t, e.Join("ann", 1))
		require.NoError(t, e.Leave(t.Context(), "ann"))
	}
	require.ErrorIs(t, e.Leave(t.Context(), "ann"), errNoCustomer)
	require.NoError(t, e.Close(t.Context()))
}

func TestTheServiceAnswersEveryRequestBeforeItEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, time.Minute, quiet) }()
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequest(method, "http://"+listener.Addr().String()+path, strings.NewReader(body))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(bytes.TrimSpace(text))
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"PUT", "/customers/ann", `{"money": 50}`, 200},
		{"PUT", "/customers/ann", `{"money": 50}`, 409},
		{"PUT", "/customers/bob", `{"money": 50}`, 200},
		{"PUT", "/customers/eve", `{`, 400},
		{"GET", "/customers/nobody", ``, 404},
		{"GET", "/markets/none", ``, 404},
		{"POST", "/markets/acme/bids?wait=1ms", `{"buyer": "ann", "limit": 10}`, 504},
		{"POST", "/markets/acme/bids", `{"buyer": "ann", "limit": 1000}`, 400},
		{"POST", "/markets/acme/offers", `{"seller": "bob"}`, 500},
		{"POST", "/markets/acme/offers", `{"seller": "bob", "price": 20}`, 200},
		{"POST", "/markets/acme/bids", `{"buyer": "ann", "limit": 30}`, 200},
		{"DELETE", "/customers/bob", ``, 200},
		{"DELETE", "/customers/bob", ``, 404},
	} {
		status, text := ask(c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s: %s", c.method, c.path, text)
	}
	type answer struct {
		status int
		text   string
	}
	waits := make(chan answer, 1)
	go func() {
		status, text := ask("POST", "/markets/wayne/bids", `{"buyer": "ann", "limit": 5}`)
		waits <- answer{status, text}
	}()
	require.Eventually(t, func() bool {
		_, text := ask("GET", "/debug/waits", "")
		var busy []map[string]any
		return json.Unmarshal([]byte(text), &busy) == nil && len(busy) == 1 && busy[0]["object"] == "market wayne"
	}, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	a := <-waits
	require.Equal(t, http.StatusServiceUnavailable, a.status, a.text)
}
