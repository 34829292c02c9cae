package engine

import (
	"runtime"
	"sync"
)

// exclusion is a mutex for sections that are much shorter than it takes to park: who finds it
// locked waits awake for a while.
//
// A sync.Mutex does so only as long as nobody else is ready to run on its processor. Where there
// is a crowd of callers it parks at once, is woken behind all of them, and then may find
// the mutex locked again. If that is the owner of an object, or one whose body has returned,
// everybody waits for him meanwhile.
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
