package mailbox_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// halls answers for the predicate of a table.
type halls struct{ mailbox.Object }

func (halls) Clash(_ int, a, b *mailbox.Request) (bool, error) {
	return a.Key.(int) == b.Key.(int), nil
}

// One admission, from arrival to completion, while so many others run: it depends on them
// only where it has to be compared with each by a predicate.
func BenchmarkAdmissionBesideMany(b *testing.B) {
	work := guards.Name("work")
	number := func(n int) int { return n }
	for _, scope := range []struct {
		name  string
		table guards.Table
	}{
		{"operations", guards.NewExclusive("work").Compatible(work, work)},
		{"keys", guards.NewExclusive("work").EqualKeys(guards.Key(work, number))},
		{"intervals", guards.NewExclusive("work").Overlapping(guards.Interval(work, func(n int) (int, int) { return n, n + 1 }))},
		{"predicate", guards.NewExclusive("work").OnlyIf(guards.Pair(work, work, func(a, b int) bool { return a == b }))},
	} {
		for _, running := range []int{0, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/running=%d", scope.name, running), func(b *testing.B) {
				rules := &mailbox.Rules{Operations: []mailbox.Operation{{Name: "work"}}, Conflicts: scope.table}
				k := mailbox.New(rules, halls{})
				next := func(r *mailbox.Request, key int) {
					r.Key = key
					if rules.Scoped(0) {
						e, err := scope.table.Scopes()[0].Extent(0, key)
						if err != nil {
							b.Fatal(err)
						}
						r.Claim = &mailbox.Claim{Extents: []guards.Extent{e}}
					}
					k.Arrive(r)
					if got, _ := k.Next(); got != r {
						b.Fatal("it does not start")
					}
				}
				for i := range running {
					next(&mailbox.Request{}, i)
				}
				r := &mailbox.Request{}
				b.ReportAllocs()
				for b.Loop() {
					next(r, -1)
					k.Complete(r)
				}
			})
		}
	}
}
