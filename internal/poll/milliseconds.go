package poll

import (
	"math"
	"time"
)

// milliseconds returns a timeout as the operating system takes it: rounded up, so that a wait for
// less than one does not become a loop that only looks; -1 has no end.
func milliseconds(timeout time.Duration) int {
	if timeout < 0 {
		return -1
	}
	return int(min((timeout+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}
