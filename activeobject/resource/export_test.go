package resource

import "github.com/sluice-go/sluice/activeobject"

// Shared returns the object with its state, for tests.
func (s *Scheduler[D]) Shared() *activeobject.Object[desk[D]] { return s.o }
