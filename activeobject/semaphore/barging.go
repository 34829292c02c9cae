package semaphore

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
)

// A permit that is given to somebody who waits lies idle until he has woken up, and
// meanwhile whoever comes has to wait, and be woken, too: under contention every
// acquire then costs a switch of goroutines. So Acquire of a barging semaphore is not
// given permits while it waits. It is called, and comes back to look for itself; who
// runs already may be quicker.
//
// One is called at a time, since more would only find that they are too late. Nobody is
// forgotten by that: whoever was called does come back, whatever becomes of his
// context, and then the next one is called for whom there is enough.

// call says to a waiter that there may be enough for him.
func (p *permits) call(n caller) (none, error) {
	if !p.fits(int(n)) {
		return nil, p.misfit(int(n))
	}
	p.called = true
	return nil, nil
}

func (p *permits) calls(n caller) bool { return int(n) <= p.free && !p.called || int(n) > p.size }

// callsOne is calls of 1, which there always are: a guard over the state alone costs
// those who pass next to nothing, however many wait.
func (p *permits) callsOne() bool { return p.free > 0 && !p.called }

// back is take of one who has been called.
func (p *permits) back(c caller) (bool, error) {
	p.called = false
	return p.take(c)
}

// barge are the further operations of a barging semaphore.
type barge struct {
	back         *activeobject.Operation[permits, caller, bool]
	wait, forOne *activeobject.Operation[permits, caller, none]
}

func declareBarge(t *activeobject.Type[permits]) *barge {
	return &barge{
		back:   activeobject.Procedure(t, "come back", (*permits).back),
		wait:   activeobject.Entry(t, "wait", (*permits).call).WhenArg("enough free", (*permits).calls),
		forOne: activeobject.Entry(t, "wait for one", (*permits).call).When("one free", (*permits).callsOne),
	}
}

func (b *barge) acquire(ctx context.Context, s *Semaphore, n caller) error {
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

// waiting returns how many wait to be called.
func (b *barge) waiting(o *activeobject.Object[permits]) int {
	return b.wait.Waiting(o) + b.forOne.Waiting(o)
}
