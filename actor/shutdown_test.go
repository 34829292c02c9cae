package actor_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// retiree is a member that says when it is asked to end, and how.
type retiree struct {
	*member
	retired chan struct{}
}

func newRetiree(t *testing.T, s *actor.System) *retiree {
	r := &retiree{newMember(s), make(chan struct{})}
	require.NoError(t, s.Join(r, &r.index))
	return r
}

func (r *retiree) Retire() <-chan struct{} { close(r.retired); return r.idle }
func (r *retiree) Stop() <-chan struct{}   { r.once.Do(func() { close(r.stopped) }); return r.idle }

// end is what happens when the last body has returned.
func (r *retiree) end() { r.system.Leave(&r.index); close(r.idle) }

func TestShutdownRetiresOneAfterAnotherInReverseOrder(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	var members []*retiree
	for range 20 {
		members = append(members, newRetiree(t, s))
	}
	// Those that leave do not change the order of the others.
	for _, i := range []int{19, 3, 0, 7, 8, 9, 10, 11, 12, 13, 14, 2} {
		s.Leave(&members[i].index)
		members[i] = nil
		if i == 10 {
			members = append(members, newRetiree(t, s))
		}
	}
	members = slices.DeleteFunc(members, func(m *retiree) bool { return m == nil })
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(background) }()
	for i, m := range slices.Backward(members) {
		soon(t, m.retired)
		for _, earlier := range members[:i] {
			select {
			case <-earlier.retired:
				t.Fatal("two at a time")
			default:
			}
		}
		require.ErrorIs(t, s.Join(newMember(s), new(int)), actor.ErrClosed)
		m.end()
	}
	require.NoError(t, soon(t, down))
	require.NoError(t, s.Shutdown(background), "twice is fine")
}

func TestShutdownStopsWhatIsLeftWhenItsContextEnds(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	first, second := newRetiree(t, s), newRetiree(t, s)
	ctx, cancel := context.WithCancel(background)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(ctx) }()
	soon(t, second.retired)
	cancel()
	require.Equal(t, context.Canceled, soon(t, down))
	soon(t, first.stopped)
	soon(t, second.stopped)
	select {
	case <-first.retired:
		t.Fatal("it was stopped")
	default:
	}
	first.end()
	second.end()
	require.NoError(t, s.Close(background))
}

func TestCloseDoesNotWaitForShutdown(t *testing.T) {
	s := actor.NewSystem(actor.Logger(quiet))
	one := newRetiree(t, s)
	down, closed := make(chan error, 1), make(chan error, 1)
	go func() { down <- s.Shutdown(background) }()
	soon(t, one.retired)
	go func() { closed <- s.Close(background) }()
	soon(t, one.stopped)
	one.end()
	require.NoError(t, soon(t, closed))
	require.NoError(t, soon(t, down))
}

func TestAnOutboxKeepsTheOrderAndSurvivesItsTasks(t *testing.T) {
	var logged syncBuffer
	s := actor.NewSystem(actor.Logger(slog.New(slog.NewTextHandler(&logged, nil))))
	var b actor.Outbox
	var mu sync.Mutex
	var got []int
	all := make(chan struct{})
	const n = 1000
	for i := range n {
		b.Post(s, task(func() {
			mu.Lock()
			got = append(got, i)
			mu.Unlock()
			if i == n-1 {
				close(all)
			}
			switch i % 10 {
			case 3:
				panic("bang")
			case 4:
				runtime.Goexit()
			}
		}))
	}
	soon(t, all)
	require.NoError(t, s.Close(background))
	require.Len(t, got, n)
	require.True(t, slices.IsSorted(got))
	require.Equal(t, n/10, strings.Count(logged.String(), "who was sent a reply panicked: bang"))
}

// syncBuffer is a buffer for many.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What protoactor's Shutdown does to a system that is not ours: nothing, but that
// IsStopped can be asked.
func TestASystemGoesOnWhenItsForeignActorSystemShutsDown(t *testing.T) {
	foreign := newForeignUnclosed()
	s := actor.NewSystem(actor.Logger(quiet), actor.Actors(foreign))
	pid, senders := asks(t, s)
	m := newMember(s)
	require.NoError(t, s.Join(m, &m.index))
	f := s.Request(background, pid, "?")
	foreign.Shutdown()
	require.True(t, foreign.IsStopped())
	s.Tell(soon(t, senders), "reply")
	v, err := f.Await(background)
	require.Equal(t, "reply", v)
	require.NoError(t, err)
	f = s.Request(background, pid, "?")
	close(m.idle)
	require.NoError(t, s.Close(background))
	soon(t, m.stopped)
	_, err = f.Await(background)
	require.Equal(t, actor.ErrClosed, err)
}

func TestABodyCannotWaitForTheEndOfItsOwnSystem(t *testing.T) {
	type caller struct{}
	callers := activeobject.NewType[caller]("caller")
	do := activeobject.ProcedureCtx(callers, "do", func(_ *caller, ctx context.Context, f func(context.Context) error) (activeobject.None, error) {
		return nil, f(ctx)
	})
	s, other := actor.NewSystem(actor.Logger(quiet)), newSystem(t)
	ours := activeobject.Must(activeobject.New(s, callers, &caller{}, activeobject.Name("ours")))
	theirs := activeobject.Must(activeobject.New(other, callers, &caller{}))
	for _, end := range []func(context.Context) error{s.Close, s.Shutdown} {
		_, err := do.Call(background, ours, end)
		require.EqualError(t, err, "sluice: deadlock: ours.do waits for the end of its system")
		require.ErrorAs(t, err, new(*mailbox.DeadlockError))
		_, err = do.Call(background, ours, func(ctx context.Context) error { // by way of another
			_, err := do.Call(ctx, theirs, end)
			return err
		})
		require.ErrorAs(t, err, new(*mailbox.DeadlockError))
	}
	_, err := do.Call(background, theirs, s.Close) // nothing had been done until now
	require.NoError(t, err)
	_, err = do.Call(background, ours, s.Close)
	require.ErrorIs(t, err, activeobject.ErrStopped)
}

// What has ended has ended, whatever has become of the context.
func TestCloseOfASystemThatIsOverSucceeds(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	for range 100 {
		s := actor.NewSystem(actor.Logger(quiet))
		m := newMember(s)
		close(m.idle)
		require.NoError(t, s.Join(m, &m.index))
		s.Actors()
		require.NoError(t, s.Close(ended))
		require.True(t, s.Actors().IsStopped())
	}
}
