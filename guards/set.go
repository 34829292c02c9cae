package guards

import "math/bits"

// Set is a set of operations, by their number in a Table.
type Set []uint64

// NewSet returns an empty set with room for n operations.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Add puts operation i into the set.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove takes operation i out of the set.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// Has reports whether operation i is in the set.
func (s Set) Has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Meets reports whether the two sets, of the same room, have a member in common.
func (s Set) Meets(t Set) bool {
	for i, w := range s {
		if w&t[i] != 0 {
			return true
		}
	}
	return false
}

// Next returns the smallest member that is at least i, or -1.
func (s Set) Next(i int) int {
	w := i >> 6
	if w >= len(s) {
		return -1
	}
	if b := s[w] >> (i & 63); b != 0 {
		return i + bits.TrailingZeros64(b)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w<<6 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}
