//go:build (unix && !linux) || windows

package poll

func newSystem() (system, error) { return newPortable() }
