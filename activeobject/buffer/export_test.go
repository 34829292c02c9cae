package buffer

import "github.com/sluice-go/sluice/activeobject"

// Shared returns the object with its state, for tests.
func (b *Bounded[T]) Shared() *activeobject.Object[ring[T]] { return b.o }

// Shared returns the object with its state, for tests.
func (b *Overwriting[T]) Shared() *activeobject.Object[window[T]] { return b.o }

// Shared returns the object with its state, for tests.
func (b *Unbounded[T]) Shared() *activeobject.Object[queue[T]] { return b.o }

// Shared returns the object with its state, for tests.
func (b *ReadAny[T]) Shared() *activeobject.Object[sample[T]] { return b.o }

// Shared returns the object with its state, for tests.
func (b *ReadNew[T]) Shared() *activeobject.Object[news[T]] { return b.o }

// Shared returns the object with its state, for tests.
func (b *ReadWriteNew[T]) Shared() *activeobject.Object[handover[T]] { return b.o }
