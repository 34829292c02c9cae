package actor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
)

// A lock is a shared object with a guard, whose bodies last until they are released.
type lock struct{ open bool }

var (
	locks = activeobject.NewType[lock]("lock")
	set   = activeobject.Procedure(locks, "set", func(l *lock, open bool) (bool, error) {
		l.open = open
		return open, nil
	})
	_ = activeobject.Entry(locks, "pass", func(l *lock, n int) (int, error) { return n, nil }).
		When("open", func(l *lock) bool { return l.open })
	_ = activeobject.ProcedureCtx(locks, "hold", func(_ *lock, _ context.Context, h holding) (activeobject.None, error) {
		close(h.entered)
		<-h.let
		return nil, nil
	})
)

// holding is the argument of hold.
type holding struct{ entered, let chan struct{} }

// elsewhere is a process of another machine, as protoactor's remote stands for it. That of a
// connection that is being closed panics.
type elsewhere struct{ broken bool }

func (e elsewhere) SendUserMessage(*actor.PID, any) { e.SendSystemMessage(nil, nil) }
func (e elsewhere) Stop(*actor.PID)                 { e.SendSystemMessage(nil, nil) }
func (e elsewhere) SendSystemMessage(*actor.PID, any) {
	if e.broken {
		panic("the connection is closed")
	}
}

// network is a protoactor system for all inputs: to make one takes milliseconds.
var network = sync.OnceValue(func() *proto.ActorSystem {
	actors := newForeignUnclosed()
	actors.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (proto.Process, bool) {
		return elsewhere{pid.Address == "panics"}, pid.Address != "$sluice"
	})
	return actors
})

// wire stands for protoactor's remote: it hands in what a peer sends, as the remote's reader
// does, on its own goroutine, which has no recover.
type wire struct {
	pid     *actor.PID
	process proto.Process // also when it is not registered any more
}

func wireTo(pid *actor.PID) wire {
	process, _ := network().ProcessRegistry.Get(pid)
	return wire{pid, process}
}

func (w wire) deliver(message any, sender *actor.PID) {
	switch message.(type) {
	case proto.SystemMessage, proto.MailboxMessage:
		w.process.SendSystemMessage(w.pid, message)
	default:
		if sender == nil {
			w.process.SendUserMessage(w.pid, message)
			return
		}
		w.process.SendUserMessage(w.pid, &proto.MessageEnvelope{Message: message, Sender: sender, Header: map[string]string{"k": "v"}})
	}
}

// source is what a fuzzer has found, byte by byte; zeros follow.
type source []byte

func (s *source) next() (b byte) {
	if len(*s) > 0 {
		b, *s = (*s)[0], (*s)[1:]
	}
	return b
}

func (s *source) string() string {
	return []string{"", "$1", "pass", "x/y", "a\x00b", "\xff", "deadletter", "guardian$1"}[s.next()%8]
}

