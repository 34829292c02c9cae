package actor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// newSystem returns a system that is closed when the test ends.
func newSystem(t testing.TB, options ...actor.Option) *actor.System {
	t.Helper()
	s := actor.NewSystem(append([]actor.Option{actor.Logger(quiet)}, options...)...)
	t.Cleanup(func() { require.NoError(t, s.Close(background)) })
	return s
}

// newForeign returns a protoactor system for On.
func newForeign(t testing.TB) *proto.ActorSystem {
	t.Helper()
	foreign := newForeignUnclosed()
	t.Cleanup(foreign.Shutdown)
	return foreign
}

func newForeignUnclosed() *proto.ActorSystem {
	return proto.NewActorSystem(proto.WithLoggerFactory(quietly))
}

// homes runs a test on a system of its own and on one that is on somebody else's.
func homes(t *testing.T, test func(t *testing.T, s *actor.System)) {
	t.Run("own", func(t *testing.T) { test(t, newSystem(t)) })
	t.Run("foreign", func(t *testing.T) { test(t, newSystem(t, actor.Actors(newForeign(t)))) })
}

// spawn makes a plain actor, which is stopped when the test ends.
func spawn(t testing.TB, s *actor.System, receive func(proto.Context)) *actor.PID {
	t.Helper()
	root := s.Actors().Root
	pid := root.Spawn(proto.PropsFromFunc(receive))
	t.Cleanup(func() { _ = root.StopFuture(pid).Wait() })
	return pid
}

// asks makes an actor that hands on the senders of the messages it gets.
func asks(t testing.TB, s *actor.System) (*actor.PID, <-chan *actor.PID) {
	senders := make(chan *actor.PID, 100)
	return spawn(t, s, func(ctx proto.Context) {
		if ctx.Sender() != nil {
			senders <- ctx.Sender()
		}
	}), senders
}

// requireNobody requires that no request and no watch is left of a system.
func requireNobody(t testing.TB, s *actor.System) {
	t.Helper()
	require.Zero(t, actor.Waiters(s), "a waiter is left in the reply registry")
}

func TestAReplyIsTheResultOfItsRequest(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		cause := errors.New("cause")
		echo := spawn(t, s, func(ctx proto.Context) {
			if ctx.Sender() != nil {
				ctx.Respond(ctx.Message())
			}
		})
		for _, c := range []struct {
			message, value any
			err            error
		}{
			{"hello", "hello", nil},
			{nil, nil, nil},
			{cause, cause, nil}, // an error that is no Reply's is a value
			{&actor.Reply{Value: 1}, 1, nil},
			{&actor.Reply{Err: cause}, nil, cause},
			{&actor.Reply{}, nil, nil},
			{(*actor.Reply)(nil), nil, nil},
			{actor.Reply{Value: 1}, actor.Reply{Value: 1}, nil},
		} {
			f := s.Request(background, echo, c.message)
			value, err := f.Await(background)
			require.Equal(t, c.value, value)
			require.Equal(t, c.err, err)
			require.True(t, f.Ready())
			soon(t, f.Done())
		}
		requireNobody(t, s)
	})
}

func TestEveryWaiterIsToldTheSameOnce(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		for i := range 50 {
			f := s.Request(background, pid, "how much?")
			var told atomic.Int32
			then := actor.Then(f, func(v any, err error) (int, error) { told.Add(1); return v.(int) + 1, err })
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					v, err := f.Await(background)
					if v != i || err != nil {
						t.Error(v, err)
					}
				})
			}
			s.Tell(soon(t, senders), i)
			all.Wait()
			n, err := then.Await(background)
			require.Equal(t, i+1, n)
			require.NoError(t, err)
			require.EqualValues(t, 1, told.Load())
		}
	})
}

