package resource

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type none = activeobject.None

// desk is the state: which grant has the resource.
type desk[D any] struct {
	activeobject.Queues
	scheduler *Scheduler[D]
	holder    *Grant[D]
}

// Available is the guard of the requests to enter.
func (d *desk[D]) Available() bool { return d.holder == nil }

// Enter makes g the grant that has the resource, unless its holder has ended while it waited.
func (d *desk[D]) Enter(e entering[D]) (*Grant[D], error) {
	g := e.grant
	if g.ended == nil && g.during != nil && g.during.Err() != nil { // nothing has told yet
		g.ended = &EndedError{Scheduler: d.ObjectName(), Reason: ContextEnded, Cause: context.Cause(g.during)}
	}
	if g.ended != nil { // its holder has ended while it waited
		return nil, g.ended
	}
	d.holder = g
	if g.lease > 0 {
		g.timer = time.AfterFunc(g.lease, g.expire)
	}
	return g, nil
}

// EnterByMessage has a client that has sent a message wait for the resource.
func (d *desk[D]) EnterByMessage(r Request[D]) (*Grant[D], error) {
	s := d.scheduler
	t, err := s.parse("enter", d.ObjectName(), r.Terms)
	if err != nil {
		return nil, err
	}
	g, err := d.appraise(r.Data)
	if err != nil {
		return nil, err
	}
	return s.ops.admit.Requeue(admitting[D]{g, t}, activeobject.KeepPlace)
}

// appraise returns a grant to ask for. A priority that panics is no failure of the scheduler,
// as it is none where the client asks for it.
func (d *desk[D]) appraise(data D) (g *Grant[D], err error) {
	returned := false
	defer func() {
		if !returned {
			err = &activeobject.PolicyError{Object: d.ObjectName(), Policy: "ByPriority", Value: recover(), Stack: debug.Stack()}
		}
	}()
	g = d.scheduler.grant(data)
	returned = true
	return g, nil
}

// Admit is Enter for a client that has sent a message. Its holder is watched from now on, and
// not while it waits: the request may be withdrawn without a body that would end the watch.
func (d *desk[D]) Admit(ctx context.Context, a admitting[D]) (*Grant[D], error) {
	g, t := a.grant, a.terms
	if t != nil {
		if t.pid != nil && d.scheduler.system.Gone(t.pid) {
			return nil, &EndedError{Scheduler: d.ObjectName(), Reason: ActorEnded, Cause: hasEnded(t.pid)}
		}
		<-d.scheduler.made // or the end of the grant would find no object
		if d.scheduler.o == nil {
			return nil, &activeobject.StoppedError{Object: d.ObjectName()}
		}
		g.begin(context.Background(), t)
	}
	got, err := d.Enter(entering[D]{g})
	if err != nil {
		g.unwatch()
	}
	return got, err
}

