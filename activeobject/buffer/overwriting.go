package buffer

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// window is the state of an Overwriting: a ring that makes room for itself.
type window[T any] struct {
	ring[T]
	lost uint64
}

func (w *window[T]) put(item T) (d Dropped[T], err error) {
	if w.closed {
		return d, w.passed()
	}
	if w.count == len(w.items) {
		d.Item, _ = w.get(nil)
		d.Any = true
		w.lost++
	}
	_, err = w.ring.put(item)
	return d, err
}

func (w *window[T]) dropped() uint64 { return w.lost }

// overwritings are the operations of the Overwriting of one type of item.
type overwritings[T any] struct {
	typ    *activeobject.Type[window[T]]
	put    *activeobject.Operation[window[T], T, Dropped[T]]
	get    *activeobject.Operation[window[T], none, T]
	length *activeobject.Operation[window[T], none, int]
	lost   *activeobject.Operation[window[T], none, uint64]
	shut   *activeobject.Operation[window[T], none, none]
}

func declareOverwritings[T any]() *overwritings[T] {
	t := activeobject.NewType[window[T]](typeName[T]("overwriting"))
	return &overwritings[T]{
		typ:    t,
		put:    activeobject.Procedure(t, "put", (*window[T]).put),
		get:    activeobject.Entry(t, "get", (*window[T]).get).When("not empty", (*window[T]).notEmpty),
		length: activeobject.Function(t, "len", activeobject.Result((*window[T]).len)),
		lost:   activeobject.Function(t, "dropped", activeobject.Result((*window[T]).dropped)),
		shut:   activeobject.Procedure(t, "close", (*window[T]).close),
	}
}

// Overwriting is a buffer for the latest items: when it is full, a Put overwrites the
// oldest, and never waits. It is the variation of the bounded buffer that the text
// describes in words; here Put returns the item that is lost.
type Overwriting[T any] struct {
	ops *overwritings[T]
	o   *activeobject.Object[window[T]]
	cap int
}

// Dropped is what a Put to an Overwriting has dropped.
type Dropped[T any] struct {
	Item T
	Any  bool // false if there was room, and Item is nothing
}

// NewOverwriting makes a buffer for as many items as the capacity says. It fails with an
// *activeobject.ArgumentError if the capacity is less than 1, and otherwise as
// activeobject.New does.
func NewOverwriting[T any](system *actor.System, capacity int, options ...activeobject.Option) (*Overwriting[T], error) {
	if err := checkCapacity("buffer.NewOverwriting", capacity); err != nil {
		return nil, err
	}
	ops := activeobject.Instance(declareOverwritings[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*window[T], error) {
		return &window[T]{ring: ring[T]{items: make([]T, capacity)}}, nil
	}, options...)
	if err != nil {
		return nil, err
	}
	return &Overwriting[T]{ops, o, capacity}, nil
}

// Put adds an item. If the buffer is full it drops the oldest, and returns that. It fails
// with a *ClosedError once the buffer is closed; then nothing is dropped.
func (b *Overwriting[T]) Put(item T) (Dropped[T], error) {
	return b.ops.put.Call(context.Background(), b.o, item)
}

// Puts returns Put, bound to the buffer.
func (b *Overwriting[T]) Puts() activeobject.LocalProxy[T, Dropped[T]] {
	return activeobject.At(b.ops.put, b.o)
}

// Get takes the oldest item out. It waits while there is none; if ctx ends first it has
// taken nothing, and never will. Once the buffer is closed and empty it fails with a
// *ClosedError, also if it waits then.
func (b *Overwriting[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// Gets returns Get, bound to the buffer.
func (b *Overwriting[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
}

// All ranges over the items as Get takes them, as Bounded.All does.
func (b *Overwriting[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Len returns how many items are in the buffer.
func (b *Overwriting[T]) Len() (int, error) {
	return b.ops.length.Call(context.Background(), b.o, nil)
}

// Cap returns how many items there is room for.
func (b *Overwriting[T]) Cap() int { return b.cap }

// Dropped returns how many items have been dropped so far.
func (b *Overwriting[T]) Dropped() (uint64, error) {
	return b.ops.lost.Call(context.Background(), b.o, nil)
}

// Close says that nothing is put any more. What is in the buffer can still be got. A
// second Close fails with a *ClosedError.
func (b *Overwriting[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *Overwriting[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *Overwriting[T]) Object() activeobject.AnyObject { return b.o }
