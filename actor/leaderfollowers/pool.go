package leaderfollowers

import (
	"container/list"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
)

// Pool is the thread pool of the pattern: threads that take turns at waiting for the events of a
// HandleSet, and at processing them.
//
// # How many threads there are
//
// The size of a pool is how many events it processes at once. Threads that wait for a request, with
// the context that their handler was given, or in the body of an object, do not count meanwhile: the
// pool has another thread in the place of each. When the wait ends the handler goes on at once, even
// if that makes one more than the size; and as many threads end when they come back as there are too
// many. (A thread that waits by other means counts.) So as long as fewer events are processed than
// the pool's size, there is a leader, or a follower that has been promoted.
//
// That is arithmetic, under the mu of the set: busy threads count for the size, free ones lead or
// follow. There are to be size - busy free ones. One is started where there are fewer (see balance),
// and a thread ends that comes back where there are more (see surplus).
type Pool struct {
	system   *actor.System
	handles  *HandleSet
	roles    *activeobject.Object[roles]
	order    activeobject.Option
	failures func(h *Handle, err error) (keep bool)

	ctx    context.Context // of the handlers
	cancel context.CancelFunc
	gone   func() bool   // ends the watch over the synchronizer
	ended  chan struct{} // closed when the last thread has ended

	// What follows is guarded by the mu of the set.
	size       int
	live       int // threads that have not ended
	processing int // of these, those that have an event
	busy       int // events that are processed, but for those whose threads wait; and requests that have reserved a thread
	last       int // the number that was given to a thread last
	closing    bool
	threads    map[*thread]bool
	leading    *thread                           // in next: the leader
	returning  []actor.Task                      // that have returned their threads, which are about to come back: see requests.Return
	waiting    list.List                         // of *engine.Mailbox: objects that wait for a thread, each once
	elements   map[*engine.Mailbox]*list.Element // their places
	kept       int                               // threads that requests keep which wait: see engine.Keeper
}

// Option sets something of a pool. See LIFO, FIFO and Failures.
type Option func(*Pool)

// LIFO promotes the follower that has begun to wait last: what it used is most likely in the cache.
// That is the default.
func LIFO() Option { return func(p *Pool) { p.order = activeobject.ByLatest() } }

// FIFO promotes the follower that has waited longest.
func FIFO() Option { return func(p *Pool) { p.order = activeobject.ByArrival() } }

// Failures has decide told when a handler has failed: by an error that it has returned, or a
// *HandlerError if it has panicked or ended its goroutine. It says whether the handle is kept, and
// active again, or closed. By default it is logged, and the handle is closed. Of a task of a
// dispatcher, which is told of only if it panics, the handle is nil. Decide is called on the thread; if
// it panics, that is logged, too.
func Failures(decide func(h *Handle, err error) (keep bool)) Option {
	return func(p *Pool) { p.failures = decide }
}

// New returns a pool of n threads, which are goroutines. It belongs to the system, and ends with
// it, or by Close. The handle set is empty. It fails with *activeobject.ArgumentError if the system
// is nil, or n less than 1, and with actor.ErrClosed if the system is closed.
func New(system *actor.System, n int, options ...Option) (*Pool, error) {
	switch {
	case system == nil:
		return nil, argument("New", "system", "is nil: make one with actor.NewSystem")
	case n < 1:
		return nil, argument("New", "n", "is %d: a pool has one thread at least", n)
	}
	p := &Pool{system: system, size: n, ended: make(chan struct{}), threads: map[*thread]bool{}, elements: map[*engine.Mailbox]*list.Element{}}
	LIFO()(p)
	p.failures = p.logged
	for _, o := range options {
		if o != nil {
			o(p)
		}
	}
	if p.failures == nil {
		return nil, argument("New", "Failures", "is given nil: pass a function")
	}
	synchronizer, err := activeobject.New(system, synchronizers, &roles{}, p.order)
	if err != nil {
		return nil, err
	}
	p.roles, p.handles = synchronizer, newHandleSet(p)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.gone = system.AfterEnd(synchronizer.PID(), p.end)
	p.handles.mu.Lock()
	defer p.handles.mu.Unlock()
	p.balance()
	return p, nil
}

