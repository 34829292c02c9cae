package actor

// Guests returns how many requests and watches of all systems on the same protoactor
// system have not ended.
func Guests(s *System) (n int) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return len(s.desk.places) - len(s.desk.free)
}

// Places returns how many places there are at the desk.
func Places(s *System) int {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return len(s.desk.places)
}

// IsPlace reports whether the id is that of a place.
func IsPlace(id string) bool { _, ok := placeOf(id); return ok }

// RoundTrips reports whether the id of a place is that of no other.
func RoundTrips(index uint32, number uint64) bool {
	p := place{index: index, number: number}
	back, ok := placeOf(p.id())
	return ok && back == p
}

// OnlyGuest returns the address of the only one at the desk.
func OnlyGuest(s *System) *PID {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	var only place
	for i, o := range s.desk.places {
		if o.guest != nil {
			only = place{o.number, uint32(i)}
		}
	}
	return &PID{Address: replyAddress, Id: only.id()}
}
