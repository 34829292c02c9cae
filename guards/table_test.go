package guards_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/guards"
)

// A table is symmetric, and two operations conflict unless they were declared
// compatible; a row is the set of what conflicts with its operation.
func TestTableIsSymmetricAndExclusiveByDefault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 130).Draw(t, "operations") // more than one word's worth
		table := guards.NewExclusive(make([]string, n)...)
		require.Equal(t, n, table.Len())
		type pair [2]int
		compatible := map[pair]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "pairs") {
			i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, n-1).Draw(t, "j")
			table = table.Allow(i, j)
			compatible[pair{i, j}], compatible[pair{j, i}] = true, true
		}
		for i := range n {
			for j := range n {
				require.Equal(t, !compatible[pair{i, j}], table.Between(i, j), "%d %d", i, j)
				require.Equal(t, table.Between(i, j), table.Row(i).Has(j))
			}
		}
	})
}

func TestTablesAreValues(t *testing.T) {
	names := []string{"put", "get"}
	exclusive := guards.NewExclusive(names...)
	changed := exclusive.Allow(0, 1)
	names[0] = "renamed"
	require.True(t, exclusive.Between(0, 1))
	require.False(t, changed.Between(0, 1))
	require.True(t, changed.Between(0, 0))
	require.NotContains(t, exclusive.String(), "renamed")
	require.NotContains(t, changed.String(), "renamed")
}

func TestTableIsDrawnWithOneColumnPerOperation(t *testing.T) {
	table := guards.NewExclusive("append", "öffnen", "len").Allow(2, 2).Allow(0, 1)
	require.Equal(t, strings.TrimPrefix(`
        append  öffnen  len
append  •               •
öffnen          •       •
len     •       •
`, "\n"), table.String())

	require.Equal(t, "   a  b\na  •  •\nb  •  •\n", guards.NewExclusive("a", "b").String())
	require.Equal(t, "\n   •\n", guards.NewExclusive("").String())
	require.Equal(t, "\n", guards.Table{}.String())
}

// Of what is said of a pair, by names or groups, in either order, the last word counts, for
// both orders.
func TestTheLastWordOnAPairCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}
		group := map[string][]int{"low": {0, 1}, "odd": {1, 3}, "all": {0, 1, 2, 3, 4}}
		table, want := guards.NewTable(names...), [5][5]bool{}
		for _, g := range []string{"low", "odd", "all"} {
			var members []guards.Named
			for _, i := range group[g] {
				members = append(members, guards.Name(names[i]))
			}
			table = table.Group(g, members...)
		}
		draw := func(label string) (guards.Named, []int) {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "low", "odd", "all"}).Draw(t, label)
			if members, ok := group[name]; ok {
				return guards.Name(name), members
			}
			return guards.Name(name), []int{slices.Index(names, name)}
		}
		for range rapid.IntRange(0, 12).Draw(t, "words") {
			x, xs := draw("x")
			y, ys := draw("y")
			conflict := false
			switch rapid.IntRange(0, 2).Draw(t, "word") {
			case 0:
				table, conflict = table.Conflict(x, y), true
			case 1:
				table = table.Compatible(x, y)
			default:
				table, conflict, ys = table.Exclusive(x), true, group["all"]
			}
			for _, i := range xs {
				for _, j := range ys {
					want[i][j], want[j][i] = conflict, conflict
				}
			}
		}
		require.NoError(t, table.Err())
		for i := range names {
			for j := range names {
				require.Equal(t, want[i][j], table.Between(i, j), "%d %d", i, j)
			}
		}
	})
}

func TestWhatNamesNothingIsTold(t *testing.T) {
	table := guards.NewTable("put", "get")
	put := guards.Name("put")
	for name, c := range map[string]struct {
		wrong guards.Table
		name  string
	}{
		"exclusive":  {table.Exclusive(put, guards.Name("pet")), "pet"},
		"conflict":   {table.Conflict(guards.Name("pet"), put), "pet"},
		"other":      {table.Conflict(put, guards.Name("")), ""},
		"compatible": {table.Compatible(put, nil), ""},
		"member":     {table.Group("g", guards.Name("pet")), "pet"},
		"empty":      {table.Group("g"), "g"},
		"nameless":   {table.Group("", put), ""},
		"operation":  {table.Group("get", put), "get"},
		"twice":      {table.Group("g", put).Group("g", put), "g"},
	} {
		t.Run(name, func(t *testing.T) {
			var e *guards.TableError
			require.ErrorAs(t, c.wrong.Err(), &e)
			require.Equal(t, c.name, e.Name)
			require.Equal(t, c.wrong.Err(), c.wrong.Exclusive(guards.Name("later")).Err(), "the first is told")
			require.NoError(t, table.Err())
		})
	}
}

// A Set behaves as the set of numbers that were added and not removed.
func TestSetHoldsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "room")
		draw := func() (guards.Set, map[int]bool) {
			set, want := guards.NewSet(n), map[int]bool{}
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				i := rapid.IntRange(0, n-1).Draw(t, "member")
				if rapid.Bool().Draw(t, "add") {
					set.Add(i)
					want[i] = true
				} else {
					set.Remove(i)
					delete(want, i)
				}
			}
			return set, want
		}
		a, wantA := draw()
		b, wantB := draw()
		var members, sorted []int
		for i := a.Next(0); i >= 0; i = a.Next(i + 1) {
			members = append(members, i)
		}
		meets := false
		for i := range n {
			require.Equal(t, wantA[i], a.Has(i))
			if wantA[i] {
				sorted = append(sorted, i)
			}
			meets = meets || wantA[i] && wantB[i]
		}
		require.True(t, slices.Equal(sorted, members), "Next yields %v of %v", members, sorted)
		require.Equal(t, meets, a.Meets(b))
		require.Equal(t, meets, b.Meets(a))
		require.Equal(t, -1, a.Next(64*len(a)))
	})
}
