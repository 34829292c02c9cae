package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// openly is an object whose guards all hold.
type openly struct{}

func (openly) AskState(int) (string, error)                { return "", nil }
func (openly) AskRequest(*mailbox.Request) (string, error) { return "", nil }

// A requeue to an open entry starts before another request is let in: so each goes through
// all of its turns before the next one begins, also if all have come at once.
func TestRequestsThatComeTogetherGoThroughTheirRequeuesOneAfterAnother(t *testing.T) {
	const turns, requests = 4, 10
	oldest := &mailbox.Policy{Name: "the oldest", Choose: func([]*mailbox.Request) (int, error) { return 0, nil }}
	policies := map[string]*mailbox.Policy{
		"none": nil, "arrival": mailbox.Arrival, "rotating": mailbox.Rotating, "lifo": mailbox.LIFO, "rank": mailbox.Ranked,
		"greater numbers first": byNumber, "a choice": oldest,
	}
	operations := func() (ops []mailbox.Operation, names []string) {
		for i := range turns {
			names = append(names, fmt.Sprint("turn ", i))
			ops = append(ops, mailbox.Operation{Name: names[i], Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState})
		}
		return ops, names
	}
	ops, names := operations()
	exclusive := guards.NewExclusive(names...)
	var same []guards.KeyOf
	for _, name := range names {
		same = append(same, guards.Key(guards.Name(name), func(int) int { return 0 }))
	}
	for name, policy := range policies {
		for what, rules := range map[string]mailbox.Rules{
			"plain":          {Conflicts: exclusive},
			"by key":         {Conflicts: exclusive.EqualKeys(same...)},
			"all compatible": {Conflicts: exclusive, AllCompatible: true},
			"bounded":        {Conflicts: exclusive, Bound: mailbox.Bound{Max: 100, Overflow: mailbox.Refuse}},
		} {
			for _, late := range []int{0, 3} { // arrive when the others are under way
				t.Run(fmt.Sprint(name, "/", what, "/", late), func(t *testing.T) {
					rules.Operations, rules.Policy = ops, policy
					k := mailbox.New(&rules, openly{})
					claim := func() *mailbox.Claim {
						if !rules.Scoped(0) {
							return nil
						}
						return &mailbox.Claim{Extents: []guards.Extent{{From: 0, To: 0}}}
					}
					for range requests - late {
						k.Arrive(&mailbox.Request{Claim: claim()})
					}
					var got, want []int
					for r := next(t, k); r != nil; r = next(t, k) {
						got = append(got, r.Op)
						if len(got) == 2 {
							for range late {
								k.Arrive(&mailbox.Request{Claim: claim()})
							}
						}
						if r.Op < turns-1 {
							k.Requeue(r, r.Op+1, nil, claim(), false)
						} else {
							k.Complete(r)
						}
					}
					for range requests {
						want = append(want, 0, 1, 2, 3)
					}
					require.Equal(t, want, got)
				})
			}
		}
	}
}

// However often a request is requeued, it stays behind those that wait inside and before
// those that are outside, and these stay in their order.
func TestOrderIsTheSameHoweverOftenARequestIsRequeued(t *testing.T) {
	const work, first, second, third, change = 0, 1, 2, 3, 4
	for name, policy := range map[string]*mailbox.Policy{"arrival": nil, "rank": mailbox.Ranked} {
		t.Run(name, func(t *testing.T) {
			open := false
			closed := func() bool { return open }
			entry := func(name string) mailbox.Operation {
				return mailbox.Operation{Name: name, Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState}
			}
			k := mailbox.New(&mailbox.Rules{
				Operations: []mailbox.Operation{
					{Name: "work", Kind: mailbox.Procedure}, entry("first"), entry("second"), entry("third"), {Name: "change", Kind: mailbox.Procedure},
				},
				Conflicts: guards.NewExclusive("work", "first", "second", "third", "change"), Policy: policy,
			}, asker{nil, closed, closed, closed, nil})
			inside, often := &mailbox.Request{Op: third}, &mailbox.Request{Op: work}
			k.Arrive(inside)
			require.Nil(t, next(t, k))
			k.Arrive(often)
			require.Same(t, often, next(t, k))
			outside := []*mailbox.Request{{Op: first}, {Op: first}, {Op: third}}
			for _, r := range outside {
				k.Arrive(r)
			}
			for range 1<<17 + 1 {
				k.Requeue(often, work, nil, nil, false)
				require.Same(t, often, next(t, k))
			}
			k.Requeue(often, second, nil, nil, false)
			require.Nil(t, next(t, k))
			k.Begin(change)
			open = true
			k.End(change, nil)
			var order []*mailbox.Request
			for r := next(t, k); r != nil; r = next(t, k) {
				order = append(order, r)
				k.Complete(r)
			}
			require.True(t, slices.Equal(append([]*mailbox.Request{inside, often}, outside...), order))
		})
	}
}

// Functions that wait for one guard start by one decision, also from outside.
func TestGuardOfAFunctionIsAskedOnceHoweverManyCome(t *testing.T) {
	const write, read = 0, 1
	asked := 0
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "write", Kind: mailbox.Procedure},
			{Name: "read", Kind: mailbox.Function, Guard: "open", Looks: guards.AtState},
		},
		Conflicts: guards.NewExclusive("write", "read").Allow(read, read),
	}, asker{nil, func() bool { asked++; return true }})
	writer := &mailbox.Request{Op: write}
	k.Arrive(writer)
	require.Same(t, writer, next(t, k))
	const readers = 100
	for range readers {
		k.Arrive(&mailbox.Request{Op: read})
	}
	k.Complete(writer)
	n := 0
	for r := next(t, k); r != nil; r = next(t, k) {
		n++
	}
	require.Equal(t, readers, n)
	require.Equal(t, 1, asked)
}
