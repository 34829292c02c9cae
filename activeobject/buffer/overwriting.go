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
// describes in words; here nobody loses an item unawares.
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

// SendPut is Put as a future.
func (b *Overwriting[T]) SendPut(item T) activeobject.Future[Dropped[T]] {
	return b.ops.put.Send(context.Background(), b.o, item)
}

// Get takes the oldest item out. It waits while there is none; if ctx ends first it has
// taken nothing, and never will. Once the buffer is closed and empty it fails with a
// *ClosedError, also for those who wait then.
func (b *Overwriting[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// TryGet is Get for who does not want to wait: if he had to it fails with an
// *activeobject.RefusedError.
func (b *Overwriting[T]) TryGet(ctx context.Context) (T, error) {
	return b.ops.get.Try(ctx, b.o, nil)
}

// SendGet is Get as a future.
func (b *Overwriting[T]) SendGet(ctx context.Context) activeobject.Future[T] {
	return b.ops.get.Send(ctx, b.o, nil)
}

// GetCase is Get as a case for activeobject.Select.
func (b *Overwriting[T]) GetCase() *activeobject.Case[T] {
	return b.ops.get.Case(b.o, nil)
}

// All ranges over the items as Get takes them, as Bounded.All does.
func (b *Overwriting[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Len returns how many items are in the buffer.
func (b *Overwriting[T]) Len() (int, error) {
	return b.ops.length.Call(context.Background(), b.o, nil)
}

// SendLen is Len as a future.
func (b *Overwriting[T]) SendLen() activeobject.Future[int] {
	return b.ops.length.Send(context.Background(), b.o, nil)
}

// Cap returns how many items there is room for.
func (b *Overwriting[T]) Cap() int { return b.cap }

// Dropped returns how many items have been dropped so far.
func (b *Overwriting[T]) Dropped() (uint64, error) {
	return b.ops.lost.Call(context.Background(), b.o, nil)
}

// SendDropped is Dropped as a future.
func (b *Overwriting[T]) SendDropped() activeobject.Future[uint64] {
	return b.ops.lost.Send(context.Background(), b.o, nil)
}

// Close says that nothing is put any more. What is in the buffer can still be got. A
// second Close fails with a *ClosedError.
func (b *Overwriting[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// SendClose is Close as a future.
func (b *Overwriting[T]) SendClose() activeobject.Future[none] {
	return b.ops.shut.Send(context.Background(), b.o, nil)
}

// Object returns the shared object, to explain, observe or stop it.
func (b *Overwriting[T]) Object() *activeobject.Object[window[T]] { return b.o }
