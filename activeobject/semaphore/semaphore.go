package semaphore

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// permits is the state of a counting semaphore.
type permits struct {
	activeobject.Queues
	size   int
	free   int  // negative, maybe, after a resize
	called bool // a caller is on its way to look once more: see barge
}

func (p *permits) held() int { return p.size - p.free }

// available returns how many are free.
func (p *permits) available() int { return max(p.free, 0) }

// enough is open for all that need not wait, those included that are to fail.
func (p *permits) enough(c caller) bool { return int(c) <= p.free || !p.fits(int(c)) }

// fits reports whether it makes sense to wait for n.
func (p *permits) fits(n int) bool { return n > 0 && n <= p.size }

// misfit returns the error of a request for n that does not fit.
func (p *permits) misfit(n int) error {
	if n < 1 {
		return atLeastOne("Acquire", "n", n)
	}
	return p.tooLarge(n)
}

func (p *permits) tooLarge(n int) error {
	return &SizeError{Semaphore: p.ObjectName(), Permits: n, Size: p.size}
}

// acquire takes n permits that are free.
func (p *permits) acquire(c caller) (none, error) {
	if !p.fits(int(c)) {
		return nil, p.misfit(int(c))
	}
	p.free -= int(c)
	return nil, nil
}

// take is acquire if there are enough, and reports whether there are.
func (p *permits) take(c caller) (bool, error) {
	if !p.enough(c) {
		return false, nil
	}
	_, err := p.acquire(c)
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

func (p *permits) resize(n int) (none, error) {
	if n < 1 {
		return nil, atLeastOne("Resize", "n", n)
	}
	p.free += n - p.size
	p.size = n
	return nil, nil
}

func (p *permits) drain() int {
	n := p.available()
	p.free -= n
	return n
}

// operations are those of one kind of semaphore.
//
// Of those that wait in a fair semaphore only the first one is asked about. So a request for
// more than one permit, which may be too large, is looked at by a body before it waits: by
// acquire, which then requeues it, or by take, whose caller then waits. One permit always fits.
type operations struct {
	typ                          *activeobject.Type[permits]
	wait                         *activeobject.Operation[permits, caller, none]
	take                         *activeobject.Operation[permits, caller, bool]
	acquire, release, resize     *activeobject.Operation[permits, int, none]
	drain, available, held, size *activeobject.Operation[permits, none, int]
	barge                        *barge // nil of fair ones
}

// caller is the argument of the steps of an acquire: the number of permits that it is for. The
// steps make sense only in their order, so it is a type that no other package can make, and no
// message can name them.
type caller int

func declare(name string, barges bool) *operations {
	t := activeobject.NewType[permits](name)
	o := &operations{typ: t}
	o.wait = activeobject.Entry(t, "acquire in line", (*permits).acquire).WhenArg("enough free", (*permits).enough)
	take := (*permits).take
	if barges {
		o.barge = declareBarge(t)
	} else {
		o.wait.HeadOfLine()
		take = func(p *permits, c caller) (bool, error) {
			if p.fits(int(c)) && p.Waiting(o.wait) > 0 {
				return false, nil
			}
			return p.take(c)
		}
	}
	o.take = activeobject.Procedure(t, "take", take)
	o.acquire = activeobject.Procedure(t, "acquire", func(p *permits, n int) (none, error) {
		if taken, err := take(p, caller(n)); taken || err != nil {
			return nil, err
		}
		return o.wait.Requeue(caller(n), activeobject.KeepPlace)
	})
	o.release = activeobject.Procedure(t, "release", (*permits).release)
	o.resize = activeobject.Procedure(t, "resize", (*permits).resize)
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
// at once as he wants. All its methods may be called from any goroutine.
type Semaphore struct {
	o   *activeobject.Object[permits]
	ops *operations
}

// New makes a fair semaphore of so many permits, all of them free: first come first
// served, and nobody passes a large acquire that waits. With the size fixed, it is
// golang.org/x/sync/semaphore.
//
// It fails with *activeobject.ArgumentError if there is not at least one, and as
// activeobject.New does.
func New(system *actor.System, permits int, options ...activeobject.Option) (*Semaphore, error) {
	return build("New", fair, system, permits, options)
}

// NewBarging makes a semaphore in which who fits passes who does not, and who comes may
// be quicker than who waits. So anybody may wait for ever, above all for many permits;
// but under contention it is several times as fast. Otherwise it is like New.
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

// Acquire waits until there are n permits for it, and takes them in one step: nobody
// holds some and waits for the rest. If ctx ends first it returns the context's error
// and has taken nothing. If the semaphore has fewer than n permits, or gets to have
// while Acquire waits, that is a *SizeError.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	if err := atLeastOne("Acquire", "n", n); err != nil {
		return err
	}
	if b := s.ops.barge; b != nil {
		return b.acquire(ctx, s, caller(n))
	}
	if n > 1 {
		if taken, err := s.ops.take.Call(ctx, s.o, caller(n)); taken || err != nil {
			return err
		}
	}
	_, err := s.ops.wait.Call(ctx, s.o, caller(n))
	return err
}

