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

// mode is what somebody wants the lock for.
type mode bool

const (
	toRead  mode = false
	toWrite mode = true
)

func (l *readWrite) free(m mode) bool { return !l.writing && (m == toRead || l.readers == 0) }

func (l *readWrite) lock(m mode) {
	if m == toWrite {
		l.writing = true
	} else {
		l.readers++
	}
}

func (l *readWrite) unlock(m mode) (none, error) {
	switch {
	case m == toWrite && l.writing:
		l.writing = false
	case m == toRead && l.readers > 0:
		l.readers--
	default:
		return none{}, &UnlockError{Lock: l.ObjectName(), Writing: m == toWrite}
	}
	return none{}, nil
}

// Readers and writers stand in one line, of which only the head is asked. What it is
// ordered by makes the three kinds. If the head is a writer who cannot start, readers
// cannot pass him; if it is a reader who cannot, a writer could not either.
var (
	byArrival    = activeobject.ByArrival()
	readersFirst = activeobject.Ordered(func(a, b *activeobject.Candidate) bool { return a.Argument == toRead && b.Argument == toWrite })
	writersFirst = activeobject.Ordered(func(a, b *activeobject.Candidate) bool { return a.Argument == toWrite && b.Argument == toRead })
)

var (
	readWrites = activeobject.NewType[readWrite]("read-write lock")
	lock       = activeobject.Entry(readWrites, "lock", activeobject.Put((*readWrite).lock)).WhenArg("free", (*readWrite).free).HeadOfLine()
	unlock     = activeobject.Procedure(readWrites, "unlock", (*readWrite).unlock)
	readers    = activeobject.Function(readWrites, "readers", activeobject.Get(func(l *readWrite) int { return l.readers }))
	writing    = activeobject.Function(readWrites, "writing", activeobject.Get(func(l *readWrite) bool { return l.writing }))
)

// ReadWrite is a lock that is held by any number of readers or by one writer. All its
// methods may be called from any goroutine; who unlocks need not be who has locked.
//
// Who holds it must not lock it once more, not even for reading: a writer may have come
// to wait between the two.
type ReadWrite struct {
	o *activeobject.Object[readWrite]
}

// NewReadWrite makes a fair read-write lock: first come first served, and readers who
// come one after another read together. Nobody starves. It fails as activeobject.New
// does.
func NewReadWrite(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return newReadWrite(system, byArrival, options)
}

// NewReadersFirst makes a read-write lock in which a reader waits for nobody but the
// writer who writes. A writer starves as long as there is always somebody who reads.
func NewReadersFirst(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return newReadWrite(system, readersFirst, options)
}

// NewWritersFirst makes a read-write lock in which no reader starts while a writer
// waits. Readers starve as long as there always is one.
func NewWritersFirst(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return newReadWrite(system, writersFirst, options)
}

func newReadWrite(system *actor.System, order activeobject.Option, options []activeobject.Option) (*ReadWrite, error) {
	options = append(options[:len(options):len(options)], order) // which is not for the user to change
	o, err := activeobject.New(system, readWrites, &readWrite{}, options...)
	if err != nil {
		return nil, err
	}
	return &ReadWrite{o}, nil
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

// Lock waits until nobody holds the lock and it is his turn, and holds it for writing. If
// ctx ends first it returns the context's error, and holds nothing.
func (l *ReadWrite) Lock(ctx context.Context) error {
	_, err := lock.Call(ctx, l.o, toWrite)
	return err
}

// TryLock is Lock without waiting, neither for those who hold it nor behind somebody who
// comes first: it fails with an error that matches activeobject.ErrRefused instead.
func (l *ReadWrite) TryLock(ctx context.Context) error {
	_, err := lock.Try(ctx, l.o, toWrite)
	return err
}

// SendLock is Lock as a future.
func (l *ReadWrite) SendLock(ctx context.Context) activeobject.Future[none] {
	return lock.Send(ctx, l.o, toWrite)
}

// LockCase is Lock as a case for activeobject.Select.
func (l *ReadWrite) LockCase() *activeobject.Case[readWrite, mode, none] {
	return lock.Case(l.o, toWrite)
}

// Unlock ends what Lock has begun. If nobody holds the lock for writing that is an
// *UnlockError.
func (l *ReadWrite) Unlock() error {
	_, err := unlock.Call(background, l.o, toWrite)
	return err
}

// SendUnlock is Unlock as a future.
func (l *ReadWrite) SendUnlock() activeobject.Future[none] {
	return unlock.Send(background, l.o, toWrite)
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

// RLock waits until nobody writes and it is his turn, and holds the lock for reading. If
// ctx ends first it returns the context's error, and holds nothing.
func (l *ReadWrite) RLock(ctx context.Context) error {
	_, err := lock.Call(ctx, l.o, toRead)
	return err
}

// TryRLock is to RLock as TryLock to Lock.
func (l *ReadWrite) TryRLock(ctx context.Context) error {
	_, err := lock.Try(ctx, l.o, toRead)
	return err
}

// SendRLock is RLock as a future.
func (l *ReadWrite) SendRLock(ctx context.Context) activeobject.Future[none] {
	return lock.Send(ctx, l.o, toRead)
}

// RLockCase is RLock as a case for activeobject.Select.
func (l *ReadWrite) RLockCase() *activeobject.Case[readWrite, mode, none] {
	return lock.Case(l.o, toRead)
}

// RUnlock ends what RLock has begun. If nobody holds the lock for reading that is an
// *UnlockError.
func (l *ReadWrite) RUnlock() error {
	_, err := unlock.Call(background, l.o, toRead)
	return err
}

// SendRUnlock is RUnlock as a future.
func (l *ReadWrite) SendRUnlock() activeobject.Future[none] {
	return unlock.Send(background, l.o, toRead)
}

// WithRLock is WithLock for reading.
func (l *ReadWrite) WithRLock(ctx context.Context, f func(context.Context) error) error {
	if err := l.RLock(ctx); err != nil {
		return err
	}
	return holding(ctx, f, l.RUnlock)
}

// Readers returns how many hold the lock for reading.
func (l *ReadWrite) Readers() (int, error) { return readers.Call(background, l.o, none{}) }

// Writing reports whether somebody holds the lock for writing.
func (l *ReadWrite) Writing() (bool, error) { return writing.Call(background, l.o, none{}) }

// Waiting returns how many wait to lock it, for reading or for writing.
func (l *ReadWrite) Waiting() int { return lock.Waiting(l.o) }

// Object returns the shared object, which can be explained, observed and stopped.
func (l *ReadWrite) Object() *activeobject.Object[readWrite] { return l.o }
