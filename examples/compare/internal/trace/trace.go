// Package trace records of each request when it arrived, and when and on which
// goroutine its body ran; and derives from that how many threads there were.
package trace

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Span is the way of one request. Times are in nanoseconds since the log began;
// those of what has not happened are 0.
type Span struct {
	Caller, Object, Op int
	Arrived            int64 // its caller made the call
	Started            int64 // its body began, with whatever excludes others held
	Ended              int64 // its body ended, still so
	Thread             uint64
	Own                bool // the body ran on its caller's goroutine

	home uint64 // the caller's goroutine
	log  *Log
}

// Start is called where the body begins, on the goroutine that runs it. Of no span
// it records nothing.
func (s *Span) Start() {
	if s == nil {
		return
	}
	s.Thread = goroutine()
	s.Own = s.Thread == s.home
	s.log.count()
	s.Started = s.log.now()
}

// End is called where the body ends.
func (s *Span) End() {
	if s != nil {
		s.Ended = s.log.now()
	}
}

// Log is the spans of a run. Each caller has a page of it, so that they do not
// wait for each other.
type Log struct {
	begun      time.Time
	goroutines int // that there were before the run, and those of the callers
	peak       atomic.Int64
	full       chan struct{}
	fill       sync.Once
	pages      []Page
}

// Page is what one caller writes; it is used by that caller's goroutine only.
type Page struct {
	_     [128]byte // keeps pages out of each other's cache lines
	log   *Log
	home  uint64
	spans []Span
}

// Capacity is how many requests a log keeps at most.
const Capacity = 1 << 14

// New returns a log for a number of callers. The goroutines that run now, and one
// for each caller, are not counted as threads.
func New(callers int) *Log {
	l := &Log{goroutines: runtime.NumGoroutine() + callers, full: make(chan struct{}), pages: make([]Page, callers)}
	for i := range l.pages {
		l.pages[i] = Page{log: l, spans: make([]Span, 0, max(2, Capacity/callers))}
	}
	return l
}

// Begin starts the log's clock.
func (l *Log) Begin() { l.begun = time.Now() }

// Full returns a channel that is closed when some caller's page is full.
func (l *Log) Full() <-chan struct{} { return l.full }

// Page returns the page of a caller, who calls it on its goroutine.
func (l *Log) Page(caller int) *Page {
	p := &l.pages[caller]
	p.home = goroutine()
	return p
}

// Arrive begins the span of a request that is about to be made; nil if there is no
// page, or it is full.
func (p *Page) Arrive(caller, object, op int) *Span {
	if p == nil {
		return nil
	}
	if len(p.spans) == cap(p.spans) {
		p.log.fill.Do(func() { close(p.log.full) })
		return nil
	}
	p.log.count()
	// The array never moves: there is room, so that bodies may keep the pointer.
	p.spans = append(p.spans, Span{
		Caller: caller, Object: object, Op: op, home: p.home, log: p.log, Arrived: p.log.now(),
	})
	return &p.spans[len(p.spans)-1]
}

// now is never 0, which stands for what has not happened.
func (l *Log) now() int64 { return max(1, int64(time.Since(l.begun))) }

// count looks at how many goroutines there are.
func (l *Log) count() {
	n := int64(runtime.NumGoroutine())
	for old := l.peak.Load(); n > old && !l.peak.CompareAndSwap(old, n); old = l.peak.Load() {
	}
}

// Goroutines returns how many there were at most at once beyond those of before the
// run and those of the callers, of all the moments at which a request arrived or a
// body began.
func (l *Log) Goroutines() int { return max(0, int(l.peak.Load())-l.goroutines) }

// Spans returns what was recorded. Nobody may be writing any more.
func (l *Log) Spans() []Span {
	var all []Span
	for i := range l.pages {
		all = append(all, l.pages[i].spans...)
	}
	return all
}

// goroutine returns the number of the calling goroutine. The runtime tells it only
// in the first line of a stack.
func goroutine() uint64 {
	var buffer [32]byte
	line := buffer[:runtime.Stack(buffer[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	number, _, _ := bytes.Cut(line, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("the runtime names its goroutines otherwise: " + string(line))
	}
	return id
}
