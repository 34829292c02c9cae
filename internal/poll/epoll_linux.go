package poll

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// epoll is a system over an epoll instance, which in turn is a descriptor that Go's runtime waits
// for: so a goroutine that waits is parked, and keeps no thread of the operating system, nor one of
// the few processors that goroutines run on. (A goroutine in epoll_wait keeps its processor until
// the runtime takes that away, which it does after 20 µs at the earliest.)
//
// No event is lost. The runtime is told of each change of the instance, and keeps one that comes
// when no goroutine is parked. A goroutine parks only after epoll_wait has found nothing, by
// RawConn.Read, which parks it unless there has been a change since the call of its function began.
//
// No wake-up is lost, and no wake is an event: wake has the deadline of the file pass, under mu,
// if a goroutine waits; or else says so in woken, under mu, for the next one. A goroutine that begins
// to wait sets the deadline under mu, so that none is left over.
type epoll struct {
	fd   int
	file *os.File
	raw  syscall.RawConn

	mu      sync.Mutex
	waiting bool
	woken   bool
	limited bool // a deadline is set
}

func newSystem() (system, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // says that the runtime can wait for it
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	e := &epoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	e.raw, err = e.file.SyscallConn()
	if err == nil {
		err = e.file.SetReadDeadline(time.Time{}) // fails if the runtime cannot wait for it
	}
	if err != nil {
		_ = e.file.Close()
		return nil, err
	}
	return e, nil
}

func (e *epoll) control(operation int, d *Descriptor, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(uint32(d.token)), Pad: int32(uint32(d.token >> 32))}
	return unix.EpollCtl(e.fd, operation, int(d.fd), &event)
}

// add registers a descriptor that is not to be armed for a moment only, to find out whether that can
// be: an instance reports an error or a hang-up of a descriptor that it has, whatever it is armed for.
func (e *epoll) add(d *Descriptor, r Ready) error {
	err := e.control(unix.EPOLL_CTL_ADD, d, interest(r))
	switch {
	case errors.Is(err, unix.EPERM):
		return &NotPollableError{FD: d.fd, Err: err}
	case errors.Is(err, unix.EEXIST):
		return ErrRegistered
	case err != nil:
		return os.NewSyscallError("epoll_ctl", err)
	}
	if d.armed = r; r == 0 {
		_ = e.control(unix.EPOLL_CTL_DEL, d, 0)
	}
	return nil
}

func (e *epoll) arm(d *Descriptor, r Ready) error { return e.change(d, r, interest(r)) }

func (e *epoll) armEdge(d *Descriptor) (bool, error) {
	return true, e.change(d, Read, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET)
}

// change has the system report the events, also what is there already.
func (e *epoll) change(d *Descriptor, r Ready, events uint32) error {
	operation := unix.EPOLL_CTL_MOD
	if d.armed == 0 {
		operation = unix.EPOLL_CTL_ADD
	}
	if err := e.control(operation, d, events); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	d.armed = r
	return nil
}

// interest returns the events for r, once.
func interest(r Ready) uint32 {
	events := uint32(unix.EPOLLONESHOT)
	if r&Read != 0 {
		events |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if r&Write != 0 {
		events |= unix.EPOLLOUT
	}
	return events
}

func (e *epoll) remove(d *Descriptor) error {
	if d.armed == 0 {
		return nil
	}
	err := e.control(unix.EPOLL_CTL_DEL, d, 0)
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOENT) {
		return nil // it has been closed, which removes it
	}
	return os.NewSyscallError("epoll_ctl", err)
}

func (e *epoll) forget(*Descriptor) error { return nil }

func (e *epoll) wait(all []found, timeout time.Duration) (n int, err error) {
	var room [maxFound]unix.EpollEvent
	events := room[:len(all)]
	look := func(fd uintptr) bool {
		for {
			if n, err = unix.EpollWait(int(fd), events, 0); err != unix.EINTR {
				break
			}
		}
		n = max(n, 0)
		return n > 0 || err != nil
	}
	failed := error(nil)
	if !e.begin(timeout) && timeout != 0 {
		failed = e.raw.Read(look)
	}
	if n == 0 && err == nil {
		// So that wakes and deadlines, however many there are, do not keep events waiting.
		failed = e.raw.Control(func(fd uintptr) { look(fd) })
	}
	e.mu.Lock()
	e.waiting, e.woken = false, false
	e.mu.Unlock()
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	for i := range n {
		all[i] = found{uint64(uint32(events[i].Fd)) | uint64(uint32(events[i].Pad))<<32, epollReady(events[i].Events)}
	}
	return n, failed
}

// begin sets the deadline of a wait. It reports true if there has been a wake since the last.
func (e *epoll) begin(timeout time.Duration) (woken bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.woken {
		return true
	}
	switch {
	case timeout > 0:
		e.limited = true
		_ = e.file.SetReadDeadline(time.Now().Add(timeout))
	case timeout < 0 && e.limited:
		e.limited = false
		_ = e.file.SetReadDeadline(time.Time{})
	}
	e.waiting = timeout != 0
	return false
}

func (e *epoll) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.woken {
		return
	}
	e.woken = true
	if e.waiting {
		e.limited = true
		_ = e.file.SetReadDeadline(time.Unix(1, 0))
	}
}

func (e *epoll) close() error { return e.file.Close() }

func epollReady(events uint32) (r Ready) {
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLPRI) != 0 {
		r |= Read
	}
	if events&unix.EPOLLRDHUP != 0 {
		r |= Ended
	}
	if events&unix.EPOLLOUT != 0 {
		r |= Write
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		r |= Failed
	}
	return r
}
