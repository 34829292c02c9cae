package activeobject

import "github.com/sluice-go/sluice/actor"

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
