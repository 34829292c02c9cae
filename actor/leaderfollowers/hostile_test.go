package leaderfollowers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
	"github.com/sluice-go/sluice/internal/poll"
	"github.com/sluice-go/sluice/synchronizer"
)

// over runs a test over the way in which the operating system waits, and over the portable one.
func over(t *testing.T, test func(t *testing.T)) {
	t.Run("system", test)
	t.Run("portable", func(t *testing.T) {
		poll.Portable.Store(true)
		defer poll.Portable.Store(false)
		test(t)
	})
}

// does is a handler.
func does(f func() error) leaderfollowers.EventHandler {
	return leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error { return f() })
}

func newWakeUp(t testing.TB, p *leaderfollowers.Pool, handler leaderfollowers.EventHandler) *leaderfollowers.WakeUp {
	t.Helper()
	w, err := p.Handles().WakeUp()
	require.NoError(t, err)
	require.NoError(t, w.Activate(handler, 0))
	return w
}

func TestBadArgumentsAreTypedErrors(t *testing.T) {
	s := newSystem(t)
	wrong := func(err error) {
		t.Helper()
		_, ok := errors.AsType[*activeobject.ArgumentError](err)
		require.True(t, ok, err)
	}
	_, err := leaderfollowers.New(nil, 1)
	wrong(err)
	for _, n := range []int{0, -1} {
		_, err = leaderfollowers.New(s, n)
		wrong(err)
	}
	_, err = leaderfollowers.New(s, 1, leaderfollowers.Failures(nil))
	wrong(err)
	p, err := leaderfollowers.New(s, 1, nil, leaderfollowers.FIFO())
	require.NoError(t, err)
	wrong(p.Resize(0))
	require.Equal(t, 1, p.Size())
	_, err = p.Handles().Conn(nil)
	wrong(err)
	_, err = p.Handles().Listen(nil)
	wrong(err)
	_, err = p.Handles().File(nil)
	wrong(err)
	_, err = p.Handles().OpenFile(nil)
	wrong(err)
	w, err := p.Handles().WakeUp()
	require.NoError(t, err)
	wrong(w.Activate(nil, 0))
	wrong(w.Await(leaderfollowers.Read))

	pipe, _ := net.Pipe()
	_, err = p.Handles().Conn(pipe) // it has no descriptor
	bad, ok := errors.AsType[*leaderfollowers.HandleError](err)
	require.True(t, ok, err)
	require.Equal(t, "connection pipe", bad.What)
	_, err = synchronizer.New(s, counters, &counter{}, leaderfollowers.Threads(nil))
	option, ok := errors.AsType[*activeobject.OptionError](err)
	require.True(t, ok, err)
	require.Equal(t, "Threads", option.Option)

	closePool(t, p)
	require.ErrorIs(t, p.Resize(2), leaderfollowers.ErrClosed)
	_, err = p.Handles().Timer()
	require.ErrorIs(t, err, leaderfollowers.ErrClosed)
	require.ErrorIs(t, w.Wake(), leaderfollowers.ErrClosed)
	require.ErrorIs(t, w.Activate(does(nil), 0), leaderfollowers.ErrClosed)
	require.Zero(t, p.Handles().Len())
}

func TestAHandleIsRegisteredOnce(t *testing.T) {
	over(t, func(t *testing.T) {
		p := newPool(t, 1)
		here, there := connections(t)
		c, err := p.Handles().Conn(here)
		require.NoError(t, err)
		_, err = p.Handles().Conn(here)
		require.ErrorIs(t, err, leaderfollowers.ErrRegistered)
		require.Equal(t, 1, p.Handles().Len())
		require.NoError(t, c.Activate(echo(c), leaderfollowers.Read)) // the first goes on
		_, err = there.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(there, make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, c.Await(leaderfollowers.Read), leaderfollowers.ErrClosed)
		_, err = p.Handles().Conn(here)
		require.Error(t, err) // it has been closed
		require.Zero(t, p.Handles().Len())
	})
}