func TestTheFirstReplyCountsAndTheOthersAreDeadLetters(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		dead := deadLetters(t, s)
		for range 20 {
			f := s.Request(background, pid, "?")
			sender := soon(t, senders)
			s.Tell(sender, "first")
			s.Tell(sender, "second")
			require.Equal(t, "second", soon(t, dead))
			next := s.Request(background, pid, "?") // is registered now
			// An address that is built from its parts is the same.
			s.Tell(proto.NewPID(sender.Address, sender.Id), "third")
			require.Equal(t, "third", soon(t, dead))
			require.False(t, next.Ready())
			v, err := f.Await(background)
			require.Equal(t, "first", v)
			require.NoError(t, err)
			again := soon(t, senders)
			s.Tell(proto.NewPID(again.Address, again.Id), "mine")
			v, err = next.Await(background)
			require.Equal(t, "mine", v)
			require.NoError(t, err)
		}
	})
}

func TestOfManyRepliesAtOnceOneCounts(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		for range 200 {
			ctx, cancel := context.WithCancel(background)
			f := s.Request(ctx, pid, "?")
			sender := soon(t, senders)
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() { s.Respond(sender, i, nil) })
			}
			all.Go(cancel)
			all.Go(func() {
				v1, err1 := f.Await(background)
				v2, err2 := f.Await(background)
				if v1 != v2 || err1 != err2 || (v1 == nil) == (err1 == nil) {
					t.Error(v1, err1, v2, err2)
				}
			})
			all.Wait()
		}
		requireNobody(t, s)
	})
}

func TestARequestEndsWithItsContext(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		dead := deadLetters(t, s)
		over, cancel := context.WithCancel(background)
		f := s.Request(over, pid, "?")
		sender := soon(t, senders)
		cancel()
		_, err := f.Await(background)
		require.Equal(t, context.Canceled, err)
		requireNobody(t, s)
		s.Tell(sender, "late")
		require.Equal(t, "late", soon(t, dead))
		_, err = f.Await(background)
		require.Equal(t, context.Canceled, err)

		_, err = s.Request(over, pid, "never sent").Await(background)
		require.Equal(t, context.Canceled, err)
		_, err = actor.Ask[int](over, s, pid, "op", nil)
		require.Equal(t, context.Canceled, err)
		require.Empty(t, senders)
	})
}

func TestARequestWithoutATargetFailsAtOnce(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		gone := s.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
		require.NoError(t, s.Actors().Root.StopFuture(gone).Wait())
		for _, to := range []*actor.PID{s.Actors().NewLocalPID("nobody"), gone, proto.NewPID("$sluice", "1.1"), proto.NewPID("$sluice", "x")} {
			f := s.Request(background, to, "?")
			require.True(t, f.Ready())
			_, err := f.Await(background)
			var dead *actor.DeadLetterError
			require.ErrorAs(t, err, &dead)
			require.Same(t, to, dead.Target)
			require.ErrorIs(t, err, mailbox.ErrStopped)
			require.EqualError(t, err, "sluice: there is no actor at "+to.Address+"/"+to.Id)
		}
		_, err := s.Request(background, nil, "?").Await(background)
		require.EqualError(t, err, "sluice: a message to nobody: the PID is nil")
		requireNobody(t, s)
	})
}

func TestAskTellsAResultOfAnotherType(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		var reply any
		pid := spawn(t, s, func(ctx proto.Context) {
			if m, ok := ctx.Message().(*actor.Invoke); ok {
				if m.Operation != "op" || m.Argument != 7 {
					t.Error(m)
				}
				ctx.Respond(reply)
			}
		})
		reply = &actor.Reply{Value: 1}
		n, err := actor.Ask[int](background, s, pid, "op", 7)
		require.Equal(t, 1, n)
		require.NoError(t, err)
		v, err := actor.Ask[any](background, s, pid, "op", 7)
		require.Equal(t, 1, v)
		require.NoError(t, err)
		_, err = actor.Ask[string](background, s, pid, "op", 7)
		var wrong *actor.ResultError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, actor.ResultError{Target: pid, Operation: "op", Want: "string", Value: 1}, *wrong)
		require.EqualError(t, err, "sluice: op of "+pid.Address+"/"+pid.Id+" gave a result of type int, not string")
		reply = &actor.Reply{}
		_, err = actor.Ask[int](background, s, pid, "op", 7)
		require.ErrorAs(t, err, &wrong)
		e, err := actor.Ask[error](background, s, pid, "op", 7)
		require.NoError(t, err, "no value is one of an interface")
		require.NoError(t, e)
		cause := errors.New("cause")
		reply = &actor.Reply{Err: cause}
		_, err = actor.Ask[string](background, s, pid, "op", 7)
		require.Equal(t, cause, err)
	})
}

