package guards

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Set is a set of operations, by their number in a Table.
type Set []uint64

// NewSet returns an empty set with room for n operations.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Add puts operation i into the set.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove takes operation i out of the set.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// Has reports whether operation i is in the set.
func (s Set) Has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Meets reports whether the two sets, of the same room, have a member in common.
func (s Set) Meets(t Set) bool {
	for i, w := range s {
		if w&t[i] != 0 {
			return true
		}
	}
	return false
}

// Next returns the smallest member that is at least i, or -1.
func (s Set) Next(i int) int {
	w := i >> 6
	if w >= len(s) {
		return -1
	}
	if b := s[w] >> (i & 63); b != 0 {
		return i + bits.TrailingZeros64(b)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w<<6 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

// Table says which operations conflict: two that do may not run at the same
// time. It is symmetric by construction. A Table is a value: the methods that
// change it return a changed copy.
type Table struct {
	names []string
	rows  []Set
}

// Exclusive returns the table in which every operation conflicts with every
// other and with itself: one request at a time, as in an active object.
func Exclusive(operations ...string) Table {
	t := Table{names: slices.Clone(operations), rows: make([]Set, len(operations))}
	for i := range t.rows {
		t.rows[i] = NewSet(len(operations))
		for j := range operations {
			t.rows[i].Add(j)
		}
	}
	return t
}

// Compatible returns the table with operations i and j, by number, declared free
// to run at the same time; i and j may be the same.
func (t Table) Compatible(i, j int) Table {
	c := Table{names: t.names, rows: make([]Set, len(t.rows))}
	for k, row := range t.rows {
		c.rows[k] = slices.Clone(row)
	}
	c.rows[i].Remove(j)
	c.rows[j].Remove(i)
	return c
}

// Len returns the number of operations in the table.
func (t Table) Len() int { return len(t.names) }

// Conflict reports whether operations i and j, by number, may not run at the
// same time.
func (t Table) Conflict(i, j int) bool { return t.rows[i].Has(j) }

// Row returns the set of operations that conflict with operation i. It belongs
// to the table: do not change it.
func (t Table) Row(i int) Set { return t.rows[i] }

// String draws the table as the matrix a person would draw: a dot marks a
// conflict.
func (t Table) String() string {
	width := 1
	for _, n := range t.names {
		width = max(width, utf8.RuneCountInString(n))
	}
	var b strings.Builder
	pad := func(s string) { b.WriteString(s + strings.Repeat(" ", width-utf8.RuneCountInString(s)+2)) }
	pad("")
	for _, n := range t.names {
		pad(n)
	}
	for i, n := range t.names {
		b.WriteString("\n")
		pad(n)
		for j := range t.names {
			if t.Conflict(i, j) {
				pad("•")
			} else {
				pad(" ")
			}
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
