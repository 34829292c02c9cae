package conflicttest

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/guards"
)

// Check fails the test for every two operations that the table declares compatible and
// that are not safe together, and for every function that changes the state. The package
// comment says what is looked at. It seals the type.
//
// The generator of states draws what it needs and returns a function that makes the
// state, as often as it is called: two requests are tried in either order and at once,
// each time from a state of its own. States must share nothing that is written to.
//
// The table is one of the type's operations, such as accounts.Conflicts() or the one that
// is passed to synchronizer.Conflicts. An operation that is compatible with any needs a
// generator for its argument, unless that is None: see Arguments.
//
// The checks are as many as rapid's flags say (-rapid.checks), and rapid keeps what it
// has found in the directory testdata/rapid, to begin with it the next time.
func Check[T any](t testing.TB, typ *activeobject.Type[T], table guards.Table, states func(t *rapid.T) (make func() *T), options ...Option) {
	t.Helper()
	c := &checker[T]{name: t.Name(), typ: typ, table: table, states: states}
	c.arguments = map[string]generator{}
	for _, o := range options {
		o(&c.settings)
	}
	if c.fingerprint == nil {
		c.fingerprint = func(state any) string { return objecttest.Dump(state) }
	}
	if err := c.prepare(); err != nil {
		t.Errorf("%v", err)
		return
	}
	call := calls.next(t)
	if child {
		if call == os.Getenv(callVariable) {
			c.report(os.Getenv(directoryVariable))
			t.SkipNow() // the rest of the test is the parent's
		}
		return
	}
	apart, reported := map[pair]bool{}, false
	report := func(f *finding, err error) bool {
		t.Helper()
		switch {
		case f != nil:
			t.Errorf("%s", f)
		case err != nil:
			t.Errorf("%v", err)
		default:
			return false
		}
		reported = true
		return true
	}
	for i := range c.operations {
		if c.used(i) {
			report(c.alone(i))
		}
		if _, given := c.arguments[c.operations[i].Name]; given {
			report(c.undone(i))
		}
	}
	if reported {
		return // of operations that are not what they seem there is nothing to say in pairs
	}
	for _, p := range c.pairs() {
		apart[p] = report(c.inTurn(p))
	}
	c.inChild(t, call, apart, report)
}

// Option says more of what is to be checked.
type Option func(*settings)

type settings struct {
	arguments   map[string]generator
	commuting   bool
	fingerprint func(state any) string
}

// generator is one of arguments.
type generator struct {
	of   reflect.Type
	draw func(*rapid.T) any
}

// Arguments gives an operation a generator for its arguments. Bodies must not change
// what these lead to, as they are used several times.
func Arguments[T, A, R any](op *activeobject.Operation[T, A, R], g *rapid.Generator[A]) Option {
	name := op.Name()
	return func(s *settings) {
		s.arguments[name] = generator{reflect.TypeFor[A](), func(t *rapid.T) any { return g.Draw(t, name) }}
	}
}

// Commuting checks besides that compatible operations commute, as they must where different transactions may
// use them at the same time. Of a type that Commutes it is checked anyway.
func Commuting() Option { return func(s *settings) { s.commuting = true } }

// Fingerprint describes a state by a text of the user's, in place of objecttest.Dump:
// alike for states that are to count as equal, and different for others. It must not
// change the state.
func Fingerprint[T any](of func(state *T) string) Option {
	return func(s *settings) { s.fingerprint = func(state any) string { return of(state.(*T)) } }
}

// checker is a call of Check.
type checker[T any] struct {
	settings
	name       string
	typ        *activeobject.Type[T]
	table      guards.Table
	states     func(*rapid.T) func() *T
	operations []activeobject.Declaration[T]
}

// A pair is two operations by number, the lower one first, that are compatible.
type pair [2]int

// prepare finds out whether what has been said makes sense.
func (c *checker[T]) prepare() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("conflicttest: table of "+c.typ.Name()+": "+format, args...)
	}
	if err := c.table.Err(); err != nil {
		return wrong("%w", err)
	}
	names := c.typ.Operations()
	if own := c.table.Names(); !slices.Equal(own, names) {
		return wrong("it is another type's: its operations are %s instead of %s", strings.Join(own, ", "), strings.Join(names, ", "))
	}
	for name := range c.arguments {
		if !slices.Contains(names, name) {
			return wrong("there are arguments for operation %q, which the type does not have: it has %s", name, strings.Join(names, ", "))
		}
	}
	c.operations = activeobject.Declarations(c.typ)
	if err := c.table.Fits(func(i int) reflect.Type { return c.operations[i].Argument }); err != nil {
		return wrong("%w", err)
	}
	for i, op := range c.operations {
		g, given := c.arguments[op.Name]
		switch {
		case given && g.of != op.Argument:
			return wrong("operation %q takes a %v, and its generator makes a %v: pass Arguments the handle of this type", op.Name, op.Argument, g.of)
		case given || !c.used(i):
		case op.Argument != reflect.TypeFor[activeobject.None]():
			return wrong("operation %q has no generator for its argument: pass Arguments(%s, …)", op.Name, op.Name)
		default:
			c.arguments[op.Name] = generator{op.Argument, func(*rapid.T) any { return activeobject.None(nil) }}
		}
	}
	return nil
}

// pairs returns those that are to be checked.
func (c *checker[T]) pairs() (all []pair) {
	for i := range c.operations {
		for j := i; j < len(c.operations); j++ {
			if c.compatible(i, j) {
				all = append(all, pair{i, j})
			}
		}
	}
	return all
}

// compatible reports whether requests of two operations may run at once; those of which
// the table says so, if it goes by arguments.
func (c *checker[T]) compatible(i, j int) bool {
	return !c.table.Between(i, j) || c.table.Within(i, j) >= 0
}

// used reports whether there is something to check of an operation.
func (c *checker[T]) used(i int) bool {
	for j := range c.operations {
		if c.compatible(i, j) {
			return true
		}
	}
	op := c.operations[i]
	return op.Function || op.Undo != nil || op.Save != nil
}

// both names the operations of a pair.
func (c *checker[T]) both(p pair) string {
	return c.operations[p[0]].Name + " and " + c.operations[p[1]].Name
}
