package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// plainActor makes an actor that is stopped when the test ends.
func plainActor(t *testing.T, s *scene, receive func(proto.Context)) *actor.PID {
	t.Helper()
	root := s.system.Actors().Root
	pid := root.Spawn(proto.PropsFromFunc(receive))
	t.Cleanup(func() { _ = root.StopFuture(pid).Wait() })
	return pid
}

// asking is Ask on a goroutine of its own.
func asking[R any](ctx context.Context, s *scene, to *actor.PID, operation string, argument any) <-chan outcome[R] {
	return async(func() (R, error) { return actor.Ask[R](ctx, s.system, to, operation, argument) })
}

func TestAskIsACallByName(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			waits := asking[int](background, s, o.PID(), drain.Name(), nil)
			waiting(t, o, drain, 1)
			_, err := actor.Ask[None](background, s.system, o.PID(), "fill", 1)
			require.NoError(t, err)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, waits))
		}
	})
}

func TestAskFailsLikeACall(t *testing.T) {
	ms := newMines()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ms.Type, &mine{})
		for _, name := range []string{"blast", "blast-ctx"} {
			_, err := actor.Ask[any](background, s.system, o.PID(), name, "bang")
			var p *activeobject.PanicError
			require.ErrorAs(t, err, &p)
			require.Equal(t, "bang", p.Value)
		}
		var m *activeobject.MessageError
		_, err := actor.Ask[any](background, s.system, o.PID(), "spill", nil)
		require.ErrorAs(t, err, &m)
		_, err = actor.Ask[any](background, s.system, o.PID(), "enter", "x")
		require.ErrorAs(t, err, &m)
		_, err = s.system.Request(background, o.PID(), "blast").Await(background)
		require.ErrorAs(t, err, &m)
		pid := o.PID()
		soon(t, s.system, o.Stop())
		_, err = actor.Ask[any](background, s.system, pid, "blast", "bang")
		require.ErrorIs(t, err, activeobject.ErrStopped)
		ended, _ := s.system.Watch(pid)
		soon(t, s.system, ended)
		// A watcher that comes while an actor waits for the end of its children, which the worker
		// actors are, is told at once. So the actor may be there for a moment yet.
		eventually(t, "nothing is there any more", func() bool {
			_, err := actor.Ask[any](background, s.system, pid, "blast", "bang")
			require.ErrorIs(t, err, activeobject.ErrStopped)
			return errors.As(err, new(*actor.DeadLetterError))
		})
	})
}

func TestARequestWhoseAskerHasGoneNeverRuns(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			dead := deadLetters(t, s)
			ctx, cancel := context.WithCancel(background)
			asked := s.system.Request(ctx, o.PID(), &actor.Invoke{Operation: drain.Name()})
			waiting(t, o, drain, 1)
			cancel()
			require.Equal(t, context.Canceled, soon(t, s.system, awaiting(background, asked)).err)
			waiting(t, o, drain, 0)
			ts.fill.Call(background, o, 1)
			require.Zero(t, ts.ran(o))
			require.Empty(t, dead, "the asker knows")
		}
	})
}

// The owner of an object runs no foreign code. A late reply is a dead letter, and a subscriber to
// dead letters may call the object.
func TestALateReplyIsADeadLetterAndHoldsUpNoCaller(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		events := s.system.Actors().EventStream
		ran := make(chan int, 1)
		sub := events.Subscribe(func(e any) {
			if d, ok := e.(*proto.DeadLetterEvent); ok {
				if _, ok := d.Message.(*actor.Reply); ok {
					ran <- ts.ran(o)
				}
			}
		})
		defer events.Unsubscribe(sub)
		ctx, cancel := context.WithCancel(background)
		b := newBrake()
		asked := s.system.Request(ctx, o.PID(), &actor.Invoke{Operation: "hold", Argument: b})
		soon(t, s.system, b.entered)
		cancel()
		_, err := soonOutcome(t, s, asked)
		require.Equal(t, context.Canceled, err, "though its body runs")
		close(b.let)
		require.Zero(t, soon(t, s.system, ran))
	})
}

func TestARequestRacesWithItsContextAndWithStop(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for range 100 {
			o := newObject(t, s, ts.Type, &dam{})
			pid := o.PID()
			ctx, cancel := context.WithCancel(background)
			var all sync.WaitGroup
			var ran atomic.Int32
			for _, drain := range ts.entries() {
				for range 4 {
					all.Go(func() {
						_, err := actor.Ask[int](ctx, s.system, pid, drain.Name(), nil)
						switch {
						case err == nil:
							ran.Add(1)
						case err == context.Canceled:
						default:
							requireStopped(t, o.Name(), err)
						}
					})
				}
			}
			all.Go(func() { ts.fill.Tell(background, o, 3) })
			all.Go(cancel)
			all.Wait()
			soon(t, s.system, o.Stop())
			require.LessOrEqual(t, int(ran.Load()), 3)
		}
	})
}

