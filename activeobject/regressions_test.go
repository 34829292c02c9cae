package activeobject_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Regressions that no other test covers.

// probe is an object whose bodies are the test's.
type probe struct {
	asked int
	open  bool
}

type probes struct {
	*activeobject.Type[probe]
	run   *activeobject.Operation[probe, func(context.Context) error, None]
	quick *activeobject.Operation[probe, func(), None]
	await *activeobject.Operation[probe, None, None]
}

func newProbes() probes {
	t := activeobject.NewType[probe]("probe")
	return probes{
		Type: t,
		run: activeobject.ProcedureCtx(t, "run", func(_ *probe, ctx context.Context, f func(context.Context) error) (None, error) {
			return nil, f(ctx)
		}),
		quick: activeobject.Procedure(t, "quick", activeobject.Arg(func(_ *probe, f func()) { f() })),
		await: activeobject.Entry(t, "await", activeobject.Plain(func(*probe) {})).When("open", func(e *probe) bool {
			e.asked++
			return e.open
		}),
	}
}

func TestATryAtTheEndOfAWorkersTurnDoesNotRunOnItsCaller(t *testing.T) {
	es := newProbes()
	for _, option := range []activeobject.Option{activeobject.PooledThreads(), activeobject.DedicatedThread()} {
		s := &scene{system: newSystem(t), options: []activeobject.Option{option}}
		o := newObject(t, s, es.Type, &probe{})
		begun, first, atLast, last := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		es.quick.Send(background, o, func() { close(begun); <-first })
		soon(t, s.system, begun)
		for range 254 {
			es.quick.Send(background, o, func() {})
		}
		es.quick.Send(background, o, func() { close(atLast); <-last }) // the last of the turn
		close(first)
		soon(t, s.system, atLast)
		stack := make(chan string, 1)
		tried := trying(background, o, es.quick, func() {
			b := make([]byte, 1<<14)
			stack <- string(b[:runtime.Stack(b, false)])
		})
		waiting(t, o, es.quick, 1)
		close(last)
		require.NoError(t, soon(t, s.system, tried).err)
		require.NotContains(t, strings.ToLower(soon(t, s.system, stack)), "(*mailbox).wait(")
	}
}

func TestAGoroutineThatABodyLeftBehindIsNotInsideItsCaller(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, es.Type, &probe{}), newObject(t, s, es.Type, &probe{})
		left, called := make(chan struct{}), make(chan error, 1)
		_, err := es.run.Call(background, a, func(ctx context.Context) error {
			_, err := es.run.Call(ctx, b, func(ctx context.Context) error {
				go func() {
					<-left
					_, err := es.quick.Call(ctx, a, func() {})
					called <- err
				}()
				return nil
			})
			close(left)
			// The goroutine waits for a, and a goes on: no circle.
			eventually(t, "the goroutine waits", func() bool { return es.quick.Waiting(a) == 1 || len(called) == 1 })
			return err
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, s.system, called))
	})
}

func TestAWaitForAGoroutineThatABodyLeftBehindIsNoCircle(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		a, b, c := newObject(t, s, es.Type, &probe{}), newObject(t, s, es.Type, &probe{}), newObject(t, s, es.Type, &probe{})
		runs, goOn, called := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		innocent := calling(background, c, es.run, func(ctx context.Context) error {
			close(runs)
			<-goOn
			_, err := es.quick.Call(ctx, a, func() {})
			called <- err
			return nil
		})
		soon(t, s.system, runs)
		_, err := es.run.Call(background, a, func(ctx context.Context) error {
			_, err := es.run.Call(ctx, b, func(ctx context.Context) error {
				go es.quick.Call(ctx, c, func() {}) // waits behind the innocent
				waiting(t, c, es.quick, 1)
				return nil
			})
			close(goOn)
			eventually(t, "the innocent waits", func() bool { return es.quick.Waiting(a) == 1 || len(called) == 1 })
			return err
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, s.system, called))
		require.NoError(t, soon(t, s.system, innocent).err)
	})
}

func TestAGuardIsEvaluatedOnceThoughTheRequestsItOpensForHaveBeenCanceled(t *testing.T) {
	es := newProbes()
	const waiters = 50
	s := &scene{system: newSystem(t)}
	state := &probe{}
	o := newObject(t, s, es.Type, state)
	ctx, cancel := context.WithCancel(background)
	var all []<-chan outcome[None]
	for range waiters {
		all = append(all, awaiting(background, es.await.Send(ctx, o, nil)))
	}
	waiting(t, o, es.await, waiters)
	_, err := es.quick.Call(background, o, func() {
		state.open, state.asked = true, 0
		cancel()
	})
	require.NoError(t, err)
	for _, c := range all {
		require.ErrorIs(t, soon(t, s.system, c).err, context.Canceled)
	}
	_, err = es.quick.Call(background, o, func() { require.LessOrEqual(t, state.asked, 1) })
	require.NoError(t, err)
}

// onReply is a process that does something with each reply, on the goroutine that
// brings it.
type onReply struct{ do func(message any) }

func (p *onReply) SendUserMessage(_ *actor.PID, message any) { p.do(message) }
func (p *onReply) SendSystemMessage(*actor.PID, any)         {}
func (p *onReply) Stop(*actor.PID)                           {}

func TestAReplyMayCallTheObjectItComesFrom(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, es.Type, &probe{})
		called := make(chan error, 1)
		pid, _ := s.system.Actors().ProcessRegistry.Add(&onReply{func(any) {
			_, err := es.quick.Call(background, o, func() {})
			called <- err
		}}, "caller")
		in, out := make(chan struct{}), make(chan struct{})
		held := calling(background, o, es.run, func(context.Context) error { close(in); <-out; return nil })
		soon(t, s.system, in)
		s.system.Actors().Root.RequestWithCustomSender(o.PID(), &actor.Invoke{Operation: "quick", Argument: func() {}}, pid)
		waiting(t, o, es.quick, 1)
		close(out)
		require.NoError(t, soon(t, s.system, called))
		require.NoError(t, soon(t, s.system, held).err)
	})
}

func TestAnInvokeWhoseBodyEndsItsGoroutineIsAnswered(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, es.Type, &probe{})
		replies := make(chan any, 1)
		pid, _ := s.system.Actors().ProcessRegistry.Add(&onReply{func(message any) {
			_, body, _ := proto.UnwrapEnvelope(message)
			replies <- body
		}}, "caller")
		go s.system.Actors().Root.RequestWithCustomSender(o.PID(), &actor.Invoke{Operation: "quick", Argument: runtime.Goexit}, pid)
		reply, ok := soon(t, s.system, replies).(*actor.Reply)
		require.True(t, ok)
		var exit *activeobject.ExitError
		require.ErrorAs(t, reply.Err, &exit)
	})
}

func TestAStopBehindAPoisonFailsThoseThatWaitAtOnce(t *testing.T) {
	es := newProbes()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, es.Type, &probe{})
		f := es.await.Send(background, o, nil)
		in, out := make(chan struct{}), make(chan struct{})
		held := calling(background, o, es.run, func(context.Context) error { close(in); <-out; return nil })
		soon(t, s.system, in)
		root := s.system.Actors().Root
		root.Poison(o.PID())
		root.Stop(o.PID())
		requireStopped(t, o.Name(), soon(t, s.system, awaiting(background, f)).err)
		close(out)
		require.NoError(t, soon(t, s.system, held).err)
	})
}
