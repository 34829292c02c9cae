package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// inUse returns how much memory is in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A quay has berths with numbers, of which one is free.
type quay struct{ free, landed int }

func (q *quay) at(n int) bool { return q.free == n }

type quays struct {
	*activeobject.Type[quay]
	land  *activeobject.Family[quay, int, int, int]
	clear *activeobject.Operation[quay, int, None]
	block *activeobject.Operation[quay, func(), None]
}

func newQuays() quays {
	same := func(n int) int { return n }
	t := activeobject.NewType[quay]("quay")
	qs := quays{
		Type:  t,
		land:  activeobject.EntryFamily(t, "land", func(q *quay, n int) (int, error) { q.landed++; return n, nil }, same).WhenKey("free", (*quay).at),
		clear: activeobject.Procedure(t, "clear", activeobject.Arg(func(q *quay, n int) { q.free = n })),
		block: activeobject.ProcedureCtx(t, "block", func(_ *quay, _ context.Context, f func()) (None, error) { f(); return nil, nil }),
	}
	activeobject.Opens(qs.clear, qs.land, same)
	activeobject.OpensEach(qs.land.Operation, qs.land, func(int, func(int)) {})
	return qs
}

func TestKeysThatAreGoneCostNothing(t *testing.T) {
	keys := size(1_000_000, 200_000, 50_000)
	qs := newQuays()
	s := &scene{system: newSystem(t)}
	state := &quay{free: -1}
	o := newObject(t, s, qs.Type, state, activeobject.NoFastPath())
	before := inUse()
	for n := range keys {
		f := qs.land.Begin(background, o, n) // it waits, for its key is not free
		_, err := qs.clear.Call(background, o, n)
		require.NoError(t, err)
		got, err := f.Await(background)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	require.Less(t, inUse()-before, int64(2<<20), "nothing is kept of any number of keys")
	require.Equal(t, keys, state.landed)
	require.Empty(t, o.Explain().Waiting)
	runtime.KeepAlive(o)
}

func TestOneKeyAmongManyIsOpenedByOneEvaluation(t *testing.T) {
	keys := size(100_000, 20_000, 5_000)
	qs := newQuays()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, qs.Type, &quay{free: -1}, activeobject.Counters())
		all := make([]activeobject.Future[int], keys)
		for n := range all {
			all[n] = qs.land.Send(background, o, n)
		}
		require.NoError(t, o.Do(background, func(*quay) error { return nil }))   // may have opened all
		require.NoError(t, o.View(background, func(*quay) error { return nil })) // their guards have been evaluated before it starts
		before := qs.land.Stats(o).Evaluations
		for i, n := range []int{keys / 2, 7, keys - 1} {
			_, err := qs.clear.Call(background, o, n)
			require.NoError(t, err)
			require.Equal(t, outcome[int]{result: n}, soon(t, s.system, awaiting(background, all[n])))
			require.EqualValues(t, i+1, qs.land.Stats(o).Evaluations-before, "one evaluation")
		}
		<-o.Stop()
	})
}

