package synchronizer

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
)

// Pool is a number of threads for the requests of any number of objects: the pool of the
// Synchronizer text, and of its thread-per-request model. It is for objects made with Workers, of
// any system; and for active objects made with activeobject.Dispatcher, whose turns take a thread each.
//
// A request has a thread from when it starts (or arrives: see Monitor) until its body has
// returned. While the body waits for another request, its thread is free for other requests: so
// a pool does not deadlock if all its threads wait for requests that need the same pool. When
// the wait ends the body goes on at once, even if that makes one more than there are threads.
// (Waiting by other means than Sluice's keeps the thread.)
//
// Objects that need a thread when none is free get one in turn, each for one request.
//
// The number of threads can be changed while they run: see Resize.
type Pool struct {
	workers actor.Dispatcher

	mu       sync.Mutex
	size     int       // how many threads there are to be
	busy     int       // threads that are reserved
	kept     int       // of these, those of requests that wait: see Monitor
	waiting  list.List // of *engine.Mailbox: objects that wait for a thread, each once
	elements map[*engine.Mailbox]*list.Element
}

// NewPool returns a pool of n threads. They are goroutines of the system's worker pool, and end
// with the system. It fails with *activeobject.ArgumentError if the system is nil, or n less
// than 1.
func NewPool(system *actor.System, n int) (*Pool, error) {
	switch {
	case system == nil:
		return nil, &activeobject.ArgumentError{Call: "synchronizer.NewPool", Argument: "system", Problem: "is nil: make one with actor.NewSystem"}
	case n < 1:
		return nil, wrongSize("synchronizer.NewPool", n)
	}
	return &Pool{size: n, workers: system.Workers()}, nil
}

// wrongSize is the error for a number of threads that is less than 1.
func wrongSize(call string, n int) error {
	return &activeobject.ArgumentError{Call: call, Argument: "n", Problem: fmt.Sprintf("is %d: a pool has one thread at least", n)}
}

// Resize changes the number of threads to n. If there are more than before, requests that wait for
// one get theirs at once, the objects in turn. If there are fewer, a thread goes as soon as its
// body ends or waits for another request; until then Busy is more than Size. No request is lost.
// Under Monitor a thread that is held by a request that waits stays with it, so that a pool that is
// made smaller may stand still; it goes on when it is made larger.
//
// Resize does not wait, and may be called from anywhere, also by a body that runs on the pool. It
// fails with *activeobject.ArgumentError if n is less than 1; then nothing has changed.
func (p *Pool) Resize(n int) error {
	if n < 1 {
		return wrongSize("Pool.Resize", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = n
	for p.busy < p.size {
		first := p.next()
		if first == nil {
			break
		}
		p.busy++
		p.workers.Dispatch((*offer)(first)) // Offer takes a lock that the caller, if it is a guard, may hold
	}
	return nil
}

// offer is the task of telling an object that a thread has been reserved for it.
type offer engine.Mailbox

// Run implements actor.Task.
func (o *offer) Run() { (*engine.Mailbox)(o).Offer() }

// Size returns how many threads there are, or are to be: see Resize.
func (p *Pool) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

// Busy returns how many threads are reserved for requests: more than there are, if bodies
// have gone on that waited for others, or the pool has been made smaller.
func (p *Pool) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// Dispatch implements engine.Threads.
func (p *Pool) Dispatch(t actor.Task) { p.workers.Dispatch(t) }

// Take implements engine.Threads.
func (p *Pool) Take(m *engine.Mailbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy < p.size {
		p.busy++
		return true
	}
	if p.elements == nil {
		p.elements = map[*engine.Mailbox]*list.Element{}
	}
	p.elements[m] = p.waiting.PushBack(m)
	return false
}

// Forget implements engine.Threads.
func (p *Pool) Forget(m *engine.Mailbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remove(m)
}

// remove takes an object out of the waiting objects, and reports whether it was there. The caller holds mu.
func (p *Pool) remove(m *engine.Mailbox) bool {
	place := p.elements[m]
	if place == nil {
		return false
	}
	p.waiting.Remove(place)
	delete(p.elements, m)
	return true
}

// next takes the first of the waiting objects out, or returns nil if there is none. The caller holds mu.
func (p *Pool) next() *engine.Mailbox {
	if p.waiting.Len() == 0 {
		return nil
	}
	first := p.waiting.Front().Value.(*engine.Mailbox)
	p.remove(first)
	return first
}

// Return implements engine.Threads. The first of the objects that wait gets the thread, unless
// more threads are busy than the pool has.
//
// No object waits while fewer threads are busy than the pool has: Take has one wait only if none is
// free, Return lowers busy only if no object waits or more than size are busy, and Resize offers
// what it adds. All three decide under mu.
func (p *Pool) Return(actor.Task) {
	p.mu.Lock()
	var first *engine.Mailbox
	if p.busy <= p.size {
		first = p.next()
	}
	if first == nil {
		p.busy--
	}
	p.mu.Unlock()
	if first != nil {
		first.Offer()
	}
}

// Retake implements engine.Threads.
func (p *Pool) Retake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
}

// Keep implements engine.Keeper.
func (p *Pool) Keep(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept += n
}

// Taken implements engine.Keeper.
func (p *Pool) Taken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.kept >= p.size:
		return fmt.Sprintf("every thread of the pool (%d) is held by a request that waits", p.size)
	case p.busy < p.size:
		return "one is on its way"
	}
	return fmt.Sprintf("of those of the pool (%d) requests that wait hold %d", p.size, p.kept)
}
