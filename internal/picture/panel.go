// Package picture draws what happened to requests: which waited and why, which ran, and how many
// threads were blocked. Its pages need nothing but themselves; its traces are for Perfetto.
//
//	recorder (activeobject/timeline) ──► Panel ──┬──► Page: HTML
//	                                             └──► Trace: JSON for ui.perfetto.dev
package picture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Panel is what happened at one object, or at some objects together, for a time.
type Panel struct {
	Name       string   // unique on its page
	About      string   // a few words
	Facts      string   // figures, in a line
	Family     int      // which hue it has
	Operations []string // of all objects, by number
	Objects    []string
	Requests   []Request // in the order of their arrival
	Length     int64     // how long it lasted, in nanoseconds
	Window     int64     // how much of it is shown at first; 0 for all
	From       int64     // where that begins
	Reasons    bool      // it is known why requests waited
	Cut        string    // what is missing, if anything
}

// Request is the way of a request. Times are in nanoseconds from the beginning; those of what has
// not happened are Never.
type Request struct {
	Object, Op int
	Number     uint64 // in the order of arrival at its object
	Arrived    int64
	Held       int64 // since when it had a thread
	Started    int64
	Ended      int64 // it ended, or left its queue
	Left       bool  // it left its queue without having run
	Waits      []Wait
	By         int // the request whose end let this one start; None if that is not known
	Lane       int // of the panel; see Arrange
}

// Never is the time of what has not happened, and None the number of no request.
const (
	Never = -1
	None  = -1
)

// Wait is a stretch of a wait that has one reason. It lasts until the next, or the start.
type Wait struct {
	From  int64
	Cause Cause
	Text  string // the reason in words
	For   []int  // the requests that it waited for, by index
}

// Cause is the kind of a reason.
type Cause int

// The causes.
const (
	Unknown Cause = iota
	Guard
	Conflict
	Order
	NoThread
	NoRoom
	Suspended
)

// causes are the names of the causes, as the legend has them.
var causes = [...]string{
	Unknown: "waits", Guard: "guard false", Conflict: "conflict with what runs", Order: "another comes first",
	NoThread: "no thread yet", NoRoom: "queue full", Suspended: "object suspended",
}

// String implements fmt.Stringer.
func (c Cause) String() string { return causes[c] }

// Request returns how a request is called: its operation and number, and its object if there are
// several.
func (p *Panel) Request(i int) string {
	r := &p.Requests[i]
	name := p.Operations[r.Op]
	if r.Number > 0 {
		name = fmt.Sprintf("%s #%d", name, r.Number)
	}
	if len(p.Objects) > 1 {
		name = p.Objects[r.Object] + ": " + name
	}
	return name
}

// end returns when the request gives its lane back.
func (r *Request) end() int64 {
	if r.Ended == Never {
		return 1<<63 - 1
	}
	return r.Ended
}

// Arrange puts requests in the order of their arrival, and gives each a lane: the lowest that is
// free from its arrival to its end.
func (p *Panel) Arrange() {
	order := make([]int, len(p.Requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Requests[a].Arrived, p.Requests[b].Arrived) })
	p.pick(order)
	var free []int64 // since when each lane is
	for i := range p.Requests {
		r := &p.Requests[i]
		r.Lane = slices.IndexFunc(free, func(at int64) bool { return at <= r.Arrived })
		if r.Lane < 0 {
			r.Lane = len(free)
			free = append(free, 0)
		}
		free[r.Lane] = r.end()
	}
}

// pick keeps the requests of the given indexes, in that order.
func (p *Panel) pick(order []int) {
	now := make([]int, len(p.Requests))
	for i := range now {
		now[i] = None
	}
	for i, old := range order {
		now[old] = i
	}
	requests := make([]Request, len(order))
	for i, old := range order {
		r := p.Requests[old]
		if r.By != None {
			r.By = now[r.By]
		}
		for j := range r.Waits {
			var known []int
			for _, f := range r.Waits[j].For {
				if f != None && now[f] != None {
					known = append(known, now[f])
				}
			}
			r.Waits[j].For = known
		}
		requests[i] = r
	}
	p.Requests = requests
}

