package activeobject

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Case is a call that Select may make: an operation of an object, with its
// argument. When it has been made the Case holds the result, until it is used again. A Case can be
// used for one Select after another, but not for two at the same time.
type Case[R any] struct {
	_      incomparable
	choice choice
	result R
}

// Case returns the call as a case for Select.
func (op *Operation[T, A, R]) Case(o *Object[T], arg A) *Case[R] {
	c := &caseOf[T, A, R]{in: invocation[T, A, R]{op: op, arg: arg}}
	if op != nil && o != nil {
		c.choice.turn, c.choice.place = turn{&c.in, &op.info, &o.objectHeader}, &c.result
	}
	return &c.Case
}

// caseOf is a Case with what it is for.
type caseOf[T, A, R any] struct {
	Case[R]
	in invocation[T, A, R]
}

// Result returns what the call has returned: after a Select that has chosen it.
func (c *Case[R]) Result() (R, error) { return c.result, c.choice.err }

func (c *Case[R]) chosen() *choice {
	if c == nil || c.choice.in == nil {
		return nil
	}
	return &c.choice
}

// Alternative is a *Case of whatever type, Otherwise, or After.
type Alternative interface {
	// chosen returns the call, or nil if there is none.
	chosen() *choice
}

// choice is a Case whatever its type.
type choice struct {
	turn
	place any // of the result
	err   error
	made  bool      // it has result and err
	c     *request  // the record, made when it is first needed
	f     *filtered // while Select goes on, at an object with interceptors
}

// Otherwise is the case of Select that is chosen if no other can run at once, so
// that Select does not wait. It must be the last one.
var Otherwise Alternative = otherwise{}

type otherwise struct{}

func (otherwise) chosen() *choice { return nil }

// After is the case of Select that is chosen if no other has been within the time: then none of
// them runs. (In Ada it is the delay of a timed entry call, ARM 9.7.2.) A call that has been chosen
// takes as long as it takes. If the time is not positive, a call that can run at once still
// does, except at an object with threads of its own or one that is just taken: Otherwise is for that. After
// must be the last case, and goes without Otherwise.
func After(d time.Duration) Alternative { return after(d) }

type after time.Duration

func (after) chosen() *choice { return nil }

// Select makes one of several calls, to any objects: the first that can run. It
// returns the index of that case, whose Result is there then. If several can run at
// once, the one that is listed first does (except that Select does not wait for the answer of
// objects with threads of their own, PooledThreads and DedicatedThread); otherwise the calls wait
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
// With After as the last case, Select waits for that long. (A wait that would end by that is
// nevertheless part of a circle.)
//
// Select itself fails, with -1 and without any call having been made, with the
// context's error, with that *DeadlockError, and with a *SelectError if there is no case, one of them is nil or is there twice, or
// Otherwise or After is not the last.
func Select(ctx context.Context, cases ...Alternative) (int, error) {
	var room [8]*choice
	calls, err := choices(cases, room[:0])
	if err != nil {
		return -1, err
	}
	limit, timed := cases[len(cases)-1].(after)
	for _, c := range calls {
		c.forget()
	}
	if len(calls) < len(cases) && !timed {
		for i, c := range calls {
			if made, err := c.try(ctx); err != nil {
				return -1, err
			} else if made {
				return i, nil
			}
		}
		return len(calls), nil
	}
	if i, err := snatch(ctx, calls); i >= 0 || err != nil {
		return i, err
	}
	now := engine.Now()
	s := new(engine.Selection)
	if !engine.Bubbled(now) { // what is pooled has a channel
		s = selections.Get().(*engine.Selection)
	}
	s.Begin()
	if timed {
		s.Limit(time.Duration(limit))
	}
	for i, c := range calls {
		if !c.add(ctx, s, now) {
			s.Clear()
			for _, joined := range calls[:i] {
				joined.finish(false, ErrNotChosen, true)
			}
			return i, nil
		}
	}
	returned := false
	defer func() {
		if !returned { // a guard that was evaluated here, or the body, has called runtime.Goexit
			s.Forsake()
			for _, c := range calls {
				c.forsake()
			}
		}
	}()
	chosen, err := s.Select(ctx)
	returned = true
	if err == engine.ErrDue {
		chosen, err = len(calls), nil
	}
	if s.Clear(); !engine.Bubbled(now) {
		selections.Put(s)
	}
	why := err
	if why == nil {
		why = ErrNotChosen
	}
	watched := slices.ContainsFunc(calls, func(c *choice) bool { return c.f != nil })
	for i, c := range calls {
		c.finish(i == chosen, why, watched)
	}
	return chosen, err
}

