// Package model holds the models of concurrency: how a shared object is made, and
// how its operations are reached. What they make it from is always the same, a
// declared object.Type.
package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
	"github.com/sluice-go/sluice/synchronizer"
)

// Family is the pattern of the Synchronizer text to which a model belongs.
type Family string

// The three patterns.
const (
	PerRequest   Family = "thread-per-request"
	PerObject    Family = "thread-per-object"
	Synchronizer Family = "Synchronizer"
)

// Families lists them, with what each does.
var Families = []struct {
	Name  Family
	About string
}{
	{PerRequest, "a request is given a thread when it arrives; the thread is blocked until the request may run"},
	{PerObject, "each object has one thread, which takes one request after the other, and those first that may run"},
	{Synchronizer, "a request is given a thread when it may run; all that are compatible run at once"},
}

// Model is a model of concurrency.
type Model struct {
	Name   string
	Family Family
	About  string
	Rule   trace.Rule
	how    construction
	// options returns those of a Sluice object in the system, and what ends their threads after it.
	options func(*actor.System) (options []activeobject.Option, end func(), err error)
}

// Explains reports whether objects of the model are of Sluice, which can say why requests wait.
func (m *Model) Explains() bool { return m.how == active || m.how == synchronized }

// construction is what an object is made with.
type construction int

const (
	byHand construction = iota // object.Type.ByHand
	channel
	protoactor
	active       // activeobject.New
	synchronized // synchronizer.New
)

// PoolSize is how many threads a pool has.
const PoolSize = 4

// All lists all models, in the order of the tables. The first is the independent
// baseline: it shares nothing with Sluice but the bodies.
var All = []*Model{
	{
		Name: "by-hand", Family: PerRequest, how: byHand,
		About: "mutex and conditions (or RWMutex) written by hand, on the caller's thread: the baseline",
		Rule:  trace.Rule{Assignment: trace.OnArrival, Callers: true},
	},
	{
		Name: "monitor", Family: PerRequest, how: synchronized,
		About:   "Sluice's monitor on its callers' threads",
		Rule:    trace.Rule{Assignment: trace.OnArrival, Callers: true},
		options: always(synchronizer.Monitor(), synchronizer.Callers()),
	},
	{
		Name: "monitor-spawned", Family: PerRequest, how: synchronized,
		About:   "Sluice's monitor, a goroutine for each request that arrives",
		Rule:    trace.Rule{Assignment: trace.OnArrival},
		options: always(synchronizer.Monitor(), synchronizer.Goroutines()),
	},
	{
		Name: "monitor-pool", Family: PerRequest, how: synchronized,
		About:   fmt.Sprintf("Sluice's monitor, a pool of %d threads for all objects", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnArrival, Pool: PoolSize},
		options: pooled(synchronizer.Monitor()),
	},
	{
		Name: "borrowed", Family: PerObject, how: active,
		About:   "Sluice's active object; its thread is that of one of its callers",
		Rule:    trace.Rule{Assignment: trace.OnStart, Callers: true},
		options: always(activeobject.CallerThreads()),
	},
	{
		Name: "dedicated", Family: PerObject, how: active,
		About:   "Sluice's active object with a goroutine of its own",
		Rule:    trace.Rule{Assignment: trace.Fixed},
		options: always(activeobject.DedicatedThread()),
	},
	{
		Name: "channel", Family: PerObject, how: channel,
		About: "a goroutine that owns the object, requests by channel, guards by a list of its own",
		Rule:  trace.Rule{Assignment: trace.Fixed},
	},
	{
		Name: "protoactor", Family: PerObject, how: protoactor,
		About: "a plain protoactor-go actor, RequestFuture, guards by deferred replies",
		Rule:  trace.Rule{Assignment: trace.Fixed},
	},
	{
		Name: "leaders", Family: PerObject, how: active,
		About:   fmt.Sprintf("Sluice's active object; %d threads for all objects by Leader/Followers: one waits for an object that has something to do, and serves it", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnStart, Pool: PoolSize},
		options: leading(func(p *leaderfollowers.Pool) activeobject.Option { return activeobject.Dispatcher(p.Dispatcher()) }),
	},
	{
		Name: "half-async", Family: PerObject, how: active,
		About:   fmt.Sprintf("Sluice's active object; %d threads for all objects by half-sync/half-async: they get them from a queue", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnStart, Pool: PoolSize},
		options: queued(PoolSize),
	},
	{
		Name: "reactor", Family: PerObject, how: active,
		About:   "Sluice's active object; one thread for all objects: a single-threaded reactor",
		Rule:    trace.Rule{Assignment: trace.OnStart, Pool: 1},
		options: queued(1),
	},
	{
		Name: "sync-callers", Family: Synchronizer, how: synchronized,
		About:   "Sluice's Synchronizer on its callers' threads",
		Rule:    trace.Rule{Assignment: trace.OnStart, Callers: true},
		options: always(synchronizer.Callers()),
	},
	{
		Name: "sync-spawned", Family: Synchronizer, how: synchronized,
		About:   "Sluice's Synchronizer, a goroutine for each request that starts",
		Rule:    trace.Rule{Assignment: trace.OnStart},
		options: always(synchronizer.Goroutines()),
	},
	{
		Name: "sync-pool", Family: Synchronizer, how: synchronized,
		About:   fmt.Sprintf("Sluice's Synchronizer, a pool of %d threads for all objects", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnStart, Pool: PoolSize},
		options: pooled(),
	},
	{
		Name: "sync-leaders", Family: Synchronizer, how: synchronized,
		About:   fmt.Sprintf("Sluice's Synchronizer, %d threads for all objects by Leader/Followers", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnStart, Pool: PoolSize},
		options: leading(leaderfollowers.Threads),
	},
	{
		Name: "sync-actors", Family: Synchronizer, how: synchronized,
		About:   fmt.Sprintf("Sluice's Synchronizer, %d worker actors for each object", PoolSize),
		Rule:    trace.Rule{Assignment: trace.OnStart},
		options: always(synchronizer.Actors(PoolSize)),
	},
}

