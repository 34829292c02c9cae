package model

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
)

// protoSystem is the home of all protoactor actors of this program.
var protoSystem = sync.OnceValue(func() *proto.ActorSystem {
	return proto.NewActorSystem(
		proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
	)
})

// protoServer is an object behind a protoactor actor.
type protoServer struct {
	system *proto.ActorSystem
	pid    *proto.PID
}

// halt is the message that refuses whoever waits for a deferred reply.
type halt struct{}

func newProtoServer(s serve) *protoServer {
	p := &protoServer{system: protoSystem()}
	d := desk[*proto.PID]{serve: s, reply: func(to *proto.PID, a answer) { p.system.Root.Send(to, a) }}
	p.pid = p.system.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		switch m := c.Message().(type) {
		case query:
			d.take(m, c.Sender())
		case halt:
			d.stop()
		}
	}))
	return p
}

// replyTimeout is longer than any run: whoever waits is sent home by stop.
const replyTimeout = 24 * time.Hour

// ask implements asker.
func (p *protoServer) ask(q query) (int64, error) {
	reply, err := p.system.Root.RequestFuture(p.pid, q, replyTimeout).Result()
	if err != nil {
		return 0, err
	}
	a, ok := reply.(answer)
	if !ok {
		return 0, fmt.Errorf("the actor replied with a %T", reply)
	}
	return a.value, a.err
}

// stop implements host.
func (p *protoServer) stop() { p.system.Root.Send(p.pid, halt{}) }

// end implements host.
func (p *protoServer) end() error { return p.system.Root.StopFuture(p.pid).Wait() }
