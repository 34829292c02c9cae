package activeobject_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// wish is a request to a ledger: its operation and number, and the context to make
// it with; nil stands for the background.
type wish struct {
	name string
	ctx  context.Context
}

func wishes(names ...string) (all []wish) {
	for _, w := range names {
		all = append(all, wish{name: w})
	}
	return all
}

// data returns the argument of a request, if that is a string, without the name of
// the operation.
func data(c *activeobject.Candidate) string {
	s, _ := c.Argument.(string)
	return s[min(len(s), 1):]
}

// op returns the operation that a request is named by.
func (l ledgers) op(name string) *activeobject.Operation[ledger, string, None] {
	return map[byte]*activeobject.Operation[ledger, string, None]{'a': l.a, 'b': l.b, 'c': l.c}[name[0]]
}

// queue makes the wishes, one after the other, at a busy object. Calls and futures
// take turns.
func (l ledgers) queue(t *testing.T, o *activeobject.Object[ledger], all ...wish) map[string]<-chan outcome[None] {
	t.Helper()
	results := map[string]<-chan outcome[None]{}
	before := l.a.Waiting(o) + l.b.Waiting(o) + l.c.Waiting(o)
	for i, w := range all {
		ctx := w.ctx
		if ctx == nil {
			ctx = background
		}
		if i%2 == 0 {
			results[w.name] = calling(ctx, o, l.op(w.name), w.name)
		} else {
			results[w.name] = awaiting(background, l.op(w.name).Send(ctx, o, w.name))
		}
		eventually(t, "the request has arrived", func() bool {
			return l.a.Waiting(o)+l.b.Waiting(o)+l.c.Waiting(o) == before+i+1
		})
	}
	return results
}

// served queues the wishes at a busy object, lets it go, and returns the order in
// which they started, and how those failed that did not.
func (l ledgers) served(t *testing.T, s *scene, all []wish, options ...activeobject.Option) ([]string, map[string]error) {
	t.Helper()
	o := newObject(t, s, l.Type, &ledger{}, options...)
	release := braked(t, s, o, l.hold)
	results := l.queue(t, o, all...)
	release()
	errs := map[string]error{}
	for name, c := range results {
		if err := soon(t, s.system, c).err; err != nil {
			errs[name] = err
		}
	}
	log, err := l.read.Call(background, o, nil)
	require.NoError(t, err, "the object goes on")
	require.Empty(t, o.Explain().Waiting)
	return log, errs
}

func TestLIFOTakesTheLatestFirst(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		log, errs := l.served(t, s, wishes("a1", "b2", "c3", "a4", "c5", "b6"), activeobject.ByLatest())
		require.Empty(t, errs)
		require.Equal(t, []string{"b6", "c5", "a4", "c3", "b2", "a1"}, log)
	})
}

func ranked(name string, priority int) wish {
	return wish{name, activeobject.WithPriority(background, priority)}
}

func TestByPriorityTakesTheGreatestFirstAndEqualsByArrival(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		log, errs := l.served(t, s, []wish{
			ranked("a1", math.MinInt), ranked("b1", 1), {name: "c1"}, ranked("c2", 7), ranked("a2", 1), ranked("b2", -3),
			ranked("a3", 7), ranked("c3", 1), {name: "b3"}, ranked("c4", math.MaxInt),
		}, activeobject.ByPriority())
		require.Empty(t, errs)
		require.Equal(t, []string{"c4", "c2", "a3", "b1", "a2", "c3", "c1", "b3", "b2", "a1"}, log)
	})
}