func TestAHandlerMayRemoveItsHandleAndOthers(t *testing.T) {
	p := newPool(t, 2)
	var runs atomic.Int32
	var self, other *leaderfollowers.WakeUp
	closed := make(chan error, 1)
	other, err := p.Handles().WakeUp()
	require.NoError(t, err)
	self, err = p.Handles().WakeUp()
	require.NoError(t, err)
	require.NoError(t, self.Activate(does(func() error {
		runs.Add(1)
		closed <- errors.Join(self.Close(), other.Close(), self.Close())
		return nil
	}), 0))
	require.NoError(t, self.Wake())
	require.NoError(t, soon(t, closed))
	require.ErrorIs(t, self.Wake(), leaderfollowers.ErrClosed)
	until(t, "handles are left", func() bool { return p.Handles().Len() == 0 })
	require.EqualValues(t, 1, runs.Load())
}

// A handler that replaces itself, and what it waits for.
func TestAHandlerMayBecomeAnother(t *testing.T) {
	over(t, func(t *testing.T) {
		p := newPool(t, 2)
		here, there := connections(t)
		c, err := p.Handles().Conn(here)
		require.NoError(t, err)
		steps := make(chan string, 3)
		last := does(func() error { steps <- "read"; return c.Await(0) })
		first := leaderfollowers.HandlerFunc(func(_ context.Context, e leaderfollowers.Event) error {
			steps <- e.Ready.String()
			return e.Handle.Activate(last, leaderfollowers.Read)
		})
		require.NoError(t, c.Activate(first, leaderfollowers.Write))
		require.Equal(t, "write", soon(t, steps))
		_, err = there.Write([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, "read", soon(t, steps))
		_, err = there.Write([]byte("x")) // it waits for nothing now
		require.NoError(t, err)
		require.NoError(t, c.Await(leaderfollowers.Read))
		require.Equal(t, "read", soon(t, steps))
	})
}

func TestARegularFileHasAWorker(t *testing.T) {
	p := newPool(t, 1)
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	_, err = p.Handles().File(f)
	_, regular := errors.AsType[*leaderfollowers.NotPollableError](err)
	require.True(t, regular, err)
	bad, ok := errors.AsType[*leaderfollowers.HandleError](err)
	require.True(t, ok)
	require.Contains(t, bad.What, "file")

	h, err := p.Handles().OpenFile(f)
	require.NoError(t, err)
	ended := make(chan error, 1)
	require.NoError(t, h.Activate(does(func() error { ended <- h.Result(); return nil }), 0))
	proceed := make(chan bool)
	require.NoError(t, h.Begin(func(f *os.File) error {
		<-proceed
		_, err := f.WriteString("text")
		return err
	}))
	require.ErrorIs(t, h.Begin(func(*os.File) error { return nil }), leaderfollowers.ErrBusy)
	close(proceed)
	require.NoError(t, soon(t, ended))
	for _, operation := range []func(*os.File) error{
		func(*os.File) error { panic("a problem") },
		func(*os.File) error { runtime.Goexit(); return nil },
	} {
		require.NoError(t, h.Begin(operation))
		_, failed := errors.AsType[*leaderfollowers.HandlerError](soon(t, ended))
		require.True(t, failed)
	}
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.NoError(t, h.Close())
	require.ErrorIs(t, h.Begin(func(*os.File) error { return nil }), leaderfollowers.ErrClosed)
}

func TestAPipeIsAHandle(t *testing.T) {
	over(t, func(t *testing.T) {
		p := newPool(t, 1)
		r, w, err := os.Pipe()
		require.NoError(t, err)
		in, err := p.Handles().File(r)
		require.NoError(t, err)
		out, err := p.Handles().File(w)
		require.NoError(t, err)
		text := make(chan string, 1)
		require.NoError(t, in.Activate(does(func() error {
			b := make([]byte, 8)
			n, err := in.Read(b)
			text <- string(b[:n])
			return err
		}), leaderfollowers.Read))
		_, err = out.Write([]byte("text"))
		require.NoError(t, err)
		require.Equal(t, "text", soon(t, text))
		require.NoError(t, out.Close())
		soon(t, text) // the end, which closes the handle
		until(t, "the handle is not closed", in.Closed)
	})
}

// A handler that closes its pool cannot wait for itself. Requests that are under way are finished.
func TestAPoolThatIsClosedFinishesWhatItHas(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 2)
	require.NoError(t, err)
	o := newCounter(t, s, activeobject.Dispatcher(p.Dispatcher()))
	entered, proceed, inside := make(chan bool), make(chan bool), make(chan error, 1)
	w := newWakeUp(t, p, leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
		inside <- p.Close(ctx)
		entered <- true
		<-proceed
		_, err := add.Call(ctx, o, 1)
		inside <- err
		return nil
	}))
	require.NoError(t, w.Wake())
	require.ErrorIs(t, soon(t, inside), leaderfollowers.ErrInside)
	soon(t, entered)
	ended, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, p.Close(ended), context.Canceled)
	until(t, "it is not closed", w.Closed)
	close(proceed)
	require.ErrorIs(t, soon(t, inside), context.Canceled) // the handlers' context has ended with the Close
	closePool(t, p)
	n, err := add.Call(background, o, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A handler on the only thread of a pool that ends waits for an object on that pool.
func TestAPoolThatEndsServesWhatItsHandlersWaitFor(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 1)
	require.NoError(t, err)
	o := newCounter(t, s, activeobject.Dispatcher(p.Dispatcher()))
	entered, proceed, result := make(chan bool), make(chan bool), make(chan error, 1)
	w := newWakeUp(t, p, leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
		entered <- true
		<-proceed
		_, err := add.Call(ctx, o, 1)
		result <- err
		return nil
	}))
	require.NoError(t, w.Wake())
	soon(t, entered)
	ended := p.Stop()
	close(proceed)
	require.NoError(t, soon(t, result))
	soon(t, ended)
}

