package synchronizer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
)

// Actors makes each request run in one of n worker actors: children of the object's actor,
// such as account-1/worker-1, made when they are first needed. A request that starts is sent
// to a free one as a message; if there is none it waits, and can be withdrawn. N must be at
// least 1.
//
// While a body waits for another request, its worker is not counted: a further worker is made
// if one is needed, and ends when there are n others without work. (A body that waits by other
// means than Sluice's keeps its worker counted.)
//
// A body that panics fails its own request, and the object, as everywhere; the worker goes
// on, also if a body ends its goroutine. A worker that is stopped ends when its body has
// returned, and is replaced; a task that it was sent and has not begun goes to another worker.
// A restart of a worker has no effect. All workers end with the object, before its actor does,
// and when the object is restarted. The supervisor of the children sees them (see
// activeobject.ChildSupervisor), but they do not fail.
func Actors(n int) activeobject.Option {
	if n < 1 {
		return settings.Wrong[activeobject.Option]("Actors", "is less than 1")
	}
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Threads, c.Workers = nil, actors(n) })
}

// actors is how many worker actors an object is to have.
type actors int

// Threads implements settings.Workers.
func (n actors) Threads(system *actor.System, object actor.Spawner) engine.Threads {
	return &workerActors{Pool: Pool{size: int(n)}, system: system, object: object, running: map[actor.Task]*worker{}}
}

// workerActors are the worker actors of one object. The Pool counts the requests that may run;
// workerActors finds a worker for each of them.
//
//	Dispatch ──► idle ──message──► runs task ──Return──► the body has ended ──► idle, or ends
//	    │                              ▲                    │
//	    └── if none is: spawn          └─────── next ◄──────┘ a message has come meanwhile
//
// A task is sent to a worker that is idle; or to one whose body has ended and that is about to
// become idle, which takes no further body; or to a new worker. If no worker can be made, as the
// object is about to end, a goroutine of the system runs the task.
//
// I1. Each task runs once. A worker accepts an assignment under mu, and sets taken in it; a
// worker that has retired accepts none. The sender reads taken under mu, and, if it is not set,
// sends the task to another worker. (Protoactor delivers a message on the sender's goroutine, or,
// if the worker has ended, not at all. An assignment that comes late, or twice, is not
// accepted.) A task that has been accepted is begun under mu, or, if the worker has been stopped
// meanwhile, dispatched anew.
//
// I2. While mu is held nothing is waited for, and no message is sent: making a worker, and
// stopping one, takes locks of actors, which are held while other actors are told to end.
type workerActors struct {
	Pool
	system *actor.System
	object actor.Spawner // the parent of the workers
	made   atomic.Uint64

	mu        sync.Mutex
	idle      []*worker              // the one that became idle last at the end: what it used is most likely in the cache
	finishing []*worker              // workers that are about to become idle: their bodies have ended
	running   map[actor.Task]*worker // the worker of each task whose body has not ended
}

// worker is an actor that runs bodies one at a time, on a goroutine of the system's worker pool.
type worker struct {
	actors *workerActors
	pid    *actor.PID // set by spawn

	// What follows is guarded by the mu of actors.
	assigned *assignment   // what is being sent to it
	task     actor.Task    // what it runs, or is about to
	next     actor.Task    // what it has accepted before the end of task was noted
	retired  bool          // it accepts no more assignments
	ended    chan struct{} // closed when it has retired and runs nothing
}

// assignment is the message to a worker that it is to run a task.
type assignment struct {
	task  actor.Task
	taken bool // accepted; guarded by the mu of workerActors
}

// Dispatch implements engine.Dispatcher.
func (c *workerActors) Dispatch(t actor.Task) {
	m := &assignment{task: t}
	for w := c.choose(m); w != nil; w = c.choose(m) {
		if c.send(w, m) {
			return
		}
	}
	if w := c.spawn(m); w != nil && c.send(w, m) {
		return
	}
	c.system.Workers().Dispatch(t)
}

// choose returns a worker that has nothing to do, or is about to have, and that is to get the
// message; or nil if there is none.
func (c *workerActors) choose(m *assignment) (w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := &c.idle
	if len(*from) == 0 {
		from = &c.finishing
	}
	n := len(*from)
	if n == 0 {
		return nil
	}
	w, (*from)[n-1] = (*from)[n-1], nil
	*from = (*from)[:n-1]
	w.assigned = m
	return w
}

// send sends the worker the message, and reports whether the worker has accepted it. A worker
// that has not is retired.
func (c *workerActors) send(w *worker, m *assignment) (taken bool) {
	c.system.Tell(w.pid, m)
	c.mu.Lock()
	if m.taken {
		c.mu.Unlock()
		return true
	}
	w.assigned = nil
	w.retire()
	c.mu.Unlock()
	c.system.Stop(w.pid) // it may be that only the message has been lost
	return false
}

