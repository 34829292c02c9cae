package resource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var background = context.Background()

var ways = map[string][]activeobject.Option{
	"borrowed":          nil,
	"without fast path": {activeobject.NoFastPath()},
	"pooled":            {activeobject.PooledThreads()},
	"dedicated":         {activeobject.DedicatedThread()},
}

func everyWay(t *testing.T, test func(t *testing.T, system *actor.System, options []activeobject.Option)) {
	for name, options := range ways {
		t.Run(name, func(t *testing.T) { test(t, objecttest.NewSystem(t), options) })
	}
}

// job is what the clients of the tests come with.
type job struct {
	name     string
	priority int
}

func newScheduler(t require.TestingT, system *actor.System, policy *Policy[job], options ...activeobject.Option) *Scheduler[job] {
	s, err := New(system, policy, options...)
	require.NoError(t, err)
	return s
}

// entry is a request to enter that has been handed in: a future, or a calling.
type entry interface {
	Await(context.Context) (*Grant[job], error)
	Ready() bool
	Withdraw() bool
}

// calling is a call of Enter on a goroutine of its own.
type calling struct {
	over   chan struct{}
	cancel context.CancelFunc
	grant  *Grant[job]
	err    error
}

// enter calls Enter on a goroutine of its own, and returns when it waits or is over.
func enter(ctx context.Context, s *Scheduler[job], j job, terms ...Term) *calling {
	ctx, cancel := context.WithCancel(ctx)
	c, waiting := &calling{over: make(chan struct{}), cancel: cancel}, s.Waiting()
	go func() {
		defer close(c.over)
		c.grant, c.err = s.Enter(ctx, j, terms...)
	}()
	for s.Waiting() == waiting && !c.Ready() {
		runtime.Gosched()
	}
	return c
}

func (c *calling) Await(context.Context) (*Grant[job], error) {
	<-c.over
	return c.grant, c.err
}

func (c *calling) Ready() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

func (c *calling) Withdraw() bool {
	c.cancel()
	<-c.over
	return c.err != nil
}

// try makes an attempt to enter.
func try(s *Scheduler[job], j job, terms ...Term) (*Grant[job], error) {
	return s.Enters().Try(background, Request[job]{j, terms})
}

// ended requires that the error says that a grant has ended, and why.
func ended(t require.TestingT, err error, reason Reason) {
	var e *EndedError
	require.ErrorAs(t, err, &e)
	require.Equal(t, reason, e.Reason)
}

// policies are all of them, with the order in which they take clients that wait.
var policies = map[string]struct {
	policy func() *Policy[job]
	next   func(waiting []job) int
}{
	"FIFO": {FIFO[job], func([]job) int { return 0 }},
	"LIFO": {LIFO[job], func(w []job) int { return len(w) - 1 }},
	"ByPriority": {func() *Policy[job] { return ByPriority(func(j job) int { return j.priority }) }, func(w []job) int {
		best := 0
		for i, j := range w {
			if j.priority > w[best].priority {
				best = i
			}
		}
		return best
	}},
	"Ordered": {func() *Policy[job] {
		return Ordered(func(a, b Client[job]) bool { return a.Data.priority < b.Data.priority })
	}, func(w []job) int {
		best := 0
		for i, j := range w {
			if j.priority < w[best].priority {
				best = i
			}
		}
		return best
	}},
	"Choosing": {func() *Policy[job] {
		return Choosing(func(w []Client[job]) int {
			for i, c := range w {
				if i > 0 && c.Arrival <= w[i-1].Arrival {
					panic("not in the order of arrival")
				}
			}
			return w[0].Data.priority & 0xff % len(w)
		})
	}, func(w []job) int { return w[0].priority & 0xff % len(w) }},
}

