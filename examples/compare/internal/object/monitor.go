package object

import (
	"errors"
	"sync"
)

// ErrStopped is how a call fails that could not run before its object stopped.
var ErrStopped = errors.New("stopped")

// gate is what a monitor written by hand needs besides its mutex: conditions, and
// here also a way to send home those that wait.
type gate struct {
	mu      sync.Locker
	all     []*sync.Cond
	stopped bool // guarded by mu
}

// condition makes a condition of the monitor.
func (g *gate) condition() *sync.Cond {
	c := sync.NewCond(g.mu)
	g.all = append(g.all, c)
	return c
}

// Stop implements Hand.
func (g *gate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, c := range g.all {
		c.Broadcast()
	}
}
