package buffer

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/activeobject"
)

// Reader is one of several readers of a ReadNew, with a flag of its own: its Get returns
// each value at most once, whatever others do. Goroutines that share a Reader share its flag.
//
// The operations of all readers of a ReadNew are two of its own, ReaderGets and ReaderCloses, which
// take the reader's ID.
type Reader[T any] struct {
	b  *ReadNew[T]
	id uint64
}

// Register adds a reader, to which the value that is there is new. The buffer remembers
// it until it is closed. The buffer itself may be closed.
func (b *ReadNew[T]) Register() (*Reader[T], error) {
	id, err := b.ops.register.Call(context.Background(), b.o, nil)
	if err != nil {
		return nil, err
	}
	return &Reader[T]{b, id}, nil
}

// Registers returns Register, bound to the buffer. Its result is the ID of the reader.
func (b *ReadNew[T]) Registers() activeobject.LocalProxy[activeobject.None, uint64] {
	return activeobject.At(b.ops.register, b.o)
}

// ID returns the number of the reader in its buffer: 1 for the first.
func (r *Reader[T]) ID() uint64 { return r.id }

// Get is ReadNew.Get, by the reader's own flag. Once the reader is closed it fails with a
// *ClosedError that says so, also if it waits then.
func (r *Reader[T]) Get(ctx context.Context) (T, error) {
	return r.b.ops.getFor.Call(ctx, r.b.o, r.id)
}

// ReaderGets returns Reader.Get, bound to the buffer. Its argument is the ID of the reader.
func (b *ReadNew[T]) ReaderGets() activeobject.LocalProxy[uint64, T] {
	return activeobject.At(b.ops.getFor, b.o)
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

// ReaderCloses returns Reader.Close, bound to the buffer. Its argument is the ID of the reader.
func (b *ReadNew[T]) ReaderCloses() activeobject.LocalProxy[uint64, activeobject.None] {
	return activeobject.At(b.ops.unregister, b.o)
}
