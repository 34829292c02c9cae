package barrier

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// cyclic is the state. Parties wait at one entry, and no body runs when one comes or is
// withdrawn: that is seen from how many have been admitted, and how many of them still
// wait. None is admitted before the last one of the round before has gone, so that
// one state is enough for all rounds.
type cyclic struct {
	activeobject.Queues
	parties int
	action  func(context.Context) error

	before uint64       // how many came in the rounds that are over
	result *BrokenError // of the last of these, for its parties that have yet to go
	broken *BrokenError // until there is a Reset
}

// arrived returns how many have come in this round.
func (c *cyclic) arrived() int { return int(c.Joined(cyclicAwait) - c.before) }

// lacks reports whether a party has left that came in this round, where there
// is how many of them wait for it to be over, or run.
func (c *cyclic) lacks(came, there int) bool {
	if c.action != nil {
		there += c.Waiting(cyclicAct)
	}
	return there < came
}

// Released is the guard of Await: the round is over, or a party has left it, or
// all have come, and none of them is about to act.
func (c *cyclic) Released() bool {
	waiting := c.Waiting(cyclicAwait)
	if c.broken != nil || waiting == 0 {
		return c.broken != nil // a request that is not admitted has to be
	}
	came := c.arrived()
	return waiting == c.parties || came == 0 || c.lacks(came, waiting)
}

// Gone is the guard of a reset. As it looks at waiting counts, no later request is
// admitted before the reset.
func (c *cyclic) Gone() bool { return c.arrived() > 0 || c.Waiting(cyclicAwait) == 0 }

// Await is the body of a party that is released.
func (c *cyclic) Await() (none, error) {
	switch came := c.arrived(); {
	case c.broken != nil:
		return nil, c.broken
	case came == 0:
		if c.result != nil {
			return nil, c.result
		}
		return nil, nil
	case c.lacks(came, c.Waiting(cyclicAwait)+1):
		return nil, c.abandon()
	case c.action != nil:
		return nil, toAct
	}
	c.end(nil)
	return nil, nil
}

// end ends the round for all that have come.
func (c *cyclic) end(result *BrokenError) { c.before, c.result = c.Joined(cyclicAwait), result }

// Act is the second body of the last party, if there is an action. That it has failed
// is the state of things until it has returned.
func (c *cyclic) Act(ctx context.Context, _ acting) (none, error) {
	switch {
	case c.broken != nil:
		return nil, c.broken
	case c.lacks(c.arrived(), c.Waiting(cyclicAwait)+1):
		return nil, c.abandon()
	}
	c.breaks("its action has panicked", nil)
	if err := c.action(ctx); err != nil {
		return nil, c.breaks("its action has failed", err)
	}
	c.broken = nil
	c.end(nil)
	return nil, nil
}

func (c *cyclic) breaks(problem string, cause error) error {
	c.broken = &BrokenError{Barrier: c.ObjectName(), Problem: problem, Cause: cause}
	return c.broken
}

func (c *cyclic) abandon() error { return c.breaks("a party has left that had arrived", nil) }

// Reset ends the round for the parties that wait; others come anew.
func (c *cyclic) Reset() {
	c.broken = nil
	c.end(&BrokenError{Barrier: c.ObjectName(), Problem: "it was reset", Reset: true})
}

// Broken reports whether the round cannot be completed, whether a party has noticed or not.
func (c *cyclic) Broken() bool {
	return c.broken != nil || c.lacks(c.arrived(), c.Waiting(cyclicAwait))
}

var (
	cyclics      = activeobject.NewType[cyclic]("cyclic barrier")
	cyclicBroken = activeobject.Function(cyclics, "broken", activeobject.Result((*cyclic).Broken))

	cyclicAwait, cyclicReset *activeobject.Operation[cyclic, none, none]
	cyclicAct                *activeobject.Operation[cyclic, acting, none]

	toAct error // the same for all
)

func init() {
	cyclicAwait = activeobject.Entry(cyclics, "await", activeobject.ResultError((*cyclic).Await)).WhenWaiting("all have arrived", (*cyclic).Released)
	cyclicReset = activeobject.Entry(cyclics, "reset", activeobject.Plain((*cyclic).Reset)).WhenWaiting("last round has gone", (*cyclic).Gone)
	cyclicAct = activeobject.ProcedureCtx(cyclics, "act", (*cyclic).Act)
	_, toAct = cyclicAct.Requeue(acting{})
}