// vocabulary is every message that protoactor knows: all protobuf messages that the program
// contains, by their names, and those that only this process can send.
var vocabulary = sync.OnceValue(func() (all []func(s *source, pids []*actor.PID) any) {
	var types []protoreflect.MessageType
	protoregistry.GlobalTypes.RangeMessages(func(t protoreflect.MessageType) bool {
		types = append(types, t)
		return true
	})
	slices.SortFunc(types, func(a, b protoreflect.MessageType) int {
		return strings.Compare(string(a.Descriptor().FullName()), string(b.Descriptor().FullName()))
	})
	for _, t := range types {
		all = append(all, func(s *source, pids []*actor.PID) any {
			m := t.New()
			fill(m, s, pids, 2)
			return m.Interface()
		})
	}
	local := func(message func(s *source, pid func() *actor.PID) any) {
		all = append(all, func(s *source, pids []*actor.PID) any {
			return message(s, func() *actor.PID { return pids[int(s.next())%len(pids)] })
		})
	}
	for _, m := range []any{
		nil, "text", &proto.Started{}, &proto.Restart{}, &proto.Restarting{}, &proto.Stopping{}, &proto.Stopped{}, &proto.SuspendMailbox{},
		&proto.ResumeMailbox{}, &proto.ReceiveTimeout{}, &actor.Reply{}, &actor.Invoke{}, (*proto.Watch)(nil), (*proto.Unwatch)(nil),
		(*proto.Terminated)(nil), (*proto.Failure)(nil), (*proto.Restart)(nil), (*proto.MessageEnvelope)(nil), (*actor.Invoke)(nil),
	} {
		local(func(*source, func() *actor.PID) any { return m })
	}
	local(func(s *source, pid func() *actor.PID) any {
		m := &proto.Failure{Who: pid(), Reason: s.string(), Message: s.string()}
		if s.next()%2 == 1 {
			m.RestartStats = proto.NewRestartStatistics()
		}
		return m
	})
	local(func(s *source, _ func() *actor.PID) any {
		return &actor.Invoke{Operation: []string{"set", "pass", "hold", "?"}[s.next()%4], Argument: []any{nil, true, 1, "x"}[s.next()%4]}
	})
	// A system message that comes as a user message.
	local(func(_ *source, pid func() *actor.PID) any {
		return &proto.MessageEnvelope{Message: &proto.Watch{Watcher: pid()}, Sender: pid()}
	})
	return all
})

// fill sets some of the fields of a protobuf message.
func fill(m protoreflect.Message, s *source, pids []*actor.PID, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if b := s.next(); b%2 == 0 || f.IsList() || f.IsMap() {
			continue
		}
		switch f.Kind() {
		case protoreflect.MessageKind:
			switch {
			case f.Message().FullName() == "actor.PID":
				if pid := pids[int(s.next())%len(pids)]; pid != nil {
					m.Set(f, protoreflect.ValueOfMessage(pid.ProtoReflect()))
				}
			case depth > 0:
				fill(m.Mutable(f).Message(), s, pids, depth-1)
			}
		case protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(s.string()))
		case protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(uint32(s.next())))
		case protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(s.next())))
		}
	}
}

// Phases of the life of the object in the middle.
const (
	idle = iota
	waiting
	running
	suspended
	stopping
	stopped
	phases
)

// family is objects that supervise each other, each of which has a request that waits, and an
// object with workers.
type family struct {
	t       *testing.T
	s       *actor.System
	objects []*activeobject.Object[lock]
	wires   []wire
	pids    []*actor.PID
	pending []actor.Future[any]
	ends    []<-chan struct{}
	let     chan struct{}
}

