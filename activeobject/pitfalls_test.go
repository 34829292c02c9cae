package activeobject_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// The tests of this file show what plain protoactor does, where that is certain to
// happen, and then what an object does in its place.

// plainSystem returns a protoactor system without any of ours.
func plainSystem(t *testing.T) *proto.ActorSystem {
	t.Helper()
	system := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return quiet }))
	t.Cleanup(func() {
		if !system.IsStopped() {
			system.Shutdown()
		}
	})
	return system
}

// The mailbox of an actor that stops drops what is in it, and the requester waits for its timeout.
func TestWhatIsQueuedWhenTheTargetStopsIsNotLostSilently(t *testing.T) {
	plain := plainSystem(t)
	dead := 0
	plain.EventStream.Subscribe(func(e any) {
		if _, ok := e.(*proto.DeadLetterEvent); ok {
			dead++
		}
	})
	b := newBrake()
	pid := plain.Root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
		switch ctx.Message() {
		case "hold":
			close(b.entered)
			<-b.let
		case "?":
			ctx.Respond("!")
		}
	}))
	plain.Root.Send(pid, "hold")
	<-b.entered
	var asked []*proto.Future
	for range 5 {
		asked = append(asked, plain.Root.RequestFuture(pid, "?", 20*time.Millisecond))
	}
	plain.Root.Stop(pid)
	close(b.let)
	for _, f := range asked {
		_, err := f.Result()
		require.Equal(t, proto.ErrTimeout, err)
	}
	require.Zero(t, dead)

	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{level: 5})
		release := braked(t, s, o, ts.hold)
		var asked []actor.Future[any]
		for range 5 {
			asked = append(asked, s.system.Request(background, o.PID(), &actor.Invoke{Operation: "drain"}))
		}
		s.system.Actors().Root.Stop(o.PID())
		for _, f := range asked { // while the body still runs
			_, err := soonOutcome(t, s, f)
			requireStopped(t, o.Name(), err)
		}
		release()
	})
}

// A future of protoactor's can have a value and an error, and both can change.
func TestAFutureHasOneOutcomeForGood(t *testing.T) {
	plain := plainSystem(t)
	f := proto.NewFuture(plain, time.Minute)
	plain.Root.Send(f.PID(), "first")
	v, err := f.Result()
	require.Equal(t, "first", v)
	require.NoError(t, err)
	plain.Root.Send(f.PID(), "second")
	v, _ = f.Result()
	require.Equal(t, "second", v)
	plain.Root.Send(f.PID(), &proto.DeadLetterResponse{})
	_, err = f.Result()
	require.Equal(t, proto.ErrDeadLetter, err)
	plain.Root.Send(f.PID(), "third")
	v, err = f.Result()
	require.Equal(t, "third", v)
	require.Equal(t, proto.ErrDeadLetter, err)

	s := &scene{system: newSystem(t)}
	senders := make(chan *actor.PID, 1)
	pid := plainActor(t, s, func(ctx proto.Context) {
		if ctx.Sender() != nil {
			senders <- ctx.Sender()
		}
	})
	root := s.system.Actors().Root
	ours := s.system.Request(background, pid, "?")
	sender := soon(t, s.system, senders)
	for _, reply := range []any{"first", "second", &proto.DeadLetterResponse{}, "third"} {
		root.Send(sender, reply)
		v, err := ours.Await(background)
		require.Equal(t, "first", v)
		require.NoError(t, err)
	}
}

// A future of protoactor's wakes one of its waiters. The others would outlive the
// test, so it has a process of its own.
func TestEveryWaiterOfAFutureIsWoken(t *testing.T) {
	if !alone(t) {
		return
	}
	plain := plainSystem(t)
	f := proto.NewFuture(plain, -1)
	woken := make(chan struct{}, 3)
	started := make(chan struct{}, 3)
	for range 3 {
		go func() { started <- struct{}{}; _, _ = f.Result(); woken <- struct{}{} }()
	}
	for range 3 {
		<-started
	}
	// Goroutines that do not wait yet find the result; so look until all are asleep.
	eventually(t, "they wait", func() bool { return strings.Count(stacksOf(), "sync.(*Cond).Wait") == 3 })
	plain.Root.Send(f.PID(), "reply")
	<-woken
	require.Equal(t, 2, strings.Count(stacksOf(), "sync.(*Cond).Wait"), "protoactor has been repaired")
	require.Empty(t, woken)

	s := &scene{system: newSystem(t)}
	senders := make(chan *actor.PID, 1)
	pid := plainActor(t, s, func(ctx proto.Context) {
		if ctx.Sender() != nil {
			senders <- ctx.Sender()
		}
	})
	ours := s.system.Request(background, pid, "?")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { _, _ = ours.Await(background) })
	}
	s.system.Actors().Root.Send(<-senders, "reply")
	all.Wait()
	os.Exit(0)
}