// Handles returns the pool's handle set.
func (p *Pool) Handles() *HandleSet { return p.handles }

// Size returns how many events the pool processes at once.
func (p *Pool) Size() int {
	p.handles.mu.Lock()
	defer p.handles.mu.Unlock()
	return p.size
}

// Resize changes how many events the pool processes at once. More threads start at once. Where there
// are too many, followers end at once, and other threads when they have processed their events. It
// fails with *activeobject.ArgumentError if n is less than 1, and with ErrClosed; then nothing has
// changed.
func (p *Pool) Resize(n int) error {
	if n < 1 {
		return argument("Pool.Resize", "n", "is %d: a pool has one thread at least", n)
	}
	s := p.handles
	s.mu.Lock()
	if p.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	p.size = n
	p.balance()
	offers := p.offers(nil)
	surplus := p.free() - p.wanted()
	s.signal() // the leader may have had to leave an event where it was
	s.mu.Unlock()
	offer(offers)
	if surplus > 0 {
		return p.closedOr(retire.Do(context.Background(), p.roles, surplus))
	}
	return nil
}

// closedOr returns an error of the synchronizer as one of the pool.
func (p *Pool) closedOr(err error) error {
	if err != nil {
		return ErrClosed
	}
	return nil
}

// Stop begins the end of the pool: the threads end when they have processed the events that they
// have, and the turns of objects and tasks of actors that have been dispatched. Then the handles that
// are left are closed, and the channel is. Events of handles are dropped, and later handles refused. Objects
// on the pool go on, on goroutines of the system's worker pool.
func (p *Pool) Stop() (ended <-chan struct{}) {
	p.end()
	return p.ended
}

// Close is Stop, and waits for the end. If ctx ends first it returns the context's error; then the
// context of the handlers has ended, and the handles are closed, but a handler that does not heed that
// goes on, and the pool ends after it. From inside a handler it returns ErrInside.
func (p *Pool) Close(ctx context.Context) error {
	ended := p.Stop()
	if t, ok := engine.ThreadOf(ctx).(*thread); ok && t.pool == p {
		return ErrInside
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return nil
	default:
	}
	p.cancel()
	p.handles.closeAll()
	return ctx.Err()
}

// end has the threads end.
func (p *Pool) end() {
	s := p.handles
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closing {
		return
	}
	p.closing = true
	s.signal()
}

// finish is what remains when the last thread has ended.
func (p *Pool) finish() {
	p.cancel()
	p.handles.closeAll()
	p.handles.mu.Lock()
	poller := p.handles.poller
	p.handles.mu.Unlock()
	if poller != nil {
		_ = poller.Close()
	}
	p.gone()
	p.roles.Stop()
	close(p.ended)
}

// closeAll closes all handles.
func (s *HandleSet) closeAll() {
	s.mu.Lock()
	all := make([]*Handle, 0, len(s.handles))
	for h := range s.handles {
		all = append(all, h)
	}
	s.mu.Unlock()
	for _, h := range all {
		_ = h.Close() // nothing could be done about an error
	}
}

// broken ends a pool whose poller fails: no event would come any more. The caller holds mu.
func (p *Pool) broken(err error) {
	p.closing = true
	p.system.Log(func(l *slog.Logger) {
		l.Error("sluice: leaderfollowers: a pool ends, as it cannot wait for its handles", "error", err)
	})
}

// logged is the default of Failures.
func (p *Pool) logged(h *Handle, err error) bool {
	p.system.Log(func(l *slog.Logger) {
		l.Error("sluice: leaderfollowers: a handler has failed, and its handle is closed", "handle", h.describe(), "error", err)
	})
	return false
}

// report has the program told of a failure, and returns whether the handle is kept.
func (p *Pool) report(h *Handle, err error) (keep bool) {
	defer func() {
		if v := recover(); v != nil {
			p.logged(h, err)
			p.logged(h, &HandlerError{Handle: "a failure of " + h.describe(), Value: v, Stack: stack()})
		}
	}()
	return p.failures(h, err)
}

