//go:build unix

package measure

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time that this process has used, in user and system
// mode, and whether it is known.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
