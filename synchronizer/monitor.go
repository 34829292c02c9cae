package synchronizer

import (
	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/settings"
)

// Monitor makes the object one of the thread-per-request model: each request gets its thread
// when it arrives, and keeps it while it waits for its guard, or for what it conflicts with,
// until it has returned. What runs at once is the same as without: one writer or many
// functions, or what Conflicts says.
//
// The thread of a call is the caller's goroutine, which blocks. A request without a waiting
// caller (Send, Begin, Tell, a message) gets a goroutine of the system's worker pool. With
// Goroutines, each request gets a goroutine of its own; with Workers, a thread of a pool. Worker actors
// are refused (*activeobject.OptionError), as they get a request only when it starts. While a
// body waits for another request, that request can use its thread, as without Monitor.
//
// If the pool has none left, requests wait for a thread first, withdrawable and in the order
// of arrival, and are considered only when they have one; a Try is refused. So if all threads of
// a pool belong to requests that wait for a guard, and only a request without a thread could open
// that guard, nothing starts. This is the flaw of the model, and is not compensated: Explain
// says so, and contexts end the waits, or a stop. (An object that ends gently, by Close or a
// poison, waits for threads as long as other objects have some; if all of them belong to requests
// that wait at the object itself, nothing can start any more.)
func Monitor() activeobject.Option {
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.OnArrival = true })
}
