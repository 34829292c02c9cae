package actor_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// pause is where a body stands still until others wait behind it.
type pause struct{ entered, let chan struct{} }

func newPause() pause { return pause{make(chan struct{}), make(chan struct{})} }

func (p pause) here() { close(p.entered); <-p.let }

type step struct {
	pause
	to *activeobject.Object[tally]
}

type tally struct{ n int }

var (
	tallies   = activeobject.NewType[tally]("tally")
	tallyAdd  = activeobject.Procedure(tallies, "add", activeobject.Result(func(t *tally) int { t.n++; return t.n }))
	tallySlow = activeobject.Procedure(tallies, "slow", func(t *tally, p pause) (int, error) { p.here(); t.n++; return t.n, nil })
	tallyWait = activeobject.Entry(tallies, "wait", activeobject.Result(func(t *tally) int { return t.n })).
			When("exits", func(*tally) bool { runtime.Goexit(); return false })
	tallyVisit = activeobject.ProcedureCtx(tallies, "visit", func(_ *tally, ctx context.Context, do func(context.Context)) (activeobject.None, error) {
		do(ctx)
		return nil, nil
	})
	tallyOn = activeobject.Procedure(tallies, "on", func(_ *tally, s step) (int, error) {
		s.here()
		return tallyAdd.RequeueTo(s.to, nil)
	})
	tallyExit = activeobject.Procedure(tallies, "exit", activeobject.Plain(func(*tally) { runtime.Goexit() }))
)

// A caller that has run its own request serves the requests behind it, and a body among these may
// end its goroutine. That does not change the outcome of its own request.
func TestABodyThatEndsAForeignGoroutineSpoilsNoRequestOfIt(t *testing.T) {
	for name, options := range map[string][]activeobject.Option{
		"plain":       nil,
		"intercepted": {activeobject.Interceptors(activeobject.Interceptor{})}, // at the object that it goes on to
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			o := activeobject.Must(activeobject.New(s, tallies, &tally{}))
			next := activeobject.Must(activeobject.New(s, tallies, &tally{}, options...))
			pid := o.PID()
			// disturbed has do run a body in o, behind which another one waits that ends the
			// goroutine, and waits until that has ended.
			disturbed := func(p pause, do func()) {
				ended := make(chan struct{})
				go func() { defer close(ended); do() }()
				soon(t, p.entered)
				exit := tallyExit.Send(background, o, nil)
				close(p.let)
				_, err := exit.Await(background)
				require.ErrorAs(t, err, new(*activeobject.ExitError))
				soon(t, ended)
			}
			replies := make(chan any, 1)
			sender := spawn(t, s, func(ctx proto.Context) {
				if r, ok := ctx.Message().(*actor.Reply); ok {
					replies <- *r
				}
			})
			send := func(operation string, argument any) {
				s.Actors().Root.RequestWithCustomSender(pid, &actor.Invoke{Operation: operation, Argument: argument}, sender)
			}

			p := newPause()
			disturbed(p, func() { send("slow", p) })
			require.Equal(t, actor.Reply{Value: 1}, soon(t, replies))

			p = newPause()
			disturbed(p, func() { send("on", step{p, next}) })
			require.Equal(t, actor.Reply{Value: 1}, soon(t, replies))

			p = newPause()
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			disturbed(p, func() { tallyOn.Send(ctx, o, step{p, next}) })
			p = newPause()
			disturbed(p, func() { tallyOn.Tell(background, o, step{p, next}) })
			p = newPause()
			disturbed(p, func() { tallyOn.Call(background, o, step{p, next}) })
			// One has come by message, one each by Send, Tell and Call.
			full := make(chan struct{})
			go func() {
				defer close(full)
				next.Until(background, guards.When("four", func(t *tally) bool { return t.n == 4 }))
			}()
			soon(t, full)
		})
	}
}

// Whoever has called, and has his result, serves those behind him; if one of these ends
// his goroutine the call does not come back. Nothing else is lost: not what he has
// done, nor those behind, nor the object. Who is inside of another object serves nobody,
// and a pooled object has nobody serve.
func TestGoexitInAServedBodyEndsOnlyTheServingCall(t *testing.T) {
	for name, way := range map[string]struct {
		options []activeobject.Option
		inside  bool // the caller is a body of another object
		returns bool
	}{
		"borrowed":                    {nil, false, false},
		"borrowed, without fast path": {[]activeobject.Option{activeobject.NoFastPath()}, false, false},
		"borrowed, from inside":       {nil, true, true},
		"pooled":                      {[]activeobject.Option{activeobject.PooledThreads()}, false, true},
		"dedicated":                   {[]activeobject.Option{activeobject.DedicatedThread()}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			o := activeobject.Must(activeobject.New(s, tallies, &tally{}, way.options...))
			home := activeobject.Must(activeobject.New(s, tallies, &tally{}))
			p := newPause()
			ended := make(chan activeobject.None)
			var returned, left bool
			var value any
			var n int
			var err error
			go func() {
				defer close(ended)
				defer func() { value, left = recover(), true }()
				call := func(ctx context.Context) { n, err = tallySlow.Call(ctx, o, p) }
				if way.inside {
					tallyVisit.Call(background, home, call)
				} else {
					call(background)
				}
				returned = true
			}()
			soon(t, p.entered)
			exit := tallyExit.Send(background, o, nil)
			behind := tallyAdd.Send(background, o, nil)
			close(p.let)
			_, failed := exit.Await(background)
			require.ErrorAs(t, failed, new(*activeobject.ExitError))
			after, failed := behind.Await(background)
			require.NoError(t, failed)
			require.Equal(t, 2, after, "what the caller's body did is done")
			soon(t, ended)
			require.True(t, left, "its deferred functions run")
			require.Nil(t, value)
			require.Equal(t, way.returns, returned)
			require.NoError(t, err)
			if way.returns {
				require.Equal(t, 1, n)
			}
			after, failed = tallyAdd.Call(background, home, nil)
			require.NoError(t, failed, "no body has been torn")
			require.Equal(t, 1, after)
			soon(t, o.Stop())
		})
	}
}

// A guard may end the goroutine of who sends a message. The reply says that it was the
// guard, and so that the body has not run; and what nobody hears of is logged.
func TestAGuardThatEndsAForeignGoroutineIsNamed(t *testing.T) {
	for name, options := range map[string][]activeobject.Option{"plain": nil, "without fast path": {activeobject.NoFastPath()}, "pooled": {activeobject.PooledThreads()}} {
		t.Run(name, func(t *testing.T) {
			var logged syncBuffer
			s := newSystem(t, actor.Logger(slog.New(slog.NewTextHandler(&logged, nil))))
			o := activeobject.Must(activeobject.New(s, tallies, &tally{}, options...))
			pid := o.PID()
			replies := make(chan actor.Reply, 1)
			sender := spawn(t, s, func(ctx proto.Context) {
				if r, ok := ctx.Message().(*actor.Reply); ok {
					replies <- *r
				}
			})
			go s.Actors().Root.RequestWithCustomSender(pid, &actor.Invoke{Operation: "wait"}, sender)
			var guard *activeobject.GuardError
			require.ErrorAs(t, soon(t, replies).Err, &guard)
			require.Equal(t, "exits", guard.Guard)

			ended := make(chan activeobject.None)
			go func() { defer close(ended); tallyWait.Tell(background, o, nil) }()
			soon(t, ended)
			_, err := tallyAdd.Call(background, o, nil)
			require.NoError(t, err)
			<-o.Stop()
			for !strings.Contains(logged.String(), "guard") {
				runtime.Gosched()
			}
		})
	}
}