func TestCloseFailsEveryRequestThatHasNoReply(t *testing.T) {
	for name, end := range map[string]func(*actor.System) error{
		"close":    func(s *actor.System) error { return s.Close(background) },
		"shutdown": func(s *actor.System) error { return s.Shutdown(background) },
	} {
		t.Run(name, func(t *testing.T) {
			homes(t, func(t *testing.T, s *actor.System) {
				pid, senders := asks(t, s)
				dead := deadLetters(t, s)
				var futures []actor.Future[any]
				for i := range 50 {
					ctx := background
					if i%2 == 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(background)
						t.Cleanup(cancel)
					}
					futures = append(futures, s.Request(ctx, pid, "?"))
				}
				require.NoError(t, end(s))
				for _, f := range futures {
					_, err := f.Await(background)
					require.Equal(t, actor.ErrClosed, err)
				}
				requireNobody(t, s)
				s.Tell(soon(t, senders), "late")
				require.Equal(t, "late", soon(t, dead))
				_, err := s.Request(background, pid, "?").Await(background)
				require.Equal(t, actor.ErrClosed, err)
				_, err = s.Request(background, nil, "?").Await(background)
				require.Equal(t, actor.ErrClosed, err)
			})
		})
	}
}

func TestARequestOfAClosedSystemMakesNoActorSystem(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	require.NoError(t, s.Close(background))
	_, err := s.Request(background, proto.NewPID("nonhost", "a"), "?").Await(background)
	require.Equal(t, actor.ErrClosed, err)
}

func TestCloseFailsTheRequestsOfItsOwnSystemOnly(t *testing.T) {
	foreign := newForeign(t)
	one, other := actor.NewSystem(actor.Actors(foreign)), newSystem(t, actor.Actors(foreign))
	pid, senders := asks(t, other)
	f, g := one.Request(background, pid, 1), other.Request(background, pid, 2)
	require.NoError(t, one.Close(background))
	_, err := f.Await(background)
	require.Equal(t, actor.ErrClosed, err)
	require.False(t, g.Ready())
	for range 2 {
		foreign.Root.Send(soon(t, senders), "reply")
	}
	v, err := g.Await(background)
	require.Equal(t, "reply", v)
	require.NoError(t, err)
}

func TestSystemsOnOneActorSystemMayComeAndGoAtTheSameTime(t *testing.T) {
	foreign := newForeign(t)
	echo := foreign.Root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
		if ctx.Sender() != nil {
			ctx.Respond(ctx.Message())
		}
	}))
	// The first one adds the resolver, and there is no lock for that.
	newSystem(t, actor.Actors(foreign))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				s := actor.NewSystem(actor.Actors(foreign))
				if v, err := s.Request(background, echo, i).Await(background); v != i || err != nil {
					t.Error(v, err)
				}
				if err := s.Close(background); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, foreign.ProcessRegistry.RemoteHandlers, 1)
	require.NoError(t, foreign.Root.StopFuture(echo).Wait())
}