// The threads end with their system, whatever they do.
func TestAPoolEndsWithItsSystem(t *testing.T) {
	over(t, func(t *testing.T) {
		for _, close := range []func(*actor.System, context.Context) error{(*actor.System).Close, (*actor.System).Shutdown} {
			s := actor.NewSystem(quiet)
			p, err := leaderfollowers.New(s, 3)
			require.NoError(t, err)
			here, _ := connections(t)
			c, err := p.Handles().Conn(here)
			require.NoError(t, err)
			require.NoError(t, c.Activate(echo(c), leaderfollowers.Read))
			o := newCounter(t, s, activeobject.Dispatcher(p.Dispatcher()))
			_, err = add.Call(background, o, 1)
			require.NoError(t, err)
			require.NoError(t, close(s, background))
			soon(t, p.Stop())
			require.True(t, c.Closed())
		}
	})
}

func TestAPoolIsResizedWhileItRuns(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 1)
	require.NoError(t, err)
	defer closePool(t, p)
	var at, most atomic.Int32
	proceed := make(chan bool)
	var all []*leaderfollowers.WakeUp
	for range 20 {
		w := newWakeUp(t, p, does(func() error {
			n := at.Add(1)
			defer at.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-proceed
			return nil
		}))
		require.NoError(t, w.Wake())
		all = append(all, w)
	}
	for _, n := range []int{1, 5, 3, 9, 2} {
		require.NoError(t, p.Resize(n))
		until(t, "not enough events are processed", func() bool { return int(at.Load()) >= n })
		for int(at.Load()) > n { // those that are too many finish first
			select {
			case proceed <- true:
			default:
				runtime.Gosched()
			}
		}
		if n > 1 {
			require.LessOrEqual(t, int(most.Load()), 9)
		}
		for _, w := range all {
			_ = w.Wake()
		}
	}
	close(proceed)
	until(t, "there are too many threads", func() bool {
		now := p.Snapshot()
		return len(now.Threads) == 2 && now.Busy == 0 && now.Events == 0
	})
	require.NoError(t, p.Resize(6))
	until(t, "there are too few threads", func() bool { return len(p.Snapshot().Threads) == 6 })
	require.NoError(t, p.Resize(1))
	until(t, "followers have not ended", func() bool { return len(p.Snapshot().Threads) == 1 })
}