// A batch comes to a plain actor item by item, and then as a whole.
func TestABatchIsDeliveredOnce(t *testing.T) {
	plain := plainSystem(t)
	got := make(chan any, 10)
	pid := plain.Root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
		switch m := ctx.Message().(type) {
		case int, batch:
			got <- m
		case *proto.Stopped:
			close(got)
		}
	}))
	plain.Root.Send(pid, batch{1, 2})
	plain.Root.Poison(pid)
	var all []any
	for m := range got {
		all = append(all, m)
	}
	require.Equal(t, []any{1, 2, batch{1, 2}}, all)

	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{}
		o := newObject(t, s, ts.Type, state)
		fill := func(n int) any { return &actor.Invoke{Operation: "fill", Argument: n} }
		s.system.Actors().Root.Send(o.PID(), batch{fill(1), fill(2)})
		ended, _ := s.system.Watch(o.PID())
		s.system.Actors().Root.Poison(o.PID())
		soon(t, s.system, ended)
		require.Equal(t, 3, state.level)
	})
}

// Of a batch each item that makes no sense is a dead letter, and the others are served.
func TestBadItemsOfABatchDoNotSpoilTheOthers(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		state := &dam{}
		o := newObject(t, s, ts.Type, state)
		dead := deadLetters(t, s)
		odd := &actor.Invoke{Operation: "spill"}
		s.system.Actors().Root.Send(o.PID(), batch{
			nil, (*actor.Invoke)(nil), batch(nil), batch{}, odd, 7,
			&actor.Invoke{Operation: "fill", Argument: "much"},
			&proto.MessageEnvelope{Message: &actor.Invoke{Operation: "fill", Argument: 1}},
			&proto.MessageEnvelope{},
			&actor.Invoke{Operation: "fill", Argument: 2},
		})
		requireDead(t, dead, odd)
		requireDead(t, dead, 7)
		soon(t, s.system, func() <-chan struct{} { ended, _ := s.system.Watch(o.PID()); o.Retire(); return ended }())
		require.Equal(t, 3, state.level)
	})
}

// A plain actor's mailbox takes a nil for the end of its queue, and turns on the spot
// for ever after.
func TestANilMessageIsADeadLetter(t *testing.T) {
	if !alone(t) {
		return
	}
	plain := plainSystem(t)
	var box proto.Mailbox
	nils := make(chan any, 1)
	receive := func(ctx proto.Context) {
		switch {
		case ctx.Message() == nil:
			nils <- nil
		case ctx.Message() == "?":
			ctx.Respond("!")
		}
	}
	pid := plain.Root.Spawn(proto.PropsFromFunc(receive, proto.WithMailbox(func() proto.Mailbox {
		box = proto.Unbounded()()
		return box
	})))
	plain.Root.Send(pid, nil)
	for range 100 {
		_, err := plain.Root.RequestFuture(pid, "?", time.Minute).Result()
		require.NoError(t, err)
	}
	require.Empty(t, nils, "it is lost")
	eventually(t, "only the nil is left", func() bool { return box.UserMessageCount() == 1 })

	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		dead := deadLetters(t, s)
		s.system.Tell(o.PID(), nil)
		requireDead(t, dead, nil)
		s.system.Actors().Root.Send(o.PID(), nil)
		requireDead(t, dead, nil)
		require.Zero(t, ts.ran(o))
		// System.Tell gets a nil to a plain actor, too.
		s.system.Tell(s.system.Actors().Root.Spawn(proto.PropsFromFunc(receive)), nil)
		soon(t, s.system, nils)
	})
	os.Exit(0)
}

