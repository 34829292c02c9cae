package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// life is an object of a family of objects, as a test knows it.
type life struct {
	nodeAt
	inside   atomic.Int32
	over     atomic.Bool  // its watchers have heard
	ends     atomic.Int32 // how often an actor has heard of its end
	children []*life
}

// visits has the object visited. The body says that it is inside, and must not begin
// when watchers have heard of the end.
func (l *life) visits(t *testing.T) errand {
	return func(ctx context.Context, _ *node) error {
		l.inside.Add(1)
		defer l.inside.Add(-1)
		if l.over.Load() {
			t.Errorf("a body of %s runs after its watchers have heard of its end", l)
		}
		return nil
	}
}

// ended is called when a watcher has heard of the end of l.
func (l *life) ended(t *testing.T, closing *atomic.Bool) {
	inside := l.inside.Load()
	var early *life
	for _, c := range l.children {
		if !c.Explain().Stopped || c.inside.Load() != 0 {
			early = c
		}
	}
	if closing != nil && closing.Load() {
		return // a system that is closed tells its watchers at once
	}
	l.over.Store(true)
	if inside != 0 {
		t.Errorf("the end of %s is told before its last body has returned", l)
	}
	if early != nil {
		t.Errorf("the end of %s is told before that of its child %s", l, early)
	}
}

// families makes trees of objects.
func families(t *testing.T, system *actor.System, r *rand.Rand, roots int) (all []*life) {
	var grow func(parent *life, depth int)
	grow = func(parent *life, depth int) {
		options := threads[r.IntN(len(threads))]
		if parent != nil {
			options = append([]activeobject.Option{activeobject.Parent(parent.nodeAt)}, options...)
		}
		l := &life{nodeAt: newNode(t, system, fmt.Sprintf("life-%d", len(all)), options...)}
		all = append(all, l)
		if parent != nil {
			parent.children = append(parent.children, l)
		}
		for range depth {
			grow(l, depth-1)
		}
	}
	for range roots {
		grow(nil, r.IntN(3))
	}
	return all
}

// load visits the objects until it is over, by many goroutines, and counts the ends of
// requests.
func load(t *testing.T, system *actor.System, all []*life, seed uint64, over <-chan struct{}) (wait func() (asked, answered int64)) {
	var workers sync.WaitGroup
	var asked, answered atomic.Int64
	for i := range 8 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				l, other := all[r.IntN(len(all))], all[r.IntN(len(all))]
				do := l.visits(t)
				if r.IntN(3) == 0 && l != other {
					alone := do
					do = func(ctx context.Context, n *node) error {
						// From inside, and so perhaps in a circle.
						_, err := visit.Call(ctx, other.nodeAt, other.visits(t))
						var d *activeobject.DeadlockError
						if err != nil && !errors.Is(err, activeobject.ErrStopped) && !errors.As(err, &d) {
							return err
						}
						return alone(ctx, n)
					}
				}
				asked.Add(1)
				err := links[r.IntN(len(links))].wait(background, system, l.nodeAt, do)
				answered.Add(1)
				if err != nil && !errors.Is(err, activeobject.ErrStopped) && !errors.Is(err, activeobject.ErrRefused) && !errors.Is(err, actor.ErrClosed) {
					t.Errorf("a visit of %s ends with %v", l, err)
				}
			}
		})
	}
	return func() (int64, int64) {
		workers.Wait()
		return asked.Load(), answered.Load()
	}
}

