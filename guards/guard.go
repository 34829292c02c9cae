// Package guards holds the named boundary conditions of a shared object and the
// table that says which of its operations conflict. Both are pure values: they
// know nothing of queues, threads or actors.
//
//	   state ──┐
//	           ├──► guard ──► holds, or the name of the part that is false
//	argument ──┘
//
// A guard is the condition after "when" in an Ada entry. It has a name, so that
// a request that waits for it can be explained, and And, Or and Not keep the
// names of their parts.
package guards

import (
	"fmt"
	"strings"
)

// None is the argument of an operation that takes none, and the result of one that
// returns none. Its only value is nil, so a call without an argument reads
//
//	n, err := balance.Call(ctx, savings, nil)
type None *none

type none struct{}

// Guard is a named condition over the state of an object of type S and, if it
// asks for it, over the argument A of the request that waits. A guard must be
// free of side effects: it may be asked any number of times, and its answer
// holds until the next operation that changes the state.
//
// The zero Guard has no name and always holds.
type Guard[S, A any] struct{ tree *tree }

// tree is a guard whatever it is over: a condition, or others combined. What is compiled for each S
// and A is how a condition is evaluated.
type tree struct {
	name  string
	looks Looks
	word  string  // by which the parts are combined: "and", "or" or "not"
	parts []*tree // none of a condition
	holds any     // of a condition: a func(*S) bool, a func(*S, A) bool, or, to name the false part, a func(*S, A) string
}

// Looks says what a guard looks at, and so when it has to be evaluated again.
type Looks uint8

const (
	// AtState guards are evaluated once for all requests that wait for them.
	AtState Looks = 0
	// AtArgument guards are evaluated once for each request that waits for them.
	AtArgument Looks = 1 << 0
	// AtWaiting guards look at how many requests wait, and are evaluated again
	// after each arrival and withdrawal too.
	AtWaiting Looks = 1 << 1
	// AtTime guards look at the time, and are evaluated again when that has come which they
	// wait for.
	AtTime Looks = 1 << 2
)

// Lapses reports whether a result of the guard lapses though nothing has run, as it looks at more
// than state and argument: at how many requests wait, or at the time.
func (l Looks) Lapses() bool { return l&(AtWaiting|AtTime) != 0 }

// When returns a guard over the state alone. It panics if name is empty or
// holds is nil.
func When[S any](name string, holds func(*S) bool) Guard[S, None] {
	return Guard[S, None]{condition(name, AtState, holds, holds != nil)}
}

// WhenArg returns a guard over the state and the argument of the request. It
// panics if name is empty or holds is nil.
func WhenArg[S, A any](name string, holds func(*S, A) bool) Guard[S, A] {
	return Guard[S, A]{condition(name, AtArgument, holds, holds != nil)}
}

// WhenWaiting returns a guard over the state that also looks at how many
// requests wait at the object (Ada's 'Count). It panics if name is empty or
// holds is nil.
func WhenWaiting[S any](name string, holds func(*S) bool) Guard[S, None] {
	return Guard[S, None]{condition(name, AtWaiting, holds, holds != nil)}
}

// WhenTime returns a guard over the state that also looks at the time, by a Clock in the state.
// It panics if name is empty or holds is nil.
func WhenTime[S any](name string, holds func(*S) bool) Guard[S, None] {
	return Guard[S, None]{condition(name, AtTime, holds, holds != nil)}
}

// Of returns a guard that looks at the given things and is evaluated by ask, which returns the name
// of the part that is false, or "" if the guard holds. It panics if name is empty or ask is nil.
func Of[S, A any](name string, looks Looks, ask func(*S, A) (falsePart string)) Guard[S, A] {
	return Guard[S, A]{condition(name, looks, ask, ask != nil)}
}

// condition returns a guard that is no other ones combined.
func condition(name string, looks Looks, holds any, body bool) *tree {
	must(name, body)
	return &tree{name: name, looks: looks, holds: holds}
}

func must(name string, body bool) {
	if name == "" {
		panic("guards: a guard has no name: give it the words that explain a wait, such as \"not full\"")
	}
	if !body {
		panic(fmt.Sprintf("guards: guard %q has no condition: pass a func that reports whether it holds", name))
	}
}

// Over lifts a guard over the state to one over the state and an argument of
// type A that it ignores, so that it can be combined with guards that do not.
func Over[A, S any](g Guard[S, None]) Guard[S, A] { return Guard[S, A](g) }

// Part turns a guard over a state T into one over an S, of which that is a part, which part
// returns. Name, parts and answers are those of the guard; a zero one stays zero.
func Part[S, T, A any](g Guard[T, A], part func(*S) *T) Guard[S, A] {
	return Guard[S, A]{g.tree.over(func(t *tree) any {
		switch holds := t.holds.(type) {
		case func(*T) bool:
			return func(s *S) bool { return holds(part(s)) }
		case func(*T, A) bool:
			return func(s *S, a A) bool { return holds(part(s), a) }
		}
		return func(s *S, a A) string { return ask(t, part(s), a) }
	})}
}

