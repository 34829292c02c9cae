package word

import "sync/atomic"

// Atomic is a Word that several goroutines read and write.
type Atomic struct{ v atomic.Uint64 }

// Load returns the word.
func (a *Atomic) Load() Word { return Word(a.v.Load()) }

// Store writes the word. W1 says which goroutine may.
func (a *Atomic) Store(w Word) { a.v.Store(uint64(w)) }

// CompareAndSwap writes the word if it is as it was.
func (a *Atomic) CompareAndSwap(was, w Word) bool { return a.v.CompareAndSwap(uint64(was), uint64(w)) }