// Objects are stopped in any order, by any means, in the midst of their work: who
// watches one hears of its end once, after its last body and the ends of its children.
func TestWatchersHearOnceAfterTheLastBodyUnderLoad(t *testing.T) {
	seed := seed(t)
	for nth := range rounds(2, 8) {
		r := rand.New(rand.NewPCG(seed, uint64(nth)))
		system := newSystem(t)
		all := families(t, system, r, 30)
		byPID := map[string]*life{}
		for _, l := range all {
			byPID[l.PID().Id] = l
		}
		root := system.Actors().Root
		var heard sync.WaitGroup
		heard.Add(len(all))
		asked := make(chan struct{})
		watcher := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			switch m := c.Message().(type) {
			case string:
				for _, l := range all {
					c.Watch(l.PID())
				}
				close(asked)
			case *proto.Terminated:
				l := byPID[m.Who.Id]
				l.ended(t, nil)
				if l.ends.Add(1) == 1 {
					heard.Done()
				}
			case chan struct{}:
				close(m)
			}
		}))
		root.Send(watcher, "watch")
		<-asked
		var channels sync.WaitGroup
		for _, l := range all {
			for range 2 {
				ended, _ := system.Watch(l.PID())
				channels.Go(func() { <-ended; l.ended(t, nil) })
			}
		}
		over := make(chan struct{})
		wait := load(t, system, all, seed+uint64(nth), over)
		for _, i := range r.Perm(len(all)) {
			switch l := all[i]; r.IntN(5) {
			case 0:
				l.Stop()
			case 1:
				require.NoError(t, l.Close(background))
			case 2:
				root.Stop(l.PID())
			case 3:
				root.Poison(l.PID())
			default:
				require.NoError(t, root.PoisonFuture(l.PID()).Wait())
			}
		}
		heard.Wait()
		channels.Wait()
		close(over)
		requests, answers := wait()
		require.Equal(t, requests, answers)
		last := make(chan struct{}) // what has been sent to the watcher before has come
		root.Send(watcher, last)
		<-last
		for _, l := range all {
			require.EqualValues(t, 1, l.ends.Load(), "%s", l)
		}
		for m := range system.Objects() {
			t.Errorf("%v is left", m)
		}
		if t.Failed() {
			return
		}
	}
}

// A system is shut down in the midst of its work: every request is answered, children
// end before their parents, and nobody is left.
func TestShutdownInTheMidstOfWorkAnswersEveryRequest(t *testing.T) {
	seed := seed(t)
	for nth := range rounds(3, 8) {
		r := rand.New(rand.NewPCG(seed, uint64(nth)))
		system := newSystem(t)
		all := families(t, system, r, 30)
		var closing atomic.Bool
		var channels sync.WaitGroup
		for _, l := range all {
			ended, _ := system.Watch(l.PID())
			channels.Go(func() { <-ended; l.ended(t, &closing) })
		}
		over := make(chan struct{})
		wait := load(t, system, all, seed+uint64(nth), over)
		for visits := 0; visits < 200; visits++ { // so that the others are at work
			_, err := visit.Call(background, all[r.IntN(len(all))].nodeAt, nil)
			require.NoError(t, err)
		}
		if nth%2 == 0 {
			var children sync.WaitGroup // all of them, before the system tells its watchers itself
			for _, l := range all {
				children.Go(func() { <-l.Retire() })
			}
			children.Wait()
		}
		closing.Store(true)
		require.NoError(t, system.Shutdown(background))
		channels.Wait()
		close(over)
		requests, answers := wait()
		require.Equal(t, requests, answers)
		for _, l := range all {
			require.Zero(t, l.inside.Load())
			_, err := visit.Call(background, l.nodeAt, nil)
			require.ErrorIs(t, err, activeobject.ErrStopped)
		}
		for m := range system.Objects() {
			t.Errorf("%v is left", m)
		}
		if t.Failed() {
			return
		}
	}
}

// An object that is closing, and so serves those that wait, is stopped while others
// call it: all of them are told that it has stopped.
func TestAStopOfAnObjectThatIsClosingMeetsCalls(t *testing.T) {
	system := newSystem(t)
	for i := range 50 {
		o := newNode(t, system, fmt.Sprintf("closing-%d", i), threads[i%len(threads)]...)
		entered, let := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			visit.Call(background, o, func(context.Context, *node) error { close(entered); <-let; return nil })
		})
		<-entered
		o.Retire()    // which waits for the body
		for range 8 { // each once, so that nothing later puts them in order
			all.Go(func() {
				_, err := visit.Call(background, o, nil)
				assert.ErrorIs(t, err, activeobject.ErrStopped)
			})
			all.Go(func() {
				_, err := visit.Send(background, o, nil).Await(background)
				assert.ErrorIs(t, err, activeobject.ErrStopped)
			})
		}
		runtime.Gosched()
		o.Stop()
		close(let)
		all.Wait()
	}
}
