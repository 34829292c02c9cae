// Package actor is what the runtime needs of actors, in its own types: systems,
// references, typed futures and dispatchers. It is the only package that knows protoactor:
// an Adapter is the mailbox that protoactor sees of an object.
//
//	System ── objects, which end with it
//	   ├───── Warm: pooled goroutines for bodies that no caller's goroutine runs
//	   └───── a protoactor system, made when an object is first addressed as an actor
package actor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/internal/engine"
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

// System is the home of objects: it owns the goroutines that serve them, makes
// actors of them, and ends them. An object belongs to its system until it is
// stopped, whether the program still refers to it or not.
//
// A System that was given a protoactor system (see Actors) ends with Close or Shutdown, too,
// and not with that one's Shutdown. Protoactor's Shutdown stops no actor and notifies none:
// it only makes IsStopped report true.
// Objects and their actors go on, and so do requests. Close this system first.
type System struct {
	workers Warm
	logger  *slog.Logger
	logbook logQueue

	shared sync.Map

	mu      sync.Mutex
	members []member // in the order in which they were made; zero where one was removed
	left    int      // how many of these are nil
	full    bool     // no more come
	closed  bool

	spawning sync.Mutex
	actors   *proto.ActorSystem
	foreign  bool // actors was given to us
	props    *proto.Props
	next     Receiver // the object of the next adapter; guarded by spawning

	ready         atomic.Pointer[proto.ActorSystem] // actors, once there are any
	replies       *replyRegistry                    // of actors; not changed once these are ready
	repliesClosed bool                              // no more waiters; guarded by replies.mu
}

// Object is a shared object whatever its type: an *activeobject.Object, or one that is
// ready made.
type Object interface {
	// Name returns the name of the object.
	Name() string
	// TypeName returns the name of its type.
	TypeName() string
	// PID returns its address as an actor.
	PID() *PID
	// Explain returns what runs and what waits at the object, and why.
	Explain() mailbox.Snapshot
	// Stats returns the counts of its operations, in the order of their declaration.
	Stats() []mailbox.Stats
	// Close ends the object gently, and waits until its last body has returned.
	Close(ctx context.Context) error
	// CloseActor is Close, and waits until the name of the object is free.
	CloseActor(ctx context.Context) error
	// Stop ends the object and its actor; the channel is closed when the last
	// body has returned.
	Stop() <-chan struct{}
	// Retire begins a Close; the channel is closed when the last body has returned.
	Retire() <-chan struct{}
}

// Option adjusts a System.
type Option func(*System)

// Actors makes the objects of the system actors of an existing protoactor system,
// which goes on when the Sluice system is closed. NewSystem adds a resolver of
// addresses to it, for which protoactor has no lock; so the first Sluice system on it
// must be made before any goroutine sends to other machines. With nil the system has one of its own,
// as without the option, and shuts that down.
func Actors(actors *proto.ActorSystem) Option {
	return func(s *System) { s.actors, s.foreign = actors, actors != nil }
}

// Logger sets where the system logs; the default, also for nil, is slog.Default().
// It logs panics of code that is not its own at ERROR, with the stack, and what
// supervisors decide at WARN; both with the attributes object, operation and request. A
// worker calls the handler, which may block or call objects: see Close.
func Logger(logger *slog.Logger) Option {
	return func(s *System) {
		if s.logger = logger; logger == nil {
			s.logger = slog.Default()
		}
	}
}

// NewSystem returns a system without objects.
func NewSystem(options ...Option) *System {
	s := &System{logger: slog.Default()}
	s.workers.system = s
	for _, o := range options {
		o(s)
	}
	if s.actors != nil {
		s.Actors()
	}
	return s
}

// Workers returns the system's dispatcher of warm goroutines.
func (s *System) Workers() Dispatcher { return &s.workers }

// Actors returns the protoactor system of the objects, which is made now if it
// has not been needed before. If this system has been closed by then, it has been shut
// down, and has no actors of objects.
func (s *System) Actors() *proto.ActorSystem {
	if actors := s.ready.Load(); actors != nil {
		return actors
	}
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
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed { // Close has run, and would not shut it down later
			s.actors.Shutdown()
		}
	}
	if s.props == nil {
		s.props = s.propsOf(func() Receiver { return s.next }, nil)
		s.replies = replyRegistryOf(s.actors)
		s.ready.Store(s.actors)
	}
	return s.actors
}

// open returns the protoactor system, or ErrClosed if there is none and none is to be
// made any more. If it returns the system, replies is set.
func (s *System) open() (*proto.ActorSystem, error) {
	if actors := s.ready.Load(); actors != nil {
		return actors, nil
	}
	s.spawning.Lock()
	defer s.spawning.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	return s.protoactor(), nil
}

