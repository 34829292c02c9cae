package main

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"sync"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Shop is the objects, and who looks after them:
//
//	office, an actor ── hall "gala"     each is restarted when it fails; one that ends
//	   │                hall "matinee"  for good is opened again
//	   └─ halls, orders: who answers for which name
//	      order "…"                     restarted for itself; ends with its hold
type Shop struct {
	system  *actor.System
	journal Journal
	events  map[string][]string // and their seats
	hold    time.Duration
	log     *slog.Logger
	office  *proto.PID

	mu     sync.Mutex
	halls  map[string]*activeobject.Object[Hall]
	orders map[string]*activeobject.Object[Order]
}

// restart restarts who fails, by himself; and stops who fails again and again.
var restart = proto.NewOneForOneStrategy(10, 10*time.Second, func(any) proto.Directive { return proto.RestartDirective })

// NewShop opens a shop. A seat may be on hold for as long as hold says.
func NewShop(system *actor.System, journal Journal, events map[string][]string, hold time.Duration) (*Shop, error) {
	s := &Shop{system: system, journal: journal, events: events, hold: hold, log: system.Logger(),
		halls: map[string]*activeobject.Object[Hall]{}, orders: map[string]*activeobject.Object[Order]{}}
	opened := make(chan struct{})
	once := sync.OnceFunc(func() { close(opened) })
	props := proto.PropsFromProducer(func() proto.Actor { return &office{shop: s, opened: once} }, proto.WithSupervisor(restart))
	var err error
	if s.office, err = system.Actors().Root.SpawnNamed(props, "office"); err != nil {
		return nil, err
	}
	ended, unwatch := system.Watch(s.office)
	defer unwatch()
	select {
	case <-opened:
		return s, nil
	case <-ended:
		return nil, errors.New("the halls cannot be opened; the log says why")
	}
}

// Close ends the shop: who waits is answered, and what runs finishes.
func (s *Shop) Close(ctx context.Context) error {
	err := s.system.Shutdown(ctx) // orders before halls, as they came later
	return errors.Join(err, s.system.Actors().Root.StopFuture(s.office).Wait())
}

// office is the actor whose children the halls are: a supervisor as any in protoactor.
type office struct {
	shop   *Shop
	opened func()
	ending bool
}

// Receive implements proto.Actor.
func (o *office) Receive(c proto.Context) {
	switch m := c.Message().(type) {
	case *proto.Started:
		for event := range o.shop.events {
			o.open(c, event)
		}
		o.opened()
	case *proto.Restarting, *proto.Stopping:
		o.ending = true // and its children before it
	case *proto.Terminated:
		if !o.ending {
			o.open(c, path.Base(m.Who.Id))
		}
	}
}

// open opens a hall. If that fails, so does the office, and its supervisor is asked.
func (o *office) open(c proto.Context, event string) {
	s := o.shop
	hall, err := activeobject.NewFrom(s.system, halls, func() (*Hall, error) {
		s.log.Info("hall opens", "event", event, "sold", len(s.journal.Sold(event)))
		return NewHall(event, s.events[event], s.journal)
	}, activeobject.Name(event), activeobject.Parent(c))
	switch {
	case errors.Is(err, actor.ErrClosed): // so nobody needs it
		return
	case err != nil:
		s.log.Error("hall cannot be opened", "event", event, "error", err)
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halls[event] = hall
}

// Event implements Counter.
func (s *Shop) Event(name string) (EventAt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hall, ok := s.halls[name]
	if !ok {
		return EventAt{}, errNoEvent
	}
	return EventAt{activeobject.At(hold.Operation, hall), activeobject.At(release, hall), activeobject.At(plan, hall)}, nil
}

// Open implements Counter. The order ends when the time of its hold is over.
func (s *Shop) Open(t Ticket) error {
	s.mu.Lock()
	hall := s.halls[t.Event]
	s.mu.Unlock()
	order, err := activeobject.NewFrom(s.system, orders, func() (*Order, error) { return NewOrder(t, hall, s.journal) },
		activeobject.Name("order "+t.Order), activeobject.Supervisor(restart))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.orders[t.Order] = order
	s.mu.Unlock()
	time.AfterFunc(s.hold, func() {
		ctx := context.Background() // hall and order answer, or end
		is, err := end.Call(ctx, order, Expired)
		if err != nil { // it has been given up; what it held has not
			release.Call(ctx, hall, t)
		}
		order.Close(ctx)
		s.log.Info("order ends", "order", t.Order, "status", is, "error", err)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.orders, t.Order)
	})
	return nil
}

// Order implements Counter.
func (s *Shop) Order(id string) (OrderAt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := s.orders[id]
	if !ok {
		return OrderAt{}, errNoOrder
	}
	return OrderAt{Pay: activeobject.At(pay, order), End: activeobject.At(end, order), Status: activeobject.At(status, order)}, nil
}
