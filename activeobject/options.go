package activeobject

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
	"github.com/sluice-go/sluice/mailbox"
)

// Option adjusts an object, or, through Type.Default, all objects of a type. Of
// options that contradict each other the last one counts.
type Option func(*objectSettings)

type objectSettings struct {
	name       string
	order      order
	ordered    bool // New has been given an order
	maxBypass  int
	bound      mailbox.Bound
	patience   time.Duration
	filters    *[]Interceptor
	checked    bool
	counted    bool
	wrong      senseless // the first option that makes no sense
	thread     thread
	dispatcher *actor.Dispatcher // of given; a pointer, to be comparable
	noFastPath bool
	strict     bool
	log        *func(mailbox.Event)                                      // a pointer, to be comparable
	recorder   *func(object string, operations []string) engine.Recorder // likewise
	audit      *audit
	place      *actor.Place // likewise; which actors supervise which
	concurrent settings.Concurrency
	local      bool // see LocalLifecycle
}

type thread uint8

const (
	borrowed thread = iota
	pooled
	dedicated
	given
)

// senseless says what is wrong with an option.
type senseless struct{ option, reason string }

// Name gives the object a name, under which it is known as an actor from the
// start. The default is the name of its type and a number. A name contains no slash and no
// control characters: see actor.ErrBadName. When the name of an object that has been stopped
// is free again, says actor.NameError.
func Name(name string) Option { return func(s *objectSettings) { s.name = name } }

// Parent makes the object's actor a child of another one, which supervises it like
// Supervisor, by its own strategy, and is stopped and restarted without it no more:
// the children of an actor end before it does.
//
// The parent is another object, or the context that a protoactor actor of the same
// actor system has got with the message that it handles. A body may make children of
// its own object. New fails with *actor.SpawnError if the parent has ended, is about to
// end or, if it is an object, to be restarted, or belongs to another actor system; and
// with *actor.NameError if it has a child of that name. A protoactor actor must make
// none while it handles Restarting or Stopping: protoactor waits for them to end.
//
// The object must be made by NewFrom.
func Parent(parent actor.Spawner) Option {
	return func(s *objectSettings) {
		place := s.at()
		place.Guardian, place.Parent = nil, parent
		if s.place = place; parent == nil {
			s.wrong = senseless{"Parent", "is given nil: pass an object, or the context of an actor"}
		}
	}
}

// Supervisor gives the object a supervisor: the strategy decides what becomes of it
// when it has failed, that is when a body or a guard has panicked or ended its
// goroutine. (An error that a body returns is a result. A policy, a key function or
// an interceptor's Queue does not touch the state, so its failure is no failure of
// the object.) The request concerned fails at once, whatever is decided.
//
// Until the decision nothing starts; requests wait, and can be withdrawn. What runs
// finishes before the decision is carried out. Then the object is
//
//   - resumed: it goes on with its state as it is;
//   - restarted: it gets a new state from its factory, and its children end. Requests
//     that wait have kept their places and ages, and all guards are evaluated anew;
//   - stopped: requests that wait fail with a *StoppedError whose cause is the failure.
//
// To escalate a failure of an object that has no parent stops it. One decision covers
// all failures of the object that come before it.
//
// The strategy gets as reason the *PanicError, *ExitError or *GuardError, and as
// message an *actor.Invoke with the operation's name only. If the factory fails when
// the object is to be restarted, that is a failure in turn: the reason is a
// *RestartError, the message an *actor.Restart, and the old state is kept until the
// next decision. A strategy that panics has the object stopped. It may make children of
// the object that it decides about; a call of the object would wait for the decision.
//
// The object must be made by NewFrom, and the strategy be comparable. Supervision is
// protoactor's, and so Erlang's.
func Supervisor(strategy actor.Strategy) Option {
	return func(s *objectSettings) {
		place := s.at()
		place.Guardian, place.Parent = strategy, nil
		if s.place = place; !actor.CanGuard(strategy) {
			s.wrong = senseless{"Supervisor", "needs a strategy that can be compared, such as protoactor's"}
		}
	}
}

// ChildSupervisor sets the strategy by which the object supervises its children. The
// default is protoactor's: each is restarted for itself, but stopped if it fails
// more than ten times within ten seconds. A strategy that panics has the child stopped.
// It may make other children of the object. But the name of a child that it stops is free
// only when that has ended; so replace the child when you are told of its end.
func ChildSupervisor(strategy actor.Strategy) Option {
	return func(s *objectSettings) {
		place := s.at()
		place.Children = strategy
		if s.place = place; strategy == nil {
			s.wrong = senseless{"ChildSupervisor", "is given nil: pass a strategy"}
		}
	}
}

