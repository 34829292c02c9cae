package waitgraph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// text writes a circle down.
func text(circle []Link) string {
	var all []string
	for _, l := range circle {
		all = append(all, l.Body+" → "+l.For)
	}
	return strings.Join(all, ", ")
}

// Small graphs: each builds one, and returns the wait that is drawn last.
func TestCircle(t *testing.T) {
	// blocked returns a request that waits for the body.
	blocked := func(w *world, by *body) *request { return w.waiting(by.at) }
	for _, test := range []struct {
		name   string
		build  func(w *world) (*body, Goal)
		circle string
	}{
		{"a wait for what is free", func(w *world) (*body, Goal) {
			return w.enter(nil), w.waiting(w.object())
		}, ""},
		{"a row that ends", func(w *world) (*body, Goal) {
			b0, b1, b2 := w.enter(nil), w.enter(nil), w.enter(nil)
			w.draw(b1, blocked(w, b2))
			return b0, blocked(w, b1)
		}, ""},
		{"itself", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return b0, blocked(w, b0)
		}, "b0 → r1"},
		{"its caller", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return w.enter(b0), blocked(w, b0)
		}, "b0 → b1, b1 → r2"},
		{"a caller that has returned", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			b1 := w.enter(b0)
			b0.returned = true
			return b1, blocked(w, b0)
		}, ""},
		{"a circle", func(w *world) (*body, Goal) {
			b0, b1, b2 := w.enter(nil), w.enter(nil), w.enter(nil)
			w.draw(b1, blocked(w, b2))
			w.draw(b2, blocked(w, b0))
			return b0, blocked(w, b1)
		}, "b0 → r5, b1 → r3, b2 → r4"},
		{"a circle by bodies that have been called", func(w *world) (*body, Goal) {
			b0, b1 := w.enter(nil), w.enter(nil)
			b2, b3 := w.enter(b0), w.enter(b1)
			w.draw(b3, blocked(w, b0))
			return b2, blocked(w, b1)
		}, "b0 → b2, b2 → r5, b1 → b3, b3 → r4"},
		{"all of two, one of which is free", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return b0, w.join(false, w.waiting(w.object()), blocked(w, b0))
		}, "b0 → r2"},
		{"the first of two, one of which is free", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return b0, w.join(true, blocked(w, b0), w.waiting(w.object()))
		}, ""},
		{"the first of two", func(w *world) (*body, Goal) {
			b0, b1 := w.enter(nil), w.enter(nil)
			w.draw(b1, blocked(w, b0))
			return b0, w.join(true, blocked(w, b0), blocked(w, b1))
		}, "b0 → r3, b0 → r4, b1 → r2"},
		{"the first of two, one of which is lost", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return b0, w.join(true, blocked(w, b0), nil)
		}, "b0 → r1"},
		{"the first of none", func(w *world) (*body, Goal) {
			return w.enter(nil), w.join(true)
		}, ""},
		{"all of a first that is free, nested", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			return b0, w.join(false, w.join(true, blocked(w, b0), w.waiting(w.object())))
		}, ""},
		{"the first of two that need what is not free, nested", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			free, not := w.waiting(w.object()), blocked(w, b0)
			return b0, w.join(true, w.join(false, free, not), w.join(false, not, free))
		}, "b0 → r2, b0 → r2"},
		{"what is not known yet", func(w *world) (*body, Goal) {
			j := w.join(false)
			j.unknown = true
			return w.enter(nil), j
		}, ""},
		{"a body that has returned, and left a wait behind", func(w *world) (*body, Goal) {
			b0, b1 := w.enter(nil), w.enter(nil)
			w.draw(b1, blocked(w, b0))
			b1.returned = true
			return b0, blocked(w, b1)
		}, ""},
		{"the first of two, that lead to the chain further out and further in", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			b1 := w.enter(b0)
			return b1, w.join(true, blocked(w, b0), blocked(w, b1))
		}, "b0 → b1, b1 → r2, b1 → r3"},
		{"a restart that waits for a child", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			parent := w.object()
			parent.below = []*object{b0.at}
			w.Elsewhere(1)
			return b0, w.waiting(parent)
		}, "b0 → r1, the restart of o1 → b0"},
		{"a request that another body is in the way of", func(w *world) (*body, Goal) {
			b0 := w.enter(nil)
			b1 := w.start(w.waiting(b0.at), nil)
			r := w.waiting(b0.at)
			r.own, r.meets = true, []*body{b1}
			return b0, r
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{}
			b, goal := test.build(w)
			require.Empty(t, w.deadlocked(), "before")
			require.Equal(t, test.circle, text(w.draw(b, goal)))
			require.Empty(t, w.deadlocked(), "after")
		})
	}
}

