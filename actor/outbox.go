package actor

import (
	"sync"

	"github.com/sluice-go/sluice/mailbox"
)

// Outbox runs functions one after another on a worker: the replies of an object,
// which run code of whoever they go to and so must not run on a goroutine that
// has the object. A function that panics, or leaves through runtime.Goexit, does
// not keep the others from running.
type Outbox struct {
	mu    sync.Mutex
	queue []func()
	busy  bool // a worker is at it, or on its way
}

// Post has f run by one of the workers.
func (b *Outbox) Post(workers Dispatcher, f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, f)
	if !b.busy {
		b.busy = true
		workers.Dispatch(&delivery{b, workers})
	}
}

// delivery is the turn of a worker at an outbox.
type delivery struct {
	*Outbox
	workers Dispatcher
}

var _ mailbox.Task = (*delivery)(nil)

// Run implements mailbox.Task.
func (d *delivery) Run() {
	finished := false
	defer func() {
		if !finished {
			_ = recover()
			d.workers.Dispatch(d)
		}
	}()
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.queue, d.busy = nil, false
			d.mu.Unlock()
			finished = true
			return
		}
		f := d.queue[0]
		d.queue = d.queue[1:]
		d.mu.Unlock()
		f()
	}
}
