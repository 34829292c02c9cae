package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// bounds returns ledgers with a bound, on the object and on an entry: the object's
// options, and whether the error must say that it was the entry's.
func bounds(n int, overflow activeobject.Overflow) map[bool]func() (ledgers, []activeobject.Option) {
	return map[bool]func() (ledgers, []activeobject.Option){
		false: func() (ledgers, []activeobject.Option) {
			return newLedgers(), []activeobject.Option{activeobject.Bound(n, overflow)}
		},
		true: func() (ledgers, []activeobject.Option) {
			l := newLedgers()
			l.a.Bound(n, overflow)
			return l, nil
		},
	}
}

func requireFull(t *testing.T, err error, entry, dropped bool, limit int) {
	t.Helper()
	require.ErrorIs(t, err, activeobject.ErrFull)
	var full *activeobject.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, mailbox.FullError{Object: full.Object, Operation: "a", Max: limit, Entry: entry, Dropped: dropped}, *full)
	require.ErrorContains(t, err, full.Object)
}

func TestAFullQueueRefusesOneMore(t *testing.T) {
	for entry, make := range bounds(2, activeobject.Refuse) {
		l, options := make()
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, l.Type, &ledger{}, options...)
			release := braked(t, s, o, l.hold)
			results := l.queue(t, o, wishes("a1", "a2")...)
			_, err := l.a.Call(background, o, "a3")
			requireFull(t, err, entry, false, 2)
			_, err = l.a.Send(background, o, "a4").Await(background)
			requireFull(t, err, entry, false, 2)
			ticket := l.a.Begin(background, o, "a5")
			_, err = ticket.Await(background)
			requireFull(t, err, entry, false, 2)
			if entry {
				results["b6"] = l.queue(t, o, wish{name: "b6"})["b6"]
			}
			require.Equal(t, 2, l.a.Waiting(o))
			release()
			for _, c := range results {
				require.NoError(t, soon(t, s.system, c).err)
			}
			log, _ := l.read.Call(background, o, nil)
			require.Equal(t, len(results), len(log), "a request that was refused never ran: %v", log)
		})
	}
}

// Requests that arrive before it is decided which one starts are admitted until then. If there are too
// many then, the latest are refused before the body has run.
func TestABoundHoldsBehindARequestThatWaitedForItsThread(t *testing.T) {
	typ := activeobject.NewType[struct{}]("slow")
	work := activeobject.ProcedureCtx(typ, "work", func(_ *struct{}, ctx context.Context, leave chan None) (None, error) {
		<-leave
		return nil, nil
	}).Bound(3, activeobject.Refuse)
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, typ, new(struct{}))
		leave := make(chan None)
		ended := make(chan outcome[None], 6)
		for range 6 {
			f := work.Send(background, o, leave)
			go func() {
				_, err := f.Await(background)
				ended <- outcome[None]{err: err}
			}()
		}
		for range 2 {
			require.ErrorIs(t, soon(t, s.system, ended).err, activeobject.ErrFull)
		}
		require.Equal(t, 3, work.Waiting(o))
		close(leave)
		for range 4 {
			require.NoError(t, soon(t, s.system, ended).err)
		}
	})
}

func TestAFullQueueDropsItsOldest(t *testing.T) {
	for entry, make := range bounds(2, activeobject.DropOldest) {
		l, options := make()
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, l.Type, &ledger{}, options...)
			release := braked(t, s, o, l.hold)
			results := l.queue(t, o, wishes("a1", "a2")...)
			results["a3"] = calling(background, o, l.a, "a3")
			requireFull(t, soon(t, s.system, results["a1"]).err, entry, true, 2)
			results["a4"] = awaiting(background, l.a.Send(background, o, "a4"))
			requireFull(t, soon(t, s.system, results["a2"]).err, entry, true, 2)
			release()
			require.NoError(t, soon(t, s.system, results["a3"]).err)
			require.NoError(t, soon(t, s.system, results["a4"]).err)
			log, _ := l.read.Call(background, o, nil)
			require.Equal(t, []string{"a3", "a4"}, log, "what was dropped never ran")
		})
	}
}

