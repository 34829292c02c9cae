package activeobject_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// redeeming awaits a ticket on a goroutine of its own.
func redeeming[R any](ctx context.Context, t *activeobject.Ticket[R]) <-chan outcome[R] {
	return async(func() (R, error) { return t.Await(ctx) })
}

func TestATicketIsGoodForItsResultOnce(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 1})
			soonest := drain.Begin(background, o, nil)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, redeeming(background, &soonest)))
			switch n, err := soonest.Await(background); err { // in the ticket itself if it was there at once
			case nil:
				require.Equal(t, 1, n)
			default:
				require.ErrorIs(t, err, actor.ErrAwaited)
			}
			require.False(t, soonest.Withdraw())

			later := drain.Begin(background, o, nil)
			waiting(t, o, drain, 1)
			redeemed := redeeming(background, &later)
			ts.fill.Call(background, o, 1)
			require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, redeemed))
			for range 3 {
				_, err := later.Await(background)
				require.ErrorIs(t, err, actor.ErrAwaited)
			}
			require.False(t, later.Withdraw())
		}
		var zero activeobject.Ticket[int]
		n, err := zero.Await(background)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestACopyOfATicketIsTheSameTicket(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			for range 20 {
				o := newObject(t, s, ts.Type, &dam{})
				ticket := drain.Begin(background, o, nil)
				waiting(t, o, drain, 1)
				outcomes := make([]<-chan outcome[int], 8)
				for i := range outcomes {
					again := ticket
					outcomes[i] = redeeming(background, &again)
				}
				ts.fill.Call(background, o, 1)
				good := 0
				for _, c := range outcomes {
					if out := soon(t, s.system, c); out.err == nil {
						require.Equal(t, 1, out.result)
						good++
					} else {
						require.ErrorIs(t, out.err, actor.ErrAwaited)
					}
				}
				require.Equal(t, 1, good)
				// In its next life the record knows nothing of the ticket.
				next := drain.Begin(background, o, nil)
				waiting(t, o, drain, 1)
				require.False(t, ticket.Withdraw())
				_, err := ticket.Await(background)
				require.ErrorIs(t, err, actor.ErrAwaited)
				require.True(t, next.Withdraw())
				_, err = next.Await(background)
				require.ErrorIs(t, err, context.Canceled)
				<-o.Stop()
			}
		}
	})
}

func TestATicketOutlivesTheContextOfItsAwait(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			ticket := drain.Begin(background, o, nil)
			waiting(t, o, drain, 1)
			ctx, cancel := context.WithCancel(background)
			first := redeeming(ctx, &ticket)
			cancel()
			require.ErrorIs(t, soon(t, s.system, first).err, context.Canceled)
			require.Equal(t, 1, drain.Waiting(o), "the request goes its way")
			ts.fill.Call(background, o, 1)
			require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, redeeming(background, &ticket)))
		}
	})
}

func TestATicketsRequestCanBeWithdrawnWhileItIsAwaited(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			ticket := drain.Begin(background, o, nil)
			waiting(t, o, drain, 1)
			redeemed := redeeming(background, &ticket)
			require.True(t, ticket.Withdraw())
			require.False(t, ticket.Withdraw())
			require.ErrorIs(t, soon(t, s.system, redeemed).err, context.Canceled)

			ctx, cancel := context.WithCancel(background)
			ticket = drain.Begin(ctx, o, nil)
			waiting(t, o, drain, 1)
			redeemed = redeeming(background, &ticket)
			cancel()
			require.ErrorIs(t, soon(t, s.system, redeemed).err, context.Canceled, "by the context of Begin")
			ticket = drain.Begin(ctx, o, nil)
			_, err := ticket.Await(background)
			require.ErrorIs(t, err, context.Canceled, "a context that has ended")
			ts.fill.Call(background, o, 5)
			require.Zero(t, ts.ran(o))
		}
	})
}

