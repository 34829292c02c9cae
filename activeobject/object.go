package activeobject

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Object is a shared object whose state is a T. It is an actor, and gets a PID when
// PID is first called. It lives until it is stopped or its system closed: the system
// keeps it so that waiting requests can be reached, even if the program has no
// reference to it any more. So stop an object that is not needed any more.
// System.Objects of the package actor yields the objects that there are.
//
// # How it ends
//
//	                     takes requests   requests that wait    returns
//	Stop                 no more          fail                  at once; its channel closes after the last body
//	Close                no more          are served, or fail   after the last body, or with its context
//	actor: Stop          no more          fail                  at once
//	actor: StopFuture    no more          fail                  a future of the actor's end, for ten seconds
//	actor: Poison        no more          are served, or fail   at once
//	actor: PoisonFuture  no more          are served, or fail   a future of the actor's end, for ten seconds
//	System.Close         no more          fail                  after all bodies, or with its context
//	System.Shutdown      no more          are served, or fail   the same; objects end one after another, the youngest first
//
// Bodies that run finish in any case. Requests that are served start as long as any
// of them can; the rest fails. They fail with a *StoppedError. The actor ends, and its
// watchers and its parent hear of it, after the last body has returned and its
// children have ended. The lines of the actor are protoactor's functions for the object's
// PID; a poison is a message, and is handled after the messages that were sent before.
type Object[T any] struct {
	objectHeader
	state *T
	watch func(*T) bool // the guard of the only operation with waiting requests, if it is plain
}

// AnyObject is an *Object of whatever state: what a program can do with an object without naming
// the type of its state. The ready-made objects return one, and System.Objects of the package actor
// yields values that are one. That only an *Object implements it allows it to grow. Its methods are
// those of Object, where it says what they do and what they fail with.
type AnyObject interface {
	actor.Object
	// SpawnNamed makes an actor a child of the object's, so that an object can be a Parent.
	actor.Spawner
	// Observe has f told the load of the object, now and after every change.
	Observe(f func(Load) (enough bool)) (stop func())
	// Bound returns how many requests may wait, and what becomes of one too many.
	Bound() (n int, overflow Overflow, bounded bool)
	// Dispatcher returns whose threads run the bodies.
	Dispatcher() actor.Dispatcher
	// SetPriority changes the priority of a waiting request.
	SetPriority(arrival uint64, priority int) error
}

// objectHeader is the part of an object that does not depend on the type of its state. Its methods, and
// those of operationInfo, are compiled once, and not for every operation again.
type objectHeader struct {
	box      engine.Mailbox
	config   *objectConfig
	slot     int // in the system's list
	id       uint64
	identity atomic.Pointer[identity] // nil until the object is named or addressed
}

// identity is what only some objects need.
type identity struct {
	name string
	mu   sync.Mutex
	pid  *actor.PID // guarded by mu; nil until it is first needed

	replies actor.Outbox // to requests that came by message

	place actor.Place
	// supervised objects have a supervisor that decides what becomes of them when they
	// have failed.
	supervised bool
	// renew makes a new state. Put puts it in the place of the old one. Renew is nil if
	// the object was made without a factory.
	renew   func() (put func(), err error)
	adapter atomic.Pointer[actor.Adapter]
}

// New makes a shared object of the given type and state. The object owns the state
// from then on: only its bodies and guards may touch it. One request runs at a time, by
// default on the goroutine of a caller. With an option of the package synchronizer, such
// as Callers or Monitor, all compatible requests run at once. The options add to the
// type's (see Type.Default), and win where they contradict them.
//
// It fails, with nothing left behind, if the system is closed (actor.ErrClosed),
// the name is taken or bad (*actor.NameError), or an option makes no sense
// (*OptionError). It seals the type, and panics if that is incompletely declared.
func New[T any](system *actor.System, t *Type[T], state *T, options ...Option) (*Object[T], error) {
	return build(system, t, state, nil, options)
}