func TestAPriorityCanBeChangedWhileTheRequestWaits(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &ledger{}, activeobject.ByPriority())
		release := braked(t, s, o, l.hold)
		results := l.queue(t, o, wishes("a1", "a2", "b3")...)
		future := l.c.Send(background, o, "c4")
		waiting(t, o, l.c, 1)
		var last uint64
		for _, w := range o.Explain().Waiting {
			if w.Operation == "b" {
				require.NoError(t, o.SetPriority(w.Arrival, 5))
			}
			last = max(last, w.Arrival)
		}
		require.NoError(t, future.SetPriority(9))
		require.NoError(t, future.SetPriority(4), "the last one counts")

		var none *activeobject.PriorityError
		require.ErrorAs(t, o.SetPriority(last+1, 100), &none)
		require.ErrorContains(t, none, fmt.Sprintf("no. %d", last+1))
		require.ErrorAs(t, o.SetPriority(0, 100), &none)
		release()
		for _, c := range results {
			require.NoError(t, soon(t, s.system, c).err)
		}
		_, err := future.Await(background)
		require.NoError(t, err)
		require.ErrorAs(t, future.SetPriority(1), &none, "it has ended")
		require.ErrorAs(t, actor.Settled(0, nil).SetPriority(1), &none)
		require.ErrorAs(t, new(activeobject.Future[int]).SetPriority(1), &none)
		log, _ := l.read.Call(background, o, nil)
		require.Equal(t, []string{"b3", "c4", "a1", "a2"}, log)
	})
}

func TestAPriorityIsRefusedWhereThePolicyIgnoresIt(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, option := range []activeobject.Option{
			activeobject.ByArrival(), activeobject.ByLatest(), activeobject.ByDeadline(),
			activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Priority > b.Priority }),
		} {
			o := newObject(t, s, l.Type, &ledger{}, option)
			release := braked(t, s, o, l.hold)
			f := l.a.Send(background, o, "a1")
			waiting(t, o, l.a, 1)
			before := o.Explain()
			var refused *activeobject.PriorityError
			require.ErrorAs(t, f.SetPriority(3), &refused)
			require.ErrorAs(t, o.SetPriority(before.Waiting[0].Arrival, 3), &refused)
			require.ErrorContains(t, refused, "ByPriority")
			require.Equal(t, before.Step, o.Explain().Step, "nothing has changed")
			release()
			_, err := f.Await(background)
			require.NoError(t, err)
		}
	})
}

func TestByDeadlineTakesTheEarliestFirstAndThoseWithoutLast(t *testing.T) {
	l := newLedgers()
	now := time.Now()
	at := func(d time.Time) context.Context {
		ctx, cancel := context.WithDeadline(background, d)
		t.Cleanup(cancel)
		return ctx
	}
	everywhere(t, func(t *testing.T, s *scene) {
		log, errs := l.served(t, s, []wish{
			{name: "a1"}, {"b1", at(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))}, {"c1", at(now.Add(3 * time.Hour))},
			{"a2", at(now.Add(time.Hour))}, {"b2", at(now.Add(3 * time.Hour))}, {name: "c2"}, {"a3", at(now.Add(2 * time.Hour))},
		}, activeobject.ByDeadline())
		require.Empty(t, errs)
		require.Equal(t, []string{"a2", "a3", "c1", "b2", "b1", "a1", "c2"}, log)
	})
}

func TestADeadlineThatHasPassedIsItsErrorAndNothingElse(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &ledger{}, activeobject.ByDeadline())
		late, cancel := context.WithDeadline(background, time.Now().Add(-time.Hour))
		defer cancel()
		release := braked(t, s, o, l.hold)
		before := o.Explain().Step
		_, err := l.a.Call(late, o, "a1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = l.b.Try(late, o, "b1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = l.c.Send(late, o, "c1").Await(background)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, l.a.Tell(late, o, "a2"), context.DeadlineExceeded)
		require.Equal(t, before, o.Explain().Step)
		release()
		log, err := l.read.Call(background, o, nil)
		require.NoError(t, err)
		require.Empty(t, log)
	})
}