func TestATicketToldOfEveryEnd(t *testing.T) {
	ts, ms, ps := newTanks(), newMines(), newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			ticket := drain.Begin(background, o, nil)
			waiting(t, o, drain, 1)
			o.Stop()
			requireStopped(t, o.Name(), soon(t, s.system, redeeming(background, &ticket)).err)
			late := drain.Begin(background, o, nil)
			_, err := late.Await(background)
			requireStopped(t, o.Name(), err)
		}
		for _, blast := range []*activeobject.Operation[mine, any, None]{ms.blast, ms.blastCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			release := braked(t, s, o, ms.hold)
			ticket := blast.Begin(background, o, "bang")
			waiting(t, o, blast, 1)
			release()
			var panicked *activeobject.PanicError
			require.ErrorAs(t, soon(t, s.system, redeeming(background, &ticket)).err, &panicked)
			require.Equal(t, "bang", panicked.Value)
			ticket = blast.Begin(background, o, "again")
			require.ErrorAs(t, soon(t, s.system, redeeming(background, &ticket)).err, &panicked)
			require.Equal(t, "again", panicked.Value)
		}
		for _, wait := range []*activeobject.Operation[mine, None, None]{ms.wait, ms.waitCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			ticket := wait.Begin(background, o, nil)
			waiting(t, o, wait, 1)
			soon(t, s.system, async(func() (None, error) { return ms.tread.Call(background, o, nil) })) // its goroutine may be lent
			var exit *activeobject.ExitError
			require.ErrorAs(t, soon(t, s.system, redeeming(background, &ticket)).err, &exit)
			n, err := ms.look.Call(background, o, nil)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		for _, enter := range []*activeobject.Operation[mine, int, int]{ms.enter, ms.enterCtx} {
			o := newObject(t, s, ms.Type, &mine{})
			ticket := enter.Begin(background, o, 7)
			waiting(t, o, enter, 1)
			ms.arm.Call(background, o, "armed")
			var guard *activeobject.GuardError
			require.ErrorAs(t, soon(t, s.system, redeeming(background, &ticket)).err, &guard)
		}
		// And of a circle, that waits for one.
		home := ps.at(t, s, "home")
		_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
			ticket := ps.touch.Begin(ctx, home, nil)
			_, err := ticket.Await(ctx)
			if !ticket.Withdraw() {
				t.Error("the request is still there to be withdrawn")
			}
			if _, err := ticket.Await(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return err
		})
		requireCircle(t, err, "home.visit waits for home.touch", "home.visit", "home.touch")
	})
}

func TestABodyRunForATicketBeginsAChainOfItsOwn(t *testing.T) {
	ps := newPlaces()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := ps.at(t, s, "a"), ps.at(t, s, "b")
		var ticket activeobject.Ticket[None]
		_, err := ps.visit.Call(background, a, func(ctx context.Context) error {
			ticket = ps.visit.Begin(ctx, b, func(ctx context.Context) error { _, err := ps.touch.Call(ctx, a, nil); return err })
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, s.system, redeeming(background, &ticket)).err, "a does not wait for b")
	})
}

func TestATicketAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("the race detector's pools lose records")
	}
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		idle, o := newObject(t, s, ts.Type, &dam{}), newObject(t, s, ts.Type, &dam{})
		var failed error
		most := 0.0
		if s.name == "monitor" || s.name == "workers" { // a thread is lent each time, and told
			most = 3
		}
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			ticket := ts.runs.Begin(background, idle, nil)
			if _, err := ticket.Await(background); err != nil {
				failed = err
			}
		}), most, "an idle object")
		require.NoError(t, failed)
		pass := activeobject.NewType[dam]("pass")
		drain := activeobject.Entry(pass, "drain", activeobject.Plain((*dam).drain)).When("wet", (*dam).wet)
		fill := activeobject.Procedure(pass, "fill", activeobject.Arg(func(d *dam, n int) { d.level += n }))
		o = newObject(t, s, pass, &dam{})
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			ticket := drain.Begin(background, o, nil)
			fill.Call(background, o, 1)
			if _, err := ticket.Await(background); err != nil {
				failed = err
			}
		}), 2*most, "a guard that is closed")
		require.NoError(t, failed)
	})
}