// TryAcquire is Acquire without waiting: if there are not n permits for it, or another
// request comes first, it fails with an error that matches activeobject.ErrRefused and says
// which.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	if err := atLeastOne("TryAcquire", "n", n); err != nil {
		return err
	}
	_, err := s.ops.wait.Try(ctx, s.o, caller(n))
	if n > 1 && errors.Is(err, activeobject.ErrRefused) { // maybe behind others, so that nothing has looked at n
		if size, e := s.ops.size.Call(ctx, s.o, nil); e == nil && n > size {
			return &SizeError{Semaphore: s.o.Name(), Permits: n, Size: size}
		}
	}
	return err
}

// SendAcquire is Acquire as a future. If it is withdrawn, or ctx ends, before it is there
// it has acquired nothing. A barging semaphore gives it its permits at the release, since
// no goroutine could look for itself; likewise with AcquireCase.
//
// A request for several permits is looked at, and then waits in a second turn; the error of
// one that fails there is an *activeobject.RequeuedError around the cause.
func (s *Semaphore) SendAcquire(ctx context.Context, n int) activeobject.Future[none] {
	if err := atLeastOne("SendAcquire", "n", n); err != nil {
		return actor.Settled[none](nil, err)
	}
	if n == 1 {
		return s.ops.wait.Send(ctx, s.o, 1)
	}
	return s.ops.acquire.Send(ctx, s.o, n)
}

// AcquireCase is Acquire as a case for activeobject.Select. One that is too large fails when
// it is first in line.
func (s *Semaphore) AcquireCase(n int) *activeobject.Case[none] {
	return s.ops.wait.Case(s.o, caller(n))
}

// Release gives n permits back. If fewer are held, by all callers together, that is a
// *ReleaseError, and nothing has changed.
func (s *Semaphore) Release(n int) error {
	_, err := s.ops.release.Call(background, s.o, n)
	return err
}

// SendRelease is Release as a future.
func (s *Semaphore) SendRelease(n int) activeobject.Future[none] {
	return s.ops.release.Send(background, s.o, n)
}

// Resize gives the semaphore n permits. More may be held than that: then nobody is
// admitted until enough have come back. Those who wait for more than n fail with a
// *SizeError, in a fair semaphore when they are first in line.
func (s *Semaphore) Resize(n int) error {
	_, err := s.ops.resize.Call(background, s.o, n)
	return err
}

// SendResize is Resize as a future.
func (s *Semaphore) SendResize(n int) activeobject.Future[none] {
	return s.ops.resize.Send(background, s.o, n)
}

// Drain acquires all permits that are free at this moment, whoever waits, and returns
// how many: none, maybe. They are to be released like others.
func (s *Semaphore) Drain() (int, error) { return s.ops.drain.Call(background, s.o, nil) }

// SendDrain is Drain as a future.
func (s *Semaphore) SendDrain() activeobject.Future[int] {
	return s.ops.drain.Send(background, s.o, nil)
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

// SendAvailable is Available as a future.
func (s *Semaphore) SendAvailable() activeobject.Future[int] {
	return s.ops.available.Send(background, s.o, nil)
}

// Held returns how many permits are held.
func (s *Semaphore) Held() (int, error) { return s.ops.held.Call(background, s.o, nil) }

// SendHeld is Held as a future.
func (s *Semaphore) SendHeld() activeobject.Future[int] {
	return s.ops.held.Send(background, s.o, nil)
}

// Size returns how many permits there are, free and held.
func (s *Semaphore) Size() (int, error) { return s.ops.size.Call(background, s.o, nil) }

// SendSize is Size as a future.
func (s *Semaphore) SendSize() activeobject.Future[int] {
	return s.ops.size.Send(background, s.o, nil)
}

// Waiting returns how many wait to acquire some.
func (s *Semaphore) Waiting() int {
	n := s.ops.wait.Waiting(s.o) + s.ops.acquire.Waiting(s.o)
	if s.ops.barge != nil {
		n += s.ops.barge.waiting(s.o)
	}
	return n
}

// Object returns the shared object, which can be explained, observed and stopped.
func (s *Semaphore) Object() *activeobject.Object[permits] { return s.o }
