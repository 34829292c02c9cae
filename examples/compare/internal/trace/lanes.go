package trace

import (
	"cmp"
	"slices"
)

// Lanes gives each of the requests that hold a thread a lane, and others -1. If the
// threads are the callers', these are the lanes. Else there are as many as threads are
// in use at once; what ran on one goroutine stays in its lane where that is free.
func Lanes(spans []Span, held []int64, rule Rule) []int {
	if rule.Callers {
		return callersLanes(spans)
	}
	return freeLanes(spans, held)
}

// callersLanes returns of each request the number of the caller that ran it.
func callersLanes(spans []Span) []int {
	callers := map[uint64]int{}
	for _, s := range spans {
		callers[s.home] = s.Caller
	}
	lanes := make([]int, len(spans))
	for i, s := range spans {
		lanes[i] = s.Caller
		if caller, ok := callers[s.Thread]; ok && s.Started > 0 {
			lanes[i] = caller
		}
	}
	return lanes
}

func freeLanes(spans []Span, held []int64) (lanes []int) {
	lanes = make([]int, len(spans))
	order := make([]int, 0, len(spans))
	for i := range spans {
		lanes[i] = -1
		if held[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(held[a], held[b]) })
	var all []lane
	for _, i := range order {
		n := free(all, held[i], spans[i].Thread)
		if n == len(all) {
			all = append(all, lane{})
		}
		all[n] = lane{thread: spans[i].Thread, until: spans[i].until()}
		lanes[i] = n
	}
	return lanes
}

// lane is what was put there last.
type lane struct {
	thread uint64
	until  int64
}

// free returns the lane for a request that holds a goroutine from a time on.
func free(all []lane, from int64, thread uint64) int {
	found := len(all)
	for n, l := range all {
		switch {
		case l.until > from:
		case l.thread == thread && thread != 0:
			return n
		case found == len(all):
			found = n
		}
	}
	return found
}

// until returns when the request gives its thread back: never, if it never ran.
func (s *Span) until() int64 {
	if s.Started == 0 {
		return 1<<63 - 1
	}
	return s.Ended
}
