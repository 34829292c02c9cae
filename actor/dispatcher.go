package actor

import (
	"sync"

	"github.com/sluice-go/sluice/mailbox"
)

// Dispatcher lends threads to objects.
type Dispatcher = mailbox.Dispatcher

// Warm is a dispatcher of goroutines that are kept after use: their stacks have
// grown already, which is most of what a new goroutine costs. It never makes a
// task wait: if no goroutine is idle, it starts one.
//
// The zero Warm is ready to use. Close ends the idle goroutines.
type Warm struct {
	mu     sync.Mutex
	idle   []*worker // the one that became idle last at the end: its cache is warmest
	closed bool
	active sync.WaitGroup
}

type worker struct {
	task chan mailbox.Task
}

// maxIdle is how many idle goroutines are kept. More may run at once.
const maxIdle = 128

// Dispatch runs the task on an idle goroutine, or on a new one. It may be called
// after Close, too, since an object on its way to a worker must not be lost.
func (w *Warm) Dispatch(t mailbox.Task) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		idle := w.idle[n-1]
		w.idle[n-1], w.idle = nil, w.idle[:n-1]
		w.mu.Unlock()
		idle.task <- t
		return
	}
	w.active.Add(1)
	w.mu.Unlock()
	go w.work(t)
}

func (w *Warm) work(t mailbox.Task) {
	defer w.active.Done() // a task may leave by runtime.Goexit
	self := &worker{task: make(chan mailbox.Task, 1)}
	for t != nil {
		t.Run()
		w.mu.Lock()
		if w.closed || len(w.idle) == maxIdle {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, self)
		w.mu.Unlock()
		t = <-self.task
	}
}

// Close ends the goroutines, those that run a task after it has returned, and
// waits for all of them. Later tasks run on goroutines of their own.
func (w *Warm) Close() {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.closed = nil, true
	w.mu.Unlock()
	for _, self := range idle {
		self.task <- nil
	}
	w.active.Wait()
}

// Dedicated is a dispatcher of one goroutine, that of a single object: the
// thread of the thread-per-object model. It ends with the object.
type Dedicated struct {
	task   chan mailbox.Task
	closed chan struct{}
	once   sync.Once
}

// NewDedicated returns a dispatcher for one object and starts its goroutine.
func NewDedicated() *Dedicated {
	// An object is owned by one thread at a time, so there is never more than
	// one task on its way.
	d := &Dedicated{task: make(chan mailbox.Task, 1), closed: make(chan struct{})}
	go d.work()
	return d
}

// Dispatch runs the task on the dispatcher's goroutine.
func (d *Dedicated) Dispatch(t mailbox.Task) { d.task <- t }

func (d *Dedicated) work() {
	left := true
	defer func() {
		if left {
			go d.work() // a task left by runtime.Goexit, but the object lives
		}
	}()
	for {
		select {
		case t := <-d.task:
			t.Run()
		case <-d.closed:
			// What is on its way is the last: the object has ended.
			select {
			case t := <-d.task:
				t.Run()
			default:
			}
			left = false
			return
		}
	}
}

// Close ends the goroutine once the object has ended.
func (d *Dedicated) Close() { d.once.Do(func() { close(d.closed) }) }
