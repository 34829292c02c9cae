package coroutine

import (
	"context"
	"sync"
)

// Signal wakes goroutines that wait, and remembers one Notify that comes before its Wait: "wait"
// and "notify" that may come in either order, as select and wakeup of Java's NIO do. It is the
// coWait and coNotify of the text's last section.
//
// A waiter checks its condition, calls Wait, and checks again; what makes the condition true calls
// Notify afterwards. Then no wake-up is lost: a Notify before the Wait is kept, and one after it
// wakes the waiter. A Wait returns nil only for a Notify of its own, so there is no spurious
// wake-up; but the Notify may be an old one, whose change has been seen already, so the check is a
// loop. (The text's version can return with nothing notified, as its reader remarks.)
//
// Each Notify wakes one waiter at most. Those that come while one is kept count as one.
//
// The zero Signal is ready to use. It must not be copied.
type Signal struct {
	once sync.Once
	c    chan struct{} // holds the Notify that is kept
}

func (s *Signal) channel() chan struct{} {
	s.once.Do(func() { s.c = make(chan struct{}, 1) })
	return s.c
}

// Notify wakes the goroutine that has waited longest, or is kept for the next Wait. It never
// blocks.
func (s *Signal) Notify() {
	select {
	case s.channel() <- struct{}{}:
	default: // one is kept, and no goroutine waits
	}
}

// Wait returns nil when it has got a Notify: a kept one at once. It fails with the context's error
// if that ends first, or has ended; then a kept Notify stays.
func (s *Signal) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.channel():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
