package mailbox_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// always is an object whose guards over keys are closed, but for key -1, and
// whose others hold.
type always struct{}

func (always) AskState(int) (string, error) { return "", nil }

func (always) AskRequest(r *mailbox.Request) (string, error) {
	if r.Key == -1 || r.Key == nil {
		return "", nil
	}
	return "its turn", nil
}

func (always) Opens(_ *mailbox.Request, _ int, open func(any)) { open(-1) }

var policies = []*mailbox.Policy{
	mailbox.Arrival, mailbox.LIFO, mailbox.Ranked,
	{Name: "user", Within: true, Fallible: true, Before: func(a, b *mailbox.Request, _ int) (bool, error) { return a.Rank > b.Rank, nil }},
	{Name: "choice", Fallible: true, Choose: func(eligible []*mailbox.Request) (int, error) { return len(eligible) / 2, nil }},
}

// crowd returns a scheduler where n requests wait that could start.
func crowd(n int, p *mailbox.Policy) (*mailbox.Scheduler, []*mailbox.Request) {
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work", Kind: mailbox.Procedure}, {Name: "stop", Kind: mailbox.Procedure}},
		Conflicts:  guards.NewExclusive("work", "stop"), Policy: p,
	}, always{})
	all := make([]*mailbox.Request, n)
	for i := range all {
		all[i] = &mailbox.Request{Rank: int64(i * 7919 % n)}
		k.Arrive(all[i])
	}
	return k, all
}

// One comes, one starts and ends, and n others wait meanwhile.
func BenchmarkAdmission(b *testing.B) {
	for _, p := range policies {
		for _, n := range []int{10, 1000, 100000} {
			b.Run(fmt.Sprintf("%s/%d", p.Name, n), func(b *testing.B) {
				k, _ := crowd(n, p)
				r, _ := k.Next()
				i := int64(0)
				for b.Loop() {
					k.Complete(r)
					i++
					r.Rank = i * 7919 % int64(n)
					k.Arrive(r)
					r, _ = k.Next()
				}
			})
		}
	}
}

// One of n leaves, and comes again.
func BenchmarkWithdrawal(b *testing.B) {
	const n = 100000
	for _, p := range policies {
		b.Run(p.Name, func(b *testing.B) {
			k, all := crowd(n, p)
			r, _ := k.Next()
			k.Begin(1) // what comes stays at the gate until this ends
			k.Complete(r)
			k.End(1, nil)
			k.Next()
			i := 0
			for b.Loop() {
				if i = (i + 7919) % n; all[i].Waits() {
					k.Withdraw(all[i])
					k.Enter(all[i], false)
				}
			}
		})
	}
}

// An operation opens one key of a family, and says so; somebody waits for it, and
// others for n other keys.
func BenchmarkDeclaredOpening(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := mailbox.New(&mailbox.Rules{
				Operations: []mailbox.Operation{
					{Name: "wait", Kind: mailbox.Entry, Guard: "its turn", Looks: guards.AtArgument, Family: true, Opens: []int{0}},
					{Name: "open", Kind: mailbox.Procedure, Opens: []int{0}},
				},
				Conflicts: guards.NewExclusive("wait", "open"),
			}, always{})
			for i := range n {
				k.Arrive(&mailbox.Request{Key: i})
			}
			k.Next()
			opener, waiter := &mailbox.Request{Op: 1}, &mailbox.Request{Key: -1}
			for b.Loop() {
				k.Arrive(opener)
				k.Next()
				k.Arrive(waiter)
				k.Complete(opener)
				if r, _ := k.Next(); r != waiter {
					b.Fatal("the key is open")
				}
				k.Complete(waiter)
			}
			b.ReportMetric(float64(k.Stats(0).Evaluations-mailbox.Count(n))/float64(b.N), "evaluations/op")
		})
	}
}