// Clip keeps a stretch of the panel: what was there between two times. What reaches beyond it is
// shown as far as it lies within.
func (p *Panel) Clip(from, to int64) {
	var order []int
	for i := range p.Requests {
		if r := &p.Requests[i]; r.Arrived < to && r.end() > from {
			order = append(order, i)
		}
	}
	p.pick(order)
	move := func(at int64) int64 {
		if at == Never || at >= to {
			return Never
		}
		return max(0, at-from)
	}
	for i := range p.Requests {
		r := &p.Requests[i]
		r.Arrived, r.Held, r.Started, r.Ended = move(r.Arrived), move(r.Held), move(r.Started), move(r.Ended)
		var waits []Wait
		for _, w := range r.Waits {
			if w.From = move(w.From); w.From == Never {
				continue
			}
			if n := len(waits); n > 0 && waits[n-1].From == w.From {
				waits = waits[:n-1]
			}
			waits = append(waits, w)
		}
		r.Waits = waits
		if r.Ended == Never {
			r.Left = false
		}
	}
	p.Length = to - from
}

// Liveliest returns the beginning of the stretch of a length in which most requests ended, of
// those in which most operations did.
func (p *Panel) Liveliest(length int64) int64 {
	n := p.Length / max(1, length)
	if n <= 1 {
		return 0
	}
	counts := make([][]int, n)
	for _, r := range p.Requests {
		if r.Started == Never || r.Started/length >= n {
			continue
		}
		c := &counts[r.Started/length]
		if *c == nil {
			*c = make([]int, len(p.Operations)+2)
		}
		(*c)[r.Op]++
		if len(r.Waits) > 0 {
			(*c)[len(p.Operations)]++
		}
		(*c)[len(p.Operations)+1]++
	}
	best, most := 0, []int{-1, -1, -1}
	for i, c := range counts {
		if c == nil {
			continue
		}
		kinds := 0
		for _, n := range c[:len(p.Operations)] {
			if n > 0 {
				kinds++
			}
		}
		if is := []int{kinds, c[len(p.Operations)], c[len(p.Operations)+1]}; slices.Compare(is, most) > 0 {
			best, most = i, is
		}
	}
	return int64(best) * length
}

// HoldFromArrival gives each request its thread on arrival: it is its caller's.
func (p *Panel) HoldFromArrival() {
	for i := range p.Requests {
		p.Requests[i].Held = p.Requests[i].Arrived
	}
}

// Rate returns how many requests ended in a nanosecond.
func (p *Panel) Rate() float64 {
	if p.Length == 0 {
		return 0
	}
	return float64(len(p.Requests)) / float64(p.Length)
}

// Shares returns how much of all waiting had which cause, in parts of 1.
func (p *Panel) Shares() map[Cause]float64 {
	var sum float64
	all := map[Cause]float64{}
	for i := range p.Requests {
		r := &p.Requests[i]
		until := r.waitEnds(p.Length)
		for j, w := range r.Waits {
			to := until
			if j+1 < len(r.Waits) {
				to = r.Waits[j+1].From
			}
			all[w.Cause] += float64(to - w.From)
			sum += float64(to - w.From)
		}
	}
	for c := range all {
		all[c] /= max(sum, 1)
	}
	return all
}

// waitEnds returns when a request has stopped to wait.
func (r *Request) waitEnds(length int64) int64 {
	switch {
	case r.Started != Never:
		return r.Started
	case r.Ended != Never:
		return r.Ended
	}
	return length
}

// MarshalJSON implements json.Marshaler: what the page's program draws. Requests are rows of
// numbers, as there are many.
func (p *Panel) MarshalJSON() ([]byte, error) {
	texts := []string{}
	number := map[string]int{}
	rows := make([][]any, len(p.Requests))
	for i := range p.Requests {
		r := &p.Requests[i]
		waits := make([][]any, len(r.Waits))
		for j, w := range r.Waits {
			n, ok := number[w.Text]
			if !ok {
				n = len(texts)
				texts, number[w.Text] = append(texts, w.Text), n
			}
			row := []any{w.From, w.Cause, n}
			for _, f := range w.For {
				row = append(row, f)
			}
			waits[j] = row
		}
		left := 0
		if r.Left {
			left = 1
		}
		rows[i] = []any{r.Object, r.Op, r.Number, r.Lane, r.Arrived, r.Held, r.Started, r.Ended, left, r.By, waits}
	}
	return json.Marshal(map[string]any{
		"name": p.Name, "about": p.About, "operations": p.Operations, "objects": p.Objects, "requests": rows, "texts": texts,
		"length": p.Length, "window": cmp.Or(p.Window, p.Length), "from": p.From, "reasons": p.Reasons, "family": p.Family,
	})
}