// Spawn makes an actor of an object. An empty name gives it one that is free. It
// fails with *NameError if the name is taken or none, and with ErrClosed; nothing is left
// behind then.
func (s *System) Spawn(name string, object Receiver) (*PID, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
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
	return spawn(actors, actors.Root, s.props, name)
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

// Tell sends a message to an actor. Whether it arrives is not reported. If the PID is nil the
// message is a dead letter.
func (s *System) Tell(to *PID, message any) {
	if to == nil {
		s.DeadLetter(nil, message)
		return
	}
	if message == nil {
		// A nil that is not in an envelope makes protoactor's own mailboxes turn on
		// the spot for ever.
		message = &proto.MessageEnvelope{}
	}
	s.Actors().Root.Send(to, message)
}

// DeadLetter says that a message to an object could not be delivered. It comes back
// also if a subscriber to the dead letters panics, which is logged.
func (s *System) DeadLetter(to *PID, message any) {
	defer func() { s.contain(recover()) }()
	if _, ok := message.(*proto.Watch); ok {
		// Protoactor would tell the watcher that the object has ended. So it sees only an
		// envelope.
		message = &proto.MessageEnvelope{Message: &proto.MessageEnvelope{Message: message}}
	}
	s.Actors().DeadLetter.SendUserMessage(to, message)
}

// contain logs the panic of a process that has been sent something, if there has been one.
func (s *System) contain(value any) {
	if value == nil {
		return
	}
	stack := string(debug.Stack())
	s.Log(func(l *slog.Logger) {
		l.Error(fmt.Sprintf("sluice: who was sent a reply panicked: %v", value), "stack", stack)
	})
}

// Stop stops an actor.
func (s *System) Stop(pid *PID) { s.Actors().Root.Stop(pid) }

// Poison stops an actor after what has been sent to it has been served.
func (s *System) Poison(pid *PID) { s.Actors().Root.Poison(pid) }

// Full reports whether the system takes no more objects, as it is being closed.
func (s *System) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

// member is an Object with the variable in which it keeps its index in System.members.
type member struct {
	Object
	index *int
}

// Join makes an object a member, or fails with ErrClosed. What it keeps at place is the system's
// until it leaves.
func (s *System) Join(m Object, place *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return ErrClosed
	}
	*place = len(s.members)
	s.members = append(s.members, member{m, place})
	return nil
}

// Leave ends the membership of an object; one that is not a member is ignored.
func (s *System) Leave(place *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := *place
	if i >= len(s.members) || s.members[i].index != place {
		return
	}
	// The others keep their order. They are compacted when more than half of the elements are
	// empty, so a removal costs two steps on average.
	s.members[i] = member{}
	if s.left++; s.left <= len(s.members)/2 {
		return
	}
	rest := s.members[:0]
	for _, m := range s.members {
		if m.index != nil {
			*m.index = len(rest)
			rest = append(rest, m)
		}
	}
	clear(s.members[len(rest):])
	s.members, s.left = rest, 0
}

// present returns the members in the order in which they were made.
func (s *System) present() []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.membersLocked()
}

func (s *System) membersLocked() []Object {
	members := make([]Object, 0, len(s.members)-s.left)
	for _, m := range s.members {
		if m.index != nil {
			members = append(members, m.Object)
		}
	}
	return members
}

// Explain returns what runs and what waits at every object of the system at
// which anything does.
func (s *System) Explain() []mailbox.Snapshot {
	var busy []mailbox.Snapshot
	for _, m := range s.present() {
		if snap := m.Explain(); len(snap.Running)+len(snap.Waiting) > 0 {
			busy = append(busy, snap)
		}
	}
	return busy
}

// Close ends the system: no objects are made any more, every request that waits
// or comes later fails with an error that matches mailbox.ErrStopped, and the
// bodies that run may finish. What was sent to actors by Request fails with ErrClosed,
// whoever has it. Close waits until the bodies have returned and the system's
// goroutines have ended, what is to be logged included, or until ctx has: then it returns the context's error,
// and what still runs goes on alone. Closing twice is fine.
//
// A body that closes its own system would wait for itself: Close fails with
// *mailbox.DeadlockError then, and nothing is done. (Without the body's context it
// cannot know, and waits for ctx.)
func (s *System) Close(ctx context.Context) error {
	if err := s.within(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.full, s.closed = true, true
	members := s.membersLocked()
	s.mu.Unlock()
	s.closeReplies()
	idle := make([]<-chan struct{}, len(members))
	for i, m := range members {
		idle[i] = m.Stop()
	}
	for _, c := range idle {
		if err := await(ctx, c); err != nil {
			s.workers.Close() // those that are idle, and the others when they are
			return err
		}
	}
	s.spawning.Lock()
	if s.actors != nil && !s.foreign && !s.actors.IsStopped() { // it may have been made meanwhile
		s.actors.Shutdown()
	}
	s.spawning.Unlock()
	return await(ctx, s.workers.Close())
}

// await waits for c, or for the end of the context. If both have come it is c that
// counts.
func await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-c:
		return nil
	default:
		return ctx.Err()
	}
}

// within returns an error if the context is that of a body of one of the objects.
func (s *System) within(ctx context.Context) error {
	body := engine.BodyOf(ctx, func(host engine.Host) bool {
		object, ok := host.(interface{ In(*System) bool })
		return ok && object.In(s)
	})
	if body == "" {
		return nil
	}
	return &mailbox.DeadlockError{Circle: []mailbox.Link{{Body: body, For: "the end of its system"}}}
}

// closeReplies fails the requests to actors that have no reply, and ends all watches. Bodies may
// wait for these, so it is called before Close waits for bodies.
func (s *System) closeReplies() {
	s.spawning.Lock()
	d := s.replies // if there is none, none is made any more, as closed is set
	s.spawning.Unlock()
	if d != nil {
		d.closeFor(s)
	}
}

// Shutdown ends the system gently: no objects are made any more, and those that there
// are end in the reverse order in which they were made, one after another. Each takes
// no more requests, serves those that wait as long as any can start, fails the rest
// with an error that matches mailbox.ErrStopped, and lets its bodies finish. So what an
// object does while it ends can still call the objects that were there before it.
// When all have ended, Shutdown is Close.
//
// If ctx ends first, what is left is stopped as by Close, and the context's error is
// returned. Close may be called at the same time, and does not wait for Shutdown. A
// body that shuts down its own system is told so, as by Close.
func (s *System) Shutdown(ctx context.Context) error {
	if err := s.within(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.full = true
	members := s.membersLocked()
	s.mu.Unlock()
	for _, m := range slices.Backward(members) {
		if err := await(ctx, m.Retire()); err != nil {
			s.Close(ctx)
			return err
		}
	}
	return s.Close(ctx)
}
