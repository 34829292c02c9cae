package main

import (
	"cmp"
	"slices"

	"github.com/sluice-go/sluice/activeobject"
)

// Offer is a share that is for sale.
type Offer struct {
	Seller string `json:"seller"`
	Price  int    `json:"price"`
}

// Bid is what a buyer is ready to pay for a share.
type Bid struct {
	Market string `json:"market"`
	Buyer  string `json:"buyer"`
	Limit  int    `json:"limit"`
}

// Trade is a share that has been sold.
type Trade struct {
	Offer
	Buyer string `json:"buyer"`
}

// Quote says how a market stands.
type Quote struct {
	Offers int `json:"offers"`
	Best   int `json:"best,omitempty"`
	Last   int `json:"last,omitempty"`
}

// Market matches offers and bids for the shares of one company. Offers are kept by price, the
// cheapest first. Bids are kept nowhere: a bid is a request that waits for an offer within its limit.
type Market struct {
	offers []Offer
	last   int
}

// Offer adds an offer. One without a price is a bug of the caller, and stands here for any bug
// that leaves a market in doubt.
func (m *Market) Offer(o Offer) {
	if o.Price <= 0 {
		panic("an offer without a price")
	}
	i, _ := slices.BinarySearchFunc(m.offers, o, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), -1) // behind those of the same price
	})
	m.offers = slices.Insert(m.offers, i, o)
}

// Within reports whether there is an offer within the limit of the bid.
func (m *Market) Within(b Bid) bool { return len(m.offers) > 0 && m.offers[0].Price <= b.Limit }

// Buy sells the cheapest share to the bidder. It needs Within.
func (m *Market) Buy(b Bid) Trade {
	cheapest := m.offers[0]
	m.offers = slices.Delete(m.offers, 0, 1)
	m.last = cheapest.Price
	return Trade{cheapest, b.Buyer}
}

// Quote returns how the market stands.
func (m *Market) Quote() Quote {
	q := Quote{Offers: len(m.offers), Last: m.last}
	if q.Offers > 0 {
		q.Best = m.offers[0].Price
	}
	return q
}

// Of the bids that an offer satisfies, the one with the highest limit is served; of equal ones, the
// one that came first.
var (
	markets = activeobject.NewType[Market]("market").Default(activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
		return limit(a) > limit(b)
	}))
	offer = activeobject.Procedure(markets, "offer", activeobject.Arg((*Market).Offer))
	buy   = activeobject.Entry(markets, "buy", activeobject.ArgResult((*Market).Buy)).WhenArg("an offer is within the limit", (*Market).Within)
	quote = activeobject.Function(markets, "quote", activeobject.Result((*Market).Quote))
)

// limit returns the limit of a bid; other requests come before bids.
func limit(c *activeobject.Candidate) int {
	if b, ok := c.Argument.(Bid); ok {
		return b.Limit
	}
	return 1<<31 - 1
}
