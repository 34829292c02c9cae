package mailbox_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// gated is an object whose guards share one answer, and are counted.
type gated struct {
	open  bool
	asked int
}

func (g *gated) AskState(int) (string, error) {
	if g.asked++; g.open {
		return "", nil
	}
	return "open", nil
}

func (g *gated) AskRequest(*mailbox.Request) (string, error) { return g.AskState(0) }

const enter, change, read = 0, 1, 2

func newGated(looks guards.Looks) (*gated, *mailbox.Scheduler) {
	g := &gated{}
	return g, mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: looks},
			{Name: "change", Kind: mailbox.Procedure},
			{Name: "read", Kind: mailbox.Function},
		},
		Conflicts: guards.NewExclusive("enter", "change", "read").Allow(read, read),
	}, g)
}

// run starts what can start, completes it, and goes on until nothing is left.
func run(k *mailbox.Scheduler) {
	for r, _ := k.Next(); r != nil; r, _ = k.Next() {
		k.Complete(r)
	}
}

func TestStateGuardIsAskedOnceHoweverManyWait(t *testing.T) {
	g, k := newGated(guards.AtState)
	for range 1000 {
		k.Arrive(&mailbox.Request{Op: enter})
	}
	run(k)
	require.Equal(t, 1, g.asked)
	k.Arrive(&mailbox.Request{Op: change})
	run(k)
	require.Equal(t, 2, g.asked, "once more after a change")
}

func TestArgumentGuardIsAskedOncePerWaiter(t *testing.T) {
	g, k := newGated(guards.AtArgument)
	for n := range 100 {
		k.Arrive(&mailbox.Request{Op: enter})
		run(k)
		require.Equal(t, n+1, g.asked, "an arrival asks for itself only")
	}
	k.Arrive(&mailbox.Request{Op: change})
	run(k)
	require.Equal(t, 200, g.asked)
}

func TestFunctionCausesNoEvaluation(t *testing.T) {
	for _, looks := range []guards.Looks{guards.AtState, guards.AtArgument} {
		g, k := newGated(looks)
		k.Arrive(&mailbox.Request{Op: enter})
		run(k)
		require.Equal(t, 1, g.asked)
		for range 100 {
			k.Arrive(&mailbox.Request{Op: read})
			run(k)
			k.Begin(read)
			k.End(read, nil)
			run(k)
		}
		require.Equal(t, 1, g.asked)
	}
}

// Those who wait behind a closed guard cost a passing request nothing, and the
// common path does not allocate.
func TestPassingThroughAllocatesNothing(t *testing.T) {
	_, k := newGated(guards.AtState)
	for range 1000 {
		k.Arrive(&mailbox.Request{Op: enter})
	}
	run(k)
	r := &mailbox.Request{Op: change}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		k.Arrive(r)
		run(k)
	}))
}

func TestTableMustHaveOneRowPerOperation(t *testing.T) {
	require.PanicsWithValue(t, "scheduler: a conflict table of 1 operations for an object of 2", func() {
		mailbox.New(&mailbox.Rules{Operations: make([]mailbox.Operation, 2), Conflicts: guards.NewExclusive("one")}, nil)
	})
}

func TestReasonsAndKindsAreToldInWords(t *testing.T) {
	for text, said := range map[string]fmt.Stringer{
		"procedure": mailbox.Procedure,
		"entry":     mailbox.Entry,
		"function":  mailbox.Function,

		`guard "full" was false at step 3`:                            mailbox.Reason{Cause: mailbox.GuardFalse, Guard: "full", Step: 3},
		`conflicts with a, b, running`:                                mailbox.Reason{Cause: mailbox.Conflict, Conflicts: []string{"a", "b"}},
		`conflicts with a, running; guard "full" was false at step 3`: mailbox.Reason{Cause: mailbox.Conflict, Conflicts: []string{"a"}, Guard: "full", Step: 3},
		`a comes first`:                          mailbox.Reason{Cause: mailbox.Order, Behind: "a"},
		`could start: no thread has come for it`: mailbox.Reason{Cause: mailbox.NoThread},
	} {
		require.Equal(t, text, said.String())
	}
	require.EqualError(t, &mailbox.RefusedError{Operation: "a", Guard: "full"}, `a would wait: guard "full" is false`)
	require.EqualError(t, &mailbox.RefusedError{Operation: "a", Behind: "b"}, "a would wait: b comes first")
	require.Equal(t, "arrival", mailbox.Arrival.Name)
	require.Equal(t, "rotating over the operations", mailbox.Rotating.Name)
}

