package engine_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
)

// newHall makes a room that runs at once what does not conflict, on the goroutines of the callers.
func newHall() *room {
	return newRoom(engine.Config{Parallel: &engine.Parallel{Leaf: func(int) bool { return true }}})
}

// An owner grants one request after another, all with the same record. Its caller and a helper race
// for each: the one that comes first runs it, and the caller may come while the helper runs it or
// later. The caller finds out which of them has run it, and sees what that one has written.
func TestOneOfTheTwoRunsWhatHasBeenGranted(t *testing.T) {
	r := newHall()
	v := r.visit(tidy, "granted")
	v.ForCall(0)
	runs, left := 0, engine.Own // written by the goroutine that runs it; left is what it tells the caller
	var asked atomic.Int64      // how many requests the caller has handed in
	var stop atomic.Bool
	owner, lender, caller := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(owner)
		for done := int64(0); !stop.Load(); {
			if asked.Load() == done {
				runtime.Gosched()
				continue
			}
			r.Grant(&v.Request)
			done++
		}
	}()
	go func() {
		defer close(lender)
		for n := 0; !stop.Load(); n++ {
			if !v.Borrow() {
				if n%64 == 0 {
					runtime.Gosched()
				}
				continue
			}
			if runs++; runs%2 == 0 {
				left = engine.Done
			} else {
				left = engine.Returned
			}
			linger(runs * 7919 % 512)
			v.Leave(left)
		}
	}()
	go func() {
		defer close(caller)
		own, lent := 0, 0
		for round := 1; (round <= 30_000 || own == 0 || lent == 0) && !stop.Load(); round++ {
			left = engine.Own
			asked.Add(1)
			if round%32 == 0 {
				runtime.Gosched()
			}
			linger(round * 104729 % 1024)
			found := v.Begin()
			if found == engine.Own {
				runs++
				own++
			} else {
				lent++
			}
			if found != left || runs != round || !v.AtRest() {
				t.Errorf("round %d: it has run %d times, its caller finds %d, and not %d", round, runs, found, left)
				return
			}
		}
	}()
	soon(t, caller)
	stop.Store(true)
	soon(t, lender)
	soon(t, owner)
	if n := r.Unbegun(); n != 0 {
		t.Errorf("%d are said to be left", n)
	}
}

// linger takes time.
func linger(n int) {
	for range n {
	}
}

// A caller forsakes its request, as its goroutine ends. However far the request has come, nothing
// waits for it afterwards, and the object goes on.
func TestARequestIsForsakenWhoeverRunsIt(t *testing.T) {
	for _, c := range []struct {
		name string
		runs int
		far  func(t *testing.T, r *room, v *visitor) (forsaken bool)
	}{
		{"granted", 0, func(*testing.T, *room, *visitor) bool { return false }},
		{"lent", 1, func(t *testing.T, r *room, v *visitor) bool {
			forsaken := make(chan struct{})
			v.during = func() {
				go func() { defer close(forsaken); v.Forsake() }()
				for !v.Awaited() {
					runtime.Gosched()
				}
			}
			require.True(t, v.Borrow())
			r.RunLent(&v.Request)
			soon(t, forsaken)
			return true
		}},
		{"done", 1, func(t *testing.T, r *room, v *visitor) bool {
			require.True(t, v.Borrow())
			r.RunLent(&v.Request)
			return false
		}},
		{"to go on", 1, func(t *testing.T, r *room, v *visitor) bool {
			v.during = func() { v.Requeue(&engine.Hop{Op: look, Body: v}) }
			require.True(t, v.Borrow())
			r.RunLent(&v.Request)
			return false
		}},
		{"to go on, and lent", 1, func(t *testing.T, r *room, v *visitor) bool {
			forsaken := make(chan struct{})
			v.during = func() {
				go func() { defer close(forsaken); v.Forsake() }()
				for !v.Awaited() {
					runtime.Gosched()
				}
				v.Requeue(&engine.Hop{Op: look, Body: v})
			}
			require.True(t, v.Borrow())
			r.RunLent(&v.Request)
			soon(t, forsaken)
			return true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newHall()
			v := r.visit(tidy, "forsaken")
			v.ForCall(0)
			holder := r.visit(tidy, "holder")
			holder.during = func() { r.HandIn(&v.Request) } // which waits, and is granted when this has returned
			soon(t, holder.call(background))
			if !c.far(t, r, v) {
				v.Forsake()
			}
			require.Equal(t, c.runs, v.ran)
			require.Zero(t, r.Unbegun())
			require.EqualValues(t, 1-c.runs, r.Stats(tidy).Withdrawals, "it has run, or never will")
			late := r.visit(tidy, "late")
			late.ForCall(0)
			next := r.visit(tidy, "next")
			next.during = func() {
				r.HandIn(&late.Request)
				require.True(t, late.Waits(), "for this one, which the scheduler has not lost count of")
			}
			soon(t, next.call(background))
			late.Forsake()
			require.Empty(t, r.Explain().Running)
			require.Empty(t, r.Explain().Waiting)
		})
	}
}
