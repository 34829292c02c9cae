package actor_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// member is an object as its system sees it.
type member struct {
	actor.Object // nil: what is not asked for here
	index        int
	system       *actor.System
	snap         mailbox.Snapshot
	once         sync.Once
	stopped      chan struct{} // closed by Stop
	idle         chan struct{} // closed when the last body has returned
	got          chan any
}

func newMember(s *actor.System) *member {
	return &member{system: s, stopped: make(chan struct{}), idle: make(chan struct{}), got: make(chan any, 10)}
}

func (m *member) Explain() mailbox.Snapshot                         { return m.snap }
func (m *member) Receive(message any, _ actor.Header, _ *actor.PID) { m.got <- message }
func (m *member) Halt() <-chan struct{}                             { return m.Stop() }
func (m *member) Drain() <-chan struct{}                            { return m.Stop() }
func (m *member) Retire() <-chan struct{}                           { return m.Stop() }

func (m *member) Stop() <-chan struct{} {
	m.once.Do(func() { close(m.stopped); m.system.Leave(&m.index) })
	return m.idle
}

func TestCloseStopsAllMembersAndWaitsForTheirBodies(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	var members []*member
	for range 5 {
		m := newMember(s)
		require.NoError(t, s.Join(m, &m.index))
		members = append(members, m)
	}
	s.Leave(&members[2].index)
	s.Leave(&members[2].index) // twice is fine
	closed := make(chan error, 1)
	go func() { closed <- s.Close(background) }()
	for i, m := range members {
		if i != 2 {
			soon(t, m.stopped)
		}
	}
	require.ErrorIs(t, s.Join(newMember(s), new(int)), actor.ErrClosed)
	require.Empty(t, closed)
	for _, m := range members {
		close(m.idle)
	}
	require.NoError(t, soon(t, closed))
	require.NoError(t, s.Close(background), "twice is fine")
	select {
	case <-members[2].stopped:
		t.Fatal("it had left")
	default:
	}
}

func TestCloseEndsWithItsContext(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	m := newMember(s)
	require.NoError(t, s.Join(m, &m.index))
	over, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, s.Close(over), context.Canceled)
	soon(t, m.stopped)
	close(m.idle)
	require.NoError(t, s.Close(background))
}

func TestCloseEndsWithItsContextThoughAWorkerIsBusy(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	entered, let := make(chan struct{}), make(chan struct{})
	s.Workers().Dispatch(task(func() { close(entered); <-let }))
	soon(t, entered)
	over, cancel := context.WithCancel(background)
	cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(over) }()
	select {
	case err := <-closed:
		close(let)
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(5 * time.Second):
		close(let)
		soon(t, closed)
		t.Fatal("Close waits for a worker, though its context has ended")
	}
	require.NoError(t, s.Close(background))
}

func TestExplainLeavesOutIdleObjects(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	idle, busy := newMember(s), newMember(s)
	busy.snap = mailbox.Snapshot{Object: "busy", Waiting: []mailbox.Waiting{{Operation: "op"}}}
	require.NoError(t, s.Join(idle, &idle.index))
	require.NoError(t, s.Join(busy, &busy.index))
	require.Equal(t, []mailbox.Snapshot{busy.snap}, s.Explain())
	close(idle.idle)
	close(busy.idle)
	require.NoError(t, s.Close(background))
	require.Empty(t, s.Explain())
}

func TestMembersMayComeAndGoAtTheSameTime(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var mine []*member
			for i := range 200 {
				m := newMember(s)
				close(m.idle)
				if err := s.Join(m, &m.index); err != nil {
					t.Error(err)
				}
				mine = append(mine, m)
				if i%3 == 0 {
					s.Leave(&mine[i/2].index)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Close(background))
}

func TestAnObjectBecomesAnActor(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	m := newMember(s)
	pid, err := s.Spawn("name", m)
	require.NoError(t, err)
	require.Equal(t, "name", pid.Id)
	s.Tell(pid, "hello")
	require.Equal(t, "hello", soon(t, m.got))

	_, err = s.Spawn("name", newMember(s))
	var taken *actor.NameError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "name", taken.Name)
	require.ErrorIs(t, err, proto.ErrNameExists)

	other, err := s.Spawn("", newMember(s))
	require.NoError(t, err)
	require.NotEqual(t, pid.Id, other.Id)

	dead := make(chan any, 1)
	sub := s.Actors().EventStream.Subscribe(func(e any) {
		if d, ok := e.(*proto.DeadLetterEvent); ok {
			dead <- d.Message
		}
	})
	s.DeadLetter(pid, "lost")
	require.Equal(t, "lost", soon(t, dead))
	s.Actors().EventStream.Unsubscribe(sub)

	s.Stop(pid)
	soon(t, m.stopped)
	close(m.idle)
	require.NoError(t, s.Close(background))
	require.True(t, s.Actors().IsStopped())
}

func TestAForeignActorSystemGoesOn(t *testing.T) {
	foreign := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return quiet }))
	s := actor.NewSystem(actor.Actors(foreign))
	require.Same(t, foreign, s.Actors())
	require.NoError(t, s.Close(background))
	require.False(t, foreign.IsStopped())
	foreign.Shutdown()
}

func TestWithoutAForeignActorSystemThereIsOneOfItsOwn(t *testing.T) {
	s := actor.NewSystem(actor.Actors(nil), actor.Logger(nil))
	require.NotNil(t, s.Logger())
	actors := s.Actors()
	require.NoError(t, s.Close(background))
	require.True(t, actors.IsStopped(), "it has been shut down with the system")
}

func TestAnActorSystemThatIsMadeAfterTheEndIsOver(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	require.NoError(t, s.Close(background))
	require.True(t, s.Actors().IsStopped(), "else it would never be shut down")
	s.Tell(nil, "to nobody")
	_, err := s.Spawn("", newMember(s))
	require.ErrorIs(t, err, actor.ErrClosed)
}

func TestAnActorSystemIsMadeOnce(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	var all sync.WaitGroup
	var got [8]*proto.ActorSystem
	for i := range got {
		all.Go(func() { got[i] = s.Actors() })
	}
	all.Wait()
	for _, a := range got {
		require.Same(t, got[0], a)
	}
	require.NoError(t, s.Close(background))
}

func TestASettledFutureIsReady(t *testing.T) {
	cause := errors.New("cause")
	f := actor.Settled(7, cause)
	n, err := f.Await(background)
	require.Equal(t, 7, n)
	require.Equal(t, cause, err)
	require.True(t, f.Ready())
	require.False(t, f.Withdraw())
	soon(t, f.Done())
}

func TestObjectsAreThoseThatHaveNotLeft(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	var members []actor.Object
	for range 5 {
		m := newMember(s)
		close(m.idle)
		require.NoError(t, s.Join(m, &m.index))
		members = append(members, m)
	}
	for len(members) > 0 {
		require.Equal(t, members, slices.Collect(s.Objects()))
		i := len(members) / 2
		s.Leave(&members[i].(*member).index)
		members = slices.Delete(members, i, i+1)
	}
	require.Empty(t, slices.Collect(s.Objects()))
	require.NoError(t, s.Close(background))
}