func TestOrderedShowsTheUserAllThereIsToKnowOfTwoRequests(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(activeobject.WithClient(activeobject.WithPriority(background, 3), "ann"), deadline)
		defer cancel()
		seen := map[any]activeobject.Candidate{}
		longest := activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
			seen[a.Argument], seen[b.Argument] = *a, *b
			return len(data(a)) > len(data(b))
		})
		log, errs := l.served(t, s, []wish{{"a", ctx}, {"bbb", nil}, {"c", nil}, {"aaaa", nil}, {"bb", nil}, {"ccc", nil}}, longest)
		require.Empty(t, errs)
		require.Equal(t, []string{"aaaa", "bbb", "ccc", "bb", "a", "c"}, log, "stable")
		require.Equal(t, activeobject.Candidate{
			Operation: "a", Argument: "a", Client: "ann", Priority: 3, Deadline: deadline, Arrival: seen["a"].Arrival,
		}, seen["a"])
		c := seen["ccc"]
		require.Equal(t, activeobject.Candidate{Operation: "c", Argument: "ccc", Arrival: seen["a"].Arrival + 5}, c)
	})
}

// The resource scheduler of Lea, configured with a policy over the requests that wait, and their
// data.
func TestChoosingIsThePolicyOfAResourceScheduler(t *testing.T) {
	l := newLedgers()
	type clients = []*activeobject.Candidate
	last := func(c clients) int { return len(c) - 1 }
	first := func(clients) int { return 0 }
	favorite := func(c clients) int {
		best := 0
		for i := range c {
			if c[i].Client == "ann" && c[best].Client != "ann" {
				best = i
			}
		}
		return best
	}
	byData := func(c clients) int {
		best := 0
		for i := range c {
			if data(c[i]) > data(c[best]) {
				best = i
			}
		}
		return best
	}
	everywhere(t, func(t *testing.T, s *scene) {
		ann := activeobject.WithClient(background, "ann")
		requests := []wish{{"a2", nil}, {"b1", nil}, {"c3", ann}, {"a1", ann}, {"a4", nil}}
		for name, c := range map[string]struct {
			choose func(clients) int
			want   string
		}{
			"fifo":     {first, "a2 b1 c3 a1 a4"},
			"lifo":     {last, "a4 a1 c3 b1 a2"},
			"favorite": {favorite, "c3 a1 a2 b1 a4"},
			"priority": {byData, "a4 c3 a2 b1 a1"},
		} {
			log, errs := l.served(t, s, requests, activeobject.ByChoice(c.choose))
			require.Empty(t, errs)
			require.Equal(t, c.want, strings.Join(log, " "), name)
		}
	})
}

func TestChoosingIsOfferedOnlyThoseThatMayStart(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		var offered [][]string
		o := newObject(t, s, ts.Type, &dam{}, activeobject.ByChoice(func(c []*activeobject.Candidate) int {
			var names []string
			for _, one := range c {
				names = append(names, one.Operation)
			}
			offered = append(offered, names)
			return 0
		}))
		drained := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		release := braked(t, s, o, ts.hold)
		filled := awaiting(background, ts.fill.Send(background, o, 1))
		waiting(t, o, ts.fill, 1)
		before := len(offered)
		release()
		require.NoError(t, soon(t, s.system, filled).err)
		require.NoError(t, soon(t, s.system, drained).err)
		<-o.Stop()
		require.Equal(t, [][]string{{"fill"}, {"drain"}}, offered[before:])
	})
}

