package coroutine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	. "github.com/sluice-go/sluice/actor/coroutine"
)

// A Notify that comes before its Wait is kept; several count as one.
func TestANotifyBeforeItsWaitIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Signal
		s.Notify()
		s.Notify()
		require.NoError(t, s.Wait(background))
		returned := false
		go func() { require.NoError(t, s.Wait(background)); returned = true }()
		synctest.Wait()
		require.False(t, returned) // nothing is notified: it does not wake
		s.Notify()
		synctest.Wait()
		require.True(t, returned)
	})
}

// Each Notify wakes one waiter, in the order in which they came.
func TestANotifyWakesTheWaiterThatCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Signal
		var order []int
		for i := range 5 {
			go func() { require.NoError(t, s.Wait(background)); order = append(order, i) }()
			synctest.Wait()
		}
		for i := range 5 {
			require.Len(t, order, i)
			s.Notify()
			synctest.Wait()
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	})
}

// A Wait whose context ends fails, and takes no Notify along.
func TestAWaitWhoseContextEndsTakesNoNotifyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Signal
		ctx, cancel := context.WithCancel(background)
		failed := false
		go func() { require.ErrorIs(t, s.Wait(ctx), context.Canceled); failed = true }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.True(t, failed)
		s.Notify()
		require.ErrorIs(t, s.Wait(ctx), context.Canceled)
		require.NoError(t, s.Wait(background))
	})
}

// Waiters that check, wait and check again get everything that is put, whichever comes first.
func TestNoWakeUpIsLostWhicheverComesFirst(t *testing.T) {
	var s Signal
	var there atomic.Int64
	const n = 20000
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range n {
				there.Add(1)
				s.Notify()
			}
		})
	}
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	for got := int64(0); got < 3*n; {
		if k := there.Swap(0); k > 0 {
			got += k
			continue
		}
		require.NoError(t, s.Wait(ctx))
	}
	all.Wait()
}
