package actor

import (
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"
)

// IsLocal reports whether a Stop, PoisonPill, Watch or Unwatch comes from this process. What
// protoactor's remote hands in has been decoded from a wire. It runs no code of a user and
// waits for nothing.
//
//   - Protoactor has one Stop and one PoisonPill with which a process stops and poisons
//     actors, for all that ask for that: a context, a supervisor, an actor for its children, or an
//     object. Any other has been decoded, or made up by hand.
//   - A Watch is local if its watcher is an actor that is registered here, or a watch of a
//     System. Whatever has sent it, the news goes to no other machine.
//   - An Unwatch is local if the watcher could be, as that may have ended by now.
func (s *System) IsLocal(message any) bool {
	switch m := message.(type) {
	case *proto.Stop:
		return m == lifecycle().stop
	case *proto.PoisonPill:
		return m == lifecycle().poison
	case *proto.Watch:
		watcher := m.GetWatcher()
		return watcher != nil && s.isHere(watcher) && !s.Gone(watcher)
	case *proto.Unwatch:
		return m.GetWatcher() != nil && s.isHere(m.Watcher)
	}
	return true
}

// isHere reports whether the address is one of this process.
func (s *System) isHere(pid *PID) bool {
	const local = "nonhost" // protoactor's address of what no other machine can reach
	actors := s.ready.Load()
	return IsRequest(pid) || pid.Address == local || actors != nil && pid.Address == actors.ProcessRegistry.Address
}

// lifecycle returns the messages by which protoactor stops and poisons actors. They are not
// exported, so an actor that is none is stopped and poisoned to see them.
var lifecycle = sync.OnceValue(func() *lifecycleMessages {
	s := &lifecycleMessages{}
	process := proto.NewActorProcess(s)
	here := func(*PID) (proto.Process, bool) { return process, true }
	root := proto.NewRootContext(&proto.ActorSystem{
		ProcessRegistry: &proto.ProcessRegistryValue{RemoteHandlers: []proto.AddressResolver{here}},
	}, nil)
	pid := proto.NewPID(replyAddress, "")
	root.Poison(pid)
	root.Stop(pid)
	return s
})

// seen is a mailbox that keeps the messages that end an actor.
type lifecycleMessages struct {
	stop   *proto.Stop
	poison *proto.PoisonPill
}

var _ proto.Mailbox = (*lifecycleMessages)(nil)

// PostUserMessage implements protoactor's Mailbox.
func (s *lifecycleMessages) PostUserMessage(message any) { s.poison, _ = message.(*proto.PoisonPill) }

// PostSystemMessage implements protoactor's Mailbox.
func (s *lifecycleMessages) PostSystemMessage(message any) { s.stop, _ = message.(*proto.Stop) }

// RegisterHandlers implements protoactor's Mailbox.
func (s *lifecycleMessages) RegisterHandlers(proto.MessageInvoker, proto.Dispatcher) {}

// Start implements protoactor's Mailbox.
func (s *lifecycleMessages) Start() {}

// UserMessageCount implements protoactor's Mailbox.
func (s *lifecycleMessages) UserMessageCount() int { return 0 }
