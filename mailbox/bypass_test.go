package mailbox_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// frail is an object whose guard is true, but fails for one request.
type frail struct{ fails *mailbox.Request }

var errFrail = errors.New("frail")

func (f *frail) AskState(int) (string, error) { return "", nil }

func (f *frail) AskRequest(r *mailbox.Request) (string, error) {
	if r == f.fails {
		return "", errFrail
	}
	return "", nil
}

// Whoever is about to be bypassed is asked for that; if his guard fails then, the
// object has failed, and nobody is to start before that has been told.
func TestWhoFailsWhenHeIsBypassedIsToldBeforeAnybodyStarts(t *testing.T) {
	f := &frail{}
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "get", Kind: mailbox.Entry, Guard: "frail", Looks: guards.AtArgument},
			{Name: "stop", Kind: mailbox.Procedure},
		},
		Conflicts: guards.NewExclusive("get", "stop"),
		Policy:    mailbox.LIFO,
		MaxBypass: 2,
	}, f)
	k.Begin(1)
	old, bypassed, young := &mailbox.Request{}, &mailbox.Request{}, &mailbox.Request{}
	for _, r := range []*mailbox.Request{old, bypassed, young} {
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

// counting is an object whose guard holds, and which counts what it is asked.
type counting struct{ asked int }

func (c *counting) AskState(int) (string, error)                { c.asked++; return "", nil }
func (c *counting) AskRequest(*mailbox.Request) (string, error) { c.asked++; return "", nil }
func (c *counting) Clash(int, *mailbox.Request, *mailbox.Request) (bool, error) {
	c.asked++
	return false, nil
}

// May can commit the caller to the start, as a selection does that is claimed. So it is asked
// last: whatever has to be evaluated for the start has been by then, and cannot fail any more.
func TestNothingIsEvaluatedBetweenMayAndTheStart(t *testing.T) {
	exclusive := guards.NewExclusive("get", "stop")
	never := guards.Pair(guards.Name("get"), guards.Name("get"), func(a, b any) bool { return false })
	for name, table := range map[string]guards.Table{"exclusive": exclusive, "by predicate": exclusive.OnlyIf(never)} {
		t.Run(name, func(t *testing.T) {
			c := &counting{}
			k := mailbox.New(&mailbox.Rules{
				Operations: []mailbox.Operation{
					{Name: "get", Kind: mailbox.Entry, Guard: "true", Looks: guards.AtArgument},
					{Name: "stop", Kind: mailbox.Procedure},
				},
				Conflicts: table,
				Policy:    mailbox.LIFO,
				MaxBypass: 2,
			}, c)
			request := func() *mailbox.Request {
				return &mailbox.Request{Claim: &mailbox.Claim{Extents: make([]guards.Extent, len(table.Scopes()))}}
			}
			if table.Within(0, 0) >= 0 {
				starts(t, k, request()) // of which the others are to be compared with
			}
			k.Hold()
			old, young := request(), request()
			k.Arrive(old)
			k.Arrive(young)
			r, _ := k.Next()
			require.Nil(t, r)
			k.Free(false)
			before := c.asked
			var by int // how much has been asked when may is
			for _, thread := range []bool{false, true} {
				r, err := k.NextFor(func(*mailbox.Request) bool { by = c.asked; return thread })
				require.Same(t, young, r)
				require.Equal(t, thread, err == nil)
				require.Equal(t, by, c.asked)
				require.Greater(t, by, before)
				require.Equal(t, thread, k.Bypassed(old) == 1)
			}
		})
	}
}

// vague is an object whose guards are false, until they hold; and that of one request
// does not come back then.
type vague struct {
	k    *mailbox.Scheduler
	open bool
	goes *mailbox.Request
}

func (v *vague) AskState(int) (string, error) { return v.answer(), nil }

func (v *vague) AskRequest(r *mailbox.Request) (string, error) {
	if v.open && r == v.goes {
		v.k.GuardFailed(r.Op, r, errGone)
		panic(errGone)
	}
	return v.answer(), nil
}

func (v *vague) answer() string {
	if v.open {
		return ""
	}
	return "vague"
}

// A try is not lost, nor does it fail, if the guard of somebody whom it bypasses does
// not come back.
func TestATryStaysIfTheGuardOfSomebodyElseNeverReturns(t *testing.T) {
	v := &vague{}
	const wait, get, put, see, look = 0, 1, 2, 3, 4
	table := guards.NewExclusive("wait", "get", "put", "see", "look")
	for _, pair := range [][2]int{{see, get}, {see, put}, {see, look}, {look, wait}, {look, get}} {
		table = table.Allow(pair[0], pair[1])
	}
	v.k = mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "wait", Kind: mailbox.Entry, Guard: "vague", Looks: guards.AtState},
			{Name: "get", Kind: mailbox.Entry, Guard: "vague", Looks: guards.AtArgument},
			{Name: "put", Kind: mailbox.Procedure},
			{Name: "see", Kind: mailbox.Function},
			{Name: "look", Kind: mailbox.Function},
		},
		Conflicts: table,
		MaxBypass: 2,
	}, v)
	first, second, third := &mailbox.Request{Op: wait}, &mailbox.Request{Op: get}, &mailbox.Request{Op: get}
	for _, r := range []*mailbox.Request{first, second, third} {
		v.k.Arrive(r)
	}
	r, _ := v.k.Next()
	require.Nil(t, r)
	v.k.Begin(see) // so that first, which comes before the others, cannot be asked
	v.k.Begin(put)
	v.open, v.goes = true, third
	v.k.End(put, nil)
	try := &mailbox.Request{Op: look, Try: true}
	v.k.Arrive(try)
	gone(func() { v.k.Next() })
	r, err := v.k.Next()
	require.Same(t, third, r)
	require.ErrorIs(t, err, errGone)
	require.Equal(t, mailbox.StateEntry, try.State())
	r, err = v.k.Next()
	require.Same(t, try, r)
	require.NoError(t, err)
}
