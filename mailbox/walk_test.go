package mailbox_test

import (
	"slices"

	"github.com/sluice-go/sluice/mailbox"
)

// walk is an inspection under way.
type walk struct {
	cursor    *mailbox.Cursor
	arrivals  uint64
	from      []*call // those that wait since the beginning
	visited   map[uint64]int
	undisturb bool // nothing has happened since the beginning
}

// walk opens a cursor, or moves one on.
func (w *world) walk() {
	if len(w.cursors) < 2 && w.src.choose(2, "inspect") == 0 {
		w.logf("inspect")
		w.cursors = append(w.cursors, &walk{
			cursor: w.k.Inspect(), arrivals: uint64(w.ref.arrivals), from: w.waiting(),
			visited: map[uint64]int{}, undisturb: true,
		})
		return
	}
	if len(w.cursors) == 0 {
		return
	}
	i := w.src.choose(len(w.cursors), "cursor")
	x, n, visits := w.cursors[i], 1+w.src.choose(4, "visits"), 0
	w.logf("cursor %d: %d more", i, n)
	more := x.cursor.Next(n, func(r *mailbox.Request, position int) {
		visits++
		c := r.Record.(*call)
		w.logf("  visits %s at %d: %+v", w.name(c), position, w.k.Why(r))
		if !r.Waits() {
			w.fatalf("the cursor visits %s, which does not wait", w.name(c))
		}
		// One that has been requeued may be met again, and at its old number.
		if x.visited[r.Arrival()]++; x.visited[r.Arrival()] > 1 && !c.kept {
			w.fatalf("the cursor visits %s twice", w.name(c))
		}
		if r.Arrival() > x.arrivals {
			w.fatalf("the cursor visits %s, which arrived after the walk began", w.name(c))
		}
		if want := w.position(c); x.undisturb && position != want {
			w.fatalf("%s is at position %d, the cursor says %d", w.name(c), want, position)
		}
	})
	if visits > n {
		w.fatalf("asked for %d visits, got %d", n, visits)
	}
	if more {
		return
	}
	for _, c := range x.from {
		// Who is sent to the door from further inside may be missed.
		missed := slices.Contains(w.waiting(), c) && x.visited[uint64(c.arrival)] == 0
		if missed && !c.kept && !w.waits() && uint64(c.arrival) <= x.arrivals {
			w.fatalf("the cursor never visited %s, which waited all the time", w.name(c))
		}
	}
	x.cursor.Close()
	w.cursors = slices.Delete(w.cursors, i, i+1)
}

// waits reports whether some queue has a door.
func (w *world) waits() bool {
	return w.rules.Bound.Overflow == mailbox.Wait ||
		slices.ContainsFunc(w.rules.Operations, func(o mailbox.Operation) bool { return o.Bound.Overflow == mailbox.Wait })
}

// position counts c and those before it, in what it waits in.
func (w *world) position(c *call) int {
	return len(filter(w.waiting(), func(o *call) bool {
		switch {
		case o.op != c.op || o.request.State() != c.request.State():
			return false
		case c.request.State() != mailbox.StateAdmitted || !w.ref.sorted(c.op):
			return o.pos <= c.pos
		}
		return o == c || w.ref.line(o) == w.ref.line(c) && w.ref.byPolicy(o, c) < 0
	}))
}
