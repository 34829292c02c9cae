package lock

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// burst is the state of a burst lock.
type burst struct {
	activeobject.Queues
	sample  int
	granted bool // the next one may pass, and all that wait then
	passing bool // a burst is on its way
}

func (b *burst) open() bool {
	return b.passing || b.granted || b.Waiting(request) >= b.sample
}

// request lets one pass. The first of a burst is sent to its end, as its last. Up to
// then nobody comes in, since those outside wait until those inside cannot start; so
// the burst are those who waited when it began.
func (b *burst) request(last bool) (none, error) {
	switch {
	case last:
		b.passing = false
	case !b.passing:
		b.granted = false
		if b.passing = b.Waiting(request) > 0; b.passing {
			return request.Requeue(true, activeobject.Commit)
		}
	}
	return none{}, nil
}

func (b *burst) grant() { b.granted = true }

var (
	bursts  = activeobject.NewType[burst]("burst lock")
	request *activeobject.Operation[burst, bool, none]
	grant   = activeobject.Procedure(bursts, "grant", activeobject.Do((*burst).grant))
)

func init() {
	request = activeobject.Entry(bursts, "request", (*burst).request).WhenWaiting("burst complete or granted", (*burst).open)
}

// Burst is a lock that is passed in bursts: as soon as a sample waits, all of it passes,
// and the lock is closed behind the last one. There is nothing to unlock. It is for
// short accesses that are cheaper together.
type Burst struct{ o *activeobject.Object[burst] }

// NewBurst makes a burst lock that lets pass so many at a time. It fails with
// *activeobject.ArgumentError if that is not at least one, and as activeobject.New
// does.
func NewBurst(system *actor.System, sampleSize int, options ...activeobject.Option) (*Burst, error) {
	if sampleSize < 1 {
		return nil, &activeobject.ArgumentError{Call: "lock.NewBurst", Argument: "sampleSize", Problem: fmt.Sprintf("is %d: there must be at least one", sampleSize)}
	}
	o, err := activeobject.New(system, bursts, &burst{sample: sampleSize}, options...)
	if err != nil {
		return nil, err
	}
	return &Burst{o}, nil
}

// Request waits until so many wait as are in a sample, or until a Grant, and passes with
// all of them. If ctx ends first it returns the context's error, and has not been in
// any burst.
func (b *Burst) Request(ctx context.Context) error {
	_, err := request.Call(ctx, b.o, false)
	return err
}

// TryRequest passes if there is a grant that nobody has used. Else it fails with an error
// that matches activeobject.ErrRefused. It completes no sample.
func (b *Burst) TryRequest(ctx context.Context) error {
	_, err := request.Try(ctx, b.o, false)
	return err
}

// SendRequest is Request as a future. It is one of those who wait.
func (b *Burst) SendRequest(ctx context.Context) activeobject.Future[none] {
	return request.Send(ctx, b.o, false)
}

// RequestCase is Request as a case for activeobject.Select.
func (b *Burst) RequestCase() *activeobject.Case[burst, bool, none] {
	return request.Case(b.o, false)
}

// Grant lets all pass that wait. If nobody does it is kept, once, for the next one to
// come, who then passes alone.
func (b *Burst) Grant() error {
	_, err := grant.Call(background, b.o, none{})
	return err
}

// SendGrant is Grant as a future.
func (b *Burst) SendGrant() activeobject.Future[none] { return grant.Send(background, b.o, none{}) }

// Waiting returns how many wait to pass.
func (b *Burst) Waiting() int { return request.Waiting(b.o) }

// Object returns the shared object, which can be explained, observed and stopped.
func (b *Burst) Object() *activeobject.Object[burst] { return b.o }
