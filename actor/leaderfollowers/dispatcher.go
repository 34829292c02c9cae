package leaderfollowers

import (
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
)

// task is a function as a task.
type task func()

// Run implements actor.Task.
func (t task) Run() { t() }

// Dispatcher returns the pool as a dispatcher of active objects: see activeobject.Dispatcher. That an
// object has something to do is an event, and its turn is processed by a thread of the pool. The
// engine dispatches an object once, and again after its turn: so its mailbox is a handle that is
// deactivated meanwhile.
//
// After the pool has ended the turns run on goroutines of the system's worker pool.
func (p *Pool) Dispatcher() actor.Dispatcher { return (*dispatcher)(p) }

// dispatcher is a Pool as objects see it.
type dispatcher Pool

var _ engine.Lender = (*dispatcher)(nil)

// Dispatch implements actor.Dispatcher.
func (d *dispatcher) Dispatch(t actor.Task) {
	p := (*Pool)(d)
	if !p.dispatch(event{task: t}) {
		p.system.Workers().Dispatch(t)
	}
}

// Park and Unpark implement engine.Lender.
func (d *dispatcher) Park()   { (*Pool)(d).idle() }
func (d *dispatcher) Unpark() { (*Pool)(d).busier() }

// dispatch posts an event, unless the pool has ended.
func (p *Pool) dispatch(e event) bool {
	s := p.handles
	s.mu.Lock()
	if p.closing && p.live == 0 {
		s.mu.Unlock()
		return false
	}
	s.post(e)
	if p.closing {
		p.balance()
	}
	s.mu.Unlock()
	return true
}

// ForActors returns the pool as a dispatcher of protoactor actors: see WithDispatcher of its package
// actor. An actor handles up to so many messages
// before others have the thread; 0 stands for 300, as in protoactor's default.
func (p *Pool) ForActors(throughput int) interface {
	Schedule(fn func())
	Throughput() int
} {
	if throughput < 1 {
		throughput = 300
	}
	return &forActors{p, throughput}
}

// forActors is a Pool as protoactor's actors see it.
type forActors struct {
	pool       *Pool
	throughput int
}

// Schedule implements protoactor's Dispatcher.
func (f *forActors) Schedule(fn func()) { f.pool.Dispatcher().Dispatch(task(fn)) }

// Throughput implements protoactor's Dispatcher.
func (f *forActors) Throughput() int { return f.throughput }

// Threads makes each request of a Synchronizer run on a thread of the pool, when there is one: until
// then it waits, and can be withdrawn. It is an option as those of the package synchronizer, for
// objects of any system; while a body waits for another request its thread does not count. A nil pool
// fails New with *activeobject.OptionError.
//
// A request that has reserved a thread comes before the events of handles.
func Threads(p *Pool) activeobject.Option {
	if p == nil {
		return settings.Wrong[activeobject.Option]("Threads", "is given nil: pass a pool")
	}
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Threads, c.Workers = (*requests)(p), nil })
}

// requests is a Pool as Synchronizers see it.
type requests Pool

var (
	_ engine.Threads = (*requests)(nil)
	_ engine.Keeper  = (*requests)(nil)
)

// Dispatch implements engine.Threads: the thread has been reserved.
func (r *requests) Dispatch(t actor.Task) {
	p, s := (*Pool)(r), r.handles
	s.mu.Lock()
	if p.closing && p.live == 0 {
		s.mu.Unlock()
		p.system.Workers().Dispatch(t)
		return
	}
	s.owed.push(t)
	p.balance() // the thread that was reserved may be one that is to be started
	s.signal()
	s.mu.Unlock()
}

// Take implements engine.Threads.
func (r *requests) Take(m *engine.Mailbox) bool {
	p, s := (*Pool)(r), r.handles
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.busy < p.size {
		p.busy++
		return true
	}
	p.elements[m] = p.waiting.PushBack(m)
	return false
}

// Forget implements engine.Threads.
func (r *requests) Forget(m *engine.Mailbox) bool {
	p, s := (*Pool)(r), r.handles
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.withdraw(m)
}

// withdraw takes an object out of those that wait for a thread. The caller holds mu.
func (p *Pool) withdraw(m *engine.Mailbox) bool {
	place := p.elements[m]
	if place == nil {
		return false
	}
	p.waiting.Remove(place)
	delete(p.elements, m)
	return true
}

// Return implements engine.Threads. The thread of a task that has ended comes back soon: until done
// it counts as free, so that none is started in its place.
func (r *requests) Return(t actor.Task) {
	p := (*Pool)(r)
	if t != nil {
		r.handles.mu.Lock()
		p.returning = append(p.returning, t)
		r.handles.mu.Unlock()
	}
	p.idle()
}

// Retake implements engine.Threads.
func (r *requests) Retake() { (*Pool)(r).busier() }

// Keep implements engine.Keeper.
func (r *requests) Keep(n int) {
	r.handles.mu.Lock()
	defer r.handles.mu.Unlock()
	r.kept += n
}

// Taken implements engine.Keeper.
func (r *requests) Taken() string {
	r.handles.mu.Lock()
	defer r.handles.mu.Unlock()
	switch {
	case r.kept >= r.size:
		return fmt.Sprintf("every thread of the pool (%d) is held by a request that waits", r.size)
	case r.busy < r.size:
		return "one is on its way"
	}
	return fmt.Sprintf("of those of the pool (%d) requests that wait hold %d", r.size, r.kept)
}

// offers reserves threads for objects that wait for one, as far as there are, and returns the objects.
// The caller holds mu, and calls offer when it has released it.
func (p *Pool) offers(all []*engine.Mailbox) []*engine.Mailbox {
	for p.waiting.Len() > 0 && p.busy < p.size {
		m := p.waiting.Front().Value.(*engine.Mailbox)
		p.withdraw(m)
		p.busy++
		all = append(all, m)
	}
	return all
}

func offer(to []*engine.Mailbox) {
	for _, m := range to {
		m.Offer()
	}
}
