package semaphore

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// permits is the state of a counting semaphore.
type permits struct {
	activeobject.Queues
	size   int
	free   int  // may be negative after a resize
	called bool // an acquire has been called, and is about to look once more: see barge
}

func (p *permits) held() int { return p.size - p.free }

// available returns how many permits are free.
func (p *permits) available() int { return max(p.free, 0) }

// enough is the guard of an acquire. It also holds for an acquire that is to fail.
func (p *permits) enough(n int) bool { return n <= p.free || !p.fits(n) }

// fits reports whether it makes sense to wait for n permits.
func (p *permits) fits(n int) bool { return n > 0 && n <= p.size }

// misfit returns the error of a request for n that does not fit.
func (p *permits) misfit(n int) error {
	if n < 1 {
		return atLeastOne("Acquire", "n", n)
	}
	return &SizeError{Semaphore: p.ObjectName(), Permits: n, Size: p.size}
}

// acquire takes n permits that are free.
func (p *permits) acquire(n int) (none, error) {
	if !p.fits(n) {
		return nil, p.misfit(n)
	}
	p.free -= n
	return nil, nil
}

// take is acquire if there are enough permits, and reports whether there are.
func (p *permits) take(n step) (bool, error) {
	if !p.enough(int(n)) {
		return false, nil
	}
	_, err := p.acquire(int(n))
	return err == nil, err
}

func (p *permits) release(n int) (none, error) {
	switch held := p.held(); {
	case n < 1:
		return nil, atLeastOne("Release", "n", n)
	case n > held:
		return nil, &ReleaseError{Semaphore: p.ObjectName(), Permits: n, Held: held}
	}
	p.free += n
	return nil, nil
}

func (p *permits) resize(n int) error {
	if n < 1 {
		return atLeastOne("Resize", "n", n)
	}
	p.free += n - p.size
	p.size = n
	return nil
}

func (p *permits) drain() int {
	n := p.available()
	p.free -= n
	return n
}

// step is the argument of the steps of an acquire: the number of permits that it is for. The
// steps make sense only in their order. No other package can make a step, so no message can name
// the operations.
type step int

// operations are those of one kind of semaphore. An acquire is the operation "acquire in line".
//
// Of the requests that wait at a fair semaphore only the guard of the first is evaluated. So one
// that may be too large is first looked at by a body: by take for Acquire, which then waits in
// line; by acquire for a message, which then requeues it. One permit always fits.
type operations struct {
	typ                          *activeobject.Type[permits]
	wait                         *activeobject.Operation[permits, int, none]
	take                         *activeobject.Operation[permits, step, bool]
	acquire, release, resize     *activeobject.Operation[permits, int, none]
	drain, available, held, size *activeobject.Operation[permits, none, int]
	barge                        *barge // nil at a fair semaphore
}

func declare(name string, barges bool) *operations {
	t := activeobject.NewType[permits](name)
	o := &operations{typ: t}
	take := (*permits).take
	if !barges {
		take = func(p *permits, n step) (bool, error) {
			if p.fits(int(n)) && p.Waiting(o.wait) > 0 {
				return false, nil
			}
			return p.take(n)
		}
	}
	o.acquire = activeobject.Procedure(t, "acquire", func(p *permits, n int) (none, error) {
		if taken, err := take(p, step(n)); taken || err != nil {
			return nil, err
		}
		return o.wait.Requeue(n, activeobject.KeepPlace)
	})
	o.wait = activeobject.Entry(t, "acquire in line", (*permits).acquire).WhenArg("enough free", (*permits).enough)
	o.take = activeobject.Procedure(t, "take", take)
	if barges {
		o.barge = declareBarge(t)
	} else {
		o.wait.HeadOfLine()
	}
	o.release = activeobject.Procedure(t, "release", (*permits).release)
	o.resize = activeobject.Procedure(t, "resize", activeobject.ArgError((*permits).resize))
	o.drain = activeobject.Procedure(t, "drain", activeobject.Result((*permits).drain))
	o.available = activeobject.Function(t, "available", activeobject.Result((*permits).available))
	o.held = activeobject.Function(t, "held", activeobject.Result((*permits).held))
	o.size = activeobject.Function(t, "size", activeobject.Result(func(p *permits) int { return p.size }))
	return o
}

var (
	fair    = declare("semaphore", false)
	barging = declare("barging semaphore", true)
)

// Semaphore is a semaphore of any number of permits, of which a caller acquires as many
// at once as it needs. All its methods may be called from any goroutine.
type Semaphore struct {
	o   *activeobject.Object[permits]
	ops *operations
}

// New makes a fair semaphore of so many permits, all of them free: first come first
// served, and a large acquire that waits is not passed. With the size fixed, it is
// golang.org/x/sync/semaphore.
//
// It fails with *activeobject.ArgumentError if there is not at least one, and as
// activeobject.New does.
func New(system *actor.System, permits int, options ...activeobject.Option) (*Semaphore, error) {
	return build("New", fair, system, permits, options)
}

