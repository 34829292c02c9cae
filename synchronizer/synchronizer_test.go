package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// Each pair that the table lets run together does: two bodies that meet can only have run
// at the same time.
func TestEveryCompatiblePairOverlaps(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		visits := []*activeobject.Operation[room, func(context.Context) error, None]{rs.a, rs.b, rs.c, rs.read}
		o := newRoom(t, s, rs, rs.free(), options...)
		for _, first := range visits {
			for _, second := range visits {
				here := make(chan None)
				one := call(first, o, func(context.Context) error { here <- none; return nil })
				other := call(second, o, func(context.Context) error { <-here; return nil })
				require.NoError(t, soon(t, one))
				require.NoError(t, soon(t, other))
			}
		}
	})
}

// No two bodies that conflict overlap, whatever table there is, and nothing is lost.
func TestNoConflictingPairEverOverlaps(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		visits := []*activeobject.Operation[room, func(context.Context) error, None]{rs.a, rs.b, rs.c, rs.read}
		for bits := range 1 << 10 { // every table of the four
			if bits%37 != 0 && !testing.Short() || bits%101 != 0 && testing.Short() {
				continue
			}
			table, n := rs.Conflicts(), 0
			for i, x := range visits {
				for _, y := range visits[i:] {
					if bits>>n&1 != 0 {
						table = table.Compatible(x, y)
					} else {
						table = table.Conflict(x, y)
					}
					n++
				}
			}
			o := newRoom(t, s, rs, table, options...)
			var inside [4]atomic.Int32
			var ran atomic.Int32
			body := func(i int) func(context.Context) error {
				return func(context.Context) error {
					inside[i].Add(1)
					defer inside[i].Add(-1)
					for j := range inside {
						others := inside[j].Load()
						if j == i {
							others--
						}
						if others > 0 && table.Between(i, j) {
							t.Errorf("%s and %s run together\n%s", visits[i].Name(), visits[j].Name(), table)
						}
					}
					ran.Add(1)
					if ran.Load()%3 == 0 {
						runtime.Gosched()
					}
					return nil
				}
			}
			var all sync.WaitGroup
			for c := range 8 {
				all.Go(func() {
					for k := range 20 {
						i := (c + k) % 4
						var err error
						switch k % 5 {
						case 0:
							_, err = visits[i].Send(background, o, body(i)).Await(background)
						default:
							_, err = visits[i].Call(background, o, body(i))
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 160, ran.Load())
			require.Empty(t, o.Explain().Running)
			<-o.Stop()
		}
	})
}

func TestWithoutATableFunctionsRunBesideFunctionsOnly(t *testing.T) {
	rs := newRooms()
	require.Equal(t, `      a  b  c  read  pass  set
a     •  •  •  •     •     •
b     •  •  •  •     •     •
c     •  •  •  •     •     •
read  •  •  •        •     •
pass  •  •  •  •     •     •
set   •  •  •  •     •     •
`, rs.Conflicts().String())
	s := newSystem(t)
	o, err := synchronizer.New(s, rs.Type, &room{})
	require.NoError(t, err)
	reading, leave := make(chan None), make(chan None)
	stay := func(context.Context) error { reading <- none; <-leave; return nil }
	one, other := call(rs.read, o, stay), call(rs.read, o, stay)
	soon(t, reading)
	soon(t, reading)
	viewed := make(chan error, 1)
	go func() { viewed <- o.View(background, func(*room) error { return nil }) }()
	require.NoError(t, soon(t, viewed), "a View is a function, too")
	write := call(rs.a, o, func(context.Context) error { return nil })
	objecttest.Waiting(t, o, rs.a, 1)
	require.Equal(t, []string{"read", "read"}, running(o))
	leave <- none
	require.NoError(t, soon(t, either(one, other)))
	require.Equal(t, 1, rs.a.Waiting(o))
	leave <- none
	require.NoError(t, soon(t, write))
}

// running returns the operations of what runs.
func running[T any](o *activeobject.Object[T]) (all []string) {
	for _, r := range o.Explain().Running {
		all = append(all, r.Operation)
	}
	return all
}

func either[R any](a, b <-chan R) <-chan R {
	c := make(chan R, 1)
	go func() {
		select {
		case r := <-a:
			c <- r
		case r := <-b:
			c <- r
		}
	}()
	return c
}

// A stream of readers that overlap, so that there is always one, does not starve a writer:
// a reader does not pass a writer that waits.
func TestAStreamOfReadersStarvesNoWriter(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		o, err := synchronizer.New(s, rs.Type, &room{}, options...)
		require.NoError(t, err)
		here, leave := make(chan None), make(chan None)
		stay := func(context.Context) error { here <- none; <-leave; return nil }
		first := call(rs.read, o, stay)
		soon(t, here)
		write := call(rs.a, o, func(context.Context) error { return nil })
		objecttest.Waiting(t, o, rs.a, 1)
		second := call(rs.read, o, stay)
		objecttest.Waiting(t, o, rs.read, 1)
		require.Equal(t, "a comes first", o.Explain().Waiting[1].Reason.String())
		leave <- none
		require.NoError(t, soon(t, first))
		require.NoError(t, soon(t, write))
		soon(t, here)
		leave <- none
		require.NoError(t, soon(t, second))
	})
}

