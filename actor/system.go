// Package actor is what the runtime needs of actors, in its own types: systems,
// references, typed futures and dispatchers. It is the only package besides the
// mailbox's plug that knows protoactor.
//
//	System ── objects, which end with it
//	   ├───── Warm: goroutines for bodies that have none of their own
//	   └───── a protoactor system, made when an object is first addressed as an actor
package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/mailbox"
)

// PID addresses an object as a protoactor actor.
type PID = proto.PID

// Invoke is the message that asks an object to run an operation, by its name.
// If the message has a sender, the object answers it with a *Reply.
type Invoke struct {
	Operation string
	// Argument is the operation's argument; nil if it takes none.
	Argument any
}

// Reply is an object's answer to an Invoke.
type Reply struct {
	Value any // the result; nil if Err is not
	Err   error
}

// ErrClosed is returned for objects of a system that has been closed.
var ErrClosed = errors.New("sluice: system is closed")

// NameError says that an object could not be given the name it asked for.
type NameError struct {
	Name  string
	Cause error
}

// Error implements error.
func (e *NameError) Error() string { return fmt.Sprintf("sluice: name %q: %v", e.Name, e.Cause) }

// Unwrap returns the cause.
func (e *NameError) Unwrap() error { return e.Cause }

// System is the home of objects: it owns the goroutines that serve them, makes
// actors of them, and ends them. An object belongs to its system until it is
// stopped, whether anybody refers to it or not.
type System struct {
	workers Warm
	logger  *slog.Logger

	shared sync.Map

	mu      sync.Mutex
	members []Member
	closed  bool

	spawning sync.Mutex
	actors   *proto.ActorSystem
	foreign  bool // actors was given to us
	props    *proto.Props
	next     mailbox.Receiver // whom the next plug is for; guarded by spawning
}

// Member is an object as its system sees it.
type Member interface {
	// Seat gives the place of the member in the system's list.
	Seat() *int
	// Stop ends the object and its actor; the channel is closed when the last
	// body has returned.
	Stop() <-chan struct{}
	// Explain returns what runs and what waits at the object.
	Explain() mailbox.Snapshot
}

// Option adjusts a System.
type Option func(*System)

// On makes the objects of the system actors of an existing protoactor system,
// which goes on when the Sluice system is closed.
func On(actors *proto.ActorSystem) Option {
	return func(s *System) { s.actors, s.foreign = actors, true }
}

// WithLogger sets where the system logs; the default is slog.Default().
func WithLogger(logger *slog.Logger) Option {
	return func(s *System) { s.logger = logger }
}

// NewSystem returns a system without objects.
func NewSystem(options ...Option) *System {
	s := &System{logger: slog.Default()}
	for _, o := range options {
		o(s)
	}
	return s
}

// Workers returns the system's dispatcher of warm goroutines.
func (s *System) Workers() Dispatcher { return &s.workers }

// Actors returns the protoactor system of the objects, which is made now if it
// has not been needed before.
func (s *System) Actors() *proto.ActorSystem {
	s.spawning.Lock()
	defer s.spawning.Unlock()
	return s.protoactor()
}

func (s *System) protoactor() *proto.ActorSystem {
	if s.actors == nil {
		logger := s.logger
		s.actors = proto.NewActorSystem(
			proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return logger }),
			proto.WithDeadLetterRequestLogging(false),
		)
	}
	if s.props == nil {
		s.props = proto.PropsFromFunc(func(proto.Context) {},
			proto.WithMailbox(func() proto.Mailbox { return mailbox.NewPlug(s.next, &s.workers) }))
	}
	return s.actors
}

// Spawn makes an actor of an object. An empty name gives it one that is free. It
// fails with *NameError if the name is taken, and with ErrClosed; nothing is left
// behind then.
func (s *System) Spawn(name string, object mailbox.Receiver) (*PID, error) {
	s.spawning.Lock()
	defer s.spawning.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	actors := s.protoactor()
	s.next = object
	defer func() { s.next = nil }()
	if name == "" {
		return actors.Root.Spawn(s.props), nil
	}
	pid, err := actors.Root.SpawnNamed(s.props, name)
	if err != nil {
		return nil, &NameError{Name: name, Cause: err}
	}
	return pid, nil
}

// Shared returns what the system keeps under the key, which make makes if there is
// nothing yet. It serves what the objects of one type have in common.
func (s *System) Shared(key any, make func() any) any {
	if v, ok := s.shared.Load(key); ok {
		return v
	}
	v, _ := s.shared.LoadOrStore(key, make())
	return v
}

// Logger returns where the system logs.
func (s *System) Logger() *slog.Logger { return s.logger }

// Tell sends a message to an actor.
func (s *System) Tell(to *PID, message any) { s.Actors().Root.Send(to, message) }

// DeadLetter says that a message to an object could not be delivered.
func (s *System) DeadLetter(to *PID, message any) {
	s.Actors().DeadLetter.SendUserMessage(to, message)
}

// Stop stops an actor.
func (s *System) Stop(pid *PID) { s.Actors().Root.Stop(pid) }

// Join makes an object a member, or fails with ErrClosed.
func (s *System) Join(m Member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	*m.Seat() = len(s.members)
	s.members = append(s.members, m)
	return nil
}

// Leave ends the membership of an object; one that is not a member is ignored.
func (s *System) Leave(m Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, last := *m.Seat(), len(s.members)-1
	if i > last || s.members[i] != m {
		return
	}
	s.members[i] = s.members[last]
	*s.members[i].Seat() = i
	s.members[last] = nil
	s.members = s.members[:last]
}

// Explain returns what runs and what waits at every object of the system at
// which anything does.
func (s *System) Explain() []mailbox.Snapshot {
	s.mu.Lock()
	members := append([]Member(nil), s.members...)
	s.mu.Unlock()
	var busy []mailbox.Snapshot
	for _, m := range members {
		if snap := m.Explain(); len(snap.Running)+len(snap.Waiting) > 0 {
			busy = append(busy, snap)
		}
	}
	return busy
}

// Close ends the system: no objects are made any more, every request that waits
// or comes later fails with an error that matches mailbox.ErrStopped, and the
// bodies that run may finish. It waits until they have and the system's
// goroutines have ended, or until ctx has: then it returns the context's error,
// and what still runs goes on alone. Closing twice is fine.
func (s *System) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	members := append([]Member(nil), s.members...)
	s.mu.Unlock()
	idle := make([]<-chan struct{}, len(members))
	for i, m := range members {
		idle[i] = m.Stop()
	}
	for _, c := range idle {
		select {
		case <-c:
		case <-ctx.Done():
			s.workers.Close() // those that are idle, and the others when they are
			return ctx.Err()
		}
	}
	s.spawning.Lock()
	if s.actors != nil && !s.foreign && !s.actors.IsStopped() {
		s.actors.Shutdown()
	}
	s.spawning.Unlock()
	select {
	case <-s.workers.Close():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
