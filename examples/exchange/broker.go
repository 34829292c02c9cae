package main

import (
	"context"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// placeBid is the message that asks a broker to bid. It is answered with a Trade, or with the
// error that there was none.
type placeBid struct {
	Bid
	Until time.Time // when the bid ends; it never trades later
}

// finish is the message that a broker answers when no bid is open.
type finish struct{}

// broker is a plain protoactor actor: it bids on behalf of one customer. It blocks nowhere, so
// that a customer can have any number of bids open. Each is three steps, and the actor handles
// other messages between them:
//
//	placeBid ─► withdraw the limit ─► buy, which waits ─► refund the rest, pay the seller, answer
//	            the account's PID     the market's handle
type broker struct {
	exchange *Exchange
	withdraw activeobject.Proxy[int, activeobject.None] // at the PID of the customer's account
	refund   activeobject.Proxy[int, activeobject.None]
	open     int
	finished []*actor.PID // to be told when no bid is open
}

// Receive implements proto.Actor.
func (b *broker) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *placeBid:
		b.open++
		actor.Reenter(c, b.withdraw.Send(context.Background(), m.Limit), func(_ activeobject.None, err error) {
			if err != nil {
				b.answer(c, Trade{}, err)
				return
			}
			b.bid(c, m)
		})
	case finish:
		b.finished = append(b.finished, c.Sender())
		b.tellFinished(c)
	}
}

// bid has the market buy, with the limit withdrawn from the account.
func (b *broker) bid(c actor.Context, m *placeBid) {
	market, err := b.exchange.Market(m.Market)
	if err != nil {
		b.end(c, m, Trade{}, err)
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), m.Until)
	actor.Reenter(c, buy.Send(ctx, market, m.Bid), func(t Trade, err error) {
		cancel()
		b.end(c, m, t, err)
	})
}

// end gives back what the bid has not spent, pays the seller and answers.
func (b *broker) end(c actor.Context, m *placeBid, t Trade, err error) {
	if rest := m.Limit - t.Price; rest > 0 { // all of it, if there was no trade
		b.refund.Tell(context.Background(), rest)
	}
	if err == nil {
		err = b.exchange.pay(t)
	}
	b.answer(c, t, err)
}

// answer ends a bid.
func (b *broker) answer(c actor.Context, t Trade, err error) {
	b.open--
	c.Respond(&actor.Reply{Value: t, Err: err})
	b.tellFinished(c)
}

func (b *broker) tellFinished(c actor.Context) {
	if b.open > 0 {
		return
	}
	for _, pid := range b.finished {
		c.Send(pid, &actor.Reply{})
	}
	b.finished = nil
}

var _ proto.Actor = (*broker)(nil)