// The text's account: deposits and withdrawals exclude each other, and balances exclude
// both but not each other.
func TestTheTableOfTheTextIsDrawnAsThere(t *testing.T) {
	deposit, withdraw, balance := guards.Name("deposit"), guards.Name("withdraw"), guards.Name("balance")
	table := guards.NewTable("deposit", "withdraw", "balance").Exclusive(deposit, withdraw).Conflict(balance, deposit, withdraw)
	require.NoError(t, table.Err())
	require.Equal(t, `          deposit  withdraw  balance
deposit   •        •         •
withdraw  •        •         •
balance   •        •
`, table.String())
}

func TestAWrongTableIsRefusedAtConstruction(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	for name, c := range map[string]struct {
		option  activeobject.Option
		problem string
	}{
		"unknown name":  {synchronizer.Conflicts(rs.Conflicts().Conflict(guards.Name("x"), rs.a)), `"x" is no operation of the table, nor a group`},
		"another type":  {synchronizer.Conflicts(guards.NewTable("deposit", "withdraw")), "is for another type"},
		"nil handle":    {synchronizer.Conflicts(rs.Conflicts().Exclusive(nil)), "is nil"},
		"empty group":   {synchronizer.Conflicts(rs.Conflicts().Group("g")), "is no group"},
		"no pool":       {synchronizer.Workers(nil), "is given nil"},
		"no limit":      {synchronizer.Limit(0), "is less than 1"},
		"no hard limit": {synchronizer.HardLimit(-1), "is less than 1"},
		"one thread":    {activeobject.PooledThreads(), "one thread at a time"},
		"a goroutine":   {activeobject.DedicatedThread(), "one thread at a time"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := synchronizer.New(s, rs.Type, &room{}, c.option)
			require.Nil(t, o)
			require.ErrorAs(t, err, new(*activeobject.OptionError))
			require.ErrorContains(t, err, c.problem)
		})
	}
	for range s.Objects() {
		t.Error("an object is left behind")
	}
	for _, system := range []*actor.System{nil, s} {
		_, err := synchronizer.NewPool(system, 0)
		require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	}
}

// The declaration is one for every model: a type's table is for its synchronizers, and its
// active objects run one request at a time all the same.
func TestATypesTableIsThatOfItsSynchronizersOnly(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	rs.Default(synchronizer.Conflicts(rs.free()))
	o, err := synchronizer.New(s, rs.Type, &room{})
	require.NoError(t, err)
	here := make(chan None)
	one := call(rs.a, o, func(context.Context) error { here <- none; return nil })
	other := call(rs.a, o, func(context.Context) error { <-here; return nil })
	require.NoError(t, soon(t, one))
	require.NoError(t, soon(t, other))

	single, err := activeobject.New(s, rs.Type, &room{})
	require.NoError(t, err)
	release := make(chan None)
	one = call(rs.a, single, func(context.Context) error { <-release; return nil })
	objecttest.Waiting(t, single, rs.a, 0)
	for len(running(single)) == 0 {
		runtime.Gosched()
	}
	other = call(rs.a, single, func(context.Context) error { return nil })
	objecttest.Waiting(t, single, rs.a, 1)
	close(release)
	require.NoError(t, soon(t, one))
	require.NoError(t, soon(t, other))
}