// Default lists the models that are compared if nothing else is asked for: one of each
// family, and of each the form that gives its threads as the family's name says.
var Default = []*Model{named("monitor-spawned"), named("dedicated"), named("sync-spawned")}

func named(name string) *Model {
	for _, m := range All {
		if m.Name == name {
			return m
		}
	}
	panic("no model " + name)
}

func always(options ...activeobject.Option) func(*actor.System) ([]activeobject.Option, func(), error) {
	return func(*actor.System) ([]activeobject.Option, func(), error) { return options, func() {}, nil }
}

// Subject is a declared type, whatever its state, ready to be made under any model.
type Subject struct {
	Name       string
	About      string
	Keyed      bool
	Operations []Operation
	Check      func(object.Setting) *object.SettingError
	// Open makes the objects of a setting. It fails with *CannotError if the model
	// cannot run it. Options are for objects of Sluice.
	Open func(*Model, object.Setting, ...activeobject.Option) (*Session, error)
}

// Operation is an operation as those see it who only choose among them.
type Operation struct {
	Name  string
	Reads bool
}

// Subjects lists all declared types.
var Subjects = []*Subject{NewSubject(&object.Accounts), NewSubject(&object.Stores), NewSubject(&object.Buffers)}

// NewSubject returns the subject of a declared type.
func NewSubject[T any](t *object.Type[T]) *Subject {
	s := &Subject{Name: t.Name, About: t.About, Keyed: t.Keyed, Check: t.Check}
	for _, op := range t.Operations {
		s.Operations = append(s.Operations, Operation{op.Name, op.Reads})
	}
	d := newDeclarations(t)
	s.Open = func(m *Model, setting object.Setting, options ...activeobject.Option) (*Session, error) {
		return open(m, d, setting, options)
	}
	return s
}

// CannotError says that a model cannot run a workload, and why.
type CannotError struct{ Reason string }

// Error implements error.
func (e *CannotError) Error() string { return "cannot: " + e.Reason }

// Session is objects under some model, and those that share them.
type Session struct {
	Callers []object.Caller
	Calls   [][]object.Call // by object, by operation
	// Audit compares the objects with the callers' books after the end.
	Audit func() error
	hosts []host
}

// host is where objects live while their callers use them.
type host interface {
	// stop makes the calls that wait, and those that would, fail with an error for
	// which IsStop reports true. What it fails has not run and never will. A host
	// whose calls watch their context may do nothing.
	stop()
	// end releases the objects. Nobody calls them any more.
	end() error
}

// Stop fails the calls that wait.
func (s *Session) Stop() {
	for _, h := range s.hosts {
		h.stop()
	}
}

// End releases the objects.
func (s *Session) End() error {
	var errs []error
	for _, h := range s.hosts {
		errs = append(errs, h.end())
	}
	return errors.Join(errs...)
}

// IsStop reports whether a call has failed because its session was stopped or its
// context canceled.
func IsStop(err error) bool {
	return errors.Is(err, object.ErrStopped) || errors.Is(err, context.Canceled)
}

// open makes the objects of a setting under a model.
func open[T any](m *Model, d *declarations[T], setting object.Setting, options []activeobject.Option) (*Session, error) {
	if err := m.canRun(d.t.Guarded(), setting); err != nil {
		return nil, err
	}
	states := make([]*T, setting.Objects)
	for i := range states {
		states[i] = d.t.New(setting)
	}
	s := &Session{Callers: d.t.Callers(setting)}
	s.Audit = func() error { return d.t.Audit(states, s.Callers) }
	var err error
	switch m.how {
	case byHand:
		for _, state := range states {
			s.add(openByHand(d.t, state))
		}
	case channel, protoactor:
		for _, state := range states {
			s.add(openServer(m.how, d.t, state))
		}
	default:
		err = openSluice(s, m, setting, d, states, options)
	}
	return s, err
}

// canRun fails if the model would stand still: as all threads of its pool belong to
// requests that wait for guards, and those that would open them wait for a thread.
func (m *Model) canRun(guarded bool, s object.Setting) error {
	if m.Rule.Assignment == trace.OnArrival && m.Rule.Pool > 0 && guarded && s.Callers > m.Rule.Pool {
		return &CannotError{fmt.Sprintf("all %d threads of the pool can come to wait for guards, and would stand still", m.Rule.Pool)}
	}
	return nil
}

// add adds an object.
func (s *Session) add(calls []object.Call, h host) {
	s.Calls = append(s.Calls, calls)
	s.hosts = append(s.hosts, h)
}
