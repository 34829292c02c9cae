package activeobject

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Candidate is a waiting request as a policy sees it.
type Candidate = mailbox.Candidate

// ByArrival makes the object take requests in the order of their arrival. That is
// the default, unless the type has another one.
func ByArrival() Option { return ordered(order{}) }

// Rotating makes the object take its operations in turn instead of by arrival;
// within an operation requests still start in the order of arrival.
func Rotating() Option { return ordered(order{policy: mailbox.Rotating}) }

// LIFO makes the object take the latest arrival first.
func LIFO() Option { return ordered(order{policy: mailbox.LIFO}) }

// ByPriority makes the object take requests with a greater priority first, which
// WithPriority gives them; among equals, by arrival. SetPriority changes that of a
// waiting request.
func ByPriority() Option { return ordered(order{policy: mailbox.Ranked, rank: byPriority}) }

// ByDeadline makes the object take the request first whose context has the earliest
// deadline; those without one last; among equals, by arrival.
func ByDeadline() Option { return ordered(order{policy: mailbox.Ranked, rank: byDeadline}) }

// Ordered makes the object take request a before request b if before says so;
// among equals, by arrival. Before must be a strict weak order over what does not
// change while they wait. If it panics the request that is to be placed, or both,
// fail with *PolicyError. It is called with the scheduling exclusion held, so it
// must be quick, and not call the object.
func Ordered(before func(a, b *Candidate) bool) Option {
	if before == nil {
		return wrong("Ordered", "is given nil: pass a function that says which of two requests comes first")
	}
	return ordered(order{policy: engine.Ordered(before), views: true})
}

// Choosing makes the object take whichever request the function chooses, by its
// index, of those that may start now, which come in the order of arrival. If it
// panics, or returns no index, all of these fail with *PolicyError. It is called
// with the scheduling exclusion held, like that of Ordered. Every start costs a look
// at all that may start.
func Choosing(choose func(eligible []*Candidate) int) Option {
	if choose == nil {
		return wrong("Choosing", "is given nil: pass a function that returns the index of the request to start")
	}
	return ordered(order{policy: engine.Choosing(choose), views: true})
}

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

func ordered(o order) Option { return func(s *settings) { s.order, s.ordered = o, true } }

// Fixed makes an order, such as LIFO(), one that cannot be changed: if an option before it
// orders requests, too, New fails with *OptionError. It is for constructors of objects to whose
// meaning the order belongs, and which hand on options of their users.
func Fixed(order Option) Option {
	if order == nil {
		return wrong("Fixed", "is given nil: pass an order, such as ByArrival")
	}
	return func(s *settings) {
		if s.ordered {
			wrong("an order of requests", "is given to an object that has one of its own, which is a part of what it is: leave it out")(s)
		}
		order(s)
	}
}

// wrong is an option that fails New.
func wrong(option, reason string) Option {
	return func(s *settings) {
		if s.wrong == (senseless{}) {
			s.wrong = senseless{option, reason}
		}
	}
}

// senseless says what is wrong with an option.
type senseless struct{ option, reason string }

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
	case !o.class.config.Prioritised:
		return &PriorityError{Problem: o.Name() + " is not ordered by priority: make it with ByPriority"}
	case !o.box.SetPriority(arrival, priority):
		return &PriorityError{Problem: fmt.Sprintf("no request no. %d waits at %s", arrival, o.Name())}
	}
	return nil
}

// HeadOfLine makes the entry ask only the guard of the request that is considered
// first; the others wait behind it, so that small ones cannot starve a large one.
// Without it a request whose guard is false stands in nobody's way. It returns the
// operation.
func (op *Operation[T, A, R]) HeadOfLine() *Operation[T, A, R] {
	defer op.info.declaring("a head of line")()
	if op.info.family {
		panic(op.info.where() + " is a family with a head of line: the requests of one key wait for the same guard anyway")
	}
	op.info.headOfLine = true
	return op
}
