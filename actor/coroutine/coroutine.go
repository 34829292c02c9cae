package coroutine

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
)

// Coroutine is a routine with a stack of its own. Its body is a plain function, which gets the
// Coroutine and may wait in the middle: for blockers, at queues, for futures. Then its worker goes
// on with other routines, and any worker resumes it.
//
// The coroutine as such may be used by its own body only, on the body's own goroutine: another one
// that waits with it while the body runs is a data race, and has no defined outcome. Other
// goroutines may call Await.
//
// It is made of iter.Pull, whose switch does not go through Go's scheduler. The body runs on a
// goroutine of its own, which stands still while the coroutine waits, and ends with the body. So a
// coroutine that waits for ever in a scheduler that is never closed is a goroutine that is lost.
type Coroutine struct {
	routine
	body func(*Coroutine) error
	ctx  context.Context
	stop func() bool // ends watching ctx; may be nil
	over bool        // the body has ended; it and stop are guarded by the mu of s

	// interruption is what ends all its waits; nil unless its context has ended.
	interruption atomic.Pointer[error]

	// What follows belongs to the goroutine that runs the coroutine: that of the body from a switch
	// in to the next switch out, and that which has called resume from there (C2).
	next   func() (struct{}, bool) // switches in
	yield  func(struct{}) bool     // switches out
	intent intent                  // what is to become of it when it has switched out
	passes int                     // waits in succession that have found nothing blocked
}

// intent is what a coroutine has switched out for.
type intent struct {
	to        purpose
	at        *Blocker // that it waits for
	evaluated bool     // the condition was true,
	version   uint64   // and this was the version before it was evaluated
	again     bool     // it keeps its place in the line
}

// purpose is what a coroutine switches out for.
type purpose uint8

const (
	toYield purpose = iota
	toWait
	toEnd
)

// Go makes a coroutine, which begins soon. It fails with ErrClosed if the scheduler is closed, and
// with *activeobject.ArgumentError if an argument is nil.
//
// When the context ends, the coroutine's wait, and every later one, fails with its cause. If it has
// ended before the coroutine begins, the body never runs. The context may be nil.
//
// What the body returns is the outcome: see Await. If the body panics, or calls runtime.Goexit, the
// outcome is a *RoutineError, and the scheduler goes on. The body of a coroutine that has been made
// always begins, unless its context ends; when the scheduler is closed its waits fail.
func (s *Scheduler) Go(ctx context.Context, body func(*Coroutine) error) (*Coroutine, error) {
	if body == nil {
		return nil, wrong("Go", "body", "is nil")
	}
	c := &Coroutine{body: body, ctx: ctx}
	c.s, c.co, c.source = s, c, body
	if ctx != nil && ctx.Err() != nil {
		err := context.Cause(ctx)
		c.interruption.Store(&err)
	}
	if err := s.admit(&c.routine, nil); err != nil {
		return nil, err
	}
	if ctx != nil && ctx.Done() != nil {
		c.watch(ctx)
	}
	return c, nil
}

// watch has the coroutine's waits end when the context does.
func (c *Coroutine) watch(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.interrupt)
	c.s.mu.Lock()
	c.stop = stop
	over := c.over
	c.s.mu.Unlock()
	if over {
		stop()
	}
}

