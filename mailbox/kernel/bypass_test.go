package kernel_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// frail is an object whose guard is true, but fails for one request.
type frail struct{ fails *kernel.Request }

var errFrail = errors.New("frail")

func (f *frail) AskState(int) (string, error) { return "", nil }

func (f *frail) AskRequest(r *kernel.Request) (string, error) {
	if r == f.fails {
		return "", errFrail
	}
	return "", nil
}

// Whoever is about to be bypassed is asked for that; if his guard fails then, the
// object has failed, and nobody is to start before that has been told.
func TestWhoFailsWhenHeIsBypassedIsToldBeforeAnybodyStarts(t *testing.T) {
	f := &frail{}
	k := kernel.New(&kernel.Rules{
		Operations: []kernel.Operation{
			{Name: "get", Kind: kernel.Entry, Guard: "frail", Looks: guards.AtArgument},
			{Name: "stop", Kind: kernel.Procedure},
		},
		Conflicts: guards.Exclusive("get", "stop"),
		Policy:    kernel.LIFO,
		MaxBypass: 2,
	}, f)
	k.Begin(1)
	old, bypassed, young := &kernel.Request{}, &kernel.Request{}, &kernel.Request{}
	for _, r := range []*kernel.Request{old, bypassed, young} {
		k.Arrive(r)
	}
	k.End(1, nil)
	f.fails = old
	r, err := k.Next()
	require.Same(t, old, r)
	require.ErrorIs(t, err, errFrail)
	k.Hold()
	r, err = k.Next()
	require.Nil(t, r)
	require.NoError(t, err)
	require.Zero(t, k.Bypassed(bypassed), "nobody has started")
	k.Free(false)
	r, err = k.Next()
	require.Same(t, young, r)
	require.NoError(t, err)
	require.Equal(t, 1, k.Bypassed(bypassed))
}
