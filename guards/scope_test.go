package guards_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/guards"
)

type region struct{ from, to int }

func (r region) bounds() (from, to int) { return r.from, r.to }

// files is a table with a scope of each kind.
func files() guards.Table {
	name := func(f func(region) string, op string) guards.KeyOf { return guards.Key(guards.Name(op), f) }
	one := func(region) string { return "one" }
	return guards.NewExclusive("open", "close", "write", "read", "move", "sync").
		Compatible(guards.Name("read"), guards.Name("read")).
		EqualKeys(name(one, "open"), name(one, "close")).
		Overlapping(guards.Interval(guards.Name("write"), region.bounds), guards.Interval(guards.Name("read"), region.bounds)).
		OnlyIf(guards.Pair(guards.Name("move"), guards.Name("write"), func(m, w region) bool { return m.from == w.to }))
}

// Requests of two operations conflict if they overlap in the scope of the two, whichever of
// them comes first; without one, if the operations do.
func TestRequestsConflictIfTheyOverlapInTheirScope(t *testing.T) {
	table := files()
	require.NoError(t, table.Err())
	op := func(name string) int { return indexOf(table.Names(), name) }
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) region {
			from := rapid.IntRange(0, 5).Draw(t, label)
			return region{from, from + rapid.IntRange(0, 3).Draw(t, label+" length")}
		}
		a, b := draw("a"), draw("b")
		overlap := max(a.from, b.from) < min(a.to, b.to)
		for _, c := range []struct {
			x, y string
			want bool
		}{
			{"open", "close", true},
			{"open", "write", true},
			{"write", "write", overlap},
			{"write", "read", overlap},
			{"read", "read", false},
			{"move", "write", a.from == b.to},
			{"move", "move", true},
			{"sync", "read", true},
		} {
			require.Equal(t, c.want, table.Clash(op(c.x), a, op(c.y), b), "%s %v, %s %v", c.x, a, c.y, b)
			require.Equal(t, c.want, table.Clash(op(c.y), b, op(c.x), a), "%s %v, %s %v", c.y, b, c.x, a)
		}
	})
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// A pair of one operation is asked both ways round, so that the table stays symmetric.
func TestAPredicateOfOneOperationIsSymmetric(t *testing.T) {
	move := guards.Name("move")
	table := guards.NewExclusive("move").OnlyIf(guards.Pair(move, move, func(a, b int) bool { return a < b }))
	require.True(t, table.Clash(0, 1, 0, 2))
	require.True(t, table.Clash(0, 2, 0, 1))
	require.False(t, table.Clash(0, 1, 0, 1))
}

// What is said of a pair later takes it out of its scope, and another scope takes it over;
// pairs that are compatible are in none.
func TestTheLastScopeOfAPairCounts(t *testing.T) {
	put, get := guards.Name("put"), guards.Name("get")
	same := func(n int) int { return n }
	none := func(int) (int, int) { return 0, 0 }
	table := guards.NewExclusive("put", "get").Compatible(get, get).EqualKeys(guards.Key(put, same), guards.Key(get, same))
	require.Equal(t, []int{0, 0, -1}, []int{table.Within(0, 0), table.Within(0, 1), table.Within(1, 1)})
	require.True(t, table.Narrowed(1))

	narrower := table.Overlapping(guards.Interval(put, none))
	require.Equal(t, []int{1, 0}, []int{narrower.Within(0, 0), narrower.Within(1, 0)})
	require.False(t, narrower.Clash(0, 1, 0, 1), "an empty interval overlaps with none")

	wider := narrower.Conflict(put, put, get)
	require.False(t, wider.Narrowed(0))
	require.True(t, wider.Clash(0, 1, 1, 2))
	require.False(t, table.Clash(0, 1, 1, 2), "a table is a value")

	more := table.Grown([]string{"clear"}, func(i, j int) bool { return true })
	require.Equal(t, []int{0, -1}, []int{more.Within(0, 1), more.Within(0, 2)})
	require.True(t, more.Between(2, 0))
}

func TestScopesAreDrawnAndExplained(t *testing.T) {
	require.Equal(t, strings.TrimPrefix(`
       open  close  write  read  move  sync
open   =     =      •      •     •     •
close  =     =      •      •     •     •
write  •     •      ∩      ∩     ?     •
read   •     •      ∩            •     •
move   •     •      ?      •     •     •
sync   •     •      •      •     •     •
= if their keys are equal
∩ if their intervals overlap
? if a condition holds
`, "\n"), files().String())
}

