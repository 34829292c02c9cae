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

// None is the argument of an operation that takes none, and the result of one
// that returns none.
type None = struct{}

// Guard is a named condition over the state of an object of type S and, if it
// asks for it, over the argument A of the request that waits. A guard must be
// free of side effects: it may be asked any number of times, and its answer
// holds until the next operation that changes the state.
//
// The zero Guard has no name and always holds.
type Guard[S, A any] struct {
	name   string
	looks  Looks
	ask    func(*S, A) (falsePart string)
	simple func(*S) bool    // the condition, if it is a single one that does not look at the argument
	single func(*S, A) bool // likewise, if it does
	id     *byte            // tells guards apart; copies of one have the same
}

// Looks says what a guard looks at, and so when it has to be asked again.
type Looks uint8

const (
	// AtState guards are asked once for all requests that wait for them.
	AtState Looks = 0
	// AtArgument guards are asked once for each request that waits for them.
	AtArgument Looks = 1 << 0
	// AtWaiting guards look at how many requests wait, and are asked again
	// after each arrival and withdrawal too.
	AtWaiting Looks = 1 << 1
)

// When returns a guard over the state alone. It panics if name is empty or
// holds is nil.
func When[S any](name string, holds func(*S) bool) Guard[S, None] {
	must(name, holds != nil)
	return Guard[S, None]{name: name, id: new(byte), simple: holds, ask: func(s *S, _ None) string {
		if holds(s) {
			return ""
		}
		return name
	}}
}

// WhenArg returns a guard over the state and the argument of the request. It
// panics if name is empty or holds is nil.
func WhenArg[S, A any](name string, holds func(*S, A) bool) Guard[S, A] {
	must(name, holds != nil)
	return Guard[S, A]{name: name, id: new(byte), looks: AtArgument, single: holds, ask: func(s *S, a A) string {
		if holds(s, a) {
			return ""
		}
		return name
	}}
}

