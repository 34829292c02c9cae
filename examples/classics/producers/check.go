package main

import (
	"fmt"
	"slices"
)

// event is that an item was put, or that one was got.
type event struct {
	put  bool
	item item
}

// check returns an error unless the buffer has held no more than there is room for, and
// no less than nothing, and each consumer has got items in the order in which they were
// put, and all of them together every item once.
func check(story []event, consumed [][]item, n int) error {
	place := map[item]int{} // in the order in which they were put
	held := 0
	for i, e := range story {
		if e.put {
			place[e.item] = i
			held++
		} else {
			held--
		}
		if held < 0 || held > room {
			return fmt.Errorf("the buffer holds %d items", held)
		}
	}
	for c, got := range consumed {
		if !slices.IsSortedFunc(got, func(a, b item) int { return place[a] - place[b] }) {
			return fmt.Errorf("consumer %d has got items in another order than that in which they were put", c)
		}
	}
	times := map[item]int{}
	for _, i := range slices.Concat(consumed...) {
		times[i]++
	}
	for p := range producers {
		for i := range n {
			if times[item{p, i}] != 1 {
				return fmt.Errorf("item %d of producer %d was consumed %d times", i, p, times[item{p, i}])
			}
		}
	}
	return nil
}
