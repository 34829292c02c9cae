package activeobject_test

import (
	"context"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/synchronizer"
)

// cloakroom holds items, of which each goes to one client.
type cloakroom struct{ items, taken int }

func (c *cloakroom) filled() bool { return c.items > 0 }

func (c *cloakroom) take() int {
	c.items--
	c.taken++
	return c.taken
}

var (
	cloakrooms = activeobject.NewType[cloakroom]("cloakroom")
	takeItem   = activeobject.Entry(cloakrooms, "take", activeobject.Result((*cloakroom).take)).When("filled", (*cloakroom).filled)
	takeSlowly = activeobject.EntryCtx(cloakrooms, "take slowly", func(c *cloakroom, _ context.Context, _ activeobject.None) (int, error) {
		return c.take(), nil
	}).When("filled", (*cloakroom).filled)
	_ = activeobject.Procedure(cloakrooms, "take later", func(_ *cloakroom, commit bool) (int, error) {
		if commit {
			return takeItem.Requeue(nil, activeobject.Commit)
		}
		return takeItem.Requeue(nil)
	})
	bringItems = activeobject.Procedure(cloakrooms, "bring", activeobject.Arg(func(c *cloakroom, n int) { c.items += n }))
	itemsLeft  = activeobject.Function(cloakrooms, "left", activeobject.Result(func(c *cloakroom) int { return c.items }))
)

// senders are the clients of a cloakroom that send it messages, and the dead letters of their
// system.
type senders struct {
	t      *testing.T
	system *actor.System
	o      *activeobject.Object[cloakroom]
	root   *proto.RootContext
	dead   chan any
}

// besideMessages runs the test for objects whose bodies run on threads of all kinds.
func besideMessages(t *testing.T, test func(t *testing.T, s *senders)) {
	for name, options := range map[string][]activeobject.Option{
		"borrowed":          nil,
		"without fast path": {activeobject.NoFastPath()},
		"pooled":            {activeobject.PooledThreads()},
		"synchronizer":      {synchronizer.Goroutines()},
	} {
		t.Run(name, func(t *testing.T) {
			s := &senders{t: t, system: objecttest.NewSystem(t), dead: make(chan any, 100)}
			o, err := activeobject.New(s.system, cloakrooms, &cloakroom{}, options...)
			require.NoError(t, err)
			s.o, s.root = o, s.system.Actors().Root
			events := s.system.Actors().EventStream
			sub := events.Subscribe(func(event any) {
				if d, ok := event.(*proto.DeadLetterEvent); ok {
					s.dead <- d.Message
				}
			})
			defer events.Unsubscribe(sub)
			test(t, s)
		})
	}
}

// client is an actor that does nothing.
func (s *senders) client() *actor.PID {
	return s.root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
}

func (s *senders) send(operation string, argument any, from *actor.PID) *actor.Invoke {
	m := &actor.Invoke{Operation: operation, Argument: argument}
	s.root.RequestWithCustomSender(s.o.PID(), m, from)
	return m
}

// lost requires that the message becomes a dead letter.
func (s *senders) lost(message *actor.Invoke) {
	s.t.Helper()
	for {
		select {
		case d := <-s.dead:
			if d == any(message) {
				return
			}
		case <-time.After(20 * time.Second):
			s.t.Fatalf("%v is no dead letter", message)
		}
	}
}

func (s *senders) bring(n int) {
	_, err := bringItems.Call(context.Background(), s.o, n)
	require.NoError(s.t, err)
}

// left returns how many items there are.
func (s *senders) left() int {
	n, err := itemsLeft.Call(context.Background(), s.o, nil)
	require.NoError(s.t, err)
	return n
}

func TestARequestWhoseSenderHasGoneIsWithdrawnWhenItsTurnComes(t *testing.T) {
	besideMessages(t, func(t *testing.T, s *senders) {
		for _, op := range []*activeobject.Operation[cloakroom, activeobject.None, int]{takeItem, takeSlowly} {
			stopped := s.client()
			first := s.send(op.Name(), nil, stopped)
			impatient := proto.NewFuture(s.system.Actors(), time.Hour)
			second := s.send(op.Name(), nil, impatient.PID())
			objecttest.Waiting(t, s.o, op, 2)
			require.NoError(t, s.root.StopFuture(stopped).Wait())
			process, _ := s.system.Actors().ProcessRegistry.GetLocal(impatient.PID().Id)
			process.Stop(impatient.PID()) // which is what its timeout does
			alive := s.root.RequestFuture(s.o.PID(), &actor.Invoke{Operation: op.Name()}, 20*time.Second)
			objecttest.Waiting(t, s.o, op, 3)
			for _, w := range s.o.Explain().Waiting[:2] {
				require.True(t, w.Leaving, "it is known to be of no use")
			}
			s.bring(1)
			got, err := alive.Result()
			require.NoError(t, err)
			require.NoError(t, got.(*actor.Reply).Err)
			s.lost(first)
			s.lost(second)
		}
		require.Zero(t, s.left())
	})
}

func TestARequestWhoseSenderHasGoneBeforeItArrivesDoesNotRun(t *testing.T) {
	besideMessages(t, func(t *testing.T, s *senders) {
		s.bring(1)
		gone := s.client()
		require.NoError(t, s.root.StopFuture(gone).Wait())
		for _, op := range []string{"take", "take slowly"} {
			s.lost(s.send(op, nil, gone))
		}
		s.lost(s.send("take", nil, proto.NewPID("$sluice", "7.7")))
		require.Equal(t, 1, s.left())
	})
}

func TestARequestWithoutASenderOrOneThatCannotBeKnownRuns(t *testing.T) {
	besideMessages(t, func(t *testing.T, s *senders) {
		s.send("take", nil, nil)
		s.send("take", nil, proto.NewPID("elsewhere:8090", "client"))
		objecttest.Waiting(t, s.o, takeItem, 2)
		s.bring(3)
		objecttest.Idle(t, s.o)
		require.Equal(t, 1, s.left())
	})
}

func TestARequestWhoseSenderHasGoneIsWithdrawnAfterARequeueUnlessItIsCommitted(t *testing.T) {
	besideMessages(t, func(t *testing.T, s *senders) {
		client := s.client()
		s.send("take later", false, client)
		s.send("take later", true, client)
		objecttest.Waiting(t, s.o, takeItem, 2)
		require.NoError(t, s.root.StopFuture(client).Wait())
		s.bring(2)
		objecttest.Idle(t, s.o)
		require.Equal(t, 1, s.left())
	})
}

// A request of System.Request has its reply, from another actor, before it is about to start.
func TestARequestThatHasItsReplyIsWithdrawn(t *testing.T) {
	besideMessages(t, func(t *testing.T, s *senders) {
		quick := s.root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if m, ok := c.Message().(*actor.Invoke); ok {
				s.root.RequestWithCustomSender(s.o.PID(), m, c.Sender())
				c.Respond("never mind")
			}
		}))
		value, err := actor.Ask[string](context.Background(), s.system, quick, "take", nil)
		require.NoError(t, err)
		require.Equal(t, "never mind", value)
		objecttest.Waiting(t, s.o, takeItem, 1)
		s.bring(1)
		objecttest.Idle(t, s.o)
		require.Equal(t, 1, s.left())
	})
}
