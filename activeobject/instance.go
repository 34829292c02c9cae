package activeobject

import (
	"reflect"
	"sync"
)

// Instance returns what declare returns, made once for each type D: a place for the
// operations of a generic object, which cannot be package-level variables.
//
//	type buffers[T any] struct {
//		typ *activeobject.Type[buffer[T]]
//		put *activeobject.Operation[buffer[T], T, activeobject.None]
//	}
//
//	func declareBuffers[T any]() *buffers[T] { … }
//
//	func NewBuffer[T any](system *actor.System) (*Buffer[T], error) {
//		ops := activeobject.Instance(declareBuffers[T])
//		…
//
// It is called by what makes an object, not by what calls one: keep the result there.
// Two functions of the same D share what the first of them has declared. If declare
// panics, so does every call for that D; if it returns nil, Instance panics.
func Instance[D any](declare func() *D) *D {
	key := reflect.TypeFor[D]()
	once, ok := instances.Load(key)
	if !ok {
		once, _ = instances.LoadOrStore(key, sync.OnceValue(func() any {
			d := declare()
			if d == nil {
				panic("sluice: Instance: the function has declared nothing: return what it has made")
			}
			return d
		}))
	}
	return once.(func() any)().(*D)
}

// instances are the functions that return what has been declared, by its type.
var instances sync.Map
