package actor

import proto "github.com/asynkron/protoactor-go/actor"

// Watch returns a channel that is closed when the actor has ended: at once if there
// is none at the address, and of an object after its last body has returned. It is
// closed as well when the system is, which cannot tell any more. A nil PID is
// nobody's, so that the channel is closed already.
//
// Whoever is not interested any more calls stop; then nothing is left of the watch.
// The channel may have been closed, else it never is. Stop may be called several
// times.
//
// It serves what holds something for others, and takes it back when they are gone.
func (s *System) Watch(pid *PID) (ended <-chan struct{}, stop func()) {
	c := make(chan struct{})
	leave := s.watch(pid, func() { close(c) })
	return c, func() { leave() }
}

// AfterEnd has f called, on a goroutine of its own, when the channel of a Watch of the
// actor would be closed. Stop prevents that, and reports whether it was in time; it does
// not wait for f. (It is to Watch what context.AfterFunc is to a context's Done: nothing
// has to wait for a channel.)
func (s *System) AfterEnd(pid *PID, f func()) (stop func() bool) {
	return s.watch(pid, func() { go f() })
}

// watch has ended called, which must not block, when the actor has ended or nobody
// could tell any more. Stop reports whether it prevents that.
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
	// The actor's context keeps its watchers by address, so each watch has its own.
	w.send(&proto.Watch{Watcher: w.self})
	if s.replies.closedFor(s) { // perhaps before the actor has heard of the watch
		w.send(&proto.Unwatch{Watcher: w.self})
	}
	return func() bool {
		if !s.replies.remove(w.id) { // the actor has ended, and knows nobody any more
			return false
		}
		w.send(&proto.Unwatch{Watcher: w.self})
		return true
	}
}

// watcher is the guest at a desk who waits for the end of an actor.
type watcher struct {
	system *System
	actor  *PID
	id     waiterID
	self   *PID // the address of the place
	ended  func()
}

// send sends a system message to the actor, wherever its end has come: one that is
// not in the registry any more is answered for by protoactor, and one that is just
// leaving it still handles what has been sent to it.
func (w *watcher) send(message any) {
	process, _ := w.system.replies.actors.ProcessRegistry.Get(w.actor)
	process.SendSystemMessage(w.actor, message)
}

// hear implements guest.
func (w *watcher) deliver(any) { w.ended() }

// dismiss implements guest.
func (w *watcher) cancel() {
	w.send(&proto.Unwatch{Watcher: w.self}) // the actor may go on, in a system that is not ours
	w.ended()
}

// sit implements guest.
func (w *watcher) assign(p waiterID) { w.id, w.self = p, proto.NewPID(replyAddress, p.id()) }

// host implements guest.
func (w *watcher) owner() *System { return w.system }
