package engine_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// rested makes a room that has a scheduler, and at which nothing has happened since nothing could
// start.
func rested(t *testing.T) *room {
	r := newRoom(engine.Config{})
	soon(t, r.visit(tidy, "first").call(background))
	require.Zero(t, uint32(r.Word.Load()))
	return r
}

// A request that arrives at a quiescent object, and has to wait, is seen on the fast path.
func TestWhoComesToAnObjectAtRestIsSeenFromTheFastPath(t *testing.T) {
	for n := 1; n <= 3; n++ {
		r := rested(t)
		var done []<-chan struct{}
		for i := range n {
			done = append(done, r.visit(pass, "v").call(background))
			r.queued(t, pass, i+1)
			for r.Busy() {
				runtime.Gosched()
			}
			require.Equal(t, uint32(word.Parked), uint32(r.Word.Load()), "%d wait", i+1)
		}
		_, ok := r.Take(word.Mark(tidy))
		require.True(t, ok)
		r.open.Store(true)
		l := engine.Leaving{Op: tidy, Changed: true}
		require.False(t, r.Look(&l), "somebody can start")
		r.Yield(l)
		for _, d := range done {
			soon(t, d)
		}
	}
}

// An observer is told of a request that arrives at a quiescent object.
func TestAnObserverIsToldOfWhoComesToAnObjectAtRest(t *testing.T) {
	r := rested(t)
	a := r.visit(pass, "a").call(background)
	r.queued(t, pass, 1)
	seen := make(chan int, 100)
	stop := r.Observe(func(l mailbox.Load) bool { seen <- l.Waiting; return false })
	b := r.visit(pass, "b").call(background)
	for soon(t, seen) != 2 {
	}
	stop()
	r.open.Store(true)
	soon(t, r.visit(tidy, "last").call(background))
	soon(t, a)
	soon(t, b)
}

// A request that arrives at a quiescent object fails if its guard does.
func TestWhoComesToAnObjectAtRestFailsWithHisGuard(t *testing.T) {
	r := rested(t)
	r.fails = errors.New("cause")
	for range 2 {
		v := r.visit(pass, "v")
		soon(t, v.call(background))
		require.Equal(t, r.fails, v.err)
	}
}

// A request that arrives at a quiescent object, where others wait for other guards, is seen on the
// fast path, too.
func TestWhoComesToALineClosesTheFastPathForIt(t *testing.T) {
	const line = look
	config := engine.Config{Rules: &mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "tidy", Kind: mailbox.Procedure},
			{Name: "pass", Kind: mailbox.Entry, Guard: "open"},
			{Name: "line", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtArgument, HeadOfLine: true},
		},
		Conflicts: guards.NewExclusive("tidy", "pass", "line"),
	}, Tag: 1, Workers: goroutines{}, HelpLimit: 32}
	r := &room{}
	r.Init(config.Prepare(func(op int) bool { return op == pass }), r)
	soon(t, r.visit(tidy, "first").call(background))
	one := r.visit(pass, "one").call(background)
	r.queued(t, pass, 1)
	other := r.visit(line, "other").call(background)
	r.queued(t, line, 1)
	for r.Busy() {
		runtime.Gosched()
	}
	require.Equal(t, uint32(word.Parked|word.Recheck), uint32(r.Word.Load()))
	r.open.Store(true)
	soon(t, r.visit(tidy, "last").call(background))
	soon(t, one)
	soon(t, other)
}

// kept is a dispatcher that keeps its tasks for the test.
type kept chan engine.Task

func (k kept) Dispatch(task engine.Task) { k <- task }

// If an object has threads of its own, the guard of an arriving request is evaluated on these.
func TestWhoComesIsAskedAboutOnTheObjectsThread(t *testing.T) {
	tasks := make(kept, 10)
	r := newRoom(engine.Config{Dispatcher: tasks})
	first := r.visit(tidy, "first").call(background)
	soon(t, tasks).Run()
	soon(t, first)
	v := r.visit(pass, "v").call(background)
	task := soon(t, tasks)
	require.Zero(t, r.asked.Load())
	task.Run()
	require.NotZero(t, r.asked.Load())
	r.open.Store(true)
	last := r.visit(tidy, "last").call(background)
	soon(t, tasks).Run()
	soon(t, last)
	soon(t, v)
}
