package resource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Grant is the right to use the resource of a Scheduler. It must not be copied.
type Grant[D any] struct {
	scheduler *Scheduler[D]
	data      D
	priority  int

	lease  time.Duration
	during context.Context // nil if that is no term
	forget func(why error) // ends the context of its holder, and what watches that; nil if there are no terms
	watch  []func()        // end what watches its holder, before they return

	// These belong to the state of the scheduler.
	timer *time.Timer // of the lease
	ended *EndedError // why it is of no use any more
}

// Data returns what its client came with.
func (g *Grant[D]) Data() D { return g.data }

// Done gives the resource back. It fails with *EndedError, which says why, if the grant
// has ended already, and with *ForeignError if it is none; nothing has changed then.
func (g *Grant[D]) Done() error {
	if g == nil || g.scheduler == nil {
		return &ForeignError{}
	}
	_, err := g.scheduler.ops.done.Call(context.Background(), g.scheduler.o, g)
	g.left(err)
	return err
}

// left is called when Done has ended with err.
func (g *Grant[D]) left(err error) {
	if err == nil || errors.Is(err, activeobject.ErrStopped) {
		g.unwatch()
	}
}

// Term says when a grant ends that is not given back. A grant may have several terms,
// and ends with the first; of one kind, the last one counts.
type Term func(*terms)

type terms struct {
	lease      time.Duration
	pid        *actor.PID
	holder     context.Context
	wrong, why string
}

// Lease is the term of a grant that ends when it has been held for d, which must be
// positive.
func Lease(d time.Duration) Term {
	if d <= 0 {
		return nonsense("lease", fmt.Sprintf("is %v: it must be positive", d))
	}
	return func(t *terms) { t.lease = d }
}

// Watched is the term of a grant that ends with an actor, that of its holder.
func Watched(holder *actor.PID) Term {
	if holder == nil {
		return nonsense("watched", "is nil: pass the PID of the actor that the grant ends with")
	}
	return func(t *terms) { t.pid = holder }
}

// During is the term of a grant that ends with a context, such as that of the HTTP
// request which it serves.
func During(ctx context.Context) Term {
	if ctx == nil {
		return nonsense("during", "is nil: pass the context that the grant ends with")
	}
	return func(t *terms) { t.holder = ctx }
}

func nonsense(term, why string) Term { return func(t *terms) { t.wrong, t.why = term, why } }

// parse returns the terms that the client has given, nil if it has given none.
func (s *Scheduler[D]) parse(call, scheduler string, all []Term) (*terms, error) {
	if len(all) == 0 {
		return nil, nil
	}
	t := &terms{}
	for _, term := range all {
		if term == nil {
			t.wrong, t.why = "term", "is nil: leave it out"
		} else {
			term(t)
		}
	}
	switch {
	case t.wrong != "":
		return nil, &activeobject.ArgumentError{Call: call, Argument: t.wrong, Problem: t.why}
	case t.holder != nil && t.holder.Err() != nil:
		return nil, &EndedError{Scheduler: scheduler, Reason: ContextEnded, Cause: context.Cause(t.holder)}
	}
	return t, nil
}

// apply returns a grant to ask for, and the context to ask with, which ends with the
// grant if that has terms. What watches the holder is there before the request waits, so
// that a client that ends in the queue leaves it.
func (s *Scheduler[D]) apply(ctx context.Context, call string, data D, all []Term) (*Grant[D], context.Context, error) {
	if len(all) == 0 {
		return s.grant(data), ctx, nil
	}
	t, err := s.parse(call, s.o.Name(), all)
	if err != nil {
		return nil, nil, err
	}
	g := s.grant(data)
	return g, g.begin(ctx, t), nil
}

// begin has the holder watched, as the terms say, and returns a context that ends with
// the grant.
func (g *Grant[D]) begin(ctx context.Context, t *terms) context.Context {
	g.lease, g.during = t.lease, t.holder
	ctx, cancel := context.WithCancelCause(ctx)
	watched, unwatch := context.WithCancel(context.Background())
	g.forget = func(why error) {
		cancel(why)
		unwatch()
	}
	// The holder may end at any time from here on.
	watch := func(stop func() bool) {
		off := context.AfterFunc(watched, func() { stop() })
		g.watch = append(g.watch, func() { off(); stop() })
	}
	if t.pid != nil {
		watch(g.scheduler.system.AfterEnd(t.pid, func() { g.end(ActorEnded, hasEnded(t.pid)) }))
	}
	if t.holder != nil {
		watch(context.AfterFunc(t.holder, func() { g.end(ContextEnded, context.Cause(t.holder)) }))
	}
	return ctx
}

func hasEnded(pid *actor.PID) error { return fmt.Errorf("%v has ended", pid) }

// unwatch ends what watches the holder, if anything does. It is called by the client that has been
// given the grant, or would have been.
func (g *Grant[D]) unwatch() {
	if g.forget == nil {
		return
	}
	for _, end := range g.watch {
		end()
	}
	g.forget(nil)
}

// entered returns the grant, or why there is none.
func (g *Grant[D]) entered(ctx context.Context, err error) (*Grant[D], error) {
	if err == nil {
		return g, nil
	}
	if g.forget != nil {
		var ended *EndedError
		if errors.As(context.Cause(ctx), &ended) && errors.Is(err, context.Canceled) {
			err = ended
		}
	}
	g.unwatch()
	return nil, err
}

func (g *Grant[D]) expire() { g.end(LeaseOver, nil) }

// end ends the grant, whether its client waits or holds the resource, unless it has
// ended.
func (g *Grant[D]) end(reason Reason, cause error) {
	s := g.scheduler
	why := &EndedError{Scheduler: s.o.Name(), Reason: reason, Cause: cause}
	s.ops.end.Call(context.Background(), s.o, ending[D]{g, why}) // or it has stopped
	g.forget(why)
}

// Reason is why a grant has ended.
type Reason string

// Why a grant has ended.
const (
	WasDone      Reason = "it is done"
	LeaseOver    Reason = "its lease is over"
	ActorEnded   Reason = "its holder has ended"
	ContextEnded Reason = "the context of its holder has ended"
	Restarted    Reason = "the scheduler has been restarted"
)

// EndedError says that a grant has ended before, and why.
type EndedError struct {
	Scheduler string
	Reason    Reason
	Cause     error // of ActorEnded and ContextEnded
}

// Error implements error.
func (e *EndedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("sluice: %s: the grant has ended: %s: %v", e.Scheduler, e.Reason, e.Cause)
	}
	return fmt.Sprintf("sluice: %s: the grant has ended: %s", e.Scheduler, e.Reason)
}

// Unwrap returns the cause.
func (e *EndedError) Unwrap() error { return e.Cause }

// ForeignError says that what should have been done is no grant of the scheduler: nil, a
// zero Grant, a copy of one, or another scheduler's.
type ForeignError struct {
	Scheduler string // that it was to be done at; empty if it belongs to none
}

// Error implements error.
func (e *ForeignError) Error() string {
	if e.Scheduler == "" {
		return "sluice: done: this grant has not been granted by any scheduler"
	}
	return "sluice: " + e.Scheduler + ": done: this is not the grant that was granted, but perhaps a copy of it"
}
