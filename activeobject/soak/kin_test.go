package soak_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// restart has the object restarted, as its supervisor would for the sake of others.
func restart(system *actor.System, o nodeAt) {
	process, _ := system.Actors().ProcessRegistry.Get(o.PID())
	process.SendSystemMessage(o.PID(), &proto.Restart{})
}

// suspended waits until the object is suspended for that reason.
func suspended(o nodeAt, reason string) {
	for o.Explain().Suspended != reason {
		runtime.Gosched()
	}
}

const (
	noted    = "on request"
	children = "its restart waits for the end of its children"
)

// holding has a body of the object wait until it is let.
func holding(o nodeAt) (let func(), ended activeobject.Future[none]) {
	in, out := make(chan none), make(chan none)
	ended = visit.Send(background, o, func(context.Context, *node) error { close(in); <-out; return nil })
	<-in
	return func() { close(out) }, ended
}

// An object that is restarted waits for its children to end, and so for what these
// wait for. If a body of one of them waits for the object, it is told so at once: in
// whatever way it waits, whoever came first, whoever's thread it has, whether it runs in
// a child or in a child's child, or in an object that the child has called.
func TestABodyThatWaitsForAnObjectThatWaitsForItsEndIsInACircle(t *testing.T) {
	for nth, own := range threads {
		system := newSystem(t)
		others := threads[(nth+1)%len(threads)]
		for _, link := range links {
			for _, first := range []string{"the restart", "the call"} {
				for depth := range 3 {
					for _, away := range []bool{false, true} {
						what := fmt.Sprintf("%s, %s first, depth %d, by way of another object: %v", link.name, first, depth, away)
						top := newNode(t, system, "top", own...)
						bottom := top
						for i := range depth + 1 {
							bottom = newNode(t, system, fmt.Sprintf("below-%d", i), append(others, activeobject.Parent(bottom))...)
						}
						other := newNode(t, system, "other", others...)
						let, held := func() {}, activeobject.Future[none]{}
						if first == "the call" {
							let, held = holding(top)
						}
						asks := func(ctx context.Context, _ *node) error {
							if first == "the restart" {
								restart(system, top)
								suspended(top, children)
							}
							return link.wait(ctx, system, top, nil)
						}
						body := asks
						if away {
							body = func(ctx context.Context, _ *node) error {
								_, err := visit.Call(ctx, other, asks)
								return err
							}
						}
						told := visit.Send(background, bottom, body)
						if first == "the call" {
							for visit.Waiting(top) == 0 && len(top.Explain().Waiting) == 0 {
								runtime.Gosched()
							}
							restart(system, top)
							suspended(top, noted)
							let()
						}
						_, err := told.Await(background)
						circle := bottom.Name() + ".visit waits for top.visit, the restart of top waits for " + bottom.Name() + ".visit"
						if away {
							circle = bottom.Name() + ".visit waits for other.visit, other.visit waits for top.visit, the restart of top waits for " + bottom.Name() + ".visit"
						}
						var d *activeobject.DeadlockError
						require.ErrorAs(t, err, &d, what)
						require.EqualError(t, d, "sluice: deadlock: "+circle, what)
						_, err = held.Await(background)
						require.NoError(t, err)
						_, err = visit.Call(background, top, nil)
						require.NoError(t, err, "it has been restarted")
						_, err = visit.Call(background, bottom, nil)
						require.ErrorIs(t, err, activeobject.ErrStopped)
						gone(system, top, other)
					}
				}
			}
		}
	}
}

// gone stops the objects and waits for the ends of their actors, so that their names are
// free.
func gone(system *actor.System, objects ...nodeAt) {
	for _, o := range objects {
		ended, _ := system.Watch(o.PID())
		o.Stop()
		<-ended
	}
}