// Done takes the resource back from its holder, and from no other grant.
func (d *desk[D]) Done(g *Grant[D]) (none, error) {
	switch {
	case g == nil || g.scheduler != d.scheduler: // another scheduler's belongs to that one's state
		return nil, &ForeignError{Scheduler: d.ObjectName()}
	case g.ended != nil:
		return nil, g.ended
	case d.holder != g:
		return nil, &ForeignError{Scheduler: d.ObjectName()}
	}
	d.End(ending[D]{g, &EndedError{Scheduler: d.ObjectName(), Reason: WasDone}})
	if g.forget != nil {
		go g.unwatch() // for Dones and a message; Done does so itself
	}
	return nil, nil
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

// The arguments of what clients do not ask for by name, in types that no message can bring.
type (
	// entering is a grant that is asked for.
	entering[D any] struct{ grant *Grant[D] }
	// admitting is a grant that has been asked for by message.
	admitting[D any] struct {
		grant *Grant[D]
		terms *terms // nil if there are none
	}
	// ending is a grant, and why it ends.
	ending[D any] struct {
		grant *Grant[D]
		why   *EndedError
	}
)

func (e entering[D]) asked() *Grant[D]  { return e.grant }
func (a admitting[D]) asked() *Grant[D] { return a.grant }

// operations are those of the schedulers of one type of data. By message a client asks for
// enter and done.
type operations[D any] struct {
	typ   *activeobject.Type[desk[D]]
	enter *activeobject.Operation[desk[D], Request[D], *Grant[D]]
	done  *activeobject.Operation[desk[D], *Grant[D], none]
	grant *activeobject.Operation[desk[D], entering[D], *Grant[D]]
	admit *activeobject.Operation[desk[D], admitting[D], *Grant[D]]
	end   *activeobject.Operation[desk[D], ending[D], none]
}

// The operations in which requests wait for the resource.
const (
	enterByCall    = "enter by call"
	enterByMessage = "enter by message"
)

func declare[D any]() *operations[D] {
	t := activeobject.NewType[desk[D]]("resource")
	return &operations[D]{
		typ:   t,
		enter: activeobject.Procedure(t, "enter", (*desk[D]).EnterByMessage),
		done:  activeobject.Procedure(t, "done", (*desk[D]).Done),
		grant: activeobject.Entry(t, enterByCall, (*desk[D]).Enter).When("available", (*desk[D]).Available),
		admit: activeobject.EntryCtx(t, enterByMessage, (*desk[D]).Admit).When("available", (*desk[D]).Available),
		end:   activeobject.Procedure(t, "end", activeobject.Arg((*desk[D]).End)),
	}
}

// Scheduler grants a resource to one client at a time. Clients come with
// some data, a D, by which its policy may choose between them.
type Scheduler[D any] struct {
	o      *activeobject.Object[desk[D]]
	ops    *operations[D]
	policy *Policy[D]
	system *actor.System
	made   chan struct{} // closed when New has set o; a message may come before
	desk   *desk[D]      // the last state; for the factory
}

// New returns a scheduler for a resource that is available. It fails with
// *activeobject.ArgumentError if the policy is nil, or has been given a nil function,
// or else as activeobject.New does. The policy is the order of requests: an option for one is
// an *activeobject.OptionError.
//
// If a supervisor restarts the scheduler, the grant of its holder ends, and the clients that
// wait go on waiting.
func New[D any](system *actor.System, policy *Policy[D], options ...activeobject.Option) (*Scheduler[D], error) {
	const call = "resource.New"
	switch {
	case policy == nil || policy.option == nil && policy.lacks == "":
		return nil, &activeobject.ArgumentError{Call: call, Argument: "policy", Problem: "is nil: pass one, such as FIFO"}
	case policy.lacks != "":
		return nil, &activeobject.ArgumentError{Call: call, Argument: "policy", Problem: policy.lacks}
	}
	ops := activeobject.Instance(declare[D])
	options = append(options[:len(options):len(options)], activeobject.FixedPolicy(policy.option))
	s := &Scheduler[D]{ops: ops, policy: policy, system: system, made: make(chan struct{})}
	defer close(s.made)
	o, err := activeobject.NewFrom(system, ops.typ, s.renew, options...)
	if err != nil {
		return nil, err
	}
	s.o = o
	return s, nil
}

// renew is the factory: it makes the state of a resource that is available. Neither a body
// nor another renew runs at the same time.
func (s *Scheduler[D]) renew() (*desk[D], error) {
	if s.desk != nil && s.desk.holder != nil {
		g := s.desk.holder
		why := &EndedError{Scheduler: s.desk.ObjectName(), Reason: Restarted}
		s.desk.End(ending[D]{g, why})
		if g.forget != nil {
			g.forget(why)
		}
	}
	s.desk = &desk[D]{scheduler: s}
	return s.desk, nil
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
	_, err = s.ops.grant.Call(ctx, s.o, entering[D]{g})
	return g.entered(ctx, err)
}

// Enters returns the operation that actors ask for by message, bound to the scheduler. It is Enter in
// two steps, and does not watch the holder while the request waits: the terms begin with the
// grant. So a Try that is refused, and a future that is withdrawn while it waits, fail with an
// *activeobject.RequeuedError around the cause; and Select would choose a case whether the resource is
// available or not. EnterCase is for that.
func (s *Scheduler[D]) Enters() activeobject.LocalProxy[Request[D], *Grant[D]] {
	return activeobject.At(s.ops.enter, s.o)
}

// EnterCase is Enter as a case for activeobject.Select, without terms. It is chosen when the resource
// is available.
func (s *Scheduler[D]) EnterCase(data D) *activeobject.Case[*Grant[D]] {
	return s.ops.grant.Case(s.o, entering[D]{s.grant(data)})
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
	_, err = s.ops.grant.Call(ctx, s.o, entering[D]{g})
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

// Dones returns Grant.Done, bound to the scheduler: its argument is the grant. What watches the holder
// of the grant ends a little later.
func (s *Scheduler[D]) Dones() activeobject.LocalProxy[*Grant[D], activeobject.None] {
	return activeobject.At(s.ops.done, s.o)
}

// Waiting returns how many clients wait. It does not wait for anything.
func (s *Scheduler[D]) Waiting() int { return s.ops.grant.Waiting(s.o) + s.ops.admit.Waiting(s.o) }

// Object returns the shared object, to explain, observe, address or stop it.
func (s *Scheduler[D]) Object() activeobject.AnyObject { return s.o }

// grant returns a grant that is not given yet.
func (s *Scheduler[D]) grant(data D) *Grant[D] {
	g := &Grant[D]{scheduler: s, data: data}
	if s.policy.priority != nil {
		g.priority = s.policy.priority(data)
	}
	return g
}

// Request is the argument of Enters, and so of the operation "enter", by which an actor enters by message:
//
//	c.Request(printer.Object().PID(), &actor.Invoke{
//		Operation: "enter",
//		Argument:  resource.Request[job]{Data: job{pages: 3}, Terms: []resource.Term{resource.Watched(c.Self())}},
//	})
//
// The reply is its *Grant, which is given back by its Done, or as the argument of Dones or of
// the operation "done". The terms begin with the grant: if one of them has ended by then the
// reply is the *EndedError.
type Request[D any] struct {
	Data  D
	Terms []Term
}
