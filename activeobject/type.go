package activeobject

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// None is the argument of an operation that takes none, and the result of one
// that returns none.
type None = guards.None

// Type is the declaration of a kind of shared object, whose state is a T: its
// name and its operations. It is sealed by its first object; from then on it may
// be used from any goroutine.
type Type[T any] struct {
	name string
	tag  uint32

	mu     sync.Mutex
	sealed bool
	ops    []*operation[T]
	byName map[string]*operation[T]
	rules  *kernel.Rules // of the active object: one request at a time
	count  atomic.Uint64 // objects so far

	defaults settings
}

// operation is what a type knows of an operation without its argument and result.
type operation[T any] struct {
	typ      *Type[T]
	index    int
	name     string
	kind     kernel.Kind
	guard    string
	looks    guards.Looks
	plain    func(*T) bool                                                 // the guard, if it is one condition over the state
	askState func(*T) string                                               // the guard, if it does not look at the argument
	tell     func(o *Object[T], argument any, reply func(any, error)) bool // runs it for a message
}

// types numbers the types, so that an object and an operation can be matched in
// the same step in which the object is taken.
var types atomic.Uint32

// NewType declares a type of shared object. The name is that of its objects in
// errors and explanations; it panics if the name is empty.
func NewType[T any](name string) *Type[T] {
	if name == "" {
		panic("activeobject: a type has no name: pass one to NewType, such as \"account\"")
	}
	return &Type[T]{name: name, tag: types.Add(1), byName: map[string]*operation[T]{}}
}

// Name returns the name of the type.
func (t *Type[T]) Name() string { return t.name }

// Operations returns the names of the type's operations in the order of their
// declaration.
func (t *Type[T]) Operations() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, len(t.ops))
	for i, op := range t.ops {
		names[i] = op.name
	}
	return names
}

// String implements fmt.Stringer.
func (t *Type[T]) String() string { return t.name }

// Default sets the options that all objects of the type get, unless New is given
// others. Said again, it replaces what was said before. It returns the type. An
// option that makes no sense fails New, not Default.
//
// It panics if the type is sealed, an option is nil, or one of them is Named,
// since no two objects have the same name.
func (t *Type[T]) Default(options ...Option) *Type[T] {
	var s settings
	for i, o := range options {
		if o == nil {
			panic(fmt.Sprintf("activeobject: default option %d of type %q is nil: pass options such as Rotating()", i+1, t.name))
		}
		o(&s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.sealed:
		panic(fmt.Sprintf("activeobject: type %q gets default options after the first object was made: call Default where the type is declared", t.name))
	case s.name != "":
		panic(fmt.Sprintf("activeobject: type %q gets a default name, which only one object could have: pass Named to New", t.name))
	}
	t.defaults = s
	return t
}

// add makes op an operation of the type. It panics if that is a mistake.
func (t *Type[T]) add(op *operation[T], body bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	where := fmt.Sprintf("activeobject: %s %q of type %q", op.kind, op.name, t.name)
	switch {
	case op.name == "":
		panic(fmt.Sprintf("activeobject: an operation of type %q has no name: pass one after the type", t.name))
	case t.sealed:
		panic(where + " is declared after the first object was made: declare it in a package-level variable or in init")
	case t.byName[op.name] != nil:
		panic(where + " is declared twice: give one of the two another name")
	case !body:
		panic(where + " has no body: pass the function that carries it out")
	}
	op.typ, op.index = t, len(t.ops)
	t.ops = append(t.ops, op)
	t.byName[op.name] = op
}

// seal ends the declaration. It panics if that is incomplete.
func (t *Type[T]) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return
	}
	declared := make([]kernel.Operation, len(t.ops))
	names := make([]string, len(t.ops))
	for i, op := range t.ops {
		if op.kind == kernel.Entry && op.guard == "" {
			panic(fmt.Sprintf("activeobject: entry %q of type %q has no guard: say when it is open with When, WhenArg, WhenWaiting or Guard, or declare it a Procedure", op.name, t.name))
		}
		declared[i] = kernel.Operation{Name: op.name, Kind: op.kind, Guard: op.guard, Looks: op.looks}
		names[i] = op.name
	}
	t.rules = &kernel.Rules{Operations: declared, Conflicts: guards.Exclusive(names...)}
	t.sealed = true
}

// class is what the objects of one type in one system that have the same options
// share. It is not changed once an object uses it.
type class[T any] struct {
	typ    *Type[T]
	system *actor.System
	config mailbox.Config
}

// class returns the class of objects with the given settings in a system. Those
// with the type's defaults share it, unless each has a goroutine of its own.
func (t *Type[T]) class(system *actor.System, s *settings) *class[T] {
	if *s == t.defaults && s.thread != dedicated {
		return system.Shared(t, func() any { return t.newClass(system, s) }).(*class[T])
	}
	return t.newClass(system, s)
}

func (t *Type[T]) newClass(system *actor.System, s *settings) *class[T] {
	rules := t.rules
	if s.policy != nil || s.maxBypass != 0 || s.log != nil {
		changed := *rules
		changed.Policy, changed.MaxBypass = s.policy, s.maxBypass
		if s.log != nil {
			changed.Log = *s.log
		}
		rules = &changed
	}
	c := &class[T]{typ: t, system: system, config: mailbox.Config{
		Rules: rules, Tag: t.tag, Workers: system.Workers(), Lend: lend, NoFastPath: s.noFastPath,
	}}
	switch s.thread {
	case pooled:
		c.config.Dispatcher = system.Workers()
	case dedicated:
		c.config.Dispatcher = actor.NewDedicated()
	}
	c.config.Prepare(func(op int) bool { return t.ops[op].plain != nil })
	return c
}

// lend is how many requests of others a goroutine serves before it passes the
// object on: enough to spread the price of passing, not so many that its own
// caller notices.
const lend = 32
