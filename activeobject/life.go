package activeobject

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// at returns a copy of the place, as other settings may share it.
func (s *objectSettings) at() *actor.Place {
	if s.place == nil {
		return &actor.Place{}
	}
	place := *s.place
	return &place
}

// extractPlace takes the place out of the settings, and returns it.
func (s *objectSettings) extractPlace(typ string, system *actor.System, factory bool) (place actor.Place, err error) {
	if s.place == nil {
		return place, nil
	}
	place, s.place = *s.place, nil
	option := "Supervisor"
	if place.Parent != nil {
		option = "Parent"
	}
	if !factory && (place.Parent != nil || place.Guardian != nil) {
		return place, &OptionError{Type: typ, Option: option, Problem: "needs a factory, as the supervisor may restart the object: make it with NewFrom"}
	}
	if home, ok := place.Parent.(interface{ home() *actor.System }); ok && home.home().Actors() != system.Actors() {
		return place, &actor.SpawnError{Parent: fmt.Sprint(place.Parent), Cause: actor.ErrElsewhere}
	}
	return place, nil
}

func (o *objectHeader) home() *actor.System { return o.config.system }

// NewFrom is New for an object whose state is made by a factory: now, and whenever
// the object's supervisor restarts it. The object owns each state from then on. The
// factory may be called on any goroutine, but not twice at a time, and no body runs
// meanwhile. It may take long, though the object's actor handles no messages meanwhile. It
// must not wait for requests to the object itself.
//
// It fails as New does, without calling the factory if the system is closed by then;
// and with *FactoryError if the factory returns an error, panics, or returns nil. If the
// factory calls runtime.Goexit, the calling goroutine ends, and there is no object.
func NewFrom[T any](system *actor.System, t *Type[T], factory func() (*T, error), options ...Option) (*Object[T], error) {
	if factory == nil {
		return nil, &OptionError{Type: t.name, Option: "factory", Problem: "is nil: pass the function that makes the object's state"}
	}
	return build(system, t, nil, factory, options)
}

var errNoState = errors.New("its factory returned no state")

// produce calls a factory. Object is the name of the object that gets the state.
func produce[T any](object string, factory func() (*T, error)) (state *T, err error) {
	returned := false
	defer func() {
		if !returned {
			state, err = nil, &mailbox.PanicError{Object: object, Operation: "factory", Value: engine.Panicked(recover()), Stack: debug.Stack()}
		}
	}()
	if state, err = factory(); err == nil && state == nil {
		err = errNoState
	}
	returned = true
	return state, err
}

// another makes another state, and returns the function that puts it in place.
func (o *Object[T]) another(factory func() (*T, error)) (put func(), err error) {
	state, err := produce(o.Name(), factory)
	if err != nil {
		return nil, err
	}
	if missing := o.Type().bind(state, o.config.typ, &o.box); missing != "" {
		return nil, fmt.Errorf("its factory returned a state with a nil part of type %q", missing)
	}
	// Only put makes it visible to other goroutines. internal/engine/suspend.go says why nothing
	// reads the old state meanwhile.
	return func() {
		o.Type().stopClocks(o.state)
		o.state = state
	}, nil
}

// failed says that the object has failed in the operation with err. If the object is
// supervised, it is suspended from now on, and its supervisor will decide. Failed is called
// on the goroutine that has run the body or evaluated the guard, before the scheduler is told
// that the body has ended, or the object is released.
//
// Request is the request's arrival number; 0 if it has found the object idle.
func (o *objectHeader) failed(operation string, request uint64, err error) {
	o.report(operation, request, err)
	if ident := o.identity.Load(); ident != nil && ident.supervised && o.box.Fail(err) {
		ident.adapter.Load().Fail(actor.Failure{Reason: err, Message: &actor.Invoke{Operation: operation}, Request: request})
	}
}

// failedEvaluating is failed for a guard that the scheduler has evaluated: that of r or, if r is
// nil, that of the operation over the state.
func (o *objectHeader) failedEvaluating(op int, r *mailbox.Request, err error) {
	operation, request := o.config.rule(op).Name, uint64(0)
	if r != nil {
		request = r.Arrival()
	}
	o.report(operation, request, err)
	if ident := o.identity.Load(); ident != nil && ident.supervised && o.box.FailAsking(err) {
		ident.adapter.Load().Fail(actor.Failure{Reason: err, Message: &actor.Invoke{Operation: operation}, Request: request})
	}
}

// Attached implements actor.Subject.
func (h *host[T]) Attached(p *actor.Adapter) { h.attached(p) }

func (o *objectHeader) attached(p *actor.Adapter) {
	ident := o.identity.Load()
	ident.adapter.Store(p)
	var above *actor.Adapter
	if parent, ok := ident.place.Parent.(interface{ adapter() *actor.Adapter }); ok {
		above = parent.adapter() // the parent is making o a child, and so has an adapter
	}
	p.Belongs(&o.box, above)
}

func (o *objectHeader) adapter() *actor.Adapter { return o.identity.Load().adapter.Load() }

