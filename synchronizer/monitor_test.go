package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
)

// standing returns how many threads of monitors stand still.
func standing() int {
	stacks := make([]byte, 1<<22)
	n := 0
	for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if lines := strings.SplitN(g, "\n", 3); len(lines) == 3 && strings.Contains(lines[1], "engine.(*thread).Run") {
			n++
		}
	}
	return n
}

// A request that waits, for its guard or for a conflict, holds a thread: a goroutine that
// stands still.
func TestAMonitorHoldsAThreadForEachRequestThatWaits(t *testing.T) {
	s := newSystem(t)
	pool := newPool(t, s, 20)
	for name, c := range map[string]struct {
		options []activeobject.Option
		own     bool // calls block their callers' goroutines
	}{
		"callers": {own: true},
		"spawned": {options: []activeobject.Option{synchronizer.Goroutines()}},
		"pool":    {options: []activeobject.Option{synchronizer.Workers(pool)}},
	} {
		t.Run(name, func(t *testing.T) {
			rs := newRooms()
			o := newRoom(t, s, rs, rs.Conflicts(), append(c.options, synchronizer.Monitor())...)
			ctx, cancel := context.WithCancel(background)
			var calls, sent []<-chan error
			for range 5 {
				calls = append(calls, callWith(ctx, rs.pass, o, none))
				f := rs.pass.Send(ctx, o, none)
				e := make(chan error, 1)
				go func() { _, err := f.Await(background); e <- err }()
				sent = append(sent, e)
			}
			objecttest.Waiting(t, o, rs.pass, 10)
			here, leave := make(chan None), make(chan None)
			runs := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
			soon(t, here)
			conflicts := rs.a.Send(background, o, func(context.Context) error { return nil })
			held := 11
			if c.own {
				held = 6
			}
			until(t, "they stand still", func() bool { return standing() == held })
			threads := 0
			for _, w := range o.Explain().Waiting {
				if w.Thread {
					threads++
				}
			}
			require.Equal(t, held, threads)
			if name == "pool" {
				require.Equal(t, 12, pool.Busy())
			}
			cancel()
			for _, e := range append(calls, sent...) {
				require.ErrorIs(t, soon(t, e), context.Canceled)
			}
			until(t, "their threads are given back", func() bool { return standing() == 1 })
			close(leave)
			require.NoError(t, soon(t, runs))
			_, err := conflicts.Await(background)
			require.NoError(t, err)
			until(t, "idle", func() bool { return standing() == 0 && pool.Busy() == 0 })
		})
	}
}

// The flaw of the model: a request that could open the guard finds no thread, as all are held by
// requests that wait for it. Explain says so; contexts still end waits, and then things go on.
func TestAMonitorWhosePoolIsFullOfRequestsThatWaitStandsStillAndSaysSo(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	pool := newPool(t, s, 2)
	o := newRoom(t, s, rs, rs.free(), synchronizer.Workers(pool), synchronizer.Monitor(), activeobject.Name("o"))
	ctx, cancel := context.WithCancel(background)
	one := callWith(ctx, rs.pass, o, none)
	objecttest.Waiting(t, o, rs.pass, 1)
	other := call(rs.pass, o, none)
	objecttest.Waiting(t, o, rs.pass, 2)
	opens := call(rs.set, o, true)
	objecttest.Waiting(t, o, rs.set, 1)
	after := call(rs.a, o, func(context.Context) error { return nil })
	objecttest.Waiting(t, o, rs.a, 1)
	snapshot := o.Explain()
	require.Empty(t, snapshot.Running)
	reasons := map[string]mailbox.Reason{}
	for _, w := range snapshot.Waiting {
		reasons[w.Operation] = w.Reason
		require.Equal(t, w.Operation == "pass", w.Thread)
		require.Equal(t, w.Operation != "pass", w.Outside)
	}
	require.Equal(t, "waits for a thread: every thread of the pool (2) is held by a request that waits", reasons["set"].String())
	require.EqualValues(t, "no thread", reasons["a"].Cause)
	require.Equal(t, "open", reasons["pass"].Guard)
	_, err := rs.b.Try(background, o, func(context.Context) error { return nil })
	require.ErrorIs(t, err, activeobject.ErrRefused)
	require.ErrorContains(t, err, "there is no thread for it")
	gone, giveUp := context.WithCancel(background)
	leaves := callWith(gone, rs.b, o, func(context.Context) error { return nil })
	objecttest.Waiting(t, o, rs.b, 1)
	giveUp()
	require.ErrorIs(t, soon(t, leaves), context.Canceled)
	cancel()
	require.ErrorIs(t, soon(t, one), context.Canceled)
	for _, e := range []<-chan error{opens, other, after} {
		require.NoError(t, soon(t, e))
	}
	until(t, "idle", func() bool { return pool.Busy() == 0 })
}

