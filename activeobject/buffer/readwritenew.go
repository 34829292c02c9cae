package buffer

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// handover is the state of a ReadWriteNew.
type handover[T any] struct {
	value T
	isNew bool
	end
}

func (h *handover[T]) wasRead() bool { return !h.isNew || h.closed }
func (h *handover[T]) newer() bool   { return h.isNew || h.closed }

func (h *handover[T]) put(value T) (none, error) {
	if h.closed {
		return nil, h.passed()
	}
	h.value, h.isNew = value, true
	return nil, nil
}

func (h *handover[T]) get(none) (value T, err error) {
	if !h.isNew {
		return value, h.passed()
	}
	value, h.value = h.value, value // the buffer does not keep it
	h.isNew = false
	return value, nil
}

// readWriteNews are the operations of the ReadWriteNew of one type of value.
type readWriteNews[T any] struct {
	typ  *activeobject.Type[handover[T]]
	put  *activeobject.Operation[handover[T], T, none]
	get  *activeobject.Operation[handover[T], none, T]
	shut *activeobject.Operation[handover[T], none, none]
}

func declareReadWriteNews[T any]() *readWriteNews[T] {
	t := activeobject.NewType[handover[T]](typeName[T]("read-write-new"))
	return &readWriteNews[T]{
		typ:  t,
		put:  activeobject.Entry(t, "put", (*handover[T]).put).When("was read", (*handover[T]).wasRead),
		get:  activeobject.Entry(t, "get", (*handover[T]).get).When("is new", (*handover[T]).newer),
		shut: activeobject.Procedure(t, "close", (*handover[T]).close),
	}
}

// ReadWriteNew holds one value, which is read exactly once: Put waits until the last one
// was read, and Get for a new one. It is the text's conditional read write buffer.
//
// (Put does not wait until its own value was read, as it would at a channel without
// buffer.)
type ReadWriteNew[T any] struct {
	ops *readWriteNews[T]
	o   *activeobject.Object[handover[T]]
}

// NewReadWriteNew makes a buffer without a value. It fails as activeobject.New does.
func NewReadWriteNew[T any](system *actor.System, options ...activeobject.Option) (*ReadWriteNew[T], error) {
	ops := activeobject.Instance(declareReadWriteNews[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*handover[T], error) { return &handover[T]{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &ReadWriteNew[T]{ops, o}, nil
}

// Put writes a value. It waits until the last one was read; if ctx ends first, the value
// has not been written and never will be. Once the buffer is closed it fails with a
// *ClosedError, also if it waits then.
func (b *ReadWriteNew[T]) Put(ctx context.Context, value T) error {
	_, err := b.ops.put.Call(ctx, b.o, value)
	return err
}

// Puts returns Put, bound to the buffer.
func (b *ReadWriteNew[T]) Puts() activeobject.LocalProxy[T, activeobject.None] {
	return activeobject.At(b.ops.put, b.o)
}

// Get reads the value, once it is new. If ctx ends before, nothing has been read, and
// never will be. Once the buffer is closed and its last value read, Get fails with a
// *ClosedError, also if it waits then.
func (b *ReadWriteNew[T]) Get(ctx context.Context) (T, error) {
	return b.ops.get.Call(ctx, b.o, nil)
}

// Gets returns Get, bound to the buffer.
func (b *ReadWriteNew[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
}

// All ranges over the values as Get reads them, as Bounded.All does.
func (b *ReadWriteNew[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, b.Get) }

// Close says that nothing is put any more. A value that is new can still be got. A second
// Close fails with a *ClosedError.
func (b *ReadWriteNew[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *ReadWriteNew[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *ReadWriteNew[T]) Object() activeobject.AnyObject { return b.o }
