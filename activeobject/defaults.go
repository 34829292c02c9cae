package activeobject

import (
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
)

// Defaults gives the objects of a system default options: those that are made from now on,
// ready-made ones included. They come after the defaults of the type (see Type.Default) and
// before the options of New. Use it for what a program wants of every object: Interceptors,
// Counters, a Watchdog. Defaults that an earlier call has given remain.
//
// An option that makes no sense for an object, such as a Name, which only one could have, fails its New.
func Defaults(system *actor.System, options ...Option) {
	d := defaultsOf(system)
	for {
		old := d.options.Load()
		var all []Option
		if old != nil {
			all = *old
		}
		all = append(slices.Clip(all), options...)
		if d.options.CompareAndSwap(old, &all) {
			return
		}
	}
}

// systemDefaults are the default options of a system; nil stands for none.
type systemDefaults struct{ options atomic.Pointer[[]Option] }

func defaultsOf(system *actor.System) *systemDefaults {
	return system.Shared(systemDefaultsKey{}, func() any { return new(systemDefaults) }).(*systemDefaults)
}

type systemDefaultsKey struct{}

// settingsIn returns the settings that the type and a version of the system's defaults give an
// object. One version always yields the same settings, so that the objects with these share their
// configuration.
func (t *Type[T]) settingsIn(system *actor.System, version *[]Option) objectSettings {
	if version == nil {
		return t.defaults
	}
	return *system.Shared(defaultsKey{&t.typeInfo, version}, func() any {
		s := t.defaults
		for _, o := range *version {
			o(&s)
		}
		if s.ordered = false; s.name != "" { // ordered is for orders that New is given
			wrong("Name", "is a default of the system, and only one object could have it: pass it to New")(&s)
		}
		return &s
	}).(*objectSettings)
}

type defaultsKey struct {
	typ     *typeInfo
	version *[]Option
}
