package main

import (
	"context"
	"errors"
)

// model is a concurrency model: how requests reach a shared object, and on whose
// thread they run.
type model string

const (
	monitor    model = "monitor"
	channel    model = "channel"
	protoactor model = "protoactor"
	sluice     model = "sluice"
	dedicated  model = "sluice-dedicated"
)

// models lists all models in the order of the tables, with what each stands for.
var models = []struct {
	name  model
	about string
}{
	{monitor, "a thread per request: mutex and conditions, written by hand (readers: sync.RWMutex)"},
	{channel, "a goroutine that owns the object, requests by channel, guards by a list of its own"},
	{protoactor, "a plain protoactor-go actor, RequestFuture, guards by deferred replies"},
	{sluice, "Sluice's active object, its thread borrowed from a caller"},
	{dedicated, "Sluice's active object with a goroutine of its own"},
}

// workload is a shared object and what its callers ask of it.
type workload struct {
	name       string
	about      string // the object, and what its callers do
	operations string // what is counted
	every      int    // the latency of every how-many-th call is taken
	open       func(m model, callers int) (*session, error)
}

// workloads lists all workloads in the order of their tables.
var workloads = []workload{
	bankWorkload,
	bufferWorkload,
	readersWorkload("readers-0", "nothing", nothing),
	readersWorkload("readers-1us", "1 µs of CPU", spinMicrosecond),
	slowReadersWorkload("readers-1ms", "1 ms of waiting", waitMillisecond),
}

// sampled is the interval of the calls whose latency is taken where the clock
// would cost as much as the call. It has no common divisor with the rhythm of
// any workload, so that all kinds of calls are met.
const sampled = 13

// session is an object under some model, and those that share it.
type session struct {
	host
	callers []caller
	// check compares the object with the books of its callers after the end,
	// and says what is wrong.
	check func() error
}

// host is where an object lives while its callers use it.
type host interface {
	// stop makes the calls that wait, and those that would, fail with an error
	// for which isStop reports true. What it fails has not run and never will.
	// A host whose calls watch their context may do nothing.
	stop()
	// end releases the object. Nobody calls it any more.
	end() error
}

// hosts are several as one.
type hosts []host

func (hs hosts) stop() {
	for _, h := range hs {
		h.stop()
	}
}

func (hs hosts) end() error {
	var errs []error
	for _, h := range hs {
		errs = append(errs, h.end())
	}
	return errors.Join(errs...)
}

// caller is one of those that share an object.
type caller interface {
	// step makes one call and writes it into the caller's books if it succeeds.
	step(ctx context.Context) error
}

// errStopped is how a call fails that could not run before its host stopped.
var errStopped = errors.New("stopped")

// isStop reports whether a call has failed because the session ended.
func isStop(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, context.Canceled)
}