var selections = sync.Pool{New: func() any { return new(engine.Selection) }}

// known makes the call one of the operation of the object's own type. If the object is of
// another type, it reports false.
func (c *choice) known() bool {
	op := c.op.in(c.o)
	if op != nil && op != c.op {
		c.in, c.op, c.c = invoke(op.prototype, c.in.act(getArgument, nil)), op, nil
	}
	return op != nil
}

// forget lets go of what an earlier Select has brought.
func (c *choice) forget() {
	if c.made {
		reflect.ValueOf(c.place).Elem().SetZero()
		c.err, c.made = nil, false
	}
}

// ended makes err the error of the call, which has been made.
func (c *choice) ended(err error) { c.err, c.made = err, true }

// record returns the record of the call, which is about to wait.
func (c *choice) record() *request {
	r := c.c
	if r == nil || r.handed { // the latter is still that of a Select that did not end
		r = new(request)
	}
	c.use(r)
	return r
}

// use makes r, which is new or has been reset, a record of the call.
func (c *choice) use(r *request) {
	r.create(c.in, c.place)
	r.o = c.o
}

// put gives back a record that snatch or try has made the call by. One that has waited is not used
// again, as its channel may be of a testing/synctest bubble.
func (c *choice) put(r *request) {
	if !r.pending.Request.Called() {
		r.reset(c.op)
		shelve(r)
	}
}

// records are those of calls that snatch and try make: they belong to no operation.
var records = sync.Pool{New: func() any { return new(request) }}

// shelve puts back one of them, which pins nothing then.
func shelve(r *request) {
	r.o, r.in, r.pending.Place = nil, nil, nil
	records.Put(r)
}

// snatch makes the first of the calls that can be made at once, and returns its index, or -1. It
// stops before a call of which only the scheduler can say whether that is so.
func snatch(ctx context.Context, calls []*choice) (int, error) {
	r := records.Get().(*request)
	for i, c := range calls {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		made, unsure := c.snatch(ctx, r)
		if made {
			c.ended(r.pending.Err)
			c.put(r)
			return i, nil
		}
		if unsure {
			break
		}
	}
	shelve(r)
	return -1, nil
}

// snatch makes the call, by the record, if its object is free and its guard holds. If it is not
// made, unsure says that it might be able to run at once all the same.
func (c *choice) snatch(ctx context.Context, r *request) (made, unsure bool) {
	if !c.known() || c.o.config.filters != nil {
		return false, true
	}
	w := c.o.box.Word.Load()
	if w&^word.Parked != c.op.idle {
		return false, !c.o.box.Busy()
	}
	if !c.o.box.Word.CompareAndSwap(w, w|c.op.mark) {
		return false, false
	}
	var ran engine.Turns
	c.use(r)
	if q := r.perform(ctx, c.op, w, selecting, &ran, nil); q != nil {
		r.forward(ctx, w, q, selecting, &ran, nil)
	}
	if r.pending.Err == errNotNow {
		r.pending.Err = nil
		return false, false
	}
	return true, false
}

// errNotNow is the error of a call of Select whose guard is false.
var errNotNow = errors.New("activeobject: not now")

