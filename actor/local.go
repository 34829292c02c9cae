package actor

import (
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"
)

// IsLocal reports whether a Stop, PoisonPill, Watch or Unwatch comes from this process, rather than
// from protoactor's remote. It runs no code of a user and waits for nothing.
//
//   - Within a process protoactor always sends the same Stop and the same PoisonPill value, for
//     a context, a supervisor, an actor's children or an object alike. Any other value has been
//     decoded from a wire, or made by hand.
//   - A Watch is local if its watcher is an actor that is registered in this process, or a watch
//     of a System. Even if another machine has sent it, the news then goes to no other machine.
//   - An Unwatch is local if its watcher has an address of this process; the watcher itself may
//     have ended by now.
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

// isHere reports whether the PID is an address of this process.
func (s *System) isHere(pid *PID) bool {
	const local = "nonhost" // protoactor's Address for a process that no other machine can reach
	actors := s.ready.Load()
	return IsRequest(pid) || pid.Address == local || actors != nil && pid.Address == actors.ProcessRegistry.Address
}

// lifecycle returns the messages by which protoactor stops and poisons actors. Protoactor does not
// export them, so a fake actor is stopped and poisoned to get them.
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

// lifecycleMessages is a mailbox that keeps the messages that end an actor.
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
