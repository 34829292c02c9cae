package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// node is an object whose bodies do what they are told, and so call other nodes, or
// come back.
type node struct{ log []string }

// errand is what a body does.
type errand func(ctx context.Context, n *node) error

type none = activeobject.None

// nodeAt is where an errand goes.
type nodeAt = *activeobject.Object[node]

var (
	nodes = activeobject.NewType[node]("node")
	visit = activeobject.ProcedureCtx(nodes, "visit", func(n *node, ctx context.Context, do errand) (none, error) {
		if do == nil {
			return nil, nil
		}
		return nil, do(ctx, n)
	})
	write = activeobject.Procedure(nodes, "write", activeobject.Arg(func(n *node, line string) { n.log = append(n.log, line) }))
	read  = activeobject.Function(nodes, "read", activeobject.Result(func(n *node) []string { return slices.Clone(n.log) }))
)

// link is a way in which a body waits for the visit of another object.
type link struct {
	name string
	// stays says that the visit is made some time, though its wait may be given up.
	stays bool
	wait  func(ctx context.Context, system *actor.System, to nodeAt, do errand) error
}

var links = []link{
	{"call", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		_, err := visit.Call(ctx, to, do)
		return err
	}},
	{"try", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		_, err := visit.Try(ctx, to, do)
		return err
	}},
	{"send", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		f := visit.Send(ctx, to, do)
		_, err := f.Await(ctx)
		f.Withdraw()
		return err
	}},
	{"begin", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		t := visit.Begin(ctx, to, do)
		_, err := t.Await(ctx)
		t.Withdraw()
		return err
	}},
	{"select", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		c := visit.Case(to, do)
		if _, err := activeobject.Select(ctx, c); err != nil {
			return err
		}
		_, err := c.Result()
		return err
	}},
	{"ask", true, func(ctx context.Context, system *actor.System, to nodeAt, do errand) error {
		_, err := actor.Ask[none](ctx, system, to.PID(), "visit", do)
		return err
	}},
	{"all", false, func(ctx context.Context, _ *actor.System, to nodeAt, do errand) error {
		f := actor.All(visit.Send(ctx, to, do))
		_, err := f.Await(ctx)
		f.Withdraw()
		return err
	}},
	{"then", true, func(ctx context.Context, system *actor.System, to nodeAt, do errand) error {
		f := system.Request(ctx, to.PID(), &actor.Invoke{Operation: "visit", Argument: do}).OnDone(func(any, error) {})
		_, err := f.Await(ctx)
		return err
	}},
}

// newSystem returns a system that is closed when the test ends, and watched over.
func newSystem(t *testing.T) *actor.System {
	system := actor.NewSystem(actor.Logger(quiet))
	// The system may be that of the first round of many.
	calledOff := hangsAfter(*patience+*length, t, system, func() string { return "" })
	t.Cleanup(func() {
		require.NoError(t, system.Close(background))
		calledOff()
	})
	return system
}

// threads are the ways in which an object has its bodies run.
var threads = [][]activeobject.Option{nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()}}

func newNode(t *testing.T, system *actor.System, name string, options ...activeobject.Option) nodeAt {
	o, err := activeobject.NewFrom(system, nodes, func() (*node, error) { return &node{}, nil }, append(options, activeobject.Name(name))...)
	require.NoError(t, err)
	return o
}

// place returns the object of a body or request in a circle.
func placeOf(name string) string { object, _, _ := strings.Cut(name, "."); return object }

