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
	bitRelease = activeobject.Procedure(bits, "release", func(b *bit, _ none) (none, error) { return nil, b.release() })
	bitHeld    = activeobject.Function(bits, "held", activeobject.Result(func(b *bit) bool { return b.locked }))
)

// Binary is a semaphore of one permit, which one caller at a time holds.
type Binary struct{ o *activeobject.Object[bit] }

// NewBinary makes a binary semaphore that nobody holds. It is fair. It fails as
// activeobject.New does.
func NewBinary(system *actor.System, options ...activeobject.Option) (*Binary, error) {
	o, err := activeobject.NewFrom(system, bits, func() (*bit, error) { return &bit{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Binary{o}, nil
}

// Acquire waits until nobody holds the semaphore, and holds it. If ctx ends first it
// returns the context's error, and has acquired nothing.
func (b *Binary) Acquire(ctx context.Context) error {
	_, err := bitAcquire.Call(ctx, b.o, nil)
	return err
}

// TryAcquire is Acquire without waiting for anybody: if somebody holds the semaphore
// it fails with an error that matches activeobject.ErrRefused.
func (b *Binary) TryAcquire(ctx context.Context) error {
	_, err := bitAcquire.Try(ctx, b.o, nil)
	return err
}

// SendAcquire is Acquire as a future. Who withdraws it, or ends ctx, before it is there
// has acquired nothing.
func (b *Binary) SendAcquire(ctx context.Context) activeobject.Future[none] {
	return bitAcquire.Send(ctx, b.o, nil)
}

// AcquireCase is Acquire as a case for activeobject.Select.
func (b *Binary) AcquireCase() *activeobject.Case[none] {
	return bitAcquire.Case(b.o, nil)
}

// Release gives the semaphore back. If nobody holds it that is a *ReleaseError.
func (b *Binary) Release() error {
	_, err := bitRelease.Call(background, b.o, nil)
	return err
}

// SendRelease is Release as a future.
func (b *Binary) SendRelease() activeobject.Future[none] {
	return bitRelease.Send(background, b.o, nil)
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

// Held reports whether somebody holds the semaphore.
func (b *Binary) Held() (bool, error) { return bitHeld.Call(background, b.o, nil) }

// SendHeld is Held as a future.
func (b *Binary) SendHeld() activeobject.Future[bool] { return bitHeld.Send(background, b.o, nil) }

// Waiting returns how many wait to acquire it.
func (b *Binary) Waiting() int { return bitAcquire.Waiting(b.o) }

// Object returns the shared object, which can be explained, observed and stopped.
func (b *Binary) Object() *activeobject.Object[bit] { return b.o }
