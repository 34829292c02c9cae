package leaderfollowers

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/poll"
)

// HandleSet is the handle set of a pool: what its leader waits for. There are four kinds of events.
//
//   - A connection, a listener or a pipe is ready: see Conn, Listen and File.
//   - The time of a Timer has come.
//   - A WakeUp is called, from anywhere in the program.
//   - An object, or an actor, has something to do: its mailbox is the handle, and the object's turn
//     is the processing of the event. See Pool.Dispatcher, Pool.ForActors and Threads.
//
// As long as there is no descriptor in it, the leader waits in memory, and costs no system call. (In
// a testing/synctest bubble such a wait is durable.)
//
// # Why no wake-up is lost
//
// Events, timers and the end of the pool are noted under mu. The leader looks at all of them under mu
// before it waits, and sets waiting. A goroutine that notes something signals if it finds waiting
// set, and clears it. The signal is a token, for which there is room, or a wake of the poller, which
// the next wait sees if none is under way. So either the leader sees what is noted, or the signal is
// sent. A signal that comes late has the next wait end for nothing.
type HandleSet struct {
	pool *Pool

	mu      sync.Mutex
	events  ring[event]      // that have come, and that no thread has taken
	owed    ring[actor.Task] // of requests that have reserved a thread: see Threads
	timers  timers
	handles map[*Handle]bool
	last    uint64 // the id that was given last

	waiting bool // the leader waits, or is about to
	polls   bool // in the poller
	wake    chan struct{}
	poller  *poll.Set    // nil until there is a descriptor
	found   []poll.Event // belongs to the leader
	timer   *time.Timer  // likewise
	looks   uint         // how often a leader has looked for an event
}

// event is an event of a handle, or a task.
type event struct {
	task   actor.Task
	handle *Handle
	ready  Ready
}

func newHandleSet(p *Pool) *HandleSet {
	return &HandleSet{pool: p, handles: map[*Handle]bool{}, wake: make(chan struct{}, 1)}
}

// add makes a handle of the source, which is given its id. If it is a descriptor, it is registered.
func (s *HandleSet) add(of func(h *Handle) source) (*Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool.closing {
		return nil, ErrClosed
	}
	s.last++
	h := &Handle{set: s, id: s.last}
	h.source = of(h)
	s.handles[h] = true
	return h, nil
}

// descriptors returns what waits for descriptors. The first call makes it, and has the leader wait
// there from then on.
func (s *HandleSet) descriptors() (*poll.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool.closing {
		return nil, ErrClosed
	}
	if s.poller != nil {
		return s.poller, nil
	}
	p, err := poll.New()
	if err != nil {
		return nil, err
	}
	s.poller, s.found = p, make([]poll.Event, 128)
	s.signal()
	return p, nil
}

// register makes the descriptor fd one of the handle's set. It is called where fd cannot be closed.
func (s *HandleSet) register(h *Handle, what string, fd uintptr) error {
	set, err := s.descriptors()
	if err != nil {
		return err
	}
	d, err := set.Add(fd, h, 0)
	switch {
	case err == nil:
		s.mu.Lock()
		h.descriptor = d
		s.mu.Unlock()
		return nil
	case errors.Is(err, poll.ErrRegistered):
		return ErrRegistered
	case errors.Is(err, poll.ErrClosed):
		return ErrClosed
	}
	return &HandleError{What: what, Cause: err}
}

// forget takes a handle that is closed out of everything. The caller holds mu.
func (s *HandleSet) forget(h *Handle) {
	delete(s.handles, h)
	s.unset(h)
}

// abandon removes a handle that could not be made.
func (s *HandleSet) abandon(h *Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.state = closed
	s.forget(h)
}

// Len returns how many handles there are. Mailboxes of objects do not count.
func (s *HandleSet) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handles)
}

// post notes an event. The caller holds mu.
func (s *HandleSet) post(e event) {
	s.events.push(e)
	s.signal()
}

