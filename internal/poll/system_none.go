//go:build !unix && !windows

package poll

import "errors"

func newSystem() (system, error) { return newPortable() }

func newPortable() (system, error) { return nil, errors.ErrUnsupported }

// ReadFD and WriteFD are not supported here.
func ReadFD(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// IsReady is not supported here.
func IsReady(uintptr, Ready) bool { return false }

// WriteFD is not supported here.
func WriteFD(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
