package mailbox

import "github.com/sluice-go/sluice/guards"

// regions holds intervals that may overlap: a treap in the order of their beginnings, in which
// each node knows the last end of all below it. It allocates nothing: the nodes are parts of
// what they stand for. (Cormen, Leiserson, Rivest, Stein: Introduction to Algorithms, 14.3.)
type regions struct{ root *region }

// region is an interval in such a tree.
type region struct {
	extent          guards.Extent
	last            any // the greatest end of the subtree
	left, right, up *region
	weight          uint32 // of the heap: the root has the greatest
}

// meets reports whether any of them has a point in common with e, which is not empty.
func (t *regions) meets(e guards.Extent, compare func(a, b any) int) bool {
	for s := t.root; s != nil; {
		switch {
		case compare(s.extent.From, e.To) < 0 && compare(e.From, s.extent.To) < 0:
			return true
		case s.left != nil && compare(e.From, s.left.last) < 0:
			// If one on the left reaches beyond e's beginning and yet does not overlap with e,
			// it begins behind e's end, and so do all on the right.
			s = s.left
		default:
			s = s.right
		}
	}
	return false
}

// insert puts s, which is fresh, in its place.
func (t *regions) insert(s *region, compare func(a, b any) int) {
	s.last = s.extent.To
	at := &t.root
	for *at != nil {
		s.up = *at
		if compare(s.extent.From, s.up.extent.From) < 0 {
			at = &s.up.left
		} else {
			at = &s.up.right
		}
	}
	*at = s
	for s.up != nil && s.up.weight < s.weight {
		t.rotate(s, compare)
	}
	for up := s.up; up != nil; up = up.up {
		up.sum(compare)
	}
}

// remove takes s out.
func (t *regions) remove(s *region, compare func(a, b any) int) {
	for s.left != nil || s.right != nil {
		if s.right == nil || s.left != nil && s.left.weight > s.right.weight {
			t.rotate(s.left, compare)
		} else {
			t.rotate(s.right, compare)
		}
	}
	up := s.up
	t.replace(s, nil)
	for ; up != nil; up = up.up {
		up.sum(compare)
	}
	*s = region{}
}

// rotate lifts s above its parent.
func (t *regions) rotate(s *region, compare func(a, b any) int) {
	up := s.up
	t.replace(up, s)
	if up.left == s {
		if up.left = s.right; s.right != nil {
			s.right.up = up
		}
		s.right = up
	} else {
		if up.right = s.left; s.left != nil {
			s.left.up = up
		}
		s.left = up
	}
	up.up = s
	up.sum(compare)
	s.sum(compare)
}

// replace puts s, which may be nil, where old is in its parent.
func (t *regions) replace(old, s *region) {
	up := old.up
	switch {
	case up == nil:
		t.root = s
	case up.left == old:
		up.left = s
	default:
		up.right = s
	}
	if s != nil {
		s.up = up
	}
}

// sum brings up to date what s knows of its subtree.
func (s *region) sum(compare func(a, b any) int) {
	s.last = s.extent.To
	for _, c := range [...]*region{s.left, s.right} {
		if c != nil && compare(s.last, c.last) < 0 {
			s.last = c.last
		}
	}
}
