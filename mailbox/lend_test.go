package mailbox_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/sluice-go/sluice/mailbox"
)

// A caller and somebody who lends himself race for one request after another, all with the
// same record: who comes first, and whether the one has come back when the other has done. One of
// them runs it, and the caller finds out which, and what has been written by whoever it was.
func TestOneOfTheTwoRunsWhatHasBeenGranted(t *testing.T) {
	r := newRoom(mailbox.Config{Fan: &mailbox.Fan{Leaf: func(int) bool { return true }}})
	v := r.visit(tidy, "granted")
	v.ForCall()
	runs, left := 0, mailbox.Own // written by whoever runs it; and what he tells the caller
	var stop atomic.Bool
	lender, caller := make(chan struct{}), make(chan struct{})
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
				left = mailbox.Done
			} else {
				left = mailbox.Returned
			}
			linger(runs * 7919 % 512)
			v.Leave(left)
		}
	}()
	go func() {
		defer close(caller)
		own, lent := 0, 0
		for round := 1; (round <= 50_000 || own == 0 || lent == 0) && !stop.Load(); round++ {
			left = mailbox.Own
			r.Grant(&v.Request)
			if round%32 == 0 {
				runtime.Gosched()
			}
			linger(round * 104729 % 1024)
			found := v.Begin()
			if found == mailbox.Own {
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
	if n := r.Unbegun(); n != 0 {
		t.Errorf("%d are said to be left", n)
	}
}

// linger takes time.
func linger(n int) {
	for range n {
	}
}