// Records go from one request to the next, and between tickets and calls. Every
// result, and every withdrawal, must be that of its own request.
func TestRecordsOfTicketsLeakNothingIntoTheNextLife(t *testing.T) {
	type gate struct{ open bool }
	gates := activeobject.NewType[gate]("gate")
	pass := activeobject.Entry(gates, "pass", func(_ *gate, n int) (int, error) { return n, nil }).When("open", func(g *gate) bool { return g.open })
	passCtx := activeobject.EntryCtx(gates, "pass-ctx", func(_ *gate, _ context.Context, n int) (int, error) { return n, nil }).When("open", func(g *gate) bool { return g.open })
	set := activeobject.Procedure(gates, "set", activeobject.Arg(func(g *gate, open bool) { g.open = open }))
	everywhere(t, func(t *testing.T, s *scene) {
		objects := []*activeobject.Object[gate]{newObject(t, s, gates, &gate{}), newObject(t, s, gates, &gate{})}
		const goroutines, rounds = 12, 300
		var all sync.WaitGroup
		var number atomic.Int64
		stop := make(chan struct{})
		var toggler sync.WaitGroup
		toggler.Go(func() {
			for open := true; ; open = !open {
				for _, o := range objects {
					set.Call(background, o, open)
				}
				select {
				case <-stop:
					for _, o := range objects {
						set.Call(background, o, true)
					}
					return
				default:
					runtime.Gosched()
				}
			}
		})
		canceled, cancel := context.WithCancel(background)
		cancel()
		for g := range goroutines {
			all.Go(func() {
				op := []*activeobject.Operation[gate, int, int]{pass, passCtx}[g%2]
				var stale []activeobject.Ticket[int]
				for i := range rounds {
					n := int(number.Add(1))
					o := objects[(g+i)%2]
					if i%5 == 4 { // a call from the same pool
						if got, err := op.Call(background, o, n); got != n || err != nil {
							t.Error(got, err)
						}
						continue
					}
					ticket := op.Begin(background, o, n)
					again := ticket
					if i%3 == 0 {
						ticket.Await(canceled) // its result, if it was there
					}
					withdrawn := false
					if i%4 == 1 {
						withdrawn = ticket.Withdraw()
					}
					for _, old := range stale { // none of them may touch the record any more
						if old.Withdraw() {
							t.Error("a ticket from before has withdrawn a request")
						}
					}
					got, err := again.Await(background)
					switch {
					case withdrawn:
						if !errors.Is(err, context.Canceled) {
							t.Error("withdrawn", got, err)
						}
					case errors.Is(err, actor.ErrAwaited) && i%3 == 0:
					case got != n || err != nil:
						t.Error(got, n, err)
					}
					stale = append(stale, again)
					if len(stale) > 4 {
						stale = stale[1:]
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(stop); toggler.Wait(); close(done) }()
		soon(t, s.system, done)
	})
}

func TestTicketsWorkInsideBubblesAndOutsideInTurn(t *testing.T) {
	if !alone(t) {
		return
	}
	ts := newTanks()
	work := func(t *testing.T, wait func()) {
		for _, options := range [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}} {
			system := actor.NewSystem(actor.Logger(quiet))
			o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}, options...))
			for _, drain := range ts.entries() {
				var tickets [20]activeobject.Ticket[int]
				for i := range tickets {
					tickets[i] = drain.Begin(background, o, nil)
				}
				follows := actor.Then(drain.Send(background, o, nil), func(n int, err error) (int, error) { return n, err })
				var all sync.WaitGroup
				for i := range tickets {
					all.Go(func() {
						_, err := tickets[i].Await(background)
						require.NoError(t, err)
					})
				}
				wait()
				for range len(tickets) + 1 {
					ts.fill.Call(background, o, 1)
				}
				all.Wait()
				_, err := follows.Await(background)
				require.NoError(t, err)
			}
			require.NoError(t, system.Close(background))
		}
	}
	for range 3 {
		work(t, func() {})
		synctest.Test(t, func(t *testing.T) { work(t, synctest.Wait) })
		synctest.Test(t, func(t *testing.T) { work(t, synctest.Wait) })
	}
	work(t, func() {})
}

func TestAUsedTicketPinsNothing(t *testing.T) {
	type box struct{ bytes [64]byte }
	type empty struct{ open bool }
	empties := activeobject.NewType[empty]("empty")
	pass := activeobject.Entry(empties, "pass", func(_ *empty, b *box) (*box, error) { return &box{bytes: b.bytes}, nil }).When("open", func(e *empty) bool { return e.open })
	open := activeobject.Procedure(empties, "open", activeobject.Arg(func(e *empty, open bool) { e.open = open }))
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, empties, &empty{})
		for _, wait := range []bool{false, true} {
			open.Call(background, o, !wait)
			var ticket activeobject.Ticket[*box] // which keeps a result that was there at once
			pinned := func() (a, r weak.Pointer[box]) {
				arg := &box{}
				ticket = pass.Begin(background, o, arg)
				open.Call(background, o, true)
				result, err := ticket.Await(background)
				require.NoError(t, err)
				a, r = weak.Make(arg), weak.Make(result)
				runtime.KeepAlive(arg)
				return a, r
			}
			a, r := pinned()
			open.Call(background, o, false) // the object's goroutine has moved on
			runtime.GC()
			require.Nil(t, a.Value(), "the argument")
			if _, err := ticket.Await(background); err == nil && !wait {
				continue
			}
			require.Nil(t, r.Value(), "the result")
			_, err := ticket.Await(background)
			require.ErrorIs(t, err, actor.ErrAwaited)
		}
	})
}