// build is New and, with a factory, NewFrom.
func build[T any](system *actor.System, t *Type[T], state *T, factory func() (*T, error), options []Option) (_ *Object[T], err error) {
	t.seal()
	if system == nil {
		return nil, &OptionError{Type: t.name, Option: "system", Problem: "is nil: make one with actor.NewSystem"}
	}
	version := defaultsOf(system).options.Load()
	s := t.settingsIn(system, version)
	for _, o := range options {
		o(&s)
	}
	s.ordered = false
	switch {
	case state == nil && factory == nil:
		return nil, &OptionError{Type: t.name, Option: "state", Problem: "is nil: pass a pointer to the object's state"}
	case s.log != nil && *s.log == nil:
		return nil, &OptionError{Type: t.name, Option: "Log", Problem: "is given nil: pass a function"}
	case s.wrong != senseless{}:
		return nil, &OptionError{Type: t.name, Option: s.wrong.option, Problem: s.wrong.reason}
	case s.maxBypass < 0:
		return nil, &OptionError{Type: t.name, Option: "MaxBypass", Problem: "is less than 1"}
	}
	if s.concurrent.On {
		problem := s.unsynchronizable(t.Operations(), func(i int) reflect.Type { return t.op(i).info.argument })
		if problem == (senseless{}) {
			problem = t.uncopyable(s.concurrent.Table)
		}
		if problem != (senseless{}) {
			return nil, &OptionError{Type: t.name, Option: problem.option, Problem: problem.reason}
		}
	}
	name := s.name
	s.name = ""
	if err := actor.CheckName(name); err != nil {
		return nil, err
	}
	place, err := s.extractPlace(t.name, system, factory != nil)
	if err != nil {
		return nil, err
	}
	place.Name = name
	if factory != nil {
		if system.Full() {
			return nil, actor.ErrClosed // a factory may take long, or take something that has to be returned
		}
		if state, err = produce(t.name, factory); err != nil {
			return nil, &FactoryError{Type: t.name, Cause: err}
		}
	}
	o := &Object[T]{state: state}
	recorder := s.record(cmp.Or(name, t.name), t.rules.Operations)
	if c := &s.concurrent; c.On && c.Workers != nil {
		c.Threads = c.Workers.Threads(system, o)
	}
	if missing := t.bind(state, &t.typeInfo, &o.box); missing != "" {
		return nil, &OptionError{Type: t.name, Option: "state", Problem: fmt.Sprintf("has a nil part of type %q: set it before New", missing)}
	}
	o.config, o.id = t.configOf(system, &s, version), t.count.Add(1)
	addressed := place != actor.Place{}
	if addressed || factory != nil {
		ident := &identity{name: name, place: place, supervised: place.Parent != nil || place.Guardian != nil}
		if factory != nil {
			ident.renew = func() (func(), error) { return o.another(factory) }
		}
		o.identity.Store(ident)
	}
	o.box.Init(&o.config.engine, o.host())
	if recorder != nil {
		o.box.Record(recorder)
	}
	err = system.Join(o, &o.slot)
	if err == nil && addressed {
		_, err = o.address()
	}
	if err != nil {
		o.host().Halt()
		return nil, err
	}
	return o, nil
}

// record begins the recording of an object, if one is wanted, and has its log passed to the
// recorder, besides a function that has been given for it.
func (s *objectSettings) record(object string, operations []mailbox.Operation) engine.Recorder {
	if s.recorder == nil {
		return nil
	}
	names := make([]string, len(operations))
	for i, op := range operations {
		names[i] = op.Name
	}
	recorder, told := (*s.recorder)(object, names), s.log
	log := func(e Event) {
		if told != nil {
			(*told)(e)
		}
		recorder.Event(e)
	}
	s.log, s.noFastPath = &log, true
	return recorder
}

// Must returns o, and panics if err is not nil. It is for programs that have no
// better answer to a failure of New.
func Must[T any](o *Object[T], err error) *Object[T] {
	if err != nil {
		panic(err)
	}
	return o
}

// Name returns the name of the object.
func (o *objectHeader) Name() string {
	if ident := o.identity.Load(); ident != nil && ident.name != "" {
		return ident.name
	}
	return o.config.typ.name + "-" + strconv.FormatUint(o.id, 10)
}

// String implements fmt.Stringer.
func (o *objectHeader) String() string { return o.Name() }

// Type returns the type of the object.
func (o *Object[T]) Type() *Type[T] { return o.config.typ.self.(*Type[T]) }

