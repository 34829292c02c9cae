package barrier

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// latch is the state.
type latch struct {
	activeobject.Queues
	left int
}

// CountDown counts one of the events, and no more than there are.
func (l *latch) CountDown() (none, error) {
	if l.left == 0 {
		return nil, &MisuseError{Barrier: l.ObjectName(), Operation: "count down", Problem: "it is open already: there are more events than it was made for"}
	}
	l.left--
	return nil, nil
}

// Open is the guard of Await. Once it holds it holds for good.
func (l *latch) Open() bool { return l.left == 0 }

// Pass is its body. It changes nothing, so that all that wait start by one decision.
func (l *latch) Pass() {}

// Count returns how many events are left.
func (l *latch) Count() int { return l.left }

var (
	latches        = activeobject.NewType[latch]("latch")
	latchCountDown = activeobject.Procedure(latches, "count down", activeobject.ResultError((*latch).CountDown))
	latchAwait     = activeobject.Function(latches, "await", activeobject.Plain((*latch).Pass)).When("counted down", (*latch).Open)
	latchCount     = activeobject.Function(latches, "count", activeobject.Result((*latch).Count))
)

// Latch is a countdown: Await waits until so many events have been counted. Then it
// is open for good.
type Latch struct{ o *activeobject.Object[latch] }

// NewLatch returns a latch that opens after so many calls of CountDown. It fails with
// *activeobject.ArgumentError if the count is less than one, or as activeobject.New
// does.
func NewLatch(system *actor.System, count int, options ...activeobject.Option) (*Latch, error) {
	if err := atLeastOne("barrier.NewLatch", "count", count); err != nil {
		return nil, err
	}
	o, err := activeobject.NewFrom(system, latches, func() (*latch, error) { return &latch{left: count}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &Latch{o}, nil
}

// CountDown counts an event. Once the latch is open it fails with *MisuseError: there
// are more events than was said. (The latch of java.util.concurrent ignores that.)
func (l *Latch) CountDown() error {
	_, err := latchCountDown.Call(context.Background(), l.o, nil)
	return err
}

// CountDowns returns CountDown, bound to the latch.
func (l *Latch) CountDowns() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(latchCountDown, l.o)
}

// Await waits until the latch is open.
func (l *Latch) Await(ctx context.Context) error {
	_, err := latchAwait.Call(ctx, l.o, nil)
	return err
}

// Awaits returns Await, bound to the latch.
func (l *Latch) Awaits() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(latchAwait, l.o)
}

// Count returns how many events are still to come.
func (l *Latch) Count() (int, error) {
	return latchCount.Call(context.Background(), l.o, nil)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (l *Latch) Object() activeobject.AnyObject { return l.o }
