package mailbox_test

import (
	"testing"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// What the scheduler costs of a call that waits and one that lets it in.
func BenchmarkHandOver(b *testing.B) {
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "even", Kind: mailbox.Entry, Guard: "even", Looks: guards.AtState},
			{Name: "odd", Kind: mailbox.Entry, Guard: "odd", Looks: guards.AtState},
		},
		Conflicts: guards.NewExclusive("even", "odd"),
	}, always{})
	r := &mailbox.Request{}
	for b.Loop() {
		if !k.Come(r, "even") {
			b.Fatal("it does not have to wait")
		}
		k.Begin(1)
		k.End(1, nil)
		k.GuardResults(1, 0)
		if next, _ := k.NextFor(func(*mailbox.Request) bool { return true }); next != r {
			b.Fatal("it did not start")
		}
		k.Complete(r)
		if next, _ := k.Next(); next != nil {
			b.Fatal("something started")
		}
	}
}
