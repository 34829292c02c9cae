// Package poll says which descriptors are ready for reading or writing.
//
//	Add ──► known ──Arm──► armed ──ready──► Wait returns it, and it is known again
//	          ▲                                │
//	          └──────── Read, Write ◄──────────┘
//
// A Set has descriptors, each armed for at most one event: what Wait has returned is not returned
// again until it is armed again. So one descriptor's events are in one thread at a time. Arming
// looks at the state of the descriptor and not at its changes, so that nothing is missed between
// two activations.
//
// On Linux a Set is an epoll instance with EPOLLONESHOT, elsewhere a table given to poll(2), or to
// WSAPoll on Windows, which takes time in proportion to its length. The behavior is the same, and
// the tests run over both where both exist.
package poll

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Ready says what a descriptor is armed or ready for.
type Ready uint8

// What a descriptor may be ready for. Failed is no interest to arm for: it is reported beside what
// the descriptor is armed for, when it has failed or its other end has closed it entirely. A read
// or write says how then. A half-closed connection is ready for reading, and a read finds its end.
const (
	Read Ready = 1 << iota
	Write
	Failed
	// Ended comes beside Read, if the system says so: the other end sends nothing more.
	Ended
)

// String implements fmt.Stringer.
func (r Ready) String() string {
	text := ""
	for i, name := range []string{"read", "write", "failed", "ended"} {
		if r&(1<<i) == 0 {
			continue
		}
		if text != "" {
			text += "+"
		}
		text += name
	}
	if text == "" {
		return "nothing"
	}
	return text
}

var (
	// ErrClosed is the error of a Set that has been closed.
	ErrClosed = errors.New("poll: the set is closed")
	// ErrRemoved is the error of a Descriptor that has been removed from its set.
	ErrRemoved = errors.New("poll: the descriptor has been removed")
	// ErrRegistered is the error of Add of a descriptor that the set has.
	ErrRegistered = errors.New("poll: the set has the descriptor already")
	// ErrWouldBlock is the error of a read or write that would have to wait. Nothing has been
	// read or written.
	ErrWouldBlock = errors.New("poll: the operation would block")
)

// NotPollableError is the error of Add of a descriptor that is always ready, and never says
// whether an operation would block: that of a regular file or a directory. (Epoll refuses these
// with EPERM.) Nothing has been added.
type NotPollableError struct {
	FD  uintptr
	Err error // of the system, or nil
}

// Error implements error.
func (e *NotPollableError) Error() string {
	return fmt.Sprintf("poll: descriptor %d is of a file that readiness says nothing about, such as a regular file: leave its operations to a thread that may block", e.FD)
}

// Unwrap returns the error of the system.
func (e *NotPollableError) Unwrap() error { return e.Err }

// Event says that a descriptor is ready.
type Event struct {
	Descriptor *Descriptor
	Ready      Ready
}

// Set is a set of descriptors. All its methods may be called at the same time, except that one
// goroutine at a time waits.
//
// An event is known by a token that its set gives to no other descriptor. So an event of a
// descriptor that has been removed is not taken for one of a later descriptor with the same number.
type Set struct {
	system system

	mu      sync.Mutex
	closed  bool
	last    uint64                 // the token that was given last
	members map[uint64]*Descriptor // by token
	numbers map[uintptr]*Descriptor
}

// system is an implementation of a Set. Its methods may be called at the same time, except that
// one goroutine at a time calls wait, and that close is called once, and no method but wait is
// called after it. Add, arm, armEdge, remove and forget are called with the mu of the Set held.
type system interface {
	add(d *Descriptor, r Ready) error
	arm(d *Descriptor, r Ready) error
	armEdge(d *Descriptor) (bool, error)
	remove(d *Descriptor) error
	forget(d *Descriptor) error // remove, without a system call about the descriptor
	// wait stores what is ready, and returns how many that are. It returns none if the time has
	// passed, or wake has been called since the last wait. A negative timeout has no end.
	wait(found []found, timeout time.Duration) (int, error)
	wake()
	close() error
}

// found is an event, by the token of its descriptor.
type found struct {
	token uint64
	ready Ready
}

// Descriptor is a descriptor in a set.
type Descriptor struct {
	// Owner is what the descriptor is for, to the package's user.
	Owner any

	set     *Set
	fd      uintptr
	token   uint64
	removed bool  // guarded by the mu of the set
	armed   Ready // where the system does not keep it
	index   int   // likewise: its place in the table
}

