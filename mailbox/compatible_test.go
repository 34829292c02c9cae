package mailbox_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// Who waits for what runs is in nobody's way, and so is nothing that it waits for, where all start
// that are compatible; until it is at its bound.
func TestNobodyWaitsForWhatAnotherOneWaitsForUnlessThatIsAtItsBound(t *testing.T) {
	const write, read = 0, 1
	k := mailbox.New(&mailbox.Rules{
		Operations:    []mailbox.Operation{{Name: "write"}, {Name: "read", Kind: mailbox.Function}},
		Conflicts:     guards.NewExclusive("write", "read").Allow(read, read),
		AllCompatible: true,
		MaxBypass:     1,
	}, always{})
	arrives := func(op int) *mailbox.Request {
		r := &mailbox.Request{Op: op}
		k.Arrive(r)
		return r
	}
	next := func(want *mailbox.Request) {
		r, err := k.Next()
		require.NoError(t, err)
		require.Same(t, want, r)
	}
	first := arrives(read)
	next(first)
	writer := arrives(write)
	require.Equal(t, []*mailbox.Request{first}, slices.Collect(k.Blockers(writer)))
	second := arrives(read)
	require.Empty(t, slices.Collect(k.Blockers(second)))
	require.Empty(t, slices.Collect(k.Holding(second, 2)))
	require.False(t, k.BlockersChanged())
	next(second)
	require.True(t, k.BlockersChanged(), "now the writer is in the way of all whom it conflicts with")

	third := arrives(read)
	require.Equal(t, []*mailbox.Request{first, second}, slices.Collect(k.Blockers(third)))
	require.Equal(t, []*mailbox.Request{second, first}, slices.Collect(k.Holding(third, 2)))
	next(nil)
	require.Equal(t, mailbox.Reason{Cause: mailbox.Order, Behind: "write"}, k.Why(third))
	k.Complete(first)
	k.Complete(second)
	next(writer)
}

// failing are guards that fail.
type failing struct{}

func (failing) AskState(int) (string, error) { return "", errGuard }

func (failing) AskRequest(*mailbox.Request) (string, error) { return "", errGuard }

var errGuard = errors.New("it fails")

// A Try that has been requeued is not decided by the guard of a request that comes after it, though
// both have been bypassed as often as allowed: it is its own guard that fails, and it hears of that
// first.
func TestNoGuardIsEvaluatedForWhatComesAfterATry(t *testing.T) {
	const write, read, change = 0, 1, 2
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "write", Kind: mailbox.Entry, Guard: "open"}, {Name: "read", Kind: mailbox.Function}, {Name: "change"},
		},
		Conflicts:     guards.NewExclusive("write", "read", "change").Allow(read, read).Allow(read, write).Allow(read, change),
		AllCompatible: true,
		MaxBypass:     1,
	}, failing{})
	arrives := func(r *mailbox.Request) *mailbox.Request {
		k.Arrive(r)
		return r
	}
	next := func(want *mailbox.Request, fails error) {
		t.Helper()
		r, err := k.Next()
		require.ErrorIs(t, err, fails)
		require.Same(t, want, r)
	}
	requeue := func(r *mailbox.Request) {
		k.Complete(r)
		r.Op = write
		k.Enter(r, false)
	}
	try := arrives(&mailbox.Request{Op: read, Try: true})
	next(try, nil)
	other := arrives(&mailbox.Request{Op: read})
	next(other, nil)
	changer := arrives(&mailbox.Request{Op: change})
	next(changer, nil)
	late := arrives(&mailbox.Request{Op: read})
	requeue(try)
	requeue(other)
	next(late, nil) // passes both, which wait for the changer
	next(nil, nil)
	k.Complete(changer)
	next(try, errGuard)
	next(other, errGuard)
	next(nil, nil)
}
