package barrier

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Cyclic is a barrier for a fixed number of parties: whoever calls Await waits until
// all parties have, and then it is ready for the next round.
//
// A party whose context ends while it waits breaks the barrier, in the same step in
// which it leaves: all others that wait fail with a *BrokenError, and so do all that
// come later, until Reset. Otherwise they would wait for who does not come. The next
// round is not concerned by what becomes of parties of this one: once all have
// arrived, the round is complete, also for those that have yet to hear of it.
//
// It is the barrier of the cyclic kind from java.util.concurrent, but for three
// things. A party whose context has ended before it came has never come, and breaks
// nothing. A party whose context ends after the last one has arrived, but before it
// could go, fails with the context's error; nobody else notices. And there is no
// arrival index: who wants one party to do something gives the barrier an action.
type Cyclic struct {
	o       *activeobject.Object[cyclic]
	parties int
}

// NewCyclic returns a barrier for so many parties. It fails with
// *activeobject.ArgumentError if there are less than one, or as activeobject.New does.
func NewCyclic(system *actor.System, parties int, options ...activeobject.Option) (*Cyclic, error) {
	return newCyclic("barrier.NewCyclic", system, &cyclic{parties: parties}, options)
}

// NewCyclicAction is NewCyclic with an action, which the last party to arrive runs,
// in each round, before any of them goes on. It may block, and call other objects, with
// the context it is given; meanwhile the others wait, and nobody else gets to the
// barrier. If the action fails or panics the barrier breaks. Once it has begun, a
// party that is cancelled does not break the round any more. A nil action is a
// *activeobject.ArgumentError.
func NewCyclicAction(system *actor.System, parties int, action func(context.Context) error, options ...activeobject.Option) (*Cyclic, error) {
	const call = "barrier.NewCyclicAction"
	if action == nil {
		return nil, &activeobject.ArgumentError{Call: call, Argument: "action", Problem: "is nil: pass what the last party is to do, or use NewCyclic"}
	}
	return newCyclic(call, system, &cyclic{parties: parties, action: action}, options)
}

func newCyclic(call string, system *actor.System, state *cyclic, options []activeobject.Option) (*Cyclic, error) {
	if err := atLeastOne(call, "parties", state.parties); err != nil {
		return nil, err
	}
	o, err := activeobject.New(system, cyclics, state, options...)
	if err != nil {
		return nil, err
	}
	return &Cyclic{o, state.parties}, nil
}

// Await arrives, and waits for the other parties. It fails with a *BrokenError if the
// barrier is or gets broken, and with the context's error, which breaks the barrier if
// it has arrived by then: in that case, and if the barrier is stopped meanwhile, the
// error is an *activeobject.RequeuedError around it. An action's panic fails the last
// party with *activeobject.PanicError.
func (c *Cyclic) Await(ctx context.Context) error {
	_, err := cyclicArrive.Call(ctx, c.o, none{})
	return err
}

// SendAwait is Await as a future. To withdraw it breaks the barrier. (There is no case
// for a Select: who has arrived cannot take it back.)
func (c *Cyclic) SendAwait(ctx context.Context) activeobject.Future[none] {
	return cyclicArrive.Send(ctx, c.o, none{})
}

// Reset makes the barrier as good as new: it is not broken any more, and parties that
// wait fail with a *BrokenError that says so.
func (c *Cyclic) Reset() error {
	_, err := cyclicReset.Call(context.Background(), c.o, none{})
	return err
}

// SendReset is Reset as a future.
func (c *Cyclic) SendReset() activeobject.Future[none] {
	return cyclicReset.Send(context.Background(), c.o, none{})
}

// Broken reports whether the barrier is broken.
func (c *Cyclic) Broken() (bool, error) {
	return cyclicBroken.Call(context.Background(), c.o, none{})
}

// SendBroken is Broken as a future.
func (c *Cyclic) SendBroken() activeobject.Future[bool] {
	return cyclicBroken.Send(context.Background(), c.o, none{})
}

// Parties returns how many parties a round needs.
func (c *Cyclic) Parties() int { return c.parties }