// Each of those who wait for the object is told, however many children there are, and
// nobody else: not who waits for it from elsewhere, nor a child that has another way out.
func TestOnlyTheBodiesInTheCirclesOfARestartAreTold(t *testing.T) {
	for nth, own := range threads {
		system := newSystem(t)
		others := threads[(nth+1)%len(threads)]
		top, stranger, free := newNode(t, system, "top", own...), newNode(t, system, "stranger", others...), newNode(t, system, "free", others...)
		let, _ := holding(top)
		var told, chosen []activeobject.Future[none]
		for i := range 8 {
			link := links[i]
			child := newNode(t, system, fmt.Sprintf("child-%d", i), append(others, activeobject.Parent(top))...)
			told = append(told, visit.Send(background, child, func(ctx context.Context, _ *node) error { return link.wait(ctx, system, top, nil) }))
			began(child)
		}
		// Who waits for the first of two goes on when the other one can.
		letFree, _ := holding(free)
		for i, wait := range []errand{
			func(ctx context.Context, _ *node) error {
				_, err := activeobject.Select(ctx, visit.Case(top, nil), visit.Case(free, nil))
				return err
			},
			func(ctx context.Context, _ *node) error {
				_, err := actor.First(visit.Send(ctx, top, nil), visit.Send(ctx, free, nil)).Await(ctx)
				return err
			},
		} {
			child := newNode(t, system, fmt.Sprintf("chooser-%d", i), append(others, activeobject.Parent(top))...)
			chosen = append(chosen, visit.Send(background, child, wait))
			began(child)
		}
		outside := visit.Send(background, stranger, func(ctx context.Context, _ *node) error {
			_, err := visit.Call(ctx, top, nil)
			return err
		})
		began(stranger)
		restart(system, top)
		suspended(top, noted)
		let()
		for _, f := range told {
			_, err := f.Await(background)
			require.ErrorAs(t, err, new(*activeobject.DeadlockError))
		}
		suspended(top, children)
		require.False(t, outside.Ready())
		for _, f := range chosen {
			require.False(t, f.Ready())
		}
		letFree()
		for _, f := range append(chosen, outside) {
			_, err := f.Await(background)
			require.NoError(t, err)
		}
	}
}

// A circle may lead through the restarts of several objects.
func TestACircleMayLeadThroughSeveralRestarts(t *testing.T) {
	system := newSystem(t)
	a, b := newNode(t, system, "a"), newNode(t, system, "b")
	ofA, ofB := newNode(t, system, "of-a", activeobject.Parent(a)), newNode(t, system, "of-b", activeobject.Parent(b))
	var both sync.WaitGroup
	both.Add(2)
	crossed := func(own, other nodeAt) errand {
		return func(ctx context.Context, _ *node) error {
			restart(system, own)
			suspended(own, children)
			both.Done()
			both.Wait()
			_, err := visit.Call(ctx, other, nil)
			return err
		}
	}
	one, two := visit.Send(background, ofA, crossed(a, b)), visit.Send(background, ofB, crossed(b, a))
	_, first := one.Await(background)
	_, second := two.Await(background)
	// Whoever came second is told; then the other one's object goes on.
	told := errors.Join(first, second)
	require.True(t, first == nil || second == nil, "%v", told)
	var d *activeobject.DeadlockError
	require.ErrorAs(t, told, &d)
	require.Len(t, d.Circle, 4)
	for _, o := range []nodeAt{a, b} {
		_, err := visit.Call(background, o, nil)
		require.NoError(t, err)
	}
}

// deciding is a strategy that does something first.
type deciding struct {
	first func(s proto.Supervisor) (escalates bool)
}

// HandleFailure implements actor.Strategy.
func (d *deciding) HandleFailure(_ *proto.ActorSystem, s proto.Supervisor, child *proto.PID, _ *proto.RestartStatistics, reason, message any) {
	if d.first(s) {
		s.EscalateFailure(reason, message)
		return
	}
	s.ResumeChildren(child)
}

// What is asked in the midst of something that an actor does may make children of that
// very actor: the strategies for it and for its children, also if these escalate, and
// what makes a child.
func TestWhoIsAskedByAnActorMayMakeItsChildren(t *testing.T) {
	for nth, options := range threads {
		system := newSystem(t)
		var top, child nodeAt
		born := 0
		more := func() {
			born++
			name := fmt.Sprintf("more-%d-%d", nth, born)
			o := newNode(t, system, name, activeobject.Parent(top))
			_, err := visit.Call(background, o, nil)
			require.NoError(t, err)
			_, err = top.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "plain-"+name)
			require.NoError(t, err)
		}
		above := &deciding{func(s proto.Supervisor) bool { more(); return false }}
		below := &deciding{func(s proto.Supervisor) bool {
			before := len(s.Children())
			more()
			require.Len(t, s.Children(), before+2)
			return born > 2
		}}
		top = newNode(t, system, "top", append(options, activeobject.Supervisor(above), activeobject.ChildSupervisor(below))...)
		child = newNode(t, system, "child", append(options, activeobject.Parent(top))...)
		fails := func(o nodeAt) {
			_, err := visit.Call(background, o, func(context.Context, *node) error { panic("no") })
			require.ErrorAs(t, err, new(*activeobject.PanicError))
			_, err = visit.Call(background, o, nil)
			require.NoError(t, err, "it has been decided about")
		}
		fails(top)
		require.Equal(t, 1, born)
		fails(child)
		require.Equal(t, 2, born)
		fails(child) // which is escalated
		require.Equal(t, 4, born)
		// A producer that makes a sibling first, and a default strategy that tells others.
		props := proto.PropsFromProducer(func() proto.Actor { more(); return proto.ReceiveFunc(func(proto.Context) {}) })
		_, err := top.SpawnNamed(props, "made last")
		require.NoError(t, err)
		require.Equal(t, 5, born)
		// All of them are its children.
		last, _ := system.Watch(proto.NewPID(top.PID().Address, top.PID().Id+"/made last"))
		gone(system, top)
		<-last
	}
}

