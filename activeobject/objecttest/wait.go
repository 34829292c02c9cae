package objecttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/engine"
)

// Idle waits until the objects are idle, all at one moment: nothing runs, no
// request waits, and nothing is being decided. A caller whose request has ended may not have
// woken by then, nor what follows from a future have run; and a request that a body
// has requeued to another object is at neither of the two while it is on its way. (Wait
// for what it leads to, or for its future.)
//
// If that takes too long the test fails at once, with the explanations of the objects.
// Too long is 20 seconds, or what is left of the test's time if that is less; in a
// bubble of testing/synctest a day, which is over as soon as nothing else can happen.
// Like all that can fail a test at once, Idle is for the test's own goroutine.
func Idle(t testing.TB, objects ...activeobject.AnyObject) {
	t.Helper()
	await(t, "waiting until "+names(objects)+" idle", objects, activeobject.Load.Idle)
}

// Waiting waits until n requests wait for the operation at the object, as
// Operation.Waiting counts them: for the guard, or behind what runs, as long as it is
// sure that they have to. A request that could start at once is not counted while it
// is on its way to a thread, unless a Stepper's, where it waits for a Step.
//
// It fails as Idle does.
func Waiting[T, A, R any](t testing.TB, o *activeobject.Object[T], op *activeobject.Operation[T, A, R], n int) {
	t.Helper()
	_, stepped := o.Dispatcher().(*Stepper)
	what := fmt.Sprintf("waiting until %d requests wait for %s at %s", n, op.Name(), o.Name())
	await(t, what, []activeobject.AnyObject{o}, func(l activeobject.Load) bool {
		return op.Waiting(o) == n && (stepped || !l.Deciding)
	})
}

// await waits until the load of each object is as wanted, all at one moment, and fails
// the test if that takes too long.
func await(t testing.TB, what string, objects []activeobject.AnyObject, wanted func(activeobject.Load) bool) {
	t.Helper()
	if patience := patience(t); !reached(patience, objects, wanted) {
		t.Fatalf("objecttest: %s: not after %v:\n%s", what, patience, explain(objects))
	}
}

// reached waits until the load of each object is as wanted, all at one moment, and
// reports whether that was so within the given time.
//
// Observers are told in the step in which a load changes, so wanted holds for an
// object as long as the last it was told says so; and when the last of all objects
// comes to it, the others are still as they were.
func reached(within time.Duration, objects []activeobject.AnyObject, wanted func(activeobject.Load) bool) bool {
	if len(objects) == 0 {
		return true
	}
	var mu sync.Mutex
	over := false
	holds := make([]bool, len(objects))
	left := len(objects)
	done := make(chan struct{})
	for i, o := range objects {
		defer o.Observe(func(l activeobject.Load) bool {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return true
			}
			if now := wanted(l); now != holds[i] {
				holds[i] = now
				if now {
					left--
				} else {
					left++
				}
			}
			if left == 0 {
				over = true
				close(done)
			}
			return over
		})()
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// patience returns how long something may take before the test fails.
func patience(t testing.TB) time.Duration {
	if bubbled() {
		return 24 * time.Hour
	}
	d := 20 * time.Second
	if t, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := t.Deadline(); ok {
			d = min(d, time.Until(end)*9/10) // and time to tell
		}
	}
	return d
}

// bubbled reports whether the caller is in a bubble of testing/synctest.
func bubbled() bool { return engine.Bubbled(engine.Now()) }

func names(objects []activeobject.AnyObject) string {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = o.Name()
	}
	if len(all) == 1 {
		return all[0] + " is"
	}
	return strings.Join(all, ", ") + " are"
}

func explain(objects []activeobject.AnyObject) string {
	var b strings.Builder
	for _, o := range objects {
		b.WriteString(o.Explain().String())
	}
	return b.String()
}
