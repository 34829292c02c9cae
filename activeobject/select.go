package activeobject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

// Case is a call that Select may make: an operation of an object, with its
// argument. When it has been made the Case holds the result. A Case can be used for
// one Select after another, but not for two at the same time.
type Case[T, A, R any] struct {
	op  *Operation[T, A, R]
	o   *Object[T]
	arg A

	c      *request[T, A, R] // the record, made when it is first needed
	result R
	err    error
}

// Case returns the call as a case for Select.
func (op *Operation[T, A, R]) Case(o *Object[T], arg A) *Case[T, A, R] {
	return &Case[T, A, R]{op: op, o: o, arg: arg}
}

// Result returns what the call has returned: after a Select that has chosen it.
func (c *Case[T, A, R]) Result() (R, error) { return c.result, c.err }

// Alternative is a *Case of whatever types, or Otherwise.
type Alternative interface {
	// snatch makes the call if its object is free and its guard holds.
	snatch(ctx context.Context) bool
	// try makes the call if that need not wait for a guard.
	try(ctx context.Context) bool
	// join makes the call one of a selection. It reports false if it has its result
	// instead, an error.
	join(ctx context.Context, s *mailbox.Selection, now time.Duration) bool
	// leave ends the part in a selection.
	leave(chosen bool)
}

// Otherwise is the case of Select that is chosen if no other can run at once, so
// that Select does not wait. It must be the last one.
var Otherwise Alternative = otherwise{}

type otherwise struct{}

func (otherwise) snatch(context.Context) bool                                  { return false }
func (otherwise) try(context.Context) bool                                     { return true }
func (otherwise) join(context.Context, *mailbox.Selection, time.Duration) bool { return false }
func (otherwise) leave(bool)                                                   {}

// Select makes one of several calls, to any objects: the first that can run. It
// returns the index of that case, whose Result is there then. If several can run at
// once, the one that is listed first does; otherwise the calls wait at all their
// objects, and whichever object is ready first runs its call, and that one only:
// the others leave their queues before it runs, and have left no trace.
//
//	take, tick := buffers.take.Case(buffer, none), clocks.tick.Case(clock, none)
//	switch i, err := activeobject.Select(ctx, take, tick); i {
//	case 0:
//		item, err := take.Result()
//		…
//
// A call that fails instead of running (its object stops, its guard panics) is
// chosen too, and has the error as its result. With Otherwise as the last case,
// Select does not wait: each call in turn is made as by Try.
//
// Select itself fails, with -1 and without any call having been made, with the
// context's error, with *DeadlockError if all objects wait for the caller, and with
// a *SelectError if there is no case, one of them is nil or is there twice, or
// Otherwise is not the last.
func Select(ctx context.Context, cases ...Alternative) (int, error) {
	if err := checkCases(cases); err != nil {
		return -1, err
	}
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	if cases[len(cases)-1] == Otherwise {
		return slices.IndexFunc(cases, func(c Alternative) bool { return c.try(ctx) }), nil
	}
	for i, c := range cases {
		if c.snatch(ctx) {
			return i, nil
		}
	}
	now := mailbox.Now()
	s := selections.Get().(*mailbox.Selection)
	if mailbox.Bubbled(now) {
		s = new(mailbox.Selection) // what is pooled has a channel
	}
	s.Begin()
	for i, c := range cases {
		if !c.join(ctx, s, now) {
			for _, joined := range cases[:i] {
				joined.leave(false)
			}
			return i, nil
		}
	}
	returned := false
	defer func() {
		if !returned { // a guard that was asked here, or the body, has called runtime.Goexit
			s.Forsake()
		}
	}()
	chosen, err := s.Select(ctx)
	returned = true
	for i, c := range cases {
		c.leave(i == chosen)
	}
	if s.Clear(); !mailbox.Bubbled(now) {
		selections.Put(s)
	}
	return chosen, err
}

var selections = sync.Pool{New: func() any { return new(mailbox.Selection) }}

func (c *Case[T, A, R]) snatch(ctx context.Context) bool {
	op := c.op
	if c.o.class.typ != op.typ || c.o.class.filters != nil {
		return false // join finds out what that means
	}
	w := c.o.box.Word.Load()
	if w&^mailbox.Parked != op.idle || !c.o.box.Word.CompareAndSwap(w, w|op.mark) {
		return false
	}
	r, err := op.perform(ctx, c.o, c.arg, w, selecting, nil)
	if err == errNotNow {
		return false
	}
	c.result, c.err = r, err
	return true
}

// errNotNow is what perform returns, of a case of Select, if the guard is false.
var errNotNow = errors.New("activeobject: not now")

func (c *Case[T, A, R]) try(ctx context.Context) bool {
	r, err := c.op.Try(ctx, c.o, c.arg)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return false
	}
	c.result, c.err = r, err
	return true
}

func (c *Case[T, A, R]) join(ctx context.Context, s *mailbox.Selection, now time.Duration) bool {
	op := c.op
	if c.o.class.typ != op.typ {
		if op = op.heir(c.o.class.typ); op == nil {
			c.err = c.op.foreign(c.o)
			return false
		}
	}
	if c.c == nil || c.c.op != op {
		c.c = op.newRequest(false)
	}
	r := c.c
	r.o, r.arg = c.o, c.arg
	r.Leaf, r.Patient = op.lendable(c.o), true
	if r.Key, c.err = op.keyFor(c.o, c.arg); c.err != nil {
		return false
	}
	s.Add(ctx, &r.Request, &c.o.box, now)
	op.enterChain(ctx, r)
	return true
}

func (c *Case[T, A, R]) leave(chosen bool) {
	if chosen {
		c.result, c.err = c.c.Result, c.c.Err
	}
	c.c.clear()
}

// SelectError says that the cases of a Select make no sense. No call has been made.
type SelectError struct{ Problem string }

// Error implements error.
func (e *SelectError) Error() string { return "sluice: select: " + e.Problem }

func checkCases(cases []Alternative) error {
	if len(cases) == 0 {
		return &SelectError{"there is no case"}
	}
	for i, c := range cases {
		if c == nil {
			return &SelectError{fmt.Sprintf("case %d is nil", i)}
		}
		if c == Otherwise && i != len(cases)-1 {
			return &SelectError{fmt.Sprintf("Otherwise is case %d of %d: it must be the last", i, len(cases))}
		}
		for j, d := range cases[:i] {
			if c == d {
				return &SelectError{fmt.Sprintf("case %d is case %d again: make another one with Case", i, j)}
			}
		}
	}
	return nil
}