func TestAPolicyThatFailsFailsTheRequestsItComparedAndNoOthers(t *testing.T) {
	l := newLedgers()
	bad := func(c ...*activeobject.Candidate) bool {
		return slices.ContainsFunc(c, func(c *activeobject.Candidate) bool { return strings.HasSuffix(data(c), "!") })
	}
	for how, fail := range map[string]func(){
		"panic":       func() { panic("no idea") },
		"Goexit":      runtime.Goexit,
		"nil pointer": func() { var c *activeobject.Candidate; _ = c.Arrival },
	} {
		for name, option := range map[string]func() activeobject.Option{
			"the user's order": func() activeobject.Option {
				return activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
					if bad(a, b) {
						fail()
					}
					return a.Arrival < b.Arrival
				})
			},
			"the user's choice": func() activeobject.Option {
				return activeobject.ByChoice(func(c []*activeobject.Candidate) int {
					if bad(c...) {
						fail()
					}
					return 0
				})
			},
		} {
			t.Run(how+" in "+name, func(t *testing.T) {
				everywhere(t, func(t *testing.T, s *scene) {
					for range 20 {
						log, errs := l.served(t, s, wishes("a1", "b!", "c3", "a4", "c!", "b6"), option())
						require.Equal(t, 6, len(log)+len(errs), "each has ended once: %v %v", log, errs)
						for _, request := range log {
							require.NotContains(t, request, "!", "it never ran")
						}
						require.Contains(t, errs, "b!")
						require.Contains(t, errs, "c!")
						for request, err := range errs {
							if err == errEnded {
								continue // the policy was evaluated on its goroutine
							}
							var failed *activeobject.PolicyError
							require.ErrorAs(t, err, &failed, request)
							require.Equal(t, name, failed.Policy)
							require.Contains(t, failed.Error(), "ledger")
							require.NotEmpty(t, failed.Stack)
						}
					}
				})
			})
		}
	}
}

func TestAChoiceOfWhatWasNotOfferedIsAnError(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, index := range []int{-1, 3, math.MaxInt, math.MinInt} {
			once := false
			log, errs := l.served(t, s, wishes("a1", "b2", "c3"), activeobject.ByChoice(func(c []*activeobject.Candidate) int {
				if len(c) == 3 && !once {
					once = true
					return index
				}
				return 0
			}))
			require.Empty(t, log)
			require.Len(t, errs, 3)
			for _, err := range errs {
				var wrong *activeobject.PolicyError
				require.ErrorAs(t, err, &wrong)
				require.Equal(t, "the user's choice", wrong.Policy)
				require.ErrorContains(t, err, fmt.Sprintf("chose number %d of 3", index))
			}
		}
	})
}

func TestAnOptionThatMakesNoSenseFailsNew(t *testing.T) {
	l := newLedgers()
	system := newSystem(t)
	for name, option := range map[string]activeobject.Option{
		"ByOrder":  activeobject.ByOrder(nil),
		"ByChoice": activeobject.ByChoice(nil),
		"Bound":    activeobject.Bound(-1, activeobject.Refuse),
		"Watchdog": activeobject.Watchdog(0),
	} {
		_, err := activeobject.New(system, l.Type, &ledger{}, option)
		var wrong *activeobject.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, name, wrong.Option)
		_, err = activeobject.New(system, newLedgers().Type.Default(option), &ledger{})
		require.ErrorAs(t, err, &wrong, "as a default")
	}
	for _, option := range []activeobject.Option{
		activeobject.Bound(3, 0), activeobject.Bound(3, activeobject.Wait+1), activeobject.Watchdog(-time.Second),
	} {
		_, err := activeobject.New(system, l.Type, &ledger{}, option)
		require.ErrorAs(t, err, new(*activeobject.OptionError))
	}
}

// everyPolicy returns policies under which one request is loved least: that of c,
// made without priority and deadline.
func everyPolicy() map[string]activeobject.Option {
	loved := func(c *activeobject.Candidate) bool { return c.Operation != "c" }
	return map[string]activeobject.Option{
		"by arrival":  activeobject.ByArrival(),
		"rotating":    activeobject.ByRotation(),
		"LIFO":        activeobject.ByLatest(),
		"by priority": activeobject.ByPriority(),
		"by deadline": activeobject.ByDeadline(),
		"ordered": activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
			if loved(a) != loved(b) {
				return loved(a)
			}
			return a.Arrival < b.Arrival
		}),
		"choosing": activeobject.ByChoice(func(c []*activeobject.Candidate) int {
			return max(0, slices.IndexFunc(c, loved))
		}),
	}
}

