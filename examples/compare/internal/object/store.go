package object

import (
	"fmt"
	"sync"
)

// store keeps a version for each key, twice over, to show writes that are torn. With
// one key it is the register that readers and writers share.
type store struct{ cells []cell }

type cell struct {
	first, second int64 // how many writes there were
	_             [112]byte
}

func (s *store) read(r Request) (int64, error) {
	c := &s.cells[r.Key]
	version := c.first
	r.Work.Do()
	if c.second != version {
		return 0, fmt.Errorf("a reader saw a torn write: %d and %d", version, c.second)
	}
	return version, nil
}

func (s *store) write(r Request) (int64, error) {
	c := &s.cells[r.Key]
	version := c.first + 1
	c.first = version
	r.Work.Do()
	c.second++
	return version, nil
}

// The operations of a store.
const (
	read = iota
	write
)

// Stores declares the store.
var Stores = Type[store]{
	Name:  "store",
	About: "callers read and write versions by key; nobody waits for anything but others",
	Operations: []Operation[store]{
		read:  {Name: "read", Body: (*store).read, Reads: true},
		write: {Name: "write", Body: (*store).write},
	},
	Keyed:   true,
	New:     func(s Setting) *store { return &store{make([]cell, s.Keys)} },
	ByHand:  newStoreByHand,
	Callers: accessors,
	Check:   anySetting,
	Audit:   auditStores,
}

// storeByHand is the store with a lock for each key.
type storeByHand struct {
	locks []rowLock
	run   Run
}

type rowLock struct {
	sync.RWMutex
	_ [104]byte // keeps locks out of each other's cache lines
}

func newStoreByHand(s *store, run Run) Hand {
	return &storeByHand{make([]rowLock, len(s.cells)), run}
}

// Call implements Hand.
func (h *storeByHand) Call(op int, r Request) (int64, error) {
	lock := &h.locks[r.Key]
	if op == read {
		lock.RLock()
		defer lock.RUnlock()
	} else {
		lock.Lock()
		defer lock.Unlock()
	}
	return h.run(op, r)
}

// Stop implements Hand: nobody waits for a condition.
func (h *storeByHand) Stop() {}

// accessor is a caller of stores.
type accessor struct {
	_ [128]byte // keeps the callers' books out of each other's cache lines
	draw
	seen   []int64 // latest version, by object and key
	writes int64
}

func accessors(s Setting) []Caller {
	callers := make([]Caller, s.Callers)
	for i := range callers {
		callers[i] = &accessor{draw: newDraw(s, i), seen: make([]int64, s.Objects*s.Keys)}
	}
	return callers
}

// Next implements Caller.
func (a *accessor) Next() Step { return a.step(a.object(), a.op(), a.key(), 0) }

// Done implements Caller.
func (a *accessor) Done(s Step, version int64) error {
	seen := &a.seen[s.Object*a.setting.Keys+s.Key]
	if s.Op == read && version < *seen {
		return fmt.Errorf("a reader saw version %d after %d", version, *seen)
	}
	if s.Op == write {
		if version <= *seen {
			return fmt.Errorf("a writer made version %d after %d", version, *seen)
		}
		a.writes++
	}
	*seen = version
	return nil
}

// auditStores compares stores with the books of their callers.
func auditStores(stores []*store, callers []Caller) error {
	var kept, answered int64
	for _, c := range callers {
		answered += c.(*accessor).writes
	}
	for _, s := range stores {
		for _, c := range s.cells {
			if c.first != c.second {
				return fmt.Errorf("a torn write was left: %d and %d", c.first, c.second)
			}
			kept += c.first
		}
	}
	if kept != answered {
		return fmt.Errorf("%d writes are kept, %d were answered", kept, answered)
	}
	return nil
}
