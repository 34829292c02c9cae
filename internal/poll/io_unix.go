//go:build unix

package poll

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ReadFD reads from a descriptor that does not block. It returns io.EOF at the end, ErrWouldBlock if
// nothing is there yet, or an error of the system.
func ReadFD(fd uintptr, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Read(int(fd), p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case errors.Is(err, unix.EAGAIN):
			return 0, ErrWouldBlock
		case !errors.Is(err, unix.EINTR):
			return 0, os.NewSyscallError("read", err)
		}
	}
}

// WriteFD writes to a descriptor that does not block: as much as there is room for. It returns how
// much that is; if it is less than all, ErrWouldBlock or an error of the system as well.
func WriteFD(fd uintptr, p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := unix.Write(int(fd), p[written:])
		written += max(n, 0)
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN):
			return written, ErrWouldBlock
		case !errors.Is(err, unix.EINTR):
			return written, os.NewSyscallError("write", err)
		}
	}
	return written, nil
}
