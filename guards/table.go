package guards

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table says which operations conflict: two that do may not run at the same time. It
// is symmetric by construction. A Table is a value: its methods return a changed copy.
//
//	table := guards.NewTable("deposit", "withdraw", "balance").
//		Exclusive(guards.Name("deposit")).
//		Conflict(guards.Name("balance"), guards.Name("withdraw"))
//
// Conflicts can be narrowed to requests whose arguments overlap: see Scope.
//
// Operations are said by whatever has their name: their handles, or a Name. A group of
// operations has a name too, and stands for all of them: it is a lock mode, in the words
// of Gray and Reuter, "Transaction Processing" (1993), whose tables these are. Of what is
// said of one pair the last word counts.
//
// What names no operation is remembered, and told by Err; whoever uses a Table asks that
// first. The table is as if it had not been said.
type Table struct {
	names  []string
	rows   []Set
	within [][]int // per pair of operations that conflict: the scope that decides, counted from 1; 0 is none
	scopes []Scope
	groups []group
	err    error
}

type group struct {
	name    string
	members []int
}

// Named is what has the name of an operation, or of a group of them.
type Named interface{ Name() string }

// Name is the name of an operation, or of a group of them.
type Name string

// Name returns n.
func (n Name) Name() string { return string(n) }

// TableError says that a conflict table has been declared of what is not there. The
// table is as if that had not been said.
type TableError struct {
	Name    string // of the operation or group
	Problem string
}

// Error implements error.
func (e *TableError) Error() string {
	return fmt.Sprintf("sluice: conflict table: %q %s", e.Name, e.Problem)
}

// NewTable returns the table in which no operation conflicts with any: conflicts are to be
// declared.
func NewTable(operations ...string) Table {
	t := Table{names: slices.Clone(operations), rows: make([]Set, len(operations)), within: make([][]int, len(operations))}
	for i := range t.rows {
		t.rows[i], t.within[i] = NewSet(len(operations)), make([]int, len(operations))
	}
	return t
}

// NewExclusive returns the table in which every operation conflicts with every other and
// with itself: one request at a time, as in an active object.
func NewExclusive(operations ...string) Table {
	return Where(operations, func(i, j int) bool { return true })
}

// Where returns the table in which the pairs of operations, by number, conflict of which the
// function says so. It is asked once for each pair, with i at most j.
func Where(operations []string, conflict func(i, j int) bool) Table {
	t := NewTable(operations...)
	for i := range operations {
		for j := i; j < len(operations); j++ {
			if conflict(i, j) {
				t.set(i, j, true)
			}
		}
	}
	return t
}

// Grown returns the table with more operations; of the pairs of which one is new those
// conflict of which the function says so, as in Where. An operation is left out of scopes that
// decide about none of its conflicts, as others have replaced them: so nothing is asked about
// it there.
func (t Table) Grown(operations []string, conflict func(i, j int) bool) Table {
	c := NewTable(append(t.Names(), operations...)...)
	c.scopes, c.groups, c.err = slices.Clone(t.scopes), t.groups, t.err
	for i := range c.scopes {
		s := &c.scopes[i]
		s.members = slices.DeleteFunc(slices.Clone(s.members), func(m member) bool { return !slices.Contains(t.within[m.op], i+1) })
	}
	for j := range c.names {
		for i := range j + 1 {
			if j >= len(t.names) {
				c.set(i, j, conflict(i, j))
				continue
			}
			c.set(i, j, t.Between(i, j))
			c.within[i][j], c.within[j][i] = t.within[i][j], t.within[j][i]
		}
	}
	return c
}

// Alike returns the table with more operations, of which each conflicts as the one with the number of conflicts, which is
// in the table: with others, with that one itself, and with those that are added. Its requests are given the same
// arguments.
func (t Table) Alike(operations []string, of []int) Table {
	as := func(i int) int {
		if i < t.Len() {
			return i
		}
		return of[i-t.Len()]
	}
	c := t.Grown(operations, func(i, j int) bool { return t.Between(as(i), as(j)) })
	for j := t.Len(); j < c.Len(); j++ {
		for i := range c.names {
			within := t.within[as(i)][as(j)]
			c.within[i][j], c.within[j][i] = within, within
		}
		for i := range c.scopes {
			c.scopes[i].alike = append(c.scopes[i].alike, [2]int{j, as(j)})
		}
	}
	return c
}

// Exclusive returns the table in which these operations conflict with all, themselves
// included.
func (t Table) Exclusive(operations ...Named) Table {
	c := t.clone()
	for _, i := range c.find(operations...) {
		for j := range c.names {
			c.set(i, j, true)
		}
	}
	return c
}

