package engine

import (
	"runtime"
	"sync"
)

// exclusion is a mutex for sections that are much shorter than the time it takes to park. A
// goroutine that finds it locked waits awake for a while.
//
// A sync.Mutex waits awake only as long as no other goroutine is ready to run on its processor.
// With many callers it parks at once, is woken behind all of them, and then may find the mutex
// locked again. If the parked goroutine owns an object, or has run a body that is yet to be
// completed, all others wait for it meanwhile.
type exclusion struct{ sync.Mutex }

// Lock locks it.
func (x *exclusion) Lock() {
	if !x.TryLock() {
		x.lock()
	}
}

func (x *exclusion) lock() {
	const probes, gap = 20, 100
	if runtime.GOMAXPROCS(0) > 1 {
		for range probes {
			for range gap {
			}
			if x.TryLock() {
				return
			}
		}
	}
	x.Mutex.Lock()
}
