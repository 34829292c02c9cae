// Package branches keeps what a resource has begun for transactions.
package branches

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// Set is the branches of a resource, one for each transaction that has come to it and has not ended there. The zero
// Set is empty. Its methods may be called by several goroutines.
type Set[B any] struct {
	mu   sync.Mutex
	open map[uuid.UUID]*branch[B]
}

// branch is one of them.
type branch[B any] struct {
	begun chan struct{} // closed when the fields below are set
	b     *B
	err   error
}

// errPanicked is what a caller gets that waits for another one whose begin has panicked.
var errPanicked = errors.New("sluice: a branch of a transaction was not begun: the driver panicked")

// Begin returns the branch of a transaction. The first call makes it, by begin; others wait for that, until their
// context ends. If begin fails, or does not return, there is no branch.
func (s *Set[B]) Begin(ctx context.Context, id uuid.UUID, begin func() (*B, error)) (*B, error) {
	s.mu.Lock()
	o, there := s.open[id]
	if !there {
		if s.open == nil {
			s.open = map[uuid.UUID]*branch[B]{}
		}
		o = &branch[B]{begun: make(chan struct{}), err: errPanicked}
		s.open[id] = o
	}
	s.mu.Unlock()
	if there {
		select {
		case <-o.begun:
			return o.b, o.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer close(o.begun)
	defer func() {
		if o.err != nil {
			s.Forget(id)
		}
	}()
	o.b, o.err = begin()
	return o.b, o.err
}

// Find returns the branch of a transaction, or nil. It waits for one that is being begun.
func (s *Set[B]) Find(id uuid.UUID) *B {
	s.mu.Lock()
	o := s.open[id]
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	if <-o.begun; o.err != nil {
		return nil
	}
	return o.b
}

// Forget removes the branch of a transaction, if there is one.
func (s *Set[B]) Forget(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}
