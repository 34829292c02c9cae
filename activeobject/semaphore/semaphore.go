package semaphore

import (
	"context"
	"sync/atomic"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// permits is the state of a counting semaphore.
type permits struct {
	activeobject.Queues
	size   atomic.Int64 // changed by bodies only; clients look at it, too
	free   int          // less than none, maybe, after a resize
	called bool         // somebody is on his way to look once more: see barge
}

func (p *permits) most() int { return int(p.size.Load()) }
func (p *permits) held() int { return p.most() - p.free }

// available returns how many are free.
func (p *permits) available() int { return max(p.free, 0) }

// enough is open for all that need not wait, those included that are to fail.
func (p *permits) enough(n int) bool { return n <= p.free || !p.fits(n) }

// fits reports whether it makes sense to wait for n.
func (p *permits) fits(n int) bool { return n > 0 && n <= p.most() }

// misfit returns the error of who asks for n, unless they fit after all: to a client the
// size may have changed since he looked.
func (p *permits) misfit(call string, n int) error {
	if n < 1 {
		return atLeastOne(call, "n", n)
	}
	if size := p.most(); n > size {
		return &SizeError{Semaphore: p.ObjectName(), Permits: n, Size: size}
	}
	return nil
}

func (p *permits) acquire(n int) (none, error) {
	if !p.fits(n) {
		return none{}, p.misfit("Acquire", n)
	}
	p.free -= n
	return none{}, nil
}

func (p *permits) release(n int) (none, error) {
	switch held := p.held(); {
	case n < 1:
		return none{}, atLeastOne("Release", "n", n)
	case n > held:
		return none{}, &ReleaseError{Semaphore: p.ObjectName(), Permits: n, Held: held}
	}
	p.free += n
	return none{}, nil
}

func (p *permits) resize(n int) (none, error) {
	if n < 1 {
		return none{}, atLeastOne("Resize", "n", n)
	}
	p.free += n - p.most()
	p.size.Store(int64(n))
	return none{}, nil
}

func (p *permits) drain() int {
	n := p.available()
	p.free -= n
	return n
}

// operations are those of one kind of semaphore.
type operations struct {
	typ                      *activeobject.Type[permits]
	acquire, release, resize *activeobject.Operation[permits, int, none]
	drain, available, held   *activeobject.Operation[permits, none, int]
	barge                    *barge // nil of fair ones
}

func declare(name string) *operations {
	t := activeobject.NewType[permits](name)
	return &operations{
		typ:       t,
		acquire:   activeobject.Entry(t, "acquire", (*permits).acquire).WhenArg("enough free", (*permits).enough),
		release:   activeobject.Procedure(t, "release", (*permits).release),
		resize:    activeobject.Procedure(t, "resize", (*permits).resize),
		drain:     activeobject.Procedure(t, "drain", activeobject.Get((*permits).drain)),
		available: activeobject.Function(t, "available", activeobject.Get((*permits).available)),
		held:      activeobject.Function(t, "held", activeobject.Get((*permits).held)),
	}
}

var fair, barging *operations

func init() {
	fair, barging = declare("semaphore"), declare("barging semaphore")
	fair.acquire.HeadOfLine()
	barging.barge = declareBarge(barging.typ)
}

// Semaphore is a semaphore of any number of permits, of which a caller acquires as many
// at once as he wants. All its methods may be called from any goroutine.
type Semaphore struct {
	o     *activeobject.Object[permits]
	ops   *operations
	state *permits // of which no more than the size is looked at
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
	state := &permits{free: n}
	state.size.Store(int64(n))
	o, err := activeobject.New(system, ops.typ, state, options...)
	if err != nil {
		return nil, err
	}
	return &Semaphore{o, ops, state}, nil
}

// check returns an error if an acquire makes no sense. Bodies look, too: a request may
// have been overtaken by a resize. But one that stands in a line is not asked before it is
// first, and should not have to wait to be told.
func (s *Semaphore) check(call string, n int) error {
	if s.state.fits(n) {
		return nil
	}
	return s.state.misfit(call, n)
}

// Acquire waits until there are n permits for it, and takes them in one step: nobody
// holds some and waits for the rest. If ctx ends first it returns the context's error
// and has taken nothing. If the semaphore has fewer than n permits, or gets to have
// while Acquire waits, that is a *SizeError.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	if err := s.check("Acquire", n); err != nil {
		return err
	}
	if b := s.ops.barge; b != nil {
		return b.acquire(ctx, s.o, n)
	}
	_, err := s.ops.acquire.Call(ctx, s.o, n)
	return err
}

// TryAcquire is Acquire without waiting: if there are not n permits for it, or somebody
// is before it, it fails with an error that matches activeobject.ErrRefused and says
// which.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	if err := s.check("TryAcquire", n); err != nil {
		return err
	}
	_, err := s.ops.acquire.Try(ctx, s.o, n)
	return err
}

// SendAcquire is Acquire as a future. Who withdraws it, or ends ctx, before it is there
// has acquired nothing. A barging semaphore gives it its permits at the release, since
// there is nobody to look for himself; so does AcquireCase.
func (s *Semaphore) SendAcquire(ctx context.Context, n int) activeobject.Future[none] {
	if err := s.check("SendAcquire", n); err != nil {
		return actor.Settled(none{}, err)
	}
	return s.ops.acquire.Send(ctx, s.o, n)
}

// AcquireCase is Acquire as a case for activeobject.Select.
func (s *Semaphore) AcquireCase(n int) *activeobject.Case[permits, int, none] {
	return s.ops.acquire.Case(s.o, n)
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
func (s *Semaphore) Drain() (int, error) { return s.ops.drain.Call(background, s.o, none{}) }

// SendDrain is Drain as a future.
func (s *Semaphore) SendDrain() activeobject.Future[int] {
	return s.ops.drain.Send(background, s.o, none{})
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

// Available returns how many permits are free.
func (s *Semaphore) Available() (int, error) { return s.ops.available.Call(background, s.o, none{}) }

// Held returns how many permits are held.
func (s *Semaphore) Held() (int, error) { return s.ops.held.Call(background, s.o, none{}) }

// Size returns how many permits there are.
func (s *Semaphore) Size() int { return s.state.most() }

// Waiting returns how many wait to acquire some.
func (s *Semaphore) Waiting() int {
	n := s.ops.acquire.Waiting(s.o)
	if s.ops.barge != nil {
		n += s.ops.barge.waiting(s.o)
	}
	return n
}

// Object returns the shared object, which can be explained, observed and stopped.
func (s *Semaphore) Object() *activeobject.Object[permits] { return s.o }
