//go:build unix

package poll

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wait stores what is ready of the table, and returns how many of it are. A negative timeout has no
// end. A table that has been interrupted by a signal of the operating system is not ready.
func wait(table []entry, timeout time.Duration) (int, error) {
	fds := make([]unix.PollFd, len(table))
	for i, e := range table {
		fds[i].Fd = int32(e.fd)
		if e.want&Read != 0 {
			fds[i].Events |= unix.POLLIN
		}
		if e.want&Write != 0 {
			fds[i].Events |= unix.POLLOUT
		}
	}
	n, err := unix.Poll(fds, milliseconds(timeout))
	if err != nil {
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			return 0, nil
		}
		return 0, os.NewSyscallError("poll", err)
	}
	for i := range fds {
		table[i].is = pollReady(fds[i].Revents)
	}
	return n, nil
}

func pollReady(events int16) (r Ready) {
	if events&(unix.POLLIN|unix.POLLPRI) != 0 {
		r |= Read
	}
	if events&unix.POLLOUT != 0 {
		r |= Write
	}
	if events&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
		r |= Failed
	}
	return r
}

// pollable returns an error if readiness says nothing about the descriptor.
func pollable(fd uintptr) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(fd), &s); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR, unix.S_IFBLK:
		return &NotPollableError{FD: fd}
	}
	return nil
}

// pipe is a signal.
type pipe struct{ in, out int }

func newSignal() (signal, error) {
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fds[0])
			_ = unix.Close(fds[1])
			return nil, os.NewSyscallError("fcntl", err)
		}
	}
	return &pipe{in: fds[1], out: fds[0]}, nil
}

func (p *pipe) fd() uintptr { return uintptr(p.out) }

func (p *pipe) send() { _, _ = unix.Write(p.in, []byte{1}) } // there is room: see interrupted

func (p *pipe) clear() {
	var b [8]byte
	_, _ = unix.Read(p.out, b[:])
}

func (p *pipe) close() error { return errors.Join(unix.Close(p.in), unix.Close(p.out)) }
