package buffer

import (
	"context"
	"fmt"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// news is the state of a ReadNew. Values are numbered from 1; whether one is new to
// somebody is whether he has seen another number last. So a flag for each reader need not
// be set by every Put.
type news[T any] struct {
	value  T
	serial uint64            // of the value; 0 if there is none yet
	taken  uint64            // the one that get returned last
	seen   map[uint64]uint64 // the one that each registered reader has read last
	last   uint64            // reader registered
	end
}

func (n *news[T]) newer() bool              { return n.taken != n.serial || n.closed }
func (n *news[T]) after(serial uint64) bool { return serial != n.serial || n.closed }

// newTo also lets those pass whose reader has been closed.
func (n *news[T]) newTo(reader uint64) bool {
	seen, registered := n.seen[reader]
	return !registered || seen != n.serial || n.closed
}

func (n *news[T]) put(value T) (none, error) {
	if n.closed {
		return nil, n.passed()
	}
	n.value = value
	n.serial++
	return nil, nil
}

func (n *news[T]) get(none) (value T, err error) {
	if n.taken == n.serial {
		return value, n.passed()
	}
	n.taken = n.serial
	return n.value, nil
}

func (n *news[T]) getFor(reader uint64) (value T, err error) {
	switch seen, registered := n.seen[reader]; {
	case !registered:
		return value, n.gone(reader)
	case seen == n.serial:
		return value, n.passed()
	}
	n.seen[reader] = n.serial
	return n.value, nil
}

func (n *news[T]) getAfter(serial uint64) (s Serial[T], err error) {
	switch {
	case serial > n.serial:
		return s, &activeobject.ArgumentError{Call: "buffer.ReadNew.GetAfter", Argument: "serial", Problem: fmt.Sprintf("is %d: the latest value has %d", serial, n.serial)}
	case serial == n.serial:
		return s, n.passed()
	}
	return Serial[T]{n.value, n.serial}, nil
}

func (n *news[T]) register() uint64 {
	if n.seen == nil {
		n.seen = make(map[uint64]uint64)
	}
	n.last++
	n.seen[n.last] = 0
	return n.last
}

func (n *news[T]) unregister(reader uint64) (none, error) {
	if _, registered := n.seen[reader]; !registered {
		return nil, n.gone(reader)
	}
	delete(n.seen, reader)
	return nil, nil
}

// gone is the error of who asks for a reader that has been closed.
func (n *news[T]) gone(reader uint64) error {
	return &ClosedError{Buffer: n.ObjectName(), Reader: reader}
}

// readNews are the operations of the ReadNew of one type of value.
type readNews[T any] struct {
	typ        *activeobject.Type[news[T]]
	put        *activeobject.Operation[news[T], T, none]
	get        *activeobject.Operation[news[T], none, T]
	getFor     *activeobject.Operation[news[T], uint64, T]
	getAfter   *activeobject.Operation[news[T], uint64, Serial[T]]
	register   *activeobject.Operation[news[T], none, uint64]
	unregister *activeobject.Operation[news[T], uint64, none]
	shut       *activeobject.Operation[news[T], none, none]
}

func declareReadNews[T any]() *readNews[T] {
	t := activeobject.NewType[news[T]](typeName[T]("read-new"))
	return &readNews[T]{
		typ:        t,
		put:        activeobject.Procedure(t, "put", (*news[T]).put),
		get:        activeobject.Entry(t, "get", (*news[T]).get).When("is new", (*news[T]).newer),
		getFor:     activeobject.Entry(t, "get by reader", (*news[T]).getFor).WhenArg("is new to the reader", (*news[T]).newTo),
		getAfter:   activeobject.Function(t, "get after", (*news[T]).getAfter).WhenArg("has another serial number", (*news[T]).after),
		register:   activeobject.Procedure(t, "register", activeobject.Result((*news[T]).register)),
		unregister: activeobject.Procedure(t, "close reader", (*news[T]).unregister),
		shut:       activeobject.Procedure(t, "close", (*news[T]).close),
	}
}

// ReadNew holds the latest value; a reader waits for one that has not been read. If the
// writer is faster than the readers some values are skipped. It is the text's conditional
// read buffer.
//
// Get gives each value to one reader at most. For several readers, each of whom is to
// have every value that he is fast enough for, the text suggests a flag for each, or
// serial numbers. Register is the one, and GetAfter the other: it leaves nothing behind
// in the buffer, but has the reader remember what he has read. All three may be used at
// one buffer. The value stays in it until it is replaced, for those who come later.
type ReadNew[T any] struct {
	ops *readNews[T]
	o   *activeobject.Object[news[T]]
}

// NewReadNew makes a buffer without a value. It fails as activeobject.New does.
func NewReadNew[T any](system *actor.System, options ...activeobject.Option) (*ReadNew[T], error) {
	ops := activeobject.Instance(declareReadNews[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*news[T], error) { return &news[T]{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &ReadNew[T]{ops, o}, nil
}

// Put replaces the value by a new one. It fails with a *ClosedError once the buffer is
// closed.
func (b *ReadNew[T]) Put(value T) error {
	_, err := b.ops.put.Call(context.Background(), b.o, value)
	return err
}

// SendPut is Put as a future.
func (b *ReadNew[T]) SendPut(value T) activeobject.Future[none] {
	return b.ops.put.Send(context.Background(), b.o, value)
}

// Get returns the value if no Get has returned it before, and else waits for the next.
// If ctx ends first, nothing has been read, and never will be. Once the buffer is closed
// and its last value read, Get fails with a *ClosedError, also for those who wait then.
func (b *ReadNew[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// TryGet is Get for who does not want to wait: if he had to it fails with an
// *activeobject.RefusedError.
func (b *ReadNew[T]) TryGet(ctx context.Context) (T, error) {
	return b.ops.get.Try(ctx, b.o, nil)
}

// SendGet is Get as a future.
func (b *ReadNew[T]) SendGet(ctx context.Context) activeobject.Future[T] {
	return b.ops.get.Send(ctx, b.o, nil)
}

// GetCase is Get as a case for activeobject.Select.
func (b *ReadNew[T]) GetCase() *activeobject.Case[T] {
	return b.ops.get.Case(b.o, nil)
}

// All ranges over the values as Get reads them, as Bounded.All does.
func (b *ReadNew[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Serial is a value of a ReadNew with its number: 1 for the first that was put.
type Serial[T any] struct {
	Value  T
	Serial uint64
}

// GetAfter returns the value and its serial number if that is not the given one, and else
// waits for the next. The given one is that of the value which the caller has read last,
// or 0. If ctx ends first, nothing has been read, and never will be. Once the buffer is
// closed GetAfter fails with a *ClosedError if there is nothing but what the caller has
// read, also for those who wait then. A number that no value has yet is an
// *activeobject.ArgumentError.
func (b *ReadNew[T]) GetAfter(ctx context.Context, serial uint64) (T, uint64, error) {
	s, err := b.ops.getAfter.Call(ctx, b.o, serial)
	return s.Value, s.Serial, err
}

// TryGetAfter is GetAfter for who does not want to wait: if he had to it fails with an
// *activeobject.RefusedError.
func (b *ReadNew[T]) TryGetAfter(ctx context.Context, serial uint64) (T, uint64, error) {
	s, err := b.ops.getAfter.Try(ctx, b.o, serial)
	return s.Value, s.Serial, err
}

// SendGetAfter is GetAfter as a future.
func (b *ReadNew[T]) SendGetAfter(ctx context.Context, serial uint64) activeobject.Future[Serial[T]] {
	return b.ops.getAfter.Send(ctx, b.o, serial)
}

// GetAfterCase is GetAfter as a case for activeobject.Select.
func (b *ReadNew[T]) GetAfterCase(serial uint64) *activeobject.Case[Serial[T]] {
	return b.ops.getAfter.Case(b.o, serial)
}

// Close says that nothing is put any more. Who has not read the last value still can. A
// second Close fails with a *ClosedError.
func (b *ReadNew[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// SendClose is Close as a future.
func (b *ReadNew[T]) SendClose() activeobject.Future[none] {
	return b.ops.shut.Send(context.Background(), b.o, nil)
}

// Object returns the shared object, to explain, observe or stop it.
func (b *ReadNew[T]) Object() *activeobject.Object[news[T]] { return b.o }

// Reader is one of several readers of a ReadNew, with a flag of its own: its Get returns
// each value at most once, whatever others do. Who shares a Reader shares its flag.
type Reader[T any] struct {
	b  *ReadNew[T]
	id uint64
}

// Register adds a reader, to whom the value that is there is new. The buffer remembers
// him until he is closed. It may be closed itself.
func (b *ReadNew[T]) Register() (*Reader[T], error) {
	return b.registered(b.ops.register.Call(context.Background(), b.o, nil))
}

// SendRegister is Register as a future.
func (b *ReadNew[T]) SendRegister() activeobject.Future[*Reader[T]] {
	return actor.Then(b.ops.register.Send(context.Background(), b.o, nil), b.registered)
}

func (b *ReadNew[T]) registered(id uint64, err error) (*Reader[T], error) {
	if err != nil {
		return nil, err
	}
	return &Reader[T]{b, id}, nil
}

// Get is ReadNew.Get, by the reader's own flag. Once the reader is closed it fails with a
// *ClosedError that says so, also for those who wait then.
func (r *Reader[T]) Get(ctx context.Context) (T, error) {
	return r.b.ops.getFor.Call(ctx, r.b.o, r.id)
}

// TryGet is Get for who does not want to wait: if he had to it fails with an
// *activeobject.RefusedError.
func (r *Reader[T]) TryGet(ctx context.Context) (T, error) {
	return r.b.ops.getFor.Try(ctx, r.b.o, r.id)
}

// SendGet is Get as a future.
func (r *Reader[T]) SendGet(ctx context.Context) activeobject.Future[T] {
	return r.b.ops.getFor.Send(ctx, r.b.o, r.id)
}

// GetCase is Get as a case for activeobject.Select.
func (r *Reader[T]) GetCase() *activeobject.Case[T] {
	return r.b.ops.getFor.Case(r.b.o, r.id)
}

// All ranges over the values as Get reads them, as Bounded.All does; it ends silently,
// too, when the reader is closed.
func (r *Reader[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, r.Get) }

// Close has the buffer forget the reader, and nothing else. A second Close fails with a
// *ClosedError.
func (r *Reader[T]) Close() error {
	_, err := r.b.ops.unregister.Call(context.Background(), r.b.o, r.id)
	return err
}

// SendClose is Close as a future.
func (r *Reader[T]) SendClose() activeobject.Future[none] {
	return r.b.ops.unregister.Send(context.Background(), r.b.o, r.id)
}
