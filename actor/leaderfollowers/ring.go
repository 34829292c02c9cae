package leaderfollowers

// ring is a queue whose memory is used again. The zero ring is empty.
type ring[T any] struct {
	items []T // len is a power of two, or 0
	first int
	n     int
}

func (r *ring[T]) push(item T) {
	if r.n == len(r.items) {
		r.resize(max(16, 2*r.n))
	}
	r.items[(r.first+r.n)&(len(r.items)-1)] = item
	r.n++
}

// pop takes the first item out of a ring that is not empty.
func (r *ring[T]) pop() (item T) {
	var none T
	item, r.items[r.first] = r.items[r.first], none
	r.first = (r.first + 1) & (len(r.items) - 1)
	if r.n--; r.n == 0 && len(r.items) > 1<<12 {
		r.items, r.first = nil, 0 // so that a burst is not paid for with memory for ever
	}
	return item
}

func (r *ring[T]) resize(n int) {
	items := make([]T, n)
	for i := range r.n {
		items[i] = r.items[(r.first+i)&(len(r.items)-1)]
	}
	r.items, r.first = items, 0
}
