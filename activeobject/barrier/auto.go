package barrier

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// auto is the state; what is said of that of a Squad holds here as well.
type auto struct {
	activeobject.Queues
	trigger int
	open    bool
	gone    int // through the open gate
}

// HerdIsHere is the guard of the leader, which opens the gate.
func (a *auto) HerdIsHere() bool { return !a.open && a.Waiting(autoWaitForLeader) >= a.trigger }

// WaitForHerd opens the gate, and stays to close it.
func (a *auto) WaitForHerd() (int, error) {
	a.open = true
	return autoClose.Requeue(closing{}, activeobject.Commit)
}

// Open is the guard of the herd.
func (a *auto) Open() bool { return a.open }

// GoThrough is what each of the herd does.
func (a *auto) GoThrough() { a.gone++ }

// HerdGone is the guard of the leader, which closes the gate.
func (a *auto) HerdGone() bool { return a.Waiting(autoWaitForLeader) == 0 }

// Close returns how many have gone through.
func (a *auto) Close(closing) (gone int, err error) {
	gone = a.gone
	a.open, a.gone = false, 0
	return gone, nil
}

var (
	autos             = activeobject.NewType[auto]("automatic squad lock")
	autoWaitForLeader = activeobject.Entry(autos, "wait for leader", activeobject.Plain((*auto).GoThrough)).When("leader has come", (*auto).Open)

	// Their guards and bodies name other operations.
	autoWaitForHerd *activeobject.Operation[auto, none, int]
	autoClose       *activeobject.Operation[auto, closing, int]
)

func init() {
	autoWaitForHerd = activeobject.Entry(autos, "wait for herd", activeobject.ResultError((*auto).WaitForHerd)).WhenWaiting("herd is here", (*auto).HerdIsHere)
	autoClose = activeobject.Entry(autos, "close", (*auto).Close).WhenWaiting("herd has gone", (*auto).HerdGone)
}

// Auto is a Squad whose leader has nothing to do between the gathering of the herd and
// its going: WaitForHerd does both, in one step.
type Auto struct{ o *activeobject.Object[auto] }

// NewAuto returns an automatic squad lock whose leader waits for at least so many of
// the herd. It fails with *activeobject.ArgumentError if the trigger is less than one, or
// the options let fewer wait than a leader and so many, or as activeobject.New does.
func NewAuto(system *actor.System, trigger int, options ...activeobject.Option) (*Auto, error) {
	if err := atLeastOne("barrier.NewAuto", "trigger", trigger); err != nil {
		return nil, err
	}
	o, err := activeobject.NewFrom(system, autos, func() (*auto, error) { return &auto{trigger: trigger}, nil }, options...)
	if err != nil {
		return nil, err
	}
	if err := roomForSquad("barrier.NewAuto", o, trigger); err != nil {
		return nil, err
	}
	return &Auto{o}, nil
}

// WaitForLeader is for the herd: it waits until the leader has come, and enough of the
// herd have. If ctx ends first, the caller was never of the herd.
func (a *Auto) WaitForLeader(ctx context.Context) error {
	_, err := autoWaitForLeader.Call(ctx, a.o, nil)
	return err
}

// WaitsForLeader returns WaitForLeader, bound to the lock. Only requests that wait are of the herd:
// a Try never is, and fails with an error that matches activeobject.ErrRefused; a case is, as long as
// its Select waits.
func (a *Auto) WaitsForLeader() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(autoWaitForLeader, a.o)
}

// WaitForHerd is for the leader: it waits until enough of the herd wait for it, lets go
// of all of them, and returns how many went.
func (a *Auto) WaitForHerd(ctx context.Context) (int, error) {
	return autoWaitForHerd.Call(ctx, a.o, nil)
}

// WaitsForHerd returns WaitForHerd, bound to the lock.
func (a *Auto) WaitsForHerd() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(autoWaitForHerd, a.o)
}

// Gathered returns how many of the herd wait. It does not wait for anything.
func (a *Auto) Gathered() int { return autoWaitForLeader.Waiting(a.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (a *Auto) Object() activeobject.AnyObject { return a.o }