func TestAnActorThatAsksAnObjectGoesOnMeanwhile(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		got := make(chan any, 10)
		pid := plainActor(t, s, func(ctx proto.Context) {
			switch m := ctx.Message().(type) {
			case string:
				if m == "drain" {
					ctx.Request(o.PID(), &actor.Invoke{Operation: m})
				}
				got <- m
			case *actor.Reply:
				got <- *m
			}
		})
		root := s.system.Actors().Root
		root.Send(pid, "drain")
		require.Equal(t, "drain", soon(t, s.system, got))
		waiting(t, o, ts.drain, 1)
		for range 3 {
			root.Send(pid, "meanwhile")
			require.Equal(t, "meanwhile", soon(t, s.system, got))
		}
		ts.fill.Call(background, o, 1)
		require.Equal(t, actor.Reply{Value: 1}, soon(t, s.system, got))
	})
}

// relay is an object that asks an actor while its body runs.
type relay struct{ echoes int }

func TestAMessageEntersAgainWhereACallWouldBeACircle(t *testing.T) {
	relays := activeobject.NewType[relay]("relay")
	type errand struct {
		s   *scene
		via *actor.PID
	}
	activeobject.Procedure(relays, "echo", activeobject.Plain(func(r *relay) { r.echoes++ }))
	echoes := activeobject.Function(relays, "echoes", activeobject.Result(func(r *relay) int { return r.echoes }))
	ask := activeobject.ProcedureCtx(relays, "ask", func(_ *relay, ctx context.Context, e errand) (any, error) {
		return e.s.system.Request(ctx, e.via, "go").Await(ctx)
	})
	var self atomic.Pointer[activeobject.Object[relay]]
	again := activeobject.ProcedureCtx(relays, "again", func(_ *relay, ctx context.Context, _ None) (int, error) {
		return echoes.Call(ctx, self.Load(), nil)
	})
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, relays, &relay{})
		self.Store(o)
		// The actor messages the object, which is busy, and then answers it.
		via := plainActor(t, s, func(ctx proto.Context) {
			if ctx.Message() == "go" {
				ctx.Send(o.PID(), &actor.Invoke{Operation: "echo"})
				ctx.Respond("gone")
			}
		})
		for i := range 20 {
			got := soon(t, s.system, calling(background, o, ask, errand{s, via}))
			require.Equal(t, outcome[any]{"gone", nil}, got)
			eventually(t, "the echo has run", func() bool { n, _ := echoes.Call(background, o, nil); return n == i+1 })
		}
		// With the context handed on the circle is named, also when it begins by message.
		var deadlock *activeobject.DeadlockError
		_, err := again.Call(background, o, nil)
		require.ErrorAs(t, err, &deadlock)
		_, err = actor.Ask[int](background, s.system, o.PID(), "again", nil)
		require.ErrorAs(t, err, &deadlock)
		require.Contains(t, err.Error(), o.Name()+".again waits for "+o.Name()+".echoes")
	})
}

func TestShutdownLetsAnObjectCallThoseThatWereThereBeforeIt(t *testing.T) {
	ts := newTanks()
	type order struct{}
	type booking struct {
		seat     *activeobject.Object[dam]
		entered  chan struct{}
		let      chan struct{}
		byString bool
	}
	for _, addressed := range []bool{false, true} {
		everywhere(t, func(t *testing.T, s *scene) {
			book := activeobject.NewType[order]("order")
			place := activeobject.ProcedureCtx(book, "place", func(_ *order, ctx context.Context, b booking) (int, error) {
				if b.entered != nil {
					close(b.entered)
					<-b.let
				}
				if b.byString {
					return actor.Ask[int](ctx, s.system, b.seat.PID(), "drain", nil)
				}
				return ts.drain.Call(ctx, b.seat, nil)
			})
			seat := newObject(t, s, ts.Type, &dam{level: 9})
			customer := newObject(t, s, book, &order{})
			if addressed {
				seat.PID()
				customer.PID()
			}
			first := booking{seat, make(chan struct{}), make(chan struct{}), addressed}
			var placed []<-chan outcome[int]
			placed = append(placed, calling(background, customer, place, first))
			soon(t, s.system, first.entered)
			for i := range 3 { // they wait, and are served while the object is drained
				placed = append(placed, calling(background, customer, place, booking{seat: seat, byString: addressed}))
				waiting(t, customer, place, i+1)
			}
			down := make(chan error, 1)
			go func() { down <- s.system.Shutdown(background) }()
			eventually(t, "it takes no more", func() bool {
				_, err := activeobject.New(s.system, ts.Type, &dam{}, s.options...)
				return err == actor.ErrClosed
			})
			close(first.let)
			for i, c := range placed {
				require.Equal(t, outcome[int]{i + 1, nil}, soon(t, s.system, c))
			}
			require.NoError(t, soon(t, s.system, down))
			_, err := ts.drain.Call(background, seat, nil)
			requireStopped(t, seat.Name(), err)
			if addressed { // the actors have ended, too
				for _, pid := range []*actor.PID{seat.PID(), customer.PID()} {
					_, there := s.system.Actors().ProcessRegistry.GetLocal(pid.Id)
					require.False(t, there)
				}
			}
		})
	}
}