// LocalLifecycle has the object refuse to be stopped, poisoned or watched from outside its
// process: what protoactor's remote hands in from a peer that knows the object's name. A Stop,
// Watch or Unwatch is logged then, and a PoisonPill answered, like a message that is no request.
// Use it where peers are not trusted with the life of the object; a Watch with an address that
// the peer has made up has this process connect there when the object ends.
//
// The object's own Stop and Close, its supervisor, its parent, and every actor, context and
// System of the process stop, poison and watch it as usual; except that a *PoisonPill or *Stop that
// is made by hand and sent as a message is refused. LocalLifecycle refuses no requests; an
// interceptor can.
func LocalLifecycle() Option { return func(s *objectSettings) { s.local = true } }

// CallerThreads makes the object run its bodies on the goroutines of its callers where
// it can. That is the default, unless the type has another one.
func CallerThreads() Option { return func(s *objectSettings) { s.thread = borrowed } }

// PooledThreads makes the object run its bodies on goroutines of its system's worker pool,
// one at a time, and never on a caller's.
func PooledThreads() Option { return func(s *objectSettings) { s.thread = pooled } }

// DedicatedThread gives the object a goroutine of its own, on which all of its bodies
// run: the thread-per-object model in its plain form. It ends with the object.
func DedicatedThread() Option { return func(s *objectSettings) { s.thread = dedicated } }

// Dispatcher makes the object run its bodies on the threads of the dispatcher, one at a time,
// and never on a caller's. The dispatcher is, for example, a pool that several objects
// share, a thread with a context of its own, or a test that runs the tasks by hand. It
// belongs to the caller, which keeps it alive until the object has ended: the object's
// end, too, is carried out there. A nil dispatcher fails New with *OptionError.
//
// A task is a turn of an object: it runs up to 256 bodies that can start. A dispatcher
// with the method
//
//	Throughput() int
//
// says how many, from 1, before the object needs another turn.
//
// While a body waits for another request its thread is lent, so that a fixed number of threads does
// not deadlock when the bodies on them call each other: another turn runs meanwhile, on a goroutine
// of the system's worker pool. When the wait ends the body goes on at once, even if that makes one
// more than there are threads. (Waiting by other means than Sluice's keeps the thread.) Where the
// threads have a context of their own, so that no other goroutine may replace them, the
// dispatcher has the method
//
//	Lends() bool
//
// and returns false. If all threads of such a dispatcher wait for requests that need one of them,
// they wait until their contexts end.
//
// A synchronizer.Pool is such a dispatcher, too: objects of both kinds share its threads.
func Dispatcher(d actor.Dispatcher) Option {
	if d == nil {
		return wrong("Dispatcher", "is given nil: pass a dispatcher")
	}
	if turnOn(d) < 0 {
		return wrong("Dispatcher", "is given a dispatcher with a Throughput of less than 1")
	}
	return func(s *objectSettings) { s.thread, s.dispatcher = given, &d }
}

// ByArrival makes the object take requests in the order of their arrival. That is
// the default, unless the type has another one.
func ByArrival() Option { return ordered(order{}) }

// ByRotation makes the object take its operations in turn instead of by arrival;
// within an operation requests still start in the order of arrival.
func ByRotation() Option { return ordered(order{policy: mailbox.Rotating}) }

// ByLatest makes the object take the latest arrival first.
func ByLatest() Option { return ordered(order{policy: mailbox.LIFO}) }

// ByPriority makes the object take requests with a greater priority first, which
// WithPriority gives them; among equals, by arrival. SetPriority changes that of a
// waiting request.
func ByPriority() Option { return ordered(order{policy: mailbox.Ranked, rank: byPriority}) }

// ByDeadline makes the object take the request first whose context has the earliest
// deadline; those without one last; among equals, by arrival.
func ByDeadline() Option { return ordered(order{policy: mailbox.Ranked, rank: byDeadline}) }

// ByOrder makes the object take request a before request b if before says so;
// among equals, by arrival. Before must be a strict weak order over what does not
// change while they wait. If it panics, the request that is to be placed fails with
// *PolicyError, or both fail. It is called with the object's mutex held, so it must be
// quick, and not call the object.
func ByOrder(before func(a, b *Candidate) bool) Option {
	if before == nil {
		return wrong("ByOrder", "is given nil: pass a function that says which of two requests comes first")
	}
	return ordered(order{policy: engine.Ordered(before), views: true})
}

// ByChoice makes the object start the request that the function chooses, by its
// index, among those that may start now. They come in the order of arrival. If the
// function panics, or returns no index, all of them fail with *PolicyError. It is
// called with the object's mutex held, like that of ByOrder. Every start costs a look
// at all that may start.
func ByChoice(choose func(eligible []*Candidate) int) Option {
	if choose == nil {
		return wrong("ByChoice", "is given nil: pass a function that returns the index of the request to start")
	}
	return ordered(order{policy: engine.Choosing(choose), views: true})
}

func ordered(o order) Option { return func(s *objectSettings) { s.order, s.ordered = o, true } }

// FixedPolicy makes an order, such as ByLatest(), one that cannot be changed: if an option before it
// orders requests, too, New fails with *OptionError. It is for constructors of objects to whose
// meaning the order belongs, and which hand on options of their users.
func FixedPolicy(order Option) Option {
	if order == nil {
		return wrong("FixedPolicy", "is given nil: pass an order, such as ByArrival")
	}
	return func(s *objectSettings) {
		if s.ordered {
			wrong("an order of requests", "is given to an object that has one of its own, which is a part of what it is: leave it out")(s)
		}
		order(s)
	}
}

