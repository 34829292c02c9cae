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
	if _, err := s.open(); err != nil || pid == nil {
		return closed, func() {}
	}
	w := &watcher{system: s, actor: pid, ended: make(chan struct{})}
	if err := s.desk.seat(w); err != nil {
		return closed, func() {}
	}
	// The actor's context keeps its watchers by address, so each watch has its own.
	w.send(&proto.Watch{Watcher: w.self})
	if s.desk.hushed(s) { // perhaps before the actor has heard of the watch
		w.send(&proto.Unwatch{Watcher: w.self})
	}
	return w.ended, func() {
		if s.desk.leave(w.place) { // or the actor has ended, and knows nobody any more
			w.send(&proto.Unwatch{Watcher: w.self})
		}
	}
}

// watcher is the guest at a desk who waits for the end of an actor.
type watcher struct {
	system *System
	actor  *PID
	place  place
	self   *PID // the address of the place
	ended  chan struct{}
}

// send sends a system message to the actor, wherever its end has come: one that is
// not in the registry any more is answered for by protoactor, and one that is just
// leaving it still handles what has been sent to it.
func (w *watcher) send(message any) {
	process, _ := w.system.desk.actors.ProcessRegistry.Get(w.actor)
	process.SendSystemMessage(w.actor, message)
}

// hear implements guest.
func (w *watcher) hear(any) { close(w.ended) }

// dismiss implements guest.
func (w *watcher) dismiss() {
	w.send(&proto.Unwatch{Watcher: w.self}) // the actor may go on, in a system that is not ours
	close(w.ended)
}

// sit implements guest.
func (w *watcher) sit(p place) { w.place, w.self = p, proto.NewPID(replyAddress, p.id()) }

// host implements guest.
func (w *watcher) host() *System { return w.system }
