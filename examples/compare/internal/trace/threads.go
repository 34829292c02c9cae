package trace

import (
	"cmp"
	"slices"
)

// Assignment says when a request is given its thread.
type Assignment int

const (
	// OnStart is when it may run. If that turns out to be the caller's own goroutine,
	// this has been waiting for it, and the thread counts as blocked until then.
	OnStart Assignment = iota
	// OnArrival is at once, if there is one; the thread is blocked until the request may
	// run.
	OnArrival
	// Fixed is always: each object has one thread, which waits for requests, not for guards.
	Fixed
)

// Rule is how a model gives threads to requests.
type Rule struct {
	Assignment Assignment
	Callers    bool // the threads are the callers' own
	Pool       int  // how many threads there are; 0 if as many as needed
}

// Threads are the figures of the threads of a run.
type Threads struct {
	// Used is the most threads at once that ran a body, were held by a request that
	// waits, or belonged to an object.
	Used int `json:"used"`
	// Blocked is the most threads at once that were held by a request that waited.
	Blocked int `json:"blocked"`
	// Running is the most bodies that ran at once: the concurrency reached.
	Running int `json:"running"`
	// Mean is how many bodies ran at once on average, over the time in which there was
	// a request at all.
	Mean float64 `json:"mean_running"`
	// Goroutines is the most there were at once besides those of the callers.
	Goroutines int `json:"goroutines"`
}

// what happens to a request.
type what int

const (
	ends what = iota // first of what happens at the same moment
	arrives
	holds // a thread, while it waits
	starts
)

// event is something that happens to a request, by its number.
type event struct {
	at   int64
	what what
	span int
}

// events returns what happens, in order.
func events(spans []Span) []event {
	var all []event
	for i, s := range spans {
		all = append(all, event{s.Arrived, arrives, i})
		if s.Started > 0 {
			all = append(all, event{s.Started, starts, i}, event{s.Ended, ends, i})
		}
	}
	sortEvents(all)
	return all
}

func sortEvents(all []event) {
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what))
	})
}

// Held returns for each request since when it holds a thread; 0 if it never does. Of
// the threads of a pool that are given on arrival, the requests get those that are
// free in the order in which they came.
func Held(spans []Span, rule Rule) []int64 {
	held := make([]int64, len(spans))
	if rule.Assignment == OnArrival && rule.Pool > 0 {
		heldOfPool(spans, rule.Pool, held)
		return held
	}
	for i, s := range spans {
		switch {
		case rule.Assignment == OnArrival, s.Own, s.Started == 0 && rule.Callers:
			held[i] = s.Arrived
		default:
			held[i] = s.Started
		}
	}
	return held
}

// heldOfPool is Held for a pool whose threads are given on arrival. Requests note their
// arrival a little before it; so the trace may have them in another order than the pool,
// and shows it where one starts that had no thread: then the last who was given one did
// not have it.
func heldOfPool(spans []Span, free int, held []int64) {
	var line, holders []int
	for _, e := range events(spans) {
		switch e.what {
		case arrives:
			line = append(line, e.span)
		case starts:
			if i := slices.Index(holders, e.span); i >= 0 {
				holders = slices.Delete(holders, i, i+1)
				break
			}
			line = slices.DeleteFunc(line, func(i int) bool { return i == e.span })
			held[e.span] = e.at
			if last := len(holders) - 1; free == 0 && last >= 0 {
				held[holders[last]] = 0
				line = slices.Insert(line, 0, holders[last])
				holders = holders[:last]
			} else {
				free--
			}
		case ends:
			free++
		}
		for ; free > 0 && len(line) > 0; line = line[1:] {
			held[line[0]] = e.at
			holders = append(holders, line[0])
			free--
		}
	}
}

// Count derives the figures from the spans of a run with a number of objects.
func Count(spans []Span, rule Rule, objects int) Threads {
	all := events(spans)
	held := Held(spans, rule)
	waits := func(i int) bool { return held[i] > 0 && held[i] != spans[i].Started } // with a thread
	for i, at := range held {
		if waits(i) {
			all = append(all, event{at, holds, i})
		}
	}
	sortEvents(all)
	var t Threads
	var requests, blocked, running int
	var before, busy, area int64
	for _, e := range all {
		if requests > 0 {
			busy += e.at - before
			area += int64(running) * (e.at - before)
		}
		before = e.at
		switch e.what {
		case arrives:
			requests++
		case holds:
			blocked++
		case starts:
			if waits(e.span) {
				blocked--
			}
			running++
		case ends:
			running--
			requests--
		}
		t.Running = max(t.Running, running)
		t.Blocked = max(t.Blocked, blocked)
		t.Used = max(t.Used, running+blocked)
	}
	if rule.Assignment == Fixed {
		t.Used = max(t.Used, objects)
	}
	if busy > 0 {
		t.Mean = float64(area) / float64(busy)
	}
	return t
}