// Portable is for tests of what uses this package: it has New return a set that uses no epoll, where
// that is.
var Portable atomic.Bool

// New returns an empty set. It fails if the system has no descriptors left for it.
func New() (*Set, error) {
	if Portable.Load() {
		return newSet(newPortable)
	}
	return newSet(newSystem)
}

func newSet(make func() (system, error)) (*Set, error) {
	s, err := make()
	if err != nil {
		return nil, fmt.Errorf("poll: making a set: %w", err)
	}
	return &Set{system: s, members: map[uint64]*Descriptor{}, numbers: map[uintptr]*Descriptor{}}, nil
}

// Add adds a descriptor and arms it for r; if that is 0 it is not armed yet. The descriptor must not
// block in reads and writes, and must be removed before it is closed. Add fails with ErrRegistered,
// *NotPollableError, ErrClosed, or an error of the system such as EBADF; then the set is as before.
// An event may be returned by a Wait before Add has returned.
func (s *Set) Add(fd uintptr, owner any, r Ready) (*Descriptor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.numbers[fd] != nil:
		return nil, ErrRegistered
	}
	s.last++
	d := &Descriptor{Owner: owner, set: s, fd: fd, token: s.last}
	if err := s.system.add(d, r); err != nil {
		return nil, err
	}
	s.members[d.token], s.numbers[fd] = d, d
	return d, nil
}

// Len returns how many descriptors the set has.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members)
}

// FD returns the descriptor's number.
func (d *Descriptor) FD() uintptr { return d.fd }

// Arm has Wait return the descriptor once, when it is ready for anything in r, or has failed. It
// replaces what the descriptor has been armed for; nothing disarms it. It fails with ErrRemoved,
// ErrClosed or an error of the system.
func (d *Descriptor) Arm(r Ready) error {
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	switch {
	case d.removed:
		return ErrRemoved
	case d.set.closed:
		return ErrClosed
	}
	return d.set.system.arm(d, r)
}

// ArmEdge has Wait return the descriptor whenever something has come to be read, if there is something
// to be read now, and when it has failed: not once, but until the next Arm. So a user that has read all
// that was there need not arm the descriptor again, which is a system call; in turn an event may come
// while the one before is handled. It reports false, and does nothing, where the system has no such
// events. It fails like Arm.
//
// All that was there has been read if a read would block; or, from a stream, if it has returned less
// than there was room for, and Ended has not been reported.
func (d *Descriptor) ArmEdge() (bool, error) {
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	switch {
	case d.removed:
		return false, ErrRemoved
	case d.set.closed:
		return false, ErrClosed
	}
	return d.set.system.armEdge(d)
}

// Remove takes the descriptor out of its set. No later Wait returns it. A second Remove, or one
// after the set has been closed, does nothing.
func (d *Descriptor) Remove() error { return d.remove(d.set.system.remove) }

// Forget is Remove for a descriptor that has been closed already, which should not have been. The
// number may be that of another one by now, so the operating system is not asked.
func (d *Descriptor) Forget() { _ = d.remove(d.set.system.forget) }

func (d *Descriptor) remove(from func(*Descriptor) error) error {
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	if d.removed {
		return nil
	}
	d.removed = true
	delete(d.set.members, d.token)
	if d.set.numbers[d.fd] == d {
		delete(d.set.numbers, d.fd)
	}
	if d.set.closed {
		return nil
	}
	return from(d)
}

// maxFound is how many events one Wait fetches at most.
const maxFound = 128

// Wait waits until descriptors are ready, and stores up to len(events) of them, and 128. It returns
// how many there are: 0 if the time has passed, or Wake has been called since the last Wait, or, at
// times, for no reason. A negative timeout has no end, and 0 only looks. It fails with ErrClosed
// once the set has been closed, also if that happens meanwhile, or an error of the system.
func (s *Set) Wait(events []Event, timeout time.Duration) (int, error) {
	var room [maxFound]found
	all := room[:min(len(events), maxFound)]
	n, err := s.system.wait(all, timeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	some := 0
	for _, f := range all[:n] {
		if d := s.members[f.token]; d != nil { // else it has been removed
			events[some] = Event{d, f.ready}
			some++
		}
	}
	return some, err
}

// Wake has the Wait that is under way, or else the next one, return at once.
func (s *Set) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.system.wake()
	}
}

// Close ends the set, and a Wait that is under way. The descriptors stay open. A second Close does nothing.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.system.close()
}
