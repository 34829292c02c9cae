package actor_test

import (
	"sync"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

// requireOpen requires that an actor that is watched has not been reported to have
// ended.
func requireOpen(t testing.TB, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
		t.Fatal("the actor is there")
	default:
	}
}

func TestAWatchTellsTheEndOfAnActor(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		root := s.Actors().Root
		for name, stop := range map[string]func(*actor.PID){"stop": root.Stop, "poison": root.Poison} {
			t.Run(name, func(t *testing.T) {
				pid := root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
				one, _ := s.Watch(pid)
				other, unwatch := s.Watch(pid)
				requireOpen(t, one)
				unwatch()
				unwatch()
				stop(pid)
				soon(t, one)
				requireOpen(t, other)
				late, unwatch := s.Watch(pid)
				soon(t, late)
				unwatch()
				requireNobody(t, s)
			})
		}
	})
}

func TestWhatFollowsTheEndOfAnActorIsCalledOnceOrStopped(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		root := s.Actors().Root
		pid := root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
		called := make(chan struct{}) // twice would be a panic
		stop := s.AfterEnd(pid, func() { close(called) })
		stopped := s.AfterEnd(pid, func() { t.Error("it was stopped") })
		require.True(t, stopped())
		require.False(t, stopped())
		requireOpen(t, called)
		root.Stop(pid)
		soon(t, called)
		require.False(t, stop())
		late := make(chan struct{})
		s.AfterEnd(pid, func() { close(late) })
		soon(t, late)
		nobody := make(chan struct{})
		require.False(t, s.AfterEnd(nil, func() { close(nobody) })())
		soon(t, nobody)
		requireNobody(t, s)
	})
}

func TestAWatchWithoutAnActorEndsAtOnce(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		for _, pid := range []*actor.PID{nil, s.Actors().NewLocalPID("nobody")} {
			ended, unwatch := s.Watch(pid)
			soon(t, ended)
			unwatch()
		}
		requireNobody(t, s)
	})
}

func TestAnObjectThatIsWatchedEndsAfterItsLastBody(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		m := newMember(s)
		pid, err := s.Spawn("", m)
		require.NoError(t, err)
		ended, _ := s.Watch(pid)
		s.Stop(pid)
		soon(t, m.stopped)
		requireOpen(t, ended)
		close(m.idle)
		soon(t, ended)
	})
}

func TestAWatchEndsWithItsSystem(t *testing.T) {
	foreign := newForeign(t)
	s, other := actor.NewSystem(actor.Actors(foreign)), newSystem(t, actor.Actors(foreign))
	pid := foreign.Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
	ended, unwatch := s.Watch(pid)
	longer, _ := other.Watch(pid)
	require.NoError(t, s.Close(background))
	soon(t, ended)
	unwatch()
	requireOpen(t, longer)
	late, _ := s.Watch(pid)
	soon(t, late)
	require.NoError(t, foreign.Root.StopFuture(pid).Wait())
	soon(t, longer)
}

func TestWatchesMayComeAndGoWhileTheirActorEnds(t *testing.T) {
	s := newSystem(t)
	for range 50 {
		pid := s.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				ended, unwatch := s.Watch(pid)
				if i%2 == 0 {
					unwatch()
				} else {
					soon(t, ended)
				}
			})
		}
		all.Go(func() { s.Stop(pid) })
		all.Wait()
	}
	requireNobody(t, s)
}

func TestAForgedMessageEndsNoWatch(t *testing.T) {
	s := newSystem(t)
	pid := s.Actors().Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}))
	dead := deadLetters(t, s)
	ended, _ := s.Watch(pid)
	watcher := actor.OnlyWaiter(s)
	s.Tell(watcher, "done?")
	require.Equal(t, "done?", soon(t, dead))
	s.Stop(watcher)
	requireOpen(t, ended)
	require.NoError(t, s.Actors().Root.StopFuture(pid).Wait())
	soon(t, ended)
}

// A system closes while others begin to watch: whichever comes first, nothing is left
// of the watch, at the actor either.
func TestAWatchMayBeginWhileItsSystemCloses(t *testing.T) {
	foreign := newForeign(t)
	held := newSystem(t, actor.Actors(foreign)) // the resolver is there
	for range 200 {
		watchers := make(chan int, 1)
		pid := foreign.Root.Spawn(proto.PropsFromFunc(func(proto.Context) {}, proto.WithMailbox(func() proto.Mailbox {
			return &counting{Mailbox: proto.Unbounded()(), left: watchers}
		})))
		s := actor.NewSystem(actor.Actors(foreign), actor.Logger(quiet))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				ended, _ := s.Watch(pid)
				soon(t, ended)
			})
		}
		all.Go(func() {
			if err := s.Close(background); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		require.NoError(t, foreign.Root.StopFuture(pid).Wait())
		require.Zero(t, soon(t, watchers), "the actor keeps a watcher")
	}
	requireNobody(t, held)
}

// counting is a mailbox that counts the watches of ours.
type counting struct {
	proto.Mailbox
	mu       sync.Mutex
	watchers map[string]bool
	left     chan<- int
}

func (c *counting) PostSystemMessage(m any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *proto.Watch:
		if c.watchers == nil {
			c.watchers = map[string]bool{}
		}
		if m.Watcher.Address == "$sluice" {
			c.watchers[m.Watcher.Id] = true
		}
	case *proto.Unwatch:
		delete(c.watchers, m.Watcher.Id)
	case *proto.Stop:
		c.left <- len(c.watchers)
	}
	c.Mailbox.PostSystemMessage(m)
}

func TestTheSenderOfARequestIsNoActorToBeWatched(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		pid, senders := asks(t, s)
		f := s.Request(background, pid, "?")
		sender := soon(t, senders)
		ended, _ := s.Watch(sender)
		soon(t, ended)
		require.False(t, f.Ready())
		s.Tell(sender, "reply")
		require.True(t, f.Ready())
		ended, _ = s.Watch(sender)
		soon(t, ended)
		requireNobody(t, s)
	})
}
