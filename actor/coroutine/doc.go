// Package coroutine schedules tasks and coroutines that wait for conditions, so that many of them
// share a few threads.
//
//	SetRoutineContinuation, Go ──► blocked ◄─────── the blocker is blocked ───────┐
//	                                  │  the line of its Blocker, first come first served
//	              Unblocked, and then │  a worker finds the blocker not blocked   │
//	                                  ▼                                           │
//	                              runnable ──► runs on a worker ──► waits ────────┘
//	                                  ▲              │        └──► ended
//	                                  └── Yield ─────┘
//
// It comes from "Multithread Coroutine Scheduler" (Jim McBeath), whose names it keeps. A [Blocker]
// is a condition that a routine can wait for. A [Task] is a routine that is a function to go on
// with, and takes some 200 bytes while it is blocked. A [Coroutine] is a routine with a stack of
// its own: it waits in the middle of a function, and any worker resumes it. There is one
// [Scheduler], and what runs its routines is a parameter: a caller by hand, the threads of a
// dispatcher (see [Dispatcher]), or workers of its own, whose number can change (see [Workers]).
//
// A [Queue] is a blocking queue for routines, a [Selector] reads and writes for coroutines, [Await]
// has a coroutine wait for a future, and [Signal] is a wait and notify for goroutines that may come
// in either order. A Scheduler is itself an actor.Dispatcher, so that it can run the turns of
// objects.
//
// # Threads
//
// A thread is a goroutine here. Go's scheduler already runs many goroutines on a few threads of the
// operating system, and a goroutine that waits costs none of these. So a program that starts a
// goroutine for each client needs no coroutines to save threads. What is left for this package: a
// blocked task takes less memory than a goroutine; a switch between coroutines takes about half the
// time of a switch between goroutines through a channel; the number of routines that run at once is
// bounded, and can be changed; and a caller who runs routines by hand has them run in the same
// order each time.
//
// A coroutine keeps a worker while it runs. What blocks it by other means than this package (a
// channel, a lock, a call) blocks its worker, too; [Await] waits for a future without.
//
// # Operating-system threads
//
// A coroutine is resumed by any worker, so it has no operating-system thread of its own: if it has
// called runtime.LockOSThread, and not unlocked, the lock ends when it next waits, yields or ends.
// The same goes for a task when it ends, on a worker of the scheduler. Goroutines that belong to
// others, which are those of a dispatcher and of a caller by hand, keep their locks: they run
// tasks, and for a coroutine they wait while a goroutine of the scheduler resumes it.
//
// Go's runtime ends the process if a coroutine switches with a lock. Two cases are left in which
// this can happen: locks nested more than eight deep, and a coroutine that waits within a function
// that C code has called.
package coroutine