func TestWrongScopesAreTold(t *testing.T) {
	put, get := guards.Name("put"), guards.Name("get")
	number := func(n int) int { return n }
	word := func(int) string { return "" }
	table := guards.NewExclusive("put", "get").Group("all", put, get)
	for name, c := range map[string]struct {
		wrong   guards.Table
		problem string
	}{
		"unknown":     {table.EqualKeys(guards.Key(guards.Name("pet"), number)), `"pet" is no operation of the table`},
		"no function": {table.EqualKeys(guards.Key[int, int](put, nil)), `"put" is given a nil function`},
		"other keys":  {table.EqualKeys(guards.Key(put, number), guards.Key(get, word)), `"get" has a key of type string, which is never equal to "put"'s of type int`},
		"other ends": {table.Overlapping(guards.Interval(put, func(n int) (int, int) { return n, n }), guards.Interval(get, func(int) (string, string) { return "", "" })),
			`"get" has an interval of type string, and "put"'s is of type int`},
		"no interval":  {table.Overlapping(guards.Interval[int, int](put, nil)), `"put" is given a nil function`},
		"no condition": {table.OnlyIf(guards.Pair[int, int](put, get, nil)), `"put" is given a nil function`},
		"group":        {table.OnlyIf(guards.Pair(guards.Name("all"), get, func(int, int) bool { return true })), `"all" is a group`},
		"nil":          {table.OnlyIf(guards.Pair(put, nil, func(int, int) bool { return true })), "is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			var e *guards.TableError
			require.ErrorAs(t, c.wrong.Err(), &e)
			require.ErrorContains(t, e, c.problem)
			require.False(t, c.wrong.Narrowed(0), "it is as if it had not been said")
		})
	}
	keyed := table.EqualKeys(guards.Key(put, number), guards.Key(get, func(any) int { return 0 }))
	require.NoError(t, keyed.Fits(func(int) reflect.Type { return reflect.TypeFor[int]() }))
	err := keyed.Fits(func(int) reflect.Type { return reflect.TypeFor[string]() })
	require.EqualError(t, err, `sluice: conflict table: "put" takes a string, and is given a function of a int`)
}

// A key that is not equal to itself, and an interval that ends before it begins, are told
// of; for Clash they conflict.
func TestExtentsThatMakeNoSense(t *testing.T) {
	put := guards.Name("put")
	keyed := guards.NewExclusive("put").EqualKeys(guards.Key(put, func(f float64) float64 { return f }))
	_, err := keyed.Scopes()[0].Extent(0, math.NaN())
	require.ErrorContains(t, err, "not equal to itself")
	require.True(t, keyed.Clash(0, math.NaN(), 0, 1.0))

	spread := guards.NewExclusive("put").Overlapping(guards.Interval(put, region.bounds))
	_, err = spread.Scopes()[0].Extent(0, region{2, 1})
	require.ErrorContains(t, err, "interval from 2 to 1 has no direction")
	e, err := spread.Scopes()[0].Extent(0, region{1, 1})
	require.NoError(t, err)
	require.Equal(t, guards.Extent{}, e)
}

// A nil key is one like others: a request that has it conflicts with others that do.
func TestNilKeysAreEqual(t *testing.T) {
	put := guards.Name("put")
	table := guards.NewExclusive("put").EqualKeys(guards.Key(put, func(key any) any { return key }))
	require.NoError(t, table.Err())
	require.True(t, table.Clash(0, nil, 0, nil))
	require.False(t, table.Clash(0, nil, 0, 1))
	e, err := table.Scopes()[0].Extent(0, nil)
	require.NoError(t, err)
	require.NotEqual(t, guards.Extent{}, e, "which takes up nothing")
}

// An operation has one function in a scope, and a table of which something is wrong says
// what was wrong first.
func TestScopesOfWhatIsWrongAreRefused(t *testing.T) {
	put, get := guards.Name("put"), guards.Name("get")
	free := guards.NewExclusive("put", "get")
	id := func(n int) int { return n }
	at := func(n int) (int, int) { return n, n + 1 }
	for problem, table := range map[string]guards.Table{
		`"get" is in the scope twice`: free.Group("all", put, get).EqualKeys(guards.Key(guards.Name("all"), id), guards.Key(get, id)),
		`"put" is in the scope twice`: free.Overlapping(guards.Interval(put, at), guards.Interval(put, at)),
		`"" is nil`:                   free.EqualKeys(guards.Key(nil, id), guards.Key(get, func(n int) string { return "" })),
	} {
		require.ErrorContains(t, table.Err(), problem)
	}
	nils := free.Overlapping(guards.Interval(nil, at), guards.Interval(get, func(n int) (a, b string) { return a, b }))
	require.ErrorContains(t, nils.Err(), `"" is nil`)
}

// Of an operation that others have taken out of a scope nothing is asked there.
func TestReplacedScopesAskNothing(t *testing.T) {
	put, get, all := guards.Name("put"), guards.Name("get"), []string{"put", "get"}
	wrong := func(int) int { panic("asked") }
	id := func(n int) int { return n }
	table := guards.NewExclusive(all...).
		EqualKeys(guards.Key(put, wrong), guards.Key(get, id)).
		EqualKeys(guards.Key(put, id)).Exclusive(put).
		Grown([]string{"clear"}, func(i, j int) bool { return true })
	for i := range table.Scopes() {
		s := &table.Scopes()[i]
		require.False(t, s.Has(0))
		require.Equal(t, i == 0, s.Has(1), "get conflicts with itself by the first")
		_, err := s.Extent(0, 1)
		require.NoError(t, err)
	}
	require.True(t, table.Clash(0, 1, 1, 2))
	require.False(t, table.Clash(1, 1, 1, 2))
}
