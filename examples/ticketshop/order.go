package main

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/activeobject"
)

// Order is what a buyer has been given a seat for. It knows the hall as client proxies.
type Order struct {
	ticket        Ticket
	status        Status
	sell, release activeobject.Proxy[Ticket, none]
	journal       Journal
}

// Status is how an order stands.
type Status string

const (
	Held     Status = "on hold"
	Sold     Status = "sold"
	Canceled Status = "canceled"
	Expired  Status = "expired"
	Lost     Status = "lost" // the hall was restarted, and has forgotten what was on hold
)

var (
	orders = activeobject.NewType[Order]("order")
	pay    = activeobject.ProcedureCtx(orders, "pay", (*Order).Pay)
	end    = activeobject.ProcedureCtx(orders, "end", (*Order).End)
	status = activeobject.Function(orders, "status", activeobject.Result(func(o *Order) Status { return o.status }))
)

// NewOrder is the factory's. An order that has failed asks the journal how far it had come.
func NewOrder(t Ticket, hall *activeobject.Object[Hall], journal Journal) (*Order, error) {
	o := &Order{ticket: t, status: Held, sell: activeobject.At(sell, hall), release: activeobject.At(release, hall), journal: journal}
	if journal.Has(t.Order) {
		o.status = Sold
	}
	return o, nil
}

// Pay sells the ticket, and returns how the order stands. An error means that nothing
// has been sold, and that it may be tried again.
func (o *Order) Pay(ctx context.Context, _ none) (Status, error) {
	if o.status != Held {
		return o.status, nil
	}
	_, err := o.sell.Call(urgent(ctx), o.ticket)
	switch {
	case err == nil, o.journal.Has(o.ticket.Order): // the hall failed, but after it had sold
		o.status = Sold
	case errors.Is(err, errLost), errors.Is(err, activeobject.ErrStopped):
		o.status = Lost
	default:
		return o.status, err
	}
	return o.status, nil
}

// End gives the seat back, unless the order has ended before, and returns how the order
// stands.
func (o *Order) End(ctx context.Context, as Status) (Status, error) {
	if o.status != Held {
		return o.status, nil
	}
	_, err := o.release.Call(urgent(ctx), o.ticket)
	if err != nil && !errors.Is(err, activeobject.ErrStopped) { // a hall that has ended has nothing on hold
		return o.status, err
	}
	o.status = as
	return as, nil
}

// urgent is for those who bring a seat that others wait for.
func urgent(ctx context.Context) context.Context { return activeobject.WithPriority(ctx, 1) }
