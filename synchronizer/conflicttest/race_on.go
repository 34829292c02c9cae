//go:build race

package conflicttest

import "runtime"

// detecting says that the race detector is on.
const detecting = true

// races returns how many data races it has reported.
func races() int { return runtime.RaceErrors() }
