package mailbox_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// shut is an object all guards of which are false.
type shut struct{}

func (shut) AskState(int) (string, error) { return "open", nil }

func (shut) AskRequest(*mailbox.Request) (string, error) { return "open", nil }

// The kinds of guard that a crowd can wait for, at operation 0 of these rules.
var shutGuards = map[string]mailbox.Operation{
	"state":        {Guard: "open"},
	"argument":     {Guard: "open", Looks: guards.AtArgument},
	"head of line": {Guard: "open", Looks: guards.AtArgument, HeadOfLine: true},
	"family":       {Guard: "open", Looks: guards.AtArgument, Family: true},
	"declared":     {Guard: "open", Looks: guards.AtArgument, Family: true, Opens: []int{0}},
}

// shutFor returns a scheduler at which n requests wait for such a guard, of ten keys, one of
// operation 1 passes. The bound is not set if it is negative.
func shutFor(wait mailbox.Operation, n, bound int) (*mailbox.Scheduler, []*mailbox.Request) {
	wait.Name, wait.Kind = "wait", mailbox.Entry
	rules := &mailbox.Rules{
		Operations: []mailbox.Operation{wait, {Name: "pass", Kind: mailbox.Procedure, Opens: wait.Opens}},
		Conflicts:  guards.NewExclusive("wait", "pass"),
	}
	if bound >= 0 {
		rules.Bound = mailbox.Bound{Max: bound, Overflow: mailbox.Wait}
	}
	k := mailbox.New(rules, shut{})
	all := make([]*mailbox.Request, n)
	for i := range all {
		all[i] = &mailbox.Request{Key: i % 10, Patient: true}
		k.Arrive(all[i])
		k.Next()
	}
	return k, all
}

// passes runs a request that changes the state and opens no guard.
func passes(k *mailbox.Scheduler) {
	k.Ran(1, func(int, func(any)) {})
	if r, err := k.Next(); r != nil {
		panic(fmt.Sprint(r, err))
	}
}

// Guards are evaluated as often for requests that wait for room as if there were room for
// all: when they arrive, and after a change of the state; once for all that share one.
func TestWaitingForRoomCostsNoEvaluations(t *testing.T) {
	const n, times = 500, 20
	for name, wait := range shutGuards {
		// evaluations returns how many there are when requests arrive, when others pass, and when
		// those that wait leave, the first first.
		evaluations := func(bound int) (all [3]int) {
			k, waiting := shutFor(wait, n, bound)
			said := 0
			since := func() int {
				was := said
				said = int(k.Stats(0).Evaluations)
				return said - was
			}
			all[0] = since()
			for range times {
				passes(k)
			}
			all[1] = since()
			for _, r := range waiting {
				require.True(t, k.Withdraw(r))
				k.Next()
			}
			all[2] = since()
			require.True(t, k.Idle())
			return all
		}
		unbounded := evaluations(-1)
		for _, bound := range []int{0, 1, 5, 100} {
			bounded := evaluations(bound)
			require.Equal(t, unbounded[1], bounded[1], "%s, bound %d: when others pass", name, bound)
			if wait.HeadOfLine { // one that arrives at an empty queue is the head
				require.LessOrEqual(t, bounded[0], n, "%s, bound %d: when they arrive", name, bound)
			} else {
				require.LessOrEqual(t, bounded[0], unbounded[0]+10, "%s, bound %d: when they arrive", name, bound)
			}
			// One that comes inside may be the first there with its key.
			require.LessOrEqual(t, bounded[2], n, "%s, bound %d: when they leave", name, bound)
			if !wait.Family && !wait.HeadOfLine {
				require.Zero(t, bounded[2], "%s, bound %d: when they leave", name, bound)
			}
		}
	}
}

// That nothing can start costs no memory, however many wait for room.
func TestWaitingForRoomAllocatesNothing(t *testing.T) {
	for name, wait := range shutGuards {
		unbounded, _ := shutFor(wait, 500, -1)
		k, all := shutFor(wait, 500, 5)
		last := all[len(all)-1]
		require.Equal(t, testing.AllocsPerRun(10, func() { passes(unbounded) }), testing.AllocsPerRun(10, func() { passes(k) }), name)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			k.Withdraw(last)
			k.Next()
			k.Arrive(last)
			k.Next()
		}), name)
	}
}

// A request that comes and goes costs the same, however many wait for room: by the least
// of many measurements, which differ by a factor of a thousand if each looks at all.
func TestWaitingForRoomIsNotLookedAtByArrivals(t *testing.T) {
	for name, wait := range shutGuards {
		least := func(n int) time.Duration {
			k, all := shutFor(wait, n, 5)
			last, least := all[len(all)-1], time.Duration(math.MaxInt64)
			for range 100 {
				start := time.Now()
				for range 10 {
					k.Withdraw(last)
					k.Next()
					k.Arrive(last)
					k.Next()
				}
				least = min(least, time.Since(start))
			}
			return least
		}
		few, many := least(20), least(10_000)
		require.Less(t, many, 50*few, name)
	}
}

// What a request at the door waits for is known as well as inside: it starts as soon as its
// guard holds, and neither earlier nor later than those that came before it.
func TestRequestsAtTheDoorStartInOrderOfArrival(t *testing.T) {
	for name, wait := range shutGuards {
		wait.Name, wait.Kind = "wait", mailbox.Entry
		object := &doorkeeper{}
		k := mailbox.New(&mailbox.Rules{
			Operations: []mailbox.Operation{wait, {Name: "pass", Kind: mailbox.Procedure, Opens: wait.Opens}},
			Conflicts:  guards.NewExclusive("wait", "pass"),
			Bound:      mailbox.Bound{Max: 2, Overflow: mailbox.Wait},
		}, object)
		all := make([]*mailbox.Request, 20)
		for i := range all {
			all[i] = &mailbox.Request{Key: i % 3, Patient: true}
			k.Arrive(all[i])
			k.Next()
		}
		object.open = true
		k.Ran(1, func(family int, open func(any)) { open(mailbox.AnyKey) })
		for i := range all {
			r, err := k.Next()
			require.NoError(t, err, name)
			require.Same(t, all[i], r, "%s: number %d", name, i)
			k.Complete(r)
		}
		require.True(t, k.Idle())
	}
}

// doorkeeper is an object whose guards hold when it is open.
type doorkeeper struct{ open bool }

func (d *doorkeeper) AskState(int) (string, error) {
	if d.open {
		return "", nil
	}
	return "open", nil
}

func (d *doorkeeper) AskRequest(*mailbox.Request) (string, error) { return d.AskState(0) }

func (d *doorkeeper) Opens(r *mailbox.Request, _ int, open func(any)) { open(mailbox.AnyKey) }

// A request passes while n others wait: for their guard, or for room. (Guards over the
// argument are evaluated once for each that waits: that is their price, also without a bound.)
func BenchmarkPassingThoseThatWaitForRoom(b *testing.B) {
	for _, name := range []string{"state", "head of line", "family", "argument"} {
		for _, bound := range []int{-1, 5} {
			for _, n := range []int{10, 20_000} {
				b.Run(fmt.Sprintf("%s/bound=%d/%d", name, bound, n), func(b *testing.B) {
					k, _ := shutFor(shutGuards[name], n, bound)
					for b.Loop() {
						passes(k)
					}
				})
			}
		}
	}
}
