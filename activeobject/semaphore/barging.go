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

// caller is the argument of the steps of an acquire: the number of permits that it is for. A
// caller that has been called has to come back, and only then; so it is a type that no other
// package can make, and no message can name such a step.
type caller int

// call says to a waiter that there may be enough for him.
func (p *permits) call(n caller) (none, error) {
	if !p.fits(int(n)) {
		return none{}, p.misfit("Acquire", int(n))
	}
	p.called = true
	return none{}, nil
}

func (p *permits) calls(n caller) bool { return int(n) <= p.free && !p.called || int(n) > p.most() }

// callsOne is calls of 1, which there always are: a guard over the state alone costs
// those who pass next to nothing, however many wait.
func (p *permits) callsOne() bool { return p.free > 0 && !p.called }

// take acquires n permits if they are there, and reports whether they are.
func (p *permits) take(c caller) (bool, error) {
	n := int(c)
	switch {
	case !p.fits(n):
		return false, p.misfit("Acquire", n)
	case n > p.free:
		return false, nil
	}
	p.free -= n
	return true, nil
}

// back is take of one who has been called.
func (p *permits) back(c caller) (bool, error) {
	p.called = false
	return p.take(c)
}

// barge are the further operations of a barging semaphore.
type barge struct {
	take, back   *activeobject.Operation[permits, caller, bool]
	wait, forOne *activeobject.Operation[permits, caller, none]
}

func declareBarge(t *activeobject.Type[permits]) *barge {
	return &barge{
		take:   activeobject.Procedure(t, "take", (*permits).take),
		back:   activeobject.Procedure(t, "come back", (*permits).back),
		wait:   activeobject.Entry(t, "wait", (*permits).call).WhenArg("enough free", (*permits).calls),
		forOne: activeobject.Entry(t, "wait for one", (*permits).call).When("one free", (*permits).callsOne),
	}
}

func (b *barge) acquire(ctx context.Context, o *activeobject.Object[permits], n int) error {
	got, err := b.take.Call(ctx, o, caller(n))
	for !got && err == nil {
		wait := b.wait
		if n == 1 {
			wait = b.forOne
		}
		if _, err = wait.Call(ctx, o, caller(n)); err == nil {
			got, err = b.back.Call(background, o, caller(n))
		}
	}
	return err
}

// waiting returns how many wait to be called.
func (b *barge) waiting(o *activeobject.Object[permits]) int {
	return b.wait.Waiting(o) + b.forOne.Waiting(o)
}
