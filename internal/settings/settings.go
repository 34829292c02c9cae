// Package settings is what packages of the library set of an object by options of their own: of
// its concurrency, the package synchronizer; of its audit, objecttest. These are no options for
// users, and so activeobject, to which the options belong, does not export them.
package settings

import (
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
)

// Concurrency is how requests run at once, at an object that is On: a Synchronizer. The
// package synchronizer says what the parts mean, and has options for them.
type Concurrency struct {
	On      bool           // set by every Concurrent that New is given
	Table   *guards.Table  // nil stands for that of Type.Conflicts
	Threads engine.Threads // nil stands for those of callers; it must be comparable
	Workers Workers        // if it is not nil, threads of the object's own instead; it must be comparable
	// OnArrival assigns threads when requests arrive, and not when they start.
	OnArrival bool
	Limit     int // 0 is none
	Hard      bool
	// Reentrant allows calls of the object from inside its bodies.
	Reentrant bool
	// AllCompatible lets requests overtake requests that wait for what runs.
	AllCompatible bool
}

// Workers makes threads for one object each.
type Workers interface {
	// Threads returns the threads of the object, which is just being made; they must be
	// comparable.
	Threads(system *actor.System, object actor.Spawner) engine.Threads
}

// Audit is how an object finds out whether its guards and functions are what they
// are taken for: without effect on the state.
type Audit struct {
	// Fingerprint describes the state, to which it is given a pointer: alike if the
	// state is, and differently if not. It must not change it. It is called with the
	// object, and around guards also the scheduling, excluded from others.
	Fingerprint func(state any) string
	// Diff says how two fingerprints differ; nil means that both are quoted.
	Diff func(before, after string) string
	// Report, unless nil, is told every finding, an *activeobject.ImpureError or
	// *activeobject.UndeclaredError, before the request fails. It must not call the object.
	Report func(error)
}

// Options makes options, which are activeobject.Options. That package sets it.
var Options struct {
	Concurrent func(change func(*Concurrency)) any
	Audited    func(Audit) any
	Recorded   func(begin func(object string, operations []string) engine.Recorder) any
	Wrong      func(option, reason string) any
	Strict     func() any
}

// Concurrent is an option that makes the object a Synchronizer, and changes its Concurrency.
// As a default of a type (Type.Default) it changes the Concurrency of its objects that are
// Synchronizers, and makes no object one, as a declaration is for every model.
func Concurrent[Option any](change func(*Concurrency)) Option {
	return Options.Concurrent(change).(Option)
}

// Audited is an option for tests: it finds guards, functions and key functions with side effects or
// random results. The object compares its state before and after every evaluation of a
// guard and every body of a function. It calls each guard, and each key function of a
// family, a second time to see whether the result is the same. A request whose guard, body
// or key function is impure fails with an *activeobject.ImpureError; if the guard is over the state, so
// do all requests that wait for it. Audited includes CheckOpens. Such an object has no fast
// path, and the price is that of the fingerprints.
//
// A function that changes the state under a lock of its own is found, too: it may be
// right, but the guards are not evaluated again.
func Audited[Option any](a Audit) Option { return Options.Audited(a).(Option) }

// Recorded is an option that makes the object tell a recorder what happens at it. Begin is called
// by New, with the object's name, or that of its type if it has none, and those of its operations,
// and returns the recorder. Such an object has no fast path. The package timeline has the option for
// users.
func Recorded[Option any](begin func(object string, operations []string) engine.Recorder) Option {
	return Options.Recorded(begin).(Option)
}

// Strict is an option that fails requests which belong to a transaction, with an *activeobject.NoPartError, if
// the object takes no part in transactions. Such an object has no fast path. The package transaction has the
// option for users.
func Strict[Option any]() Option { return Options.Strict().(Option) }

// Wrong is an option that fails New with an *activeobject.OptionError.
func Wrong[Option any](option, reason string) Option { return Options.Wrong(option, reason).(Option) }