func TestACallWaitsOutsideOfAFullQueueUntilThereIsRoom(t *testing.T) {
	for entry, make := range bounds(1, activeobject.Wait) {
		l, options := make()
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, l.Type, &ledger{}, options...)
			release := braked(t, s, o, l.hold)
			results := l.queue(t, o, wish{name: "a1"})
			for i, name := range []string{"a2", "a3", "a4"} {
				results[name] = calling(background, o, l.a, name)
				waiting(t, o, l.a, i+2)
			}
			ctx, cancel := context.WithCancel(background)
			gone := calling(ctx, o, l.a, "a5")
			waiting(t, o, l.a, 5)
			noRoom := 0
			for _, w := range o.Explain().Waiting {
				if w.Reason.Cause == mailbox.NoRoom {
					noRoom++
					require.True(t, w.Outside)
					require.Contains(t, w.Reason.String(), "waits for room")
				}
			}
			require.Equal(t, 4, noRoom)
			cancel()
			require.ErrorIs(t, soon(t, s.system, gone).err, context.Canceled)

			// A request that has no goroutine that could wait is refused.
			_, err := l.a.Send(background, o, "a6").Await(background)
			requireFull(t, err, entry, false, 1)
			_, err = ask(t, s, o.PID(), &actor.Invoke{Operation: "a", Argument: "a7"})
			requireFull(t, err, entry, false, 1)
			dead := deadLetters(t, s)
			message := &actor.Invoke{Operation: "a", Argument: "a8"}
			s.system.Actors().Root.Send(o.PID(), message)
			requireDead(t, dead, message)

			release()
			for _, c := range results {
				require.NoError(t, soon(t, s.system, c).err)
			}
			log, _ := l.read.Call(background, o, nil)
			require.Equal(t, []string{"a1", "a2", "a3", "a4"}, log, "in order")
		})
	}
}

func TestACallThatWaitsForRoomFailsOnStop(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &ledger{}, activeobject.Bound(0, activeobject.Wait))
		release := braked(t, s, o, l.hold)
		outside := calling(background, o, l.a, "a1")
		waiting(t, o, l.a, 1)
		idle := o.Stop()
		requireStopped(t, o.Name(), soon(t, s.system, outside).err)
		release()
		soon(t, s.system, idle)
	})
}

// A tell that is refused is logged, as nothing else is told of it.
func TestATellThatIsTurnedAwayIsLogged(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		h := &recorder{}
		s.system = newSystem(t, actor.Logger(h.logger()))
		o := newObject(t, s, l.Type, &ledger{}, activeobject.Bound(0, activeobject.Wait))
		release := braked(t, s, o, l.hold)
		if err := l.a.Tell(background, o, "a1"); err != nil {
			require.ErrorIs(t, err, activeobject.ErrFull)
		} else {
			eventually(t, "it is logged", func() bool { return h.count("waiting queue is full") == 1 })
		}
		release()
		log, _ := l.read.Call(background, o, nil)
		require.Empty(t, log)
	})
}

func TestARequestThatCanStartAtOnceIsNeverTurnedAway(t *testing.T) {
	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
		ts := newTanks()
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, ts.Type, &dam{}, activeobject.Bound(2, overflow))
			waits := []<-chan outcome[int]{calling(background, o, ts.drain, nil), calling(background, o, ts.drain, nil)}
			waiting(t, o, ts.drain, 2)
			for range 100 { // the queue is full, and these do not need it
				_, err := ts.fill.Call(background, o, 0)
				require.NoError(t, err)
				_, err = ts.fill.Send(background, o, 0).Await(background)
				require.NoError(t, err)
				_, err = ts.fill.Try(background, o, 0)
				require.NoError(t, err)
			}
			_, err := ts.fill.Call(background, o, 2)
			require.NoError(t, err)
			for _, c := range waits {
				require.NoError(t, soon(t, s.system, c).err)
			}
		})
	}
}

// A request that waits for room is admitted without it when it can start at once.
func TestACallThatWaitsForRoomStartsWhenItNeedsNone(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Bound(1, activeobject.Wait))
		drained := calling(background, o, ts.drain, nil)
		waiting(t, o, ts.drain, 1)
		release := braked(t, s, o, ts.hold)
		filled := calling(background, o, ts.fill, 1)
		waiting(t, o, ts.fill, 1)
		require.Contains(t, o.Explain().String(), "waits for room")
		release()
		require.NoError(t, soon(t, s.system, filled).err)
		require.NoError(t, soon(t, s.system, drained).err)
	})
}

func TestABoundOfAnOperationThatMakesNoSenseIsAPanicThatHelps(t *testing.T) {
	l := newLedgers()
	require.PanicsWithValue(t, `activeobject: procedure "a" of type "ledger" gets the bound -1: it must not be negative`, func() {
		l.a.Bound(-1, activeobject.Refuse)
	})
	for _, overflow := range []activeobject.Overflow{0, activeobject.Wait + 1} {
		require.Panics(t, func() { l.a.Bound(1, overflow) })
	}
	activeobject.Must(activeobject.New(newSystem(t), l.Type, &ledger{}))
	require.Panics(t, func() { l.a.Bound(1, activeobject.Refuse) }, "too late")
}

