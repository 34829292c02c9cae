package actor_test

import (
	"io"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/actor"
)

// parent is a member whose actor can have children.
type parent struct {
	*member
	adapter *actor.Adapter
}

func (p *parent) Admits(any) bool                 { return true }
func (p *parent) Attached(adapter *actor.Adapter) { p.adapter = adapter }
func (p *parent) Suspend() <-chan struct{}        { return nil }
func (p *parent) Resume()                         {}
func (p *parent) Renew() bool                     { return true }
func (p *parent) Undecided(any)                   {}
func (p *parent) Decided(string, actor.Failure)   {}

// undecided is a strategy that fails to decide.
type undecided struct{ how func() }

func (u *undecided) HandleFailure(*proto.ActorSystem, proto.Supervisor, *proto.PID, *proto.RestartStatistics, any, any) {
	u.how()
}

// grumpy is where a log goes that cannot be written.
type grumpy struct{ io.Writer }

func (grumpy) Write([]byte) (int, error) { panic("the disk is full") }

func TestAChildWithoutADecisionIsStopped(t *testing.T) {
	loggers := map[string]*slog.Logger{"quiet": quiet, "grumpy": slog.New(slog.NewTextHandler(grumpy{}, &slog.HandlerOptions{Level: slog.LevelError}))}
	for log, logger := range loggers {
		for name, how := range map[string]func(){"panic": func() { panic("no idea") }, "exit": runtime.Goexit} {
			t.Run(name+", "+log, func(t *testing.T) {
				s := actor.NewSystem(actor.Logger(logger))
				p := &parent{member: newMember(s)}
				require.NoError(t, s.Join(p, &p.index))
				close(p.idle)
				_, err := s.SpawnAt(actor.Place{Children: &undecided{how}}, p)
				require.NoError(t, err)
				for range 2 { // the parent goes on
					stopped := make(chan struct{})
					child, ok, err := p.adapter.Spawn(proto.PropsFromFunc(func(c proto.Context) {
						switch c.Message().(type) {
						case string:
							panic("a failure")
						case *proto.Stopped:
							close(stopped)
						}
					}), "child")
					require.NoError(t, err)
					require.True(t, ok)
					s.Tell(child, "fail")
					soon(t, stopped)
					for ok := true; ok; _, ok = s.Actors().ProcessRegistry.GetLocal(child.Id) {
						runtime.Gosched()
					}
				}
				require.NoError(t, s.Close(background))
			})
		}
	}
}
