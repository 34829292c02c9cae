//go:build unix

package leaderfollowers

import (
	"errors"
	"syscall"
)

// exhausted reports whether an error says that no descriptors are left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}
