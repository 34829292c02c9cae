package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

var (
	errNoMarket   = errors.New("there is no such market")
	errNoCustomer = errors.New("there is no such customer")
	errPoor       = errors.New("not enough money")
)

// Exchange is the markets, the customers' accounts and their brokers.
type Exchange struct {
	system  *actor.System
	markets map[string]*activeobject.Object[Market]

	mu        sync.Mutex
	customers map[string]customer
}

type customer struct {
	account *activeobject.Object[Account]
	broker  activeobject.Proxy[*placeBid, Trade]
	pid     *actor.PID // of the broker
}

// NewExchange opens markets. One that fails is restarted without offers, and its bids wait on. All objects
// log how long their bodies take, and what waits for longer than patience.
func NewExchange(log *slog.Logger, patience time.Duration, symbols ...string) (*Exchange, error) {
	e := &Exchange{system: actor.NewSystem(actor.Logger(log)), markets: map[string]*activeobject.Object[Market]{}, customers: map[string]customer{}}
	activeobject.Defaults(e.system, activeobject.Watchdog(patience), activeobject.Interceptors(timed(log)))
	restart := proto.NewOneForOneStrategy(10, time.Minute, func(any) proto.Directive { return proto.RestartDirective })
	for _, symbol := range symbols {
		market, err := activeobject.NewFrom(e.system, markets, func() (*Market, error) { return &Market{}, nil },
			activeobject.Name("market "+symbol), activeobject.Supervisor(restart))
		if err != nil {
			return nil, errors.Join(err, e.Close(context.Background()))
		}
		e.markets[symbol] = market
	}
	return e, nil
}

// timed is an interceptor that logs how long bodies take.
func timed(log *slog.Logger) activeobject.Interceptor {
	return activeobject.Interceptor{Run: func(_ context.Context, r activeobject.Intercepted, body func() error) error {
		begin := time.Now()
		err := body()
		log.Debug("ran", "object", r.Object, "operation", r.Operation, "for", time.Since(begin), "error", err)
		return err
	}}
}

// Join makes a customer with some money: an account, and a broker that knows no more of it than its
// PID. A name that is taken is an *actor.NameError.
func (e *Exchange) Join(name string, money int) error {
	account, err := activeobject.New(e.system, accounts, &Account{balance: money}, activeobject.Name("account "+name))
	if err != nil {
		return err
	}
	pid, err := e.system.Actors().Root.SpawnNamed(proto.PropsFromProducer(func() proto.Actor {
		return &broker{exchange: e, withdraw: withdraw.To(e.system, account.PID()), refund: deposit.To(e.system, account.PID())}
	}), "broker "+name)
	if err != nil {
		return errors.Join(err, account.Close(context.Background()))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.customers[name] = customer{account, activeobject.ActorAt[*placeBid, Trade](e.system, pid), pid}
	return nil
}

// Leave ends a customer's broker and account, when no bid of the customer is open. When it
// returns, the name can join again.
func (e *Exchange) Leave(ctx context.Context, name string) error {
	c, err := e.customer(name)
	if err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.customers, name)
	e.mu.Unlock()
	return c.leave(ctx, e.system)
}

func (c *customer) leave(ctx context.Context, system *actor.System) error {
	if err := activeobject.ActorAt[finish, activeobject.None](system, c.pid).Do(ctx, finish{}); err != nil {
		return err
	}
	system.Stop(c.pid)
	if err := system.AwaitEnd(ctx, c.pid); err != nil {
		return err
	}
	return c.account.CloseActor(ctx)
}

func (e *Exchange) customer(name string) (customer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.customers[name]
	if !ok {
		return c, fmt.Errorf("%w: %s", errNoCustomer, name)
	}
	return c, nil
}

// Market returns a market.
func (e *Exchange) Market(symbol string) (*activeobject.Object[Market], error) {
	m, ok := e.markets[symbol]
	if !ok {
		return nil, fmt.Errorf("%w: %s", errNoMarket, symbol)
	}
	return m, nil
}

// Offer puts a share up for sale.
func (e *Exchange) Offer(ctx context.Context, symbol string, o Offer) error {
	m, err := e.Market(symbol)
	if err != nil {
		return err
	}
	if _, err := e.customer(o.Seller); err != nil {
		return err
	}
	return offer.Do(ctx, m, o)
}

// Bid buys a share, and waits for an offer within the limit until the time has come. From then on
// the bid never trades.
func (e *Exchange) Bid(ctx context.Context, b Bid, until time.Time) (Trade, error) {
	c, err := e.customer(b.Buyer)
	if err != nil {
		return Trade{}, err
	}
	return c.broker.Call(ctx, &placeBid{b, until})
}

// pay pays the seller.
func (e *Exchange) pay(t Trade) error {
	c, err := e.customer(t.Seller)
	if err != nil {
		return err // the seller has left
	}
	return deposit.Tell(context.Background(), c.account, t.Price)
}

// Balance returns how much money a customer has.
func (e *Exchange) Balance(ctx context.Context, name string) (int, error) {
	c, err := e.customer(name)
	if err != nil {
		return 0, err
	}
	return balance.Call(ctx, c.account, nil)
}

// Quote returns how a market stands.
func (e *Exchange) Quote(ctx context.Context, symbol string) (Quote, error) {
	m, err := e.Market(symbol)
	if err != nil {
		return Quote{}, err
	}
	return quote.Call(ctx, m, nil)
}

// Waits says what waits everywhere, and why.
func (e *Exchange) Waits() []mailbox.Snapshot { return e.system.Explain() }

// Close ends the exchange: the markets first, so that bids which wait are answered with an error; then the
// customers, whose brokers have given back the money of these bids by then; and last the system.
func (e *Exchange) Close(ctx context.Context) error {
	var failed []error
	for _, m := range e.markets {
		failed = append(failed, m.Close(ctx))
	}
	e.mu.Lock()
	left := slices.Collect(maps.Values(e.customers))
	clear(e.customers)
	e.mu.Unlock()
	for _, c := range left {
		failed = append(failed, c.leave(ctx, e.system))
	}
	return errors.Join(append(failed, e.system.Shutdown(ctx))...)
}
