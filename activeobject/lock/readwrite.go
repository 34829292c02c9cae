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

// Mode is what a ReadWrite is locked for. It is the argument of its operations by message.
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

// Readers and writers stand in one line, and what it is ordered by makes the three kinds.
// Where only the head of the line is asked, a writer who cannot start yet is not passed
// by readers; where each is asked, he is.
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
// methods may be called from any goroutine; who unlocks need not be who has locked.
//
// Who holds it must not lock it once more, not even for reading: a writer may have come
// to wait between the two.
type ReadWrite struct {
	o   *activeobject.Object[readWrite]
	ops *operations
}

// NewReadWrite makes a fair read-write lock: first come first served, and readers who
// come one after another read together. Nobody starves. It fails as activeobject.New
// does, and likewise if an option orders requests, which belongs to the kind of lock.
func NewReadWrite(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return build(fair, system, options)
}

// NewReadersFirst makes a read-write lock in which a reader waits for nobody but the
// writer who writes. A writer starves as long as there is always somebody who reads.
func NewReadersFirst(system *actor.System, options ...activeobject.Option) (*ReadWrite, error) {
	return build(readersFirst, system, options)
}

// NewWritersFirst makes a read-write lock in which no reader starts while a writer
// waits. Readers starve as long as there always is one.
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

// Lock waits until nobody holds the lock and it is his turn, and holds it for writing. If
// ctx ends first it returns the context's error, and holds nothing.
func (l *ReadWrite) Lock(ctx context.Context) error {
	_, err := l.ops.lock.Call(ctx, l.o, ToWrite)
	return err
}

// TryLock is Lock without waiting, neither for those who hold it nor behind somebody who
// comes first: it fails with an error that matches activeobject.ErrRefused instead.
func (l *ReadWrite) TryLock(ctx context.Context) error {
	_, err := l.ops.lock.Try(ctx, l.o, ToWrite)
	return err
}

// SendLock is Lock as a future.
func (l *ReadWrite) SendLock(ctx context.Context) activeobject.Future[none] {
	return l.ops.lock.Send(ctx, l.o, ToWrite)
}

// LockCase is Lock as a case for activeobject.Select.
func (l *ReadWrite) LockCase() *activeobject.Case[none] {
	return l.ops.lock.Case(l.o, ToWrite)
}

// Unlock ends what Lock has begun. If nobody holds the lock for writing that is an
// *UnlockError.
func (l *ReadWrite) Unlock() error {
	_, err := l.ops.unlock.Call(background, l.o, ToWrite)
	return err
}

// SendUnlock is Unlock as a future.
func (l *ReadWrite) SendUnlock() activeobject.Future[none] {
	return l.ops.unlock.Send(background, l.o, ToWrite)
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
	_, err := l.ops.lock.Call(ctx, l.o, ToRead)
	return err
}

// TryRLock is to RLock as TryLock to Lock.
func (l *ReadWrite) TryRLock(ctx context.Context) error {
	_, err := l.ops.lock.Try(ctx, l.o, ToRead)
	return err
}

// SendRLock is RLock as a future.
func (l *ReadWrite) SendRLock(ctx context.Context) activeobject.Future[none] {
	return l.ops.lock.Send(ctx, l.o, ToRead)
}

// RLockCase is RLock as a case for activeobject.Select.
func (l *ReadWrite) RLockCase() *activeobject.Case[none] {
	return l.ops.lock.Case(l.o, ToRead)
}

// RUnlock ends what RLock has begun. If nobody holds the lock for reading that is an
// *UnlockError.
func (l *ReadWrite) RUnlock() error {
	_, err := l.ops.unlock.Call(background, l.o, ToRead)
	return err
}

// SendRUnlock is RUnlock as a future.
func (l *ReadWrite) SendRUnlock() activeobject.Future[none] {
	return l.ops.unlock.Send(background, l.o, ToRead)
}

// WithRLock is WithLock for reading.
func (l *ReadWrite) WithRLock(ctx context.Context, f func(context.Context) error) error {
	if err := l.RLock(ctx); err != nil {
		return err
	}
	return holding(ctx, f, l.RUnlock)
}

// Readers returns how many hold the lock for reading.
func (l *ReadWrite) Readers() (int, error) { return l.ops.readers.Call(background, l.o, nil) }

// SendReaders is Readers as a future.
func (l *ReadWrite) SendReaders() activeobject.Future[int] {
	return l.ops.readers.Send(background, l.o, nil)
}

// Writing reports whether somebody holds the lock for writing.
func (l *ReadWrite) Writing() (bool, error) { return l.ops.writing.Call(background, l.o, nil) }

// SendWriting is Writing as a future.
func (l *ReadWrite) SendWriting() activeobject.Future[bool] {
	return l.ops.writing.Send(background, l.o, nil)
}

// Waiting returns how many wait to lock it, for reading or for writing.
func (l *ReadWrite) Waiting() int { return l.ops.lock.Waiting(l.o) }

// Object returns the shared object, which can be explained, observed and stopped.
func (l *ReadWrite) Object() *activeobject.Object[readWrite] { return l.o }
