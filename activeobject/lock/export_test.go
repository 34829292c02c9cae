package lock

import "github.com/sluice-go/sluice/activeobject"

// Shared returns the object with its state, for tests.
func (b *Burst) Shared() *activeobject.Object[burst] { return b.o }

// Shared returns the object with its state, for tests.
func (l *ReadWrite) Shared() *activeobject.Object[readWrite] { return l.o }
