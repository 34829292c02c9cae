package actor

import (
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"runtime/debug"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Strategy decides what happens to an actor that has failed: it is resumed, restarted or stopped,
// or the failure is escalated. Protoactor makes strategies by NewOneForOneStrategy,
// NewAllForOneStrategy, NewExponentialBackoffStrategy and NewRestartingStrategy.
type Strategy = proto.SupervisorStrategy

// Props is how protoactor makes an actor.
type Props = proto.Props

// Restart is the message by which a supervisor restarts an actor.
type Restart = proto.Restart

// Spawner is an actor that can have children: an object, or the context that a protoactor actor
// gets with each message, for as long as the actor handles that message.
type Spawner interface {
	SpawnNamed(props *Props, name string) (*PID, error)
}

// Place says where an actor stands in the tree of supervision, and its name. The zero Place is
// that of an actor with an automatic name and no supervisor.
type Place struct {
	Name string
	// Parent is the actor's parent; nil if it has none.
	Parent Spawner
	// Guardian supervises an actor without a parent.
	Guardian Strategy
	// Children is the strategy for the actor's children. nil is protoactor's default: a child
	// that fails is restarted alone, and stopped if it fails more than ten times in ten seconds.
	Children Strategy
}

// SpawnAt makes an actor of an object, like Spawn, at the given Place. It may also fail with
// *SpawnError.
func (s *System) SpawnAt(at Place, object Receiver) (*PID, error) {
	if err := CheckName(at.Name); err != nil {
		return nil, err
	}
	if at.Parent == nil && at.Guardian == nil && at.Children == nil {
		return s.Spawn(at.Name, object)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	// No lock is held from here on: the parent may be another object, whose SpawnNamed takes
	// locks of its own.
	actors := s.Actors()
	props := s.propsOf(func() Receiver { return object }, at.Children)
	var parent Spawner = actors.Root
	switch {
	case at.Parent != nil:
		if err := checkAlive(at.Parent, actors); err != nil {
			return nil, err
		}
		parent = at.Parent
	case at.Guardian != nil:
		parent = actors.Root.Copy().WithGuardian(guardian{at.Guardian})
	}
	return spawn(actors, parent, props, at.Name)
}

// propsOf returns how the actor of an object is made, with the strategy for its children.
func (s *System) propsOf(object func() Receiver, children Strategy) *Props {
	if children == nil {
		children = proto.DefaultSupervisorStrategy()
	}
	log := s.note // one function value for all actors
	return proto.PropsFromFunc(func(proto.Context) {},
		proto.WithMailbox(func() proto.Mailbox { return (*inbox)(newAdapter(object(), &s.workers, log)) }),
		proto.WithSpawnMiddleware(spawning),
		proto.WithSupervisor(supervisor{children, s}))
}

// checkAlive returns an error if parent is the context of an actor that has ended, or of one that
// belongs to another system. It accepts an object, which checks that itself.
func checkAlive(parent Spawner, actors *proto.ActorSystem) error {
	c, ok := parent.(proto.SpawnerContext)
	if !ok || c.Self() == nil {
		return nil
	}
	cause := error(nil)
	if c.ActorSystem() != actors {
		cause = ErrElsewhere
	} else if _, ok := actors.ProcessRegistry.GetLocal(c.Self().Id); !ok {
		cause = &mailbox.StoppedError{Object: c.Self().Id}
	}
	if cause != nil {
		return &SpawnError{Parent: c.Self().Id, Cause: cause}
	}
	return nil
}

// CanGuard reports whether the strategy can be a Place's Guardian. Protoactor keeps one guardian
// for each strategy, so the strategy must be comparable.
func CanGuard(s Strategy) bool { return s != nil && reflect.ValueOf(s).Comparable() }

// guardian is a strategy for an actor without a parent. Protoactor's guardian panics if a strategy
// asks for its children, or escalates a failure. Under this one the strategy sees one child, the
// actor; and a failure that is escalated stops it, as there is no supervisor above.
type guardian struct{ strategy Strategy }

// HandleFailure implements protoactor's SupervisorStrategy. The child makes this call itself, on
// its turn, and so has not ended. If there is no such child, the message that led here was forged,
// and nothing is done.
func (g guardian) HandleFailure(actors *proto.ActorSystem, s proto.Supervisor, child *PID, stats *proto.RestartStatistics, reason, message any) {
	adapter := adapterOf(actors, child)
	if adapter == nil {
		return
	}
	adapter.withoutContext(func() {
		g.strategy.HandleFailure(actors, guarded{s, child}, child, stats, reason, message)
	})
}

// guarded is the Supervisor that the strategy of a guardian sees.
type guarded struct {
	proto.Supervisor
	child *PID
}

// Children implements protoactor's Supervisor.
func (g guarded) Children() []*PID { return []*PID{g.child} }

// EscalateFailure implements protoactor's Supervisor.
func (g guarded) EscalateFailure(_, _ any) { g.StopChildren(g.child) }

// supervisor is the strategy for the children of an object. When it escalates the failure of a
// child, it goes through the object's adapter: see escalateChild.
type supervisor struct {
	strategy Strategy
	system   *System
}

// HandleFailure implements protoactor's SupervisorStrategy. If the strategy panics or calls
// runtime.Goexit instead of deciding, the child is stopped: else no decision would ever come, or
// the panic would end the process, as this is a worker's goroutine.
func (p supervisor) HandleFailure(actors *proto.ActorSystem, s proto.Supervisor, child *PID, stats *proto.RestartStatistics, reason, message any) {
	returned := false
	defer func() {
		if !returned {
			p.undecided(child, engine.Panicked(recover()))
			s.StopChildren(child)
		}
	}()
	adapter := adapterOf(actors, s.(proto.SpawnerContext).Self())
	if adapter == nil { // the actor has ended, and the failure of its child has come only now
		s.StopChildren(child)
		returned = true
		return
	}
	adapter.withoutContext(func() {
		p.strategy.HandleFailure(actors, escalating{s, adapter, child}, child, stats, reason, message)
	})
	returned = true
}

// undecided logs that the strategy has failed.
func (p supervisor) undecided(child *PID, value any) {
	if value == nil {
		value = "it ended its goroutine (runtime.Goexit)"
	}
	stack := string(debug.Stack())
	p.system.Log(func(l *slog.Logger) {
		l.Error(fmt.Sprintf("sluice: %s is stopped, as its supervisor failed to decide: %v", child.Id, value),
			"object", child.Id, "stack", stack)
	})
}

// escalating is the Supervisor that the strategy of an object sees.
type escalating struct {
	proto.Supervisor
	adapter *Adapter
	child   *PID
}

// EscalateFailure implements protoactor's Supervisor.
func (e escalating) EscalateFailure(reason, message any) {
	e.adapter.escalateChild(e.child, reason, message)
}

// Children implements protoactor's Supervisor.
func (e escalating) Children() []*PID { return e.adapter.childPIDs() }

// Objects yields the objects of the system that had not ended when it was called, in
// the order in which they were made.
func (s *System) Objects() iter.Seq[Object] {
	members := s.present()
	return func(yield func(Object) bool) {
		for _, m := range members {
			if !yield(m) {
				return
			}
		}
	}
}
