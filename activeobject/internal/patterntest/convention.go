// Package patterntest tests what all ready-made shared objects have in common: the forms
// of their methods, and their operations by message.
package patterntest

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/activeobject"
)

var (
	contexts = reflect.TypeFor[context.Context]()
	errs     = reflect.TypeFor[error]()
	nones    = reflect.TypeFor[activeobject.None]()
	objects  = reflect.TypeFor[activeobject.AnyObject]()
)

// Reads says that an operation only reads the state, and so has a plain method only.
const Reads = ""

// Convention requires that a handle, a pointer to a ready-made object's type, has two methods for
// each operation: the plain form X, and Xs, which returns the operation bound to the object, with
// the same argument and result. Otherwise says which method it is, or Reads, where that differs.
// Nothing that is exported mentions a type that is not.
func Convention[H any](t *testing.T, otherwise map[string]string) {
	h := reflect.TypeFor[H]()
	for i := range h.NumMethod() {
		m := h.Method(i)
		if m.Name == "Shared" {
			continue // for tests: see Of
		}
		for _, typ := range append(parameters(m), results(m)...) {
			public(t, h, m.Name, typ)
		}
		if m.Name == "Object" {
			assert.Equal(t, []reflect.Type{objects}, results(m), "%s.Object", h)
		}
		if !operation(m) {
			continue
		}
		name, special := otherwise[m.Name]
		if special && name == Reads {
			assert.NotContains(t, parameters(m), contexts, "%s.%s waits", h, m.Name)
			continue
		}
		if !special {
			name = m.Name + "s"
		}
		bound, ok := h.MethodByName(name)
		if !assert.True(t, ok, "%s.%s has no %s", h, m.Name, name) {
			continue
		}
		call, ok := results(bound)[0].MethodByName("Call")
		assert.True(t, ok, "%s.%s is no proxy", h, name)
		if !special {
			assert.Equal(t, onlyOne(without(parameters(m), contexts)), parameters(call)[1], "argument of %s.%s", h, name)
			assert.Equal(t, onlyOne(without(results(m), errs)), results(call)[0], "result of %s.%s", h, name)
		}
	}
}

// operation reports whether a method is the plain form of an operation: all of these return
// an error.
func operation(m reflect.Method) bool {
	out := results(m)
	return !strings.HasPrefix(m.Name, "With") && len(out) > 0 && out[len(out)-1] == errs
}

// public requires that a user of the package can write down the type, and its type arguments.
func public(t *testing.T, h reflect.Type, method string, typ reflect.Type) {
	for typ.Name() == "" && (typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice) {
		typ = typ.Elem()
	}
	for name := range strings.FieldsFuncSeq(typ.String(), func(r rune) bool { return strings.ContainsRune("[],*() ", r) }) {
		name = name[strings.LastIndex(name, "/")+1:]
		if pkg, base, ok := strings.Cut(name, "."); ok && !strings.HasSuffix(pkg, "_test") {
			assert.True(t, base[0] >= 'A' && base[0] <= 'Z', "%s.%s mentions %s", h, method, name)
		}
	}
}

// onlyOne returns the only type of a list, or None.
func onlyOne(types []reflect.Type) reflect.Type {
	if len(types) == 1 {
		return types[0]
	}
	return nones
}

func without(types []reflect.Type, typ reflect.Type) (rest []reflect.Type) {
	for _, t := range types {
		if t != typ {
			rest = append(rest, t)
		}
	}
	return rest
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
