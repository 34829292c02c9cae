package main

import "fmt"

// atom is an atom that has become part of a molecule.
type atom struct {
	element  string
	molecule int
}

// check returns an error unless the atoms went by threes, of which each was a molecule,
// and were told just that.
func check(story, told []atom) error {
	if len(story)%3 != 0 {
		return fmt.Errorf("%d atoms are no whole molecules", len(story))
	}
	count := map[atom]int{}
	for i, a := range story {
		if want := 1 + i/3; a.molecule != want {
			return fmt.Errorf("an %s of molecule %d is among those of molecule %d", a.element, a.molecule, want)
		}
		count[a]++
	}
	for _, a := range told {
		count[a]--
	}
	for a, n := range count {
		if n != 0 {
			return fmt.Errorf("of molecule %d, %d %s have not been told so", a.molecule, n, a.element)
		}
	}
	for i := 0; i < len(story); i += 3 {
		h := 0
		for _, a := range story[i : i+3] {
			if a.element == "H" {
				h++
			}
		}
		if h != 2 {
			return fmt.Errorf("molecule %d is H%dO%d", 1+i/3, h, 3-h)
		}
	}
	return nil
}
