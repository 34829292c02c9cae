package resource_test

import (
	"context"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/resource"
	"github.com/sluice-go/sluice/actor"
)

// ask sends the scheduler a message, as a plain actor would, and returns the future of its reply.
func ask(system *actor.System, s *resource.Scheduler[string], operation string, argument any) *proto.Future {
	return system.Actors().Root.RequestFuture(s.Object().PID(), &actor.Invoke{Operation: operation, Argument: argument}, 20*time.Second)
}

// reply waits for the reply to a message.
func reply(t *testing.T, f *proto.Future) (any, error) {
	t.Helper()
	r, err := f.Result()
	require.NoError(t, err)
	return r.(*actor.Reply).Value, r.(*actor.Reply).Err
}

// entered waits for the grant that a message has asked for.
func entered(t *testing.T, f *proto.Future) *resource.Grant[string] {
	t.Helper()
	g, err := reply(t, f)
	require.NoError(t, err)
	return g.(*resource.Grant[string])
}

func newPrinter(t *testing.T, policy *resource.Policy[string], options ...activeobject.Option) (*actor.System, *resource.Scheduler[string]) {
	t.Helper()
	system := objecttest.NewSystem(t)
	s, err := resource.New(system, policy, options...)
	require.NoError(t, err)
	return system, s
}

// waits waits until so many clients wait.
func waits(t *testing.T, s *resource.Scheduler[string], n int) {
	t.Helper()
	enough := make(chan struct{})
	defer s.Object().Observe(func(activeobject.Load) bool {
		if s.Waiting() < n {
			return false
		}
		close(enough)
		return true
	})()
	select {
	case <-enough:
	case <-time.After(20 * time.Second):
		t.Fatalf("%d clients wait instead of %d", s.Waiting(), n)
	}
}

func TestAResourceIsEnteredAndLeftByMessage(t *testing.T) {
	for name, options := range map[string][]activeobject.Option{"borrowed": nil, "pooled": {activeobject.PooledThreads()}} {
		t.Run(name, func(t *testing.T) {
			system, s := newPrinter(t, resource.ByPriority(func(data string) int { return len(data) }), options...)
			first := entered(t, ask(system, s, "enter", resource.Request[string]{Data: "first"}))
			require.Equal(t, "first", first.Data())
			short, long := ask(system, s, "enter", resource.Request[string]{Data: "no"}), ask(system, s, "enter", resource.Request[string]{Data: "important"})
			middle := s.Enters().Send(context.Background(), resource.Request[string]{Data: "medium"})
			waits(t, s, 3)
			_, err := reply(t, ask(system, s, "done", first))
			require.NoError(t, err)
			require.NoError(t, entered(t, long).Done(), "the grant of a message is as good as any")
			g, err := middle.Await(context.Background())
			require.NoError(t, err)
			_, err = reply(t, ask(system, s, "done", g))
			require.NoError(t, err)
			g = entered(t, short)
			require.Equal(t, "no", g.Data())
			require.NoError(t, g.Done())
			_, err = reply(t, ask(system, s, "done", g))
			require.ErrorAs(t, err, new(*resource.EndedError))
		})
	}
}

