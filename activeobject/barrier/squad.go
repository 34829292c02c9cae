package barrier

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// squad is the state. The leader closes the gate itself, when none is left of the requests
// that waited: the last of them might do it, but be withdrawn, as its context ends, instead of
// going through. Until then an admitted request can start, one of the herd or the leader,
// and so no other is admitted.
type squad struct {
	activeobject.Queues
	trigger int
	leaders int // have seen the herd, and are not done
	behind  int // likewise, but another leader has let that herd go
	open    bool
	gone    int // through the open gate
}

// HerdIsHere is the guard of the leader, which waits for the herd.
func (s *squad) HerdIsHere() bool { return !s.open && s.Waiting(squadWaitForLeader) >= s.trigger }

// WaitForHerd leaves the gate closed: the leader has yet to do what the herd waits for.
func (s *squad) WaitForHerd() { s.leaders++ }

// LeaderDone opens the gate; the leader stays to close it.
func (s *squad) LeaderDone() (int, error) {
	switch {
	case s.leaders > 0:
		s.behind += s.leaders - 1
		s.leaders, s.open = 0, true
		return squadClose.Requeue(closing{}, activeobject.Commit)
	case s.behind > 0:
		s.behind--
		return 0, nil
	}
	return 0, &MisuseError{Barrier: s.ObjectName(), Operation: "leader done", Problem: "the leader has not waited for the herd"}
}

// Open is the guard of the herd.
func (s *squad) Open() bool { return s.open }

// GoThrough is what each of the herd does.
func (s *squad) GoThrough() { s.gone++ }

// HerdGone is the guard of the leader, which closes the gate.
func (s *squad) HerdGone() bool { return s.Waiting(squadWaitForLeader) == 0 }

// Close returns how many have gone through.
func (s *squad) Close(closing) (gone int, err error) {
	gone = s.gone
	s.open, s.gone = false, 0
	return gone, nil
}

var (
	squads             = activeobject.NewType[squad]("squad lock")
	squadWaitForLeader = activeobject.Entry(squads, "wait for leader", activeobject.Plain((*squad).GoThrough)).When("leader is done", (*squad).Open)

	// Their guards and bodies name other operations.
	squadWaitForHerd *activeobject.Operation[squad, none, none]
	squadLeaderDone  *activeobject.Operation[squad, none, int]
	squadClose       *activeobject.Operation[squad, closing, int]
)

func init() {
	squadWaitForHerd = activeobject.Entry(squads, "wait for herd", activeobject.Plain((*squad).WaitForHerd)).WhenWaiting("herd is here", (*squad).HerdIsHere)
	squadLeaderDone = activeobject.Procedure(squads, "leader done", activeobject.ResultError((*squad).LeaderDone))
	squadClose = activeobject.Entry(squads, "close", (*squad).Close).WhenWaiting("herd has gone", (*squad).HerdGone)
}

// Squad is a squad lock: a leader waits until a herd of workers has gathered, and the
// herd waits until the leader lets it go.
//
//	leader                              each of the herd
//
//	                                    work()
//	squad.WaitForHerd(ctx)     ◄─────   squad.WaitForLeader(ctx)
//	prepare what comes next                │ waits
//	squad.LeaderDone()         ─────►      ▼
//	                                    more work()
//
// The trigger is a minimum. All of the herd that wait when the leader is done go, however many
// they are. Requests that come later wait for the leader's next turn. One that is withdrawn
// before, as its context ends, does not count any more.
type Squad struct{ o *activeobject.Object[squad] }

// NewSquad returns a squad lock whose leader waits for at least so many of the herd. It
// fails with *activeobject.ArgumentError if the trigger is less than one, or the options let
// fewer wait than a leader and so many, or as activeobject.New does.
func NewSquad(system *actor.System, trigger int, options ...activeobject.Option) (*Squad, error) {
	if err := atLeastOne("barrier.NewSquad", "trigger", trigger); err != nil {
		return nil, err
	}
	o, err := activeobject.NewFrom(system, squads, func() (*squad, error) { return &squad{trigger: trigger}, nil }, options...)
	if err != nil {
		return nil, err
	}
	if err := roomForSquad("barrier.NewSquad", o, trigger); err != nil {
		return nil, err
	}
	return &Squad{o}, nil
}

// WaitForLeader is for the herd: it waits until the leader is done. If ctx ends first,
// the caller was never of the herd.
func (s *Squad) WaitForLeader(ctx context.Context) error {
	_, err := squadWaitForLeader.Call(ctx, s.o, nil)
	return err
}

// WaitsForLeader returns WaitForLeader, bound to the lock. Only requests that wait are of the herd:
// a Try never is, and fails with an error that matches activeobject.ErrRefused; a case is, as long as
// its Select waits.
func (s *Squad) WaitsForLeader() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(squadWaitForLeader, s.o)
}

// WaitForHerd is for the leader: it waits until enough of the herd wait for it.
func (s *Squad) WaitForHerd(ctx context.Context) error {
	_, err := squadWaitForHerd.Call(ctx, s.o, nil)
	return err
}

// WaitsForHerd returns WaitForHerd, bound to the lock.
func (s *Squad) WaitsForHerd() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(squadWaitForHerd, s.o)
}

// LeaderDone lets go of all of the herd that wait, and returns how many went. It may let
// go of less than the trigger, if some have left since. Each LeaderDone ends a WaitForHerd;
// without one it fails with *MisuseError: it would leave behind the herd that has yet to come.
// If several leaders have waited for the same herd, the first that is done lets it go; for
// the others LeaderDone returns 0, and lets go of none that have come since.
func (s *Squad) LeaderDone() (int, error) {
	return squadLeaderDone.Call(context.Background(), s.o, nil)
}

// LeaderDones returns LeaderDone, bound to the lock.
func (s *Squad) LeaderDones() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(squadLeaderDone, s.o)
}

// Gathered returns how many of the herd wait. It does not wait for anything.
func (s *Squad) Gathered() int { return squadWaitForLeader.Waiting(s.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (s *Squad) Object() activeobject.AnyObject { return s.o }