// The addresses of requests look alike in all systems; what belongs to one of them must
// not be taken for another's.
func TestAReplyThatComesToTheWrongSystemIsADeadLetter(t *testing.T) {
	one, other := newSystem(t), newSystem(t)
	pid, senders := asks(t, one)
	f := one.Request(background, pid, "?")
	sender := soon(t, senders)
	pid, senders = asks(t, other)
	g := other.Request(background, pid, "?")
	soon(t, senders)
	dead := deadLetters(t, other)
	other.Respond(proto.NewPID(sender.Address, sender.Id), 1, nil)
	require.Equal(t, &actor.Reply{Value: 1}, soon(t, dead))
	require.False(t, f.Ready())
	require.False(t, g.Ready())

	third := newSystem(t) // without any actors so far
	_, ours := third.Asker(sender)
	require.False(t, ours)
	require.False(t, third.Answer(sender, 1, nil))
	third.Respond(sender, 1, nil)
	require.False(t, f.Ready())
}

func TestAMessageWithoutATargetIsADeadLetter(t *testing.T) {
	s := newSystem(t)
	dead := deadLetters(t, s)
	s.Tell(nil, "hello")
	require.Equal(t, "hello", soon(t, dead))
	_, ours := s.Asker(nil)
	require.False(t, ours)
	s.Respond(nil, 1, nil)
	require.Equal(t, &actor.Reply{Value: 1}, soon(t, dead))
}

// A resolver like that of protoactor's remote takes every address for its own.
func TestRepliesFindTheWayThoughOthersResolveEveryAddress(t *testing.T) {
	foreign := newForeign(t)
	var taken atomic.Int32
	foreign.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (proto.Process, bool) {
		taken.Add(1)
		return foreign.DeadLetter, true
	})
	s := newSystem(t, actor.Actors(foreign))
	pid, senders := asks(t, s)
	f := s.Request(background, pid, "?")
	s.Tell(soon(t, senders), "reply")
	v, err := f.Await(background)
	require.Equal(t, "reply", v)
	require.NoError(t, err)
	require.Zero(t, taken.Load())
}

func TestAPanicOnTheWayToTheTargetLeavesNoRequestBehind(t *testing.T) {
	s := newSystem(t)
	pid, ok := s.Actors().ProcessRegistry.Add(bomb{}, "bomb")
	require.True(t, ok)
	require.PanicsWithValue(t, "bang", func() { s.Request(background, pid, "?") })
	requireNobody(t, s)
}

// bomb is a process that panics.
type bomb struct{}

func (bomb) SendUserMessage(*actor.PID, any)   { panic("bang") }
func (bomb) SendSystemMessage(*actor.PID, any) {}
func (bomb) Stop(*actor.PID)                   {}

func TestAFutureThatIsNeverAwaitedKeepsNothingAlive(t *testing.T) {
	s := newSystem(t)
	pid, senders := asks(t, s)
	var kept []*actor.PID
	func() {
		for range 50 {
			ctx, cancel := context.WithCancel(background)
			for range 2 {
				s.Request(ctx, pid, "?")
				kept = append(kept, soon(t, senders))
			}
			s.Tell(kept[len(kept)-1], make([]byte, 1<<10))
			cancel()
		}
	}()
	for end := time.Now().Add(10 * time.Second); actor.Waiters(s) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	requireNobody(t, s)
	require.Less(t, actor.Slots(s), 100, "slots are reused")
	// An actor that keeps the senders keeps an address each, and no results.
	results := make(chan struct{}, 1)
	f := s.Request(background, pid, "?")
	sender := soon(t, senders)
	func() {
		big := new([1 << 20]byte)
		runtime.AddCleanup(big, func(c chan struct{}) { c <- struct{}{} }, results)
		s.Tell(sender, big)
		require.True(t, f.Ready())
	}()
	f = actor.Future[any]{}
	collected := false
	for end := time.Now().Add(10 * time.Second); !collected && time.Now().Before(end); {
		runtime.GC()
		select {
		case <-results:
			collected = true
		default:
		}
	}
	require.True(t, collected, "the result is still referenced")
	runtime.KeepAlive(kept)
	runtime.KeepAlive(sender)
	runtime.KeepAlive(f)
}