// Ten thousand senders, by futures, tells and messages, at an object whose body is
// stuck: no more wait than may, all others are told, and little is kept.
func TestAnOverloadOfEveryKindIsToldAndKeepsOnlyTheBound(t *testing.T) {
	const senders, bound = 10_000, 100
	qs := newQuays()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest} {
			o := newObject(t, s, qs.Type, &quay{free: 1}, activeobject.Bound(bound, overflow))
			in, out := make(chan struct{}), make(chan struct{})
			busy := calling(background, o, qs.block, func() { close(in); <-out })
			soon(t, s.system, in)
			var full, ran, other atomic.Int64
			count := func(err error) {
				switch {
				case err == nil:
					ran.Add(1)
				case errors.As(err, new(*activeobject.FullError)):
					full.Add(1)
				default:
					other.Add(1)
				}
			}
			pid, _ := s.system.Actors().ProcessRegistry.Add(&answered{func(r *actor.Reply) { count(r.Err) }}, s.system.Actors().ProcessRegistry.NextId())
			before := inUse()
			var all sync.WaitGroup
			for sender := range 100 {
				all.Go(func() {
					for i := range senders / 100 {
						if (sender+i)%2 == 0 {
							actor.Then(qs.land.Send(background, o, 1), func(_ int, err error) (None, error) { count(err); return nil, nil })
						} else {
							s.system.Actors().Root.RequestWithCustomSender(o.PID(), &actor.Invoke{Operation: "land", Argument: 1}, pid)
						}
					}
				})
			}
			all.Wait()
			eventually(t, "all but those that wait are told", func() bool { return full.Load() == senders-bound })
			require.Equal(t, bound, qs.land.Waiting(o))
			require.Less(t, inUse()-before, int64(4<<20))
			close(out)
			require.NoError(t, soon(t, s.system, busy).err)
			eventually(t, "all are told", func() bool { return full.Load()+ran.Load()+other.Load() == senders })
			require.Equal(t, [2]int64{bound, 0}, [2]int64{ran.Load(), other.Load()})
			landed := 0
			require.NoError(t, o.View(background, func(q *quay) error { landed = q.landed; return nil }))
			require.Equal(t, bound, landed)
			require.EqualValues(t, senders-bound, qs.land.Stats(o).Refusals)
			s.system.Actors().ProcessRegistry.Remove(pid)
			<-o.Stop()
		}
	})
}

// answered is a process that takes replies.
type answered struct{ do func(*actor.Reply) }

func (p *answered) SendUserMessage(_ *actor.PID, message any) {
	_, body, _ := proto.UnwrapEnvelope(message)
	if r, ok := body.(*actor.Reply); ok {
		p.do(r)
	}
}
func (p *answered) SendSystemMessage(*actor.PID, any) {}
func (p *answered) Stop(*actor.PID)                   {}

// A lamp has a switch, and a request that may not pass at once can be requeued.
type lamp struct {
	on  bool
	log []string
}

type lamps struct {
	*activeobject.Type[lamp]
	read *activeobject.Operation[lamp, string, string] // sends its request on to late
	late *activeobject.Operation[lamp, string, string] // when on
	set  *activeobject.Operation[lamp, bool, None]
}

func newLamps() lamps {
	t := activeobject.NewType[lamp]("lamp")
	ls := lamps{Type: t}
	ls.late = activeobject.Entry(t, "late", func(l *lamp, name string) (string, error) {
		l.log = append(l.log, name)
		return name, nil
	}).When("on", func(l *lamp) bool { return l.on })
	ls.read = activeobject.Procedure(t, "read", func(_ *lamp, name string) (string, error) { return ls.late.Requeue(name) })
	ls.set = activeobject.Procedure(t, "set", activeobject.Arg(func(l *lamp, on bool) { l.on = on }))
	return ls
}

