package synchronizer

import (
	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
)

// New is activeobject.New with Callers, unless another option or the type has other threads: an
// object that runs all requests at once that are compatible with each other. It takes the options
// of both packages, and fails likewise, also if the
// conflict table is wrong or another type's (*activeobject.OptionError). PooledThreads, DedicatedThread
// and On of the package activeobject give an object one thread at a time, and are refused.
func New[T any](system *actor.System, t *activeobject.Type[T], state *T, options ...activeobject.Option) (*activeobject.Object[T], error) {
	return activeobject.New(system, t, state, synchronized(options)...)
}

// NewFrom is New for an object whose state is made by a factory: see activeobject.NewFrom.
func NewFrom[T any](system *actor.System, t *activeobject.Type[T], factory func() (*T, error), options ...activeobject.Option) (*activeobject.Object[T], error) {
	return activeobject.NewFrom(system, t, factory, synchronized(options)...)
}

func synchronized(options []activeobject.Option) []activeobject.Option {
	return append(options[:len(options):len(options)], settings.Concurrent[activeobject.Option](func(*settings.Concurrency) {}))
}

// Conflicts gives the object a conflict table of its own; or, through Type.Default, all
// objects of a type. The table is of the type's operations, in their order, as in
// Type.Conflicts and in guards.NewTable(t.Operations()...). What is not declared (Object.Do and
// View) goes by the default: Do conflicts with everything, View with all but functions.
func Conflicts(table guards.Table) activeobject.Option {
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Table = &table })
}

// Reentrant admits a call that comes back to an object from inside of which it is made,
// through any number of objects: it conflicts with none of the requests that wait for it, and passes
// those that wait for these. So its body runs in the middle of theirs. Without the option it
// is refused (*activeobject.DeadlockError, which names the chain). An object with the option
// considers the requests that wait one by one.
func Reentrant() activeobject.Option {
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Reentrant = true })
}

// AllCompatible makes the object start every request whose guard holds and that conflicts with
// nothing that runs, as in Grasso's text (see the package comment): a request that waits because
// it conflicts with what runs blocks no other. So a stream of readers starves a writer, which it
// cannot without the option. With activeobject.MaxBypass no request is bypassed more often than
// that: at the bound nothing starts any more that conflicts with the request.
//
// Among the requests that could start the policy decides as ever, and a Try is considered last.
// Where only the head of an operation's line is considered, the others stay behind it.
func AllCompatible() activeobject.Option {
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.AllCompatible = true })
}

// Callers makes each request run on the goroutine of the caller that waits for it; or, if its
// body takes no context, on that of another caller that waits for its end. A request without a
// waiting caller (Send, Begin, Tell, a message) runs on a goroutine of the system's worker pool.
// That is the default, unless the type has another one.
func Callers() activeobject.Option { return threads(nil) }

// Goroutines makes each request run on a goroutine of its own.
func Goroutines() activeobject.Option { return threads(spawned{}) }

// Workers makes each request run on a thread of the pool, when there is one: until then it
// waits, and can be withdrawn. A nil pool fails New with *activeobject.OptionError.
func Workers(p *Pool) activeobject.Option {
	if p == nil {
		return settings.Wrong[activeobject.Option]("Workers", "is given nil: pass a pool")
	}
	return threads(p)
}

func threads(t engine.Threads) activeobject.Option {
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Threads, c.Workers = t, nil })
}

// Limit lets no more than n requests run at once, those not counted that wait for other
// requests: so more than n may have begun. N must be at least 1.
func Limit(n int) activeobject.Option { return limit(n, false) }

// HardLimit lets no more than n requests run at once, whatever they do. If all of them wait
// for requests that would have to run here, they do so until their contexts end. N must be at
// least 1.
func HardLimit(n int) activeobject.Option { return limit(n, true) }

func limit(n int, hard bool) activeobject.Option {
	if n < 1 {
		return settings.Wrong[activeobject.Option]("Limit", "is less than 1")
	}
	return settings.Concurrent[activeobject.Option](func(c *settings.Concurrency) { c.Limit, c.Hard = n, hard })
}

// spawned gives every request a new goroutine.
type spawned struct{}

func (spawned) Dispatch(t actor.Task)       { go t.Run() }
func (spawned) Take(*engine.Mailbox) bool   { return true }
func (spawned) Forget(*engine.Mailbox) bool { return false }
func (spawned) Return(actor.Task)           {}
func (spawned) Retake()                     {}