func TestOnlyGuardsOverWaitingCountsAreWatchful(t *testing.T) {
	for looks, want := range map[guards.Looks]bool{
		guards.AtState: false, guards.AtArgument: false, guards.AtWaiting: true, guards.AtArgument | guards.AtWaiting: true,
	} {
		_, k := newGated(looks)
		require.Equal(t, want, k.NeedsScheduling())
	}
}

// What somebody found out about a guard on behalf of a request is worth nothing
// when that request has left: the fast path may change the state of an idle
// object without a word.
func TestRefutationIsForgottenWithTheRequestItWasFor(t *testing.T) {
	for name, leave := range map[string]func(*mailbox.Scheduler, *mailbox.Request){
		"withdrawn from the gate": func(k *mailbox.Scheduler, r *mailbox.Request) {
			k.Withdraw(r)
		},
		"withdrawn before a try": func(k *mailbox.Scheduler, r *mailbox.Request) {
			k.Arrive(&mailbox.Request{Op: enter, Try: true})
			k.Withdraw(r)
			_, err := k.Next()
			require.EqualError(t, err, `enter would wait: guard "open" is false`)
		},
		"withdrawn from inside": func(k *mailbox.Scheduler, r *mailbox.Request) {
			run(k)
			k.Withdraw(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, k := newGated(guards.AtState)
			r := &mailbox.Request{Op: enter}
			require.True(t, k.Come(r, "open"))
			leave(k, r)
			require.True(t, k.Idle())
			require.Zero(t, g.asked, "the answer was given")

			g.open = true
			again := &mailbox.Request{Op: enter}
			k.Arrive(again)
			started, err := k.Next()
			require.NoError(t, err)
			require.Same(t, again, started)
		})
	}
}

// Guards are asked up to the first that holds. If nobody waits for that one any more,
// nothing is known of the next ones, and they are asked.
func TestWhatWasNotAskedIsAsked(t *testing.T) {
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "first", Kind: mailbox.Entry, Guard: "one", Looks: guards.AtState},
			{Name: "second", Kind: mailbox.Entry, Guard: "two", Looks: guards.AtState},
		},
		Conflicts: guards.NewExclusive("first", "second"),
	}, always{})
	gone, waits := &mailbox.Request{}, &mailbox.Request{Op: 1}
	require.True(t, k.Come(gone, "one"))
	require.True(t, k.Come(waits, "two"))
	k.Begin(0)
	require.True(t, k.Withdraw(gone))
	k.End(0, nil)
	k.GuardResults(0b11, 0)
	started, err := k.Next()
	require.NoError(t, err)
	require.Same(t, waits, started)
}

// Ran is Begin and End in one.
func TestRanIsBeginAndEnd(t *testing.T) {
	for _, opens := range [][]int{nil, {0}} {
		var logs [2][]mailbox.Event
		for i := range logs {
			k := mailbox.New(&mailbox.Rules{
				Operations: []mailbox.Operation{
					{Name: "wait", Kind: mailbox.Entry, Guard: "its turn", Looks: guards.AtArgument, Family: true},
					{Name: "open", Kind: mailbox.Procedure, Opens: opens},
				},
				Conflicts: guards.NewExclusive("wait", "open"),
				Log:       func(e mailbox.Event) { logs[i] = append(logs[i], e) },
			}, always{})
			open := func(_ int, open func(any)) { open(-1) }
			for _, key := range []int{7, -1} {
				k.Come(&mailbox.Request{Key: key}, "its turn")
			}
			if i == 0 {
				k.Begin(1)
				k.End(1, open)
			} else {
				k.Ran(1, open)
			}
			started, err := k.Next()
			require.NoError(t, err)
			require.Equal(t, -1, started.Key)
			require.EqualValues(t, 1, k.Stats(1).Starts)
		}
		require.Equal(t, logs[0], logs[1])
	}
}