// A guard is evaluated when nothing runs that conflicts with its entry, and not before.
func TestAGuardWaitsForWhatConflictsWithItsEntryOnly(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	table := rs.free().Compatible(rs.pass, rs.a) // b may close the room, a does not
	o := newRoom(t, s, rs, table)
	_, err := rs.set.Call(background, o, true)
	require.NoError(t, err)
	leave := make(chan None)
	visitor := call(rs.a, o, func(context.Context) error { <-leave; return nil })
	for len(running(o)) == 0 {
		runtime.Gosched()
	}
	require.NoError(t, soon(t, call(rs.pass, o, none)), "beside a")
	other := call(rs.b, o, func(context.Context) error { <-leave; return nil })
	for len(running(o)) == 1 {
		runtime.Gosched()
	}
	passing := call(rs.pass, o, none)
	objecttest.Waiting(t, o, rs.pass, 1)
	require.Equal(t, "conflicts with b, running", o.Explain().Waiting[0].Reason.String())
	leave <- none
	leave <- none
	require.NoError(t, soon(t, passing))
	require.NoError(t, soon(t, visitor))
	require.NoError(t, soon(t, other))
}

func TestALimitHoldsAndWhatWaitsForAThreadCanBeWithdrawn(t *testing.T) {
	s := newSystem(t)
	for name, option := range map[string]activeobject.Option{"limit": synchronizer.Limit(2), "hard": synchronizer.HardLimit(2), "pool": synchronizer.Workers(newPool(t, s, 2))} {
		t.Run(name, func(t *testing.T) {
			rs := newRooms()
			o := newRoom(t, s, rs, rs.free(), option)
			here, leave := make(chan None), make(chan None)
			stay := func(context.Context) error { here <- none; <-leave; return nil }
			one, other := call(rs.a, o, stay), call(rs.a, o, stay)
			soon(t, here)
			soon(t, here)
			ctx, cancel := context.WithCancel(background)
			third := callWith(ctx, rs.b, o, func(context.Context) error { t.Error("runs"); return nil })
			objecttest.Waiting(t, o, rs.b, 1)
			require.Equal(t, "could start: no thread has come for it", o.Explain().Waiting[0].Reason.String())
			cancel()
			require.ErrorIs(t, soon(t, third), context.Canceled)
			fourth := rs.c.Send(background, o, func(context.Context) error { return nil })
			leave <- none
			_, err := fourth.Await(background)
			require.NoError(t, err)
			leave <- none
			require.NoError(t, soon(t, one))
			require.NoError(t, soon(t, other))
		})
	}
}

// All threads of a pool wait for requests that need it: their threads go on meanwhile.
func TestAPoolWhoseThreadsAllWaitForItGoesOn(t *testing.T) {
	s := newSystem(t)
	for name, option := range map[string]activeobject.Option{"pool": synchronizer.Workers(newPool(t, s, 2)), "limit": synchronizer.Limit(2)} {
		t.Run(name, func(t *testing.T) {
			rs := newRooms()
			near, far := newRoom(t, s, rs, rs.free(), option), newRoom(t, s, rs, rs.free(), option)
			const n = 4
			var inside sync.WaitGroup
			inside.Add(n)
			var calls []<-chan error
			for range n {
				calls = append(calls, call(rs.a, near, func(ctx context.Context) error {
					inside.Done()
					if name == "pool" {
						_, err := rs.b.Call(ctx, far, func(context.Context) error { return nil })
						return err
					}
					_, err := rs.pass.Call(ctx, far, none)
					return err
				}))
			}
			if name == "limit" {
				inside.Wait() // more than two have begun, as they wait
				_, err := rs.set.Call(background, far, true)
				require.NoError(t, err)
			}
			for _, c := range calls {
				require.NoError(t, soon(t, c))
			}
			require.Empty(t, running(near))
		})
	}
}