// NewBarging makes a semaphore in which an acquire that fits passes one that does not, and one
// that comes may be quicker than one that waits. So any of them may wait for ever, above all for
// many permits; but under contention it is several times as fast. Otherwise it is like New.
//
// (It is no option of New: it has other operations, and an activeobject.Option adjusts an object
// whose operations are declared.)
func NewBarging(system *actor.System, permits int, options ...activeobject.Option) (*Semaphore, error) {
	return build("NewBarging", barging, system, permits, options)
}

func build(call string, ops *operations, system *actor.System, n int, options []activeobject.Option) (*Semaphore, error) {
	if err := atLeastOne(call, "permits", n); err != nil {
		return nil, err
	}
	o, err := activeobject.NewFrom(system, ops.typ, func() (*permits, error) { return &permits{size: n, free: n}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Semaphore{o, ops}, nil
}

// Acquire waits until there are n permits for it, and takes them in one step: it never
// holds some and waits for the rest. If ctx ends first it returns the context's error
// and has taken nothing. If the semaphore has fewer than n permits, or gets to have
// while Acquire waits, that is a *SizeError.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	if err := atLeastOne("Acquire", "n", n); err != nil {
		return err
	}
	if b := s.ops.barge; b != nil {
		return b.acquire(ctx, s, step(n))
	}
	if n > 1 {
		if taken, err := s.ops.take.Call(ctx, s.o, step(n)); taken || err != nil {
			return err
		}
	}
	_, err := s.ops.wait.Call(ctx, s.o, n)
	return err
}

// Acquires returns acquire, bound to the semaphore. It is Acquire in one step: at a fair semaphore
// a number that is too large fails when it is first in line, not at once; and a barging one
// gives the permits to the request at the release, instead of calling its goroutine to compete
// for them.
func (s *Semaphore) Acquires() activeobject.LocalProxy[int, activeobject.None] {
	return activeobject.At(s.ops.wait, s.o)
}

// Release gives n permits back. If fewer are held, by all callers together, that is a
// *ReleaseError, and nothing has changed.
func (s *Semaphore) Release(n int) error {
	_, err := s.ops.release.Call(background, s.o, n)
	return err
}

// Releases returns Release, bound to the semaphore.
func (s *Semaphore) Releases() activeobject.LocalProxy[int, activeobject.None] {
	return activeobject.At(s.ops.release, s.o)
}

// Resize gives the semaphore n permits. More may be held than that: then no acquire is
// admitted until enough have come back. Requests that wait for more than n fail with a
// *SizeError, at a fair semaphore when they are first in line.
func (s *Semaphore) Resize(n int) error {
	_, err := s.ops.resize.Call(background, s.o, n)
	return err
}

// Resizes returns Resize, bound to the semaphore.
func (s *Semaphore) Resizes() activeobject.LocalProxy[int, activeobject.None] {
	return activeobject.At(s.ops.resize, s.o)
}

// Drain acquires all permits that are free at this moment, whatever waits, and returns
// how many: possibly none. They are to be released like others.
func (s *Semaphore) Drain() (int, error) { return s.ops.drain.Call(background, s.o, nil) }

// Drains returns Drain, bound to the semaphore.
func (s *Semaphore) Drains() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(s.ops.drain, s.o)
}

// With holds n permits while it runs f, to which it hands ctx. If they cannot be
// acquired f does not run. They are also released if f panics or ends its goroutine. The
// error is that of Acquire or f.
func (s *Semaphore) With(ctx context.Context, n int, f func(context.Context) error) error {
	if err := s.Acquire(ctx, n); err != nil {
		return err
	}
	return holding(ctx, f, func() error { return s.Release(n) })
}

// Available returns how many permits are free. After a Resize to less than are held it is 0, not
// negative, until enough have come back: Held is greater than Size meanwhile.
func (s *Semaphore) Available() (int, error) { return s.ops.available.Call(background, s.o, nil) }

// Held returns how many permits are held.
func (s *Semaphore) Held() (int, error) { return s.ops.held.Call(background, s.o, nil) }

// Size returns how many permits there are, free and held.
func (s *Semaphore) Size() (int, error) { return s.ops.size.Call(background, s.o, nil) }

// Waiting returns how many requests wait to acquire permits.
func (s *Semaphore) Waiting() int {
	n := s.ops.wait.Waiting(s.o) + s.ops.acquire.Waiting(s.o)
	if s.ops.barge != nil {
		n += s.ops.barge.waiting(s.o)
	}
	return n
}

// Object returns the shared object, to explain, observe, address or stop it.
func (s *Semaphore) Object() activeobject.AnyObject { return s.o }
