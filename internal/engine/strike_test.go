package engine

import (
	"math/rand/v2"
	"testing"
)

// What the search strikes out, by going back from what can go on, is what is found by looking at
// everything again until nothing changes.
func TestWhatCanGoOnIsStruckOut(t *testing.T) {
	for range 3000 {
		s := &search{bodies: map[*Frame]*vertex{}}
		all := make([]*vertex, 1+rand.N(12))
		for i := range all {
			all[i] = s.ofBody(&Frame{})
			all[i].first, all[i].own = rand.N(3) == 0, rand.N(6) == 0
		}
		s.todo = nil
		for _, v := range all {
			for n := rand.N(4); n > 0 && !v.own; n-- {
				if to := rand.N(len(all) + 1); to < len(all) {
					s.arc(v, all[to], nil)
				} else {
					s.arc(v, nil, nil) // it can end now
				}
			}
			v.free = v.free || !v.own && v.held == 0
		}
		goesOn := map[*vertex]bool{}
		for again := true; again; {
			again = false
			for _, v := range all {
				if goesOn[v] || v.own {
					continue
				}
				some, each := v.free, true
				for _, a := range v.arcs {
					some, each = some || goesOn[a.to], each && goesOn[a.to]
				}
				if each || v.free || v.first && some {
					goesOn[v], again = true, true
				}
			}
		}
		s.strike()
		for i, v := range all {
			if v.free != goesOn[v] {
				t.Fatalf("%d of %d can go on: %v, and is struck out: %v", i, len(all), goesOn[v], v.free)
			}
		}
	}
}
