package semaphore

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
)

// A permit that is given to an acquire that waits lies idle until its goroutine has woken up, and
// meanwhile every acquire that comes has to wait, and be woken, too: under contention each
// then costs a switch of goroutines. So Acquire of a barging semaphore is not
// given permits while it waits. It is called, and comes back to compete for them; a goroutine that
// runs already may be quicker.
//
// One is called at a time, since more would only find that they are too late. None is
// forgotten by that: an acquire that was called does come back, whatever becomes of its
// context, and then the next one is called for which there is enough.

// call tells an acquire that waits that there may be enough for it.
func (p *permits) call(n step) (none, error) {
	if !p.fits(int(n)) {
		return nil, p.misfit(int(n))
	}
	p.called = true
	return nil, nil
}

func (p *permits) calls(n step) bool { return int(n) <= p.free && !p.called || int(n) > p.size }

// callsOne is calls of 1, which there always are: a guard over the state alone costs
// requests that pass next to nothing, however many wait.
func (p *permits) callsOne() bool { return p.free > 0 && !p.called }

// back is take by an acquire that has been called.
func (p *permits) back(n step) (bool, error) {
	p.called = false
	return p.take(n)
}

// barge are the further operations of a barging semaphore.
type barge struct {
	back         *activeobject.Operation[permits, step, bool]
	wait, forOne *activeobject.Operation[permits, step, none]
}

func declareBarge(t *activeobject.Type[permits]) *barge {
	return &barge{
		back:   activeobject.Procedure(t, "come back", (*permits).back),
		wait:   activeobject.Entry(t, "wait", (*permits).call).WhenArg("enough free", (*permits).calls),
		forOne: activeobject.Entry(t, "wait for one", (*permits).call).When("one free", (*permits).callsOne),
	}
}

func (b *barge) acquire(ctx context.Context, s *Semaphore, n step) error {
	got, err := s.ops.take.Call(ctx, s.o, n)
	for !got && err == nil {
		wait := b.wait
		if n == 1 {
			wait = b.forOne
		}
		if _, err = wait.Call(ctx, s.o, n); err == nil {
			got, err = b.back.Call(background, s.o, n)
		}
	}
	return err
}

// waiting returns how many acquires wait to be called.
func (b *barge) waiting(o *activeobject.Object[permits]) int {
	return b.wait.Waiting(o) + b.forOne.Waiting(o)
}