func newFamily(t *testing.T, phase byte) *family {
	f := &family{t: t, s: actor.NewSystem(actor.Actors(network()), actor.Logger(quiet)), let: make(chan struct{})}
	add := func(options ...activeobject.Option) *activeobject.Object[lock] {
		o, err := activeobject.NewFrom(f.s, locks, func() (*lock, error) { return &lock{}, nil }, options...)
		require.NoError(t, err)
		f.objects = append(f.objects, o)
		f.wires, f.pids = append(f.wires, wireTo(o.PID())), append(f.pids, o.PID())
		ended, _ := f.s.Watch(o.PID())
		f.ends = append(f.ends, ended)
		return o
	}
	top := add(activeobject.Supervisor(proto.NewRestartingStrategy()))
	middle := add(activeobject.Parent(top))
	add(activeobject.Parent(middle))
	child, err := middle.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "plain")
	require.NoError(t, err)

	// The workers of an object are actors, too.
	crewed, err := synchronizer.New(f.s, locks, &lock{}, synchronizer.Actors(1))
	require.NoError(t, err)
	_, err = set.Call(background, crewed, false)
	require.NoError(t, err)
	f.objects = append(f.objects, crewed)
	worker := proto.NewPID(crewed.PID().Address, crewed.PID().Id+"/worker-1")
	f.wires = append(f.wires, wireTo(crewed.PID()), wireTo(worker))
	f.pids = append(f.pids, crewed.PID())

	// So is the address of a reply.
	deaf, senders := asks(t, f.s)
	f.pending = append(f.pending, f.s.Request(background, deaf, "?"))
	reply := soon(t, senders)
	f.wires = append(f.wires, wireTo(reply))

	guardian := network().Root.Copy().WithGuardian(proto.DefaultSupervisorStrategy()).Self()
	f.pids = append(f.pids, nil, &actor.PID{}, child, worker, reply, guardian, proto.NewFuture(network(), -1).PID(),
		proto.NewPID("panics", "x"), proto.NewPID("far:1", middle.PID().Id), network().NewLocalPID("nobody"), proto.NewPID("$sluice", "1.1"),
		network().NewLocalPID("deadletter"), network().NewLocalPID("eventstream"))

	if phase != idle {
		for _, o := range f.objects {
			f.pending = append(f.pending, f.s.Request(background, o.PID(), &actor.Invoke{Operation: "pass", Argument: 1}))
		}
	}
	if phase == running || phase == stopping {
		h := holding{entered: make(chan struct{}), let: f.let}
		f.pending = append(f.pending, f.s.Request(background, middle.PID(), &actor.Invoke{Operation: "hold", Argument: h}))
		soon(t, h.entered)
	}
	switch phase {
	case suspended:
		f.wires[1].deliver(&proto.SuspendMailbox{}, nil)
	case stopping:
		f.s.Stop(middle.PID())
	case stopped:
		middle.Stop()
		soon(t, f.ends[1])
	}
	return f
}

// survives requires that every object still serves requests, or has been stopped; and that
// everything ends.
func (f *family) survives() {
	f.t.Helper()
	close(f.let)
	for i, o := range f.objects {
		wireTo(o.PID()).deliver(&proto.ResumeMailbox{}, nil)
		served := make(chan error, 1)
		go func() {
			_, err := set.Call(background, o, true)
			served <- err
		}()
		if err := soon(f.t, served); err != nil {
			require.ErrorIs(f.t, err, mailbox.ErrStopped, "object %d", i)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- f.s.Close(background) }()
	require.NoError(f.t, soon(f.t, closed))
	for _, p := range f.pending {
		soon(f.t, p.Done())
		if _, err := p.Await(background); err != nil && !errors.Is(err, mailbox.ErrStopped) && !errors.Is(err, actor.ErrClosed) {
			require.ErrorContains(f.t, err, "sluice")
		}
	}
	for _, ended := range f.ends {
		soon(f.t, ended)
	}
}

func TestNoMessageWithoutFieldsEndsTheProcessOrWedgesAnObject(t *testing.T) {
	for phase := range byte(phases) {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			for _, message := range vocabulary() {
				f := newFamily(t, phase)
				for _, to := range f.wires {
					to.deliver(message(new(source), []*actor.PID{nil}), nil)
				}
				f.survives()
			}
		})
	}
}

// FuzzMessages sends what a peer, or a program that has gone mad, can send to objects, to the
// objects that supervise them, to workers and to the address of a reply.
func FuzzMessages(f *testing.F) {
	for phase := range byte(phases) {
		f.Add(phase, []byte{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233})
		f.Add(phase, []byte("every message that protoactor knows, with any fields, to any process"))
	}
	f.Fuzz(func(t *testing.T, phase byte, data []byte) {
		family, s := newFamily(t, phase%phases), source(data)
		for range 16 {
			if len(s) == 0 {
				break
			}
			to := family.wires[int(s.next())%len(family.wires)]
			message := vocabulary()[int(s.next())%len(vocabulary())](&s, family.pids)
			to.deliver(message, family.pids[int(s.next())%len(family.pids)])
		}
		family.survives()
	})
}