// nosy is a process that does something when it hears of an end.
type nosy struct{ heard func() }

func (n nosy) SendUserMessage(*actor.PID, any) {}
func (n nosy) Stop(*actor.PID)                 {}
func (n nosy) SendSystemMessage(_ *actor.PID, m any) {
	if _, ended := m.(*proto.Terminated); ended {
		n.heard()
	}
}

// Who hears of the end of an object, and at once wants to make a child of it, is
// refused.
func TestWhoHearsOfTheEndOfAnObjectCannotMakeItsChildren(t *testing.T) {
	for _, options := range threads {
		system := newSystem(t)
		top := newNode(t, system, "top", options...)
		told := make(chan error, 1)
		watcher, ok := system.Actors().ProcessRegistry.Add(nosy{func() {
			_, err := top.SpawnNamed(proto.PropsFromFunc(func(proto.Context) {}), "late")
			told <- err
		}}, "nosy")
		require.True(t, ok)
		process, _ := system.Actors().ProcessRegistry.Get(top.PID())
		process.SendSystemMessage(top.PID(), &proto.Watch{Watcher: watcher})
		top.Stop()
		require.ErrorIs(t, <-told, activeobject.ErrStopped)
	}
}

// While a child is being made its parent may be restarted, or end: then there is no
// child.
func TestAChildThatIsBeingMadeWhileItsParentEndsIsNone(t *testing.T) {
	for _, options := range threads {
		for _, ends := range []bool{false, true} {
			system := newSystem(t)
			top := newNode(t, system, "top", options...)
			props := proto.PropsFromProducer(func() proto.Actor {
				if ends {
					ended, _ := system.Watch(top.PID())
					top.Stop()
					<-ended
				} else {
					_, err := write.Call(background, top, "the old state")
					require.NoError(t, err)
					restart(system, top)
					for log := []string{""}; len(log) != 0; {
						log, err = read.Call(background, top, nil)
						require.NoError(t, err)
					}
				}
				return proto.ReceiveFunc(func(proto.Context) {})
			})
			_, err := top.SpawnNamed(props, "late")
			var refused *actor.SpawnError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, ends, errors.Is(err, activeobject.ErrStopped))
			require.Equal(t, !ends, errors.Is(err, actor.ErrRestarting))
			ended, _ := system.Watch(proto.NewPID(top.PID().Address, top.PID().Id+"/late"))
			<-ended
		}
	}
}

func TestAClosedSystemCallsNoFactory(t *testing.T) {
	for _, closes := range []func(*actor.System, context.Context) error{(*actor.System).Close, (*actor.System).Shutdown} {
		system := newSystem(t)
		require.NoError(t, closes(system, background))
		_, err := activeobject.NewFrom(system, nodes, func() (*node, error) { t.Error("it is called"); return &node{}, nil })
		require.ErrorIs(t, err, actor.ErrClosed)
	}
}

// Calls of parents, and of anybody else, in the midst of restarts, and of the end now and
// then: every call of a body ends without a context that does, and every restart is
// carried out.
func TestBodiesAndRestartsMeet(t *testing.T) {
	system := newSystem(t)
	for nth := range rounds(40, 16) {
		options := threads[nth%len(threads)]
		top := newNode(t, system, fmt.Sprintf("top-%d", nth), options...)
		side := newNode(t, system, fmt.Sprintf("side-%d", nth), options...)
		var all sync.WaitGroup
		begin := make(chan none)
		for i := range 4 {
			link := links[(nth+i)%len(links)]
			child := newNode(t, system, "child"+fmt.Sprint(i), append(options, activeobject.Parent(top))...)
			below := newNode(t, system, "below", append(options, activeobject.Parent(child))...)
			for _, o := range []nodeAt{child, below} {
				all.Go(func() {
					<-begin
					for range 3 {
						_, err := visit.Call(background, o, func(ctx context.Context, _ *node) error {
							_, err := visit.Call(ctx, side, func(ctx context.Context, _ *node) error { return link.wait(ctx, system, top, nil) })
							return err
						})
						if err != nil && !errors.Is(err, activeobject.ErrStopped) && !errors.Is(err, activeobject.ErrRefused) && !errors.As(err, new(*activeobject.DeadlockError)) {
							t.Error(err)
						}
					}
				})
			}
		}
		ends := nth%5 == 4
		all.Go(func() {
			<-begin
			restart(system, top)
			if ends {
				top.Stop()
			}
		})
		close(begin)
		all.Wait()
		_, err := visit.Call(background, top, nil)
		require.Equal(t, ends, errors.Is(err, activeobject.ErrStopped), "%v", err)
		gone(system, top, side)
	}
}
