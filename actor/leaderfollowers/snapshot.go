package leaderfollowers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Role is what a thread of a pool does.
type Role uint8

// The roles of the pattern.
const (
	Follower   Role = iota // it waits to be promoted
	Leader                 // it waits for an event
	Processing             // it processes an event
)

// String implements fmt.Stringer.
func (r Role) String() string { return [...]string{"follower", "leader", "processing"}[r] }

// Thread is a thread in a Snapshot.
type Thread struct {
	Number int
	Role   Role
	// Event says what it processes: the name of a handle, or "task".
	Event string
	// Waits says that its handler waits for a request, so that another thread is there in its place.
	// (Of a task, Busy of the snapshot says it.)
	Waits bool
}

// Snapshot is what a pool does at one moment.
type Snapshot struct {
	Size    int // how many events it processes at once
	Busy    int // how many it does, those not counted whose threads wait; and threads that are reserved
	Events  int // that have come, and that no thread has taken
	Handles int
	Threads []Thread // by their numbers
}

// String shows the snapshot in one line for each thread.
func (s Snapshot) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d busy, %d events waiting, %d handles", s.Busy, s.Size, s.Events, s.Handles)
	for _, t := range s.Threads {
		fmt.Fprintf(&text, "\nthread %d: %v", t.Number, t.Role)
		if t.Event != "" {
			fmt.Fprintf(&text, " %s", t.Event)
		}
		if t.Waits {
			text.WriteString(", waits for a request")
		}
	}
	return text.String()
}

// Snapshot returns what the pool does now: the roles first, and then the rest. It waits for no handler.
func (p *Pool) Snapshot() Snapshot {
	var leader *thread
	_ = p.roles.View(context.Background(), func(r *roles) error { // if it has been stopped, none leads
		leader = r.leader
		return nil
	})
	s := p.handles
	s.mu.Lock()
	all := Snapshot{Size: p.size, Busy: p.busy, Events: s.events.n + s.owed.n, Handles: len(s.handles)}
	var events []event
	for t := range p.threads {
		thread := Thread{Number: t.id, Role: t.role, Waits: t.role == Processing && t.parks.Load() > 0}
		if t == leader && t.role == Follower && p.leading == nil {
			thread.Role = Leader // it has the role, and is about to begin
		}
		all.Threads = append(all.Threads, thread)
		events = append(events, t.has)
	}
	s.mu.Unlock()
	for i, e := range events {
		switch {
		case e.handle != nil:
			all.Threads[i].Event = e.handle.describe()
		case e.task != nil:
			all.Threads[i].Event = "task"
		}
	}
	slices.SortFunc(all.Threads, func(a, b Thread) int { return cmp.Compare(a.Number, b.Number) })
	return all
}