// TypeName returns the name of the type of the object.
func (o *objectHeader) TypeName() string { return o.config.typ.name }

// Explain returns what runs and what waits at the object, and why. It evaluates no
// guard and waits for no body.
func (o *Object[T]) Explain() mailbox.Snapshot { return o.box.Explain() }

// PID returns the address of the object as a protoactor actor. Messages to it are
// *actor.Invoke; they go through the same waiting queue as every other request.
//
// The actor is made when PID is first called. PID is never nil: the address of an object
// that has stopped, or whose system has been closed, can be sent messages and requests,
// watched and stopped like any other. An object that stops answers requests with
// *StoppedError until it has ended; afterwards what is sent to it is a dead letter.
func (o *Object[T]) PID() *actor.PID {
	pid, err := o.address()
	if err != nil { // the system is closed: a name that is free cannot be taken
		return actor.Nowhere(o.Name())
	}
	return pid
}

// address returns the object's PID, and makes its actor if there is none. It
// fails if the object's name is taken or the system closed.
func (o *Object[T]) address() (*actor.PID, error) {
	o.identity.CompareAndSwap(nil, &identity{})
	ident := o.identity.Load()
	ident.mu.Lock()
	defer ident.mu.Unlock()
	if ident.pid == nil {
		pid, err := o.config.system.SpawnAt(ident.place, o.host())
		if err != nil {
			return nil, err
		}
		ident.pid = pid
		// Either this sees that the object has stopped, or Stop sees the PID.
		switch {
		case o.box.Draining():
			o.config.system.Poison(pid)
		case o.box.Closed():
			o.config.system.Stop(pid)
		}
	}
	return ident.pid, nil
}

// Stop ends the object: waiting and later requests fail with an error that matches
// ErrStopped; what runs finishes. The returned channel is
// closed when the last body has returned. Stopping twice is fine. See Object for the
// other ways to end one.
func (o *Object[T]) Stop() <-chan struct{} {
	closed := o.box.Closed()
	idle := o.host().Halt()
	if ident := o.identity.Load(); ident != nil && !closed {
		ident.mu.Lock()
		defer ident.mu.Unlock()
		if ident.pid != nil {
			o.config.system.Stop(ident.pid)
		}
	}
	return idle
}

// bind gives the embedded Queues of the state its object.
func (q *Queues) bind(t *typeInfo, box *engine.Mailbox) { q.typ, q.box = t, box }

// Queues tells the bodies and guards of an object how many requests wait for each
// operation (Ada's 'Count), and the name of the object. Embed it in the state; New
// connects it. Until then all counts are 0, so that the state can be tested as plain Go.
//
// A guard that looks at it must be declared by WhenWaiting.
type Queues struct {
	typ *typeInfo
	box *engine.Mailbox
}

// Waiting returns how many requests are admitted and wait for the operation: Ada's 'Count, with
// one exception. A request counts itself while its guard is evaluated, also on arrival: in
// Ada a call of an open entry is not queued, and does not count. Here it joins the queue first, and
// its guard is evaluated there, so that an older request whose guard its arrival has opened may
// start before it. A body that runs, a Try, and requests that arrived while a body runs do not
// count.
func (q *Queues) Waiting(op interface{ known() *operationInfo }) int {
	if q.box == nil {
		return 0
	}
	if i, ok := op.known().at(q.typ); ok {
		return q.box.Waiting(i)
	}
	return 0
}

// Joined returns how many requests for the operation have been admitted so far,
// including those that Waiting counts. It only grows, and does not grow while a body
// runs that excludes the operation. So the difference of the two says how many have
// started or have been withdrawn. A request that finds the object idle and its guard
// open does not wait, and is not counted.
func (q *Queues) Joined(op interface{ known() *operationInfo }) uint64 {
	if q.box == nil {
		return 0
	}
	if i, ok := op.known().at(q.typ); ok {
		return q.box.Joined(i)
	}
	return 0
}

// ObjectName returns the name of the object that owns the state, for the errors that
// bodies return; "" if there is none.
func (q *Queues) ObjectName() string {
	if q.box == nil {
		return ""
	}
	return q.box.Name()
}