// A Synchronizer whose requests run on the pool's threads: those that are compatible at once, as many
// as there are threads.
func TestAPoolServesTheRequestsOfASynchronizer(t *testing.T) {
	for name, options := range map[string][]activeobject.Option{"on start": nil, "on arrival": {synchronizer.Monitor()}} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			p, err := leaderfollowers.New(s, 3)
			require.NoError(t, err)
			defer closePool(t, p)
			var at, most atomic.Int32
			types := activeobject.NewType[counter]("reader")
			read := activeobject.FunctionCtx(types, "read", func(c *counter, _ context.Context, _ activeobject.None) (int, error) {
				n := at.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				for end := time.Now().Add(patience); most.Load() < 3 && time.Now().Before(end); {
					runtime.Gosched()
				}
				at.Add(-1)
				return c.n, nil
			})
			write := activeobject.Procedure(types, "write", activeobject.Plain(func(c *counter) { c.n++ }))
			o, err := synchronizer.New(s, types, &counter{}, append(options, leaderfollowers.Threads(p))...)
			require.NoError(t, err)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for i := range 50 { // the first without writes, which would keep readers apart
						if i%10 == 9 && most.Load() == 3 {
							if err := write.Do(background, o, nil); err != nil {
								t.Error(err)
							}
						} else if _, err := read.Call(background, o, nil); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 3, most.Load())
			n, err := read.Call(background, o, nil)
			require.NoError(t, err)
			require.LessOrEqual(t, n, 40)
			until(t, "threads are not given back", func() bool {
				now := p.Snapshot()
				return now.Busy == 0 && len(now.Threads) == 3
			})
		})
	}
}

// Objects of both kinds that call each other in a ring, on one thread: each body waits for the next.
func TestObjectsOnOneThreadCallEachOther(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 1)
	require.NoError(t, err)
	defer closePool(t, p)
	types := activeobject.NewType[chainLink]("link")
	var call *activeobject.Operation[chainLink, activeobject.None, int]
	call = activeobject.ProcedureCtx(types, "call", func(c *chainLink, ctx context.Context, _ activeobject.None) (int, error) {
		if c.next == nil {
			return 1, nil
		}
		n, err := call.Call(ctx, c.next, nil)
		return n + 1, err
	})
	var last *activeobject.Object[chainLink]
	for i := range 10 {
		if i%2 == 0 {
			last, err = synchronizer.New(s, types, &chainLink{last}, leaderfollowers.Threads(p))
		} else {
			last, err = activeobject.New(s, types, &chainLink{last}, activeobject.Dispatcher(p.Dispatcher()))
		}
		require.NoError(t, err)
	}
	for range 20 {
		n, err := call.Call(background, last, nil)
		require.NoError(t, err)
		require.Equal(t, 10, n)
	}
	until(t, "threads are left", func() bool { return len(p.Snapshot().Threads) == 1 })
	require.Zero(t, p.Snapshot().Busy)
}

type chainLink struct {
	next *activeobject.Object[chainLink]
}

func TestAPoolServesPlainActors(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 2)
	require.NoError(t, err)
	defer closePool(t, p)
	root := s.Actors().Root
	var sum atomic.Int64
	all := make(chan bool, 1)
	const actors, messages = 20, 500
	for range actors {
		pid := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if n, ok := c.Message().(int64); ok && sum.Add(n) == actors*messages {
				all <- true
			}
		}, proto.WithDispatcher(p.ForActors(0))))
		go func() {
			for range messages {
				root.Send(pid, int64(1))
			}
		}()
	}
	soon(t, all)
}

// Timers of the handle set, and threads that wait in memory, in a bubble: a wait is durable there, and
// an hour takes no time.
func TestAPoolWithoutDescriptorsWaitsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actor.NewSystem(quiet)
		p, err := leaderfollowers.New(s, 3)
		require.NoError(t, err)
		var rings []time.Duration
		start := time.Now()
		timer, err := p.Handles().Timer()
		require.NoError(t, err)
		require.NoError(t, timer.Activate(does(func() error {
			rings = append(rings, time.Since(start))
			if len(rings) < 3 {
				return timer.Reset(time.Hour)
			}
			return nil
		}), 0))
		require.NoError(t, timer.Reset(time.Hour))
		synctest.Wait()
		roles := map[leaderfollowers.Role]int{}
		for _, thread := range p.Snapshot().Threads {
			roles[thread.Role]++
		}
		require.Equal(t, map[leaderfollowers.Role]int{leaderfollowers.Leader: 1, leaderfollowers.Follower: 2}, roles)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, rings)
		require.NoError(t, p.Close(background))
		require.NoError(t, s.Close(background))
	})
}