// A call that comes back is refused, with the chain, also where it would be compatible.
func TestACallThatComesBackIsRefusedWithItsChain(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		o := newRoom(t, s, rs, rs.free(), append(options, activeobject.Name("near"))...)
		far := newRoom(t, s, rs, rs.free(), append(options, activeobject.Name("far"))...)
		nothing := func(context.Context) error { return nil }
		_, err := rs.a.Call(background, o, func(ctx context.Context) error {
			_, err := rs.b.Call(ctx, o, nothing)
			return err
		})
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		require.ErrorContains(t, err, "near.a waits for near.b")
		_, err = rs.a.Call(background, o, func(ctx context.Context) error {
			_, err := rs.a.Call(ctx, far, func(ctx context.Context) error {
				_, err := rs.b.Call(ctx, o, nothing)
				return err
			})
			return err
		})
		require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		require.ErrorContains(t, err, "near.a waits for far.a")
		require.ErrorContains(t, err, "far.a waits for near.b")
	})
}

// What fails fails for itself: what runs beside it goes on, and what waits for it starts.
func TestAFailureConcernsItsOwnRequestOnly(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		for name, fail := range map[string]func(){"panic": func() { panic("cause") }, "exit": runtime.Goexit} {
			t.Run(name, func(t *testing.T) {
				rs := newRooms()
				o := newRoom(t, s, rs, rs.free().Conflict(rs.b, rs.c), options...)
				here, leave := make(chan None), make(chan None)
				beside := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
				soon(t, here)
				failing := rs.b.Send(background, o, func(context.Context) error { here <- none; <-leave; fail(); return nil })
				soon(t, here)
				behind := call(rs.c, o, func(context.Context) error { return nil })
				objecttest.Waiting(t, o, rs.c, 1)
				leave <- none
				leave <- none
				_, err := failing.Await(background)
				if name == "panic" {
					require.ErrorAs(t, err, new(*activeobject.PanicError))
				} else {
					require.ErrorAs(t, err, new(*activeobject.ExitError))
				}
				require.NoError(t, soon(t, behind))
				require.NoError(t, soon(t, beside))
				require.NoError(t, soon(t, call(rs.set, o, true)), "nothing runs any more")
			})
		}
	})
}

// A restart waits for everything that runs, and nothing starts meanwhile.
func TestARestartComesWhenNothingRuns(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		made := 0
		o, err := synchronizer.NewFrom(s, rs.Type, func() (*room, error) { made++; return &room{open: made > 1}, nil },
			append(options, synchronizer.Conflicts(rs.free().Compatible(rs.pass, rs.a, rs.b)), activeobject.Supervisor(proto.NewOneForOneStrategy(10, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))...)
		require.NoError(t, err)
		passing := call(rs.pass, o, none)
		objecttest.Waiting(t, o, rs.pass, 1)
		here, leave := make(chan None), make(chan None)
		beside := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
		soon(t, here)
		failed := call(rs.b, o, func(context.Context) error { panic("cause") })
		require.ErrorAs(t, soon(t, failed), new(*activeobject.PanicError))
		late := call(rs.a, o, func(context.Context) error { return nil })
		objecttest.Waiting(t, o, rs.a, 1)
		require.Equal(t, []string{"a"}, running(o))
		leave <- none
		require.NoError(t, soon(t, beside))
		require.NoError(t, soon(t, late))
		require.NoError(t, soon(t, passing), "the new state is open")
		require.Equal(t, 2, made)
	})
}

// The end comes after everything that runs, and what waits fails or, drained, is served.
func TestTheEndComesAfterTheLastBody(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		for _, drained := range []bool{false, true} {
			t.Run(fmt.Sprint("drained ", drained), func(t *testing.T) {
				rs := newRooms()
				o := newRoom(t, s, rs, rs.free(), options...)
				here, leave := make(chan None), make(chan None)
				stay := func(context.Context) error { here <- none; <-leave; return nil }
				one, other := call(rs.a, o, stay), call(rs.b, o, stay)
				soon(t, here)
				soon(t, here)
				behind := call(rs.set, o, true)
				objecttest.Waiting(t, o, rs.set, 1)
				ended := make(chan None)
				go func() {
					defer close(ended)
					if drained {
						_ = o.Close(background)
					} else {
						<-o.Stop()
					}
				}()
				if !drained {
					require.ErrorIs(t, soon(t, behind), activeobject.ErrStopped)
				}
				leave <- none
				select {
				case <-ended:
					t.Fatal("a body still runs")
				default:
				}
				leave <- none
				require.NoError(t, soon(t, one))
				require.NoError(t, soon(t, other))
				if drained {
					require.NoError(t, soon(t, behind))
				}
				soon(t, ended)
			})
		}
	})
}

