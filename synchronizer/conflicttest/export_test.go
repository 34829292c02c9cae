package conflicttest

import "time"

// Detecting says that the race detector is on.
const Detecting = detecting

// SetPatience says how long two bodies may take, in the children of a test too that calls
// it before Check.
func SetPatience(d time.Duration) { patience = d }

// Forget has what has been built for a child be built again.
func Forget() {
	built.mu.Lock()
	defer built.mu.Unlock()
	built.path, built.why = "", ""
}
