package actor

import (
	"sync"

	"github.com/sluice-go/sluice/internal/engine"
)

// Outbox runs tasks one after another on a worker. Objects send their replies by it: a reply runs
// code of its receiver, and so must not run on a goroutine that owns the object. If a task panics,
// which is logged, or calls runtime.Goexit, the others still run. The zero Outbox is empty.
type Outbox struct {
	mu     sync.Mutex
	queue  []Task
	next   int  // the first task in queue that has not been started
	busy   bool // a worker runs the tasks, or has been dispatched to
	system *System
}

// Post has the task run by one of the workers of the system. The system must be the same in all
// calls.
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

// take returns the next task. If there is none, it returns nil and clears busy: the next Post
// dispatches a worker.
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

// delivery is an Outbox as the task of a worker.
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