func TestARequestThatIsRequeuedWaitsForWhatConflictsWithItsNewOperation(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		typ := activeobject.NewType[room]("room")
		var second *activeobject.Operation[room, int, int]
		first := activeobject.Procedure(typ, "first", func(_ *room, n int) (int, error) { return second.Requeue(n + 1) })
		second = activeobject.Entry(typ, "second", func(_ *room, n int) (int, error) { return n + 1, nil }).When("open", (*room).isOpen)
		set := activeobject.Procedure(typ, "set", activeobject.Arg(func(r *room, open bool) { r.open = open }))
		o, err := synchronizer.New(s, typ, &room{}, append(options, synchronizer.Conflicts(typ.Conflicts().Compatible(first, first)))...)
		require.NoError(t, err)
		sent := first.Send(background, o, 1)
		called := call(first, o, 1)
		objecttest.Waiting(t, o, second, 2)
		_, err = set.Call(background, o, true)
		require.NoError(t, err)
		require.NoError(t, soon(t, called))
		v, err := sent.Await(background)
		require.NoError(t, err)
		require.Equal(t, 3, v)
	})
}

// A selection over several synchronizers runs one body.
func TestASelectionOverSynchronizersRunsOneBody(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		var rooms []*activeobject.Object[room]
		for range 3 {
			rooms = append(rooms, newRoom(t, s, rs, rs.Conflicts(), options...))
		}
		var passed atomic.Int32
		var all sync.WaitGroup
		const callers, rounds = 6, 40
		for range callers {
			all.Go(func() {
				for range rounds {
					i, err := activeobject.Select(background, rs.pass.Case(rooms[0], none), rs.pass.Case(rooms[1], none), rs.pass.Case(rooms[2], none))
					if err != nil {
						t.Error(err)
						return
					}
					passed.Add(1)
					_ = i
				}
			})
		}
		stop := make(chan None)
		go func() {
			all.Wait()
			close(stop)
		}()
		for open := true; ; open = !open {
			for _, o := range rooms {
				if _, err := rs.set.Call(background, o, open); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-stop:
				require.EqualValues(t, callers*rounds, passed.Load())
				for _, o := range rooms {
					require.Zero(t, rs.pass.Waiting(o))
				}
				return
			default:
			}
		}
	})
}

// Requests come, wait, are withdrawn and fail: each of them has one end, and in the end
// nothing is left.
func TestEveryRequestIsAccountedFor(t *testing.T) {
	everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
		rs := newRooms()
		o := newRoom(t, s, rs, rs.free(), options...)
		var asked, ran, withdrawn, failed atomic.Int32
		var all sync.WaitGroup
		for c := range 8 {
			all.Go(func() {
				for k := range 300 {
					ctx, cancel := context.WithCancel(background)
					asked.Add(1)
					body := func(context.Context) error {
						ran.Add(1)
						if (c+k)%11 == 0 {
							panic("cause")
						}
						return nil
					}
					visits := []*activeobject.Operation[room, func(context.Context) error, None]{rs.a, rs.b, rs.read}
					var err error
					switch {
					case k%7 == 0:
						go cancel()
						_, err = rs.pass.Call(ctx, o, none)
						if err == nil {
							ran.Add(1)
						}
					case k%5 == 0:
						_, err = rs.set.Call(ctx, o, k%2 == 0)
						ran.Add(1)
					case k%3 == 0:
						go cancel()
						_, err = visits[k%3].Send(ctx, o, body).Await(background)
					default:
						_, err = visits[k%3].Call(ctx, o, body)
					}
					cancel()
					switch {
					case errors.Is(err, context.Canceled):
						withdrawn.Add(1)
					case err != nil:
						if !errors.As(err, new(*activeobject.PanicError)) {
							t.Error(err)
						}
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		require.Equal(t, asked.Load(), ran.Load()+withdrawn.Load())
		require.NotZero(t, failed.Load())
		require.Empty(t, o.Explain().Running)
		require.Empty(t, o.Explain().Waiting)
	})
}
