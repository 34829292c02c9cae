package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// graph is the bodies of the process that wait inside objects, and what they wait for. A wait is
// drawn from before its caller parks until after the caller has been told the result. A record is
// not used again while a wait leads to it. So with graph held waits can be followed without
// meeting a record that belongs to another request.
//
// Order of locks: graph, then the mu of one mailbox at a time. A wait of a body takes graph twice, to
// draw the wait and to erase it. A goal that moves or fails while bodies wait for it takes it once,
// and so does an explanation of bodies that wait. A call that comes from no body, and one that
// finds its object idle, never take it. Where threads are lent or limited, a wait takes a step for
// each body of the chain.
var graph waitgraph.Graph

// pending is how many waits have been entered, and not left. A goroutine that has changed under the
// mu of a mailbox what may close a circle there, and then finds none, need not look: a wait that is
// entered later sees the change.
var pending atomic.Int64

// waiter is a wait of a body for a request, the end of an object, or a Join. All is guarded by graph.
type waiter struct {
	waitgraph.Wait
	top *Frame                 // the first body, from the innermost outwards, whose thread is not idle for this wait
	by  canceler               // of a wait that is canceled when it is aborted
	err *mailbox.DeadlockError // of a wait that has been erased because it was in a circle

	// Of a wait without a canceler: a posted request behind its goal may close a circle later.
	aborted  chan error
	joins    []*Join    // of the first, that have the wait among their waits
	requests []*Request // likewise
}

// waitList is the waits of waiters without a canceler.
type waitList []*waitgraph.Wait

// waiterPool keeps waiters for other waits: zero, but for room.
var waiterPool = sync.Pool{New: func() any { return new(waiter) }}

// canceler is a caller that can leave what it waits for, which will not run then.
type canceler interface {
	// cancel is called with graph held, with the error that abort is given later. It reports false if it is too late.
	cancel(err error) bool
	// abort tells the caller why it has been canceled.
	abort(err error)
}

// cancel takes the request of a caller out of its queue. It does so even if the request is
// committed, which would wait for ever; but not if its body has suspended.
func (r *Request) cancel(err error) bool {
	m := r.lock()
	if r.rest() != nil {
		m.mu.Unlock()
		return false
	}
	return m.remove(r)
}

// suspended reports whether what by waits for is a request whose body has suspended.
func suspended(by canceler) bool {
	r, _ := by.(*Request)
	if c, ok := by.(*choice); ok {
		r = c.of.winner.Load()
	}
	if r == nil || r == noWinner {
		return false
	}
	m := r.lock()
	defer m.mu.Unlock()
	return r.rest() != nil
}

// elsewhere breaks a circle by erasing a wait in it that is not w, as the body that w waits for has begun and is suspended. It
// reports false if none can be canceled. The caller holds graph.
func (w *waiter) elsewhere(circle []waitgraph.Link, err *mailbox.DeadlockError, broken *[]*waiter) bool {
	for _, link := range circle {
		if link.Waits == nil {
			continue
		}
		for _, wait := range link.Waits.Waits() {
			other := wait.Owner.(*waiter)
			if other == w || other.by != nil && !other.by.cancel(err) {
				continue
			}
			other.erase()
			other.err = err
			*broken = append(*broken, other)
			return true
		}
	}
	return false
}

// abort implements canceler. The caller waits for the token, whatever becomes of its
// context, since the request is in no queue any more.
func (r *Request) abort(err error) {
	r.fail(err)
	r.settle()
}

// enter draws the wait of the body f for the goal, until leave. If that closes a circle, enter
// erases the wait and returns an error that names the circle. By, if it is not nil, has been
// canceled then; if it cannot be canceled, the wait is over soon, and stays. A body that waits at
// several objects at once, for the first that runs its request, enters a Join of these requests.
//
// A goal that was posted may close a circle later: it is requeued to another object, which waits
// for f; or it follows from the first of several, and the others fail. Then the waiter is aborted.
// (A called request is taken to another object by its own caller, which enters again.)
func (f *Frame) enter(goal waitgraph.Goal, by canceler) (*waiter, error) {
	pending.Add(1)
	var broken []*waiter
	defer func() { abort(broken) }()
	graph.Lock()
	defer graph.Unlock()
	w := waiterPool.Get().(*waiter)
	w.Owner, w.by = w, by
	if _, suspended := by.(*Rest); suspended || by == nil {
		w.watch(goal.(Awaited)) // before it is looked where the goal is: see moved
	}
	f.draw(w, goal)
	return w, w.breaks(graph.Circle(&w.Wait), &broken)
}

// leave ends what enter began. One that has been erased before may still be about to be aborted.
func (w *waiter) leave() {
	graph.Lock()
	defer graph.Unlock()
	pending.Add(-1)
	if w.From() != nil {
		w.erase()
		*w = waiter{requests: w.requests}
		waiterPool.Put(w)
	}
}

