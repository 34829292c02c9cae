// Package lock has locks: a burst lock, which callers pass in bursts, and read-write
// locks, of three kinds.
//
//	gate, err := lock.NewBurst(system, 3)
//	err = gate.Request(ctx) // waits until three wait, or gate.Grant is called
//
//	rw, err := lock.NewReadWrite(system) // fair; the others are NewReadersFirst and NewWritersFirst
//	err = rw.WithRLock(ctx, func(ctx context.Context) error { … }) // beside other readers
//	err = rw.WithLock(ctx, func(ctx context.Context) error { … })  // alone
//
// The burst lock is that of "Shared Resource Design Patterns", which has it as an Ada
// protected object; its sections on semaphores have become the package semaphore. The
// read-write lock in its three variants is the classical problem of Courtois, Heymans
// and Parnas (1971), with the fair one that came later.
//
// What differs from the text: its burst is open until the last request passes, which closes
// the lock. Here the request that would be the last may be withdrawn, and an order other than
// that of arrival may be chosen. So the guard itself says when a burst is over: it compares
// how many requests have come inside with how many had when the burst began.
//
// A method calls its operation and waits for the result. For everything else Requests, Grants, Locks
// and Unlocks return the operation itself, bound to the lock:
//
//	f := rw.Locks().Send(ctx, lock.ToRead)       // a future
//	_, err = rw.Locks().Try(ctx, lock.ToWrite)   // refuses to wait, for the lock or behind another request
//	rw.Unlocks().Tell(ctx, lock.ToRead)          // from a body that must not wait
//
// A request whose context ends while it waits has locked nothing, and leaves no trace:
// one less waits for the burst, and what a writer held off need not wait any longer.
// A lock that is stopped (see Object) fails all requests that wait and all that come, with an
// error that matches activeobject.ErrStopped, an unlock included.
package lock

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/activeobject"
)

type none = activeobject.None

var background = context.Background()

// holding runs f and then unlocks, however f ends. The lock may have been stopped
// meanwhile; then there is nothing left to be unlocked.
func holding(ctx context.Context, f func(context.Context) error, unlock func() error) (err error) {
	defer func() {
		if e := unlock(); !errors.Is(e, activeobject.ErrStopped) {
			err = errors.Join(err, e)
		}
	}()
	return f(ctx)
}
