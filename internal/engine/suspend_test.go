package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
)

// isClosed reports whether a channel is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestASuspendedObjectIsQuietWhenTheLastBodyHasReturned(t *testing.T) {
	s := &shelf{}
	for name, config := range map[string]engine.Config{"borrowed": {}, "scheduler": {NoFastPath: true}} {
		t.Run(name, func(t *testing.T) {
			config.Workers = s
			r := newRoom(config)
			require.True(t, isClosed(r.Suspend()), "nothing runs")
			r.Resume()
			s.run()
			entered, let := make(chan struct{}), make(chan struct{})
			v := r.visit(tidy, "first")
			v.during = func() { close(entered); <-let }
			done := v.call(background)
			<-entered
			quiet := r.Suspend()
			require.Equal(t, quiet, r.Suspend(), "twice is once")
			require.False(t, r.Renew(func() { t.Error("a body runs") }))
			second := r.visit(tidy, "second")
			waits := second.call(background)
			for r.Queued(tidy) == 0 {
			}
			require.False(t, isClosed(quiet))
			close(let)
			<-done
			<-quiet
			require.False(t, isClosed(waits))
			require.True(t, r.Renew(func() { r.order = nil }))
			r.Resume()
			s.run()
			<-waits
			require.Equal(t, []string{"second"}, r.order)
			r.Resume() // changes nothing
		})
	}
}

// One that has taken the object on the fast path before it was suspended is waited
// for; one that comes later is not let in.
func TestTheFastPathIsClosedToASuspendedObject(t *testing.T) {
	r := newRoom(engine.Config{})
	w, ok := r.Take(word.Mark(tidy))
	require.True(t, ok)
	quiet := r.Suspend()
	require.False(t, isClosed(quiet))
	require.False(t, r.Word.CompareAndSwap(w|word.Mark(tidy), w), "it has to come to the scheduler")
	l := engine.Leaving{Op: tidy, Changed: true}
	require.False(t, r.Look(&l))
	r.Yield(l)
	require.True(t, isClosed(quiet))
	_, ok = r.Take(word.Mark(tidy))
	require.False(t, ok)
	r.Resume()
	for _, ok := r.Take(word.Mark(tidy)); !ok; _, ok = r.Take(word.Mark(tidy)) {
	}
	r.Yield(l)
}

func TestFailuresThatMeetAreDecidedAboutOnce(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	r := newRoom(engine.Config{})
	require.True(t, r.Fail(first))
	require.False(t, r.Fail(second), "one decision covers both")
	require.Equal(t, first, r.Failure())
	require.Equal(t, "first", r.Explain().Suspended)
	require.Equal(t, first, r.Decided())
	require.True(t, r.Fail(second), "this is another")
	r.Resume()
	require.NoError(t, r.Failure())
	require.True(t, r.Fail(first))
	<-r.Close(errors.New("stopped"))
	r.Resume()
	require.False(t, r.Fail(first), "there is nothing left to decide")
	require.False(t, r.Renew(func() { t.Error("it has ended") }))
}

func TestADrainedObjectThatIsSuspendedHasNotEnded(t *testing.T) {
	s := &shelf{}
	r := newRoom(engine.Config{Workers: s})
	r.Suspend()
	v := r.visit(tidy, "waits")
	waits := v.call(background)
	for r.Queued(tidy) == 0 {
	}
	ended := r.Drain(errors.New("drained"))
	s.run()
	require.True(t, r.Draining())
	require.False(t, isClosed(ended))
	r.Resume()
	s.run()
	<-waits
	require.NoError(t, v.err)
	for !isClosed(ended) {
		s.run()
	}
	require.False(t, r.Draining())
}

// What refuses a request is the last word on why the object has ended, and may be
// said while the request is being refused.
func TestARequestIsRefusedWhileADrainedObjectIsClosed(t *testing.T) {
	drained, closed := errors.New("drained"), errors.New("closed")
	for range 100 {
		r := newRoom(engine.Config{})
		entered, let := make(chan struct{}), make(chan struct{})
		v := r.visit(tidy, "runs")
		v.during = func() { close(entered); <-let }
		runs := v.call(background)
		<-entered
		r.Drain(drained)
		refused := r.visit(tidy, "refused")
		refused.ForCall(0)
		go func() {
			time.Sleep(50 * time.Microsecond)
			r.Close(closed)
		}()
		r.Call(background, &refused.Request, engine.Now())
		require.Contains(t, []error{drained, closed}, refused.err)
		require.Contains(t, []error{drained, closed}, r.visit(tidy, "posted").post(background))
		close(let)
		<-runs
	}
}
