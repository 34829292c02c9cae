package soak_test

import (
	"context"
	"fmt"
	"runtime"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// page is the state of every object of the soak: an account. Its host knows all the
// pages that an object has had.
type page struct {
	host            *host
	balance, opened int64
	rigged          plan // the next guard panics, or exits
}

// vault and till are two types of object with the same operations, so that a request
// can be requeued from one to the other.
type (
	vault struct {
		activeobject.Queues
		page
	}
	till struct {
		page
		activeobject.Queues
	}
)

// order is the argument of all operations. The number is that of the ledger, and the
// result.
type order struct {
	id    uint32
	n     int64
	plan  plan
	to    place // of a transfer, and of what is wired
	turns []turn
}

// turn is what a request does before its last body.
type turn struct {
	at  place // nil is the same object
	op  int
	how activeobject.Requeuing
}

// place is an object with its operations.
type place interface {
	Name() string
	PID() *actor.PID
	Explain() mailbox.Snapshot
	Stop() <-chan struct{}
	Close(context.Context) error
	SpawnNamed(*actor.Props, string) (*actor.PID, error)
	SetPriority(arrival uint64, priority int) error
	Do(context.Context, func(*page) error) error
	DoWhen(context.Context, func(*page) error) error
	View(context.Context, func(*page) error) error
	Until(context.Context) error

	call(ctx context.Context, op int, o order) (uint32, error)
	try(ctx context.Context, op int, o order) (uint32, error)
	send(ctx context.Context, op int, o order) activeobject.Future[uint32]
	begin(ctx context.Context, op int, o order) activeobject.Ticket[uint32]
	tell(ctx context.Context, op int, o order) error
	choice(op int, o order) choice
	requeue(op int, o order, how activeobject.Requeuing) (uint32, error)
}

// choice is a case of Select with a result like the others'.
type choice interface {
	activeobject.Alternative
	Result() (uint32, error)
}

type operation[T any] = activeobject.Operation[T, order, uint32]

// kind is a type with its operations.
type kind[T any] struct {
	*activeobject.Type[T]
	page  func(*T) *page
	ops   []*operation[T]
	ready guards.Guard[T, activeobject.None]
}

// The operations, by their numbers.
const (
	put = iota
	putCtx
	take
	takeCtx
	takeAny
	takeFirst
	note
	look
	transfer
	wire
	queue
	batch
	draw
	rig
	operations
)

var opNames = [operations]string{"put", "put-ctx", "take", "take-ctx", "take-any", "take-first", "note", "look", "transfer", "wire", "queue", "batch", "draw", "rig"}

// moves is what the operation does to the balance of its object.
func moves(op int, n int64) int64 {
	switch op {
	case put, putCtx:
		return n
	case take, takeCtx, takeAny, takeFirst, draw:
		return -n
	}
	return 0
}

// work does what the last body of a request is to do.
func (p *page) work(op string, o order, moves int64) (uint32, error) {
	last := len(o.turns) == 0
	leave := p.host.enter(op, o.id, last)
	defer leave()
	if last {
		switch o.plan {
		case declines:
			return 0, errDeclined
		case panics:
			p.host.ledger.burst.Add(1)
			panic(bang{o.id})
		case exits:
			p.host.ledger.burst.Add(1)
			runtime.Goexit()
		}
		p.move(o.id, moves)
	}
	return o.id, nil
}

func (p *page) move(id uint32, n int64) {
	p.balance += n
	p.host.ledger.entry(id).moved.Add(n)
}

// holds is around every guard.
func (p *page) holds(ok bool) bool {
	p.host.alone("a guard")
	how := p.rigged
	p.rigged = succeeds
	switch how {
	case panics:
		panic("rigged")
	case exits:
		runtime.Goexit()
	}
	return ok
}

func (p *page) covers(o order) bool { return p.holds(p.balance >= o.n) }

func newKind[T any](name string, of func(*T) *page, waiting func(*T, *operation[T]) int) *kind[T] {
	k := &kind[T]{Type: activeobject.NewType[T](name), page: of, ops: make([]*operation[T], operations)}
	leaf := func(op int) func(*T, order) (uint32, error) {
		return func(s *T, o order) (uint32, error) {
			id, err := of(s).work(opNames[op], o, moves(op, o.n))
			if len(o.turns) > 0 {
				return k.onward(o)
			}
			return id, err
		}
	}
	ctx := func(op int) func(*T, context.Context, order) (uint32, error) {
		body := leaf(op)
		return func(s *T, _ context.Context, o order) (uint32, error) { return body(s, o) }
	}
	covers := func(s *T, o order) bool { return of(s).covers(o) }
	some := func(s *T) bool { return of(s).holds(of(s).balance >= 5) }
	k.ops[put] = activeobject.Procedure(k.Type, opNames[put], leaf(put))
	k.ops[putCtx] = activeobject.ProcedureCtx(k.Type, opNames[putCtx], ctx(putCtx))
	k.ops[take] = activeobject.Entry(k.Type, opNames[take], leaf(take)).WhenArg("covered", covers)
	k.ops[takeCtx] = activeobject.EntryCtx(k.Type, opNames[takeCtx], ctx(takeCtx)).WhenArg("covered", covers)
	k.ops[takeAny] = activeobject.Entry(k.Type, opNames[takeAny], leaf(takeAny)).When("some", some)
	k.ops[takeFirst] = activeobject.Entry(k.Type, opNames[takeFirst], leaf(takeFirst)).WhenArg("covered", covers).HeadOfLine().Bound(3, activeobject.Wait)
	k.ops[note] = activeobject.Entry(k.Type, opNames[note], leaf(note)).When("some", some).Bound(2, activeobject.DropOldest)
	k.ops[look] = activeobject.Function(k.Type, opNames[look], leaf(look))
	k.ops[transfer] = activeobject.ProcedureCtx(k.Type, opNames[transfer], func(s *T, ctx context.Context, o order) (uint32, error) {
		return of(s).transfer(ctx, o)
	})
	k.ops[wire] = activeobject.Entry(k.Type, opNames[wire], func(s *T, o order) (uint32, error) {
		// The last turn credits elsewhere what is debited here.
		p := of(s)
		p.host.enter(opNames[wire], o.id, false)()
		p.move(o.id, -o.n)
		return o.to.requeue(put, order{id: o.id, n: o.n, plan: o.plan}, 0)
	}).WhenArg("covered", covers)
	k.ops[queue] = activeobject.Entry(k.Type, opNames[queue], leaf(queue)).When("some", some)
	k.ops[batch] = activeobject.Entry(k.Type, opNames[batch], leaf(batch)).WhenWaiting("three", func(s *T) bool {
		return of(s).holds(waiting(s, k.ops[batch]) >= 3)
	})
	k.ops[draw] = activeobject.EntryFamily(k.Type, opNames[draw], leaf(draw), func(o order) int64 { return o.n % 4 }).
		WhenKey("the number is up", func(s *T, key int64) bool { return of(s).holds(of(s).balance%4 == key) }).Operation
	k.ops[rig] = activeobject.Procedure(k.Type, opNames[rig], func(s *T, o order) (uint32, error) {
		of(s).rigged = []plan{panics, exits}[o.n%2]
		return of(s).work(opNames[rig], o, 0)
	})
	k.ready = guards.When("ready", some)
	return k
}

var (
	vaults = newKind("vault", func(v *vault) *page { return &v.page }, func(v *vault, op *operation[vault]) int { return v.Waiting(op) })
	tills  = newKind("till", func(t *till) *page { return &t.page }, func(t *till, op *operation[till]) int { return t.Waiting(op) })
)

// transfer moves money to another place by a call from inside the body.
func (p *page) transfer(ctx context.Context, o order) (uint32, error) {
	if o.plan == succeeds && p.balance >= o.n && o.to != nil {
		leave := p.host.enter(opNames[transfer], o.id, true)
		defer leave()
		l := p.host.ledger
		id, e := l.open()
		e.way, e.op, e.at, e.want, e.must = leg, opNames[put], p.host, o.n, 1
		p.move(o.id, -o.n)
		returned := false
		defer func() {
			if !returned { // a guard that was asked there has ended this goroutine
				l.end(id, 0, errEnded)
				l.burst.Add(1)
				e := l.entry(o.id)
				e.torn, e.debt = true, o.n
			}
		}()
		result, err := o.to.call(ctx, put, order{id: id, n: o.n})
		returned = true
		l.end(id, result, err)
		if err != nil {
			p.move(o.id, o.n)
		} else {
			// The entry of the transfer is balanced by that of its leg.
			l.entry(o.id).want = -o.n
		}
		return o.id, nil
	}
	return p.work(opNames[transfer], o, 0)
}

// onward asks for the next turn of an order.
func (k *kind[T]) onward(o order) (uint32, error) {
	next := o.turns[0]
	o.turns = o.turns[1:]
	if next.at != nil {
		return next.at.requeue(next.op, o, next.how)
	}
	return k.ops[next.op].Requeue(o, next.how)
}

// at is a place.
type at[T any] struct {
	*activeobject.Object[T]
	*kind[T]
}

func (a at[T]) Name() string { return a.Object.Name() }

func (a at[T]) on(f func(*page) error) func(*T) error {
	return func(s *T) error { return f(a.page(s)) }
}

func (a at[T]) Do(ctx context.Context, f func(*page) error) error { return a.Object.Do(ctx, a.on(f)) }
func (a at[T]) DoWhen(ctx context.Context, f func(*page) error) error {
	return a.Object.DoWhen(ctx, a.ready, a.on(f))
}
func (a at[T]) View(ctx context.Context, f func(*page) error) error {
	return a.Object.View(ctx, a.on(f))
}
func (a at[T]) Until(ctx context.Context) error { return a.Object.Until(ctx, a.ready) }
func (a at[T]) call(ctx context.Context, op int, o order) (uint32, error) {
	return a.ops[op].Call(ctx, a.Object, o)
}
func (a at[T]) try(ctx context.Context, op int, o order) (uint32, error) {
	return a.ops[op].Try(ctx, a.Object, o)
}
func (a at[T]) send(ctx context.Context, op int, o order) activeobject.Future[uint32] {
	return a.ops[op].Send(ctx, a.Object, o)
}
func (a at[T]) begin(ctx context.Context, op int, o order) activeobject.Ticket[uint32] {
	return a.ops[op].Begin(ctx, a.Object, o)
}
func (a at[T]) tell(ctx context.Context, op int, o order) error {
	return a.ops[op].Tell(ctx, a.Object, o)
}
func (a at[T]) choice(op int, o order) choice { return a.ops[op].Case(a.Object, o) }
func (a at[T]) requeue(op int, o order, how activeobject.Requeuing) (uint32, error) {
	return a.ops[op].RequeueTo(a.Object, o, how)
}

// factory makes the states of an object, and some mistakes.
type factory[T any] struct {
	host *host
	make func(page) *T
	page func(*T) *page
	fail func(nth int) error
}

func (f *factory[T]) next() (*T, error) {
	f.host.alone("a factory")
	f.host.mu.Lock()
	nth := len(f.host.pages)
	f.host.mu.Unlock()
	if err := f.fail(nth); err != nil {
		return nil, err
	}
	s := f.make(page{host: f.host, balance: 100, opened: 100})
	f.host.mu.Lock()
	f.host.pages = append(f.host.pages, f.page(s))
	f.host.mu.Unlock()
	f.host.note(fmt.Sprintf("state %d", nth+1), 0)
	return s, nil
}
