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

// Strategy decides what becomes of an actor that has failed: it is resumed,
// restarted or stopped, or the failure escalated. Those of protoactor are made by
// NewOneForOneStrategy, NewAllForOneStrategy, NewExponentialBackoffStrategy and
// NewRestartingStrategy there.
type Strategy = proto.SupervisorStrategy

// Props is how protoactor makes an actor.
type Props = proto.Props

// Restart is the message by which a supervisor restarts an actor.
type Restart = proto.Restart

// Spawner is an actor that others can be made children of: the context that a
// protoactor actor gets with each message, for as long as it handles that; or an
// object.
type Spawner interface {
	SpawnNamed(props *Props, name string) (*PID, error)
}

// Place is where an object stands among the actors: its name, and who supervises
// whom. The zero Place is that of an actor without a supervisor and any name.
type Place struct {
	Name string
	// Parent is whose child the actor is; nil if it is nobody's.
	Parent Spawner
	// Guardian supervises an actor without a parent.
	Guardian Strategy
	// Children is the strategy for the actor's children; nil is protoactor's default:
	// each is restarted for itself, and stopped if it fails more than ten times in ten
	// seconds.
	Children Strategy
}

// SpawnAt makes an actor of an object, like Spawn, in the given place. It may also
// fail with *SpawnError.
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
	// No lock is held from here on: the parent may be another object, which is in the
	// middle of something.
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
	log := s.note // one for all
	return proto.PropsFromFunc(func(proto.Context) {},
		proto.WithMailbox(func() proto.Mailbox { return (*inbox)(newAdapter(object(), &s.workers, log)) }),
		proto.WithSpawnMiddleware(spawning),
		proto.WithSupervisor(supervisor{children, s}))
}

// lives returns an error if parent is the context of an actor that has ended, or
// belongs to another system. An object knows that itself.
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

// CanGuard reports whether the strategy can be a Place's Guardian: protoactor keeps
// one guardian for each strategy, and so has to be able to compare it.
func CanGuard(s Strategy) bool { return s != nil && reflect.ValueOf(s).Comparable() }

// guardian is a strategy for an actor without a parent. Protoactor's guardian panics
// when it is asked for what it has not: this one has one child, and nobody above it,
// so that a failure that is escalated ends the actor.
type guardian struct{ strategy Strategy }

// HandleFailure implements protoactor's SupervisorStrategy. The child is asking for it
// in this very call, and so has not ended; if there is no such child, the message
// has been made up.
func (g guardian) HandleFailure(actors *proto.ActorSystem, s proto.Supervisor, child *PID, stats *proto.RestartStatistics, reason, message any) {
	adapter := adapterOf(actors, child)
	if adapter == nil {
		return
	}
	adapter.withoutContext(func() {
		g.strategy.HandleFailure(actors, guarded{s, child}, child, stats, reason, message)
	})
}

// guarded is a guardian as the strategy sees it.
type guarded struct {
	proto.Supervisor
	child *PID
}

// Children implements protoactor's Supervisor.
func (g guarded) Children() []*PID { return []*PID{g.child} }

// EscalateFailure implements protoactor's Supervisor.
func (g guarded) EscalateFailure(_, _ any) { g.StopChildren(g.child) }

// supervisor is the strategy for the children of an object. It tells the object's adapter
// of those whose failures it passes on.
type supervisor struct {
	strategy Strategy
	system   *System
}

// HandleFailure implements protoactor's SupervisorStrategy. A child about which the
// strategy fails to decide, as it panics or calls runtime.Goexit, is stopped: else
// nobody would ever decide, or the panic end the process, as this is a worker.
func (p supervisor) HandleFailure(actors *proto.ActorSystem, s proto.Supervisor, child *PID, stats *proto.RestartStatistics, reason, message any) {
	returned := false
	defer func() {
		if !returned {
			p.undecided(child, engine.Panicked(recover()))
			s.StopChildren(child)
		}
	}()
	adapter := adapterOf(actors, s.(proto.SpawnerContext).Self())
	if adapter == nil { // the actor has ended, and only now hears of a child that it was to have no more
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

// escalating is a supervisor as its strategy sees it.
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
func (s *System) Objects() iter.Seq[Member] {
	members := s.present()
	return func(yield func(Member) bool) {
		for _, m := range members {
			if !yield(m) {
				return
			}
		}
	}
}