// MaxBypass bounds how often a later request may start while a waiting one's
// guard is open; then nothing starts before it. With the default order, that of
// arrival, it never happens at all, but at a Synchronizer. The bound must be at least 1.
func MaxBypass(n int) Option {
	return func(s *objectSettings) {
		s.maxBypass = n
		if n < 1 {
			s.maxBypass = -1
		}
	}
}

// Bound lets no more than n requests wait at the object; those at all of its
// operations count. A request that can start at once is never turned away. The
// bound must not be negative; 0 lets no request wait.
func Bound(n int, overflow Overflow) Option {
	switch {
	case n < 0:
		return wrong("Bound", fmt.Sprintf("is given the bound %d: it must not be negative", n))
	case overflow < Refuse || overflow > Wait:
		return wrong("Bound", "is not told what to do with one too many: pass Refuse, DropOldest or Wait")
	}
	return func(s *objectSettings) { s.bound = mailbox.Bound{Max: n, Overflow: overflow} }
}

// NoBound lets any number of requests wait at the object. That is the default,
// unless the type has another one. The bounds of its operations stay.
func NoBound() Option { return func(s *objectSettings) { s.bound = mailbox.Bound{} } }

// Event is a line of an object's log: see Log.
type Event = mailbox.Event

// Log makes the object pass its scheduler's log to the given function: what
// arrives, the results of guards, what starts, ends and leaves, in order. It is
// called with the object's mutex held, so it must be quick, not panic, and not call the
// object. A request that finds the object idle is logged only if another one comes while it
// runs, or it is inspected; add NoFastPath to see all. Several objects with one function
// may call it at the same time.
func Log(log func(Event)) Option { return func(s *objectSettings) { s.log = &log } }

// Interceptors adds interceptors to an object. Its requests do not take the fast path,
// nor run on the goroutines of other callers. A panic of Queue or Run fails the
// request with a *PanicError; one of Done is logged.
func Interceptors(interceptors ...Interceptor) Option {
	return func(s *objectSettings) {
		all := slices.Clone(interceptors) // the caller may change its own later
		if s.filters != nil {
			all = slices.Concat(*s.filters, interceptors)
		}
		s.filters = &all
	}
}

// Counters makes the object count every request, including requests that find it idle,
// and measure how long requests wait before they start; see Stats. It costs a few
// nanoseconds for every call, and a reading of the clock for each request that waits.
func Counters() Option { return func(s *objectSettings) { s.counted = true } }

// Watchdog makes the object's system log, once, every request that has waited for d,
// with the explanation of its wait; and every body that has run for d, once it has been
// seen twice: after between d and 2d, with what it waits for in other objects. D must be
// positive.
func Watchdog(d time.Duration) Option {
	if d <= 0 {
		return wrong("Watchdog", fmt.Sprintf("is given %v: it must be positive", d))
	}
	return func(s *objectSettings) { s.patience = d }
}

// audited is settings.Audited.
func audited(a settings.Audit) Option {
	if a.Fingerprint == nil {
		return wrong("Audited", "is given no Fingerprint: pass a function that describes the state")
	}
	checked := audit(a)
	return func(s *objectSettings) { s.audit, s.checked = &checked, true }
}

// CheckOpens is for tests of Opens: the object also evaluates the guards that, by the
// declarations, no operation can have opened. Requests whose guards hold nevertheless fail
// with an *UndeclaredError, which names the operation that opened them.
func CheckOpens() Option { return func(s *objectSettings) { s.checked = true } }

// NoFastPath sends every request through the scheduler, also requests that find
// the object idle. The results are the same, but slower; tests use it.
func NoFastPath() Option { return func(s *objectSettings) { s.noFastPath = true } }

// recorded is settings.Recorded.
func recorded(begin func(object string, operations []string) engine.Recorder) Option {
	return func(s *objectSettings) { s.recorder = &begin }
}

// concurrent is settings.Concurrent.
func concurrent(change func(*settings.Concurrency)) Option {
	return func(s *objectSettings) {
		change(&s.concurrent)
		s.concurrent.On = true
	}
}

func init() {
	settings.Options.Concurrent = func(change func(*settings.Concurrency)) any { return concurrent(change) }
	settings.Options.Audited = func(a settings.Audit) any { return audited(a) }
	settings.Options.Recorded = func(begin func(object string, operations []string) engine.Recorder) any { return recorded(begin) }
	settings.Options.Wrong = func(option, reason string) any { return wrong(option, reason) }
	settings.Options.Strict = func() any { return Option(func(s *objectSettings) { s.strict = true }) }
}

// wrong is an option that fails New.
func wrong(option, reason string) Option {
	return func(s *objectSettings) {
		if s.wrong == (senseless{}) {
			s.wrong = senseless{option, reason}
		}
	}
}