// Suspend implements actor.Subject.
func (h *host[T]) Suspend() (quiet <-chan struct{}) { return h.box.Suspend() }

// Resume implements actor.Subject.
func (h *host[T]) Resume() { h.box.Resume() }

// Admits implements actor.Subject.
func (h *host[T]) Admits(message any) bool {
	return !h.config.local || h.config.system.IsLocal(message)
}

// Renew implements actor.Subject: the object is restarted. One without a factory
// keeps its state; its actor restarts all the same, which ends its children: one of
// them may be waiting for what becomes of its own failure.
func (h *host[T]) Renew() (carriedOut bool) {
	ident := h.identity.Load()
	if ident.renew == nil {
		h.log(fmt.Errorf("sluice: %s keeps its state in a restart: it was not made by NewFrom", h.Name()))
		return true
	}
	failed := &mailbox.RestartError{Object: h.Name(), Failure: h.box.Decided()}
	if before, ok := failed.Failure.(*mailbox.RestartError); ok {
		failed.Failure = before.Failure // the first failure
	}
	failed.Cause = &mailbox.ExitError{Object: h.Name(), Operation: "factory"} // unless it returns
	defer func() {
		if failed.Cause == nil {
			return
		}
		h.report("factory", 0, failed)
		if h.box.Fail(failed) {
			ident.adapter.Load().Fail(actor.Failure{Reason: failed, Message: &actor.Restart{}})
		}
	}()
	put, err := ident.renew()
	if failed.Cause = err; err != nil {
		return false
	}
	return h.box.Renew(put)
}

// Undecided implements actor.Subject.
func (h *host[T]) Undecided(value any) {
	if value == nil {
		value = goexit
	}
	h.log(fmt.Errorf("sluice: %s is stopped, as its supervisor failed to decide: %v", h.Name(), value), "stack", string(debug.Stack()))
}

// Decided implements actor.Subject.
func (h *host[T]) Decided(what string, about actor.Failure) { h.decided(what, about) }

// SpawnNamed implements actor.Spawner: it makes an actor a child of the object's. The
// children end before the object's actor does, and before it is restarted; ChildSupervisor
// says how it supervises them. It fails with *actor.SpawnError if the object has been
// stopped or is being restarted; with protoactor's error if it has a child of that
// name; and with *actor.NameError if the name cannot be a part of an address. To make an
// object a child, use Parent.
func (o *Object[T]) SpawnNamed(props *actor.Props, name string) (*actor.PID, error) {
	if !actor.IsName(name) {
		return nil, &actor.NameError{Name: name, Cause: actor.ErrBadName}
	}
	if _, err := o.address(); err != nil {
		return nil, &actor.SpawnError{Parent: o.Name(), Cause: err}
	}
	pid, ok, err := o.identity.Load().adapter.Load().Spawn(props, name)
	switch {
	case ok:
		return pid, err
	case o.box.Closed():
		err = &mailbox.StoppedError{Object: o.Name()}
	default:
		err = actor.ErrRestarting
	}
	return nil, &actor.SpawnError{Parent: o.Name(), Cause: err}
}

// Close ends the object gently: it takes no more requests; waiting requests are served
// until none of them can start, and the rest fails with an error that matches
// ErrStopped. It returns nil when the last body has returned. If ctx ends before, the
// object is stopped at once, as by Stop, and Close returns the context's error while
// bodies may still run. Closing a stopped object waits for its last body.
//
// A body that closes an object which waits for the body, such as its own, would wait for
// itself: Close fails with *DeadlockError then, and nothing is done. (An object that is restarted
// may begin to wait for its children, and so for the body, only while Close waits. Close fails
// then, too, and the object ends when it can.) See Object for the other ways to end one.
func (o *Object[T]) Close(ctx context.Context) error {
	err := o.box.AwaitEnd(ctx, o.Retire)
	if err == nil {
		return nil
	}
	if _, circle := err.(*mailbox.DeadlockError); !circle {
		o.Stop()
	}
	return err
}

// CloseActor is Close, and then waits for the end of the object's actor: its children have ended
// by then, its watchers have been told, and its name is free. If ctx ends before, it returns the
// context's error.
//
// The actor cannot end before its children, nor while a strategy decides about it: those must not
// call CloseActor, nor a body that they wait for. For them there is Close.
func (o *Object[T]) CloseActor(ctx context.Context) error {
	if err := o.Close(ctx); err != nil {
		return err
	}
	if o.identity.Load() == nil {
		return nil // it has no actor
	}
	return o.config.system.AwaitEnd(ctx, o.addressed())
}

// Retire implements actor.Object: it drains the object and then ends its actor, if it has one.
func (o *Object[T]) Retire() (idle <-chan struct{}) {
	closed := o.box.Closed()
	idle = o.host().Drain()
	if ident := o.identity.Load(); ident != nil && !closed {
		ident.mu.Lock()
		defer ident.mu.Unlock()
		if ident.pid != nil {
			o.config.system.Poison(ident.pid)
		}
	}
	return idle
}
