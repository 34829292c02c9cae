package activeobject_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/synchronizer"
)

// clerk is an object whose bodies do what they are told, and may wait meanwhile.
type clerk struct{ letters int }

var (
	clerks  = activeobject.NewType[clerk]("clerk")
	clerkDo = activeobject.ProcedureCtx(clerks, "do", func(_ *clerk, ctx context.Context, f func(context.Context) error) (activeobject.None, error) {
		return nil, f(ctx)
	})
	clerkRead = activeobject.Entry(clerks, "read", activeobject.Plain(func(c *clerk) { c.letters-- })).When("has letters", func(c *clerk) bool { return c.letters > 0 })
	clerkPost = activeobject.Procedure(clerks, "post", activeobject.Plain(func(c *clerk) { c.letters++ }))
)

// fixedPool is a dispatcher of a fixed number of threads.
type fixedPool struct {
	turns chan engine.Task
	ran   atomic.Int32 // turns
}

func newFixedPool(t *testing.T, n int) *fixedPool {
	p := &fixedPool{turns: make(chan engine.Task, 8)}
	for range n {
		go func() {
			for turn := range p.turns {
				turn.Run()
				p.ran.Add(1)
			}
		}()
	}
	t.Cleanup(func() { close(p.turns) })
	return p
}

func (p *fixedPool) Dispatch(turn engine.Task) { p.turns <- turn }

// ownThreads are a fixedPool whose threads no other goroutine may replace.
type ownThreads struct{ *fixedPool }

func (ownThreads) Lends() bool { return false }

// onFixedPools runs the test for objects on n threads of a user's dispatcher, and of a Pool.
func onFixedPools(t *testing.T, n int, test func(t *testing.T, create func() *activeobject.Object[clerk])) {
	for name, option := range map[string]func(*testing.T, *actor.System) activeobject.Option{
		"dispatcher": func(t *testing.T, _ *actor.System) activeobject.Option {
			return activeobject.Dispatcher(newFixedPool(t, n))
		},
		"pool": func(t *testing.T, s *actor.System) activeobject.Option {
			pool, err := synchronizer.NewPool(s, n)
			require.NoError(t, err)
			return activeobject.Dispatcher(pool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				system := actor.NewSystem()
				on := option(t, system)
				test(t, func() *activeobject.Object[clerk] {
					return activeobject.Must(activeobject.New(system, clerks, &clerk{}, on))
				})
				require.NoError(t, system.Close(context.Background()))
			})
		})
	}
}

func have(ctx context.Context, o *activeobject.Object[clerk], f func(context.Context) error) error {
	_, err := clerkDo.Call(ctx, o, f)
	return err
}

func TestBodiesOnAFixedPoolMayCallEachOther(t *testing.T) {
	onFixedPools(t, 2, func(t *testing.T, create func() *activeobject.Object[clerk]) {
		reached := atomic.Int32{}
		last := create()
		call := func(context.Context) error { reached.Add(1); return nil }
		for range 30 { // each by the one before, and the last object by all, one after another
			next, inner := create(), call
			call = func(ctx context.Context) error {
				if err := have(ctx, last, func(context.Context) error { return nil }); err != nil {
					return err
				}
				return have(ctx, next, inner)
			}
		}
		for range 3 {
			require.NoError(t, have(t.Context(), create(), call))
		}
		require.EqualValues(t, 3, reached.Load())
	})
}

func TestABodyOnAFixedPoolMayWaitForAGuardThatAnotherOneOpens(t *testing.T) {
	onFixedPools(t, 1, func(t *testing.T, create func() *activeobject.Object[clerk]) {
		reader, writer, letters := create(), create(), create()
		read := clerkDo.Send(t.Context(), reader, func(ctx context.Context) error {
			_, err := clerkRead.Call(ctx, letters, nil)
			return err
		})
		synctest.Wait()
		require.NoError(t, have(t.Context(), writer, func(ctx context.Context) error {
			_, err := clerkPost.Send(ctx, letters, nil).Await(ctx)
			return err
		}))
		_, err := read.Await(t.Context())
		require.NoError(t, err)
		_, err = clerkPost.Call(t.Context(), letters, nil)
		require.NoError(t, err)
	})
}

func TestNoMoreBodiesRunOnAFixedPoolThanThereAreThreadsButThoseThatWait(t *testing.T) {
	onFixedPools(t, 2, func(t *testing.T, create func() *activeobject.Object[clerk]) {
		letters, running := create(), atomic.Int32{}
		wait := func(ctx context.Context) error {
			_, err := clerkRead.Call(ctx, letters, nil)
			return err
		}
		leave := func(ctx context.Context) error { // a goroutine behind that waits
			go wait(ctx)
			time.Sleep(time.Nanosecond) // until it does
			return nil
		}
		send := func(n int, f func(context.Context) error) (all []activeobject.Future[activeobject.None]) {
			for range n {
				all = append(all, clerkDo.Send(t.Context(), create(), f))
			}
			synctest.Wait()
			return all
		}
		over := func(all []activeobject.Future[activeobject.None]) {
			for _, f := range all {
				_, err := f.Await(t.Context())
				require.NoError(t, err)
			}
		}
		work := func() { // as much at once as can be
			release := make(chan struct{})
			all := send(5, func(context.Context) error {
				running.Add(1)
				<-release
				running.Add(-1)
				return nil
			})
			for range 3 {
				require.EqualValues(t, 2, running.Load())
				release <- struct{}{}
				synctest.Wait()
			}
			close(release)
			over(all)
		}
		waiting := send(3, wait)
		over(send(1, leave))
		require.Equal(t, 4, clerkRead.Waiting(letters))
		work()
		for range 4 {
			_, err := clerkPost.Call(t.Context(), letters, nil)
			require.NoError(t, err)
		}
		over(waiting)
		work() // all threads have come back, and no others
	})
}

func TestNoOtherGoroutineRunsBodiesOfThreadsThatLendNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		own := ownThreads{newFixedPool(t, 1)}
		create := func(options ...activeobject.Option) *activeobject.Object[clerk] {
			return activeobject.Must(activeobject.New(system, clerks, &clerk{}, options...))
		}
		letters := create()
		first := clerkDo.Send(t.Context(), create(activeobject.Dispatcher(own)), func(ctx context.Context) error {
			_, err := clerkRead.Call(ctx, letters, nil)
			return err
		})
		synctest.Wait()
		second := clerkPost.Send(t.Context(), create(activeobject.Dispatcher(own)), nil)
		synctest.Wait()
		require.False(t, second.Ready(), "the only thread is taken")
		_, err := clerkPost.Call(t.Context(), letters, nil)
		require.NoError(t, err)
		_, err = first.Await(t.Context())
		require.NoError(t, err)
		_, err = second.Await(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 2, own.ran.Load())
		require.NoError(t, system.Close(context.Background()))
	})
}
