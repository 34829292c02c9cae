package activeobject

import "github.com/sluice-go/sluice/actor"

// On makes the object run its bodies on the threads that the dispatcher lends, one
// at a time, and never on a caller's: a pool that several objects share, a thread
// with a context of its own, a test that plays them by hand. The dispatcher belongs
// to the caller, who keeps it alive until the object has ended: its end, too, is
// carried out there. A nil dispatcher fails New with *OptionError.
//
// A task is a turn of an object: it runs up to 256 bodies, those that can start. A
// dispatcher with the method
//
//	Throughput() int
//
// says how many, from 1, before the object asks for another turn.
//
// A body that waits for another request lends its thread, so that a fixed number of threads does
// not stand still when the bodies on them call each other: another turn runs meanwhile, on a warm
// goroutine of the system. When the wait is over the body goes on at once, even if that makes one
// more than there are threads. (Waiting by other means than Sluice's keeps the thread.) Where the
// threads have a context of their own, so that no other goroutine may stand in for them, the
// dispatcher has the method
//
//	Lends() bool
//
// and returns false. If all threads of such a one wait for what needs one of them, they do until
// their contexts end.
//
// A synchronizer.Pool is such a dispatcher, too: objects of both kinds share its threads.
func On(d actor.Dispatcher) Option {
	if d == nil {
		return wrong("On", "is given nil: pass a dispatcher")
	}
	if turnOn(d) < 0 {
		return wrong("On", "is given a dispatcher with a Throughput of less than 1")
	}
	return func(s *settings) { s.thread, s.dispatcher = given, &d }
}

// Dispatcher returns whose threads run the object's bodies, or nil if its callers'
// do.
func (o *Object[T]) Dispatcher() actor.Dispatcher { return o.box.Dispatcher() }

// turnOn returns how many bodies a turn on the dispatcher runs, -1 if what that says
// makes no sense, or 0 if it says nothing.
func turnOn(d actor.Dispatcher) int {
	t, ok := d.(interface{ Throughput() int })
	if !ok {
		return 0
	}
	if n := t.Throughput(); n > 0 {
		return n
	}
	return -1
}
