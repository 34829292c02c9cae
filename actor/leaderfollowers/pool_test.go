package leaderfollowers_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// counter is an object.
type counter struct{ n int }

var (
	counters = activeobject.NewType[counter]("counter")
	add      = activeobject.Procedure(counters, "add", activeobject.ArgResult(func(c *counter, n int) int { c.n += n; return c.n }))
	reached  = activeobject.Entry(counters, "reached", activeobject.Plain(func(c *counter) {})).When("ten", func(c *counter) bool { return c.n >= 10 })
)

func newCounter(t testing.TB, s *actor.System, options ...activeobject.Option) *activeobject.Object[counter] {
	o, err := activeobject.New(s, counters, &counter{}, options...)
	require.NoError(t, err)
	return o
}

func TestAPoolServesTheMailboxesOfObjects(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 3)
	require.NoError(t, err)
	var objects []*activeobject.Object[counter]
	for range 50 {
		objects = append(objects, newCounter(t, s, activeobject.Dispatcher(p.Dispatcher())))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				for _, o := range objects {
					if _, err := add.Call(background, o, 1); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	for _, o := range objects {
		n, err := add.Call(background, o, 0)
		require.NoError(t, err)
		require.Equal(t, 800, n)
	}
	until(t, "there are other than three threads", func() bool { return len(p.Snapshot().Threads) == 3 })
	closePool(t, p)
	n, err := add.Call(background, objects[0], 1) // on the system's workers
	require.NoError(t, err)
	require.Equal(t, 801, n)
}

func TestAHandlerAnswersWhatItsConnectionSends(t *testing.T) {
	p := newPool(t, 2)
	here, there := connections(t)
	c, err := p.Handles().Conn(here)
	require.NoError(t, err)
	require.NoError(t, c.Activate(echo(c), leaderfollowers.Read))
	for _, text := range []string{"one", "two", "three"} {
		_, err = there.Write([]byte(text))
		require.NoError(t, err)
		answer := make([]byte, len(text))
		_, err = io.ReadFull(there, answer)
		require.NoError(t, err)
		require.Equal(t, text, string(answer))
	}
	require.NoError(t, there.Close())
	until(t, "the handle has not been closed", c.Closed)
	require.Zero(t, p.Handles().Len())
}

// echo sends back what comes.
func echo(c *leaderfollowers.Conn) leaderfollowers.EventHandler {
	buffer := make([]byte, 4096)
	return leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
		for {
			n, err := c.Read(buffer)
			switch {
			case errors.Is(err, leaderfollowers.ErrWouldBlock):
				return nil
			case err != nil:
				return c.Close()
			}
			if _, err := c.Write(buffer[:n]); err != nil {
				return err
			}
		}
	})
}

func TestTimersAndWakeUpsAreEvents(t *testing.T) {
	p := newPool(t, 1)
	var seen atomic.Int64
	came := make(chan time.Time, 8)
	handler := leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error {
		seen.Add(1)
		came <- time.Now()
		return nil
	})
	timer, err := p.Handles().Timer()
	require.NoError(t, err)
	require.NoError(t, timer.Activate(handler, 0))
	before := time.Now()
	require.NoError(t, timer.Reset(5*time.Millisecond))
	require.GreaterOrEqual(t, soon(t, came).Sub(before), 5*time.Millisecond)
	require.False(t, timer.Stop())
	require.NoError(t, timer.Reset(time.Hour))
	require.True(t, timer.Stop())

	wake, err := p.Handles().WakeUp()
	require.NoError(t, err)
	require.NoError(t, wake.Wake()) // before there is a handler: it is kept
	require.NoError(t, wake.Activate(handler, 0))
	soon(t, came)
	require.NoError(t, wake.Close())
	require.ErrorIs(t, wake.Wake(), leaderfollowers.ErrClosed)
	require.EqualValues(t, 2, seen.Load())
}

func TestAThreadThatWaitsForARequestIsReplaced(t *testing.T) {
	s := newSystem(t)
	p, err := leaderfollowers.New(s, 1)
	require.NoError(t, err)
	defer closePool(t, p)
	// Each handler waits for what the next one brings about; the objects need the pool, too.
	o := newCounter(t, s, activeobject.Dispatcher(p.Dispatcher()))
	var done sync.WaitGroup
	for i := range 10 {
		done.Add(1)
		w, err := p.Handles().WakeUp()
		require.NoError(t, err)
		require.NoError(t, w.Activate(leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
			defer done.Done()
			if i%2 == 0 {
				if err := reached.Do(ctx, o, nil); err != nil {
					t.Error(err)
				}
			}
			_, err := add.Call(ctx, o, 2)
			return err
		}), 0))
		require.NoError(t, w.Wake())
	}
	done.Wait()
	until(t, "the threads have not been taken back", func() bool {
		now := p.Snapshot()
		return len(now.Threads) == 1 && now.Busy == 0
	})
}

func TestAPoolSurvivesItsHandlers(t *testing.T) {
	failures := make(chan error, 10)
	p := newPool(t, 2, leaderfollowers.Failures(func(h *leaderfollowers.Handle, err error) bool {
		failures <- err
		return h != nil && h.String() != "wake-up 1"
	}))
	problem := errors.New("a problem")
	for i, fail := range []func() error{
		func() error { return problem },
		func() error { panic(problem) },
		func() error { runtime.Goexit(); return nil },
	} {
		w, err := p.Handles().WakeUp()
		require.NoError(t, err)
		require.NoError(t, w.Activate(leaderfollowers.HandlerFunc(func(context.Context, leaderfollowers.Event) error { return fail() }), 0))
		for range 3 {
			require.NoError(t, w.Wake())
			err = soon(t, failures)
			failed, typed := errors.AsType[*leaderfollowers.HandlerError](err)
			require.Equal(t, i > 0, typed)
			if i < 2 {
				require.ErrorIs(t, err, problem)
			} else {
				require.True(t, failed.Exited)
			}
			if i == 0 {
				until(t, "it has not been closed", w.Closed)
				break
			}
			require.False(t, w.Closed())
		}
	}
	until(t, "a thread is missing", func() bool { return len(p.Snapshot().Threads) == 2 })
}