func stack() []byte { return debug.Stack() }

// free returns how many threads lead or follow, and wanted, how many should. The caller holds mu.
func (p *Pool) free() int { return p.live - p.processing + len(p.returning) }

func (p *Pool) wanted() int { return max(p.size-p.busy+p.handles.owed.n, 0) }

// balance starts threads where there are too few. A pool that ends needs more only for tasks: those
// that wait may wait for these. The caller holds mu.
func (p *Pool) balance() {
	for (!p.closing || p.handles.events.n+p.handles.owed.n > 0) && p.free() < p.wanted() {
		p.live++
		p.last++
		t := &thread{pool: p, id: p.last}
		t.ctx = engine.OnThread(p.ctx, t)
		p.threads[t] = true
		go t.run()
	}
}

// surplus reports whether a thread that is free is to end, and counts it as one that has. The caller
// holds mu.
func (p *Pool) surplus(t *thread) bool {
	if p.free() <= p.wanted() {
		return false
	}
	p.remove(t)
	return true
}

// remove counts a thread as ended. The caller holds mu.
func (p *Pool) remove(t *thread) {
	p.live--
	delete(p.threads, t)
	t.over, t.last = true, p.closing && p.live == 0
}

// idle counts a thread as not busy: its body or handler waits.
func (p *Pool) idle() {
	s := p.handles
	s.mu.Lock()
	p.busy--
	offers := p.offers(nil)
	p.balance()
	if s.events.n > 0 {
		s.signal() // the leader may have had to leave an event where it was
	}
	s.mu.Unlock()
	offer(offers)
}

// busier counts one more thread as busy: what has waited on it goes on.
func (p *Pool) busier() {
	p.handles.mu.Lock()
	defer p.handles.mu.Unlock()
	p.busy++
}

// thread is a thread of a pool: a goroutine, and the next one if a handler ends it.
type thread struct {
	pool  *Pool
	id    int
	ctx   context.Context // of the handlers that run on it
	parks atomic.Int32    // goroutines that wait with the context

	role Role  // guarded by the mu of the set
	has  event // likewise: what it processes
	over bool  // it has ended; written by its own goroutine
	last bool  // and no other is left, nor will be
}

// Park implements engine.Thread.
func (t *thread) Park() {
	if t.parks.Add(1) == 1 {
		t.pool.idle()
	}
}

// Unpark implements engine.Thread.
func (t *thread) Unpark() {
	if t.parks.Add(-1) == 0 {
		t.pool.busier()
	}
}

// run is the life of a thread.
func (t *thread) run() {
	defer func() {
		switch {
		case !t.over: // a handler has ended the goroutine
			go t.run()
		case t.last:
			t.pool.finish()
		}
	}()
	for t.become() {
		e, owed, ok := t.next()
		t.promote()
		if !ok || t.process(e, owed) {
			return
		}
	}
}

// become waits until the thread is the leader. It reports false if the thread has ended instead.
func (t *thread) become() bool {
	p := t.pool
	ctx := context.Background()
	for {
		leader, err := back.Call(ctx, p.roles, t)
		if err != nil {
			return t.orphaned()
		}
		if leader {
			return true
		}
		v, err := lead.Call(ctx, p.roles, t)
		switch {
		case err != nil:
			return t.orphaned()
		case v == leads:
			if leader, err = begin.Call(ctx, p.roles, t); err != nil {
				return t.orphaned()
			}
			if leader {
				return true
			}
		default:
			p.handles.mu.Lock()
			ends := p.surplus(t)
			p.handles.mu.Unlock()
			if ends {
				return false
			}
		}
	}
}

// orphaned is become for a pool whose synchronizer has been stopped, with the system. The pool ends:
// next does not wait any more, and so needs no leader.
func (t *thread) orphaned() bool {
	t.pool.end()
	return true
}

// promote ends the leadership of the thread. If the synchronizer has been stopped, there are no
// followers that could wait for that.
func (t *thread) promote() { _ = promote.Do(context.Background(), t.pool.roles, t) }