func TestPoliciesDoWhatTheModelDoes(t *testing.T) {
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
				rapid.Check(t, func(t *rapid.T) {
					s := newScheduler(t, system, p.policy(), options...)
					defer s.o.Stop()
					futures := map[job]entry{}
					var waiting []job
					var holder *Grant[job]
					n := 0
					grant := func(t *rapid.T) {
						if holder == nil && len(waiting) > 0 {
							i := p.next(waiting)
							j := waiting[i]
							waiting = slices.Delete(waiting, i, i+1)
							g, err := futures[j].Await(background)
							require.NoError(t, err)
							require.Equal(t, j, g.Data())
							holder = g
						}
						for _, j := range waiting {
							require.False(t, futures[j].Ready())
						}
						require.Equal(t, len(waiting), s.Waiting())
					}
					t.Repeat(map[string]func(*rapid.T){
						"enter": func(t *rapid.T) {
							n++
							j := job{fmt.Sprint(n), rapid.IntRange(0, 3).Draw(t, "priority")}
							if rapid.Bool().Draw(t, "by a call") {
								futures[j] = enter(background, s, j)
							} else {
								f := s.Enters().Send(background, Request[job]{Data: j})
								for s.Waiting() == len(waiting) && !f.Ready() {
									runtime.Gosched()
								}
								futures[j] = f
							}
							waiting = append(waiting, j)
							if holder == nil { // no other waits
								holder, waiting = nil, []job{j}
								g, err := futures[j].Await(background)
								require.NoError(t, err)
								holder, waiting = g, nil
							}
							grant(t)
						},
						"done": func(t *rapid.T) {
							if holder != nil {
								require.NoError(t, holder.Done())
								ended(t, holder.Done(), WasDone)
								holder = nil
								grant(t)
							}
						},
						"withdraw": func(t *rapid.T) {
							if len(waiting) > 0 {
								i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
								require.True(t, futures[waiting[i]].Withdraw())
								_, err := futures[waiting[i]].Await(background)
								require.ErrorIs(t, err, context.Canceled)
								waiting = slices.Delete(waiting, i, i+1)
								grant(t)
							}
						},
						"try": func(t *rapid.T) {
							g, err := try(s, job{"try", 0})
							if holder != nil {
								require.ErrorIs(t, err, activeobject.ErrRefused)
								return
							}
							require.NoError(t, err)
							require.NoError(t, g.Done())
						},
					})
				})
			})
		})
	}
}

func TestNeverTwoHoldTheResource(t *testing.T) {
	const clients, turns = 8, 100
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
				s := newScheduler(t, system, p.policy(), options...)
				holders, granted, canceled := 0, atomic.Int64{}, atomic.Int64{}
				var all sync.WaitGroup
				for c := range clients {
					all.Go(func() {
						rnd := rand.New(rand.NewPCG(uint64(c), 1))
						for i := range turns {
							ctx, cancel := context.WithCancel(background)
							if rnd.IntN(3) == 0 {
								go cancel()
							}
							err := s.With(ctx, job{priority: i % 5}, func(context.Context) error {
								if holders++; holders != 1 { // a race, if it is wrong
									t.Errorf("%d hold it", holders)
								}
								if rnd.IntN(4) == 0 {
									runtime.Gosched()
								}
								holders--
								return nil
							})
							switch {
							case err == nil:
								granted.Add(1)
							case errors.Is(err, context.Canceled):
								canceled.Add(1)
							default:
								t.Error(err)
							}
							cancel()
						}
					})
				}
				all.Wait()
				require.EqualValues(t, clients*turns, granted.Load()+canceled.Load())
				require.Zero(t, s.Waiting())
				g, err := try(s, job{})
				require.NoError(t, err)
				require.NoError(t, g.Done())
			})
		})
	}
}

