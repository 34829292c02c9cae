package barrier

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// phaser is the state.
type phaser struct {
	activeobject.Queues
	phase, parties, arrived int
}

// Join adds a party, and returns the phase in which it has to arrive first.
func (p *phaser) Join() int {
	p.parties++
	return p.phase
}

// Arrive counts a party, and returns the phase in which it has arrived.
func (p *phaser) Arrive() (phase int, err error) {
	return p.arrive("arrive", false)
}

// ArriveAndLeave is Arrive of a party that does not take part in the next phases.
func (p *phaser) ArriveAndLeave() (phase int, err error) {
	return p.arrive("arrive and leave", true)
}

// ArriveAndAwait is Arrive, and has the party wait, unless the phase is over with that.
func (p *phaser) ArriveAndAwait() (phase int, err error) {
	phase, err = p.arrive("arrive and await", false)
	if err != nil || p.Over(phase) {
		return phase, err
	}
	return phaserAwait.Requeue(phase)
}

// arrive counts a party. The phase is over when as many have arrived as there are parties, and a
// party that leaves is none.
func (p *phaser) arrive(operation string, leaves bool) (phase int, err error) {
	if p.parties == 0 {
		return 0, &MisuseError{Barrier: p.ObjectName(), Operation: operation, Problem: "there are no parties: Join first"}
	}
	if leaves {
		p.parties--
	} else {
		p.arrived++
	}
	phase = p.phase
	if p.arrived == p.parties {
		p.phase, p.arrived = phase+1, 0
	}
	return phase, nil
}

// Over is the guard of a wait for a phase.
func (p *phaser) Over(phase int) bool { return p.phase > phase }

// Await is its body.
func (p *phaser) Await(phase int) (int, error) { return phase, nil }

// Status returns how things are.
func (p *phaser) Status() PhaserStatus { return PhaserStatus{p.phase, p.parties, p.arrived} }

func phaseOf(phase int) int { return phase }

var (
	phasers      = activeobject.NewType[phaser]("phaser")
	phaserJoin   = activeobject.Procedure(phasers, "join", activeobject.Result((*phaser).Join))
	phaserArrive = activeobject.Procedure(phasers, "arrive", activeobject.ResultError((*phaser).Arrive))
	phaserLeave  = activeobject.Procedure(phasers, "arrive and leave", activeobject.ResultError((*phaser).ArriveAndLeave))
	phaserStatus = activeobject.Function(phasers, "status", activeobject.Result((*phaser).Status))

	// All that wait for one phase share one evaluation of the guard.
	phaserAwait = activeobject.EntryFamily(phasers, "await phase", (*phaser).Await, phaseOf).WhenKey("phase is over", (*phaser).Over)

	phaserArriveAndAwait = activeobject.Procedure(phasers, "arrive and await", activeobject.ResultError((*phaser).ArriveAndAwait))
)

// Phaser is a barrier whose parties come and go, and need not wait. It counts phases:
// one is over, and the next begins, when every party has arrived.
//
//	phase, err := phases.Arrive() // done with this phase
//	…                             // something else meanwhile
//	err = phases.AwaitPhase(ctx, phase)
//
// A party has no identity: what counts is how many there are, and that each
// arrives once in a phase. A caller that waits for the end of a phase need not be one. When the
// last party leaves, the phase is over as well; the next one waits for parties that join.
//
// To arrive cannot be taken back. So if the context of ArriveAndAwait ends while it
// waits, its party has arrived, the phase goes on, and nothing breaks. It is the phaser
// of java.util.concurrent, without its tiers and its end.
type Phaser struct{ o *activeobject.Object[phaser] }

// NewPhaser returns a phaser with so many parties, in phase 0. It fails with
// *activeobject.ArgumentError if there are less than none, or as activeobject.New does.
func NewPhaser(system *actor.System, parties int, options ...activeobject.Option) (*Phaser, error) {
	if parties < 0 {
		return nil, &activeobject.ArgumentError{Call: "barrier.NewPhaser", Argument: "parties", Problem: fmt.Sprintf("is %d: there may be none at first, but not less", parties)}
	}
	phase := func() int { return 0 }
	o, err := activeobject.NewFrom(system, phasers, func() (*phaser, error) {
		p := &phaser{phase: phase(), parties: parties} // phases are numbered on after a restart
		phase = func() int { return p.phase }
		return p, nil
	}, options...)
	if err != nil {
		return nil, err
	}
	return &Phaser{o}, nil
}

// Join adds a party, and returns the phase, in which it has yet to arrive.
func (p *Phaser) Join() (phase int, err error) {
	return phaserJoin.Call(context.Background(), p.o, nil)
}

// Joins returns Join, bound to the phaser.
func (p *Phaser) Joins() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(phaserJoin, p.o)
}

// Arrive says that a party has arrived, and returns the phase in which it has. If there
// is no party it fails with *MisuseError.
func (p *Phaser) Arrive() (phase int, err error) {
	return phaserArrive.Call(context.Background(), p.o, nil)
}

// Arrives returns Arrive, bound to the phaser.
func (p *Phaser) Arrives() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(phaserArrive, p.o)
}

// ArriveAndLeave says that a party has arrived in this phase, and is none any more from
// then on. It returns the phase. If there is no party it fails with *MisuseError.
func (p *Phaser) ArriveAndLeave() (phase int, err error) {
	return phaserLeave.Call(context.Background(), p.o, nil)
}

// ArrivesAndLeaves returns ArriveAndLeave, bound to the phaser.
func (p *Phaser) ArrivesAndLeaves() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(phaserLeave, p.o)
}

// ArriveAndAwait is Arrive, and AwaitPhase for the phase that it returns. The phase is the one in
// which the party has arrived, and which is over when ArriveAndAwait returns: the next one has the
// next number. (Java's arriveAndAwaitAdvance returns that instead.) If the party
// has arrived, but could not wait to the end, the error is an
// *activeobject.RequeuedError around the context's (or that of a phaser that has been
// stopped); otherwise it has not arrived.
func (p *Phaser) ArriveAndAwait(ctx context.Context) (phase int, err error) {
	return phaserArriveAndAwait.Call(ctx, p.o, nil)
}

// ArrivesAndAwaits returns ArriveAndAwait, bound to the phaser. The arrival never waits, and cannot be
// taken back: a Try arrives, and then does not wait; a Select makes the call at once. To select by the
// end of a phase, Arrive, and use a case of Awaits.
func (p *Phaser) ArrivesAndAwaits() activeobject.LocalProxy[activeobject.None, int] {
	return activeobject.At(phaserArriveAndAwait, p.o)
}

// AwaitPhase waits until the phase is over, which may have yet to begin.
func (p *Phaser) AwaitPhase(ctx context.Context, phase int) error {
	_, err := phaserAwait.Call(ctx, p.o, phase)
	return err
}

// Awaits returns AwaitPhase, bound to the phaser. Its result is the phase.
func (p *Phaser) Awaits() activeobject.LocalProxy[int, int] {
	return activeobject.At(phaserAwait.Operation, p.o)
}

// PhaserStatus is how things are with a Phaser.
type PhaserStatus struct {
	Phase   int
	Parties int
	Arrived int // of the parties, in this phase
}

// Status returns how things are.
func (p *Phaser) Status() (PhaserStatus, error) {
	return phaserStatus.Call(context.Background(), p.o, nil)
}

// Object returns the shared object, to explain, observe, address or stop it.
func (p *Phaser) Object() activeobject.AnyObject { return p.o }
