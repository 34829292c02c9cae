package actor

import (
	"context"
	"log/slog"
	"sync"
)

// maxEntries is how many entries wait for a log handler before further ones are only
// counted: a handler that blocks is not to take the memory of the process.
const maxEntries = 1024

// logbook keeps what is to be logged until a worker logs it. A log handler is code that is
// not ours: it may block, panic, end its goroutine, or call the object that the entry is
// about. So it is never called by a goroutine that holds a lock or an object, and entries
// are logged one after another, in the order in which they were made.
type logQueue struct {
	mu      sync.Mutex
	entries []func(*slog.Logger)
	lost    int  // entries that found no room
	busy    bool // a worker is at it, or on its way
}

// Log has f log something on a worker, after what was logged this way before. It neither
// blocks nor calls code of others, so that it may be called with a lock held. Close waits
// for what has been logged until then.
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

// next returns the next entry, or nil if there is none, and then no worker is at it. What
// was lost comes after those that were there before.
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

// logging is a system as the turn of the worker that logs.
type logging System

// Run implements engine.Task.
func (l *logging) Run() {
	s := (*System)(l)
	finished := false
	defer func() {
		if !finished { // the handler has panicked, or ended its goroutine; the other entries go on elsewhere
			_ = recover()
			s.workers.Dispatch(l)
		}
	}()
	for f := s.logbook.next(); f != nil; f = s.logbook.next() {
		f(s.logger)
	}
	finished = true
}