func TestOnlyTheGrantCanBeDoneAndOnce(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s := newScheduler(t, system, FIFO[job](), append(options, activeobject.Name("printer"))...)
		one, err := s.Enter(background, job{})
		require.NoError(t, err)
		duplicate := *one
		f := enter(background, s, job{})
		require.EqualError(t, duplicate.Done(), "sluice: printer: done: this is not the grant that was granted, but perhaps a copy of it")
		require.NoError(t, one.Done())
		two, err := f.Await(background)
		require.NoError(t, err)
		require.EqualError(t, one.Done(), "sluice: printer: the grant has ended: it is done")
		_, err = s.Dones().Send(background, one).Await(background)
		ended(t, err, WasDone)
		_, err = try(s, job{})
		require.ErrorIs(t, err, activeobject.ErrRefused, "the second still has it")
		_, err = s.Dones().Send(background, two).Await(background)
		require.NoError(t, err)

		var foreign *ForeignError
		require.ErrorAs(t, (&Grant[job]{}).Done(), &foreign)
		require.ErrorAs(t, (*Grant[job])(nil).Done(), &foreign)
		_, err = s.Dones().Send(background, nil).Await(background)
		require.ErrorAs(t, err, &foreign)
	})
}

func TestALeaseEndsAGrant(t *testing.T) {
	for name, options := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScheduler(t, objecttest.NewSystem(t), FIFO[job](), options...)
				start := time.Now()
				one, err := s.Enter(background, job{}, Lease(time.Minute))
				require.NoError(t, err)
				two := enter(background, s, job{}, Lease(time.Hour))
				g, err := two.Await(background)
				require.NoError(t, err)
				require.Equal(t, time.Minute, time.Since(start))
				ended(t, one.Done(), LeaseOver)
				time.Sleep(59 * time.Minute)
				require.NoError(t, g.Done(), "its lease began with the grant")
				time.Sleep(time.Hour)
				three, err := try(s, job{}, Lease(time.Second))
				require.NoError(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				four, err := try(s, job{})
				require.NoError(t, err)
				ended(t, three.Done(), LeaseOver)
				require.NoError(t, four.Done())
			})
		})
	}
}

func TestAGrantEndsWithAContext(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s := newScheduler(t, system, FIFO[job](), options...)
		cause := errors.New("the client hung up")
		life, die := context.WithCancelCause(background)
		one, err := s.Enter(background, job{}, During(life))
		require.NoError(t, err)
		waits := enter(background, s, job{}, During(life))
		two := enter(background, s, job{})
		objecttest.Waiting(t, s.o, s.ops.grant, 2)
		die(cause)
		g, err := two.Await(background)
		require.NoError(t, err, "it is given back, and what waited with the same context has gone")
		err = one.Done()
		ended(t, err, ContextEnded)
		require.ErrorIs(t, err, cause)
		_, err = waits.Await(background)
		ended(t, err, ContextEnded)
		require.ErrorIs(t, err, cause)
		_, err = s.Enter(background, job{}, During(life))
		ended(t, err, ContextEnded)
		require.NoError(t, g.Done())
	})
}

func TestAGrantEndsWithAnActor(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s := newScheduler(t, system, FIFO[job](), options...)
		root := system.Actors().Root
		pid := root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
		one, err := s.Enter(background, job{}, Watched(pid))
		require.NoError(t, err)
		waits := enter(background, s, job{}, Watched(pid))
		two := enter(background, s, job{})
		objecttest.Waiting(t, s.o, s.ops.grant, 2)
		root.Stop(pid)
		g, err := two.Await(background)
		require.NoError(t, err)
		ended(t, one.Done(), ActorEnded)
		// The next one may have been granted it before the news came.
		if gone, e := waits.Await(background); e != nil {
			err = e
		} else {
			err = gone.Done()
		}
		ended(t, err, ActorEnded)
		require.ErrorContains(t, err, pid.Id)

		// A client that has ended gets nothing, or loses it at once.
		late, err := s.Enter(background, job{}, Watched(pid))
		if err == nil {
			err = late.Done()
		}
		ended(t, err, ActorEnded)
		require.NoError(t, g.Done())
	})
}

func TestAContextThatEndsLaterThanTheWaitEndsNothing(t *testing.T) {
	s := newScheduler(t, objecttest.NewSystem(t), FIFO[job]())
	ctx, cancel := context.WithCancel(background)
	g, err := s.Enter(ctx, job{}, Lease(time.Hour))
	require.NoError(t, err)
	cancel()
	_, err = s.Enter(ctx, job{}, Lease(time.Hour))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, g.Done())
}

