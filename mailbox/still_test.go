package mailbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// asker is an object whose guards are functions.
type asker []func() bool

func (a asker) AskState(op int) (string, error) {
	if a[op]() {
		return "", nil
	}
	return "open", nil
}

func (a asker) AskRequest(r *mailbox.Request) (string, error) { return a.AskState(r.Op) }

// next returns the request that starts next; it goes on running.
func next(t *testing.T, k *mailbox.Scheduler) *mailbox.Request {
	t.Helper()
	r, err := k.Next()
	require.NoError(t, err)
	return r
}

// Nothing could start; then somebody comes alone, and opens another guard by that.
func TestAnArrivalAtAnObjectAtRestOpensAGuardOverWaitingCounts(t *testing.T) {
	const first, second = 0, 1
	var k *mailbox.Scheduler
	k = mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "first", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState | guards.AtWaiting},
			{Name: "second", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState},
		},
		Conflicts: guards.NewExclusive("first", "second"),
	}, asker{func() bool { return k.Waiting(second) > 0 }, func() bool { return false }})
	one, other := &mailbox.Request{Op: first}, &mailbox.Request{Op: second}
	k.Arrive(one)
	require.Nil(t, next(t, k))
	k.Arrive(other)
	require.Same(t, one, next(t, k))
	k.Complete(one)
	require.Nil(t, next(t, k))
	require.True(t, other.Waits())
}

// Nothing could start, as something runs; then somebody comes alone who conflicts with nothing that
// runs, but with one who waits inside, and whose guard nobody can ask.
func TestAnArrivalBesideWhatRunsDoesNotPassWhoMayBeOpen(t *testing.T) {
	const enter, change, pass = 0, 1, 2
	open := false
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState},
			{Name: "change", Kind: mailbox.Procedure},
			{Name: "pass", Kind: mailbox.Procedure},
		},
		Conflicts: guards.NewTable("enter", "change", "pass").Conflict(guards.Name("enter"), guards.Name("change"), guards.Name("pass")),
	}, asker{func() bool { return open }, nil, nil})
	waits, runs, late := &mailbox.Request{Op: enter}, &mailbox.Request{Op: change}, &mailbox.Request{Op: pass}
	k.Arrive(waits)
	require.Nil(t, next(t, k))
	k.Arrive(runs)
	require.Same(t, runs, next(t, k))
	require.Nil(t, next(t, k))
	k.Arrive(late)
	require.Nil(t, next(t, k), "enter may be open, when change has ended")
	open = true
	k.Complete(runs)
	require.Same(t, waits, next(t, k))
	require.Nil(t, next(t, k))
	k.Complete(waits)
	require.Same(t, late, next(t, k))
}

// Who only tries does not come inside: he is told that he would have to wait.
func TestATryDoesNotStandInALine(t *testing.T) {
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtArgument, HeadOfLine: true}},
		Conflicts:  guards.NewExclusive("enter"),
	}, asker{func() bool { return false }})
	k.Arrive(&mailbox.Request{})
	require.Nil(t, next(t, k))
	try := &mailbox.Request{Try: true}
	require.False(t, k.Come(try, ""))
	r, err := k.Next()
	require.Same(t, try, r)
	require.EqualError(t, err, "enter would wait: enter comes first")
	require.Nil(t, next(t, k))
	require.True(t, k.Come(&mailbox.Request{}, ""))
}

// pair is a guard that holds for key 0 as soon as two wait, and for others never.
type pair struct{ k *mailbox.Scheduler }

func (p *pair) AskState(int) (string, error) { panic("not asked") }
func (p *pair) AskRequest(r *mailbox.Request) (string, error) {
	if r.Key == 0 && p.k.Waiting(0) >= 2 {
		return "", nil
	}
	return "two", nil
}

// Who comes may open the guard of who is first in his line.
func TestWhoComesOpensTheGuardOfWhoIsFirst(t *testing.T) {
	p := &pair{}
	p.k = mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "enter", Kind: mailbox.Entry, Guard: "two", Looks: guards.AtArgument | guards.AtWaiting, HeadOfLine: true}},
		Conflicts:  guards.NewExclusive("enter"),
	}, p)
	require.Nil(t, next(t, p.k))
	first, second := &mailbox.Request{Key: 0}, &mailbox.Request{Key: 1}
	require.True(t, p.k.Come(first, ""))
	require.False(t, p.k.Come(second, ""))
	require.Same(t, first, next(t, p.k))
}

// Where nobody waits nobody watches what a guard looks at, so that its answer is worth nothing to
// who comes next.
func TestNoAnswerOutlivesTheLastWhoWaits(t *testing.T) {
	open := false
	var log []mailbox.EventKind
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "look", Kind: mailbox.Function, Guard: "open", Looks: guards.AtState},
			{Name: "change", Kind: mailbox.Procedure},
		},
		Conflicts: guards.NewExclusive("look", "change"),
		Log:       func(e mailbox.Event) { log = append(log, e.Kind) },
	}, asker{func() bool { return open }, nil})
	first, second := &mailbox.Request{}, &mailbox.Request{}
	k.Arrive(first)
	require.Nil(t, next(t, k))
	open = true
	k.Ran(1, nil)
	require.Same(t, first, next(t, k))
	k.Complete(first)
	require.Nil(t, next(t, k))
	open = false // by somebody who has found the object idle
	k.Arrive(second)
	require.Nil(t, next(t, k))
	require.True(t, second.Waits())
	require.Equal(t, []mailbox.EventKind{
		mailbox.Arrived, mailbox.Evaluated, mailbox.Started, mailbox.Ended, mailbox.Evaluated, mailbox.Started, mailbox.Ended,
		mailbox.Arrived, mailbox.Evaluated,
	}, log)
}