func TestSlotsAreReleasedAfterManyRequests(t *testing.T) {
	s := newSystem(t)
	ctx, cancel := context.WithCancel(background)
	var futures []actor.Future[any]
	deaf := spawn(t, s, func(proto.Context) {})
	for range 5000 {
		futures = append(futures, s.Request(ctx, deaf, "?"))
	}
	require.Equal(t, 5000, actor.Waiters(s))
	cancel()
	for _, f := range futures {
		_, err := f.Await(background)
		require.Equal(t, context.Canceled, err)
	}
	requireNobody(t, s)
	require.Zero(t, actor.Slots(s))
}

func TestRequestsWorkInBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actor.NewSystem(actor.Logger(quiet))
		root := s.Actors().Root
		slow := root.Spawn(proto.PropsFromFunc(func(ctx proto.Context) {
			if d, ok := ctx.Message().(time.Duration); ok {
				sender := ctx.Sender()
				time.AfterFunc(d, func() { s.Tell(sender, d) })
			}
		}))
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		start := time.Now()
		v, err := s.Request(ctx, slow, 59*time.Second).Await(background)
		require.Equal(t, 59*time.Second, v)
		require.NoError(t, err)
		_, err = s.Request(ctx, slow, time.Hour).Await(background)
		require.Equal(t, context.DeadlineExceeded, err)
		require.Equal(t, time.Minute, time.Since(start))
		ended, _ := s.Watch(slow)
		root.Stop(slow)
		<-ended
		require.NoError(t, s.Close(background))
		time.Sleep(2 * time.Hour) // the late reply, and the throttle of dead letters
	})
}

func TestWaiterIDsAreParsedExactly(t *testing.T) {
	for _, id := range []string{"", ".", "1", "1.", ".1", "1.1.1", "1.w", "w.1", " 1.1", "1.1 ", "-1.1", "1.A", "zz.1",
		"4000000.1", "1." + strings.Repeat("v", 14), "$1"} {
		require.False(t, actor.IsWaiterID(id), "%q", id)
	}
	for _, number := range []uint64{1, 31, 32, 1 << 32, 1<<64 - 1} {
		for _, index := range []uint32{0, 1, 31, 32, 1<<32 - 1} {
			require.True(t, actor.RoundTrips(index, number), "%d.%d", index, number)
		}
	}
}

// deadLetters returns a channel of the messages that could not be delivered.
func deadLetters(t testing.TB, s *actor.System) <-chan any {
	t.Helper()
	c := make(chan any, 1000)
	events := s.Actors().EventStream
	sub := events.Subscribe(func(event any) {
		if d, ok := event.(*proto.DeadLetterEvent); ok {
			select {
			case c <- d.Message:
			default:
			}
		}
	})
	t.Cleanup(func() { events.Unsubscribe(sub) })
	return c
}

func TestAnActorGoesOnWhileItAsks(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		got := make(chan any, 10)
		asker := spawn(t, s, func(ctx proto.Context) {
			switch m := ctx.Message().(type) {
			case string:
				got <- m
				if m == "ask" {
					ctx.Request(pid, "?") // the reply is a message to it
				}
			case *actor.Reply:
				got <- m.Value
			}
		})
		s.Tell(asker, "ask")
		require.Equal(t, "ask", soon(t, got))
		sender := soon(t, senders)
		for i := range 3 {
			s.Tell(asker, fmt.Sprint("meanwhile ", i))
			require.Equal(t, fmt.Sprint("meanwhile ", i), soon(t, got))
		}
		s.Respond(sender, 7, nil)
		require.Equal(t, 7, soon(t, got))
	})
}

// An interceptor may give a request a context that ends before its asker's; who has
// sent the message has heard nothing of that.
func TestAMessageThatIsWithdrawnByItsInterceptorIsAnswered(t *testing.T) {
	s := newSystem(t)
	o := activeobject.Must(activeobject.New(s, lamps, &lamp{}, activeobject.Interceptors(activeobject.Interceptor{
		Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, nil
		},
	})))
	f := s.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "read"}, 20*time.Second)
	reply, err := f.Result()
	require.NoError(t, err)
	require.Equal(t, &actor.Reply{Err: context.Canceled}, reply)
	_, err = actor.Ask[string](background, s, o.PID(), "read", nil)
	require.Equal(t, context.Canceled, err)
}

