package activeobject

import (
	"context"
	"errors"
	"fmt"
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
	f      *filtered         // while Select goes on, at an object with interceptors
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
	// missing reports whether there is nothing that could be chosen.
	missing() bool
	// snatch makes the call if its object is free and its guard holds. If it is not
	// made, unsure says that it might be able to run at once all the same.
	snatch(ctx context.Context) (made, unsure bool)
	// try makes the call if that need not wait for a guard, or for the caller itself. The
	// error is that of the context, which has ended.
	try(ctx context.Context) (made bool, err error)
	// join makes the call one of a selection. It reports false if it has its result
	// instead, an error.
	join(ctx context.Context, s *mailbox.Selection, now time.Duration) bool
	// leave ends the part in a selection: it was chosen, or else why there is no call.
	leave(chosen bool, why error)
	// forsake leaves the record to whoever may still have it.
	forsake()
}

// Otherwise is the case of Select that is chosen if no other can run at once, so
// that Select does not wait. It must be the last one.
var Otherwise Alternative = otherwise{}

type otherwise struct{}

func (otherwise) missing() bool                                                { return false }
func (otherwise) snatch(context.Context) (made, unsure bool)                   { return false, false }
func (otherwise) try(context.Context) (bool, error)                            { return true, nil }
func (otherwise) join(context.Context, *mailbox.Selection, time.Duration) bool { return false }
func (otherwise) leave(bool, error)                                            {}
func (otherwise) forsake()                                                     {}

// ErrNotChosen is what Interceptor.Done is told of a call that Select has not chosen,
// and which has not run.
var ErrNotChosen = errors.New("sluice: select: another case was chosen")

// Select makes one of several calls, to any objects: the first that can run. It
// returns the index of that case, whose Result is there then. If several can run at
// once, the one that is listed first does (except that nobody waits to hear from
// objects with threads of their own, Pooled and Dedicated); otherwise the calls wait
// at all their objects, and whichever object is ready first runs its call, and that
// one only: the others leave their queues before it runs, and have left no trace.
//
//	take, tick := buffers.take.Case(buffer, none), clocks.tick.Case(clock, none)
//	switch i, err := activeobject.Select(ctx, take, tick); i {
//	case 0:
//		item, err := take.Result()
//		…
//
// A call that fails instead of running (its object stops, its guard panics, an
// interceptor refuses it) is chosen too, and has the error as its result. With
// Otherwise as the last case, Select does not wait: each call in turn is made as by
// Try.
//
// A call to an object that waits for the caller, such as the one whose body calls
// Select, cannot run: it is passed over, with Otherwise or without. Without Otherwise,
// Select fails with *DeadlockError if all are like that.
//
// Select itself fails, with -1 and without any call having been made, with the
// context's error, with that *DeadlockError, and with a *SelectError if there is no case, one of them is nil or is there twice, or
// Otherwise is not the last.
func Select(ctx context.Context, cases ...Alternative) (int, error) {
	if err := checkCases(cases); err != nil {
		return -1, err
	}
	if cases[len(cases)-1] == Otherwise {
		for i, c := range cases {
			if made, err := c.try(ctx); err != nil {
				return -1, err
			} else if made {
				return i, nil
			}
		}
	}
	for i, c := range cases {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		made, unsure := c.snatch(ctx)
		if made {
			return i, nil
		}
		if unsure {
			break // the kernel is to say before those are considered that come later
		}
	}
	now := mailbox.Now()
	s := new(mailbox.Selection)
	if !mailbox.Bubbled(now) { // what is pooled has a channel
		s = selections.Get().(*mailbox.Selection)
	}
	s.Begin()
	for i, c := range cases {
		if !c.join(ctx, s, now) {
			s.Clear()
			for _, joined := range cases[:i] {
				joined.leave(false, ErrNotChosen)
			}
			return i, nil
		}
	}
	returned := false
	defer func() {
		if !returned { // a guard that was asked here, or the body, has called runtime.Goexit
			s.Forsake()
			for _, c := range cases {
				c.forsake()
			}
		}
	}()
	chosen, err := s.Select(ctx)
	returned = true
	if s.Clear(); !mailbox.Bubbled(now) {
		selections.Put(s)
	}
	why := err
	if why == nil {
		why = ErrNotChosen
	}
	for i, c := range cases {
		c.leave(i == chosen, why)
	}
	return chosen, err
}