// A process that cannot be reached any more panics when it is told of the end; the others
// that watch, and the parent, hear of it all the same.
func TestAWatcherThatPanicsKeepsNoOtherFromHearing(t *testing.T) {
	f := newFamily(t, idle)
	middle := f.wires[1]
	for i := range 3 {
		middle.deliver(&proto.Watch{Watcher: proto.NewPID("panics", fmt.Sprint(i))}, nil)
		ended, _ := f.s.Watch(middle.pid)
		f.ends = append(f.ends, ended)
	}
	middle.deliver(&proto.Stop{}, nil)
	for _, ended := range f.ends[1:] {
		soon(t, ended)
	}
	f.wires[0].deliver(&proto.Stop{}, nil) // ends when it knows that its child has
	soon(t, f.ends[0])
	late, _ := f.s.Watch(middle.pid)
	soon(t, late)
	f.survives()
}

// Else the child would be left without a parent, and outlive it.
func TestTheEndOfALivingChildIsNotBelieved(t *testing.T) {
	f := newFamily(t, idle)
	middle, leaf, plain := f.wires[1], f.wires[2], wireTo(proto.NewPID(f.wires[1].pid.Address, f.wires[1].pid.Id+"/plain"))
	gone, _ := f.s.Watch(plain.pid)
	for _, child := range []*actor.PID{leaf.pid, plain.pid} {
		middle.deliver(&proto.Terminated{Who: child}, nil)
		middle.deliver(&proto.Terminated{Who: proto.NewPID("far:1", child.Id)}, nil)
	}
	middle.deliver(&proto.Stop{}, nil)
	soon(t, f.ends[1])
	soon(t, f.ends[2])
	soon(t, gone)
	f.survives()
}

// A child whose name has been given to another one meanwhile has ended.
func TestAChildMayTakeTheNameOfOneThatHasEnded(t *testing.T) {
	f := newFamily(t, idle)
	middle := f.objects[1]
	for range 50 {
		child, err := middle.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "heir")
		require.NoError(t, err)
		gone, _ := f.s.Watch(child)
		f.s.Stop(child)
		soon(t, gone)
	}
	last, err := middle.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "heir")
	require.NoError(t, err)
	gone, _ := f.s.Watch(last)
	f.wires[1].deliver(&proto.Restart{}, nil) // waits for the end of its children
	soon(t, gone)
	f.survives()
}

func TestASystemMessageThatMakesNoSenseIsLogged(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	text := slog.New(slog.NewTextHandler(writer(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		log.Write(b)
	}), nil))
	s := actor.NewSystem(actor.Logger(text))
	o, err := activeobject.New(s, locks, &lock{}, activeobject.Name("gate"))
	require.NoError(t, err)
	process, _ := s.Actors().ProcessRegistry.Get(o.PID())
	for _, m := range []any{&proto.Watch{}, &proto.Unwatch{}, &proto.Terminated{}, &proto.Failure{}} {
		process.SendSystemMessage(o.PID(), m)
	}
	ended, _ := s.Watch(o.PID())
	o.Stop()
	soon(t, ended)
	require.NoError(t, s.Close(background))
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"Watch", "Unwatch", "Terminated", "Failure"} {
		require.Regexp(t, `level=WARN msg="sluice: a message of type \*actor\.`+name+` is refused: it names no .*" actor=gate`, log.String())
	}
}

// writer is a function as an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Protoactor answers a Watch that it finds among the dead letters with the news of an end.
func TestAWatchThatComesAsAUserMessageReportsNoEnd(t *testing.T) {
	f := newFamily(t, idle)
	ended, stop := f.s.Watch(f.pids[2])
	watcher := f.s.Actors().Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		if m, ok := c.Message().(*proto.Terminated); ok {
			t.Error(m.Who, "is said to have ended")
		}
	}))
	network().Root.Send(f.pids[1], &proto.Watch{Watcher: watcher})
	network().Root.Send(f.pids[1], &proto.Watch{})
	requireOpen(t, ended)
	stop()
	require.NoError(t, network().Root.PoisonFuture(watcher).Wait())
	f.survives()
}