// Requests that wait for a thread get one in the order of arrival, whatever the policy of the object.
func TestAMonitorGivesThreadsInTheOrderOfArrival(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	o := newRoom(t, s, rs, rs.free(), synchronizer.Workers(newPool(t, s, 1)), synchronizer.Monitor(), activeobject.ByLatest())
	here, leave := make(chan None), make(chan None)
	first := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
	soon(t, here)
	var mu sync.Mutex
	var ran []int
	var all []<-chan error
	for i := range 6 {
		op := []*activeobject.Operation[room, func(context.Context) error, None]{rs.a, rs.b, rs.c}[i%3]
		all = append(all, call(op, o, func(context.Context) error { mu.Lock(); defer mu.Unlock(); ran = append(ran, i); return nil }))
		objecttest.Waiting(t, o, op, i/3+1)
	}
	for i, w := range o.Explain().Waiting {
		require.Equal(t, i+1, w.Position)
	}
	close(leave)
	for _, e := range append(all, first) {
		require.NoError(t, soon(t, e))
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, ran)
}

// A request that is requeued at its object waits there with the thread that it has; also if a
// guard that is evaluated on that ends its goroutine.
func TestARequeuedRequestOfAMonitorKeepsItsThread(t *testing.T) {
	s := newSystem(t)
	for _, exit := range []bool{false, true} {
		pool := newPool(t, s, 2)
		typ := activeobject.NewType[room]("room")
		var evaluated, passed atomic.Int32
		pass := activeobject.Entry(typ, "pass", activeobject.Plain(func(*room) { passed.Add(1) })).When("open", (*room).isOpen)
		fragile := activeobject.Entry(typ, "fragile", activeobject.Plain(func(*room) {})).When("fragile", func(*room) bool {
			if evaluated.Add(1) > 1 && exit {
				runtime.Goexit()
			}
			return false
		})
		begin := activeobject.ProcedureCtx(typ, "begin", func(*room, context.Context, None) (None, error) { return pass.Requeue(none) })
		set := activeobject.Procedure(typ, "set", activeobject.Arg(func(r *room, open bool) { r.open = open }))
		o, err := synchronizer.New(s, typ, &room{}, synchronizer.Workers(pool), synchronizer.Monitor())
		require.NoError(t, err)
		broken := call(fragile, o, none)
		objecttest.Waiting(t, o, fragile, 1)
		// The guard of fragile is evaluated when begin has ended, by its thread or by its sender's goroutine.
		go begin.Tell(background, o, none)
		objecttest.Waiting(t, o, pass, 1)
		if exit {
			require.ErrorAs(t, soon(t, broken), new(*activeobject.GuardError))
			until(t, "fragile has left", func() bool { return pool.Busy() == 1 })
		} else {
			require.Equal(t, 2, pool.Busy())
			other := call(set, o, false)
			objecttest.Waiting(t, o, set, 1)
			require.Equal(t, "no thread", string(o.Explain().Waiting[0].Reason.Cause))
			require.Equal(t, 1, set.Waiting(o))
			o.Stop()
			for _, e := range []<-chan error{broken, other} {
				require.ErrorIs(t, soon(t, e), activeobject.ErrStopped)
			}
			until(t, "idle", func() bool { return pool.Busy() == 0 })
			continue
		}
		_, err = set.Call(background, o, true)
		require.NoError(t, err)
		until(t, "it passes", func() bool { return passed.Load() == 1 })
		until(t, "idle", func() bool { return pool.Busy() == 0 })
	}
}