// Cyclic is a barrier for a fixed number of parties: a caller of Await waits until
// all parties have called it, and then the barrier is ready for the next round.
//
// A party whose context ends while it waits breaks the barrier, in the same step in
// which it leaves: all others that wait fail with a *BrokenError, and so do all that
// come later, until Reset. Otherwise they would wait for a party that does not come. The next
// round is not concerned by what becomes of parties of this one: once all have
// arrived, the round is complete, also for parties that have yet to hear of it.
//
// It is the barrier of the cyclic kind from java.util.concurrent, but for three
// things. A party whose context has ended before it came has never come, and breaks
// nothing. A party whose context ends after the last one has arrived, but before it
// could go, fails with the context's error; no other notices. And there is no
// arrival index: for one party to do something, give the barrier an action.
type Cyclic struct {
	o       *activeobject.Object[cyclic]
	parties int
}

// NewCyclic returns a barrier for so many parties. It fails with
// *activeobject.ArgumentError if there are less than one, or the options let fewer wait at
// the object, or as activeobject.New does.
func NewCyclic(system *actor.System, parties int, options ...activeobject.Option) (*Cyclic, error) {
	return newCyclic("barrier.NewCyclic", system, parties, nil, options)
}

// NewCyclicAction is NewCyclic with an action, which the last party to arrive runs,
// in each round, before any of them goes on. It may block, and call other objects, with
// the context it is given; meanwhile the others wait, and no other request gets to the
// barrier. If the action fails or panics the barrier breaks. Once it has begun, a
// party that is canceled does not break the round any more. A nil action is a
// *activeobject.ArgumentError; an option for the order of requests, which has to be the
// barrier's own, an *activeobject.OptionError.
//
// (The action is no option of NewCyclic: it belongs to the state, which an activeobject.Option does
// not reach.)
func NewCyclicAction(system *actor.System, parties int, action func(context.Context) error, options ...activeobject.Option) (*Cyclic, error) {
	const call = "barrier.NewCyclicAction"
	if action == nil {
		return nil, &activeobject.ArgumentError{Call: call, Argument: "action", Problem: "is nil: pass what the last party is to do, or use NewCyclic"}
	}
	return newCyclic(call, system, parties, action, options)
}

func newCyclic(call string, system *actor.System, parties int, action func(context.Context) error, options []activeobject.Option) (*Cyclic, error) {
	if err := atLeastOne(call, "parties", parties); err != nil {
		return nil, err
	}
	if action != nil { // the first to go acts
		options = append(slices.Clip(options), activeobject.FixedPolicy(activeobject.ByLatest()))
	}
	last := &cyclic{}
	o, err := activeobject.NewFrom(system, cyclics, func() (*cyclic, error) {
		// The counts are the object's, and go on. No request is admitted while it is restarted,
		// and the parties that are there have arrived in the round that begins.
		came, there := last.Joined(cyclicAwait), last.Waiting(cyclicAwait)
		last = &cyclic{parties: parties, action: action, before: came - uint64(there)}
		return last, nil
	}, options...)
	if err != nil {
		return nil, err
	}
	if err := roomFor(call, o, parties, fmt.Sprintf("%d parties", parties)); err != nil {
		return nil, err
	}
	return &Cyclic{o, parties}, nil
}

// Await arrives, and waits for the other parties. It fails with a *BrokenError if the
// barrier is or gets broken, and with the context's error, which breaks the barrier if
// the party has arrived by then, and the round is not over. (Of the last party, which is
// about to act, that is an *activeobject.RequeuedError around it.) An action's panic fails
// the last party with *activeobject.PanicError.
func (c *Cyclic) Await(ctx context.Context) error {
	_, err := cyclicAwait.Call(ctx, c.o, nil)
	return err
}

// Awaits returns Await, bound to the barrier. An arrival cannot be taken back: a future that is
// withdrawn breaks the barrier, and so does a Select that has waited and makes another call. A Try
// does not arrive, and so never passes.
func (c *Cyclic) Awaits() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(cyclicAwait, c.o)
}

// Reset makes the barrier as good as new: it is not broken any more, and parties that
// wait fail with a *BrokenError that says so.
func (c *Cyclic) Reset() error {
	_, err := cyclicReset.Call(context.Background(), c.o, nil)
	return err
}

// Resets returns Reset, bound to the barrier.
func (c *Cyclic) Resets() activeobject.LocalProxy[activeobject.None, activeobject.None] {
	return activeobject.At(cyclicReset, c.o)
}

// Broken reports whether the barrier is broken.
func (c *Cyclic) Broken() (bool, error) {
	return cyclicBroken.Call(context.Background(), c.o, nil)
}

// Parties returns how many parties a round needs.
func (c *Cyclic) Parties() int { return c.parties }

// Waiting returns how many parties wait at the moment.
func (c *Cyclic) Waiting() int { return cyclicAwait.Waiting(c.o) + cyclicAct.Waiting(c.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (c *Cyclic) Object() activeobject.AnyObject { return c.o }

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
