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
)

// Actors makes each request run in one of n worker actors: children of the object's actor,
// such as account-1/worker-1, made when they are first needed. A request that starts is sent
// to a free one as a message; if there is none it waits, and can be withdrawn. N must be at
// least 1.
//
// While a body waits for another request, its worker's turn is another one's: a further
// worker is made, and ends when there are n others without work. (Waiting by other means than
// Sluice's keeps the turn.)
//
// A body that panics fails its own request, and the object, as everywhere; the worker goes
// on, also if a body ends its goroutine. A worker that is stopped, by whomever, ends when its
// body has returned, and is replaced; what it has been sent and not begun goes to another
// one. A restart passes it by. All of them end with the object, before its actor does, and
// when that is restarted. The supervisor of the children sees them (see
// activeobject.Supervising), but they do not fail.
func Actors(n int) activeobject.Option {
	if n < 1 {
		return activeobject.Wrong("Actors", "is less than 1")
	}
	return activeobject.Concurrent(func(c *activeobject.Concurrency) { c.Threads, c.Crew = nil, actors(n) })
}

// actors is how many an object is to have.
type actors int

// Threads implements activeobject.Crew.
func (n actors) Threads(system *actor.System, object actor.Spawner) engine.Threads {
	return &crew{Pool: Pool{size: int(n)}, system: system, object: object, at: map[actor.Task]*worker{}}
}

// crew is the worker actors of an object. The Pool counts the requests that may run; the crew
// finds a worker for each of them.
//
//	Dispatch ──► idle ──message──► runs task ──Return──► the body has ended ──► idle, or ends
//	    │                              ▲                    │
//	    └── if none is: hire           └─────── next ◄──────┘ a message has come meanwhile
//
// There is always one: a task is sent to a worker that is idle; or to one whose body has
// ended, and who has only to say so, which takes no body; or to a new one. If no more can be
// made, as the object is about to end, a goroutine of the system runs the task.
//
// # Nothing is lost
//
// A worker takes a message under mu, and says so in it, or does not, because it is leaving;
// whoever has sent it looks there, under mu, and sends the task to another one. (Protoactor
// delivers a message on the sender's goroutine, or, if the worker has ended, not at all. One
// that comes late, or twice, is not taken any more.) A task that is taken is begun under mu,
// or, if the worker has been stopped meanwhile, dispatched anew. So each task runs once.
//
// Nobody is waited for with mu held, and no message sent: making a worker, and stopping one,
// takes locks of actors, which are held while others are told to end.
type crew struct {
	Pool
	system *actor.System
	object actor.Spawner // whose children they are
	hired  atomic.Uint64

	mu     sync.Mutex
	idle   []*worker              // the one that became idle last at the end: its cache is warmest
	ending []*worker              // whose body has ended
	at     map[actor.Task]*worker // who runs what, whose body has not ended
}

// worker is an actor that runs bodies one at a time. What it runs on is a warm goroutine of
// the system.
type worker struct {
	crew *crew
	pid  *actor.PID // once it has been hired

	// What follows is guarded by the crew's mu.
	call    *call         // is being sent to it
	task    actor.Task    // it runs, or is about to
	next    actor.Task    // it has got while it runs what has ended
	leaving bool          // it takes no more
	left    chan struct{} // closed when it leaves, and runs nothing
}

// call is the message that there is something to run.
type call struct {
	task  actor.Task
	taken bool // guarded by the crew's mu
}

// Dispatch implements engine.Dispatcher.
func (c *crew) Dispatch(t actor.Task) {
	m := &call{task: t}
	for w := c.choose(m); w != nil; w = c.choose(m) {
		if c.send(w, m) {
			return
		}
	}
	if w := c.hire(m); w != nil && c.send(w, m) {
		return
	}
	c.system.Workers().Dispatch(t)
}

