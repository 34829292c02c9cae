package main

import "fmt"

// event is what is done at the table: laid is all but this, taken by who has this, and
// put out by him.
type event struct {
	what deed
	this Ingredient
}

type deed string

const (
	laid  deed = "laid"
	taken deed = "taken"
	ended deed = "put out"
)

// check returns how often each has smoked, and an error unless the agent has come n
// times, and each time he who has what was missing has taken the rest, and put out,
// before anything else was done.
func check(story []event, n int) (times [kinds]int, err error) {
	if len(story) != 3*n {
		return times, fmt.Errorf("of %d things to be done %d were", 3*n, len(story))
	}
	for i := 0; i < len(story); i += 3 {
		missing := story[i].this
		for j, what := range []deed{laid, taken, ended} {
			if want := (event{what, missing}); story[i+j] != want {
				return times, fmt.Errorf("%v was missing, and then was %s by %v", missing, story[i+j].what, story[i+j].this)
			}
		}
		times[missing]++
	}
	return times, nil
}
