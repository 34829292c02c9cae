package actor

// Waiters returns how many requests and watches of all Systems on the same protoactor
// system have not ended.
func Waiters(s *System) (n int) {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	return len(s.replies.slots) - len(s.replies.free)
}

// Slots returns how many slots the reply registry has, free ones included.
func Slots(s *System) int {
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	return len(s.replies.slots)
}

// IsWaiterID reports whether the id has the form of a waiter's.
func IsWaiterID(id string) bool { _, ok := waiterIDOf(id); return ok }

// RoundTrips reports whether parsing a waiter's id gives the same index and number back.
func RoundTrips(index uint32, number uint64) bool {
	p := waiterID{index: index, number: number}
	back, ok := waiterIDOf(p.id())
	return ok && back == p
}

// OnlyWaiter returns the address of the only waiter in the reply registry.
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