// unwatch ends watching the context, as the body has ended.
func (c *Coroutine) unwatch() {
	c.s.mu.Lock()
	c.over = true
	stop := c.stop
	c.s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// interrupt ends the coroutine's wait, and all later ones, as its context has ended.
func (c *Coroutine) interrupt() {
	err := context.Cause(c.ctx)
	c.interruption.Store(&err)
	s := c.s
	s.mu.Lock()
	if c.state == blocked {
		c.at.remove(&c.routine)
		c.err = err
		s.ready(&c.routine)
	}
	s.release()
}

// interrupted returns what ends the coroutine's waits, if anything has.
//
// No interruption is lost. If it comes while the coroutine is running, it is seen here before the
// next wait, or when the coroutine is settled after its switch, under mu; if after that, interrupt
// finds the coroutine in its line. The same holds for closing the scheduler.
func (c *Coroutine) interrupted() error {
	if err := c.interruption.Load(); err != nil {
		return *err
	}
	if c.s.closed.Load() {
		return ErrClosed
	}
	return nil
}

// Await waits until the coroutine has ended, and returns what its body has returned; *RoutineError
// if that has not returned; or the context's error, if that ends first. A routine that calls it
// keeps its worker.
func (c *Coroutine) Await(ctx context.Context) error { return c.await(ctx) }

// Context returns the context that Go was given, or context.Background.
func (c *Coroutine) Context() context.Context {
	if c.ctx == nil {
		return context.Background()
	}
	return c.ctx
}

// Yield lets all routines run first that are runnable now. It fails, and does not yield, as a wait
// does if the scheduler is closed or the coroutine's context has ended; and with
// *activeobject.ArgumentError if the coroutine is not running.
func (c *Coroutine) Yield() error {
	if err := c.s.isRunning(c, "Yield"); err != nil {
		return err
	}
	if err := c.interrupted(); err != nil {
		return err
	}
	c.intent.to = toYield
	c.prepare()
	c.yield(struct{}{}) // C1, C2
	return c.cause()
}

// isRunning checks that a coroutine that is about to wait runs on a worker of s.
func (s *Scheduler) isRunning(c *Coroutine, call string) error {
	switch {
	case c == nil:
		return wrong(call, "coroutine", "is nil")
	case c.s != s:
		return wrong(call, "coroutine", "belongs to another scheduler")
	case c.state != running:
		return wrong(call, "coroutine", "is not running: it is "+states[c.state])
	}
	return nil
}

// C1. A coroutine is switched in and out by goroutines without a lock on their operating-system
// thread, or else Go's runtime ends the process. Next is called by goroutines of the scheduler
// only, which undo the lock after all other code that they run: see examine, run and reported. The
// body's goroutine undoes it in prepare and main.
//
// C2. What the body wrote before it switched out happens before what is done after next has
// returned, and so on: iter.Pull's next and yield are ordered like calls. From one next to the
// following, which may be on another worker, it is ordered by mu: a worker settles the coroutine
// under mu, and another takes it under mu.

// prepare is called before the coroutine switches out.
func (c *Coroutine) prepare() {
	c.passes = 0
	unlockThread()
}

// cause returns what has ended the wait of the coroutine, if it was not its blocker.
func (c *Coroutine) cause() error {
	err := c.err
	c.err = nil
	return err
}

// resume switches in, and returns when the coroutine has switched out. If its body has ended its
// goroutine, so does resume: iter.Pull has it so.
func (c *Coroutine) resume() {
	if c.next == nil {
		c.start()
	}
	c.next()
}

// start makes the coroutine's goroutine. It is called by the goroutine that resumes it first, as
// the lock of the goroutine that makes it counts, too (C1).
func (c *Coroutine) start() {
	c.next, _ = iter.Pull(c.main) // stop is not needed: main returns when the body does
}

// main is the coroutine's own goroutine.
func (c *Coroutine) main(yield func(struct{}) bool) {
	returned := false
	defer func() {
		if !returned {
			c.outcome = c.failure(recover())
		}
		c.body, c.yield, c.intent = nil, nil, intent{to: toEnd}
		c.unwatch()
		unlockThread()
	}()
	c.yield = yield
	c.outcome = c.body(c)
	returned = true
}

// unlockThread undoes the calls of runtime.LockOSThread that have not been undone, up to eight. The
// runtime does not tell whether there are any, in less than a microsecond.
func unlockThread() {
	runtime.UnlockOSThread() // a loop would take twice the time
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
	runtime.UnlockOSThread()
}

// Await has a coroutine wait for a future, such as that of a request to an object, without keeping
// its worker, and returns its result. It fails with the future's error; and as WaitUntilNotBlocked
// does, when the future, and what it stands for, goes on.
func Await[R any](c *Coroutine, f actor.Future[R]) (R, error) {
	var result R
	if c == nil {
		return result, wrong("Await", "coroutine", "is nil")
	}
	var there atomic.Bool
	b := &Blocker{s: c.s, condition: func() bool { return !there.Load() }}
	var err error
	f.OnDone(func(r R, e error) {
		result, err = r, e
		there.Store(true)
		b.Unblocked()
	})
	if e := b.wait(c, "Await"); e != nil {
		var none R
		return none, e
	}
	return result, err
}