// A circle of any length is an error that names all its links, and nothing else,
// however each of them waits for the next.
func TestACircleIsNamedHoweverItsLinksWait(t *testing.T) {
	system := newSystem(t)
	r := rand.New(rand.NewPCG(seed(t), 1))
	names := 0
	for length := 1; length <= 4; length++ {
		for _, first := range links {
			for _, last := range links {
				ways := []link{first}
				for len(ways) < length {
					ways = append(ways, links[r.IntN(len(links))])
				}
				ways[length-1] = last
				var circle []nodeAt
				var want []string
				for range length {
					names++
					circle = append(circle, newNode(t, system, fmt.Sprintf("n%d", names), threads[r.IntN(len(threads))]...))
				}
				for i, o := range circle {
					want = append(want, o.Name()+".visit waits for "+circle[(i+1)%length].Name()+".visit")
				}
				// Whoever begins to wait last closes the circle; the others go on.
				told := make(chan error, length)
				var step func(i int) errand
				step = func(i int) errand {
					return func(ctx context.Context, _ *node) error {
						next := errand(nil)
						if i < length-1 {
							next = step(i + 1)
						}
						if err := ways[i].wait(ctx, system, circle[(i+1)%length], next); err != nil {
							told <- err
						}
						return nil
					}
				}
				_, err := visit.Call(background, circle[0], step(0))
				require.NoError(t, err)
				var d *activeobject.DeadlockError
				require.ErrorAs(t, <-told, &d, "%s … %s over %d objects", first.name, last.name, length)
				var got []string
				for _, l := range d.Circle {
					got = append(got, l.Body+" waits for "+l.For)
				}
				require.ElementsMatch(t, want, got)
				for i, l := range d.Circle {
					require.Equal(t, l.For, d.Circle[(i+1)%length].Body, "it is told in order")
				}
				for _, o := range circle {
					_, err := visit.Call(background, o, nil)
					require.NoError(t, err, "the object goes on")
					<-o.Stop()
				}
				require.Empty(t, told, "one of them is told")
			}
		}
	}
}

// began waits until the body of the object waits for what is in another one.
func began(o nodeAt) {
	for r := o.Explain().Running; len(r) == 0 || len(r[0].Waits) == 0; r = o.Explain().Running {
		runtime.Gosched()
	}
}

// Where bodies wait for the first of several, the circle is told of all of them, and
// how each goes on, though the ways meet and one of them is not needed here.
func TestACircleThroughTheFirstOfSeveralIsToldInFull(t *testing.T) {
	for _, options := range threads {
		system := newSystem(t)
		home, v, w, y := newNode(t, system, "home", options...), newNode(t, system, "v", options...), newNode(t, system, "w", options...), newNode(t, system, "y", options...)
		send := func(ctx context.Context, to nodeAt) actor.Future[none] { return visit.Send(ctx, to, nil) }
		all := func(futures ...actor.Future[none]) actor.Future[none] {
			return actor.Then(actor.All(futures...), func(_ []none, err error) (none, error) { return nil, err })
		}
		var told error
		var others []actor.Future[none]
		_, err := visit.Call(background, home, func(inside context.Context, _ *node) error {
			busy := func(o nodeAt, goal func(ctx context.Context) actor.Future[none]) {
				others = append(others, visit.Send(background, o, func(ctx context.Context, _ *node) error {
					_, err := goal(ctx).Await(ctx)
					return err
				}))
			}
			in := make(chan none)
			busy(w, func(ctx context.Context) actor.Future[none] {
				<-in
				return actor.First(all(send(ctx, y), send(ctx, v)), send(ctx, home))
			})
			busy(y, func(ctx context.Context) actor.Future[none] { return send(ctx, w) })
			busy(v, func(ctx context.Context) actor.Future[none] { return send(ctx, home) })
			began(y)
			began(v)
			close(in)
			began(w)
			_, told = actor.First(send(inside, w), send(inside, y)).Await(inside)
			return nil
		})
		require.NoError(t, err)
		var d *activeobject.DeadlockError
		require.ErrorAs(t, told, &d)
		var got []string
		for _, l := range d.Circle {
			got = append(got, placeOf(l.Body)+placeOf(l.For))
		}
		slices.Sort(got)
		require.Equal(t, []string{"homew", "homey", "vhome", "whome", "wv", "yw"}, got)
		for _, f := range others {
			_, err := f.Await(background)
			require.NoError(t, err)
		}
	}
}

