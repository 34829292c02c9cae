package mailbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// Who runs something instead of waiting must not be late for what he waits for: so he is
// shown only what cannot but end before that starts.
func TestHoldingIsWhatHasToEndBefore(t *testing.T) {
	for _, c := range []struct {
		name          string
		allCompatible bool
		behind        []string // what holds a read that came after a change, while a read runs
	}{
		{"nobody passes", false, []string{"read"}},
		{"all that are compatible", true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			const enter, change, read, note = 0, 1, 2, 3
			rules := &mailbox.Rules{
				Operations: []mailbox.Operation{
					{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState},
					{Name: "change", Kind: mailbox.Procedure},
					{Name: "read", Kind: mailbox.Function},
					{Name: "note", Kind: mailbox.Procedure},
				},
				Conflicts:     guards.NewExclusive("enter", "change", "read", "note").Allow(read, read).Allow(enter, read).Allow(note, read).Allow(note, change),
				AllCompatible: c.allCompatible,
			}
			k := mailbox.New(rules, &gated{})
			holding := func(r *mailbox.Request, n int) (names []string) {
				for other := range k.Holding(r, n) {
					names = append(names, rules.Operations[other.Op].Name)
				}
				return names
			}
			arrive := func(op int) *mailbox.Request {
				r := &mailbox.Request{Op: op}
				k.Arrive(r)
				return r
			}
			first := arrive(read)
			arrive(note)
			runs, _ := k.Next()
			require.Same(t, first, runs)
			require.Empty(t, holding(first, 9), "it runs")
			noted, _ := k.Next()
			waits := arrive(enter)
			_, _ = k.Next()
			require.Equal(t, []string{"note"}, holding(waits, 9), "its guard is to be asked yet; with read it is compatible")
			k.Complete(noted)
			_, _ = k.Next()
			require.True(t, waits.Waits())
			require.Empty(t, holding(waits, 9), "it waits for its guard, and not for what runs")
			writer := arrive(change)
			late := arrive(read)
			require.Equal(t, []string{"read"}, holding(writer, 9))
			require.Equal(t, c.behind, holding(late, 9))
			require.Empty(t, holding(writer, 0), "nobody is looked at")
		})
	}
}
