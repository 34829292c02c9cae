package main

import "fmt"

// event is that one of a group comes in or leaves, or that Santa wakes for the group.
type event struct {
	what  deed
	group Group
	who   int
	back  int // how many reindeer waited outside when he came in
}

type deed string

const (
	comes  deed = "comes in"
	wakes  deed = "wakes"
	leaves deed = "leaves"
)

// check returns an error unless groups came in whole, Santa woke for each when it was
// in, all of it left before the next came, no elves came first while all reindeer were
// back, and both were served n times. The last group may not have got through.
func check(story []event, n int) error {
	inside := map[int]Group{}
	var awake bool
	times := map[Group]int{}
	for _, e := range story {
		switch {
		case e.what == comes && awake:
			return fmt.Errorf("%d of %s slips in while Santa is at work, or before all have left", e.who, e.group)
		case e.what == comes && inside[e.who] != "":
			return fmt.Errorf("%d of %s comes in twice", e.who, e.group)
		case e.what == comes && e.group == problems && len(inside) == 0 && e.back >= reindeer:
			return fmt.Errorf("elves come in while %d reindeer wait", e.back)
		case e.what == comes:
			for who, group := range inside {
				if group != e.group {
					return fmt.Errorf("%d of %s comes in beside %d of %s", e.who, e.group, who, group)
				}
			}
			inside[e.who] = e.group
		case e.what == wakes:
			if awake || len(inside) != e.group.size() {
				return fmt.Errorf("%s: Santa wakes, with %d inside", e.group, len(inside))
			}
			awake = true
			times[e.group]++
		case inside[e.who] != e.group || !awake:
			return fmt.Errorf("%d of %s leaves, and was not inside, or not served", e.who, e.group)
		default:
			delete(inside, e.who)
			awake = len(inside) > 0
		}
	}
	if times[team] < n || times[problems] < n {
		return fmt.Errorf("toys were delivered %d times, and elves helped %d times, instead of %d", times[team], times[problems], n)
	}
	return nil
}