// over returns a copy of the tree with other conditions. Even if the text of two guards is the
// same they are different conditions, as they may be over different parts of the state.
func (t *tree) over(holds func(*tree) any) *tree {
	if t == nil {
		return nil
	}
	c := *t
	if c.parts == nil {
		c.holds = holds(t)
		return &c
	}
	c.parts = make([]*tree, len(t.parts))
	for i, p := range t.parts {
		c.parts[i] = p.over(holds)
	}
	return &c
}

// ID returns what tells guards apart: it is equal for copies of one guard and for
// what Over makes of it, and nil for the zero Guard. What Part makes of one is
// another.
func (g Guard[S, A]) ID() any {
	if g.tree == nil {
		return nil
	}
	return g.tree
}

// Name returns the guard's name; that of a combined guard is built from its
// parts: (a and b), (a or b), not a.
func (g Guard[S, A]) Name() string {
	if g.tree == nil {
		return ""
	}
	return g.tree.name
}

// Looks reports what the guard looks at.
func (g Guard[S, A]) Looks() Looks {
	if g.tree == nil {
		return AtState
	}
	return g.tree.looks
}

// IsZero reports whether g is the zero Guard.
func (g Guard[S, A]) IsZero() bool { return g.tree == nil }

// Ask evaluates the guard once. It returns "" if the guard holds, and else the
// name of the smallest part that explains why not: of (a and b) the first that
// is false, of (a or b) and not a the whole.
func (g Guard[S, A]) Ask(s *S, a A) (falsePart string) {
	if g.tree == nil {
		return ""
	}
	return ask(g.tree, s, a)
}

func ask[S, A any](t *tree, s *S, a A) (falsePart string) {
	return t.ask(func(t *tree) string {
		ok := false
		switch holds := t.holds.(type) {
		case func(*S) bool:
			ok = holds(s)
		case func(*S, A) bool:
			ok = holds(s, a)
		case func(*S, None) bool: // lifted by Over
			ok = holds(s, nil)
		case func(*S, A) string:
			return holds(s, a)
		case func(*S, None) string:
			return holds(s, nil)
		}
		if ok {
			return ""
		}
		return t.name
	})
}

// ask evaluates the tree, by a function that evaluates a condition.
func (t *tree) ask(condition func(*tree) (falsePart string)) (falsePart string) {
	switch t.word {
	case "and":
		for _, p := range t.parts {
			if part := p.ask(condition); part != "" {
				return part
			}
		}
		return ""
	case "or":
		for _, p := range t.parts {
			if p.ask(condition) == "" {
				return ""
			}
		}
		return t.name
	case "not":
		if t.parts[0].ask(condition) != "" {
			return ""
		}
		return t.name
	}
	return condition(t)
}

// Simple returns the condition of a guard made by When, WhenWaiting or WhenTime alone, and nil for
// any other: a caller may ask it without the detour by name.
func (g Guard[S, A]) Simple() func(*S) bool {
	if g.tree == nil {
		return nil
	}
	holds, _ := g.tree.holds.(func(*S) bool)
	return holds
}

// SimpleArg is Simple for a guard made by WhenArg alone.
func (g Guard[S, A]) SimpleArg() func(*S, A) bool {
	if g.tree == nil {
		return nil
	}
	holds, _ := g.tree.holds.(func(*S, A) bool)
	return holds
}

// And holds when all of its parts hold. They are asked in order, up to the
// first that is false. It panics without parts or with a zero one.
func And[S, A any](parts ...Guard[S, A]) Guard[S, A] { return Guard[S, A]{join("and", trees(parts))} }

// Or holds when at least one of its parts does. They are asked in order, up to
// the first that holds. It panics without parts or with a zero one.
func Or[S, A any](parts ...Guard[S, A]) Guard[S, A] { return Guard[S, A]{join("or", trees(parts))} }

// Not holds when g does not. It panics if g is zero.
func Not[S, A any](g Guard[S, A]) Guard[S, A] { return Guard[S, A]{not(g.tree)} }

func not(t *tree) *tree {
	if t == nil {
		panic("guards: Not of a guard without condition: make it with When or WhenArg first")
	}
	return &tree{name: "not " + t.name, looks: t.looks, word: "not", parts: []*tree{t}}
}

func trees[S, A any](parts []Guard[S, A]) []*tree {
	all := make([]*tree, len(parts))
	for i := range parts {
		all[i] = parts[i].tree
	}
	return all
}

// join returns the guard that the parts make by a word.
func join(word string, parts []*tree) *tree {
	if len(parts) == 0 {
		panic("guards: " + word + " of no guards: pass at least one")
	}
	names := make([]string, len(parts))
	var looks Looks
	for i, p := range parts {
		if p == nil {
			panic(fmt.Sprintf("guards: part %d of a combined guard has no condition: make it with When or WhenArg first", i+1))
		}
		names[i] = p.name
		looks |= p.looks
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &tree{name: "(" + strings.Join(names, " "+word+" ") + ")", looks: looks, word: word, parts: parts}
}
