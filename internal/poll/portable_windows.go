package poll

import (
	"errors"
	"io"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	winsock     = windows.NewLazySystemDLL("ws2_32.dll")
	wsaPoll     = winsock.NewProc("WSAPoll")
	ioctlsocket = winsock.NewProc("ioctlsocket")
)

// The flags of WSAPoll, and the command of ioctlsocket that has a socket not block.
const (
	pollRead  = 0x0100 | 0x0200 // POLLRDNORM | POLLRDBAND
	pollWrite = 0x0010          // POLLWRNORM
	pollBad   = 0x0001 | 0x0002 | 0x0004
	fionbio   = 0x8004667E

	socketType = 0x1008 // SO_TYPE
)

// pollFD is the WSAPOLLFD of WSAPoll.
type pollFD struct {
	socket  windows.Handle
	events  int16
	revents int16
}

// wait stores what is ready of the table, and returns how many of it are. A negative timeout has no
// end.
func wait(table []entry, timeout time.Duration) (int, error) {
	fds := make([]pollFD, len(table))
	for i, e := range table {
		fds[i].socket = windows.Handle(e.fd)
		if e.want&Read != 0 {
			fds[i].events |= pollRead
		}
		if e.want&Write != 0 {
			fds[i].events |= pollWrite
		}
	}
	n, _, err := wsaPoll.Call(uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(milliseconds(timeout)))
	if int32(n) < 0 {
		return 0, os.NewSyscallError("WSAPoll", err)
	}
	for i, fd := range fds {
		if fd.revents&pollRead != 0 {
			table[i].is |= Read
		}
		if fd.revents&pollWrite != 0 {
			table[i].is |= Write
		}
		if fd.revents&pollBad != 0 {
			table[i].is |= Failed
		}
	}
	return int(int32(n)), nil
}

// pollable returns an error unless the descriptor is a socket. It has the socket not block, which
// Go's own operations, being overlapped, do not notice.
func pollable(fd uintptr) error {
	if _, err := windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, socketType); err != nil {
		return &NotPollableError{FD: fd, Err: err}
	}
	on := uint32(1)
	if r, _, err := ioctlsocket.Call(fd, fionbio, uintptr(unsafe.Pointer(&on))); r != 0 {
		return os.NewSyscallError("ioctlsocket", err)
	}
	return nil
}

// loop is a signal: a socket for datagrams that is connected to itself.
type loop struct{ socket windows.Handle }

func newSignal() (signal, error) {
	var data windows.WSAData
	if err := windows.WSAStartup(0x202, &data); err != nil { // counted: Go's own may come later
		return nil, os.NewSyscallError("WSAStartup", err)
	}
	s, err := windows.Socket(windows.AF_INET, windows.SOCK_DGRAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	err = windows.Bind(s, &windows.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		var at windows.Sockaddr
		if at, err = windows.Getsockname(s); err == nil {
			err = windows.Connect(s, at)
		}
	}
	if err == nil {
		err = pollable(uintptr(s))
	}
	if err != nil {
		_ = windows.Closesocket(s)
		return nil, os.NewSyscallError("bind", err)
	}
	return &loop{s}, nil
}

func (l *loop) fd() uintptr { return uintptr(l.socket) }

func (l *loop) send() { _, _ = WriteFD(l.fd(), []byte{1}) }

func (l *loop) clear() {
	var b [8]byte
	_, _ = ReadFD(l.fd(), b[:])
}

func (l *loop) close() error { return windows.Closesocket(l.socket) }

// ReadFD reads from a socket that does not block. It returns io.EOF at the end, ErrWouldBlock if
// nothing is there yet, or an error of the system.
func ReadFD(fd uintptr, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var n, flags uint32
	err := windows.WSARecv(windows.Handle(fd), &windows.WSABuf{Len: uint32(len(p)), Buf: &p[0]}, 1, &n, &flags, nil, nil)
	switch {
	case errors.Is(err, windows.WSAEWOULDBLOCK):
		return 0, ErrWouldBlock
	case err != nil:
		return 0, os.NewSyscallError("WSARecv", err)
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}

// WriteFD writes to a socket that does not block: as much as there is room for. It returns how much
// that is; if it is less than all, ErrWouldBlock or an error of the system as well.
func WriteFD(fd uintptr, p []byte) (int, error) {
	written := 0
	for written < len(p) {
		var n uint32
		rest := p[written:]
		err := windows.WSASend(windows.Handle(fd), &windows.WSABuf{Len: uint32(len(rest)), Buf: &rest[0]}, 1, &n, 0, nil, nil)
		written += int(n)
		switch {
		case errors.Is(err, windows.WSAEWOULDBLOCK):
			return written, ErrWouldBlock
		case err != nil:
			return written, os.NewSyscallError("WSASend", err)
		}
	}
	return written, nil
}