// A body that waits for another object takes its thread along: one is enough.
func TestANestedCallOfAMonitorNeedsNoSecondThread(t *testing.T) {
	s, rs := newSystem(t), newRooms()
	pool := newPool(t, s, 1)
	x := newRoom(t, s, rs, rs.Conflicts(), synchronizer.Workers(pool), synchronizer.Monitor())
	y := newRoom(t, s, rs, rs.Conflicts(), synchronizer.Workers(pool), synchronizer.Monitor())
	require.NoError(t, soon(t, call(rs.a, x, func(ctx context.Context) error {
		_, err := rs.a.Call(ctx, y, func(context.Context) error { return nil })
		return err
	})))
	until(t, "idle", func() bool { return pool.Busy() == 0 })
}

// Requests that wait for a thread count for bounds.
func TestBoundsCountRequestsThatWaitForAThread(t *testing.T) {
	s := newSystem(t)
	for _, overflow := range []activeobject.Overflow{activeobject.Refuse, activeobject.DropOldest, activeobject.Wait} {
		rs := newRooms()
		pool := newPool(t, s, 1)
		o := newRoom(t, s, rs, rs.free(), synchronizer.Workers(pool), synchronizer.Monitor(), activeobject.Bound(2, overflow))
		here, leave := make(chan None), make(chan None)
		one := call(rs.a, o, func(context.Context) error { here <- none; <-leave; return nil })
		soon(t, here)
		nothing := func(context.Context) error { return nil }
		var all []<-chan error
		for i := range 5 {
			if overflow == activeobject.Wait {
				all = append(all, call(rs.b, o, nothing))
				objecttest.Waiting(t, o, rs.b, i+1)
				continue
			}
			f, e := rs.b.Send(background, o, nothing), make(chan error, 1)
			go func() { _, err := f.Await(background); e <- err }()
			all = append(all, e)
			require.Equal(t, min(i+1, 2), rs.b.Waiting(o))
		}
		_, err := rs.b.Try(background, o, nothing)
		require.ErrorIs(t, err, activeobject.ErrRefused)
		close(leave)
		require.NoError(t, soon(t, one))
		full := 0
		for _, e := range all {
			if err := soon(t, e); err != nil {
				require.ErrorIs(t, err, activeobject.ErrFull)
				full++
			}
		}
		require.Equal(t, map[activeobject.Overflow]int{activeobject.Refuse: 3, activeobject.DropOldest: 3, activeobject.Wait: 0}[overflow], full)
		objecttest.Idle(t, o)
		until(t, "idle", func() bool { return pool.Busy() == 0 })
	}
}

// An object that ends gently serves requests that wait for threads that other objects have; but if
// requests that wait at it have all of them, nothing can start, and all fail.
func TestAMonitorThatEndsGentlyWaitsForThreadsOfOthersOnly(t *testing.T) {
	for _, monitor := range []bool{false, true} {
		s, rs := newSystem(t), newRooms()
		pool := newPool(t, s, 1)
		options := []activeobject.Option{synchronizer.Workers(pool)}
		if monitor {
			options = append(options, synchronizer.Monitor())
		}
		o, far := newRoom(t, s, rs, rs.free(), options...), newRoom(t, s, rs, rs.free(), options...)
		here, leave := make(chan None), make(chan None)
		one := call(rs.a, far, func(context.Context) error { here <- none; <-leave; return nil })
		soon(t, here)
		waits := call(rs.b, o, func(context.Context) error { return nil })
		objecttest.Waiting(t, o, rs.b, 1)
		closed := make(chan error, 1)
		go func(o *activeobject.Object[room]) { closed <- o.Close(background) }(o)
		until(t, "it takes no more", func() bool {
			_, err := rs.read.Try(background, o, func(context.Context) error { return nil })
			return errors.Is(err, activeobject.ErrStopped)
		})
		select {
		case <-closed:
			t.Fatal("a request waits")
		default:
		}
		close(leave)
		require.NoError(t, soon(t, one))
		require.NoError(t, soon(t, closed))
		require.NoError(t, soon(t, waits))

		o = newRoom(t, s, rs, rs.free(), options...)
		first := call(rs.pass, o, none)
		objecttest.Waiting(t, o, rs.pass, 1)
		if monitor {
			second := call(rs.set, o, true)
			objecttest.Waiting(t, o, rs.set, 1)
			require.NoError(t, o.Close(background))
			require.ErrorIs(t, soon(t, second), activeobject.ErrStopped)
		} else {
			require.NoError(t, o.Close(background))
		}
		require.ErrorIs(t, soon(t, first), activeobject.ErrStopped)
		until(t, "idle", func() bool { return pool.Busy() == 0 })
	}
}

