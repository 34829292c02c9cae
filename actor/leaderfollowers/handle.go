package leaderfollowers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/poll"
)

// Ready says what a handle is ready for, or what its handler waits for.
type Ready uint8

// What a handle may be ready for. Failed comes beside what the handler waits for: the next operation
// says how the handle has failed.
const (
	Read   = Ready(poll.Read)
	Write  = Ready(poll.Write)
	Failed = Ready(poll.Failed)
)

// String implements fmt.Stringer.
func (r Ready) String() string { return poll.Ready(r).String() }

// Event is what a handle set reports about a handle.
type Event struct {
	Handle *Handle
	// Ready says what a connection, listener or file is ready for; of timers and wake-ups it is 0.
	Ready Ready
}

// EventHandler is the event handler of the pattern: what a program does about the events of its
// handles. Its implementations are the concrete event handlers.
type EventHandler interface {
	// HandleEvent is the hook method. It runs on the thread that has waited for the event, which has
	// promoted another one before. While it runs, the handle is deactivated: no other thread has an
	// event of the handle. When it has returned, the handle is active again, unless it has been
	// closed; what is ready by then is an event at once.
	//
	// It must not wait for handles of the same pool. For requests of objects it may wait, with the
	// context or one derived from it: then the pool has another thread in its place meanwhile. The
	// context ends when the context of the pool's Close does.
	//
	// An error, a panic or runtime.Goexit closes the handle, unless Failures decides otherwise, and is
	// reported: see Failures. The pool goes on.
	HandleEvent(ctx context.Context, e Event) error
}

// HandlerFunc is a function as an EventHandler.
type HandlerFunc func(ctx context.Context, e Event) error

// HandleEvent implements EventHandler.
func (f HandlerFunc) HandleEvent(ctx context.Context, e Event) error { return f(ctx, e) }

// Handle is an event source in a handle set: the part that connections, listeners, timers, wake-ups
// and files have in common.
//
//	             Activate             event             next              HandleEvent returns
//	inactive ──────────────► active ────────► reported ──────► processed ─────────────────────► active
//
// Its methods may be called from any goroutine, also from inside its handler.
type Handle struct {
	set    *HandleSet
	source source
	id     uint64

	// What follows is guarded by the mu of the set.
	handler    EventHandler
	state      state
	interest   Ready         // of a descriptor
	again      bool          // there was another event while one was reported or processed
	paused     time.Duration // the handle is to be active again only after this time
	due        time.Time     // of a timer that is set, or a handle that is paused
	place      int           // among the timers, plus one; 0 if it is not there
	descriptor *poll.Descriptor
	ended      bool // the other side sends nothing more, or the descriptor has failed

	arms    sync.Mutex  // held while the descriptor is armed
	edges   atomic.Bool // it is armed for edges: see HandleSet.activate
	drained atomic.Bool // all that was there has been read since the event was taken
}

// state says where a handle is in its life.
type state uint8

const (
	inactive  state = iota // it has no handler, or waits for nothing
	active                 // its next event is reported
	reported               // it has an event that no thread has taken yet
	processed              // a thread has its event
	closed
)

// source is what a handle is of.
type source interface {
	name() string
	// arm has the handle reported once; or, if it reports true, until it is armed again, as something
	// comes to be read. It is called without the mu of the set.
	arm(interest Ready) (edges bool, err error)
	// release gives back what the source holds when the handle is closed. It is called once, and
	// without the mu of the set.
	release() error
}

// String names the handle, for example "connection 127.0.0.1:4711" or "timer 3".
func (h *Handle) String() string { return h.source.name() }

// Activate gives the handle its handler, and has events reported to it: of a descriptor, when it is
// ready for anything in the interest, which timers and wake-ups do without. It may be called again,
// to change the two; then inside the handler it has its effect when that has returned. It fails with
// ErrClosed, or an error of the system, and nothing is changed.
func (h *Handle) Activate(handler EventHandler, interest Ready) error {
	if handler == nil {
		return argument("Handle.Activate", "handler", "is nil: pass an EventHandler")
	}
	h.set.mu.Lock()
	if h.state == closed {
		h.set.mu.Unlock()
		return ErrClosed
	}
	h.handler = handler
	return h.await(interest)
}

// Await changes what the handler waits for; 0 is nothing, until the next Await. Otherwise it is
// Activate with the handler that the handle has.
func (h *Handle) Await(interest Ready) error {
	h.set.mu.Lock()
	switch {
	case h.state == closed:
		h.set.mu.Unlock()
		return ErrClosed
	case h.handler == nil:
		h.set.mu.Unlock()
		return argument("Handle.Await", "interest", "is of a handle that has no handler: call Activate")
	}
	return h.await(interest)
}

// await is called with mu held, which it releases.
func (h *Handle) await(interest Ready) error {
	h.interest = interest
	switch h.state {
	case inactive, active:
		return h.set.activate(h)
	}
	h.set.mu.Unlock() // it is when its event has been processed
	return nil
}

// Close removes the handle from its set, and closes what it is of: the connection, the listener or
// the file. No thread gets an event of it any more; the handler may still be running. A second Close
// does nothing.
func (h *Handle) Close() error {
	h.set.mu.Lock()
	if h.state == closed {
		h.set.mu.Unlock()
		return nil
	}
	h.state = closed
	h.set.forget(h)
	h.set.mu.Unlock()
	return h.source.release()
}

// Closed reports whether the handle has been closed.
func (h *Handle) Closed() bool {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.state == closed
}

// describe names a handle in errors.
func (h *Handle) describe() string {
	if h == nil {
		return ""
	}
	return fmt.Sprint(h)
}