// signal ends the leader's wait, if there is one. The caller holds mu.
func (s *HandleSet) signal() {
	if !s.waiting {
		return
	}
	s.waiting = false
	if s.polls {
		s.poller.Wake()
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// activate has the next event of the handle reported. It is called with mu held, while no thread has
// an event of the handle, and releases mu.
//
// Where the system has them, descriptors are armed for edges as long as their handlers wait to read. If
// a handler has read all that was there, its handle need not be armed again, which saves a system call
// for each event. No event is lost then. What comes after the last read is an event of its own. The
// leader reports it: while the handle is processed, by setting again; or later, when it is active. A
// handle whose handler has not read all, or whose other side has ended, is armed, which has the system
// look at what is there. That edges is set while the descriptor is armed otherwise does not happen: it
// is false before the descriptor is armed, and arming holds arms until it says what has been done.
func (s *HandleSet) activate(h *Handle) error {
	read := h.descriptor != nil && h.interest == Read
	again := h.again && (read || h.descriptor == nil)
	h.state, h.again = active, false
	switch {
	case h.descriptor != nil && h.interest == 0:
		h.state = inactive
	case h.paused > 0:
		h.state, h.due, h.paused = inactive, time.Now().Add(h.paused), 0
		s.set(h)
	case again:
		s.report(h, h.interest)
	case read && h.edges.Load() && h.drained.Load() && !h.ended:
	default:
		interest := h.interest
		s.mu.Unlock()
		return s.arm(h, interest)
	}
	s.mu.Unlock()
	return nil
}

// arm arms a handle that is active.
func (s *HandleSet) arm(h *Handle, interest Ready) error {
	h.arms.Lock()
	h.edges.Store(false)
	edges, err := h.source.arm(interest)
	h.edges.Store(edges)
	h.arms.Unlock()
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.state == closed:
		return ErrClosed
	case h.state == active:
		h.state = inactive
	}
	return &HandleError{What: h.String(), Cause: err}
}

// report notes an event of a handle. One of a handle whose last event has not been processed yet is
// kept until then; of a descriptor, only if a thread has that event already, as its handler may have
// read before. The caller holds mu.
func (s *HandleSet) report(h *Handle, r Ready) {
	switch {
	case h.state == active:
		h.state = reported
		s.post(event{handle: h, ready: r})
	case h.state == processed, h.state != closed && h.descriptor == nil:
		h.again = true
	}
}

// wait waits until there is a signal, or something is ready or due. It is called with mu held by the
// leader, and releases mu while it waits.
func (s *HandleSet) wait() {
	timeout := s.untilDue()
	if timeout == 0 {
		s.expire()
		return
	}
	s.waiting, s.polls = true, s.poller != nil
	s.mu.Unlock()
	if s.polls { // only the leader writes it
		s.poll(timeout)
		return
	}
	s.sleep(timeout)
	s.mu.Lock()
	s.waiting = false
	s.expire()
}

// look notes what is ready or due, without waiting. The caller is the leader, and holds mu.
func (s *HandleSet) look() {
	s.expire()
	if s.poller != nil {
		s.mu.Unlock()
		s.poll(0)
	}
}

// poll waits for descriptors, and notes what is ready. It is called without mu, and returns with it.
func (s *HandleSet) poll(timeout time.Duration) {
	n, err := s.poller.Wait(s.found, timeout)
	s.mu.Lock()
	s.waiting = false
	for i := range n {
		e := &s.found[i]
		h := e.Descriptor.Owner.(*Handle)
		h.ended = h.ended || e.Ready&(poll.Ended|poll.Failed) != 0
		s.report(h, Ready(e.Ready&^poll.Ended))
		*e = poll.Event{}
	}
	s.expire()
	if err != nil && !s.pool.closing {
		s.pool.broken(err)
	}
}

// sleep waits for a token. A negative timeout has no end.
func (s *HandleSet) sleep(timeout time.Duration) {
	if timeout < 0 {
		<-s.wake
		return
	}
	if s.timer == nil {
		s.timer = time.NewTimer(timeout)
	} else {
		s.timer.Reset(timeout)
	}
	select {
	case <-s.wake:
		s.timer.Stop()
	case <-s.timer.C:
	}
}

// untilDue returns how long it is until the first timer is due: 0 if one is, -1 if there is none. The
// caller holds mu.
func (s *HandleSet) untilDue() time.Duration {
	if len(s.timers) == 0 {
		return -1
	}
	return max(time.Until(s.timers[0].due), 0)
}

// expire notes the events of the timers that are due, and ends the pauses that are over. The caller
// is the leader, and holds mu.
func (s *HandleSet) expire() {
	var resumed []*Handle
	if len(s.timers) == 0 {
		return
	}
	for now := time.Now(); len(s.timers) > 0 && !s.timers[0].due.After(now); {
		h := s.timers[0]
		s.unset(h)
		if h.descriptor == nil {
			s.report(h, 0)
		} else if h.state == inactive {
			resumed = append(resumed, h)
		}
	}
	for _, h := range resumed {
		if h.state == inactive && h.interest != 0 {
			if err := s.activate(h); err != nil { // nothing waits for the result
				s.pool.report(h, err)
			}
			s.mu.Lock()
		}
	}
}

// set puts a handle among the timers, at its due. The caller holds mu.
func (s *HandleSet) set(h *Handle) {
	s.unset(h)
	heap.Push(&s.timers, h)
	if h.place == 1 {
		s.signal() // the leader may wait for a later one
	}
}

// unset takes a handle out of the timers, and reports whether it was there. The caller holds mu.
func (s *HandleSet) unset(h *Handle) bool {
	if h.place == 0 {
		return false
	}
	heap.Remove(&s.timers, h.place-1)
	return true
}

// timers is a heap of handles by their due.
type timers []*Handle

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (t *timers) Push(h any) {
	*t = append(*t, h.(*Handle))
	h.(*Handle).place = len(*t)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(*t) - 1
	h := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	h.place = 0
	return h
}

// argument returns the error of an argument that makes no sense.
func argument(call, name, problem string, values ...any) error {
	return &activeobject.ArgumentError{Call: "leaderfollowers: " + call, Argument: name, Problem: fmt.Sprintf(problem, values...)}
}