// try makes the call if that need not wait for a guard, or for the caller itself. The
// error is that of the context, which has ended.
func (c *choice) try(ctx context.Context) (made bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !c.known() {
		c.ended(c.op.foreign(c.o))
		return true, nil
	}
	var ran engine.Turns
	r := records.Get().(*request)
	c.use(r)
	if w, q := r.enter(ctx, c.op, attempting, &ran, nil); q != nil {
		r.forward(ctx, w, q, attempting, &ran, nil)
	}
	err, begun := r.pending.Err, r.begun
	c.put(r)
	if err != nil && !begun { // else a body may have returned such an error, that of a Try of its own
		switch err.(type) {
		case *RefusedError, *DeadlockError:
			return false, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	c.ended(err)
	return true, nil
}

// add makes the call one of a selection. It reports false if it has its result
// instead, an error.
func (c *choice) add(ctx context.Context, s *engine.Selection, now time.Duration) bool {
	if !c.known() {
		c.ended(c.op.foreign(c.o))
		return false
	}
	own := false
	if filters := c.o.config.filters; filters != nil {
		f := &filtered{ctx: ctx, request: c.op.seen(ctx, c.o, c.in), at: c.o}
		if err := f.queue(filters); err != nil {
			f.done(err)
			c.ended(err)
			return false
		}
		c.f, ctx, own = f, f.ctx, true
		c.c = nil
	}
	r := c.record()
	c.c, r.handed = r, true
	req, err := &r.pending.Request, error(nil)
	if c.op.family {
		req.Key, err = c.op.keyFor(c.o, c.in)
	}
	if err == nil {
		err = c.op.join(ctx, c.o, req)
	}
	if err == nil {
		req.Claim, err = c.op.footprint(c.o, c.in, req.Transaction())
	}
	if err != nil {
		req.LeaveTransaction()
		c.ended(err)
		c.c = nil
		c.f.done(err)
		c.f = nil
		return false
	}
	if c.f != nil {
		r.with().filtered = c.f
	}
	req.Leaf, req.Patient = c.op.helpable(c.o), true
	s.Add(ctx, req, &c.o.box, now, own)
	r.enterChain(ctx, c.op)
	return true
}

// finish ends the part in a selection: it was chosen, or else why there is no call. If the contexts
// of some were watched each by itself, that may act late, and must not meet the record again.
func (c *choice) finish(chosen bool, why error, watched bool) {
	r := c.c
	if chosen {
		why = r.pending.Err
		c.ended(why)
	}
	r.pending.Request.LeaveTransaction()
	r.filtered().done(why) // at other objects, too, that it has been requeued to
	if c.f = nil; watched {
		c.c = nil
		return
	}
	r.reset(c.op)
}

// forsake leaves the record to what may still have it.
func (c *choice) forsake() {
	c.c.pending.Request.LeaveTransaction()
	c.c.filtered().done(&mailbox.ExitError{Object: c.o.Name(), Operation: c.op.name})
	c.f, c.c = nil, nil
}

// choices appends the calls of the cases, without Otherwise and After.
func choices(cases []Alternative, calls []*choice) ([]*choice, error) {
	if len(cases) == 0 {
		return nil, &SelectError{"there is no case"}
	}
	for i, a := range cases {
		if a != nil {
			if c := a.chosen(); c != nil {
				if j := slices.Index(calls, c); j >= 0 {
					return nil, &SelectError{fmt.Sprintf("case %d is case %d again: make another one with Case", i, j)}
				}
				calls = append(calls, c)
				continue
			}
		}
		last := ""
		switch a.(type) {
		case otherwise:
			last = "Otherwise"
		case after:
			last = "After"
		default:
			return nil, &SelectError{fmt.Sprintf("case %d is nil, or its operation or object", i)}
		}
		if i != len(cases)-1 {
			return nil, &SelectError{fmt.Sprintf("%s is case %d of %d: it must be the last", last, i, len(cases))}
		}
	}
	return calls, nil
}
