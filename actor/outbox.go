package actor

import (
	"sync"

	"github.com/sluice-go/sluice/internal/engine"
)

// Outbox runs tasks one after another on a worker: the replies of an object,
// which run code of whoever they go to and so must not run on a goroutine that
// has the object. A task that panics, which is logged, or leaves through
// runtime.Goexit does not keep the others from running. The zero Outbox is empty.
type Outbox struct {
	mu     sync.Mutex
	queue  []Task
	next   int  // the first in queue that has not been begun
	busy   bool // a worker is at it, or on its way
	system *System
}

// Post has the task run by one of the workers of the system, which is always the same.
func (b *Outbox) Post(system *System, t Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next > len(b.queue)/2 && len(b.queue) == cap(b.queue) {
		n := copy(b.queue, b.queue[b.next:])
		clear(b.queue[n:])
		b.queue, b.next = b.queue[:n], 0
	}
	b.queue = append(b.queue, t)
	if !b.busy {
		b.busy, b.system = true, system
		system.Workers().Dispatch((*delivery)(b))
	}
}

// take returns the next task, or nil if there is none, and then nobody is at it.
func (b *Outbox) take() (t Task) {
	const few = 64
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == len(b.queue) {
		b.queue, b.next, b.busy = b.queue[:0], 0, false
		if cap(b.queue) > few {
			b.queue = nil
		}
		return nil
	}
	t, b.queue[b.next] = b.queue[b.next], nil
	b.next++
	return t
}

// delivery is an outbox as the turn of a worker.
type delivery Outbox

var _ Task = (*delivery)(nil)

// Run implements Task.
func (d *delivery) Run() {
	b := (*Outbox)(d)
	finished := false
	defer func() {
		if !finished {
			b.system.contain(engine.Panicked(recover()))
			b.system.Workers().Dispatch(d)
		}
	}()
	for t := b.take(); t != nil; t = b.take() {
		t.Run()
	}
	finished = true
}
