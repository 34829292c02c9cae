package main

import "fmt"

// check returns an error unless everybody was cut once, or else left, and so many left
// as could find no chair.
func check(done []int, left []bool) error {
	times := make([]int, len(left))
	for _, customer := range done {
		times[customer]++
	}
	gone := 0
	for customer, cut := range times {
		if left[customer] {
			gone++
			cut++
		}
		if cut != 1 {
			return fmt.Errorf("customer %d was cut %d times; that he left is %t", customer, times[customer], left[customer])
		}
	}
	if gone != crowd-chairs {
		return fmt.Errorf("%d left, instead of %d", gone, crowd-chairs)
	}
	return nil
}
