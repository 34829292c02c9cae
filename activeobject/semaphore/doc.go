// Package semaphore has semaphores: permits that callers acquire, hold for a while, and
// release.
//
//	slots, err := semaphore.New(system, 4)
//
//	err = slots.Acquire(ctx, 2) // waits until two are free, or until ctx ends: then it has none
//	…
//	err = slots.Release(2)
//
//	err = slots.With(ctx, 1, func(ctx context.Context) error { … }) // holds one around it
//
// A Binary semaphore has one permit, a Semaphore any number. They are the binary and
// the counting semaphore of "Shared Resource Design Patterns", which has them as Ada
// protected objects; what is acquired by weight, resized and drained is from
// golang.org/x/sync/semaphore and java.util.concurrent.
//
// What differs from the text: its counting semaphore ignores in silence a release of
// permits that are not held, and its binary one unlocks whatever was. Here both are a
// *ReleaseError, and nothing has changed. (A semaphore counts; it does not know which caller
// holds what. So a release by a caller that holds nothing is noticed only if the others hold
// fewer.)
//
// A method calls its operation and waits for the result. For everything else the operation itself
// is returned, bound to the semaphore, by the method with its name in the plural:
//
//	f := slots.Acquires().Send(ctx, 2)                              // a future
//	_, err = slots.Acquires().Try(ctx, 2)                           // refuses to wait
//	i, err := activeobject.Select(ctx, slots.Acquires().Case(2), …) // or something else
//	slots.Releases().Tell(ctx, 2)                                   // from a body that must not wait
//
// # Which acquire is next
//
//   - A Binary and a fair Semaphore, made by New, are first come first served. A permit
//     that is released goes to an acquire that waits for it, in the same step. An acquire
//     that does not fit is not passed by those behind it, even if they would fit: none
//     starves, and permits may lie idle meanwhile.
//   - In a barging Semaphore, made by NewBarging, each acquire competes for free permits. One that
//     fits may overtake one that does not. A release calls the first waiting acquire that
//     fits, but does not keep the permits for it: one that comes while it wakes up may be quicker,
//     and then it waits again, behind the others. No permit lies idle for long that
//     a waiting acquire could use. Any acquire may wait for ever.
//
// A Try keeps to the same rule: it is refused if it would have to wait for
// permits or behind another request. Drain does not: it takes what is free, since it waits
// for nothing.
//
// # What goes wrong
//
// An acquire whose context ends while it waits has taken nothing, and the guards of those behind it
// are evaluated again. A semaphore that is stopped (see Object) fails all requests that wait and
// all that come with an error that matches activeobject.ErrStopped, a release
// included.
//
// # Around, not inside
//
// The operations of a shared object are short: while one runs, no other request gets in,
// not even to be told that it has to wait. So a resource that blocks, such as a
// file or a connection, is not put inside of one. It stays outside, and a caller
// holds a semaphore while it uses it: the waiting is done at the semaphore, where it
// can be withdrawn and explained. With does that, and the example "blocking" shows it.
package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

type none = activeobject.None

var background = context.Background()

// SizeError says that more permits were asked for than the semaphore has: at once, or, if the
// semaphore becomes too small while the acquire waits, when it is its turn. The acquire
// has taken nothing.
type SizeError struct {
	Semaphore string // its name
	Permits   int    // that were asked for
	Size      int    // that there are
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("sluice: %s: acquire of %d with a size of %d", e.Semaphore, e.Permits, e.Size)
}

// ReleaseError says that more permits were released than are held. Nothing has changed.
type ReleaseError struct {
	Semaphore string // its name
	Permits   int    // that were to be released
	Held      int    // by all callers together
}

// Error implements error.
func (e *ReleaseError) Error() string {
	return fmt.Sprintf("sluice: %s: release of %d with %d held", e.Semaphore, e.Permits, e.Held)
}

// atLeastOne returns an error for a number of permits that makes no sense.
func atLeastOne(call, argument string, n int) error {
	if n >= 1 {
		return nil
	}
	return &activeobject.ArgumentError{Call: "semaphore." + call, Argument: argument, Problem: fmt.Sprintf("is %d: there must be at least one", n)}
}

// holding runs f and then releases, however f ends. The object may have been stopped
// meanwhile; then there is nothing left to be released.
func holding(ctx context.Context, f func(context.Context) error, release func() error) (err error) {
	defer func() {
		if e := release(); !errors.Is(e, activeobject.ErrStopped) {
			err = errors.Join(err, e)
		}
	}()
	return f(ctx)
}
