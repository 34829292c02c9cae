package activeobject

import "github.com/sluice-go/sluice/mailbox"

// Load is how much there is to do at an object, at one moment.
type Load = mailbox.Load

// Observe has f told the load of the object, now and after every change, until f
// reports that it has seen enough, or stop is called. It serves to wait for a state of
// the queues without polling. Tests have the functions of the package objecttest,
// which use it.
//
// F is called by the goroutine that changes the load, with the object's mutex held: it
// must be quick, not panic, and neither call the object nor stop. It may call
// Operation.Waiting. An object that is observed has no fast path.
func (o *Object[T]) Observe(f func(Load) (enough bool)) (stop func()) { return o.box.Observe(f) }
