package lock

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// readWrite is the state of a read-write lock.
type readWrite struct {
	activeobject.Queues
	readers int
	writing bool
}

// Mode is what a ReadWrite is locked for. It is the argument of its operations.
type Mode bool

// What a ReadWrite is locked for.
const (
	ToRead  Mode = false
	ToWrite Mode = true
)

func (l *readWrite) free(m Mode) bool { return !l.writing && (m == ToRead || l.readers == 0) }

func (l *readWrite) lock(m Mode) {
	if m == ToWrite {
		l.writing = true
	} else {
		l.readers++
	}
}

func (l *readWrite) unlock(m Mode) (none, error) {
	switch {
	case m == ToWrite && l.writing:
		l.writing = false
	case m == ToRead && l.readers > 0:
		l.readers--
	default:
		return nil, &UnlockError{Lock: l.ObjectName(), Writing: m == ToWrite}
	}
	return nil, nil
}

// operations are those of one kind of lock.
type operations struct {
	typ          *activeobject.Type[readWrite]
	order        activeobject.Option
	lock, unlock *activeobject.Operation[readWrite, Mode, none]
	readers      *activeobject.Operation[readWrite, none, int]
	writing      *activeobject.Operation[readWrite, none, bool]
}

func declare(order activeobject.Option) *operations {
	t := activeobject.NewType[readWrite]("read-write lock")
	return &operations{
		typ:     t,
		order:   order,
		lock:    activeobject.Entry(t, "lock", activeobject.Arg((*readWrite).lock)).WhenArg("free", (*readWrite).free),
		unlock:  activeobject.Procedure(t, "unlock", (*readWrite).unlock),
		readers: activeobject.Function(t, "readers", activeobject.Result(func(l *readWrite) int { return l.readers })),
		writing: activeobject.Function(t, "writing", activeobject.Result(func(l *readWrite) bool { return l.writing })),
	}
}

// Readers and writers wait in one line, and its order makes the three kinds. Where only the guard of
// the first is evaluated, a writer that cannot start yet is not passed by readers; where each is
// evaluated, it is.
var (
	fair         = declare(activeobject.ByArrival())
	readersFirst = declare(activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Argument == ToRead && b.Argument == ToWrite }))
	writersFirst = declare(activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Argument == ToWrite && b.Argument == ToRead }))
)

func init() {
	fair.lock.HeadOfLine()
	writersFirst.lock.HeadOfLine()
}

// ReadWrite is a lock that is held by any number of readers or by one writer. All its
// methods may be called from any goroutine, and it may be unlocked by another one than has
// locked it.
//
// A caller that holds it must not lock it once more, not even for reading: a writer may have come
// to wait between the two.
type ReadWrite struct {
	o   *activeobject.Object[readWrite]
	ops *operations
}

// NewReadWrite makes a fair read-write lock: first come first served, and readers that
// come one after another read together. None starves. It fails as activeobject.New
// does, and likewise if an option orders requests, which belongs to the kind of lock.
//
// (The kinds are no options: they differ in a declaration, and an activeobject.Option adjusts an
// object whose operations are declared.)
func NewReadWrite(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return build(fair, system, options)
}

// NewReadersFirst makes a read-write lock in which a reader waits only while a writer holds it.
// A writer starves as long as readers overlap. Otherwise it is like NewReadWrite.
func NewReadersFirst(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return build(readersFirst, system, options)
}

// NewWritersFirst makes a read-write lock in which no reader starts while a writer
// waits. Readers starve as long as one does. Otherwise it is like NewReadWrite.
func NewWritersFirst(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return build(writersFirst, system, options)
}

func build(ops *operations, system *actor.System, options []activeobject.Option) (*ReadWrite, error) {
	options = append(options[:len(options):len(options)], activeobject.FixedPolicy(ops.order))
	o, err := activeobject.NewFrom(system, ops.typ, func() (*readWrite, error) { return &readWrite{}, nil }, options...)
	if err != nil {
		return nil, err
	}
	return &ReadWrite{o, ops}, nil
}

// UnlockError says that a lock was unlocked that is not held so. Nothing has changed.
type UnlockError struct {
	Lock    string // its name
	Writing bool   // by Unlock, and not RUnlock
}

// Error implements error.
func (e *UnlockError) Error() string {
	if e.Writing {
		return fmt.Sprintf("sluice: %s: unlock of a lock that is not held for writing", e.Lock)
	}
	return fmt.Sprintf("sluice: %s: unlock of a lock that is not held for reading", e.Lock)
}

// Lock waits until the lock is free and the request is first in line, and holds it for writing. If
// ctx ends first it returns the context's error, and holds nothing.
func (l *ReadWrite) Lock(ctx context.Context) error {
	_, err := l.ops.lock.Call(ctx, l.o, ToWrite)
	return err
}

// RLock waits until the lock is not held for writing and the request is first in line, and holds
// it for reading. If ctx ends first it returns the context's error, and holds nothing.
func (l *ReadWrite) RLock(ctx context.Context) error {
	_, err := l.ops.lock.Call(ctx, l.o, ToRead)
	return err
}

// Locks returns Lock and RLock, bound to the lock: its argument says which.
func (l *ReadWrite) Locks() activeobject.LocalProxy[Mode, activeobject.None] {
	return activeobject.At(l.ops.lock, l.o)
}

// Unlock ends what Lock has begun. If the lock is not held for writing that is an
// *UnlockError.
func (l *ReadWrite) Unlock() error {
	_, err := l.ops.unlock.Call(background, l.o, ToWrite)
	return err
}

// RUnlock ends what RLock has begun. If the lock is not held for reading that is an
// *UnlockError.
func (l *ReadWrite) RUnlock() error {
	_, err := l.ops.unlock.Call(background, l.o, ToRead)
	return err
}

// Unlocks returns Unlock and RUnlock, bound to the lock: its argument says which.
func (l *ReadWrite) Unlocks() activeobject.LocalProxy[Mode, activeobject.None] {
	return activeobject.At(l.ops.unlock, l.o)
}

// WithLock holds the lock for writing while it runs f, to which it hands ctx. If it
// cannot be locked f does not run. It is also unlocked if f panics or ends its
// goroutine. The error is that of Lock or f.
func (l *ReadWrite) WithLock(ctx context.Context, f func(context.Context) error) error {
	if err := l.Lock(ctx); err != nil {
		return err
	}
	return holding(ctx, f, l.Unlock)
}

// WithRLock is WithLock for reading.
func (l *ReadWrite) WithRLock(ctx context.Context, f func(context.Context) error) error {
	if err := l.RLock(ctx); err != nil {
		return err
	}
	return holding(ctx, f, l.RUnlock)
}

// Readers returns how many requests hold the lock for reading.
func (l *ReadWrite) Readers() (int, error) { return l.ops.readers.Call(background, l.o, nil) }

// Writing reports whether the lock is held for writing.
func (l *ReadWrite) Writing() (bool, error) { return l.ops.writing.Call(background, l.o, nil) }

// Waiting returns how many requests wait to lock it, for reading or for writing.
func (l *ReadWrite) Waiting() int { return l.ops.lock.Waiting(l.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (l *ReadWrite) Object() activeobject.AnyObject { return l.o }