func TestAGrantByMessageEndsByItsTerms(t *testing.T) {
	system, s := newPrinter(t, resource.FIFO[string]())
	holder := system.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
	g := entered(t, ask(system, s, "enter", resource.Request[string]{Data: "one", Terms: []resource.Term{resource.Watched(holder)}}))
	next := ask(system, s, "enter", resource.Request[string]{Data: "two"})
	waits(t, s, 1)
	system.Actors().Root.Stop(holder)
	two := entered(t, next)
	var ended *resource.EndedError
	require.ErrorAs(t, g.Done(), &ended)
	require.Equal(t, resource.ActorEnded, ended.Reason)

	// A client that ends while it waits does not get it.
	holder = system.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
	ctx, cancel := context.WithCancel(context.Background())
	dead := ask(system, s, "enter", resource.Request[string]{Terms: []resource.Term{resource.Watched(holder)}})
	left := ask(system, s, "enter", resource.Request[string]{Terms: []resource.Term{resource.During(ctx)}})
	waits(t, s, 2)
	cancel()
	ended2, stop := system.Watch(holder)
	defer stop()
	system.Actors().Root.Stop(holder)
	<-ended2
	require.NoError(t, two.Done())
	_, err := reply(t, dead)
	require.ErrorAs(t, err, &ended)
	require.Equal(t, resource.ActorEnded, ended.Reason)
	_, err = reply(t, left)
	require.ErrorAs(t, err, &ended)
	require.Equal(t, resource.ContextEnded, ended.Reason)

	_, err = reply(t, ask(system, s, "enter", resource.Request[string]{Terms: []resource.Term{resource.Lease(-1)}}))
	require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	free, err := s.Enters().Try(context.Background(), resource.Request[string]{Data: "free"})
	require.NoError(t, err)
	require.NoError(t, free.Done())
}

func TestAForgedOrNilGrantIsRefused(t *testing.T) {
	system, s := newPrinter(t, resource.FIFO[string]())
	_, other := newPrinter(t, resource.FIFO[string]())
	stranger, err := other.Enter(context.Background(), "stranger")
	require.NoError(t, err)
	mine, err := s.Enter(context.Background(), "mine")
	require.NoError(t, err)
	copied := new(resource.Grant[string])
	*copied = *mine
	for name, g := range map[string]*resource.Grant[string]{"nil": nil, "zero": {}, "copied": copied, "another's": stranger} {
		_, err := reply(t, ask(system, s, "done", g))
		require.ErrorAs(t, err, new(*resource.ForeignError), name)
	}
	require.NoError(t, mine.Done())
	require.NoError(t, stranger.Done())

	// None of the operations takes a grant that the package has not made, whatever it is called.
	var message *activeobject.MessageError
	for _, operation := range s.Shared().Type().Operations() {
		if operation == "done" {
			continue
		}
		for _, forged := range []any{nil, (*resource.Grant[string])(nil), &resource.Grant[string]{}, mine, stranger} {
			_, err := reply(t, ask(system, s, operation, forged))
			require.ErrorAs(t, err, &message, "%s %#v", operation, forged)
		}
	}
	g, err := s.Enters().Try(context.Background(), resource.Request[string]{Data: "available"})
	require.NoError(t, err, "it is free")
	require.NoError(t, g.Done())
}

func TestAPriorityThatPanicsFailsTheMessageOnly(t *testing.T) {
	system, s := newPrinter(t, resource.ByPriority(func(data string) int { return 1 / len(data) }),
		activeobject.Supervisor(proto.NewOneForOneStrategy(0, time.Second, func(any) proto.Directive { return proto.StopDirective })))
	_, err := reply(t, ask(system, s, "enter", resource.Request[string]{}))
	require.ErrorAs(t, err, new(*activeobject.PolicyError))
	require.NoError(t, entered(t, ask(system, s, "enter", resource.Request[string]{Data: "well"})).Done())
}

func TestARestartedSchedulerKnowsNoGrantsAndServesThoseThatWait(t *testing.T) {
	system, s := newPrinter(t, resource.FIFO[string](), activeobject.Supervisor(proto.NewOneForOneStrategy(10, time.Second, proto.DefaultDecider)))
	lost, err := s.Enter(context.Background(), "lost", resource.Lease(time.Hour))
	require.NoError(t, err)
	next := s.Enters().Send(context.Background(), resource.Request[string]{Data: "next"})
	waits(t, s, 1)
	pid := s.Object().PID()
	process, _ := system.Actors().ProcessRegistry.GetLocal(pid.Id)
	process.SendSystemMessage(pid, &proto.Restart{})
	g, err := next.Await(context.Background())
	require.NoError(t, err)
	var ended *resource.EndedError
	require.ErrorAs(t, lost.Done(), &ended)
	require.Equal(t, resource.Restarted, ended.Reason)
	require.NoError(t, g.Done())
}
