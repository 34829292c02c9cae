package buffer

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// ring is the state of a Bounded: as many items as there is room for, one after another
// from first on, and round the end.
type ring[T any] struct {
	items        []T
	first, count int
	end
}

// At a closed ring both guards hold, so that every request that waits fails.
func (r *ring[T]) notFull() bool  { return r.count < len(r.items) || r.closed }
func (r *ring[T]) notEmpty() bool { return r.count > 0 || r.closed }

func (r *ring[T]) put(item T) (none, error) {
	if r.closed {
		return nil, r.passed()
	}
	r.items[r.at(r.count)] = item
	r.count++
	return nil, nil
}

func (r *ring[T]) get(none) (item T, err error) {
	if r.count == 0 {
		return item, r.passed()
	}
	slot := &r.items[r.first]
	item, *slot = *slot, item // the ring does not keep it
	r.first = r.at(1)
	r.count--
	return item, nil
}

// at returns the place of the i-th item.
func (r *ring[T]) at(i int) int {
	if i += r.first; i >= len(r.items) {
		return i - len(r.items)
	}
	return i
}

func (r *ring[T]) len() int { return r.count }

// boundeds are the operations of the Bounded of one type of item.
type boundeds[T any] struct {
	typ    *activeobject.Type[ring[T]]
	put    *activeobject.Operation[ring[T], T, none]
	get    *activeobject.Operation[ring[T], none, T]
	length *activeobject.Operation[ring[T], none, int]
	shut   *activeobject.Operation[ring[T], none, none]
}

func declareBoundeds[T any]() *boundeds[T] {
	t := activeobject.NewType[ring[T]](typeName[T]("bounded"))
	return &boundeds[T]{
		typ:    t,
		put:    activeobject.Entry(t, "put", (*ring[T]).put).When("not full", (*ring[T]).notFull),
		get:    activeobject.Entry(t, "get", (*ring[T]).get).When("not empty", (*ring[T]).notEmpty),
		length: activeobject.Function(t, "len", activeobject.Result((*ring[T]).len)),
		shut:   activeobject.Procedure(t, "close", (*ring[T]).close),
	}
}

// Bounded is a buffer for a limited number of items, which come out in the order in
// which they went in. Put waits while it is full, and Get while it is empty.
//
// It is the text's bounded buffer, except that it holds exactly its capacity: the Ada
// array 0..Max holds Max+1 items.
type Bounded[T any] struct {
	ops *boundeds[T]
	o   *activeobject.Object[ring[T]]
	cap int
}

// NewBounded makes a buffer with room for so many items. It fails with an
// *activeobject.ArgumentError if the capacity is less than 1, and otherwise as
// activeobject.New does.
func NewBounded[T any](system *actor.System, capacity int, options ...activeobject.Option) (*Bounded[T], error) {
	if err := checkCapacity("buffer.NewBounded", capacity); err != nil {
		return nil, err
	}
	ops := activeobject.Instance(declareBoundeds[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*ring[T], error) { return &ring[T]{items: make([]T, capacity)}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Bounded[T]{ops, o, capacity}, nil
}

// Put adds an item. It waits while the buffer is full; if ctx ends first, the item has
// not been put and never will be. Once the buffer is closed it fails with a
// *ClosedError, also if it waits then.
func (b *Bounded[T]) Put(ctx context.Context, item T) error {
	_, err := b.ops.put.Call(ctx, b.o, item)
	return err
}

// Puts returns Put, bound to the buffer.
func (b *Bounded[T]) Puts() activeobject.LocalProxy[T, activeobject.None] {
	return activeobject.At(b.ops.put, b.o)
}

// Get takes the item out that has been in the buffer for longest. It waits while there
// is none; if ctx ends first it has taken nothing, and never will. Once the buffer is
// closed and empty it fails with a *ClosedError, also if it waits then.
func (b *Bounded[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// Gets returns Get, bound to the buffer.
func (b *Bounded[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
}

// All ranges over the items as Get takes them, until the buffer is closed and empty.
// Another failure of Get, such as the end of ctx, comes with the zero item, and is the
// last. Any number of goroutines may range at once: each item goes to one of them.
func (b *Bounded[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Len returns how many items are in the buffer.
func (b *Bounded[T]) Len() (int, error) {
	return b.ops.length.Call(context.Background(), b.o, nil)
}

// Cap returns how many items there is room for.
func (b *Bounded[T]) Cap() int { return b.cap }

// Close says that nothing is put any more. What is in the buffer can still be got. A
// second Close fails with a *ClosedError.
func (b *Bounded[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *Bounded[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *Bounded[T]) Object() activeobject.AnyObject { return b.o }