// spawn makes a new worker, which is to get the message; or returns nil if the object is about
// to end.
func (c *workerActors) spawn(m *assignment) *worker {
	w := &worker{actors: c, assigned: m, ended: make(chan struct{})}
	for {
		name := fmt.Sprintf("worker-%d", c.made.Add(1))
		pid, err := c.system.SpawnAt(actor.Place{Name: name, Parent: c.object}, w)
		if err == nil {
			w.pid = pid
			return w
		}
		if _, taken := errors.AsType[*actor.NameError](err); !taken {
			return nil
		}
	}
}

// Return implements engine.Threads. The worker on which the task has ended can be chosen for
// another one.
func (c *workerActors) Return(t actor.Task) {
	if t != nil {
		c.mu.Lock()
		if w := c.running[t]; w != nil {
			delete(c.running, t)
			if !w.retired {
				c.finishing = append(c.finishing, w)
			}
		}
		c.mu.Unlock()
	}
	c.Pool.Return(t)
}

// Receive implements actor.Receiver.
func (w *worker) Receive(message any, _ actor.Header, sender *actor.PID) {
	c := w.actors
	m, ok := message.(*assignment)
	if !ok {
		err := fmt.Errorf("sluice: a worker of %v takes no messages: send them to the object", c.object)
		if sender == nil {
			c.system.DeadLetter(nil, message)
		} else {
			c.system.Respond(sender, nil, err)
		}
		return
	}
	c.mu.Lock()
	idle := w.task == nil
	switch {
	case m != w.assigned || w.retired:
		c.mu.Unlock()
		return
	case idle:
		w.run(m.task)
	default:
		w.next = m.task
	}
	w.assigned, m.taken = nil, true
	c.mu.Unlock()
	if idle {
		c.system.Workers().Dispatch(w)
	}
}

// run notes that the worker is about to run the task. The caller holds mu.
func (w *worker) run(t actor.Task) {
	w.task = t
	w.actors.running[t] = w
}

// Run implements actor.Task: it runs the tasks that the worker has accepted.
func (w *worker) Run() {
	returned := false
	defer func() {
		if !returned && w.done() { // the body has ended its goroutine
			w.actors.system.Workers().Dispatch(w)
		}
	}()
	for w.begin() {
		w.task.Run()
		if !w.done() {
			break
		}
	}
	returned = true
}

// begin reports whether the worker is to begin its task. If it has retired in the meantime, the
// task goes to another worker (I1).
func (w *worker) begin() bool {
	c := w.actors
	c.mu.Lock()
	if !w.retired {
		c.mu.Unlock()
		return true
	}
	t := w.task
	w.task = nil
	delete(c.running, t)
	close(w.ended)
	c.mu.Unlock()
	c.Dispatch(t)
	return false
}

// done notes that the task has ended, and reports whether there is another one. If enough other
// workers are idle, the worker ends.
func (w *worker) done() (more bool) {
	c := w.actors
	c.mu.Lock()
	delete(c.running, w.task) // if its body waited when it ended, Return was not called with it
	c.finishing = without(c.finishing, w)
	w.task = nil
	switch {
	case w.next != nil:
		w.run(w.next)
		w.next = nil
		c.mu.Unlock()
		return true
	case w.retired:
		close(w.ended)
	case w.assigned != nil: // it will have a task, or send retires it
	case len(c.idle) < c.size:
		c.idle = append(c.idle, w)
	default:
		w.retire()
		c.mu.Unlock()
		c.system.Stop(w.pid)
		return false
	}
	c.mu.Unlock()
	return false
}

// retire lets the worker accept nothing more. The caller holds mu.
func (w *worker) retire() {
	if w.retired {
		return
	}
	w.retired = true
	w.actors.idle, w.actors.finishing = without(w.actors.idle, w), without(w.actors.finishing, w)
	if w.task == nil {
		close(w.ended)
	}
}

// Halt implements actor.Receiver: the worker has been stopped.
func (w *worker) Halt() <-chan struct{} {
	w.actors.mu.Lock()
	defer w.actors.mu.Unlock()
	w.retire()
	return w.ended
}

// Drain implements actor.Receiver: the worker has been poisoned.
func (w *worker) Drain() <-chan struct{} { return w.Halt() }

// without returns the workers but one.
func without(workers []*worker, w *worker) []*worker {
	if i := slices.Index(workers, w); i >= 0 {
		return slices.Delete(workers, i, i+1)
	}
	return workers
}