// WhenWaiting returns a guard over the state that also looks at how many
// requests wait at the object (Ada's 'Count). It panics if name is empty or
// holds is nil.
func WhenWaiting[S any](name string, holds func(*S) bool) Guard[S, None] {
	g := When(name, holds)
	g.looks |= AtWaiting
	return g
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
func Over[A, S any](g Guard[S, None]) Guard[S, A] {
	lifted := Guard[S, A]{name: g.name, id: g.id, looks: g.looks, simple: g.simple}
	if g.ask != nil {
		lifted.ask = func(s *S, _ A) string { return g.ask(s, None{}) }
	}
	return lifted
}

// Adapt turns a guard over a state T and an argument A into one over an S, whose
// part that is a T state returns, and a B, which argument turns into an A. Name,
// parts and answers are those of the guard; a zero one stays zero.
func Adapt[S, B, T, A any](g Guard[T, A], state func(*S) *T, argument func(B) A) Guard[S, B] {
	adapted := Guard[S, B]{name: g.name, looks: g.looks}
	if g.id != nil {
		adapted.id = new(byte) // of another part of the state it is another condition
	}
	if g.ask != nil {
		adapted.ask = func(s *S, b B) string { return g.ask(state(s), argument(b)) }
	}
	if g.simple != nil {
		adapted.simple = func(s *S) bool { return g.simple(state(s)) }
	}
	if g.single != nil {
		adapted.single = func(s *S, b B) bool { return g.single(state(s), argument(b)) }
	}
	return adapted
}

// Carried returns a guard that requests carry in their argument: it holds when
// theirs does, and is false by the part by which theirs is. Theirs must not look at
// waiting counts.
func Carried[S, A any](name string, guard func(A) Guard[S, None]) Guard[S, A] {
	must(name, guard != nil)
	return Guard[S, A]{name: name, id: new(byte), looks: AtArgument, ask: func(s *S, a A) string {
		return guard(a).Ask(s, None{})
	}}
}

// ID returns what tells guards apart: it is equal for copies of one guard and for
// what Over makes of it, and nil for the zero Guard. What Adapt makes of one is
// another, as it may look at another part of the state.
func (g Guard[S, A]) ID() any {
	if g.id == nil {
		return nil
	}
	return g.id
}

// Name returns the guard's name; that of a combined guard is built from its
// parts: (a and b), (a or b), not a.
func (g Guard[S, A]) Name() string { return g.name }

// Looks reports what the guard looks at.
func (g Guard[S, A]) Looks() Looks { return g.looks }

// IsZero reports whether g is the zero Guard.
func (g Guard[S, A]) IsZero() bool { return g.ask == nil }

// Ask evaluates the guard once. It returns "" if the guard holds, and else the
// name of the smallest part that explains why not: of (a and b) the first that
// is false, of (a or b) and not a the whole.
func (g Guard[S, A]) Ask(s *S, a A) (falsePart string) {
	if g.ask == nil {
		return ""
	}
	return g.ask(s, a)
}

// Simple returns the condition of a guard made by When or WhenWaiting alone, and nil for
// any other: a caller may ask it without the detour by name.
func (g Guard[S, A]) Simple() func(*S) bool { return g.simple }

// SimpleArg is Simple for a guard made by WhenArg alone.
func (g Guard[S, A]) SimpleArg() func(*S, A) bool { return g.single }

// And holds when all of its parts hold. They are asked in order, up to the
// first that is false. It panics without parts or with a zero one.
func And[S, A any](parts ...Guard[S, A]) Guard[S, A] {
	parts, name, looks := join("and", parts)
	if name == "" {
		return parts[0]
	}
	return Guard[S, A]{name: name, id: new(byte), looks: looks, ask: func(s *S, a A) string {
		for i := range parts {
			if part := parts[i].ask(s, a); part != "" {
				return part
			}
		}
		return ""
	}}
}

// Or holds when at least one of its parts does. They are asked in order, up to
// the first that holds. It panics without parts or with a zero one.
func Or[S, A any](parts ...Guard[S, A]) Guard[S, A] {
	parts, name, looks := join("or", parts)
	if name == "" {
		return parts[0]
	}
	return Guard[S, A]{name: name, id: new(byte), looks: looks, ask: func(s *S, a A) string {
		for i := range parts {
			if parts[i].ask(s, a) == "" {
				return ""
			}
		}
		return name
	}}
}

// Not holds when g does not. It panics if g is zero.
func Not[S, A any](g Guard[S, A]) Guard[S, A] {
	if g.IsZero() {
		panic("guards: Not of a guard without condition: make it with When or WhenArg first")
	}
	name := "not " + g.name
	return Guard[S, A]{name: name, id: new(byte), looks: g.looks, ask: func(s *S, a A) string {
		if g.ask(s, a) != "" {
			return ""
		}
		return name
	}}
}

// join returns a copy of the parts, as the caller's slice may change later, and what
// is known of the guard that they make; or no name if there is only one.
func join[S, A any](word string, parts []Guard[S, A]) (own []Guard[S, A], name string, looks Looks) {
	own = make([]Guard[S, A], len(parts))
	known := make([]head, len(parts))
	for i := range parts {
		own[i] = parts[i]
		known[i] = head{parts[i].name, parts[i].looks, parts[i].IsZero()}
	}
	name, looks = joined(word, known)
	return own, name, looks
}

// head is what is known of a guard whatever it is over.
type head struct {
	name  string
	looks Looks
	zero  bool
}

// joined is the part of join that need not be compiled for every type.
func joined(word string, parts []head) (name string, looks Looks) {
	if len(parts) == 0 {
		panic("guards: " + word + " of no guards: pass at least one")
	}
	if len(parts) == 1 && !parts[0].zero {
		return "", 0
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		if p.zero {
			panic(fmt.Sprintf("guards: part %d of a combined guard has no condition: make it with When or WhenArg first", i+1))
		}
		names[i] = p.name
		looks |= p.looks
	}
	return "(" + strings.Join(names, " "+word+" ") + ")", looks
}
