package resource

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type none = activeobject.None

// Scheduler grants a resource to one client at a time. Those that wait have come with
// some data, a D, by which its policy may choose between them.
type Scheduler[D any] struct {
	o      *activeobject.Object[desk[D]]
	ops    *operations[D]
	policy *Policy[D]
	system *actor.System
}

// New returns a scheduler for a resource that is available. It fails with
// *activeobject.ArgumentError if the policy is nil, or has been given a nil function,
// or else as activeobject.New does. (An option that orders requests has no effect: the
// policy does.)
func New[D any](system *actor.System, policy *Policy[D], options ...activeobject.Option) (*Scheduler[D], error) {
	const call = "resource.New"
	switch {
	case policy == nil || policy.option == nil && policy.lacks == "":
		return nil, &activeobject.ArgumentError{Call: call, Argument: "policy", Problem: "is nil: pass one, such as FIFO"}
	case policy.lacks != "":
		return nil, &activeobject.ArgumentError{Call: call, Argument: "policy", Problem: policy.lacks}
	}
	ops := activeobject.Instance(declare[D])
	options = append(options[:len(options):len(options)], policy.option)
	o, err := activeobject.New(system, ops.typ, &desk[D]{}, options...)
	if err != nil {
		return nil, err
	}
	return &Scheduler[D]{o, ops, policy, system}, nil
}

// Enter waits until the resource is granted to the caller. If ctx ends first it never
// was. The grant is to be given back by its Done; it ends earlier if one of the given
// terms says so, and if that happens while the client waits, Enter fails with
// *EndedError. Terms that make no sense are an *activeobject.ArgumentError.
//
// Policies see the client of activeobject.WithClient, and the deadline of ctx.
func (s *Scheduler[D]) Enter(ctx context.Context, data D, terms ...Term) (*Grant[D], error) {
	g, ctx, err := s.apply(ctx, "resource.Enter", data, terms)
	if err != nil {
		return nil, err
	}
	_, err = s.ops.enter.Call(ctx, s.o, g)
	return g.entered(ctx, err)
}

// TryEnter is Enter if the resource is available; else it fails with an error that
// matches activeobject.ErrRefused.
func (s *Scheduler[D]) TryEnter(ctx context.Context, data D, terms ...Term) (*Grant[D], error) {
	g, ctx, err := s.apply(ctx, "resource.TryEnter", data, terms)
	if err != nil {
		return nil, err
	}
	_, err = s.ops.enter.Try(ctx, s.o, g)
	return g.entered(ctx, err)
}

// SendEnter is Enter as a future. Whoever drops that has the resource nevertheless, once
// it is granted.
func (s *Scheduler[D]) SendEnter(ctx context.Context, data D, terms ...Term) activeobject.Future[*Grant[D]] {
	g, ctx, err := s.apply(ctx, "resource.SendEnter", data, terms)
	if err != nil {
		return actor.Settled[*Grant[D]](nil, err)
	}
	f := s.ops.enter.Send(ctx, s.o, g)
	if g.forget == nil {
		return f
	}
	return actor.Then(f, func(_ *Grant[D], err error) (*Grant[D], error) { return g.entered(ctx, err) })
}

// EnterCase is Enter as a case for activeobject.Select, without terms.
func (s *Scheduler[D]) EnterCase(data D) *activeobject.Case[desk[D], *Grant[D], *Grant[D]] {
	return s.ops.enter.Case(s.o, s.grant(data))
}

// With runs f while the caller holds the resource, and gives it back when f has
// returned, panicked, or ended its goroutine. If the grant ends earlier, as one of the
// terms says, the context that f is given ends then, with an *EndedError as its cause;
// f goes on, but others may be granted the resource. It returns the error of Enter, or
// of f, or else of Done.
func (s *Scheduler[D]) With(ctx context.Context, data D, f func(context.Context) error, terms ...Term) (err error) {
	const call = "resource.With"
	if f == nil {
		return &activeobject.ArgumentError{Call: call, Argument: "f", Problem: "is nil: pass what to do with the resource"}
	}
	g, ctx, err := s.apply(ctx, call, data, terms)
	if err != nil {
		return err
	}
	_, err = s.ops.enter.Call(ctx, s.o, g)
	if _, err := g.entered(ctx, err); err != nil {
		return err
	}
	defer func() {
		if done := g.Done(); err == nil {
			err = done
		}
	}()
	return f(ctx)
}

// Waiting returns how many clients wait. It does not wait for anything.
func (s *Scheduler[D]) Waiting() int { return s.ops.enter.Waiting(s.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (s *Scheduler[D]) Object() *activeobject.Object[desk[D]] { return s.o }

// grant returns one that nobody has yet.
func (s *Scheduler[D]) grant(data D) *Grant[D] {
	g := &Grant[D]{scheduler: s, data: data}
	if s.policy.priority != nil {
		g.priority = s.policy.priority(data)
	}
	return g
}

// desk is the state: who has the resource.
type desk[D any] struct {
	activeobject.Queues
	holder *Grant[D]
}

// Available is the guard of those who wait to enter.
func (d *desk[D]) Available() bool { return d.holder == nil }

// Enter makes g the grant that has the resource, unless its holder has died while he waited.
func (d *desk[D]) Enter(g *Grant[D]) (*Grant[D], error) {
	if g.ended == nil && g.during != nil && g.during.Err() != nil { // nobody has told yet
		g.ended = &EndedError{Scheduler: d.ObjectName(), Reason: ContextEnded, Cause: context.Cause(g.during)}
	}
	if g.ended != nil { // its holder has died while it waited
		return nil, g.ended
	}
	d.holder = g
	if g.lease > 0 {
		g.timer = time.AfterFunc(g.lease, g.expire)
	}
	return g, nil
}

// Done takes the resource back from its holder, and from nobody else.
func (d *desk[D]) Done(g *Grant[D]) (none, error) {
	switch {
	case g.ended != nil:
		return none{}, g.ended
	case d.holder != g:
		return none{}, &ForeignError{Scheduler: d.ObjectName()}
	}
	d.End(ending[D]{g, &EndedError{Scheduler: d.ObjectName(), Reason: WasDone}})
	return none{}, nil
}

// End ends a grant for the reason given, unless it has ended; it may still wait.
func (d *desk[D]) End(e ending[D]) {
	if e.grant.ended != nil {
		return
	}
	e.grant.ended = e.why
	if d.holder == e.grant {
		d.holder = nil
	}
	if e.grant.timer != nil {
		e.grant.timer.Stop()
	}
}

// ending is a grant, and why it ends.
type ending[D any] struct {
	grant *Grant[D]
	why   *EndedError
}

// operations are those of the schedulers of one type of data.
type operations[D any] struct {
	typ   *activeobject.Type[desk[D]]
	enter *activeobject.Operation[desk[D], *Grant[D], *Grant[D]]
	done  *activeobject.Operation[desk[D], *Grant[D], none]
	end   *activeobject.Operation[desk[D], ending[D], none]
}

const enter = "enter"

func declare[D any]() *operations[D] {
	t := activeobject.NewType[desk[D]]("resource")
	return &operations[D]{
		typ:   t,
		enter: activeobject.Entry(t, enter, (*desk[D]).Enter).When("available", (*desk[D]).Available),
		done:  activeobject.Procedure(t, "done", (*desk[D]).Done),
		end:   activeobject.Procedure(t, "end", activeobject.Put((*desk[D]).End)),
	}
}
