package buffer

import (
	"context"
	"fmt"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// news is the state of a ReadNew. Values are numbered from 1. A value is new to a reader if
// the number that the reader has seen last is another one. So Put need not set a flag for each
// reader.
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

// newTo also holds if the reader has been closed, so that its requests fail.
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

// gone is the error of a request by a reader that has been closed.
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
// Get gives each value to one reader at most. For several readers, each of which is to
// have every value that it is fast enough for, the text suggests a flag for each, or
// serial numbers. Register is the one, and GetAfter the other: it leaves nothing behind
// in the buffer, but has the reader remember what it has read. All three may be used at
// one buffer. The value stays in it until it is replaced, for later readers.
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

// Puts returns Put, bound to the buffer.
func (b *ReadNew[T]) Puts() activeobject.LocalProxy[T, activeobject.None] {
	return activeobject.At(b.ops.put, b.o)
}

// Get returns the value if no Get has returned it before, and else waits for the next.
// If ctx ends first, nothing has been read, and never will be. Once the buffer is closed
// and its last value read, Get fails with a *ClosedError, also if it waits then.
func (b *ReadNew[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// Gets returns Get, bound to the buffer.
func (b *ReadNew[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
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
// read, also if it waits then. A number that no value has yet is an
// *activeobject.ArgumentError.
func (b *ReadNew[T]) GetAfter(ctx context.Context, serial uint64) (T, uint64, error) {
	s, err := b.ops.getAfter.Call(ctx, b.o, serial)
	return s.Value, s.Serial, err
}

// GetsAfter returns GetAfter, bound to the buffer. Its result is a Serial.
func (b *ReadNew[T]) GetsAfter() activeobject.LocalProxy[uint64, Serial[T]] {
	return activeobject.At(b.ops.getAfter, b.o)
}

// Close says that nothing is put any more. The last value can still be read. A
// second Close fails with a *ClosedError.
func (b *ReadNew[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *ReadNew[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *ReadNew[T]) Object() activeobject.AnyObject { return b.o }
