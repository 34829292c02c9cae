//go:build !unix

package leaderfollowers

import (
	"errors"
	"syscall"
)

// exhausted reports whether an error says that no descriptors are left: WSAEMFILE or WSAENOBUFS.
func exhausted(err error) bool {
	return errors.Is(err, syscall.Errno(10024)) || errors.Is(err, syscall.Errno(10055))
}
