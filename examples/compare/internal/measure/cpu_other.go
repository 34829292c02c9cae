//go:build !unix

package measure

import "time"

// cpuTime returns the CPU time that this process has used, and whether it is
// known: it is not here.
func cpuTime() (time.Duration, bool) { return 0, false }
