package guards

import (
	"cmp"
	"fmt"
	"reflect"
)

// Scope narrows the conflicts between some operations: of their requests only those
// conflict that overlap in it, by their arguments.
//
//	table.EqualKeys(guards.Key(put, Put.Key), guards.Key(get, func(key string) string { return key }))
//	table.Overlapping(guards.Interval(lock, Region.Bounds), guards.Interval(read, Region.Bounds))
//	table.OnlyIf(guards.Pair(move, move, Move.Crosses))
//
// A table has any number of them; for a pair of operations the last one counts that was
// declared.
type Scope struct {
	kind    ScopeKind
	members []member
	compare func(a, b any) int  // the ends of intervals
	clash   func(a, b any) bool // for a pair, in the order of members
	alike   [][2]int            // operations, each with the one that it conflicts as
}

// as returns the operation as which the given one conflicts.
func (s *Scope) as(operation int) int {
	for _, a := range s.alike {
		if a[0] == operation {
			return a[1]
		}
	}
	return operation
}

// ScopeKind is how requests overlap in a Scope.
type ScopeKind uint8

const (
	// ByKey requests overlap if their keys are equal.
	ByKey ScopeKind = iota
	// ByInterval requests overlap if their intervals have a point in common.
	ByInterval
	// ByPredicate requests overlap if a function of both arguments says so.
	ByPredicate
)

// marks are how conflicts within a scope are drawn.
var marks = [...]struct{ mark, meaning string }{{"=", "if their keys are equal"}, {"∩", "if their intervals overlap"}, {"?", "if a condition holds"}}

type member struct {
	op       int
	argument reflect.Type
	extent   func(argument any) (Extent, error)
}

// Extent is what a request takes up of a scope: a key, or the interval from From up to and
// without To. The zero Extent takes up nothing.
type Extent struct{ From, To any }

// nilKey stands for a nil key, of an interface type: it is a key like any other.
type nilKey struct{}

// KeyOf is the key of an operation's requests: see Key.
type KeyOf struct {
	operation Named
	argument  reflect.Type
	key       reflect.Type
	extent    func(any) (Extent, error)
}

// Key says by what an operation's requests are told apart, for Table.EqualKeys. The function
// must give the same key whenever it is asked, and look at the argument only.
func Key[A any, K comparable](operation Named, key func(argument A) K) KeyOf {
	k := KeyOf{operation: operation, argument: reflect.TypeFor[A](), key: reflect.TypeFor[K]()}
	if key != nil {
		k.extent = func(argument any) (Extent, error) {
			a, _ := argument.(A)
			own := key(a)
			if same := own; same != own { // it panics if the key cannot be compared after all
				return Extent{}, fmt.Errorf("key %v is not equal to itself", own)
			}
			if any(own) == nil {
				return Extent{From: nilKey{}}, nil
			}
			return Extent{From: own}, nil
		}
	}
	return k
}

// IntervalOf is the interval of an operation's requests: see Interval.
type IntervalOf struct {
	operation Named
	argument  reflect.Type
	point     reflect.Type
	extent    func(any) (Extent, error)
	compare   func(a, b any) int
}

// Interval says what region an operation's requests take up, for Table.Overlapping: from
// the first point up to and without the second. If the two are equal it is empty, and
// overlaps with none; if the second is less than the first the request fails. The function
// must give the same interval whenever it is asked, and look at the argument only.
func Interval[A any, P cmp.Ordered](operation Named, interval func(argument A) (from, to P)) IntervalOf {
	i := IntervalOf{
		operation: operation, argument: reflect.TypeFor[A](), point: reflect.TypeFor[P](),
		compare: func(a, b any) int { return cmp.Compare(a.(P), b.(P)) },
	}
	if interval != nil {
		i.extent = func(argument any) (Extent, error) {
			a, _ := argument.(A)
			from, to := interval(a)
			switch {
			case from < to:
				return Extent{From: from, To: to}, nil
			case from == to:
				return Extent{}, nil
			}
			return Extent{}, fmt.Errorf("interval from %v to %v has no direction: its end is less than its beginning", from, to)
		}
	}
	return i
}

// PairOf is a condition on the requests of two operations: see Pair.
type PairOf struct {
	a, b      Named
	arguments [2]reflect.Type
	clash     func(a, b any) bool
}

// Pair says when two requests conflict, of one operation and of another, which may be the
// same, for Table.OnlyIf. The condition must look at the two arguments only. It is asked of
// a request and of each that runs of the other operation: so keys, or intervals, cost less
// if there are many. Of two requests of one operation it is asked both ways round.
func Pair[A, B any](a, b Named, conflict func(A, B) bool) PairOf {
	p := PairOf{a: a, b: b, arguments: [2]reflect.Type{reflect.TypeFor[A](), reflect.TypeFor[B]()}}
	if conflict != nil {
		p.clash = func(x, y any) bool {
			a, _ := x.(A)
			b, _ := y.(B)
			return conflict(a, b)
		}
	}
	return p
}

// EqualKeys returns the table in which requests of the operations, as far as these conflict,
// do so only if their keys are equal. An operation that is said to conflict with one of
// them later conflicts with all its requests.
func (t Table) EqualKeys(keys ...KeyOf) Table {
	c := t.clone()
	s := Scope{kind: ByKey}
	for _, k := range keys {
		if c.joins(&s, k.operation, k.argument, k.extent) && c.err == nil && k.key != keys[0].key {
			c.fail(k.operation.Name(), fmt.Sprintf("has a key of type %v, which is never equal to %q's of type %v: make them of one type", k.key, keys[0].operation.Name(), keys[0].key))
		}
	}
	c.narrow(s)
	return c
}

