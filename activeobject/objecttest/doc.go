// Package objecttest helps to test programs that are made of shared objects.
//
//	           the test
//	   ┌──────────┼───────────────┬───────────────┬──────────────┐
//	NewSystem   Waiting, Idle   Stepper         Checked         Fake
//	   │          │               │               │              │
//	 system ──► object ◄── whose turn it is    its guards,     what the code under
//	 (closed,     │        says the test       its functions   test sees instead of
//	  none        ▼                            (are pure)      an object
//	  waits)    queues: what waits, what runs
//
// # State
//
// The state of an object is plain Go: most of it is tested without a runtime, by
// calling its methods. What is left are the questions that this package is for.
//
// # When has the request arrived?
//
// A test that makes others wait has to know when they do. Waiting returns when so many
// requests wait for an operation, and Idle when an object has nothing left to do. No
// test needs to sleep, or to ask again and again: objects tell (see Object.Observe).
//
//	go get.Call(ctx, buffer, none)
//	objecttest.Waiting(t, buffer, get, 1)
//
// # What if it had been the other way round?
//
// A Stepper is a dispatcher on which nothing runs unless the test says so, one body at a
// time. Of two objects, either may go first; a test can play both.
//
// # Are the guards what they should be?
//
// A guard that changes the state, or depends on the clock or on chance, works most of
// the time. Objects that are Checked find it out at once, and say what it has changed.
//
// # How does the code around it behave?
//
// Code that calls objects by way of an activeobject.Proxy can be tested with a Fake: an
// answer that comes late, a queue that is full, a caller that gives up.
//
// # And time?
//
// Objects work in the bubbles of testing/synctest, with all that belongs to them:
// deadlines, Until, futures and the watchdog, which then take no time. So does this
// package. Make the system inside the bubble; types and operations may be outside.
package objecttest
