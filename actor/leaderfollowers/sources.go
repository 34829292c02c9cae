package leaderfollowers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/internal/poll"
)

// descriptor is what connections, listeners and files have in common. All system calls go through
// the syscall.RawConn, which keeps the descriptor open meanwhile: so none of them hits another file
// that has got the same number.
type descriptor struct {
	handle        *Handle
	raw           syscall.RawConn // nil of a file that Begin is for
	reads, writes transfer
}

// enroll makes the descriptor of a handle, which is that of the source.
func (d *descriptor) enroll(s *HandleSet, what string, of any, from source) (*Handle, error) {
	c, ok := of.(syscall.Conn)
	if !ok {
		return nil, &HandleError{What: what, Cause: errors.New("it has no descriptor (it is no syscall.Conn)")}
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, &HandleError{What: what, Cause: err}
	}
	h, err := s.add(func(*Handle) source { return from })
	if err != nil {
		return nil, err
	}
	d.handle, d.raw = h, raw
	d.reads.do = func(fd uintptr) bool { return d.reads.done(poll.ReadFD(fd, d.reads.p)) }
	d.writes.do = func(fd uintptr) bool { return d.writes.done(poll.WriteFD(fd, d.writes.p)) }
	failed := raw.Control(func(fd uintptr) { err = s.register(h, what, fd) })
	if err = errors.Join(failed, err); err != nil {
		s.abandon(h)
		return nil, err
	}
	return h, nil
}

// read reads what is there. It notes whether that was all: if there would be nothing to be read, or
// less has come than there was room for, which for a stream says the same.
func (d *descriptor) read(p []byte) (int, error) {
	n, err := d.reads.run(d.raw.Read, p)
	d.handle.drained.Store(err == nil && n < len(p) || err == ErrWouldBlock)
	return n, err
}

func (d *descriptor) write(p []byte) (int, error) { return d.writes.run(d.raw.Write, p) }

// polled returns the descriptor in the set that is waited for; nil if there is none.
func (d *descriptor) polled() *poll.Descriptor {
	d.handle.set.mu.Lock()
	defer d.handle.set.mu.Unlock()
	return d.handle.descriptor
}

// withdraw removes the descriptor. If it has been closed by other code, the system has forgotten it.
func (d *descriptor) withdraw() {
	if p := d.polled(); p != nil && d.raw.Control(func(uintptr) { _ = p.Remove() }) != nil {
		p.Forget()
	}
}

// arm has the handle reported once; or, where edges may be, and are, at each of them.
func (d *descriptor) arm(interest Ready, may bool) (edges bool, err error) {
	p := d.polled()
	failed := d.raw.Control(func(uintptr) {
		if may && interest == Read {
			edges, err = p.ArmEdge()
		}
		if !edges && err == nil {
			err = p.Arm(poll.Ready(interest))
		}
	})
	return edges, errors.Join(failed, err)
}

// transfer is a read or write that is under way: what the function needs that RawConn calls. It is
// kept, so that an operation allocates nothing.
type transfer struct {
	mu  sync.Mutex
	p   []byte
	n   int
	err error
	do  func(fd uintptr) bool
}

// run has the operation done once, whatever the result.
func (t *transfer) run(by func(func(fd uintptr) bool) error, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err = p, 0, nil
	failed := by(t.do)
	t.p = nil
	switch {
	case failed != nil:
		return t.n, failed
	case t.err == poll.ErrWouldBlock:
		return t.n, ErrWouldBlock
	}
	return t.n, t.err
}

// done keeps the result. It returns true, so that RawConn does not wait.
func (t *transfer) done(n int, err error) bool {
	t.n, t.err = n, err
	return true
}

// Conn is a connection as a handle. Its reads and writes do not wait.
type Conn struct {
	*Handle
	io   descriptor
	conn net.Conn
}

// Conn makes the connection a handle, which is inactive: see Handle.Activate. It is for connections
// with a descriptor, such as those of TCP and of Unix domain sockets. The set owns the connection from
// then on, and closes it with the handle; nothing else may read from it or write to it. It fails with
// ErrRegistered, *HandleError or ErrClosed; then the connection is the caller's as before.
func (s *HandleSet) Conn(c net.Conn) (*Conn, error) {
	if c == nil {
		return nil, argument("HandleSet.Conn", "c", "is nil: pass a connection")
	}
	conn := &Conn{conn: c}
	h, err := conn.io.enroll(s, conn.name(), c, conn)
	if err != nil {
		return nil, err
	}
	conn.Handle = h
	return conn, nil
}

// Read reads what is there. It returns ErrWouldBlock if nothing is, and io.EOF at the end of what the
// other side sends; that may still read.
func (c *Conn) Read(p []byte) (int, error) { return c.io.read(p) }