// LIFO promotes the follower that has come last, FIFO that which has waited longest.
func TestTheOrderOfPromotionIsAChoice(t *testing.T) {
	for name, order := range map[string]leaderfollowers.Option{"LIFO": leaderfollowers.LIFO(), "FIFO": leaderfollowers.FIFO()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := actor.NewSystem(quiet)
				p, err := leaderfollowers.New(s, 4, order)
				require.NoError(t, err)
				w := newWakeUp(t, p, does(func() error {
					time.Sleep(time.Second) // meanwhile the promoted thread begins to lead
					return nil
				}))
				leaders := map[int]bool{}
				for range 20 {
					synctest.Wait()
					for _, thread := range p.Snapshot().Threads {
						if thread.Role == leaderfollowers.Leader {
							leaders[thread.Number] = true
						}
					}
					require.NoError(t, w.Wake())
					time.Sleep(2 * time.Second)
				}
				if name == "LIFO" {
					require.Len(t, leaders, 2) // two take turns, and the others sleep
				} else {
					require.Len(t, leaders, 4)
				}
				require.NoError(t, p.Close(background))
				require.NoError(t, s.Close(background))
			})
		})
	}
}

// Many handles, requests, resizes and failures at once: each event is processed, by one thread at a
// time, and in the end all threads are there. (That two never lead is checked as they begin to.)
func TestNothingIsLostUnderLoad(t *testing.T) {
	over(t, func(t *testing.T) {
		s := newSystem(t)
		p, err := leaderfollowers.New(s, 2, leaderfollowers.Failures(func(*leaderfollowers.Handle, error) bool { return true }))
		require.NoError(t, err)
		defer closePool(t, p)
		o := newCounter(t, s, activeobject.Dispatcher(p.Dispatcher()))
		const handles, events = 30, 300
		var seen, woken [handles]atomic.Int64
		var busy [handles]atomic.Bool
		var wakes [handles]*leaderfollowers.WakeUp
		for i := range handles {
			wakes[i] = newWakeUp(t, p, leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
				if !busy[i].CompareAndSwap(false, true) {
					t.Error("two threads have one handle")
				}
				seen[i].Store(woken[i].Load()) // an event is of all that has happened before
				if i%3 == 0 {
					if _, err := add.Call(ctx, o, 1); err != nil {
						t.Error(err)
					}
				}
				busy[i].Store(false)
				switch i % 5 {
				case 3:
					panic("a problem")
				case 4:
					runtime.Goexit()
				}
				return nil
			}))
		}
		here, there := connections(t)
		c, err := p.Handles().Conn(here)
		require.NoError(t, err)
		require.NoError(t, c.Activate(echo(c), leaderfollowers.Read))
		var all sync.WaitGroup
		for i := range handles {
			all.Go(func() {
				for range events {
					woken[i].Add(1)
					if err := wakes[i].Wake(); err != nil {
						t.Error(err)
					}
					runtime.Gosched()
				}
			})
		}
		all.Go(func() {
			for i := range 100 {
				if err := p.Resize(1 + i%4); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			b := make([]byte, 3)
			for range 200 {
				if _, err := there.Write([]byte("abc")); err != nil {
					t.Error(err)
				}
				if _, err := io.ReadFull(there, b); err != nil {
					t.Error(err)
				}
			}
		})
		all.Wait()
		require.NoError(t, p.Resize(3))
		until(t, "an event is lost", func() bool {
			for i := range handles {
				if seen[i].Load() != events {
					return false
				}
			}
			return true
		})
		until(t, "there are other than three threads", func() bool {
			now := p.Snapshot()
			return now.Busy == 0 && now.Events == 0 && len(now.Threads) == 3
		})
		until(t, "none leads", func() bool { return strings.Contains(p.Snapshot().String(), ": leader") })
	})
}
