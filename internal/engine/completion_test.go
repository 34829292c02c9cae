package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// shut makes a request that waits, and open lets it run.
func (r *room) shut(t *testing.T, v *visitor) {
	t.Helper()
	r.open.Store(false)
	n := r.Queued(pass)
	require.NoError(t, v.post(background))
	r.queued(t, pass, n+1)
}

func (r *room) unlock(t *testing.T) {
	t.Helper()
	r.open.Store(true)
	soon(t, r.visit(tidy, "opener").call(background))
}

func TestContinuationsAreDoneOnceInOrderWhoeverRegistersWhen(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		const registrars, each = 8, 25
		for range 20 {
			v := r.visit(pass, "v")
			r.shut(t, v)
			var done, late [registrars][each]atomic.Int32
			var last [registrars]atomic.Int32 // of those that a worker has done
			var all, registering sync.WaitGroup
			for g := range registrars {
				last[g].Store(-1)
				registering.Add(1)
				all.Go(func() {
					registering.Done()
					for i := range each {
						k := v.Then(func(*engine.Turn) {
							if last[g].Swap(int32(i)) != int32(i-1) {
								t.Error("out of order")
							}
							if v.ran != 1 {
								t.Error("before the end")
							}
							done[g][i].Add(1)
						})
						if k == nil { // it is for us
							late[g][i].Add(1)
						}
					}
					<-v.Done()
					if v.Await(background) != nil || !v.Settled() {
						t.Error("not settled")
					}
				})
			}
			registering.Wait()
			r.unlock(t)
			all.Wait()
			for g := range registrars {
				for i := range each {
					for n := 0; done[g][i].Load()+late[g][i].Load() == 0; n++ {
						runtime.Gosched()
					}
					require.EqualValues(t, 1, done[g][i].Load()+late[g][i].Load())
				}
			}
		}
	})
}

func TestContinuationsRunOnAWorkerAndNeverOnTheOwner(t *testing.T) {
	// The workers are asleep: nothing follows, though the request has ended.
	s := &shelf{}
	r := newRoom(engine.Config{Workers: s})
	v := r.visit(pass, "v")
	r.shut(t, v)
	var order []int
	for i := range 5 {
		require.NotNil(t, v.Then(func(*engine.Turn) { order = append(order, i) }))
	}
	r.unlock(t)
	soon(t, v.Done())
	require.Empty(t, order)
	require.Equal(t, 1, s.len(), "one worker for all")
	s.run()
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	require.Nil(t, v.Then(nil), "it is settled")
}

func TestADroppedContinuationIsNotDone(t *testing.T) {
	for _, drop := range [][]int{{0}, {1}, {3}, {0, 1, 2, 3}, {3, 2}, {1, 2}} {
		s := &shelf{}
		r := newRoom(engine.Config{Workers: s})
		v := r.visit(pass, "v")
		r.shut(t, v)
		var done [4]int
		var ks [4]*engine.Continuation
		for i := range ks {
			ks[i] = v.Then(func(*engine.Turn) { done[i]++ })
		}
		want := [4]int{1, 1, 1, 1}
		for _, i := range drop {
			ks[i].Drop()
			want[i] = 0
		}
		r.unlock(t)
		for i, k := range ks {
			if want[i] == 1 {
				k.Drop() // too late
			}
		}
		s.run()
		require.Equal(t, want, done)
	}
}

func TestAContinuationThatEndsItsGoroutineKeepsNoneFromRunning(t *testing.T) {
	r := newRoom(engine.Config{})
	v := r.visit(pass, "v")
	r.shut(t, v)
	done := make(chan int, 10)
	for i := range cap(done) {
		v.Then(func(*engine.Turn) {
			done <- i
			if i%2 == 0 {
				runtime.Goexit()
			}
		})
	}
	r.unlock(t)
	for i := range cap(done) {
		require.Equal(t, i, soon(t, done))
	}
}

func TestWhatFollowsFromAContinuationIsDoneInTheSameTurn(t *testing.T) {
	s := &shelf{}
	r := newRoom(engine.Config{Workers: s})
	v := r.visit(pass, "v")
	r.shut(t, v)
	const long = 100_000 // on the stack this would be deep
	joins := make([]engine.Join, long)
	var from engine.Awaited = v
	reached := 0
	for i := range joins {
		j := &joins[i]
		j.Of(false, from)
		from.Then(func(t *engine.Turn) {
			reached++
			t.Complete(j)
		})
		from = j
	}
	r.unlock(t)
	require.Equal(t, 1, s.run())
	require.Equal(t, long, reached)
	require.True(t, joins[long-1].Settled())
}

func TestAJoinWithdrawsWhatStillWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		entered, let := make(chan struct{}), make(chan struct{})
		runs, waits := r.visit(tidy, "runs"), r.visit(tidy, "waits")
		runs.Leaf = false
		runs.during = func() { close(entered); <-let }
		require.NoError(t, runs.post(background))
		soon(t, entered)
		require.NoError(t, waits.post(background))
		var inner, outer engine.Join
		inner.Of(true, runs, nil, waits)
		outer.Of(false, &inner)
		gone := errors.New("gone")
		require.True(t, outer.WithdrawAll(gone))
		require.False(t, outer.WithdrawAll(gone))
		require.Equal(t, gone, waits.err)
		require.True(t, waits.Settled())
		require.False(t, runs.Settled())
		over, cancel := context.WithCancel(background)
		cancel()
		require.ErrorIs(t, outer.Await(over), context.Canceled)
		close(let)
		soon(t, runs.Done())
	})
}

func TestTheHolderOfATicketIsToldByAToken(t *testing.T) {
	everywhere(t, func(t *testing.T, r *room) {
		for _, leaf := range []bool{true, false} {
			v := r.visit(pass, "v")
			v.Leaf, v.Ticket = leaf, true
			v.ForCall(0)
			r.shut(t, v)
			over, cancel := context.WithCancel(background)
			cancel()
			require.ErrorIs(t, v.Redeem(over), context.Canceled)
			r.unlock(t)
			redeemed := make(chan error, 1)
			go func() { redeemed <- v.Redeem(background) }()
			require.NoError(t, soon(t, redeemed))
			require.Equal(t, 1, v.ran)
			require.ErrorIs(t, v.Redeem(over), context.Canceled, "there is one token")
		}
	})
}
