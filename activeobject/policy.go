package activeobject

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Candidate is a waiting request as a policy sees it.
type Candidate = mailbox.Candidate

// order is a policy with what it needs to know of requests.
type order struct {
	policy *mailbox.Policy
	rank   ranking
	views  bool
}

type ranking uint8

const (
	unranked ranking = iota
	byPriority
	byDeadline
)

// WithPriority returns a context whose requests have the priority: greater ones go
// first at objects that are made ByPriority. The default is 0.
func WithPriority(ctx context.Context, priority int) context.Context {
	return engine.WithPriority(ctx, priority)
}

// WithClient returns a context whose requests are made in the name of the client,
// which policies and interceptors get to see. That of a message is its sender's PID.
func WithClient(ctx context.Context, client any) context.Context {
	return engine.WithClient(ctx, client)
}

// SetPriority changes the priority of a waiting request at an object that is made
// ByPriority. The request is named by its arrival number, which Explain shows. It
// fails with a *PriorityError, and changes nothing, if no such request waits, or the
// object is ordered otherwise. (A Future has such a method, too.)
func (o *Object[T]) SetPriority(arrival uint64, priority int) error {
	switch {
	case !o.config.engine.Prioritized:
		return &PriorityError{Problem: o.Name() + " is not ordered by priority: make it with ByPriority"}
	case !o.box.SetPriority(arrival, priority):
		return &PriorityError{Problem: fmt.Sprintf("no request no. %d waits at %s", arrival, o.Name())}
	}
	return nil
}

// HeadOfLine makes the entry evaluate only the guard of the request that is considered
// first. The others wait behind it, so that small ones cannot starve a large one.
// Without it a request whose guard is false blocks no other. HeadOfLine returns the
// operation.
func (op *Operation[T, A, R]) HeadOfLine() *Operation[T, A, R] {
	defer op.info.declaring("a head of line")()
	if op.info.family {
		panic(op.info.where() + " is a family with a head of line: the requests of one key wait for the same guard anyway")
	}
	op.info.headOfLine = true
	return op
}
