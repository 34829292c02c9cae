package actor

// Guests returns how many requests and watches of all systems on the same protoactor
// system have not ended.
func Waiters(s *System) (n int) {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	return len(s.replies.slots) - len(s.replies.free)
}

// Places returns how many places there are at the desk.
func Slots(s *System) int {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	return len(s.replies.slots)
}

// IsPlace reports whether the id is that of a place.
func IsWaiterID(id string) bool { _, ok := waiterIDOf(id); return ok }

// RoundTrips reports whether the id of a place is that of no other.
func RoundTrips(index uint32, number uint64) bool {
	p := waiterID{index: index, number: number}
	back, ok := waiterIDOf(p.id())
	return ok && back == p
}

// OnlyGuest returns the address of the only one at the desk.
func OnlyWaiter(s *System) *PID {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	var only waiterID
	for i, o := range s.replies.slots {
		if o.waiter != nil {
			only = waiterID{o.number, uint32(i)}
		}
	}
	return &PID{Address: replyAddress, Id: only.id()}
}