// Waiting returns how many parties wait at the moment.
func (c *Cyclic) Waiting() int { return cyclicAwait.Waiting(c.o) + cyclicAct.Waiting(c.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (c *Cyclic) Object() *activeobject.Object[cyclic] { return c.o }

// BrokenError fails the parties of a Cyclic that is broken. It matches ErrBroken.
type BrokenError struct {
	Barrier string
	Problem string // what has broken it
	Cause   error  // the error of the action; nil if it was something else
	Reset   bool   // a Reset did, so that the barrier can be used again
}

// Error implements error.
func (e *BrokenError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("sluice: %s is broken: %s: %v", e.Barrier, e.Problem, e.Cause)
	}
	return fmt.Sprintf("sluice: %s is broken: %s", e.Barrier, e.Problem)
}

// Is reports that a BrokenError matches ErrBroken.
func (e *BrokenError) Is(target error) bool { return target == ErrBroken }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Cause }

// cyclic is the state. Whoever waits inside goes before anybody arrives, as soon as
// the guard holds. So who arrives finds nobody of a round that is over, and puts away
// what is left of that. No body runs when a party is withdrawn; that fewer wait than
// have arrived is all there is to see of it, and the guard sees it.
type cyclic struct {
	activeobject.Queues
	parties int
	action  func(context.Context) error

	arrived int          // in this round
	over    bool         // those that wait may go,
	broken  *BrokenError // with this error, unless it is nil
}

func (c *cyclic) Arrive() (none, error) {
	c.check(0)
	if c.over && (c.broken == nil || c.broken.Reset) {
		c.arrived, c.over, c.broken = 0, false, nil
	}
	if c.over {
		return none{}, c.broken
	}
	c.arrived++
	switch {
	case c.arrived < c.parties:
		return none{}, toAwait
	case c.action != nil:
		return none{}, toAct
	}
	c.over = true
	return none{}, nil
}

// Act is the second body of the last party, if there is an action. That it has failed
// is the state of things until it has returned.
func (c *cyclic) Act(ctx context.Context, _ none) (none, error) {
	if c.check(1); !c.over {
		c.breaks("its action has panicked", nil)
		if err := c.action(ctx); err != nil {
			c.breaks("its action has failed", err)
		} else {
			c.broken = nil
		}
	}
	return c.Leave()
}

// Leave is the second body of all others.
func (c *cyclic) Leave() (none, error) {
	if c.check(1); c.broken != nil {
		return none{}, c.broken
	}
	return none{}, nil
}

func (c *cyclic) Released() bool { return c.over || c.deserted(0) }

// deserted reports whether a party has left a round that goes on. Those whose bodies
// run are not counted among the waiting.
func (c *cyclic) deserted(running int) bool {
	return !c.over && c.Waiting(cyclicAwait)+c.Waiting(cyclicAct)+running < c.arrived
}

func (c *cyclic) check(running int) {
	if c.deserted(running) {
		c.breaks("a party has left that had arrived", nil)
	}
}

func (c *cyclic) breaks(problem string, cause error) {
	c.over, c.broken = true, &BrokenError{Barrier: c.ObjectName(), Problem: problem, Cause: cause}
}

func (c *cyclic) Reset() {
	c.breaks("it was reset", nil)
	c.broken.Reset = true
}

func (c *cyclic) Broken() bool { return c.deserted(0) || c.broken != nil && !c.broken.Reset }

var (
	cyclics      = activeobject.NewType[cyclic]("cyclic barrier")
	cyclicArrive = activeobject.Procedure(cyclics, "arrive", activeobject.NoArg((*cyclic).Arrive))
	cyclicReset  = activeobject.Procedure(cyclics, "reset", activeobject.Do((*cyclic).Reset))
	cyclicBroken = activeobject.Function(cyclics, "broken", activeobject.Get((*cyclic).Broken))

	cyclicAwait, cyclicAct *activeobject.Operation[cyclic, none, none]

	// The same for all, so that an arrival makes no new one.
	toAwait, toAct error
)

func init() {
	cyclicAwait = activeobject.Entry(cyclics, "await", activeobject.NoArg((*cyclic).Leave)).WhenWaiting("all have arrived", (*cyclic).Released)
	cyclicAct = activeobject.ProcedureCtx(cyclics, "act", (*cyclic).Act)
	_, toAwait = cyclicAwait.Requeue(none{})
	_, toAct = cyclicAct.Requeue(none{})
}
