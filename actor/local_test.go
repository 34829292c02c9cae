package actor_test

import (
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// peer is a process of another machine that counts what it is told.
type peer struct{ heard atomic.Int32 }

func (p *peer) SendUserMessage(*actor.PID, any)   { p.heard.Add(1) }
func (p *peer) SendSystemMessage(*actor.PID, any) { p.heard.Add(1) }
func (p *peer) Stop(*actor.PID)                   {}

func TestAnObjectMayRefuseToBeStoppedPoisonedOrWatchedFromOutside(t *testing.T) {
	foreign, far := newForeign(t), &peer{}
	foreign.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (proto.Process, bool) { return far, pid.Address == "far:1" })
	s := newSystem(t, actor.Actors(foreign))
	for _, refuses := range []bool{false, true} {
		options := []activeobject.Option{activeobject.Name("gate")}
		if refuses {
			options = append(options, activeobject.LocalLifecycle())
		}
		o, err := activeobject.New(s, locks, &lock{}, options...)
		require.NoError(t, err)
		process, _ := foreign.ProcessRegistry.Get(o.PID())
		deaf, senders := asks(t, s)
		asked := s.Request(background, deaf, "?")
		heard := far.heard.Load()

		// As protoactor's remote hands it in, decoded from the wire.
		process.SendSystemMessage(o.PID(), &proto.Watch{Watcher: proto.NewPID("far:1", "spy")})
		process.SendSystemMessage(o.PID(), &proto.Watch{Watcher: proto.NewPID("$sluice", "1.1")})
		process.SendSystemMessage(o.PID(), &proto.Watch{Watcher: foreign.NewLocalPID("nobody")})
		ended, _ := s.Watch(o.PID()) // hears after the spy
		process.SendSystemMessage(o.PID(), &proto.Stop{})
		foreign.Root.RequestWithCustomSender(o.PID(), &proto.PoisonPill{}, soon(t, senders))
		if !refuses {
			soon(t, ended)
			require.Equal(t, heard+1, far.heard.Load(), "the spy hears of the end")
			continue
		}
		_, err = asked.Await(background)
		var refused *activeobject.MessageError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "a message of type *actor.PoisonPill is no request: send an *actor.Invoke", refused.Problem)
		_, err = set.Call(background, o, true)
		require.NoError(t, err)
		requireOpen(t, ended)
		o.Stop()
		soon(t, ended)
		require.Equal(t, heard, far.heard.Load(), "the spy does not")
	}
}

func TestAnObjectThatRefusesToBeStoppedFromOutsideIsStoppedFromInside(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		root := s.Actors().Root
		failing := func(o *activeobject.Object[lock]) {
			require.Error(t, o.Do(background, func(*lock) error { panic("failure") }))
		}
		stops := activeobject.Supervisor(proto.NewOneForOneStrategy(0, 0, func(any) proto.Directive { return proto.StopDirective }))
		parent, err := activeobject.New(s, locks, &lock{})
		require.NoError(t, err)
		for name, c := range map[string]struct {
			option activeobject.Option
			end    func(*activeobject.Object[lock])
		}{
			"object stop":   {nil, func(o *activeobject.Object[lock]) { o.Stop() }},
			"object close":  {nil, func(o *activeobject.Object[lock]) { require.NoError(t, o.Close(background)) }},
			"stop":          {nil, func(o *activeobject.Object[lock]) { root.Stop(o.PID()) }},
			"poison":        {nil, func(o *activeobject.Object[lock]) { root.Poison(o.PID()) }},
			"stop future":   {nil, func(o *activeobject.Object[lock]) { require.NoError(t, root.StopFuture(o.PID()).Wait()) }},
			"poison future": {nil, func(o *activeobject.Object[lock]) { require.NoError(t, root.PoisonFuture(o.PID()).Wait()) }},
			"system stop":   {nil, func(o *activeobject.Object[lock]) { s.Stop(o.PID()) }},
			"system poison": {nil, func(o *activeobject.Object[lock]) { s.Poison(o.PID()) }},
			"an actor": {nil, func(o *activeobject.Object[lock]) {
				heard := make(chan *actor.PID, 1)
				spawn(t, s, func(c proto.Context) {
					switch m := c.Message().(type) {
					case *proto.Started:
						c.Watch(o.PID())
						c.Stop(o.PID())
					case *proto.Terminated:
						heard <- m.Who
					}
				})
				require.Equal(t, o.PID().Id, soon(t, heard).Id)
			}},
			"its supervisor":           {stops, failing},
			"a supervisor that panics": {activeobject.Supervisor(&broken{}), failing},
			"its parent":               {activeobject.Parent(parent), func(*activeobject.Object[lock]) { parent.Stop() }},
		} {
			t.Run(name, func(t *testing.T) {
				options := []activeobject.Option{activeobject.LocalLifecycle()}
				if c.option != nil {
					options = append(options, c.option)
				}
				o, err := activeobject.NewFrom(s, locks, func() (*lock, error) { return &lock{}, nil }, options...)
				require.NoError(t, err)
				ended, _ := s.Watch(o.PID())
				again, stop := s.Watch(o.PID())
				stop()
				c.end(o)
				soon(t, ended)
				requireOpen(t, again)
			})
		}
	})
}

// broken is a strategy that panics.
type broken struct{}

func (*broken) HandleFailure(*proto.ActorSystem, proto.Supervisor, *actor.PID, *proto.RestartStatistics, any, any) {
	panic("no idea")
}