func TestASenderThatHasDiedBeforeTheReplyHurtsNobody(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		root := s.system.Actors().Root
		dead := make(chan any, 10)
		sub := s.system.Actors().EventStream.Subscribe(func(e any) {
			if d, ok := e.(*proto.DeadLetterEvent); ok {
				if r, ok := d.Message.(*actor.Reply); ok {
					dead <- r.Value
				}
			}
		})
		defer s.system.Actors().EventStream.Unsubscribe(sub)
		sender := root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
		// Of the second one nothing is known.
		for _, from := range []*actor.PID{sender, proto.NewPID("elsewhere:8090", "nobody")} {
			root.RequestWithCustomSender(o.PID(), &actor.Invoke{Operation: "drain"}, from)
		}
		waiting(t, o, ts.drain, 2)
		require.NoError(t, root.StopFuture(sender).Wait())
		ts.fill.Call(background, o, 3)
		require.Equal(t, any(1), soon(t, s.system, dead), "the reply to the second")
		require.Equal(t, 1, ts.ran(o), "the object goes on, and has not run the first")
	})
}

// A sender that panics when it is replied to is not the object's business.
func TestASenderThatPanicsHurtsNobody(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		bad, ok := s.system.Actors().ProcessRegistry.Add(grump{}, "grump")
		require.True(t, ok)
		for range 5 {
			s.system.Actors().Root.RequestWithCustomSender(o.PID(), &actor.Invoke{Operation: "drain"}, bad)
		}
		waiting(t, o, ts.drain, 5)
		asked := asking[int](background, s, o.PID(), "drain", nil)
		waiting(t, o, ts.drain, 6)
		ts.fill.Call(background, o, 6)
		require.Equal(t, outcome[int]{6, nil}, soon(t, s.system, asked))
		require.Equal(t, 6, ts.ran(o))
	})
}

// grump is a process that panics when it is sent a message.
type grump struct{}

func (grump) SendUserMessage(*actor.PID, any)   { panic("go away") }
func (grump) SendSystemMessage(*actor.PID, any) {}
func (grump) Stop(*actor.PID)                   {}

// Protoactor's Shutdown stops no actor, so nothing is cut off by it; and Close of ours
// works after it.
func TestObjectsGoOnWhenTheirForeignActorSystemShutsDown(t *testing.T) {
	ts := newTanks()
	foreign := plainSystem(t)
	s := &scene{system: actor.NewSystem(actor.Logger(quiet), actor.Actors(foreign))}
	o := newObject(t, s, ts.Type, &dam{})
	pid := o.PID()
	waits := asking[int](background, s, pid, "drain", nil)
	waiting(t, o, ts.drain, 1)
	foreign.Shutdown()
	_, err := actor.Ask[None](background, s.system, pid, "fill", 1)
	require.NoError(t, err)
	require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, waits))
	late := asking[int](background, s, pid, "drain", nil)
	waiting(t, o, ts.drain, 1)
	require.NoError(t, s.system.Close(background))
	require.ErrorIs(t, soon(t, s.system, late).err, actor.ErrClosed)
}

// What of protoactor is not to be relied on (see the tests above, and its Stash, which
// loses senders, its ReceiveTimeout, which is a data race, and its ReenterAfter, which
// is lost with the actor, as the comment of actor.Reenter says) is used in no package of ours.
func TestNoPackageUsesWhatIsDefective(t *testing.T) {
	defective := regexp.MustCompile(`\.(Stash|ReenterAfter|SetReceiveTimeout|NewFuture|RequestFuture|StopFuture|PoisonFuture|PipeTo|WithReceiveTimeout)\(`)
	for _, dir := range []string{"../actor", "../mailbox", "../activeobject", "../guards"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "patterntest" {
				return fs.SkipDir // its actors know nothing of Sluice
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if filepath.Base(path) == "reenter.go" {
				return nil
			}
			text, err := os.ReadFile(path)
			require.Empty(t, defective.FindAllString(string(text), -1), path)
			return err
		}))
	}
}

func TestAnUnknownOperationOrArgumentIsATypedError(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Name("tank"))
		for _, c := range []struct {
			operation string
			argument  any
			problem   string
		}{
			{"spill", nil, `type "tank" has no operation "spill"`},
			{"fill", "much", `operation "fill" does not take an argument of type string`},
			{"fill", nil, `operation "fill" does not take an argument of type <nil>`},
		} {
			_, err := actor.Ask[None](background, s.system, o.PID(), c.operation, c.argument)
			var m *activeobject.MessageError
			require.ErrorAs(t, err, &m)
			require.Equal(t, activeobject.MessageError{Object: "tank", Problem: c.problem}, *m)
		}
		_, err := actor.Ask[string](background, s.system, o.PID(), "runs", nil)
		var r *actor.ResultError
		require.ErrorAs(t, err, &r)
		require.Equal(t, 0, r.Value)
	})
}

// stacksOf returns what all goroutines are doing.
func stacksOf() string {
	stacks := make([]byte, 1<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}