// watch adds the waiter to those of the requests, and of the joins of the first, that the goal
// follows from.
func (w *waiter) watch(goal Awaited) {
	w.aborted = make(chan error, 1)
	var joins map[*Join]bool
	if _, simple := goal.(*Request); !simple {
		joins = map[*Join]bool{}
	}
	goal.walk(joins, func(r *Request) {
		r.addWaiter(w)
		w.requests = append(w.requests, r)
	})
	for j := range joins {
		if j.first {
			j.waits = append(j.waits, &w.Wait)
			w.joins = append(w.joins, j)
		}
	}
}

// draw draws w. The caller holds graph.
func (f *Frame) draw(w *waiter, goal waitgraph.Goal) {
	graph.Draw(&w.Wait, f.place(), goal)
	w.top = f
	for w.top != nil && w.top.idles && (w.top == f || !w.top.over.Load()) {
		g := w.top
		w.top = g.parent
		if g.box.config.idles {
			if g.idle++; g.idle == 1 {
				g.park()
			}
		}
		if w.top != nil && w.top.node.WaitsFor(g.r) {
			break // the thread of that one is idle already
		}
	}
}

// erase erases w, if it is drawn, and ends what watch began. The caller holds graph.
func (w *waiter) erase() {
	from := w.From()
	if from == nil {
		return
	}
	graph.Erase(&w.Wait)
	for g := from.Body().(*Frame); g != w.top; g = g.parent {
		if g.box.config.idles {
			if g.idle--; g.idle == 0 {
				g.unpark()
			}
		}
	}
	for _, j := range w.joins {
		if i := slices.Index(j.waits, &w.Wait); i >= 0 {
			j.waits = slices.Delete(j.waits, i, i+1)
		}
	}
	for _, r := range w.requests {
		r.removeWaiter(w)
	}
	clear(w.requests)
	w.joins, w.requests = nil, w.requests[:0]
}

// breaks breaks the circle that w is in, and returns an error that names it if it erases w for that. If
// there are transactions in the circle one of them is to be rolled back: breaks erases its waits, and adds
// their waiters to those that are to be aborted. It returns nil if there is no circle, or if by cannot be
// canceled, as its request is about to run. The caller holds graph.
func (w *waiter) breaks(circle []waitgraph.Link, broken *[]*waiter) error {
	for ; circle != nil; circle = graph.Circle(&w.Wait) {
		err := new(mailbox.DeadlockError)
		for _, link := range circle {
			err.Circle = append(err.Circle, mailbox.Link{Body: link.Body, For: link.For})
		}
		own, chosen := w.From().Body().(*Frame).tx, w.victim(circle)
		if chosen != nil && chosen != own && chosen.sacrifices(circle, err, broken) {
			chosen.Doom(err)
			continue // w may be in another circle
		}
		if w.by != nil && !w.by.cancel(err) {
			if suspended(w.by) && w.elsewhere(circle, err, broken) {
				continue
			}
			return nil
		}
		w.erase()
		w.err = err
		if own != nil {
			own.Doom(err)
		}
		return err
	}
	return nil
}

// breakCircles erases those of the waits that are in a circle now, though they were not when they
// began, and returns their waiters, which are still to be aborted. The caller holds graph.
func breakCircles(waits []*waitgraph.Wait) (broken []*waiter) {
	graph.Circles(waits, func(wait *waitgraph.Wait, circle []waitgraph.Link) {
		if w := wait.Owner.(*waiter); w.breaks(circle, &broken) != nil {
			broken = append(broken, w)
		}
	})
	return broken
}

// abort ends the waits that breaks has erased. If one has a canceler, graph must not be held.
func abort(broken []*waiter) {
	for _, w := range broken {
		if w.by != nil {
			w.by.abort(w.err)
		} else {
			w.aborted <- w.err // there is room: it is erased once
		}
	}
}

// notify aborts those of the waits that are in a circle now. The caller holds graph.
func notify(waits waitList) { abort(breakCircles(slices.Clone(waits))) }

// moved notifies the waiters for r, which has arrived at another object than the one at which it
// was when their waits began.
//
// None is missed. A waiter is stored before enter looks where r is, and r has arrived before the
// waiters are read here. So either the waiter is seen here, or it has seen r at the new object.
//
// Until then the graph counts r where it was. A body that begins to wait meanwhile, inside the
// object that r has come to, may not see that r leads there; but its wait is drawn by the time
// that the waits for r are looked at here.
func (r *Request) moved() {
	if r.waits.Load() == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	if all := r.waits.Load(); all != nil {
		for _, w := range *all {
			graph.Recount(w)
		}
		notify(*all)
	}
}

// addWaiter adds a waiter for r, and removeWaiter takes it away. The caller holds graph.
func (r *Request) addWaiter(w *waiter) {
	var all waitList
	if old := r.waits.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, &w.Wait)
	r.waits.Store(&all)
}

func (r *Request) removeWaiter(w *waiter) {
	old := r.waits.Load()
	if old == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(*old), func(other *waitgraph.Wait) bool { return other == &w.Wait })
	if len(left) == 0 {
		r.waits.Store(nil)
	} else {
		r.waits.Store(&left)
	}
}
