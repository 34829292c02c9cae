package actor

import (
	"context"

	proto "github.com/asynkron/protoactor-go/actor"
)

// Watch returns a channel that is closed when the actor has ended. Use it to take something back
// that is held for an actor, when that has ended.
//
// The channel of an object is closed after its last body has returned. It is closed at once if
// there is no actor at the address, or the PID is nil. It is also closed when the system closes,
// since no news can come after that.
//
// stop ends the watch and releases its memory. If the channel is not closed by then, it never is.
// stop may be called several times.
func (s *System) Watch(pid *PID) (ended <-chan struct{}, stop func()) {
	c := make(chan struct{})
	unregister := s.watch(pid, func() { close(c) })
	return c, func() { unregister() }
}

// AwaitEnd waits until the actor has ended, as a Watch of it tells. If ctx ends first, it returns
// the context's error.
func (s *System) AwaitEnd(ctx context.Context, pid *PID) error {
	ended, stop := s.Watch(pid)
	defer stop()
	return await(ctx, ended)
}

// AfterEnd has f called, on a goroutine of its own, when the channel of a Watch of the actor would
// be closed. It relates to Watch as context.AfterFunc does to a context's Done: no goroutine has
// to wait for a channel. stop prevents the call, and reports whether it was in time; it does not
// wait for f.
func (s *System) AfterEnd(pid *PID, f func()) (stop func() bool) {
	return s.watch(pid, func() { go f() })
}

// watch has ended called when the actor has ended, or when no news of that can come any more.
// ended must not block. stop reports whether it has prevented the call.
func (s *System) watch(pid *PID, ended func()) (stop func() bool) {
	if _, err := s.open(); err != nil || pid == nil {
		ended()
		return func() bool { return false }
	}
	w := &watcher{system: s, actor: pid, ended: ended}
	if err := s.replies.register(w); err != nil {
		ended()
		return func() bool { return false }
	}
	// An actor keeps its watchers by address, so each watch has an address of its own.
	w.send(&proto.Watch{Watcher: w.self})
	if s.replies.closedFor(s) { // its Unwatch may have been sent before the Watch
		w.send(&proto.Unwatch{Watcher: w.self})
	}
	return func() bool {
		if !s.replies.remove(w.id) { // ended has been called, or will be; or stop has been called before
			return false
		}
		w.send(&proto.Unwatch{Watcher: w.self})
		return true
	}
}

// watcher is the waiter for the end of an actor.
type watcher struct {
	system *System
	actor  *PID
	id     waiterID
	self   *PID // the address of the waiter
	ended  func()
}

// send sends a system message to the actor, which may be ending. If the actor is not in the
// process registry any more, protoactor answers in its place. If it is just being removed from
// there, it still handles the messages that were sent to it.
func (w *watcher) send(message any) {
	process, _ := w.system.replies.actors.ProcessRegistry.Get(w.actor)
	process.SendSystemMessage(w.actor, message)
}

// deliver implements waiter.
func (w *watcher) deliver(any) { w.ended() }

// cancel implements waiter.
func (w *watcher) cancel() {
	w.send(&proto.Unwatch{Watcher: w.self}) // the actor may go on, in an actor system that was given to Actors
	w.ended()
}

// assign implements waiter.
func (w *watcher) assign(p waiterID) { w.id, w.self = p, proto.NewPID(replyAddress, p.id()) }

// owner implements waiter.
func (w *watcher) owner() *System { return w.system }
