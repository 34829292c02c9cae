package buffer

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// queue is the state of an Unbounded: a list of blocks. So no Put ever moves what is
// there already, and what a peak has needed is given back block by block.
type queue[T any] struct {
	head, tail  *block[T] // nil until something is put
	first, last int       // of head, the place of the oldest item; of tail, that of the next
	count, peak int
	spare       *block[T] // one that was emptied, for the next: a queue that stays short allocates nothing
	end
}

// perBlock is how many items share an allocation.
const perBlock = 64

type block[T any] struct {
	items [perBlock]T
	next  *block[T]
}

func (q *queue[T]) notEmpty() bool { return q.count > 0 || q.closed }

func (q *queue[T]) put(item T) (none, error) {
	if q.closed {
		return nil, q.passed()
	}
	if q.tail == nil || q.last == perBlock {
		q.grow()
	}
	q.tail.items[q.last] = item
	q.last++
	q.count++
	q.peak = max(q.peak, q.count)
	return nil, nil
}

func (q *queue[T]) grow() {
	b := q.spare
	if q.spare = nil; b == nil {
		b = new(block[T])
	}
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.next = b
	}
	q.tail, q.last = b, 0
}

func (q *queue[T]) get(none) (item T, err error) {
	if q.count == 0 {
		return item, q.passed()
	}
	slot := &q.head.items[q.first]
	item, *slot = *slot, item // the queue does not keep it
	q.first++
	q.count--
	switch {
	case q.count == 0: // head is tail: a block is begun only for an item
		q.first, q.last = 0, 0
	case q.first == perBlock:
		emptied := q.head
		q.head, q.first = emptied.next, 0
		emptied.next, q.spare = nil, emptied
	}
	return item, nil
}

func (q *queue[T]) len() int     { return q.count }
func (q *queue[T]) highest() int { return q.peak }

// unboundeds are the operations of the Unbounded of one type of item.
type unboundeds[T any] struct {
	typ    *activeobject.Type[queue[T]]
	put    *activeobject.Operation[queue[T], T, none]
	get    *activeobject.Operation[queue[T], none, T]
	length *activeobject.Operation[queue[T], none, int]
	peak   *activeobject.Operation[queue[T], none, int]
	shut   *activeobject.Operation[queue[T], none, none]
}

func declareUnboundeds[T any]() *unboundeds[T] {
	t := activeobject.NewType[queue[T]](typeName[T]("unbounded"))
	return &unboundeds[T]{
		typ:    t,
		put:    activeobject.Procedure(t, "put", (*queue[T]).put),
		get:    activeobject.Entry(t, "get", (*queue[T]).get).When("not empty", (*queue[T]).notEmpty),
		length: activeobject.Function(t, "len", activeobject.Result((*queue[T]).len)),
		peak:   activeobject.Function(t, "peak", activeobject.Result((*queue[T]).highest)),
		shut:   activeobject.Procedure(t, "close", (*queue[T]).close),
	}
}

// Unbounded is a buffer for any number of items, which come out in the order in which
// they went in. Put never waits. So it is for producers that are no faster than the
// consumers on average: else it grows until the memory is used up. Watch Len and Peak.
//
// The text's unbounded buffer allocates for each item and frees with each; this one does
// so for 64 of them at once. What a peak has needed is given back when it is over: an
// empty buffer holds room for 128 items at most.
type Unbounded[T any] struct {
	ops *unboundeds[T]
	o   *activeobject.Object[queue[T]]
}

// NewUnbounded makes a buffer. It fails as activeobject.New does.
func NewUnbounded[T any](system *actor.System, options ...activeobject.Option) (*Unbounded[T], error) {
	ops := activeobject.Instance(declareUnboundeds[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*queue[T], error) { return &queue[T]{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Unbounded[T]{ops, o}, nil
}

// Put adds an item. It fails with a *ClosedError once the buffer is closed.
func (b *Unbounded[T]) Put(item T) error {
	_, err := b.ops.put.Call(context.Background(), b.o, item)
	return err
}

// Puts returns Put, bound to the buffer.
func (b *Unbounded[T]) Puts() activeobject.LocalProxy[T, activeobject.None] {
	return activeobject.At(b.ops.put, b.o)
}

// Get takes the item out that has been in the buffer for longest. It waits while there
// is none; if ctx ends first it has taken nothing, and never will. Once the buffer is
// closed and empty it fails with a *ClosedError, also if it waits then.
func (b *Unbounded[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// Gets returns Get, bound to the buffer.
func (b *Unbounded[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
}

// All ranges over the items as Get takes them, as Bounded.All does.
func (b *Unbounded[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Len returns how many items are in the buffer.
func (b *Unbounded[T]) Len() (int, error) {
	return b.ops.length.Call(context.Background(), b.o, nil)
}

// Peak returns how many items have been in the buffer at most.
func (b *Unbounded[T]) Peak() (int, error) {
	return b.ops.peak.Call(context.Background(), b.o, nil)
}

// Close says that nothing is put any more. What is in the buffer can still be got. A
// second Close fails with a *ClosedError.
func (b *Unbounded[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *Unbounded[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *Unbounded[T]) Object() activeobject.AnyObject { return b.o }
