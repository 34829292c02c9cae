package main

import "fmt"

// event is what somebody does: a passenger, or the car.
type event struct {
	what string
	who  int
}

const car = -1

func (c *Car) tell(what string, who int) { c.story = append(c.story, event{what, who}) }

// check returns an error unless the car was full whenever it ran, stood when anybody
// boarded or got off, was empty before the next boarded, and ran n times.
func check(story []event, n int) error {
	in := map[int]bool{}
	now, ran := boarding, 0
	for i, e := range story {
		right := false
		switch e.what {
		case "boards":
			right = now == boarding && !in[e.who] && len(in) < seats
			in[e.who] = true
		case "departs":
			right = now == boarding && len(in) == seats
			now = running
			ran++
		case "arrives":
			right = now == running
			now = unloading
		case "gets off":
			right = now == unloading && in[e.who]
			if delete(in, e.who); len(in) == 0 {
				now = boarding
			}
		}
		if !right {
			return fmt.Errorf("event %d: %d %s, when the car is in phase %d with %d passengers", i, e.who, e.what, now, len(in))
		}
	}
	if ran != n || now == running {
		return fmt.Errorf("the car ran %d times, instead of %d", ran, n)
	}
	return nil
}