// However a request was made, and however it ends after its first turn, Queue and Done see it once.
func TestDoneIsCalledOnceForARequestWithSeveralTurns(t *testing.T) {
	ls := newLamps()
	everywhere(t, func(t *testing.T, s *scene) {
		for name, end := range map[string]func(o *activeobject.Object[lamp], cancel func()){
			"runs":     func(o *activeobject.Object[lamp], _ func()) { ls.set.Call(background, o, true) },
			"canceled": func(_ *activeobject.Object[lamp], cancel func()) { cancel() },
			"stopped":  func(o *activeobject.Object[lamp], _ func()) { o.Stop() },
		} {
			var queued, done, ran atomic.Int64
			state := &lamp{}
			o := newObject(t, s, ls.Type, state, activeobject.Interceptors(activeobject.Interceptor{
				Queue: func(ctx context.Context, r activeobject.Intercepted) (context.Context, error) {
					if r.Operation == "read" {
						queued.Add(1)
					}
					return ctx, nil
				},
				Run: func(_ context.Context, r activeobject.Intercepted, body func() error) error {
					if r.Operation != "set" {
						ran.Add(1)
					}
					return body()
				},
				Done: func(_ context.Context, r activeobject.Intercepted, _ error) {
					if r.Operation != "set" {
						done.Add(1)
					}
				},
			}))
			ctx, cancel := context.WithCancel(background)
			results := []<-chan outcome[string]{
				calling(ctx, o, ls.read, "call"),
				awaiting(background, ls.read.Send(ctx, o, "send")),
				async(func() (string, error) { ticket := ls.read.Begin(ctx, o, "begin"); return ticket.Await(background) }),
				async(func() (string, error) {
					c := ls.read.Case(o, "case")
					if i, err := activeobject.Select(ctx, c); i < 0 {
						return "", err
					}
					return c.Result()
				}),
			}
			require.NoError(t, ls.read.Tell(ctx, o, "tell"))
			waiting(t, o, ls.late, 5)
			require.Zero(t, done.Load(), "%s: none has ended", name)
			end(o, cancel)
			for _, c := range results {
				err := soon(t, s.system, c).err
				require.Equal(t, name == "runs", err == nil, "%s: %v", name, err)
			}
			eventually(t, "all are done", func() bool { return done.Load() >= 5 })
			<-o.Stop()
			require.Equal(t, [2]int64{5, 5}, [2]int64{queued.Load(), done.Load()}, name)
			if name != "runs" {
				require.Empty(t, state.log)
			}
			cancel()
		}
	})
}

// table is a lamp with a plug: nothing happens at it unless that is in the mains.
type tableLamp struct {
	lamp    lamp
	plugged bool
}

// What is not declared is not restricted by a derived type, but what it changes is
// seen by the guards of that.
func TestWhatIsDoneAtADerivedObjectMeetsItsGuards(t *testing.T) {
	ls := newLamps()
	tables := activeobject.Derive(ls.Type, "table lamp", func(t *tableLamp) *lamp { return &t.lamp }).
		Strengthen("plugged", func(t *tableLamp) bool { return t.plugged }, ls.set, ls.read)
	read, late := activeobject.In(tables, ls.read), activeobject.In(tables, ls.late)
	lit := guards.When("lit", func(t *tableLamp) bool { return t.lamp.on && t.plugged })
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, tables, &tableLamp{})
		sentOn := calling(background, o, read, "one") // requeued from one inherited operation to another
		waiting(t, o, late, 1)
		until := async(func() (None, error) { return nil, o.Until(background, lit) })
		when := async(func() (None, error) {
			return nil, o.DoWhen(background, lit, func(t *tableLamp) error { t.lamp.log = append(t.lamp.log, "when"); return nil })
		})
		eventually(t, "all wait", func() bool { return len(o.Explain().Waiting) == 3 })
		require.NoError(t, o.Do(background, func(t *tableLamp) error { t.lamp.on = true; return nil }))
		require.Len(t, o.Explain().Waiting, 3, "on is not enough: it is not plugged")
		_, err := late.Try(background, o, "no")
		var refused *activeobject.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "plugged", refused.Guard)

		require.NoError(t, o.Do(background, func(t *tableLamp) error { t.plugged = true; return nil }))
		require.Equal(t, outcome[string]{result: "one"}, soon(t, s.system, sentOn))
		require.NoError(t, soon(t, s.system, until).err)
		require.NoError(t, soon(t, s.system, when).err)
		var log []string
		require.NoError(t, o.View(background, func(t *tableLamp) error { log = append(log, t.lamp.log...); return nil }))
		require.ElementsMatch(t, []string{"one", "when"}, log)
	})
}

