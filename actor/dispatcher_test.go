package actor_test

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

// task is a function to run on a dispatcher.
type task func()

func (t task) Run() { t() }

func goroutine() string {
	var b [64]byte
	return string(bytes.Fields(b[:runtime.Stack(b[:], false)])[1])
}

func TestWarmRunsEveryTaskAndNeverMakesOneWait(t *testing.T) {
	var w actor.Warm
	const n = 300 // more than are kept idle
	var all sync.WaitGroup
	all.Add(n)
	let := make(chan struct{})
	for range n {
		w.Dispatch(task(func() { all.Done(); <-let }))
	}
	all.Wait() // all of them run at once
	close(let)
	soon(t, w.Close())
}

func TestWarmKeepsItsGoroutines(t *testing.T) {
	var w actor.Warm
	seen := map[string]int{}
	for range 100 {
		c := make(chan string, 1)
		w.Dispatch(task(func() { c <- goroutine() }))
		seen[soon(t, c)]++
		runtime.Gosched()
	}
	require.Less(t, len(seen), 100)
	soon(t, w.Close())
}

func TestWarmEndsAfterWhatRuns(t *testing.T) {
	var w actor.Warm
	entered, let := make(chan struct{}), make(chan struct{})
	var ran atomic.Bool
	w.Dispatch(task(func() { close(entered); <-let; ran.Store(true) }))
	soon(t, entered)
	gone := w.Close()
	require.Equal(t, gone, w.Close(), "twice is fine")
	select {
	case <-gone:
		t.Fatal("a task runs")
	default:
	}
	close(let)
	soon(t, gone)
	require.True(t, ran.Load())

	// What comes later runs all the same, on a goroutine of its own.
	c := make(chan struct{})
	w.Dispatch(task(func() { close(c) }))
	soon(t, c)
	soon(t, w.Close())
}

func TestWarmSurvivesTasksThatEndTheirGoroutine(t *testing.T) {
	var w actor.Warm
	for range 10 {
		w.Dispatch(task(runtime.Goexit))
	}
	c := make(chan struct{})
	w.Dispatch(task(func() { close(c) }))
	soon(t, c)
	soon(t, w.Close())
}

func TestDedicatedRunsEverythingOnOneGoroutine(t *testing.T) {
	d := actor.NewDedicated()
	seen := map[string]bool{}
	for range 100 {
		c := make(chan string, 1)
		d.Dispatch(task(func() { c <- goroutine() }))
		seen[soon(t, c)] = true
	}
	require.Len(t, seen, 1)
	d.Close()
	d.Close() // twice is fine
}

func TestDedicatedRunsWhatWasDispatchedBeforeItsEnd(t *testing.T) {
	for range 100 {
		d := actor.NewDedicated()
		c := make(chan struct{})
		d.Dispatch(task(func() { close(c) }))
		d.Close()
		soon(t, c)
	}
}

func TestDedicatedGoesOnAfterATaskThatEndsItsGoroutine(t *testing.T) {
	d := actor.NewDedicated()
	for range 3 {
		d.Dispatch(task(runtime.Goexit))
		c := make(chan struct{})
		d.Dispatch(task(func() { close(c) }))
		soon(t, c)
	}
	d.Close()
}
