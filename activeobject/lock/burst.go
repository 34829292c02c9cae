package lock

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// burst is the state of a burst lock. No body closes the lock: that a burst is over is
// seen from the counts, so a request that is withdrawn leaves nothing to be put right,
// and the order in which the requests of a burst start does not matter.
type burst struct {
	activeobject.Queues
	sample  int
	granted bool   // a grant is kept for the next request
	last    uint64 // the number of the latest request of the last burst, as Joined counts
}

// open is the guard of a request: the sample is complete, there is a grant, or the burst
// that has begun is still passing. While requests of a burst wait inside they can start, so
// no other request comes inside; the first one that does so has a greater number than the
// last of that burst. (A Try is evaluated without being counted: for it no burst is passing.)
func (b *burst) open() bool {
	waiting := b.Waiting(request)
	return b.granted || waiting >= b.sample || waiting > 0 && b.Joined(request) == b.last
}

// pass is the body of a request. The first one of a burst begins it: the burst
// is all that wait inside. For the others of the burst the body changes nothing.
func (b *burst) pass() { b.granted, b.last = false, b.Joined(request) }

func (b *burst) grant() { b.granted = true }

var (
	bursts  = activeobject.NewType[burst]("burst lock")
	request *activeobject.Operation[burst, none, none] // its guard and its body name it
	grant   = activeobject.Procedure(bursts, "grant", activeobject.Plain((*burst).grant))
)

func init() {
	request = activeobject.Entry(bursts, "request", activeobject.Plain((*burst).pass)).WhenWaiting("burst complete or granted", (*burst).open)
}

// Burst is a lock that is passed in bursts: as soon as a sample waits, all of it passes,
// and the lock is closed behind the last one. There is nothing to unlock. It is for
// short accesses that are cheaper together.
type Burst struct{ o *activeobject.Object[burst] }

// NewBurst makes a burst lock that lets pass so many at a time. It fails with
// *activeobject.ArgumentError if that is not at least one, or the options let fewer wait,
// and as activeobject.New does.
func NewBurst(system *actor.System, sampleSize int, options ...activeobject.Option) (*Burst, error) {
	if sampleSize < 1 {
		return nil, &activeobject.ArgumentError{Call: "lock.NewBurst", Argument: "sampleSize", Problem: fmt.Sprintf("is %d: there must be at least one", sampleSize)}
	}
	o, err := activeobject.NewFrom(system, bursts, func() (*burst, error) { return &burst{sample: sampleSize}, nil }, options...)
	if err != nil {
		return nil, err
	}
	if n, _, bounded := o.Bound(); bounded && n < sampleSize {
		o.Stop()
		return nil, &activeobject.ArgumentError{Call: "lock.NewBurst", Argument: "options", Problem: fmt.Sprintf("let no more than %d requests wait, so that a sample of %d never does: leave out Bounded, or give it room for all of them", n, sampleSize)}
	}
	return &Burst{o}, nil
}

// Request waits until as many wait as are in a sample, or until a Grant, and passes with
// all of them. If ctx ends first it returns the context's error, and has not been in
// any burst.
func (b *Burst) Request(ctx context.Context) error {
	_, err := request.Call(ctx, b.o, nil)
	return err
}

// Requests returns Request, bound to the lock. A Try passes if there is an unused grant, and
// completes no sample; all else waits, and is of the sample.
func (b *Burst) Requests() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(request, b.o)
}

// Grant lets all requests pass that wait. If none does it is kept, once, for the next one to
// come, which then passes alone.
func (b *Burst) Grant() error {
	_, err := grant.Call(background, b.o, nil)
	return err
}

// Grants returns Grant, bound to the lock.
func (b *Burst) Grants() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(grant, b.o)
}

// Waiting returns how many requests wait to pass.
func (b *Burst) Waiting() int { return request.Waiting(b.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (b *Burst) Object() activeobject.AnyObject { return b.o }
