package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/activeobject"
)

// Hall is the seats of an event. It is plain Go; what is shared is declared below.
type Hall struct {
	seats   []string
	taken   map[string]place
	journal Journal
}

// place is who has a seat.
type place struct {
	order string
	sold  bool // or else on hold
}

// What a hall refuses.
var (
	errNoSeat = errors.New("there is no such seat")
	errSold   = errors.New("the seat is sold")
	errLost   = errors.New("the seat is not on hold any more")
)

// none saves those who call a selector.
type none = activeobject.None

// maxWaiting is how many may wait for the seats of one hall.
const maxWaiting = 64

var (
	halls = activeobject.NewType[Hall]("hall").
		// Who has a seat goes before who wants one; but not for ever.
		Default(activeobject.ByPriority(), activeobject.MaxBypass(16), activeobject.Watchdog(20*time.Second))

	// A queue for each seat. Who leaves it, by his deadline or by hanging up, never had one.
	hold    = activeobject.EntryFamily(halls, "hold", (*Hall).Hold, seatOf).WhenKey("not on hold", (*Hall).Decided)
	release = activeobject.Procedure(halls, "release", activeobject.Arg((*Hall).Release))
	sell    = activeobject.ProcedureCtx(halls, "sell", (*Hall).Sell) // it writes to a disk, so no stranger lends his goroutine
	plan    = activeobject.Function(halls, "plan", activeobject.Result((*Hall).Plan))
)

func init() {
	hold.Bound(maxWaiting, activeobject.Refuse)
	activeobject.Opens(release, hold, seatOf)
	activeobject.Opens(sell, hold, seatOf)
	activeobject.OpensEach(hold.Operation, hold, func(Ticket, func(string)) {}) // it only ever closes
}

func seatOf(t Ticket) string { return t.Seat }

// NewHall is the factory's: a hall in which is sold what the journal says, and nothing
// is on hold.
func NewHall(event string, seats []string, journal Journal) (*Hall, error) {
	h := &Hall{seats: seats, taken: map[string]place{}, journal: journal}
	for _, t := range journal.Sold(event) {
		if p := h.taken[t.Seat]; p.sold {
			return nil, fmt.Errorf("seat %s of %s is sold twice, by %s and %s", t.Seat, event, p.order, t.Order)
		}
		h.taken[t.Seat] = place{t.Order, true}
	}
	return h, nil
}

// Decided is the guard of Hold: nobody may bring the seat back into play, or take it.
func (h *Hall) Decided(seat string) bool {
	p, taken := h.taken[seat]
	return !taken || p.sold
}

// Hold puts a seat on hold for an order.
func (h *Hall) Hold(t Ticket) (none, error) {
	switch {
	case !slices.Contains(h.seats, t.Seat):
		return nil, errNoSeat
	case h.taken[t.Seat].sold:
		return nil, errSold
	}
	h.taken[t.Seat] = place{order: t.Order}
	return nil, nil
}

// Release gives the seat back, if it is on hold for the order.
func (h *Hall) Release(t Ticket) {
	if h.taken[t.Seat] == (place{order: t.Order}) {
		delete(h.taken, t.Seat)
	}
}

// Sell sells the seat that is on hold for the order. To sell it once more to the same
// order changes nothing.
func (h *Hall) Sell(_ context.Context, t Ticket) (none, error) {
	switch p := h.taken[t.Seat]; {
	case p.order != t.Order:
		return nil, errLost
	case p.sold:
		return nil, nil
	}
	if err := h.journal.Append(t); err != nil {
		return nil, err
	}
	h.taken[t.Seat] = place{t.Order, true}
	return nil, nil
}

// Plan returns the seats that are free, on hold and sold.
func (h *Hall) Plan() map[string][]string {
	plan := map[string][]string{}
	for _, seat := range h.seats {
		is := "sold"
		if p, taken := h.taken[seat]; !taken {
			is = "free"
		} else if !p.sold {
			is = "on hold"
		}
		plan[is] = append(plan[is], seat)
	}
	return plan
}