// Overlapping returns the table in which requests of the operations, as far as these
// conflict, do so only if their intervals overlap.
func (t Table) Overlapping(intervals ...IntervalOf) Table {
	c := t.clone()
	s := Scope{kind: ByInterval}
	for _, i := range intervals {
		if c.joins(&s, i.operation, i.argument, i.extent) && c.err == nil && i.point != intervals[0].point {
			c.fail(i.operation.Name(), fmt.Sprintf("has an interval of type %v, and %q's is of type %v: make them of one type", i.point, intervals[0].operation.Name(), intervals[0].point))
		}
		s.compare = i.compare
	}
	c.narrow(s)
	return c
}

// OnlyIf returns the table in which requests of each pair of operations, if these conflict,
// do so only if the condition holds for their arguments.
func (t Table) OnlyIf(pairs ...PairOf) Table {
	c := t.clone()
	for _, p := range pairs {
		s := Scope{kind: ByPredicate, clash: p.clash}
		for i, op := range [...]Named{p.a, p.b} {
			var asked func(any) (Extent, error)
			if p.clash != nil {
				asked = func(any) (Extent, error) { return Extent{}, nil }
			}
			c.joins(&s, op, p.arguments[i], asked)
		}
		c.narrow(s)
	}
	return c
}

// joins makes an operation, or those of a group, members of the scope.
func (t *Table) joins(s *Scope, operation Named, argument reflect.Type, extent func(any) (Extent, error)) bool {
	if operation != nil && extent == nil {
		t.fail(operation.Name(), "is given a nil function: pass one of the argument")
		return false
	}
	found := t.find(operation)
	if s.kind == ByPredicate && len(found) > 1 {
		t.fail(operation.Name(), "is a group, and a pair is of two operations: declare one for each")
		return false
	}
	for _, op := range found {
		if s.kind != ByPredicate && s.Has(op) {
			t.fail(t.names[op], "is in the scope twice, perhaps by a group: give it one function")
			return false
		}
		s.members = append(s.members, member{op, argument, extent})
	}
	return len(found) > 0
}

// narrow adds a scope, and lets it decide about the conflicts among its members.
func (t *Table) narrow(s Scope) {
	if t.err != nil {
		return
	}
	t.scopes = append(t.scopes, s)
	for a, m := range s.members {
		for b, o := range s.members {
			if t.Between(m.op, o.op) && (s.kind != ByPredicate || a != b) {
				t.within[m.op][o.op] = len(t.scopes)
			}
		}
	}
}

// Scopes returns the scopes of the table, those included that others have replaced.
func (t Table) Scopes() []Scope { return t.scopes }

// Within returns the number, in Scopes, of the scope in which requests of operations i and j
// conflict if they overlap there; or -1, if they always do, or never.
func (t *Table) Within(i, j int) int { return t.within[i][j] - 1 }

// Narrowed reports whether operation i conflicts with any by a scope.
func (t Table) Narrowed(i int) bool {
	for j := range t.names {
		if t.within[i][j] != 0 {
			return true
		}
	}
	return false
}

// Clash reports whether a request of operation i with the argument a conflicts with one of
// operation j with the argument b. It asks the functions of the table, which may panic; a
// request that has no key or interval is taken to conflict.
func (t Table) Clash(i int, a any, j int, b any) bool {
	within := t.Within(i, j)
	if within < 0 {
		return t.Between(i, j)
	}
	s := &t.scopes[within]
	if s.kind == ByPredicate {
		return s.Predicate(i, a, b)
	}
	x, errX := s.Extent(i, a)
	y, errY := s.Extent(j, b)
	return errX != nil || errY != nil || s.Overlap(x, y)
}

// Fits returns a *TableError if a function of the table is of another type of argument than
// its operation has; or nil.
func (t Table) Fits(argument func(operation int) reflect.Type) error {
	for _, s := range t.scopes {
		for _, m := range s.members {
			if own := argument(m.op); !own.AssignableTo(m.argument) {
				return &TableError{Name: t.names[m.op], Problem: fmt.Sprintf("takes a %v, and is given a function of a %v", own, m.argument)}
			}
		}
	}
	return nil
}

// Kind returns how requests overlap in the scope.
func (s *Scope) Kind() ScopeKind { return s.kind }

// Has reports whether an operation is in the scope.
func (s *Scope) Has(operation int) bool { return s.member(operation) != nil }

// Extent returns what a request of the operation with the argument takes up; nothing, if
// the operation is not in the scope, or that is a predicate. It fails if the argument has
// no key or interval, and panics if the function does.
func (s *Scope) Extent(operation int, argument any) (Extent, error) {
	if m := s.member(operation); m != nil {
		return m.extent(argument)
	}
	return Extent{}, nil
}

// Overlap reports whether two extents, of keys or intervals, overlap.
func (s *Scope) Overlap(a, b Extent) bool {
	if a.From == nil || b.From == nil {
		return false
	}
	if s.kind == ByKey {
		return a.From == b.From
	}
	return s.compare(a.From, b.To) < 0 && s.compare(b.From, a.To) < 0
}

// Compare orders two ends of intervals.
func (s *Scope) Compare(a, b any) int { return s.compare(a, b) }

// Predicate reports whether a request of the operation with argument a, and one of the other
// operation with argument b, overlap. It panics if the condition does.
func (s *Scope) Predicate(operation int, a, b any) bool {
	switch operation = s.as(operation); {
	case s.members[0].op != operation:
		return s.clash(b, a)
	case s.members[1].op == operation:
		return s.clash(a, b) || s.clash(b, a)
	}
	return s.clash(a, b)
}

func (s *Scope) member(operation int) *member {
	operation = s.as(operation)
	for i := range s.members {
		if s.members[i].op == operation {
			return &s.members[i]
		}
	}
	return nil
}