// next waits for an event and takes it. Only the leader calls it, except when the pool ends. It reports
// false if there will be none: then the thread has been counted as ended.
func (t *thread) next() (e event, owed, ok bool) {
	p, s := t.pool, t.pool.handles
	s.mu.Lock()
	defer s.mu.Unlock()
	p.entered(t)
	t.role = Leader
	for {
		// Now and then descriptors and timers are looked at though events are there. Otherwise those
		// of memory could keep them waiting.
		if s.looks++; s.looks%64 == 0 && !p.closing {
			s.look()
		}
		switch {
		case s.owed.n > 0:
			e, owed = event{task: s.owed.pop()}, true
		case s.events.n > 0 && (p.busy < p.size || p.closing):
			if e = s.events.pop(); !s.take(e.handle) {
				continue
			}
			p.busy++
		case p.closing:
			p.left(t)
			p.remove(t)
			return event{}, false, false
		default:
			s.wait()
			continue
		}
		p.left(t)
		p.processing++
		p.balance()
		t.role, t.has = Processing, e
		return e, owed, true
	}
}

// take notes that a thread has an event of the handle, if it is one. It reports false if the event is
// to be dropped, as the handle has been closed, or the pool ends. The caller holds mu.
func (s *HandleSet) take(h *Handle) bool {
	switch {
	case h == nil:
		return true
	case h.state != reported:
		return false
	case s.pool.closing:
		h.state = inactive
		return false
	}
	h.state = processed
	h.drained.Store(false)
	return true
}

// entered and left say that a thread begins, and ends, to lead. The caller holds mu.
func (p *Pool) entered(t *thread) {
	if p.leading != nil && !p.closing {
		panic("sluice: leaderfollowers: two threads lead")
	}
	p.leading = t
}

func (p *Pool) left(*thread) { p.leading = nil }

// process runs the handler, or the task, of an event, and reports whether the thread has ended then.
func (t *thread) process(e event, owed bool) (ends bool) {
	defer func() { ends = t.done(e, owed) }() // also if the goroutine is ended
	t.handle(e)
	return false // done says
}

// handle runs the handler, or the task, of an event.
func (t *thread) handle(e event) {
	h, returned := e.handle, false
	defer func() {
		if returned {
			return
		}
		err := &HandlerError{Handle: h.describe(), Value: recover()}
		if err.Exited = err.Value == nil; !err.Exited {
			err.Stack = stack()
		}
		if h != nil || !err.Exited { // a body that ends the goroutine of its object's turn is told to its caller
			t.failed(h, err)
		}
	}()
	err := error(nil)
	if e.task != nil {
		e.task.Run()
	} else {
		err = h.run(t.ctx, e.ready)
	}
	returned = true
	if err != nil {
		t.failed(h, err)
	}
}

// run calls the handler that the handle has now.
func (h *Handle) run(ctx context.Context, r Ready) error {
	h.set.mu.Lock()
	handler := h.handler
	h.set.mu.Unlock()
	return handler.HandleEvent(ctx, Event{Handle: h, Ready: r})
}

// failed reports a failure, and closes the handle unless it is to be kept.
func (t *thread) failed(h *Handle, err error) {
	if !t.pool.report(h, err) && h != nil {
		_ = h.Close() // the failure has been reported
	}
}

// done says that an event has been processed, and activates its handle again. It reports whether the
// thread has ended.
func (t *thread) done(e event, owed bool) (ends bool) {
	p, s, h := t.pool, t.pool.handles, e.handle
	s.mu.Lock()
	p.processing--
	if !owed {
		p.busy--
	} else if i := slices.Index(p.returning, e.task); i >= 0 { // it has counted itself
		p.returning = slices.Delete(p.returning, i, i+1)
	}
	t.role, t.has = Follower, event{}
	offers := p.offers(nil)
	if s.events.n > 0 {
		s.signal() // the leader may have had to leave an event where it was
	}
	ends = p.surplus(t)
	if h == nil || h.state == closed || p.closing {
		s.mu.Unlock()
	} else if err := s.activate(h); err != nil && err != ErrClosed {
		t.failed(h, err)
	}
	offer(offers)
	return ends
}