var selections = sync.Pool{New: func() any { return new(mailbox.Selection) }}

func (c *Case[T, A, R]) missing() bool { return c == nil || c.op == nil || c.o == nil }

// known makes the case one for the operation of the object's own type. If it is of
// another type, join says so.
func (c *Case[T, A, R]) known() bool {
	if c.o.class.typ != c.op.species {
		own := c.op.heir(&c.o.core)
		if own == nil {
			return false
		}
		c.op = own
	}
	return true
}

func (c *Case[T, A, R]) snatch(ctx context.Context) (made, unsure bool) {
	if !c.known() || c.o.class.filters != nil {
		return false, true
	}
	op := c.op
	w := c.o.box.Word.Load()
	if w&^mailbox.Parked != op.idle {
		return false, !c.o.box.Busy()
	}
	if !c.o.box.Word.CompareAndSwap(w, w|op.mark) {
		return false, false
	}
	r, err := op.perform(ctx, c.o, c.arg, w, selecting, nil)
	if err == errNotNow {
		return false, false
	}
	c.result, c.err = r, err
	return true, false
}

// errNotNow is what perform returns, of a case of Select, if the guard is false.
var errNotNow = errors.New("activeobject: not now")

func (c *Case[T, A, R]) try(ctx context.Context) (bool, error) {
	p := passage{history: new(history)}
	r, err := c.op.enter(ctx, c.o, c.arg, attempting, &p)
	if err != nil && p.history.undone { // else a body may have returned such an error, that of a Try of its own
		switch err.(type) {
		case *RefusedError, *DeadlockError:
			return false, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	c.result, c.err = r, err
	return true, nil
}

func (c *Case[T, A, R]) join(ctx context.Context, s *mailbox.Selection, now time.Duration) bool {
	if !c.known() {
		c.err = c.op.common().foreign(&c.o.core)
		return false
	}
	op, own := c.op, false
	if filters := c.o.class.filters; filters != nil {
		f := &filtered{ctx: ctx, request: op.common().seen(ctx, &c.o.core, c.arg), at: &c.o.core}
		if c.err = f.queue(filters); c.err != nil {
			f.done(c.err)
			return false
		}
		c.f, ctx, own = f, f.ctx, true
		c.c = nil
	}
	if c.c == nil || c.c.op != op {
		c.c = op.newRequest(false)
	}
	r := c.c
	r.o, r.arg = c.o, c.arg
	req, err := &r.pending.Request, error(nil)
	if op.family {
		req.Key, err = op.common().keyFor(&c.o.core, r.work().key)
	}
	if err == nil {
		req.Claim, err = op.common().claim(&c.o.core, r.work().Argument)
	}
	if err != nil {
		if c.err, c.c = err, nil; c.f != nil {
			c.f.done(err)
			c.f = nil
		}
		return false
	}
	r.call.filtered = c.f
	r.pending.Request.Leaf, r.pending.Request.Patient = op.common().lendable(&c.o.core), true
	s.Add(ctx, &r.pending.Request, &c.o.box, now, own)
	op.common().enterChain(ctx, &c.o.core, &r.pending.Request)
	return true
}

func (c *Case[T, A, R]) leave(chosen bool, why error) {
	if chosen {
		c.result, c.err = c.c.pending.Result, c.c.pending.Err
		why = c.err
	}
	c.c.call.filtered.done(why) // at other objects, too, that it has been requeued to
	if c.f != nil {
		c.f, c.c = nil, nil // the watch over its context may act late
		return
	}
	c.c.putBack(nil)
}

func (c *Case[T, A, R]) forsake() {
	c.c.call.filtered.done(&mailbox.ExitError{Object: c.o.Name(), Operation: c.op.name})
	c.f, c.c = nil, nil
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
		if c == nil || c.missing() {
			return &SelectError{fmt.Sprintf("case %d is nil, or its operation or object", i)}
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
