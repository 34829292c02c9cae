package semaphore

import "github.com/sluice-go/sluice/activeobject"

// Shared returns the object with its state, for tests.
func (b *Binary) Shared() *activeobject.Object[bit] { return b.o }

// Shared returns the object with its state, for tests.
func (s *Semaphore) Shared() *activeobject.Object[permits] { return s.o }