// Who comes back by a message for which no body waits is served after the body.
func TestAMessageThatComesBackIsServedAfterTheBody(t *testing.T) {
	for _, options := range threads {
		system := newSystem(t)
		root := system.Actors().Root
		home := newNode(t, system, "home", options...)
		relay := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if m, ok := c.Message().(*actor.Invoke); ok {
				c.RequestWithCustomSender(home.PID(), m, c.Sender())
			}
		}))
		other := newNode(t, system, "other", options...)
		var futures []activeobject.Future[any]
		_, err := visit.Call(background, home, func(ctx context.Context, n *node) error {
			require.NoError(t, write.Tell(ctx, home, "told"))
			root.Send(home.PID(), &actor.Invoke{Operation: "write", Argument: "sent"})
			futures = append(futures,
				system.Request(ctx, home.PID(), &actor.Invoke{Operation: "write", Argument: "asked"}),
				system.Request(ctx, relay, &actor.Invoke{Operation: "write", Argument: "passed on"}))
			// And by way of another object, whose body does not wait either.
			_, err := visit.Call(ctx, other, func(ctx context.Context, _ *node) error {
				return write.Tell(ctx, home, "told by the other")
			})
			n.log = append(n.log, "body")
			return err
		})
		require.NoError(t, err)
		for _, f := range futures {
			_, err := f.Await(background)
			require.NoError(t, err)
		}
		log, err := read.Call(background, home, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"body", "told", "sent", "asked"}, log[:4], "by arrival")
		require.ElementsMatch(t, []string{"passed on", "told by the other"}, log[4:])
	}
}

// A body makes a child of its object and calls it, and the child calls back: that is a
// circle, and by message it is none. The child ends with its parent.
func TestChildrenThatCallBackAreNamed(t *testing.T) {
	for i, options := range threads {
		system := newSystem(t)
		parent := newNode(t, system, fmt.Sprintf("parent%d", i), options...)
		var child nodeAt
		var back error
		_, err := visit.Call(background, parent, func(ctx context.Context, _ *node) error {
			child = newNode(t, system, "child", activeobject.Parent(parent))
			_, err := visit.Call(ctx, child, func(ctx context.Context, _ *node) error {
				_, back = write.Call(ctx, parent, "called")
				return write.Tell(ctx, parent, "told")
			})
			return err
		})
		require.NoError(t, err)
		require.EqualError(t, back, fmt.Sprintf("sluice: deadlock: %[1]s.visit waits for %[2]s.visit, %[2]s.visit waits for %[1]s.write", parent, child))
		log, err := read.Call(background, parent, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"told"}, log)
		ended, _ := system.Watch(child.PID())
		parent.Stop()
		<-ended
		_, err = write.Call(background, child, "too late")
		require.ErrorIs(t, err, activeobject.ErrStopped)
	}
}

// web is what bodies wait for right now, as they say themselves.
type web struct {
	mu    sync.Mutex
	waits map[[2]string]int
}

func (w *web) add(from string, n int, to ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range to {
		w.waits[[2]string{from, one}] += n
	}
}

// refute returns what is wrong with a circle that is said to be there. Whoever was told
// of it is inside of one of its objects, and all others wait for him, so that every
// link of it is there still.
func (w *web) refute(d *activeobject.DeadlockError) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	bodies := map[string]bool{}
	for _, l := range d.Circle {
		bodies[placeOf(l.Body)] = true
	}
	for _, l := range d.Circle {
		if from, to := placeOf(l.Body), placeOf(l.For); w.waits[[2]string{from, to}] == 0 {
			return fmt.Sprintf("no body of %s waits for %s", from, to)
		} else if !bodies[to] {
			return fmt.Sprintf("nobody in the circle holds up %s", l.For)
		}
	}
	if len(d.Circle) == 0 {
		return "it is empty"
	}
	return ""
}