// Conflict returns the table in which the operation conflicts with each of the others.
func (t Table) Conflict(operation Named, others ...Named) Table {
	return t.pairs(true, operation, others)
}

// Compatible returns the table in which the operation may run at the same time as each
// of the others; it may be one of these.
func (t Table) Compatible(operation Named, others ...Named) Table {
	return t.pairs(false, operation, others)
}

// Group returns the table with a name for some of its operations, or for those of other
// groups. It says nothing of conflicts among them.
func (t Table) Group(name string, operations ...Named) Table {
	c := t.clone()
	if name == "" || len(operations) == 0 {
		c.fail(name, "is no group: give it a name and operations")
		return c
	}
	if c.lookup(name) != nil {
		c.fail(name, "is there already: give the group another name")
		return c
	}
	c.groups = append(c.groups, group{name, c.find(operations...)})
	return c
}

// Err returns what was wrong first with what has been declared, a *TableError; or nil.
func (t Table) Err() error { return t.err }

func (t Table) pairs(conflict bool, operation Named, others []Named) Table {
	c := t.clone()
	for _, i := range c.find(operation) {
		for _, j := range c.find(others...) {
			c.set(i, j, conflict)
		}
	}
	return c
}

func (t Table) clone() Table {
	c := t
	c.rows, c.within = make([]Set, len(t.rows)), make([][]int, len(t.rows))
	for i, row := range t.rows {
		c.rows[i], c.within[i] = slices.Clone(row), slices.Clone(t.within[i])
	}
	c.groups, c.scopes = slices.Clip(t.groups), slices.Clip(t.scopes)
	return c
}

func (t *Table) set(i, j int, conflict bool) {
	t.within[i][j], t.within[j][i] = 0, 0
	if conflict {
		t.rows[i].Add(j)
		t.rows[j].Add(i)
	} else {
		t.rows[i].Remove(j)
		t.rows[j].Remove(i)
	}
}

// find returns the numbers of the operations.
func (t *Table) find(operations ...Named) (numbers []int) {
	for _, op := range operations {
		if op == nil {
			t.fail("", "is nil: pass an operation's handle, or its name")
			continue
		}
		members := t.lookup(op.Name())
		if members == nil {
			t.fail(op.Name(), "is no operation of the table, nor a group: it has "+strings.Join(t.names, ", "))
		}
		numbers = append(numbers, members...)
	}
	return numbers
}

func (t *Table) lookup(name string) []int {
	if i := slices.Index(t.names, name); i >= 0 {
		return []int{i}
	}
	if i := slices.IndexFunc(t.groups, func(g group) bool { return g.name == name }); i >= 0 {
		return t.groups[i].members
	}
	return nil
}

func (t *Table) fail(name, problem string) {
	if t.err == nil {
		t.err = &TableError{Name: name, Problem: problem}
	}
}

// Names returns the names of the operations, by their number.
func (t Table) Names() []string { return slices.Clone(t.names) }

// Len returns the number of operations in the table.
func (t Table) Len() int { return len(t.names) }

// Between reports whether operations i and j, by number, may not run at the same
// time; or, if Within says so, some of their requests may not. (It is a pointer's method,
// like Row and Within: a scheduler asks them for every request, and a table is large to
// copy.)
func (t *Table) Between(i, j int) bool { return t.rows[i].Has(j) }

// Allow is Compatible for operations by number, which may be the same.
func (t Table) Allow(i, j int) Table {
	c := t.clone()
	c.set(i, j, false)
	return c
}

// Row returns the set of operations that conflict with operation i. It belongs
// to the table: do not change it.
func (t *Table) Row(i int) Set { return t.rows[i] }

// String draws the table as the matrix a person would draw: a dot marks a conflict,
// and other marks are explained below it.
func (t Table) String() string {
	first := 1
	for _, n := range t.names {
		first = max(first, utf8.RuneCountInString(n))
	}
	var b strings.Builder
	var used [len(marks)]bool
	pad := func(s string, width int) {
		b.WriteString(s + strings.Repeat(" ", max(width, 1)-utf8.RuneCountInString(s)+2))
	}
	pad("", first)
	for _, n := range t.names {
		pad(n, utf8.RuneCountInString(n))
	}
	for i, n := range t.names {
		b.WriteString("\n")
		pad(n, first)
		for j, m := range t.names {
			mark := " "
			if s := t.Within(i, j); s >= 0 {
				mark = marks[t.scopes[s].kind].mark
				used[t.scopes[s].kind] = true
			} else if t.Between(i, j) {
				mark = "•"
			}
			pad(mark, utf8.RuneCountInString(m))
		}
	}
	for kind, m := range marks {
		if used[kind] {
			b.WriteString("\n" + m.mark + " " + m.meaning)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