// An unloved request among a stream of loved ones: there is always another one when
// the object is free.
func TestUnderNoPolicyDoesAStreamStarveAWaiterBeyondTheBound(t *testing.T) {
	const bound, stream = 5, 40
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for name, policy := range everyPolicy() {
			o := newObject(t, s, l.Type, &ledger{}, policy, activeobject.MaxBypass(bound))
			release := braked(t, s, o, l.hold)
			loved, cancel := context.WithTimeout(activeobject.WithPriority(background, 1), time.Hour)
			defer cancel()
			results := l.queue(t, o, wish{"c", nil})
			var more []wish
			for i := range stream {
				more = append(more, wish{fmt.Sprintf("%c%d", 'a'+i%2, i), loved})
			}
			for request, c := range l.queue(t, o, more...) {
				results[request] = c
			}
			release()
			for _, c := range results {
				require.NoError(t, soon(t, s.system, c).err)
			}
			log, err := l.read.Call(background, o, nil)
			require.NoError(t, err)
			require.Len(t, log, stream+1)
			require.LessOrEqual(t, slices.Index(log, "c"), bound, "%s: %v", name, log)
		}
	})
}

// Choosing a priority mailbox silently dropped the mailbox's bound: elsewhere.
func TestChoosingAPolicyNeverDropsTheQueuesBound(t *testing.T) {
	const bound = 3
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for name, policy := range everyPolicy() {
			for _, options := range [][]activeobject.Option{
				{policy, activeobject.Bound(bound, activeobject.Refuse)}, {activeobject.Bound(bound, activeobject.Refuse), policy},
			} {
				o := newObject(t, s, l.Type, &ledger{}, options...)
				release := braked(t, s, o, l.hold)
				results := l.queue(t, o, wishes("a1", "b2", "c3")...)
				for _, request := range []string{"a4", "b5", "c6"} {
					_, err := l.op(request).Call(activeobject.WithPriority(background, 1), o, request)
					require.ErrorIs(t, err, activeobject.ErrFull, name)
				}
				release()
				for _, c := range results {
					require.NoError(t, soon(t, s.system, c).err)
				}
			}
		}
	})
}

func TestAHeadOfLineIsNotStarvedByTheSmallOnesBehindIt(t *testing.T) {
	for _, headOfLine := range []bool{true, false} {
		typ := activeobject.NewType[Semaphore]("semaphore")
		acquire := activeobject.Entry(typ, "acquire", activeobject.Arg((*Semaphore).Acquire)).WhenArg("enough", (*Semaphore).Enough)
		release := activeobject.Procedure(typ, "release", activeobject.Arg((*Semaphore).Release))
		if headOfLine {
			acquire.HeadOfLine()
		}
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, typ, &Semaphore{})
			large := calling(background, o, acquire, 5)
			waiting(t, o, acquire, 1)
			var small []<-chan outcome[None]
			for i := range 10 {
				small = append(small, calling(background, o, acquire, 1))
				waiting(t, o, acquire, i+2)
			}
			for range 4 {
				_, err := release.Call(background, o, 1)
				require.NoError(t, err)
			}
			if headOfLine {
				require.Equal(t, 11, acquire.Waiting(o), "all wait behind the large one")
				_, err := acquire.Try(background, o, 1)
				require.ErrorIs(t, err, activeobject.ErrRefused)
				release.Call(background, o, 1)
				require.NoError(t, soon(t, s.system, large).err)
				require.Equal(t, 10, acquire.Waiting(o))
				release.Call(background, o, 10)
			} else {
				for _, c := range small[:4] {
					require.NoError(t, soon(t, s.system, c).err, "they pass")
				}
				require.Equal(t, 7, acquire.Waiting(o))
				small = small[4:]
				release.Call(background, o, 6+5)
				require.NoError(t, soon(t, s.system, large).err)
			}
			for _, c := range small {
				require.NoError(t, soon(t, s.system, c).err)
			}
		})
	}
}

