package semaphore

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// bit is the state of a binary semaphore.
type bit struct {
	activeobject.Queues
	locked bool
}

func (b *bit) free() bool { return !b.locked }
func (b *bit) held() bool { return b.locked }
func (b *bit) acquire()   { b.locked = true }

func (b *bit) release() error {
	if !b.locked {
		return &ReleaseError{Semaphore: b.ObjectName(), Permits: 1}
	}
	b.locked = false
	return nil
}

var (
	bits       = activeobject.NewType[bit]("binary semaphore")
	bitAcquire = activeobject.Entry(bits, "acquire", activeobject.Plain((*bit).acquire)).When("free", (*bit).free)
	bitRelease = activeobject.Procedure(bits, "release", activeobject.Error((*bit).release))
	bitHeld    = activeobject.Function(bits, "held", activeobject.Result((*bit).held))
)

// Binary is a semaphore of one permit, which one caller at a time holds.
type Binary struct{ o *activeobject.Object[bit] }

// NewBinary makes a binary semaphore that is free. It is fair: first come first served. It fails
// as activeobject.New does.
func NewBinary(system *actor.System, options ...activeobject.Option) (*Binary, error) {
	o, err := activeobject.NewFrom(system, bits, func() (*bit, error) { return &bit{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Binary{o}, nil
}

// Acquire waits until the semaphore is free, and holds it. If ctx ends first it
// returns the context's error, and has acquired nothing.
func (b *Binary) Acquire(ctx context.Context) error {
	_, err := bitAcquire.Call(ctx, b.o, nil)
	return err
}

// Acquires returns Acquire, bound to the semaphore.
func (b *Binary) Acquires() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(bitAcquire, b.o)
}

// Release gives the semaphore back. If it is not held that is a *ReleaseError.
func (b *Binary) Release() error {
	_, err := bitRelease.Call(background, b.o, nil)
	return err
}

// Releases returns Release, bound to the semaphore.
func (b *Binary) Releases() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(bitRelease, b.o)
}

// With holds the semaphore while it runs f, to which it hands ctx. If it cannot be
// acquired f does not run. It is also released if f panics or ends its goroutine. The
// error is that of Acquire or f.
func (b *Binary) With(ctx context.Context, f func(context.Context) error) error {
	if err := b.Acquire(ctx); err != nil {
		return err
	}
	return holding(ctx, f, b.Release)
}

// Held reports whether the semaphore is held.
func (b *Binary) Held() (bool, error) { return bitHeld.Call(background, b.o, nil) }

// Waiting returns how many requests wait to acquire it.
func (b *Binary) Waiting() int { return bitAcquire.Waiting(b.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (b *Binary) Object() activeobject.AnyObject { return b.o }
