package model

import (
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
	"github.com/sluice-go/sluice/synchronizer"
)

// pooled returns options with a pool of synchronizer.NewPool.
func pooled(options ...activeobject.Option) func(*actor.System) ([]activeobject.Option, func(), error) {
	return func(system *actor.System) ([]activeobject.Option, func(), error) {
		p, err := synchronizer.NewPool(system, PoolSize)
		if err != nil {
			return nil, nil, err
		}
		return append([]activeobject.Option{synchronizer.Workers(p)}, options...), nil, nil
	}
}

// leading returns the option of a pool of Leader/Followers, which ends with the system.
func leading(option func(*leaderfollowers.Pool) activeobject.Option) func(*actor.System) ([]activeobject.Option, func(), error) {
	return func(system *actor.System) ([]activeobject.Option, func(), error) {
		p, err := leaderfollowers.New(system, PoolSize)
		if err != nil {
			return nil, nil, err
		}
		return []activeobject.Option{option(p)}, func() { <-p.Stop() }, nil
	}
}

// queued returns the option of a queue with n threads.
func queued(n int) func(*actor.System) ([]activeobject.Option, func(), error) {
	return func(*actor.System) ([]activeobject.Option, func(), error) {
		q := newQueue(n)
		return []activeobject.Option{activeobject.Dispatcher(q)}, q.close, nil
	}
}

// queue is the queue between the two halves of half-sync/half-async: those that bring something to
// do do not wait, and a fixed number of threads do it. With one thread it is the loop of a
// single-threaded reactor.
type queue struct {
	mu     sync.Mutex
	some   sync.Cond
	tasks  []actor.Task
	closed bool
	all    sync.WaitGroup
}

func newQueue(threads int) *queue {
	q := &queue{}
	q.some.L = &q.mu
	for range threads {
		q.all.Go(q.work)
	}
	return q
}

// Dispatch implements actor.Dispatcher.
func (q *queue) Dispatch(t actor.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, t)
	q.some.Signal()
}

func (q *queue) work() {
	for t := q.next(); t != nil; t = q.next() {
		t.Run()
	}
}

// next returns the next task, or nil when the queue has been closed and is empty.
func (q *queue) next() (t actor.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks) == 0 {
		if q.closed {
			return nil
		}
		q.some.Wait()
	}
	t, q.tasks[0] = q.tasks[0], nil
	if q.tasks = q.tasks[1:]; len(q.tasks) == 0 {
		q.tasks = nil
	}
	return t
}

// close ends the threads.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.some.Broadcast()
	q.mu.Unlock()
	q.all.Wait()
}