func TestThoseBehindAHeadOfLineMoveUpWhenItIsWithdrawn(t *testing.T) {
	typ := activeobject.NewType[Semaphore]("semaphore")
	acquire := activeobject.Entry(typ, "acquire", activeobject.Arg((*Semaphore).Acquire)).WhenArg("enough", (*Semaphore).Enough).HeadOfLine()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &Semaphore{free: 2})
		ctx, cancel := context.WithCancel(background)
		large := calling(ctx, o, acquire, 5)
		waiting(t, o, acquire, 1)
		small := calling(background, o, acquire, 1)
		waiting(t, o, acquire, 2)
		eventually(t, "the second is behind the first, which has been asked", func() bool {
			why := o.Explain().Waiting
			return why[0].Reason.Guard == "enough" && why[1].Reason.Behind == "acquire"
		})
		cancel()
		require.ErrorIs(t, soon(t, s.system, large).err, context.Canceled)
		require.NoError(t, soon(t, s.system, small).err)
	})
}

func TestAHeadOfLineOfAGuardOverTheStateChangesNothing(t *testing.T) {
	typ := activeobject.NewType[dam]("dam")
	asked := 0
	drain := activeobject.Entry(typ, "drain", activeobject.Plain((*dam).drain)).When("wet", func(d *dam) bool { asked++; return d.wet() }).HeadOfLine()
	fill := activeobject.Procedure(typ, "fill", activeobject.Arg(func(d *dam, n int) { d.level += n }))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, &dam{})
		var all []<-chan outcome[None]
		for i := range 3 {
			all = append(all, calling(background, o, drain, nil))
			waiting(t, o, drain, i+1)
		}
		fill.Call(background, o, 0)
		for _, w := range o.Explain().Waiting {
			require.Equal(t, "wet", w.Reason.Guard)
		}
		fill.Call(background, o, 3)
		for _, c := range all {
			require.NoError(t, soon(t, s.system, c).err)
		}
	})
}

func TestTheClientOfAMessageIsItsSender(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		var clients []any
		obj := newObject(t, s, l.Type, &ledger{}, activeobject.ByChoice(func(c []*activeobject.Candidate) int {
			for _, one := range c {
				clients = append(clients, one.Client)
			}
			return 0
		}), activeobject.NoFastPath()) // or it is not asked
		_, err := ask(t, s, obj.PID(), &actor.Invoke{Operation: "a", Argument: "a1"})
		require.NoError(t, err)
		<-obj.Stop()
		require.Len(t, clients, 1)
		require.IsType(t, &actor.PID{}, clients[0])
	})
}

// Whatever order a policy is in, no request is lost or served twice while requests come,
// go and are given other priorities.
func TestNoRequestIsLostUnderAnyPolicyWhilePrioritiesChange(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		for name, policy := range everyPolicy() {
			o := newObject(t, s, l.Type, &ledger{}, policy, activeobject.MaxBypass(3))
			const n = 200
			results := make(chan error, n)
			for i := range n {
				request := fmt.Sprintf("%c%d", 'a'+i%3, i)
				go func() {
					ctx, cancel := context.WithCancel(activeobject.WithPriority(background, i%7))
					defer cancel()
					f := l.op(request).Send(ctx, o, request)
					switch i % 5 {
					case 0:
						cancel()
					case 1, 2:
						f.SetPriority(i % 11)
					}
					_, err := f.Await(background)
					results <- err
				}()
			}
			ran := 0
			for range n {
				if err := soon(t, s.system, results); err == nil {
					ran++
				} else {
					require.ErrorIs(t, err, context.Canceled)
				}
			}
			log, err := l.read.Call(background, o, nil)
			require.NoError(t, err)
			require.Len(t, log, ran, name)
			slices.SortFunc(log, cmp.Compare)
			require.Len(t, slices.Compact(log), ran, "none runs twice")
		}
	})
}