func TestUnboundedTakesTheBoundOfTheTypeBack(t *testing.T) {
	l := newLedgers()
	l.Type.Default(activeobject.Bound(0, activeobject.Refuse))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, l.Type, &ledger{}, activeobject.NoBound())
		release := braked(t, s, o, l.hold)
		results := l.queue(t, o, wishes("a1", "b2")...)
		release()
		for _, c := range results {
			require.NoError(t, soon(t, s.system, c).err)
		}
	})
}

// Ten thousand senders at a bounded object that is busy: each is told at once, and
// what is kept is no more than the bound.
func TestAnOverloadIsRefusedInBoundedMemoryAndNoRequestIsLost(t *testing.T) {
	const senders, bound = 10_000, 100
	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest} {
		l := newLedgers()
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, l.Type, &ledger{}, activeobject.Bound(bound, overflow))
			release := braked(t, s, o, l.hold)
			var full, ran atomic.Int64
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					for range senders / 100 {
						f := l.a.Send(background, o, "a")
						all.Go(func() {
							switch _, err := f.Await(background); {
							case err == nil:
								ran.Add(1)
							case errors.As(err, new(*activeobject.FullError)):
								full.Add(1)
							}
						})
					}
				})
			}
			eventually(t, "all but those that wait are told", func() bool { return full.Load() == senders-bound })
			require.Equal(t, bound, l.a.Waiting(o))
			runtime.GC()
			release()
			all.Wait()
			require.EqualValues(t, bound, ran.Load())
			log, _ := l.read.Call(background, o, nil)
			require.Len(t, log, bound)
			require.EqualValues(t, senders-bound, l.a.Stats(o).Refusals)
		})
	}
}

func TestAFullObjectDoesNotSpin(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ts.Type, &dam{}, activeobject.Bound(1, activeobject.Wait))
		var all []<-chan outcome[int]
		for i := range 10 {
			all = append(all, calling(background, o, ts.drain, nil))
			waiting(t, o, ts.drain, i+1)
		}
		before := o.Explain().Step
		for range 1000 {
			runtime.Gosched()
		}
		after := o.Explain().Step
		require.LessOrEqual(t, after-before, uint64(2), "nothing goes on in it while it is full")
		for range all {
			ts.fill.Call(background, o, 1)
		}
		for _, c := range all {
			require.NoError(t, soon(t, s.system, c).err)
		}
	})
}

// Two Go actors were wedged for eight hours and a half: each told the other
// something, and both mailboxes were full.
func TestTwoObjectsThatTellEachOtherIntoFullQueuesDoNotWedge(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
			a := newObject(t, s, es.Type, &probe{}, activeobject.Bound(1, overflow))
			b := newObject(t, s, es.Type, &probe{}, activeobject.Bound(1, overflow))
			busy := func(at, other *activeobject.Object[probe], here, there chan struct{}) <-chan outcome[None] {
				return calling(background, at, es.run, func(ctx context.Context) error {
					close(here)
					<-there // both are busy
					for range 10 {
						es.quick.Tell(ctx, other, func() {})
					}
					_, err := es.quick.Call(ctx, other, func() {})
					return err
				})
			}
			first, second := make(chan struct{}), make(chan struct{})
			one, two := busy(a, b, first, second), busy(b, a, second, first)
			for _, c := range []<-chan outcome[None]{one, two} {
				err := soon(t, s.system, c).err
				if err != nil && !errors.Is(err, activeobject.ErrFull) {
					require.ErrorAs(t, err, new(*activeobject.DeadlockError))
				}
			}
		}
	})
}

// A Try waits for what runs only, in no queue: it is not refused by a full queue, and no request is
// dropped to make room for it.
func TestNoBoundConcernsATry(t *testing.T) {
	ts := newTanks()

	everywhere(t, func(t *testing.T, s *scene) {
		for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
			o := newObject(t, s, ts.Type, &dam{}, activeobject.Bound(1, overflow))
			release := braked(t, s, o, ts.hold)
			waits := ts.fill.Send(background, o, 1)
			waiting(t, o, ts.fill, 1)
			tries := []<-chan outcome[int]{}
			for range 3 {
				tries = append(tries, trying(background, o, ts.drain, nil))
			}
			waiting(t, o, ts.drain, 3)
			if overflow == activeobject.Refuse {
				_, err := ts.fill.Send(background, o, 1).Await(background)
				require.ErrorIs(t, err, activeobject.ErrFull)
			}
			release()
			for _, c := range tries {
				err := soon(t, s.system, c).err
				require.False(t, errors.Is(err, activeobject.ErrFull), "%v: %v", overflow, err)
			}
			require.NoError(t, soon(t, s.system, awaiting(background, waits)).err)
		}
	})
}
