package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// counter is a shop without objects.
type counter struct {
	hold, release *objecttest.Fake[Ticket, none]
	pay           *objecttest.Fake[none, Status]
	opened        []Ticket
}

func newCounter(t *testing.T) *counter {
	return &counter{hold: objecttest.NewFake[Ticket, none](t, "hold"), release: objecttest.NewFake[Ticket, none](t, "release"),
		pay: objecttest.NewFake[none, Status](t, "pay")}
}

func (c *counter) Event(string) (EventAt, error) {
	return EventAt{Hold: c.hold, Release: c.release}, nil
}
func (c *counter) Order(string) (OrderAt, error) { return OrderAt{Pay: c.pay}, nil }
func (c *counter) Open(t Ticket) error           { c.opened = append(c.opened, t); return nil }

// post makes a request to a handler without a server.
func (c *counter) post(ctx context.Context, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(`{"buyer": "ann", "seat": "A1"}`))
	Handler(c, nil, quiet).ServeHTTP(w, r)
	return w
}

func TestTheHandlerPassesOnWhatTheHallSays(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		again  string // Retry-After
	}{
		{nil, http.StatusOK, ""},
		{errSold, http.StatusConflict, ""},
		{errNoSeat, http.StatusNotFound, ""},
		{&activeobject.FullError{}, http.StatusServiceUnavailable, "1"},
		{&activeobject.StoppedError{}, http.StatusServiceUnavailable, "1"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "1"},
		{&activeobject.PanicError{}, http.StatusInternalServerError, ""},
	} {
		c := newCounter(t)
		c.hold.Fail(test.err)
		w := c.post(t.Context(), "/events/gala/orders?wait=5s")
		if w.Code != test.status || w.Header().Get("Retry-After") != test.again {
			t.Errorf("%v: %d, Retry-After %q", test.err, w.Code, w.Header().Get("Retry-After"))
		}
		if opened := len(c.opened) > 0; opened != (test.err == nil) {
			t.Errorf("%v: an order is opened: %v", test.err, opened)
		}
		if _, ok := c.hold.Made()[0].Context.Deadline(); !ok {
			t.Error("the hall is not told how long the buyer waits")
		}
	}
}

func TestASeatIsGivenBackIfTheBuyerHasGoneWhenHeGetsIt(t *testing.T) {
	c := newCounter(t)
	ctx, hangUp := context.WithCancel(t.Context())
	c.hold.Answer(func(context.Context, Ticket) (none, error) { hangUp(); return nil, nil })
	c.release.Return(nil)
	c.post(ctx, "/events/gala/orders")
	if len(c.opened) > 0 || c.release.Made()[0].Argument != c.hold.Made()[0].Argument {
		t.Errorf("opened %v, released %v", c.opened, c.release.Arguments())
	}
}

func TestPayingAnswersHowTheOrderStands(t *testing.T) {
	c := newCounter(t)
	c.pay.Return(Lost)
	if w := c.post(t.Context(), "/orders/1/pay"); w.Body.String() != `{"order":"1","status":"lost"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
