package actor

import (
	"sync"

	"github.com/sluice-go/sluice/internal/engine"
)

// Dispatcher provides threads for objects. Its method Dispatch(Task) has the task run soon, on a
// thread of the dispatcher, and does not wait for it. A program can have a dispatcher of its own:
// see activeobject.Dispatcher.
type Dispatcher = engine.Dispatcher

// Task is what a dispatcher's thread runs, by its method Run().
type Task = engine.Task

// Warm is a dispatcher that keeps its goroutines for later tasks. Their stacks have grown already,
// which is most of what a new goroutine costs. A task never waits for a thread: if no goroutine is
// idle, Warm starts one.
//
// The zero Warm is ready to use. Close ends the idle goroutines.
type Warm struct {
	mu     sync.Mutex
	idle   []*worker // in the order in which they became idle; the last is used first, as its cache is warmest
	active int       // goroutines that have not ended
	done   chan struct{}

	system *System // that the goroutines belong to; may be nil
}

type worker struct {
	task chan Task
}

// maxIdle is how many idle goroutines are kept. More may run at once.
const maxIdle = 128

// Dispatch runs the task on an idle goroutine, or on a new one. It may be called after Close, too:
// the task of an object that is passed to a worker must not be lost.
func (w *Warm) Dispatch(t Task) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		idle := w.idle[n-1]
		w.idle[n-1], w.idle = nil, w.idle[:n-1]
		w.mu.Unlock()
		idle.task <- t
		return
	}
	w.active++
	w.mu.Unlock()
	go w.work(t)
}

func (w *Warm) work(t Task) {
	defer w.exit() // also if a task calls runtime.Goexit
	self := &worker{task: make(chan Task, 1)}
	for t != nil {
		t.Run()
		w.mu.Lock()
		if w.done != nil || len(w.idle) == maxIdle {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, self)
		w.mu.Unlock()
		t = <-self.task
	}
}

func (w *Warm) exit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active--; w.active == 0 && w.done != nil {
		select {
		case <-w.done: // closed before
		default:
			close(w.done)
		}
	}
}

// Close ends the idle goroutines, and lets the others end when they have run
// their task. It returns a channel that is closed when none is left. Later tasks
// run on goroutines of their own.
func (w *Warm) Close() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.active == 0 {
			close(w.done)
		}
	}
	for _, self := range w.idle {
		self.task <- nil // there is room: an idle worker's channel is empty
	}
	w.idle = nil
	return w.done
}

// Dedicated is a dispatcher of one goroutine, that of a single object: the
// thread of the thread-per-object model. It ends with the object.
type Dedicated struct {
	task   chan Task
	closed chan struct{}
	once   sync.Once
}

// NewDedicated returns a dispatcher for one object and starts its goroutine.
func NewDedicated() *Dedicated {
	// An object is owned by one thread at a time, so there is never more than
	// one task on its way.
	d := &Dedicated{task: make(chan Task, 1), closed: make(chan struct{})}
	go d.work()
	return d
}

// Dispatch runs the task on the dispatcher's goroutine.
func (d *Dedicated) Dispatch(t Task) { d.task <- t }

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