func TestShutdownStopsWhatIsLeftWhenItsContextEnds(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{})
		other := newObject(t, s, ts.Type, &dam{})
		other.PID()
		waits := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		release := braked(t, s, other, ts.hold)
		behind := calling(background, other, ts.drain, nil)
		waiting(t, other, ts.drain, 1)
		ctx, cancel := context.WithCancel(background)
		down := make(chan error, 1)
		go func() { down <- s.system.Shutdown(ctx) }()
		eventually(t, "it takes no more", func() bool { return ts.fill.Tell(background, other, 0) != nil })
		cancel()
		require.Equal(t, context.Canceled, within(t, release, down))
		requireStopped(t, o.Name(), soon(t, s.system, waits).err)
		requireStopped(t, other.Name(), soon(t, s.system, behind).err)
		release()
	})
}

func TestARefusalByAFullQueueIsAReplyOrADeadLetter(t *testing.T) {
	const senders, bound = 10_000, 16
	ts := newTanks()
	for name, overflow := range map[string]activeobject.Overflow{"refuse": activeobject.Refuse, "wait": activeobject.Wait} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := newObject(t, s, ts.Type, &dam{level: senders}, activeobject.Bound(bound, overflow))
				pid, root := o.PID(), s.system.Actors().Root
				var dead atomic.Int32
				sub := s.system.Actors().EventStream.Subscribe(func(e any) {
					if d, ok := e.(*proto.DeadLetterEvent); ok && d.PID == pid {
						dead.Add(1)
					}
				})
				defer s.system.Actors().EventStream.Unsubscribe(sub)
				release := braked(t, s, o, ts.hold)
				var all sync.WaitGroup
				futures := make([]actor.Future[any], senders)
				for i := range futures {
					all.Go(func() {
						futures[i] = s.system.Request(background, pid, &actor.Invoke{Operation: "drain"})
						root.Send(pid, &actor.Invoke{Operation: "drain"})
					})
				}
				all.Wait()
				require.Equal(t, bound, ts.drain.Waiting(o), "no more than may")
				release()
				served, full := 0, 0
				for _, f := range futures {
					_, err := soonOutcome(t, s, f)
					if err == nil {
						served++
						continue
					}
					require.ErrorAs(t, err, new(*activeobject.FullError))
					full++
				}
				eventually(t, "all messages are accounted for", func() bool {
					return int(dead.Load())+full+ts.ran(o) == 2*senders
				})
				require.Equal(t, bound, ts.ran(o))
				require.LessOrEqual(t, served, bound)
			})
		})
	}
}

// soonOutcome is soon for a future.
func soonOutcome[R any](t *testing.T, s *scene, f actor.Future[R]) (R, error) {
	t.Helper()
	soon(t, s.system, f.Done())
	return f.Await(background)
}

func TestResultsThatAreNeverAwaitedCostNothingLasting(t *testing.T) {
	ts := newTanks()
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	everywhere(t, func(t *testing.T, s *scene) {
		options := []activeobject.Option{activeobject.Bound(8, activeobject.Refuse)}
		if s.parallel() { // or it has a goroutine for each
			options = append(options, synchronizer.Limit(8))
		}
		o := newObject(t, s, ts.Type, &dam{}, options...)
		pid := o.PID()
		many := func(n int) {
			ctx, cancel := context.WithCancel(background)
			for range n {
				s.system.Request(ctx, pid, &actor.Invoke{Operation: "drain"})
				s.system.Request(background, pid, &actor.Invoke{Operation: "runs"})
				ts.runs.Begin(background, o, nil)
				ts.drain.Begin(ctx, o, nil)
			}
			cancel()
			waiting(t, o, ts.drain, 0)
			require.Zero(t, ts.ran(o))
		}
		many(1000)
		before := heap()
		many(size(20_000, 5_000, 2_000))
		after := heap()
		require.Less(t, int64(after)-int64(before), int64(1<<20), "memory of the requests is kept")
	})
}