type clerk struct{ n int }

var (
	clerks     = activeobject.NewType[clerk]("clerk")
	clerkCount = activeobject.Procedure(clerks, "count", activeobject.Result(func(c *clerk) int { c.n++; return c.n }))
	clerkDo    = activeobject.ProcedureCtx(clerks, "do", func(_ *clerk, ctx context.Context, f func(context.Context) error) (activeobject.None, error) {
		return nil, f(ctx)
	})
)

func TestACircleOfWaitingIsNamedThoughItGoesByMessage(t *testing.T) {
	s := newSystem(t)
	for _, options := range [][]activeobject.Option{nil, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}, {activeobject.Interceptors(activeobject.Interceptor{})}} {
		for _, base := range []context.Context{background, t.Context()} { // one that cannot end, and one that can
			state := &clerk{}
			a := activeobject.Must(activeobject.New(s, clerks, state, options...))
			b := activeobject.Must(activeobject.New(s, clerks, &clerk{}, options...))
			count := func(ctx context.Context) error {
				_, err := actor.Ask[int](ctx, s, a.PID(), "count", nil)
				return err
			}
			requireCircle := func(err error, way ...string) {
				t.Helper()
				var deadlock *mailbox.DeadlockError
				require.ErrorAs(t, err, &deadlock)
				require.Len(t, deadlock.Circle, len(way))
				for _, link := range way {
					require.ErrorContains(t, err, link)
				}
			}
			_, err := clerkDo.Call(base, a, count)
			requireCircle(err, a.Name()+".do waits for "+a.Name()+".count")
			_, err = clerkDo.Call(base, a, func(ctx context.Context) error { // a calls b, which asks a
				_, err := clerkDo.Call(ctx, b, count)
				return err
			})
			requireCircle(err, a.Name()+".do waits for "+b.Name()+".do", b.Name()+".do waits for "+a.Name()+".count")
			// Whose wait closes the circle ends: b's, when a waits already, or a's, and then
			// b is served when a's body has ended.
			answered := make(chan error, 1)
			_, err = clerkDo.Call(base, a, func(ctx context.Context) error { // a asks b, which calls a
				_, err := actor.Ask[activeobject.None](ctx, s, b.PID(), "do", func(ctx context.Context) error {
					_, err := clerkCount.Call(ctx, a, nil)
					answered <- err
					return err
				})
				return err
			})
			requireCircle(err, a.Name()+".do waits for "+b.Name()+".do", b.Name()+".do waits for "+a.Name()+".count")
			served := 3
			if inner := <-answered; inner == nil {
				served++
			} else {
				requireCircle(inner, a.Name()+".do waits for "+b.Name()+".do", b.Name()+".do waits for "+a.Name()+".count")
			}

			// Who does not wait in the body closes no circle; and what has been sent is sent.
			var sent actor.Future[any]
			_, err = clerkDo.Call(base, a, func(ctx context.Context) error {
				sent = s.Request(ctx, a.PID(), &actor.Invoke{Operation: "count"})
				require.False(t, sent.Withdraw())
				_, err := actor.Then(sent, func(v any, err error) (any, error) { return v, err }).Await(ctx)
				return err
			})
			requireCircle(err, a.Name()+".do waits for "+a.Name()+".count")
			v, err := sent.Await(background)
			require.NoError(t, err)
			require.Equal(t, served, v, "what was asked for in vain is served when the body has ended")
		}
	}
	// The replies to waits that have ended are on their way.
	require.Eventually(t, func() bool { return actor.Waiters(s) == 0 }, 20*time.Second, time.Millisecond)
}
