// Package patterntest tests what all ready-made shared objects have in common: the forms
// of their methods, and their operations by message.
package patterntest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	contexts = reflect.TypeFor[context.Context]()
	errs     = reflect.TypeFor[error]()
)

// Convention requires that a handle, a pointer to a ready-made object's type, offers each of
// its operations in all forms. One that waits, X, takes a context, as do SendX and TryX, and
// there is XCase; one that never waits takes none, nor does SendX. Arrivals cannot be taken
// back, so those named have neither TryX nor XCase.
func Convention[H any](t *testing.T, arrivals ...string) {
	h := reflect.TypeFor[H]()
	for i := range h.NumMethod() {
		m := h.Method(i)
		if !operation(m) {
			continue
		}
		in, out := parameters(m), results(m)
		waits := len(in) > 0 && in[0] == contexts
		form := func(name string, in []reflect.Type) reflect.Method {
			f, ok := h.MethodByName(name)
			if assert.True(t, ok, "%s.%s has no %s", h, m.Name, name) {
				assert.Equal(t, in, parameters(f), "parameters of %s.%s", h, name)
			}
			return f
		}
		form("Send"+m.Name, in)
		if !waits || slices.Contains(arrivals, m.Name) {
			continue
		}
		if try := form("Try"+m.Name, in); try.Type != nil {
			assert.Equal(t, out, results(try), "results of %s.Try%s", h, m.Name)
		}
		in = in[1:]
		if m.Type.IsVariadic() {
			in = in[:len(in)-1] // what a case cannot have
		}
		form(m.Name+"Case", in)
	}
}

// operation reports whether a method is the plain form of an operation: all of these return
// an error.
func operation(m reflect.Method) bool {
	for _, other := range []string{"Send", "Try", "With"} {
		if strings.HasPrefix(m.Name, other) {
			return false
		}
	}
	out := results(m)
	return len(out) > 0 && out[len(out)-1] == errs
}

func parameters(m reflect.Method) []reflect.Type {
	all := []reflect.Type{}
	for i := 1; i < m.Type.NumIn(); i++ {
		all = append(all, m.Type.In(i))
	}
	return all
}

func results(m reflect.Method) []reflect.Type {
	all := []reflect.Type{}
	for i := range m.Type.NumOut() {
		all = append(all, m.Type.Out(i))
	}
	return all
}
