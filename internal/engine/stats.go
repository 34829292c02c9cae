package engine

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// extras is what only some objects have: those that are parallel or count, and those that are, or
// have been, watched, suspended or observed. At all others one look at a nil pointer says so.
type extras struct {
	fast  []fastCounts        // per operation, if the object counts
	waits []mailbox.Histogram // per operation, if it measures; guarded by mu
	timer *time.Timer         // for the next look of the watchdog, if there is one; guarded by mu

	observers  []*observer    // guarded by mu
	recorder   Recorder       // or nil; guarded by mu
	rechecks   bool           // a worker is about to look for circles; guarded by mu
	suspension *suspension    // why nothing starts, or nil; guarded by mu
	parallel   *parallelState // of a parallel object; guarded by mu
	unwinding  atomic.Int32   // bodies that have been forsaken, and whose deferred functions run: see rest.go
}

// special returns the object's extras, and makes them first if it has none. The caller holds mu.
func (m *Mailbox) special() *extras {
	x := m.extras.Load()
	if x == nil {
		x = &extras{}
		m.extras.Store(x)
	}
	return x
}

// fastCounts are the counts of what goes past the scheduler.
type fastCounts struct{ starts, asked atomic.Uint64 }

// Count counts a request that found the object idle, if the object counts those: whether the
// request ran, and how many guards were evaluated by its goroutine.
func (m *Mailbox) Count(op int, ran bool, asked int) {
	x := m.extras.Load()
	if x == nil || x.fast == nil {
		return
	}
	c := &x.fast[op]
	if ran {
		c.starts.Add(1)
	}
	c.asked.Add(uint64(asked))
}

// measure notes how long r has waited, as r starts. The caller holds mu.
func (m *Mailbox) measure(r *Request) {
	m.extras.Load().waits[r.Op].Add(Now() - r.since)
}

// countsAll reports whether every start and evaluation is counted: the object counts the requests
// that find it idle, or these go through the scheduler like all others.
func (c *Config) countsAll() bool { return c.Counted || c.rest.Has(word.Slow) && !c.counts }

// Stats returns the counts of an operation. It waits for no body.
func (m *Mailbox) Stats(op int) mailbox.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.queues.Load()
	if k == nil {
		k = mailbox.New(m.config.Rules, m.host) // which has seen no request
	}
	s := k.Stats(op)
	x := m.extras.Load()
	switch {
	case !m.config.countsAll():
		s.Starts, s.Evaluations = mailbox.NotCounted, mailbox.NotCounted
	case x != nil && x.fast != nil:
		s.Starts += mailbox.Count(x.fast[op].starts.Load())
		s.Evaluations += mailbox.Count(x.fast[op].asked.Load())
	}
	if x != nil && x.waits != nil {
		s.WaitingTimes = append(mailbox.Histogram{}, x.waits[op]...)
	}
	return s
}
