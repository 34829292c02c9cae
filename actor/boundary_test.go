package actor_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

// near returns addresses that resemble the given one of a request: slots and numbers
// in its neighborhood.
func near(t *testing.T, sender *actor.PID) (pids []*actor.PID) {
	t.Helper()
	index, number, ok := strings.Cut(sender.Id, ".")
	require.True(t, ok)
	i, err := strconv.ParseUint(index, 32, 32)
	require.NoError(t, err)
	n, err := strconv.ParseUint(number, 32, 64)
	require.NoError(t, err)
	for place := range i + 4 {
		for d := range uint64(101) {
			pids = append(pids, proto.NewPID(sender.Address, fmt.Sprint(strconv.FormatUint(place, 32), ".", strconv.FormatUint(n+d-50, 32))))
		}
	}
	return pids
}

// A peer can send to any address. That of a reply is known to the actor that has been
// asked; from it nothing follows for the requests of others.
func TestTheAddressOfAnotherRequestCannotBeGuessed(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		asked, senders := asks(t, s)
		victim, others := asks(t, s)
		for range 5 {
			mine := s.Request(background, asked, "?")
			known := soon(t, senders)
			theirs := s.Request(background, victim, "?")
			ended, stop := s.Watch(victim)
			for _, pid := range near(t, known) {
				if pid.Id == known.Id {
					continue
				}
				s.Tell(pid, "forged")
				s.Tell(pid, &proto.DeadLetterResponse{})
				_, ours := s.Asker(pid)
				require.False(t, ours)
				process, _ := s.Actors().ProcessRegistry.Get(pid)
				process.SendSystemMessage(pid, &proto.Terminated{Who: victim})
			}
			require.False(t, mine.Ready())
			require.False(t, theirs.Ready(), "a forged address reached the request")
			requireOpen(t, ended)
			stop()
			s.Tell(known, "mine")
			s.Tell(soon(t, others), "theirs")
			v, err := theirs.Await(background)
			require.Equal(t, "theirs", v)
			require.NoError(t, err)
		}
		requireNobody(t, s)
	})
}

func TestTheEndOfAnotherActorEndsNoWatch(t *testing.T) {
	s := newSystem(t)
	pid := spawn(t, s, func(proto.Context) {})
	ended, stop := s.Watch(pid)
	watcher := actor.OnlyWaiter(s)
	process, _ := s.Actors().ProcessRegistry.Get(watcher)
	for _, message := range []any{&proto.Terminated{}, &proto.Terminated{Who: proto.NewPID(pid.Address, "another")}, (*proto.Terminated)(nil)} {
		process.SendSystemMessage(watcher, message)
		requireOpen(t, ended)
	}
	process.SendSystemMessage(watcher, &proto.Terminated{Who: proto.NewPID("elsewhere:1", pid.Id)})
	soon(t, ended) // the address of a system changes when its remote starts
	stop()
	requireNobody(t, s)
}
