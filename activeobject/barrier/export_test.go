package barrier

import "github.com/sluice-go/sluice/activeobject"

// Shared returns the object with its state, for tests.
func (a *Auto) Shared() *activeobject.Object[auto] { return a.o }

// Shared returns the object with its state, for tests.
func (c *Cyclic) Shared() *activeobject.Object[cyclic] { return c.o }

// Shared returns the object with its state, for tests.
func (l *Latch) Shared() *activeobject.Object[latch] { return l.o }

// Shared returns the object with its state, for tests.
func (p *Phaser) Shared() *activeobject.Object[phaser] { return p.o }

// Shared returns the object with its state, for tests.
func (s *Squad) Shared() *activeobject.Object[squad] { return s.o }