// What makes no sense is a typed error, and changes nothing: not the state, not what
// waits, and no body runs.
func TestSenselessCallsAreTypedErrorsAndChangeNothing(t *testing.T) {
	type hatch struct{ open, ran bool }
	typ := activeobject.NewType[hatch]("hatch")
	through := activeobject.Entry(typ, "through", func(h *hatch, _ int) (int, error) { h.ran = true; return 1, nil }).When("open", func(h *hatch) bool { return h.open })
	send := activeobject.Procedure(typ, "send", func(_ *hatch, to *activeobject.Object[hatch]) (int, error) { return through.RequeueTo(to, 1) })
	late, cancel := context.WithDeadline(background, time.Now().Add(-time.Hour))
	t.Cleanup(cancel)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &hatch{}, activeobject.ByPriority())
		gone := newObject(t, s, typ, &hatch{open: true})
		<-gone.Stop()
		f := through.Send(background, o, 1)
		eventually(t, "it waits", func() bool { w := o.Explain().Waiting; return len(w) == 1 && w[0].Reason.Guard == "open" })
		open := newObject(t, s, typ, &hatch{open: true})
		x := through.Case(open, 1)
		selected := func(cases ...activeobject.Alternative) error {
			i, err := activeobject.Select(background, cases...)
			require.Equal(t, -1, i)
			return err
		}
		awaited := func(all activeobject.Future[[]int]) error { _, err := all.Await(background); return err }
		first := func(f activeobject.Future[int]) error { _, err := f.Await(background); return err }
		made := func(option activeobject.Option) error {
			o, err := activeobject.New(s.system, typ, &hatch{}, option)
			require.Nil(t, o)
			return err
		}
		of := func(_ any, err error) error { return err }
		for name, c := range map[string]struct{ err, want any }{
			"call, deadline past":     {of(through.Call(late, open, 1)), context.DeadlineExceeded},
			"try, deadline past":      {of(through.Try(late, open, 1)), context.DeadlineExceeded},
			"send, deadline past":     {first(through.Send(late, open, 1)), context.DeadlineExceeded},
			"tell, deadline past":     {through.Tell(late, open, 1), context.DeadlineExceeded},
			"do, deadline past":       {open.Do(late, func(h *hatch) error { h.ran = true; return nil }), context.DeadlineExceeded},
			"select, deadline past":   {of(activeobject.Select(late, x)), context.DeadlineExceeded},
			"select, no case":         {selected(), new(*activeobject.SelectError)},
			"select, a case twice":    {selected(x, x), new(*activeobject.SelectError)},
			"all, a future twice":     {awaited(actor.All(f, f)), new(*actor.FutureError)},
			"first, a future twice":   {first(actor.First(f, f)), new(*actor.FutureError)},
			"all of none":             {awaited(actor.All[int]()), new(*actor.FutureError)},
			"requeue to the stopped":  {of(send.Call(background, open, gone)), new(*activeobject.StoppedError)},
			"a negative bound":        {made(activeobject.Bound(-1, activeobject.Refuse)), new(*activeobject.OptionError)},
			"a nil less":              {made(activeobject.ByOrder(nil)), new(*activeobject.OptionError)},
			"a nil choice":            {made(activeobject.ByChoice(nil)), new(*activeobject.OptionError)},
			"priority of the unknown": {o.SetPriority(1<<40, 3), new(*activeobject.PriorityError)},
			"priority of none":        {o.SetPriority(0, 3), new(*activeobject.PriorityError)},
			"priority of the ended":   {actor.Settled(1, nil).SetPriority(3), new(*activeobject.PriorityError)},
		} {
			err, _ := c.err.(error)
			if want, ok := c.want.(error); ok {
				require.ErrorIs(t, err, want, name)
			} else {
				require.ErrorAs(t, err, c.want, name)
			}
		}
		require.False(t, f.Ready())
		before := o.Explain()
		require.Len(t, before.Waiting, 1)
		require.Error(t, o.SetPriority(1<<40, 3))
		require.Equal(t, before.Step, o.Explain().Step)
		for _, o := range []*activeobject.Object[hatch]{o, open} {
			require.NoError(t, o.View(background, func(h *hatch) error {
				require.False(t, h.ran, "no body has run")
				return nil
			}))
		}
		require.True(t, f.Withdraw(), "it waits as before")
	})
}