// Write writes what there is room for, and returns how much that is; if it is less than all, with
// ErrWouldBlock: the rest can be written when the handle is ready for writing.
func (c *Conn) Write(p []byte) (int, error) { return c.io.write(p) }

// CloseWrite ends what is sent to the other side, which finds io.EOF, and may still send.
func (c *Conn) CloseWrite() error {
	if h, ok := c.conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// LocalAddr returns the address of this side.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

func (c *Conn) name() string {
	if at := c.conn.RemoteAddr(); at != nil && at.String() != "" {
		return "connection " + at.String()
	}
	return "connection"
}

func (c *Conn) arm(interest Ready) (bool, error) { return c.io.arm(interest, true) }

func (c *Conn) release() error {
	c.io.withdraw()
	return c.conn.Close()
}

// Listener is a listener as a handle: ready for reading when a connection can be accepted.
type Listener struct {
	*Handle
	io       descriptor
	listener deadlineListener

	mu      sync.Mutex
	reserve io.Closer // a descriptor for when there are no others; nil while it is in use
}

// deadlineListener is a listener whose Accept can be made not to wait.
type deadlineListener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// Listen makes the listener a handle, which is inactive. It is for those of TCP and of Unix domain
// sockets. The set owns it from then on, and closes it with the handle. It fails as Conn does.
//
// The listener keeps one descriptor in reserve: see ExhaustedError.
func (s *HandleSet) Listen(l net.Listener) (*Listener, error) {
	if l == nil {
		return nil, argument("HandleSet.Listen", "l", "is nil: pass a listener")
	}
	d, ok := l.(deadlineListener)
	if !ok {
		return nil, &HandleError{What: fmt.Sprintf("%T", l), Cause: errors.New("its Accept cannot be made not to wait (it has no SetDeadline)")}
	}
	listener := &Listener{listener: d}
	h, err := listener.io.enroll(s, listener.name(), l, listener)
	if err != nil {
		return nil, err
	}
	listener.Handle = h
	listener.restock()
	return listener, nil
}

const (
	// acceptPatience is how long Accept waits for a connection that has been there a moment ago, and
	// is gone.
	acceptPatience = time.Millisecond
	// acceptPause is how long a listener is left alone when no descriptors are left.
	acceptPause = 20 * time.Millisecond
)

// Accept accepts one connection. It returns ErrWouldBlock if there is none, and *ExhaustedError if
// there are no descriptors left; then it may return a connection, too.
func (l *Listener) Accept() (net.Conn, error) {
	ready := false
	if err := l.io.raw.Control(func(fd uintptr) { ready = poll.IsReady(fd, poll.Read) }); err != nil {
		return nil, err
	}
	if !ready {
		return nil, ErrWouldBlock
	}
	if err := l.listener.SetDeadline(time.Now().Add(acceptPatience)); err != nil {
		return nil, err
	}
	l.restock()
	c, err := l.listener.Accept()
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrWouldBlock
	case !exhausted(err):
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cause := err
	if l.reserve != nil {
		_ = l.reserve.Close()
		l.reserve = nil
		c, err = l.listener.Accept()
	}
	if err != nil {
		l.set.mu.Lock()
		l.paused = acceptPause
		l.set.mu.Unlock()
		c = nil
	}
	return c, &ExhaustedError{Cause: cause}
}

// restock takes a descriptor in reserve, if there is none and the system has one.
func (l *Listener) restock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserve == nil && !l.Closed() {
		if f, err := os.Open(os.DevNull); err == nil {
			l.reserve = f
		}
	}
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

func (l *Listener) name() string { return "listener " + l.listener.Addr().String() }

// arm has the listener reported once: it is never read to the end.
func (l *Listener) arm(interest Ready) (bool, error) { return l.io.arm(interest, false) }

func (l *Listener) release() error {
	l.io.withdraw()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserve != nil {
		_ = l.reserve.Close()
		l.reserve = nil
	}
	return l.listener.Close()
}

// File is an open file as a handle. One that says whether it is ready, such as a pipe or a terminal,
// has events as connections have. For any file, also a regular one, Begin has an operation done by a
// worker, and its end is the event.
type File struct {
	*Handle
	io   descriptor
	file *os.File

	// Of a file without readiness; guarded by the mu of the set.
	busy   bool
	result error
}

// File makes a file a handle, which is inactive. The set owns the file from then on, and closes it
// with the handle. It fails as Conn does: with a *HandleError around a *NotPollableError for a regular
// file or a directory; these are for OpenFile.
func (s *HandleSet) File(f *os.File) (*File, error) {
	if f == nil {
		return nil, argument("HandleSet.File", "f", "is nil: pass a file")
	}
	file := &File{file: f}
	h, err := file.io.enroll(s, file.name(), f, file)
	if err != nil {
		return nil, err
	}
	file.Handle = h
	return file, nil
}

// OpenFile makes any file a handle, with a worker in place of readiness: see Begin. It fails with
// ErrClosed.
func (s *HandleSet) OpenFile(f *os.File) (*File, error) {
	if f == nil {
		return nil, argument("HandleSet.OpenFile", "f", "is nil: pass a file")
	}
	file := &File{file: f}
	h, err := s.add(func(*Handle) source { return file })
	if err != nil {
		return nil, err
	}
	file.Handle = h
	return file, nil
}

// Read reads what is there, of a file with readiness; of others it waits for the disk.
func (f *File) Read(p []byte) (int, error) {
	if f.io.raw == nil {
		return f.file.Read(p)
	}
	return f.io.read(p)
}

// Write writes what there is room for, to a file with readiness; to others, all.
func (f *File) Write(p []byte) (int, error) {
	if f.io.raw == nil {
		return f.file.Write(p)
	}
	return f.io.write(p)
}

// Begin has the operation done on a goroutine of the system's worker pool, which may wait for the
// disk. When it has returned, that is an event of the handle, which must have been made by OpenFile
// and be active; Result returns its error. It fails with ErrBusy or ErrClosed, and then the operation
// is not done. A panic of the operation is its result, a *HandlerError.
func (f *File) Begin(operation func(*os.File) error) error {
	s := f.set
	if f.io.raw != nil || operation == nil {
		return argument("File.Begin", "operation", "is nil, or of a file that has been made a handle by File: use OpenFile")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f.state == closed || s.pool.closing:
		return ErrClosed
	case f.busy:
		return ErrBusy
	}
	f.busy = true
	s.pool.system.Workers().Dispatch(task(func() {
		err := error(&HandlerError{Handle: f.name(), Exited: true})
		defer func() {
			if v := recover(); v != nil {
				err = &HandlerError{Handle: f.name(), Value: v, Stack: stack()}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			f.busy, f.result = false, err
			s.report(f.Handle, 0)
		}()
		err = operation(f.file)
	}))
	return nil
}

// Result returns the error of the operation that was done last.
func (f *File) Result() error {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return f.result
}

func (f *File) name() string { return "file " + f.file.Name() }

func (f *File) arm(interest Ready) (bool, error) {
	if f.io.raw == nil {
		return false, nil // the end of an operation is reported as it comes
	}
	return f.io.arm(interest, true)
}

func (f *File) release() error {
	if f.io.raw != nil {
		f.io.withdraw()
	}
	return f.file.Close()
}

// Timer is a handle whose events are points in time.
type Timer struct{ *Handle }

// Timer makes a timer, which is inactive and not set. It fails with ErrClosed.
func (s *HandleSet) Timer() (*Timer, error) {
	h, err := s.add(func(h *Handle) source { return internal{"timer", h.id} })
	if err != nil {
		return nil, err
	}
	return &Timer{h}, nil
}

// Reset sets the timer: its event comes once, after d, in place of one that has not come yet. It
// fails with ErrClosed.
func (t *Timer) Reset(d time.Duration) error {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.state == closed {
		return ErrClosed
	}
	t.due = time.Now().Add(d)
	s.set(t.Handle)
	return nil
}

// Stop prevents the event of the timer. It reports false if the timer is not set: the event has come,
// and its handler may not have run yet.
func (t *Timer) Stop() bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	return t.set.unset(t.Handle)
}

// WakeUp is a handle whose events come from the program itself.
type WakeUp struct{ *Handle }

// WakeUp makes a wake-up, which is inactive. It fails with ErrClosed.
func (s *HandleSet) WakeUp() (*WakeUp, error) {
	h, err := s.add(func(h *Handle) source { return internal{"wake-up", h.id} })
	if err != nil {
		return nil, err
	}
	return &WakeUp{h}, nil
}

// Wake is an event of the handle. Those that come before its handler has begun are one event; one
// that comes while it runs is another. It never waits, and fails with ErrClosed.
func (w *WakeUp) Wake() error {
	s := w.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.state == closed {
		return ErrClosed
	}
	if w.state != reported {
		s.report(w.Handle, 0)
	}
	return nil
}

// internal is a source inside the program.
type internal struct {
	kind string
	id   uint64
}

func (i internal) name() string { return fmt.Sprintf("%s %d", i.kind, i.id) }

func (internal) arm(Ready) (bool, error) { return false, nil }

func (internal) release() error { return nil }