// Several monitors share a pool that is too small, so that it stands still now and then, until
// contexts end. Every request is accounted for, and no thread is lost.
func TestMonitorsThatShareAPoolLoseNothing(t *testing.T) {
	for _, c := range [][]activeobject.Option{
		nil,
		{activeobject.Bound(3, activeobject.Wait)},
		{activeobject.Bound(2, activeobject.DropOldest)},
		{activeobject.Bound(0, activeobject.Wait)},
		{activeobject.ByLatest(), synchronizer.Limit(2)},
	} {
		for seed := range uint64(4) {
			s, rs := newSystem(t), newRooms()
			pool := newPool(t, s, 1+int(seed))
			options := append([]activeobject.Option{synchronizer.Workers(pool), synchronizer.Monitor(), restarting()}, c...)
			var all [3]*activeobject.Object[room]
			for i := range all {
				var err error
				all[i], err = synchronizer.NewFrom(s, rs.Type, func() (*room, error) { return &room{}, nil },
					append(options, synchronizer.Conflicts(rs.free().Conflict(rs.b, rs.b).Compatible(rs.set, rs.a)))...)
				require.NoError(t, err)
			}
			var users sync.WaitGroup
			var ends, lost atomic.Int64
			const callers, rounds = 6, 60
			for u := range uint64(callers) {
				users.Go(func() {
					r := rand.New(rand.NewPCG(seed, u))
					for k := range rounds {
						o := all[r.IntN(3)]
						// Whatever stands still ends then: a request that has had enough.
						ctx, cancel := context.WithCancel(background)
						enough := time.AfterFunc(time.Duration(r.IntN(2000))*time.Microsecond, cancel)
						nothing := func(context.Context) error { runtime.Gosched(); return nil }
						var err error
						switch r.IntN(10) {
						case 0:
							_, err = rs.pass.Call(ctx, o, none)
						case 1:
							_, err = rs.set.Call(ctx, o, r.IntN(3) > 0)
						case 2:
							_, err = rs.a.Send(ctx, o, nothing).Await(background)
						case 3:
							_, err = rs.a.Try(ctx, o, nothing)
						case 4:
							_, err = activeobject.Select(ctx, rs.pass.Case(all[0], none), rs.b.Case(all[1], nothing), rs.pass.Case(all[2], none))
						case 5:
							_, err = rs.a.Call(ctx, o, func(ctx context.Context) error {
								_, err := rs.b.Call(ctx, all[(u+1)%3], nothing)
								return err
							})
						case 6:
							_, err = rs.a.Call(ctx, o, func(context.Context) error { panic("cause") })
						case 7:
							_, err = rs.a.Call(ctx, o, func(context.Context) error { runtime.Goexit(); return nil })
						case 8:
							o.Explain()
						default:
							_, err = rs.b.Call(ctx, o, nothing)
						}
						enough.Stop()
						cancel()
						switch {
						case err == nil, errors.Is(err, context.Canceled), errors.Is(err, activeobject.ErrRefused), errors.Is(err, activeobject.ErrFull),
							errors.Is(err, activeobject.ErrStopped), errors.As(err, new(*activeobject.PanicError)), errors.As(err, new(*activeobject.ExitError)),
							errors.As(err, new(*activeobject.DeadlockError)):
							ends.Add(1)
						default:
							lost.Add(1)
							t.Error(err)
						}
						if u == 0 && k == rounds-10 && seed%2 == 0 {
							all[2].Stop()
						}
					}
				})
			}
			done := make(chan None)
			go func() { users.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(patience):
				for _, o := range all {
					t.Log(o.Explain())
				}
				t.Fatal("this hangs", fmt.Sprint(c))
			}
			require.EqualValues(t, callers*rounds, ends.Load())
			for _, o := range all {
				objecttest.Idle(t, o)
			}
			until(t, "a thread is lost", func() bool { return pool.Busy() == 0 && standing() == 0 })
		}
	}
}