// choose returns a worker that has nothing to do, or is about to have, and that is to get the
// message; or nil if there is none.
func (c *crew) choose(m *call) (w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := &c.idle
	if len(*from) == 0 {
		from = &c.ending
	}
	n := len(*from)
	if n == 0 {
		return nil
	}
	w, (*from)[n-1] = (*from)[n-1], nil
	*from = (*from)[:n-1]
	w.call = m
	return w
}

// send sends the worker the message, and reports whether it has taken that. If not it is not
// heard of again.
func (c *crew) send(w *worker, m *call) (taken bool) {
	c.system.Tell(w.pid, m)
	c.mu.Lock()
	if m.taken {
		c.mu.Unlock()
		return true
	}
	w.call = nil
	w.leave()
	c.mu.Unlock()
	c.system.Stop(w.pid) // it may be that only the message has been lost
	return false
}

// hire makes a new worker, which is to get the message; or returns nil if the object is about
// to end.
func (c *crew) hire(m *call) *worker {
	w := &worker{crew: c, call: m, left: make(chan struct{})}
	for {
		name := fmt.Sprintf("worker-%d", c.hired.Add(1))
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

// Return implements engine.Threads. The worker on which the task has ended is good for
// another one.
func (c *crew) Return(t actor.Task) {
	if t != nil {
		c.mu.Lock()
		if w := c.at[t]; w != nil {
			delete(c.at, t)
			if !w.leaving {
				c.ending = append(c.ending, w)
			}
		}
		c.mu.Unlock()
	}
	c.Pool.Return(t)
}

// Receive implements actor.Receiver.
func (w *worker) Receive(message any, _ actor.Header, sender *actor.PID) {
	c := w.crew
	m, ok := message.(*call)
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
	case m != w.call || w.leaving:
		c.mu.Unlock()
		return
	case idle:
		w.run(m.task)
	default:
		w.next = m.task
	}
	w.call, m.taken = nil, true
	c.mu.Unlock()
	if idle {
		c.system.Workers().Dispatch(w)
	}
}

// run says that the worker is about to run the task. The caller holds mu.
func (w *worker) run(t actor.Task) {
	w.task = t
	w.crew.at[t] = w
}

// Run implements actor.Task: it runs what the worker has got.
func (w *worker) Run() {
	returned := false
	defer func() {
		if !returned && w.done() { // the body has ended its goroutine
			w.crew.system.Workers().Dispatch(w)
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

// begin reports whether the worker is to begin what it has got. If it has been told to leave
// in the meantime another one does.
func (w *worker) begin() bool {
	c := w.crew
	c.mu.Lock()
	if !w.leaving {
		c.mu.Unlock()
		return true
	}
	t := w.task
	w.task = nil
	delete(c.at, t)
	close(w.left)
	c.mu.Unlock()
	c.Dispatch(t)
	return false
}

// done says that the task has ended, and reports whether there is another one. If there are
// enough without work, the worker ends.
func (w *worker) done() (more bool) {
	c := w.crew
	c.mu.Lock()
	delete(c.at, w.task) // if its body waited when it ended, nobody has said so
	c.ending = without(c.ending, w)
	w.task = nil
	switch {
	case w.next != nil:
		w.run(w.next)
		w.next = nil
		c.mu.Unlock()
		return true
	case w.leaving:
		close(w.left)
	case w.call != nil: // there will be, or somebody sees to it that it leaves
	case len(c.idle) < c.size:
		c.idle = append(c.idle, w)
	default:
		w.leave()
		c.mu.Unlock()
		c.system.Stop(w.pid)
		return false
	}
	c.mu.Unlock()
	return false
}

// leave lets the worker take nothing more. The caller holds mu.
func (w *worker) leave() {
	if w.leaving {
		return
	}
	w.leaving = true
	w.crew.idle, w.crew.ending = without(w.crew.idle, w), without(w.crew.ending, w)
	if w.task == nil {
		close(w.left)
	}
}

// Halt implements actor.Receiver: the worker has been stopped.
func (w *worker) Halt() <-chan struct{} {
	w.crew.mu.Lock()
	defer w.crew.mu.Unlock()
	w.leave()
	return w.left
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