// A circle is found though another one stands, which has been closed and is about to be looked for.
func TestACircleIsFoundBesideAnother(t *testing.T) {
	w := &world{}
	b0, b1 := w.enter(nil), w.enter(nil)
	b2, b3 := w.start(w.waiting(b0.at), nil), w.start(w.waiting(b0.at), nil)
	blocked := func(by ...*body) *request {
		r := w.waiting(b0.at)
		r.own, r.meets = true, by
		return r
	}
	b2.place()
	b3.place()
	w.Draw(new(Wait), b1.place(), blocked(b2, b3))
	w.Draw(new(Wait), b2.place(), w.waiting(b1.at)) // and b1 waits for b2
	w.Draw(new(Wait), b3.place(), blocked(b0))
	require.NotEmpty(t, w.draw(b0, w.waiting(b1.at)))
}

// One event may close a circle, and another one in which the search loses its way.
func TestAllCirclesOfOneEventAreFound(t *testing.T) {
	w := &world{}
	b0, b1 := w.enter(nil), w.enter(nil)
	r := w.waiting(w.object())
	for _, wait := range []struct {
		b    *body
		goal Goal
	}{{b0, r}, {b1, r}, {b1, w.waiting(b0.at)}} {
		require.Nil(t, w.draw(wait.b, wait.goal))
	}
	r.at = b1.at
	waits := w.leading(r)
	for _, wait := range waits {
		w.Recount(wait)
	}
	require.Equal(t, 2, w.again(waits))
	require.Empty(t, w.deadlocked())
}

// A wait is counted where its events are, and as one of which that is not known, as long as that is so.
func TestWaitsAreCounted(t *testing.T) {
	w := &world{}
	b, r, later := w.enter(nil), w.waiting(w.object()), w.join(false)
	later.unknown = true
	for _, test := range []struct {
		goal           Goal
		waits, unknown int
	}{
		{r, 1, 0},
		{w.join(true, r, r), 2, 0},
		{w.waiting(nil), 0, 1},
		{w.join(false, later, r), 1, 1},
		{w.join(false, w.join(true, later), later), 0, 1},
	} {
		wait := new(Wait)
		w.Draw(wait, b.place(), test.goal)
		waits, unknown, _ := w.Counts()
		require.Equal(t, []int{test.waits, test.unknown}, []int{waits, unknown})
		w.Recount(wait)
		w.Erase(wait)
		waits, unknown, _ = w.Counts()
		require.Zero(t, waits+unknown)
	}
}

// nest returns the innermost of n bodies, each of which was called by the one before, that all wait.
func (w *world) nest(outer *body, n int) *body {
	for range n {
		outer = w.enter(outer)
		w.draw(outer.caller, outer.request)
	}
	return outer
}

// row returns the first of n bodies, each of which waits for the next one.
func (w *world) row(n int, last *body) *body {
	for range n {
		b := w.enter(nil)
		if last != nil {
			w.draw(b, w.waiting(last.at))
		}
		last = b
	}
	return last
}

// effort returns what is looked at for one more wait.
func (w *world) effort(b *body, goal Goal) (effort int, circle []Link) {
	before := w.Looked()
	circle = w.draw(b, goal)
	return w.Looked() - before, circle
}

// The effort is that of the cheaper of the two searches (G6).
func TestTheEffortIsBounded(t *testing.T) {
	for _, n := range []int{100, 1000} {
		t.Run(fmt.Sprint("a deep chain whose wait leads to little/", n), func(t *testing.T) {
			w := &world{}
			b := w.nest(w.enter(nil), n)
			effort, circle := w.effort(b, w.waiting(w.row(1, nil).at))
			require.Nil(t, circle)
			require.Less(t, effort, 50)
		})
		t.Run(fmt.Sprint("a long row, and nothing waits for the chain/", n), func(t *testing.T) {
			w := &world{}
			b := w.nest(w.enter(nil), 4)
			effort, circle := w.effort(b, w.waiting(w.row(n, nil).at))
			require.Nil(t, circle)
			require.Equal(t, 5, effort)
		})
		t.Run(fmt.Sprint("a long row, and a wait for the outermost/", n), func(t *testing.T) {
			w := &world{}
			outer := w.enter(nil)
			w.row(2, outer)
			effort, circle := w.effort(w.nest(outer, n), w.waiting(w.row(n, nil).at))
			require.Nil(t, circle)
			require.Less(t, effort, 10*n)
		})
		t.Run(fmt.Sprint("a circle/", n), func(t *testing.T) {
			w := &world{}
			outer := w.enter(nil)
			effort, circle := w.effort(w.nest(outer, n), w.waiting(w.row(n, outer).at))
			require.Len(t, circle, 2*n+1)
			require.Less(t, effort, 12*n)
		})
		t.Run(fmt.Sprint("joins that share their parts/", n), func(t *testing.T) {
			w := &world{}
			b := w.enter(nil)
			var goal Goal = w.waiting(b.at)
			for range n {
				goal = w.join(false, goal, goal)
			}
			effort, circle := w.effort(b, goal)
			require.Equal(t, 1, len(circle))
			require.Less(t, effort, 10*n)
		})
	}
}