func TestAFunctionThatHoldsTheResourceGivesItBack(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		s := newScheduler(t, system, FIFO[job](), options...)
		failure := errors.New("paper jam")
		require.ErrorIs(t, s.With(background, job{}, func(context.Context) error { return failure }), failure)
		require.PanicsWithValue(t, "fire", func() {
			s.With(background, job{}, func(context.Context) error { panic("fire") }, Lease(time.Hour))
		})
		var gone sync.WaitGroup
		gone.Go(func() {
			s.With(background, job{}, func(context.Context) error { runtime.Goexit(); return nil })
		})
		gone.Wait()
		life, die := context.WithCancel(background)
		err := s.With(background, job{}, func(ctx context.Context) error {
			require.NoError(t, ctx.Err())
			die()
			<-ctx.Done()
			var e *EndedError
			require.ErrorAs(t, context.Cause(ctx), &e)
			return nil
		}, During(life))
		ended(t, err, ContextEnded)
		require.NoError(t, s.With(background, job{}, func(context.Context) error {
			_, err := try(s, job{})
			require.ErrorIs(t, err, activeobject.ErrRefused)
			return nil
		}))
	})
}

func TestEntersLeaveNothingBehind(t *testing.T) {
	const enters = 1_000
	system := objecttest.NewSystem(t)
	s := newScheduler(t, system, FIFO[job]())
	pid := system.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
	life, die := context.WithCancel(background)
	defer die()
	turn := func() {
		g, err := s.Enter(background, job{}, Lease(time.Hour), Watched(pid), During(life))
		require.NoError(t, err)
		_, err = try(s, job{}, Lease(time.Hour), Watched(pid), During(life))
		require.ErrorIs(t, err, activeobject.ErrRefused)
		require.True(t, enter(background, s, job{}, Lease(time.Hour), Watched(pid), During(life)).Withdraw())
		require.NoError(t, g.Done())
		g, err = s.Enter(background, job{}, Lease(time.Hour), Watched(pid), During(life))
		require.NoError(t, err)
		require.NoError(t, s.Dones().Do(background, g))
	}
	live := func() (objects uint64, goroutines int) {
		for range 3 { // a watch is stopped on a goroutine of its own
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects, runtime.NumGoroutine()
	}
	turn()
	before, threads := live()
	for range enters {
		turn()
	}
	require.Eventually(t, func() bool {
		after, now := live()
		return now <= threads+2 && after < before+enters/2
	}, 20*time.Second, 10*time.Millisecond)
}

func TestAStoppedSchedulerGrantsNothing(t *testing.T) {
	s := newScheduler(t, objecttest.NewSystem(t), FIFO[job]())
	g, err := s.Enter(background, job{}, Lease(time.Hour))
	require.NoError(t, err)
	f := enter(background, s, job{}, Lease(time.Hour))
	<-s.Object().Stop()
	_, err = f.Await(background)
	require.ErrorIs(t, err, activeobject.ErrStopped)
	require.ErrorIs(t, g.Done(), activeobject.ErrStopped)
	_, err = s.Enter(background, job{})
	require.ErrorIs(t, err, activeobject.ErrStopped)
}

func TestAGrantCanBeSelected(t *testing.T) {
	system := objecttest.NewSystem(t)
	one, two := newScheduler(t, system, FIFO[job]()), newScheduler(t, system, LIFO[job]())
	g, err := one.Enter(background, job{})
	require.NoError(t, err)
	first, second := one.EnterCase(job{name: "first"}), two.EnterCase(job{name: "second"})
	i, err := activeobject.Select(background, first, second)
	require.NoError(t, err)
	require.Equal(t, 1, i)
	h, err := second.Result()
	require.NoError(t, err)
	require.Equal(t, "second", h.Data().name)
	require.NoError(t, g.Done())
	require.NoError(t, h.Done())
	require.Zero(t, one.Waiting())
}

func TestAPolicySeesTheClientsThatWait(t *testing.T) {
	seen := make(chan string, 1)
	s := newScheduler(t, objecttest.NewSystem(t), Choosing(func(w []Client[job]) int {
		var all strings.Builder
		for _, c := range w {
			fmt.Fprintf(&all, "%v:%s:%v ", c.Client, c.Data.name, !c.Deadline.IsZero())
		}
		select {
		case seen <- all.String():
		default:
		}
		return len(w) - 1
	}))
	g, err := s.Enter(background, job{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(activeobject.WithClient(background, "ann"), time.Hour)
	defer cancel()
	one := enter(ctx, s, job{name: "letter"})
	two := enter(background, s, job{name: "book"})
	objecttest.Waiting(t, s.o, s.ops.grant, 2)
	w := s.Object().Explain().Waiting[0]
	require.Equal(t, enterByCall, w.Operation)
	require.Contains(t, w.Reason.String(), "available")
	require.NoError(t, g.Done())
	g, err = two.Await(background)
	require.NoError(t, err)
	require.Equal(t, "ann:letter:true <nil>:book:false ", <-seen)
	require.NoError(t, g.Done())
	g, err = one.Await(background)
	require.NoError(t, err)
	require.NoError(t, g.Done())
}

func TestAPolicyThatPanicsFailsThoseThatItWasAskedAbout(t *testing.T) {
	s := newScheduler(t, objecttest.NewSystem(t), Choosing(func([]Client[job]) int { panic("undecided") }))
	g, err := s.Enter(background, job{})
	require.NoError(t, err)
	one, two := enter(background, s, job{}), enter(background, s, job{})
	objecttest.Waiting(t, s.o, s.ops.grant, 2)
	require.NoError(t, g.Done())
	for _, f := range []entry{one, two} {
		_, err := f.Await(background)
		var p *activeobject.PolicyError
		require.ErrorAs(t, err, &p)
	}
	g, err = s.Enter(background, job{})
	require.NoError(t, err, "the resource is available")
	require.NoError(t, g.Done())
}

func TestWhatMakesNoSenseIsNamed(t *testing.T) {
	system := objecttest.NewSystem(t)
	for want, policy := range map[string]*Policy[job]{
		"sluice: resource.New: policy is nil: pass one, such as FIFO":                                                            nil,
		"sluice: resource.New: policy is ByPriority of a nil function: pass one that returns the priority of the data":           ByPriority[job](nil),
		"sluice: resource.New: policy is Ordered by a nil function: pass one that says which of two clients comes first":         Ordered[job](nil),
		"sluice: resource.New: policy is Choosing by a nil function: pass one that returns the index of the client that is next": Choosing[job](nil),
	} {
		_, err := New(system, policy)
		require.EqualError(t, err, want)
		var a *activeobject.ArgumentError
		require.ErrorAs(t, err, &a)
	}
	_, err := New(nil, FIFO[job]())
	var o *activeobject.OptionError
	require.ErrorAs(t, err, &o)

	s := newScheduler(t, system, FIFO[job]())
	var none context.Context
	for want, term := range map[string]Term{
		"sluice: resource.Enter: lease is 0s: it must be positive":                                   Lease(0),
		"sluice: resource.Enter: watched is nil: pass the PID of the actor that the grant ends with": Watched(nil),
		"sluice: resource.Enter: during is nil: pass the context that the grant ends with":           During(none),
		"sluice: resource.Enter: term is nil: leave it out":                                          nil,
	} {
		_, err := s.Enter(background, job{}, term)
		require.EqualError(t, err, want)
	}
	err = s.With(background, job{}, nil)
	require.EqualError(t, err, "sluice: resource.With: f is nil: pass what to do with the resource")
	g, err := try(s, job{})
	require.NoError(t, err, "nothing has changed")
	require.NoError(t, g.Done())
}
