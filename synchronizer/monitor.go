package synchronizer

import "github.com/sluice-go/sluice/activeobject"

// Monitor makes the object one of the thread-per-request model: each request gets its thread
// when it arrives, and keeps it while it waits for its guard, or for what it conflicts with,
// until it has returned. What runs at once is the same as without: one writer or many
// functions, or what Conflicts says.
//
// The thread is the caller's own, who blocks, and, for what nobody waits for, a warm
// goroutine of the system; or one is spawned for it (Spawned), or it is one of a pool (On).
// Worker actors are refused (*activeobject.OptionError): they get what they run when that
// starts. A body that waits for another request takes its thread along: it is lent on, as
// without Monitor.
//
// If the pool has none left, requests wait for a thread first, withdrawable and in the order
// of arrival, and are considered only when they have one; a Try is refused. So a pool whose
// threads all belong to requests that wait for a guard stands still, if only a request without
// a thread could open that. This is the flaw of the model, and is not compensated: Explain
// says so, and contexts end the waits, or a stop. (An object that ends gently, by Close or a
// poison, waits for threads as long as others have them; if those have all of them who wait at
// the object itself, nothing can start any more.)
func Monitor() activeobject.Option {
	return activeobject.Concurrent(func(c *activeobject.Concurrency) { c.OnArrival = true })
}
