package main

import "fmt"

// event is that a philosopher begins to eat, or ends it.
type event struct {
	who  int
	eats bool
}

// check returns an error unless everybody eats n times, and never beside somebody
// who eats.
func check(story []event, n int) error {
	var eats [seats]bool
	var meals [seats]int
	for _, e := range story {
		for _, neighbor := range []int{next(e.who), (e.who + seats - 1) % seats} {
			if e.eats && eats[neighbor] {
				return fmt.Errorf("philosopher %d eats beside philosopher %d", e.who, neighbor)
			}
		}
		if eats[e.who] = e.eats; e.eats {
			meals[e.who]++
		}
	}
	for i := range seats {
		if meals[i] != n || eats[i] {
			return fmt.Errorf("philosopher %d has eaten %d times, instead of %d", i, meals[i], n)
		}
	}
	return nil
}