// Random bodies call random objects in random ways. Every call ends: with its result,
// or with a circle that is there.
func TestRandomCallsEndOrCloseACircleThatIsThere(t *testing.T) {
	seed := seed(t)
	var calls, circles atomic.Int64
	longest := 0
	for nth := range rounds(3, 4) {
		system := newSystem(t)
		web := &web{waits: map[[2]string]int{}}
		objects := make([]nodeAt, 3+nth%8)
		for i := range objects {
			objects[i] = newNode(t, system, fmt.Sprintf("o%d", i), threads[(i+nth)%len(threads)]...)
		}
		var mu sync.Mutex     // of longest
		var rest atomic.Int64 // visits that are made some time
		var down atomic.Bool
		stays := func(do errand) errand {
			rest.Add(1)
			return func(ctx context.Context, n *node) error {
				defer rest.Add(-1)
				return do(ctx, n)
			}
		}
		var wander func(r *rand.Rand, at nodeAt, depth int) errand
		wander = func(r *rand.Rand, at nodeAt, depth int) errand {
			s := r.Uint64()
			return func(ctx context.Context, _ *node) error {
				r := rand.New(rand.NewPCG(s, uint64(depth)))
				for range r.IntN(3) {
					if depth == 0 {
						return nil
					}
					to := objects[r.IntN(len(objects))]
					if r.IntN(8) == 0 {
						if err := visit.Tell(ctx, to, stays(wander(r, to, depth-1))); err != nil && !down.Load() {
							t.Error(err)
						}
						continue
					}
					calls.Add(1)
					goals := []string{to.Name()}
					var wait func() error
					switch n := r.IntN(len(links) + 2); {
					case n < len(links):
						do := wander(r, to, depth-1)
						if links[n].stays {
							do = stays(do)
						}
						wait = func() error { return links[n].wait(ctx, system, to, do) }
					default: // one of two, or both
						also := objects[r.IntN(len(objects))]
						goals = append(goals, also.Name())
						one, two := wander(r, to, depth-1), wander(r, also, depth-1)
						wait = func() error {
							f, g := visit.Send(ctx, to, one), visit.Send(ctx, also, two)
							defer f.Withdraw()
							defer g.Withdraw()
							if n == len(links) {
								_, err := actor.First(f, g).Await(ctx)
								return err
							}
							_, err := actor.All(f, g).Await(ctx)
							return err
						}
					}
					web.add(at.Name(), 1, goals...)
					err := wait()
					var d *activeobject.DeadlockError
					if d, _ = err.(*activeobject.DeadlockError); d != nil {
						if wrong := web.refute(d); wrong != "" && !down.Load() {
							t.Errorf("from %s to %v: %v: %s", at, goals, d, wrong)
						}
						circles.Add(1)
						mu.Lock()
						longest = max(longest, len(d.Circle))
						mu.Unlock()
					} else if err != nil && !errors.Is(err, activeobject.ErrRefused) && !down.Load() {
						t.Errorf("from %s to %v: %v", at, goals, err)
					}
					web.add(at.Name(), -1, goals...)
				}
				return nil
			}
		}
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed+uint64(nth), uint64(i)))
				for range 60 {
					to := objects[r.IntN(len(objects))]
					// Outside of any object there is no circle to close.
					err := links[r.IntN(len(links))].wait(background, system, to, wander(r, to, 4))
					if err != nil && !errors.Is(err, activeobject.ErrRefused) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for rest.Load() != 0 {
			runtime.Gosched()
		}
		down.Store(true) // for what was sent, and for which nobody waits any more
		require.NoError(t, system.Shutdown(background))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls by bodies, %d circles, of %d links at most", calls.Load(), circles.Load(), longest)
	if circles.Load() == 0 {
		t.Error("there was no circle")
	}
}
