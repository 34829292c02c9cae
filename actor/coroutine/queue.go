package coroutine

import (
	"fmt"
	"sync"
)

// Queue is a bounded queue between routines of one scheduler, and between them and other
// goroutines: the text's CoQueue. Routines wait in it without keeping a worker; other goroutines
// put and take items by TryEnqueue and TryDequeue. Items come out in the order in which they were
// put in, and routines that wait get and put theirs in the order in which they came.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T // a ring
	first int
	count int

	empty, full *Blocker
}

// NewQueue returns a queue of the scheduler's routines for up to capacity items. It fails with
// *activeobject.ArgumentError if the scheduler is nil, or the capacity is less than 1.
func NewQueue[T any](s *Scheduler, capacity int) (*Queue[T], error) {
	switch {
	case s == nil:
		return nil, wrong("NewQueue", "s", "is nil")
	case capacity < 1:
		return nil, wrong("NewQueue", "capacity", fmt.Sprintf("is %d: there has to be room for one item at least", capacity))
	}
	q := &Queue[T]{items: make([]T, capacity)}
	q.empty = &Blocker{s: s, condition: func() bool { return q.Len() == 0 }}
	q.full = &Blocker{s: s, condition: func() bool { return q.Len() == capacity }}
	return q, nil
}

// Len returns how many items are in the queue.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// TryEnqueue puts an item in, unless the queue is full or routines wait to put one in, and reports
// whether it has. Any goroutine may call it.
func (q *Queue[T]) TryEnqueue(x T) bool { return q.full.Waiting() == 0 && q.put(x) }

// TryDequeue takes the first item out, unless the queue is empty or routines wait for one, and
// reports whether it has. Any goroutine may call it.
func (q *Queue[T]) TryDequeue() (T, bool) {
	if q.empty.Waiting() > 0 {
		var none T
		return none, false
	}
	return q.take()
}

// put puts an item in if there is room.
func (q *Queue[T]) put(x T) bool {
	q.mu.Lock()
	room := q.count < len(q.items)
	if room {
		q.items[(q.first+q.count)%len(q.items)] = x
		q.count++
	}
	q.mu.Unlock()
	if room {
		q.empty.Unblocked()
	}
	return room
}

// take takes the first item out if there is one.
func (q *Queue[T]) take() (x T, ok bool) {
	q.mu.Lock()
	if ok = q.count > 0; ok {
		var none T
		x, q.items[q.first] = q.items[q.first], none
		q.first = (q.first + 1) % len(q.items)
		q.count--
	}
	q.mu.Unlock()
	if ok {
		q.full.Unblocked()
	}
	return x, ok
}

// BlockingEnqueue puts an item in, and has the coroutine wait while the queue is full. It fails as
// Blocker.WaitUntilNotBlocked does; then the item is not in the queue.
func (q *Queue[T]) BlockingEnqueue(c *Coroutine, x T) error {
	return q.full.until(c, "BlockingEnqueue", func() bool { return q.put(x) })
}

// BlockingDequeue takes the first item out, and has the coroutine wait while the queue is empty. It
// fails as Blocker.WaitUntilNotBlocked does; then no item has been taken.
func (q *Queue[T]) BlockingDequeue(c *Coroutine) (x T, err error) {
	err = q.empty.until(c, "BlockingDequeue", func() (ok bool) { x, ok = q.take(); return ok })
	return x, err
}

// EnqueueThen makes a task that waits while the queue is full, puts the item in, and calls then
// with nil. If the wait fails, then is called with the error, and the item is not in the queue: see
// SetRoutineContinuation, which also says how EnqueueThen fails.
func (q *Queue[T]) EnqueueThen(x T, then func(error)) (*Task, error) {
	if then == nil {
		return nil, wrong("EnqueueThen", "then", "is nil")
	}
	return q.full.s.task(q.full, "EnqueueThen", then, true, func(err error) (again bool) {
		if err == nil && !q.put(x) {
			return true
		}
		q.full.passOn()
		then(err)
		return false
	})
}

// DequeueThen makes a task that waits while the queue is empty, takes the first item out, and calls
// then with it. If the wait fails, then is called with the error, and no item has been taken: see
// SetRoutineContinuation, which also says how DequeueThen fails.
func (q *Queue[T]) DequeueThen(then func(T, error)) (*Task, error) {
	if then == nil {
		return nil, wrong("DequeueThen", "then", "is nil")
	}
	return q.empty.s.task(q.empty, "DequeueThen", then, true, func(err error) (again bool) {
		var x T
		if err == nil {
			var ok bool
			if x, ok = q.take(); !ok {
				return true
			}
		}
		q.empty.passOn()
		then(x, err)
		return false
	})
}
