package actor

import (
	"context"
	"log/slog"
	"sync"
)

// maxEntries is how many entries may wait for a log handler. Further ones are only counted, so
// that a handler that blocks does not make the process run out of memory.
const maxEntries = 1024

// logQueue keeps log entries until a worker logs them. A log handler is code of a user: it may
// block, panic, end its goroutine, or call the object that the entry is about. So it is never
// called by a goroutine that holds a lock or owns an object. Entries are logged one after another,
// in the order in which they were made.
type logQueue struct {
	mu      sync.Mutex
	entries []func(*slog.Logger)
	lost    int  // how many entries were dropped since the last report
	busy    bool // a worker logs the entries, or has been dispatched to
}

// Log has f called on a worker, with the system's logger, after all entries of earlier calls. It
// neither blocks nor calls code of a user, so it may be called with a lock held. Close waits for
// the entries that were made until then.
func (s *System) Log(f func(*slog.Logger)) {
	b := &s.logbook
	b.mu.Lock()
	if len(b.entries) == maxEntries {
		b.lost++
	} else {
		b.entries = append(b.entries, f)
	}
	busy := b.busy
	b.busy = true
	b.mu.Unlock()
	if !busy {
		s.workers.Dispatch((*logging)(s))
	}
}

// note logs an entry, like Log.
func (s *System) note(level slog.Level, text string, args ...any) {
	s.Log(func(l *slog.Logger) { l.Log(context.Background(), level, text, args...) })
}

// next returns the next entry. If there is none, it returns nil and clears busy: the next Log
// dispatches a worker. The report of dropped entries comes after the entries before them.
func (b *logQueue) next() (f func(*slog.Logger)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch n := b.lost; {
	case len(b.entries) > 0:
		f, b.entries[0] = b.entries[0], nil
		b.entries = b.entries[1:]
	case n > 0:
		b.lost = 0
		f = func(l *slog.Logger) {
			l.Error("sluice: failures were not logged, as the log handler does not keep up", "entries", n)
		}
	default:
		b.entries, b.busy = nil, false
	}
	return f
}

// logging is a System as the task of the worker that logs.
type logging System

// Run implements engine.Task.
func (l *logging) Run() {
	s := (*System)(l)
	finished := false
	defer func() {
		if !finished { // the handler has panicked, or ended its goroutine; another worker logs the other entries
			_ = recover()
			s.workers.Dispatch(l)
		}
	}()
	for f := s.logbook.next(); f != nil; f = s.logbook.next() {
		f(s.logger)
	}
	finished = true
}
