package buffer

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// sample is the state of a ReadAny.
type sample[T any] struct {
	value T
	valid bool
	end
}

func (s *sample[T]) put(value T) (none, error) {
	if s.closed {
		return nil, s.passed()
	}
	s.value, s.valid = value, true
	return nil, nil
}

func (s *sample[T]) get(none) (T, error) {
	switch {
	case s.closed:
		return s.value, s.passed()
	case !s.valid:
		return s.value, &UninitializedError{Buffer: s.ObjectName()}
	}
	return s.value, nil
}

func (s *sample[T]) initialized() bool { return s.valid }

// readAnys are the operations of the ReadAny of one type of value.
type readAnys[T any] struct {
	typ         *activeobject.Type[sample[T]]
	put         *activeobject.Operation[sample[T], T, none]
	get         *activeobject.Operation[sample[T], none, T]
	initialized *activeobject.Operation[sample[T], none, bool]
	shut        *activeobject.Operation[sample[T], none, none]
}

func declareReadAnys[T any]() *readAnys[T] {
	t := activeobject.NewType[sample[T]](typeName[T]("read-any"))
	return &readAnys[T]{
		typ:         t,
		put:         activeobject.Procedure(t, "put", (*sample[T]).put),
		get:         activeobject.Function(t, "get", (*sample[T]).get),
		initialized: activeobject.Function(t, "initialized", activeobject.Result((*sample[T]).initialized)),
		shut:        activeobject.Procedure(t, "close", (*sample[T]).close),
	}
}

// ReadAny holds the latest value, to be read at any time: a reader that is faster than
// the writer reads a value several times, a slower one skips some. Neither waits.
// It is the text's unconditional buffer, for sensors and the like.
type ReadAny[T any] struct {
	ops *readAnys[T]
	o   *activeobject.Object[sample[T]]
}

// NewReadAny makes a buffer without a value. It fails as activeobject.New does.
func NewReadAny[T any](system *actor.System, options ...activeobject.Option) (*ReadAny[T], error) {
	ops := activeobject.Instance(declareReadAnys[T])
	o, err := activeobject.NewFrom(system, ops.typ, func() (*sample[T], error) { return &sample[T]{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &ReadAny[T]{ops, o}, nil
}

// UninitializedError fails a Get from a ReadAny that has not been given a value yet.
type UninitializedError struct{ Buffer string }

// Error implements error.
func (e *UninitializedError) Error() string { return "sluice: " + e.Buffer + " has no value yet" }

// Put replaces the value. It fails with a *ClosedError once the buffer is closed.
func (b *ReadAny[T]) Put(value T) error {
	_, err := b.ops.put.Call(context.Background(), b.o, value)
	return err
}

// Puts returns Put, bound to the buffer.
func (b *ReadAny[T]) Puts() activeobject.LocalProxy[T, activeobject.None] {
	return activeobject.At(b.ops.put, b.o)
}

// Get returns the value, which stays. Before there is one it fails with an
// *UninitializedError. Once the buffer is closed it returns the last value together with
// a *ClosedError: since nothing is used up by reading, a reader would otherwise never
// notice.
func (b *ReadAny[T]) Get() (T, error) {
	return b.ops.get.Call(context.Background(), b.o, nil)
}

// Gets returns Get, bound to the buffer: a source of values like those of other buffers.
func (b *ReadAny[T]) Gets() activeobject.LocalProxy[activeobject.None, T] {
	return activeobject.At(b.ops.get, b.o)
}

// Initialized reports whether there is a value. Once there is one there always is.
func (b *ReadAny[T]) Initialized() (bool, error) {
	return b.ops.initialized.Call(context.Background(), b.o, nil)
}

// Close says that nothing is put any more. A second Close fails with a *ClosedError.
func (b *ReadAny[T]) Close() error {
	_, err := b.ops.shut.Call(context.Background(), b.o, nil)
	return err
}

// Closes returns Close, bound to the buffer.
func (b *ReadAny[T]) Closes() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(b.ops.shut, b.o)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (b *ReadAny[T]) Object() activeobject.AnyObject { return b.o }
